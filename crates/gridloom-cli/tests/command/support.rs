//! Running the command, and files for it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The command, in an environment that does not change what it does.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gridloom"));
    command.args(args).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CI", "COLUMNS", "GRIDLOOM_CPU_CHECKED", "GRIDLOOM_CPU_ENGINE"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn gridloom(args: &[&str]) -> Output {
    command(args).output().expect("the command was built with this test")
}

/// Runs the command with this text as its standard input.
pub(crate) fn gridloom_with_input(args: &[&str], input: &str) -> Output {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built with this test");
    // A command that does not read all of it has a reason, which its output tells.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("the command ends")
}

#[track_caller]
pub(crate) fn succeeds(args: &[&str]) -> String {
    expect_success(args, &gridloom(args))
}

#[track_caller]
pub(crate) fn expect_success(args: &[&str], output: &Output) -> String {
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{args:?} failed:\n{said}\n{complained}");
    said
}

/// The complaint of a command that must fail, which must say all of these things.
#[track_caller]
pub(crate) fn fails(args: &[&str], says: &[&str]) -> String {
    expect_failure(args, &gridloom(args), says)
}

#[track_caller]
pub(crate) fn expect_failure(args: &[&str], output: &Output, says: &[&str]) -> String {
    let complained = text(&output.stderr);
    assert!(!output.status.success(), "{args:?} succeeded:\n{}", text(&output.stdout));
    for word in says {
        assert!(complained.contains(word), "expected {word:?} of {args:?} in:\n{complained}");
    }
    complained
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file in a folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gridloom-command-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, contents).expect("a temporary file");
        path.display().to_string()
    }

    /// The names of the files in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let listing = std::fs::read_dir(&self.0).expect("the folder is there");
        let mut names: Vec<String> = listing
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) const SCALE: &str = "\
.version 7.0
.target sm_70
.address_size 64

.visible .entry scale(.param .u64 data, .param .f32 factor)
{
    .reg .b32 %r1;
    .reg .f32 %f<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [data];
    ld.param.f32 %f0, [factor];
    cvta.to.global.u64 %rd1, %rd0;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    mul.f32 %f2, %f1, %f0;
    st.global.f32 [%rd3], %f2;
    ret;
}
";
