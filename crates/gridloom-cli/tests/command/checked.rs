//! Kernels that leave their memory.

use crate::support::{Folder, SCALE, command, expect_failure, fails, succeeds};

/// Writes 16 MiB beyond its buffer, where the command itself may have something.
const FAR: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .entry far(.param .u64 data)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [data];
    st.global.u64 [%rd0+16777216], %rd0;
    ret;
}
";

#[test]
fn every_access_is_checked_by_default() {
    let folder = Folder::new("checked");
    let file = folder.write("far.ptx", FAR.as_bytes());
    let data = folder.write("data.bin", &[7; 16]);
    let inout = format!("inout:{data}");
    let complaint =
        fails(&["ptx", "run", &file, "--arg", &inout], &["far", "write of 8 bytes", "argument 0"]);
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert_eq!(std::fs::read(&data).expect("still there"), [7; 16]);
    assert_eq!(folder.names(), ["data.bin", "far.ptx"], "nothing is left behind");
}

#[test]
fn an_access_out_of_bounds_says_how_far_beyond_which_argument() {
    let folder = Folder::new("beyond");
    let file = folder.write("scale.ptx", SCALE.as_bytes());
    let out = format!("out:{}:12", folder.path("out.bin"));
    let says =
        ["read of 4 bytes", "ends 4 bytes beyond the memory of argument 0 (`data`), which has 12 bytes"];
    fails(&["ptx", "run", &file, "--block", "4", "--arg", &out, "--arg", "f32:1"], &says);
    fails(&["ptx", "run", &file, "--arg", "null", "--arg", "f32:1"], &["it is a null pointer"]);
}

#[test]
fn unchecked_switches_the_checks_off() {
    let folder = Folder::new("unchecked");
    let file = folder.write("scale.ptx", SCALE.as_bytes());
    let out = format!("out:{}:16", folder.path("out.bin"));
    let run = ["ptx", "run", &file, "--block", "4", "--arg", &out, "--arg", "f32:1"];
    succeeds(&run);
    succeeds(&[&run[..], &["--unchecked"]].concat());
    succeeds(&[&run[..], &["--unchecked", "--engine", "jit"]].concat());
    fails(&[&run[..], &["--engine", "jit"]].concat(), &["--unchecked"]);
    fails(&[&run[..], &["--unchecked", "--checked"]].concat(), &["--unchecked", "--checked"]);
}

#[test]
fn the_variable_for_programs_is_checked_too() {
    let devices = |value: &str| {
        command(&["devices"]).env("GRIDLOOM_CPU_CHECKED", value).output().expect("the command was built")
    };
    let said = |value| String::from_utf8_lossy(&devices(value).stdout).into_owned();
    assert!(said("1").contains("checked memory: true"));
    assert!(said("0").contains("checked memory: false"));
    expect_failure(&["devices"], &devices("maybe"), &["GRIDLOOM_CPU_CHECKED", "maybe"]);
}
