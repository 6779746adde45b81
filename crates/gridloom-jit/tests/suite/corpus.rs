//! Every compiled kernel in the tests of this workspace can be compiled, for single threads and for
//! groups.

use gridloom_interp::{Layout, Program};
use gridloom_jit::CompiledKernel;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
}

#[test]
fn every_kernel_of_the_corpus_is_compiled() {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    found.sort();
    let (mut kernels, mut complaints) = (0, Vec::new());
    for path in found {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Ok(module) = gridloom_ptx::parse(&text) else { continue };
        let Ok(layout) = Layout::of(&module) else { continue };
        let addresses = vec![0x1000_0000; layout.variables().len()];
        let names: Vec<String> = module.entries().map(|(_, function)| function.name.clone()).collect();
        let program = Program::new(Arc::new(module), layout, addresses);
        for name in names {
            let Ok(kernel) = program.kernel(&name) else { continue };
            let Ok(compiled) = CompiledKernel::new(kernel) else { continue };
            kernels += 1;
            if let Err(error) = compiled.compile_all() {
                complaints.push(format!("{}: {name}: {error}", path.display()));
            }
        }
    }
    assert!(complaints.is_empty(), "{} of {kernels} kernels:\n{}", complaints.len(), complaints.join("\n"));
    assert!(kernels > 150, "{kernels} kernels");
}
