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

#[test]
fn files_are_written_when_nobody_reads_what_is_printed() {
    let folder = Folder::new("unread");
    let saved = folder.path("heat.gridloom");
    let (svg, dot) = (folder.path("heat.svg"), folder.path("heat.dot"));
    let rod = folder.path("rod.npy");
    let get = format!("rod={rod}");
    let html = folder.path("heat.html");
    for (args, file) in [
        (&["demo", "heat", "--device", "cpu", "--save", &saved][..], &saved),
        (&["demo", "heat", "--device", "cpu", "--svg", &svg], &svg),
        (&["demo", "heat", "--device", "cpu", "--dot", &dot, "--json"], &dot),
        (&["run", &saved, "--device", "cpu", "--get", &get], &rod),
        (&["profile", &saved, "--device", "cpu", "--html", &html], &html),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(args).stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
        expect_success(args, &output);
        assert!(std::fs::metadata(file).is_ok_and(|file| file.len() > 0), "{args:?}");
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
    fails(&["ptx", "run", &ptx, "--arg", &inout, "--arg", &out], &["two results", "data.bin"]);
    assert_eq!(std::fs::read(data).expect("still there"), [1, 2]);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_any_work() {
    use crate::support::{fails, succeeds};
    let folder = Folder::new("early");
    let saved = folder.path("heat.gridloom");
    succeeds(&["demo", "heat", "--device", "cpu", "--save", &saved]);
    let source = folder.write("k.cu", b"this is no CUDA C++");
    let nowhere = "/nowhere/at/all";
    let get = format!("rod={nowhere}");
    for args in [
        // Work that would take hours.
        &["demo", "life", "--device", "cpu", "--passes", "2000000000", "--svg", nowhere][..],
        &["demo", "life", "--device", "cpu", "--passes", "2000000000", "--png", nowhere],
        &["demo", "life", "--device", "cpu", "--passes", "2000000000", "--save", nowhere],
        &["demo", "life", "--device", "cpu", "--passes", "2000000000", "--dot", nowhere],
        &["profile", &saved, "--device", "cpu", "--set", "passes=2000000000", "--html", nowhere],
        &["profile", &saved, "--device", "cpu", "--set", "passes=2000000000", "--trace", nowhere],
        &["run", &saved, "--device", "cpu", "--set", "passes=2000000000", "--get", &get],
        &["show", &saved, "--html", "-o", nowhere],
        &["cc", &source, "-o", nowhere],
        &["man", "-o", "/dev/null/pages"],
    ] {
        let complaint = fails(args, &[if args[0] == "man" { "/dev/null" } else { nowhere }]);
        assert_eq!(complaint.lines().count(), 1, "{args:?}: {complaint}");
    }
    let one = folder.path("one");
    fails(&["demo", "heat", "--device", "cpu", "--svg", &one, "--png", &one], &["two results"]);
    fails(&["profile", &saved, "--device", "cpu", "--html", &one, "--trace", &one], &["two results"]);
    let gets = [format!("rod={one}"), format!("passes={one}")];
    fails(&["run", &saved, "--device", "cpu", "--get", &gets[0], "--get", &gets[1]], &["two results"]);
    assert_eq!(folder.names(), ["heat.gridloom", "k.cu"], "nothing is left behind");
}

#[test]
fn names_in_files_cannot_drive_a_terminal() {
    use crate::support::{gridloom, succeeds};
    let folder = Folder::new("escapes");
    let saved = folder.path("heat.gridloom");
    succeeds(&["demo", "heat", "--device", "cpu", "--save", &saved]);
    let bytes = std::fs::read(&saved).expect("saved");
    let limits = gridloom_file::Limits::default();
    let mut file = gridloom_file::GraphFile::from_bytes(&bytes, &limits).expect("a saved graph");
    for node in file.document.graphs.iter_mut().flat_map(|graph| &mut graph.nodes) {
        node.name = Some("\u{1b}[31mred\u{7}\r\n".to_owned());
    }
    let hostile = folder.write("hostile.gridloom", &file.to_bytes().expect("a file"));
    for args in [
        &["show", &hostile][..],
        &["show", &hostile, "--dot"],
        &["show", &hostile, "--mermaid"],
        &["show", &hostile, "--svg"],
        &["show", &hostile, "--json"],
        &["diff", &saved, &hostile],
        &["profile", &hostile, "--device", "cpu"],
        &["run", &hostile, "--device", "cpu", "--profile"],
    ] {
        let output = gridloom(args);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(said.contains("red"), "{args:?}: {said}");
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{args:?}: {said:?}");
    }
}
