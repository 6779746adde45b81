//! Devices, demonstrations, and running a kernel.

use crate::support::{Folder, SCALE, fails, succeeds};
use std::path::Path;

#[test]
fn the_version_is_that_of_gridloom() {
    assert_eq!(succeeds(&["--version"]), concat!("gridloom ", env!("CARGO_PKG_VERSION"), "\n"));
}

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
        "  compiled   ",
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
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry who() {{ .reg .b32 %r; {} ret; }}",
        "add.u32 %r, %r, 1;\n".repeat(20_000)
    );
    let file = folder.write("who.ptx", text.as_bytes());
    let said = succeeds(&["ptx", "info", &file]);
    assert!(said.contains("engine     interpreter: 20002 instructions are more than"), "{said}");
}

#[test]
fn each_demonstration_succeeds_on_the_cpu() {
    for program in ["heat", "life", "bisect", "switch", "poisson"] {
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
    for option in ["--checked", "--unchecked", "--engine=jit"] {
        fails(&["demo", "heat", "--device", "cuda", option], &["CPU device"]);
    }
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
