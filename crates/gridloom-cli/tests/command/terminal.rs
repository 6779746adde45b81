//! Terminals of all kinds, on a pseudo-terminal.

use crate::support::{Folder, command, succeeds};
use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

/// Returns the two ends of a terminal of this width: ours, and the one that a command has.
fn terminal(columns: u16) -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: two descriptors are written, and the size lives across the call.
    let opened =
        unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), &size) };
    assert_eq!(opened, 0, "a pseudo-terminal");
    // SAFETY: both descriptors were just opened, and nobody else has them.
    unsafe { (OwnedFd::from_raw_fd(ours).into(), OwnedFd::from_raw_fd(theirs)) }
}

/// Reads what a command shows until it ends, or until `enough`.
fn read_until(ours: &mut File, enough: impl Fn(&str) -> bool) -> String {
    let mut shown = Vec::new();
    let mut part = [0; 4096];
    // Linux fails with EIO at the end.
    while let Ok(read) = ours.read(&mut part) {
        shown.extend_from_slice(&part[..read]);
        if read == 0 || enough(&String::from_utf8_lossy(&shown)) {
            break;
        }
    }
    String::from_utf8_lossy(&shown).into_owned()
}

/// Runs the command on a terminal of this width, and returns what it showed.
fn on_terminal(args: &[&str], columns: u16, variables: &[(&str, &str)]) -> String {
    let (mut ours, theirs) = terminal(columns);
    let mut command = command(args);
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    command.stdout(theirs.try_clone().expect("a descriptor")).stderr(theirs);
    let mut child = command.spawn().expect("the command was built with this test");
    // The command's copies of the terminal are the last ones, so that reading ends with the
    // command.
    drop(command);
    let shown = read_until(&mut ours, |_| false);
    assert!(child.wait().expect("it ends").success());
    shown
}

const HEAT: [&str; 4] = ["demo", "heat", "--device", "cpu"];

/// The lines of the picture, which start with a number of passes.
fn picture(shown: &str) -> Vec<&str> {
    let is_picture = |line: &&str| {
        let number = line.get(..8).unwrap_or("").trim();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    shown.lines().map(|line| line.trim_end_matches('\r')).filter(is_picture).collect()
}

#[test]
fn a_terminal_gets_colours() {
    let shown = on_terminal(&HEAT, 120, &[]);
    assert!(shown.contains("\x1b[48;2;"), "{shown:?}");
}

#[test]
fn a_colourless_terminal_gets_no_colours() {
    let shown = on_terminal(&HEAT, 120, &[("NO_COLOR", "1")]);
    assert!(!shown.contains("\x1b[48") && !shown.contains("\x1b[3"), "{shown:?}");
    assert!(!on_terminal(&["--help"], 120, &[("NO_COLOR", "1")]).contains('\x1b'));
}

#[test]
fn a_dumb_terminal_gets_no_escapes() {
    // Some libraries take a set `CI` for a terminal with colours.
    for ci in ["", "true"] {
        for args in [&HEAT[..], &["--help"], &["devices"]] {
            let shown = on_terminal(args, 120, &[("TERM", "dumb"), ("CI", ci)]);
            assert!(!shown.contains('\x1b'), "{args:?} with CI={ci:?}: {shown:?}");
        }
    }
}

#[test]
fn a_narrow_terminal_wraps_no_line_of_the_picture() {
    for columns in [1u16, 12, 20, 33] {
        let shown = on_terminal(&HEAT, columns, &[("TERM", "dumb")]);
        let picture = picture(&shown);
        assert_eq!(picture.len(), 10, "{shown:?}");
        let room = usize::from(columns).max(10);
        assert!(picture.iter().all(|line| line.len() <= room), "{columns}: {picture:?}");
    }
}

#[test]
fn an_interrupted_run_clears_its_bar_and_leaves_no_files() {
    // A shell ignores SIGINT for its background, and `nohup` ignores SIGHUP. The others tidy up
    // all the same.
    let cases = [
        (libc::SIGINT, None),
        (libc::SIGTERM, None),
        (libc::SIGHUP, None),
        (libc::SIGTERM, Some(libc::SIGINT)),
        (libc::SIGINT, Some(libc::SIGHUP)),
    ];
    let folder = Folder::new("interrupted");
    let heat = folder.path("heat.gridloom");
    succeeds(&["demo", "heat", "--device", "cpu", "--save", &heat]);
    for (signal, ignored) in cases {
        let (mut child, mut ours) = endless(&heat, &folder.path("rod.npy"), ignored);
        // An ignored signal does nothing.
        ignored.into_iter().for_each(|ignored| send(&child, ignored));
        send(&child, signal);
        let rest = read_until(&mut ours, |_| false);
        assert_eq!(child.wait().expect("it ends").code(), Some(128 + signal), "{ignored:?} is ignored");
        assert!(rest.ends_with("\r\x1b[2K"), "the line is empty: {rest:?}");
        assert_eq!(folder.names(), ["heat.gridloom"]);
    }
}

/// Starts a command that does not end and has a file to write, and waits until it shows a bar.
fn endless(graph: &str, output: &str, ignored: Option<libc::c_int>) -> (Child, File) {
    let (mut ours, theirs) = terminal(120);
    let get = format!("rod={output}");
    let mut command = command(&["run", graph, "--device", "cpu", "--repeat", "1000000000", "--get", &get]);
    command.env("TERM", "xterm-256color").stdout(Stdio::null()).stderr(theirs);
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(move || {
            // The tests themselves may have been started so that they ignore signals.
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let is_ignored = ignored == Some(signal);
                libc::signal(signal, if is_ignored { libc::SIG_IGN } else { libc::SIG_DFL });
            }
            Ok(())
        });
    }
    let child = command.spawn().expect("the command was built with this test");
    drop(command);
    let shown = read_until(&mut ours, |shown| shown.contains("launches"));
    assert!(shown.contains("/1000000000 launches"), "{shown:?}");
    (child, ours)
}

fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: the process was started by this test and has not been waited for.
    let sent = unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    assert_eq!(sent, 0);
}
