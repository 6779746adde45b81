//! Output that is closed, or full.

use crate::support::{Folder, SCALE, command, expect_success};
use std::process::Stdio;

/// Commands that print, with what they need.
fn printing(folder: &Folder) -> Vec<Vec<String>> {
    let ptx = folder.write("scale.ptx", SCALE.as_bytes());
    let dot = folder.write("graph.dot", b"digraph { a -> b }");
    let out = format!("out:{}:4", folder.path("out.bin"));
    [
        vec!["--help"],
        vec!["--version"],
        vec!["devices"],
        vec!["demo", "switch", "--device", "cpu"],
        vec!["demo", "heat", "--device", "cpu"],
        vec!["demo", "bisect", "--device", "cpu"],
        vec!["show", &dot],
        vec!["ptx", "check", &ptx],
        vec!["ptx", "info", &ptx, "--clif", "--asm"],
        vec!["ptx", "check", &ptx, &ptx],
        vec!["ptx", "info", &ptx, &ptx],
        vec!["ptx", "run", &ptx, "--arg", &out, "--arg", "f32:1"],
    ]
    .into_iter()
    .map(|args| args.into_iter().map(str::to_owned).collect())
    .collect()
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let folder = Folder::new("closed");
    for args in printing(&folder) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(&args).stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
        expect_success(&args, &output);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_line_and_a_failure() {
    let folder = Folder::new("full");
    for args in printing(&folder) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = command(&args).stdout(full).stderr(Stdio::piped()).output().expect("it runs");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {complaint}");
        assert!(complaint.starts_with("error: standard output: No space left"), "{args:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{args:?}: {complaint}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn complaints_that_cannot_be_written_change_nothing() {
    for (args, code) in [(&["nothing"][..], 2), (&["ptx", "check", "/nowhere.ptx"], 1)] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let status = command(args).stderr(full).stdout(Stdio::null()).status().expect("it runs");
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_leave_the_file_as_it_was() {
    use crate::support::fails;
    let folder = Folder::new("results");
    let ptx = folder.write("scale.ptx", SCALE.as_bytes());
    let run = |out: &str, says: &[&str]| {
        fails(&["ptx", "run", &ptx, "--arg", out, "--arg", "f32:1"], says);
    };
    run("out:/dev/full:4", &["/dev/full: No space left"]);
    run("out:/nowhere/at/all:4", &["/nowhere/at/all"]);
    let folder_as_file = format!("out:{}:4", folder.path(""));
    run(&folder_as_file, &["directory"]);
    assert_eq!(folder.names(), ["scale.ptx"]);
}

#[test]
fn two_arguments_cannot_be_written_to_one_file() {
    use crate::support::fails;
    const TWO: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry two(.param .u64 a, .param .u64 b) { ret; }";
    let folder = Folder::new("twice");
    let ptx = folder.write("two.ptx", TWO.as_bytes());
    let data = folder.write("data.bin", &[1, 2]);
    let (inout, out) = (format!("inout:{data}"), format!("out:{data}:4"));
    fails(&["ptx", "run", &ptx, "--arg", &inout, "--arg", &out], &["two arguments", "data.bin"]);
    assert_eq!(std::fs::read(data).expect("still there"), [1, 2]);
}
