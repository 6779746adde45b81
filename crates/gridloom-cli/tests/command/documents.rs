//! The documents say what the command does.

use crate::support::{Folder, succeeds};
use gridloom::ptx::{NOT_RUN, NotRun};

#[test]
fn the_ptx_that_the_cpu_device_does_not_run_is_documented_as_the_code_has_it() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide.md");
    let guide = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let table = NotRun::markdown();
    assert!(guide.contains(&table), "docs/guide.md should have this table:\n{table}");
}

#[test]
fn ptx_check_accepts_what_the_table_lists_and_says_that_the_cpu_device_does_not_run_it() {
    let folder = Folder::new("not-run");
    for (index, row) in NOT_RUN.iter().enumerate() {
        let text = format!(
            ".version 9.2\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n    .reg .b32 %r<9>;\n    .reg .b64 %rd<9>;\n    \
             .reg .f32 %f<9>;\n    .reg .b16 %h<9>;\n    {}\n    ret;\n}}\n",
            row.example
        );
        let file = folder.write(&format!("{index}.ptx"), text.as_bytes());
        let said = succeeds(&["ptx", "check", &file]);
        let mnemonic = row.example.split(['.', ' ']).next().expect("a mnemonic");
        for part in ["1 kernel: k", "kernel `k` cannot run on the CPU device", mnemonic, "at line 10"] {
            assert!(said.contains(part), "expected {part:?} of {}:\n{said}", row.family);
        }
    }
}
