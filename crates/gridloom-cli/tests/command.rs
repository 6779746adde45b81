//! The command as a person uses it: what it prints, and whether it succeeds.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn gridloom(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gridloom"))
        .args(args)
        .output()
        .expect("the command was built with this test")
}

#[track_caller]
fn succeeds(args: &[&str]) -> String {
    let output = gridloom(args);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{args:?} failed:\n{said}\n{complained}");
    said
}

/// The complaint of a command that must fail, which must say all of these things.
#[track_caller]
fn fails(args: &[&str], says: &[&str]) -> String {
    let output = gridloom(args);
    let complained = text(&output.stderr);
    assert!(!output.status.success(), "{args:?} succeeded:\n{}", text(&output.stdout));
    for word in says {
        assert!(complained.contains(word), "expected {word:?} of {args:?} in:\n{complained}");
    }
    complained
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file in a folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gridloom-command-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    fn write(&self, name: &str, contents: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, contents).expect("a temporary file");
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SCALE: &str = "\
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

#[test]
fn devices_lists_the_cpu() {
    assert!(succeeds(&["devices"]).lines().any(|line| line.starts_with("cpu")));
}

#[test]
fn ptx_info_tells_what_a_kernel_takes_and_how_it_runs() {
    let folder = Folder::new("info");
    let file = folder.write("scale.ptx", SCALE.as_bytes());
    let said = succeeds(&["ptx", "info", &file]);
    for line in [
        "kernel scale",
        "data at 0: 8 bytes, .u64",
        "registers  1 .b32, 4 .b64, 3 .f32",
        "shared     0 bytes",
        "engine     jit",
        "vectorized yes",
    ] {
        assert!(said.contains(line), "expected {line:?} in:\n{said}");
    }
    assert!(!said.contains("function u0:0"));
    let clif = succeeds(&["ptx", "info", &file, "--kernel", "scale", "--clif"]);
    assert!(clif.contains("function u0:0") && clif.contains("fmul"), "{clif}");
    let asm = succeeds(&["ptx", "info", &file, "--asm"]);
    assert!(asm.contains("block0:") && !asm.contains("function u0:0"), "{asm}");
    fails(&["ptx", "info", &file, "--kernel", "stretch"], &["no kernel `stretch`", "scale"]);
}

#[test]
fn ptx_info_says_why_a_kernel_is_interpreted() {
    let folder = Folder::new("interpreted");
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry who() { .reg .b32 %r; activemask.b32 %r; ret; }";
    let file = folder.write("who.ptx", text.as_bytes());
    let said = succeeds(&["ptx", "info", &file]);
    assert!(said.contains("engine     interpreter: activemask depends on which threads"), "{said}");
}

#[test]
fn each_demonstration_succeeds_on_the_cpu() {
    for program in ["heat", "bisect", "switch"] {
        succeeds(&["demo", program, "--device", "cpu"]);
    }
}

#[test]
fn the_heat_demonstration_takes_other_sizes_and_says_how_far_off_it_is() {
    let said = succeeds(&["demo", "heat", "--device", "cpu", "--size", "500", "--passes", "7"]);
    assert!(said.contains("7 passes over 500 points"), "{said}");
    assert!(said.contains("degrees from the host"), "{said}");
}

#[test]
fn a_demonstration_writes_its_graph_as_dot() {
    let folder = Folder::new("dot");
    let file = folder.path("heat.dot");
    succeeds(&["demo", "heat", "--device", "cpu", "--dot", &file]);
    assert!(std::fs::read_to_string(file).expect("written").starts_with("digraph"));
}

#[test]
fn options_that_a_demonstration_has_no_use_for_are_refused() {
    fails(&["demo", "switch", "--passes", "3"], &["--passes"]);
    fails(&["demo", "bisect", "--size", "3"], &["--size"]);
    fails(&["demo", "heat", "--size", "2"], &["--size"]);
    fails(&["demo", "heat", "--dot", "/nowhere/at/all.dot", "--device", "cpu"], &["/nowhere/at/all.dot"]);
    fails(&["demo", "heat", "--device", "cuda", "--checked"], &["CPU device"]);
}

#[test]
fn check_lists_the_kernels_of_a_file_without_fault() {
    let folder = Folder::new("check");
    let said = succeeds(&["ptx", "check", &folder.write("scale.ptx", SCALE.as_bytes())]);
    assert!(said.contains("1 kernel: scale"), "{said}");
}

#[test]
fn check_points_at_what_is_wrong() {
    let folder = Folder::new("wrong");
    let file = folder.write("wrong.ptx", SCALE.replace("%f2, %f1, %f0", "%f2, %f1, %f9").as_bytes());
    let complaint = fails(&["ptx", "check", &file], &["wrong.ptx:17:", "%f9"]);
    assert!(complaint.contains('^'), "{complaint}");
    fails(&["ptx", "check", &folder.path("missing.ptx")], &["missing.ptx"]);
    let binary = folder.write("binary.ptx", &[0xff, 0xfe, 0, 1]);
    fails(&["ptx", "check", &binary], &["binary.ptx"]);
}

#[test]
fn run_reads_launches_and_writes_back() {
    let folder = Folder::new("run");
    let file = folder.write("scale.ptx", SCALE.as_bytes());
    let data: Vec<u8> = [1.0f32, 2.0, -3.0, 0.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let data = folder.write("data.bin", &data);
    let inout = format!("inout:{data}");
    let args = ["ptx", "run", &file, "--kernel", "scale", "--grid", "1", "--block", "4,1,1"];
    let args =
        [&args[..], &["--arg", &inout, "--arg", "f32:2.5", "--checked", "--engine", "interpreter"]].concat();
    succeeds(&args);
    let bytes = std::fs::read(Path::new(&data)).expect("still there");
    let values: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    assert_eq!(values, [2.5, 5.0, -7.5, 1.25]);
}

#[test]
fn run_names_what_is_wrong_with_a_launch() {
    let folder = Folder::new("refused");
    let file = folder.write("scale.ptx", SCALE.as_bytes());
    let out = format!("out:{}:8", folder.path("out.bin"));
    let run = |more: &[&str], says: &[&str]| {
        fails(&[&["ptx", "run", file.as_str(), "--device", "cpu"], more].concat(), says);
    };
    run(&["--kernel", "nothing"], &["nothing", "scale"]);
    run(&[], &["2"]);
    run(&["--arg", &out, "--arg", "f64:1"], &["parameter 1"]);
    run(&["--arg", &out, "--arg", "f32:one"], &["f32:one"]);
    run(&["--block", "0", "--arg", &out, "--arg", "f32:1"], &["block"]);
    // Four threads and room for two of them.
    run(&["--block", "4", "--checked", "--arg", &out, "--arg", "f32:1"], &["scale", "thread"]);
    run(&["--arg", "null", "--arg", "f32:1", "--checked"], &["scale"]);
}
