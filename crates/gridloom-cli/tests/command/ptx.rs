//! `ptx check` and `ptx info`.

use crate::support::{
    Folder, SCALE, command, expect_failure, expect_success, fails, gridloom, gridloom_with_input, succeeds,
    text,
};

#[test]
fn instructions_that_do_not_exist_fail_with_the_caret_at_the_culprit() {
    let folder = Folder::new("unknown");
    for (written, said, culprit) in [
        ("mlu.f32 %f2, %f1, %f0;", "there is no instruction `mlu`", "mlu"),
        ("mul.sideways.f32 %f2, %f1, %f0;", "`mul` has no `.sideways`", "sideways"),
    ] {
        let file = folder.write("wrong.ptx", SCALE.replace("mul.f32 %f2, %f1, %f0;", written).as_bytes());
        for subcommand in ["check", "info"] {
            let complaint = fails(&["ptx", subcommand, &file], &["wrong.ptx:17:", said]);
            let [_, line, caret, ..] = complaint.lines().collect::<Vec<_>>()[..] else {
                panic!("{complaint}")
            };
            assert_eq!(line.find(culprit), caret.find('^'), "{complaint}");
        }
    }
}

#[test]
fn several_files_are_all_looked_at_and_one_that_is_wrong_fails() {
    let folder = Folder::new("several");
    let good = folder.write("good.ptx", SCALE.as_bytes());
    let wrong = folder.write("wrong.ptx", b".version 7.0 .target sm_70 .entry k() { nonsense; }");
    let also = folder.write("also.ptx", SCALE.replace("scale", "stretch").as_bytes());
    for subcommand in ["check", "info"] {
        let said = succeeds(&["ptx", subcommand, &good, &also]);
        assert!(said.contains("scale") && said.contains("stretch"), "{said}");
        let args = ["ptx", subcommand, &good, &wrong, &folder.path("missing.ptx"), &also];
        let output = gridloom(&args);
        expect_failure(&args, &output, &["wrong.ptx:1:", "nonsense", "missing.ptx: No such file"]);
        let said = text(&output.stdout);
        assert!(said.contains("scale") && said.contains("stretch"), "{said}");
    }
}

#[test]
fn a_file_can_come_from_standard_input() {
    for subcommand in ["check", "info"] {
        let args = ["ptx", subcommand, "-"];
        assert!(expect_success(&args, &gridloom_with_input(&args, SCALE)).contains("scale"));
        let wrong = gridloom_with_input(&args, "hello");
        expect_failure(&args, &wrong, &["<stdin>:1:1: a PTX module starts with .version"]);
    }
    let folder = Folder::new("stdin-run");
    let out = format!("out:{}:4", folder.path("out.bin"));
    let args = ["ptx", "run", "-", "--arg", &out, "--arg", "f32:1"];
    expect_success(&args, &gridloom_with_input(&args, SCALE));
}

const TWICE: &str = "\
extern \"C\" __global__ void twice(float *data)
{
    data[threadIdx.x] *= 2;
}
";

/// Whether CUDA C++ can be compiled here; where not, one line says so.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn has_nvrtc() -> bool {
    let missing = gridloom::compile_cuda("", &gridloom::CompileOptions::new()).err();
    if let Some(error) = &missing {
        let required = std::env::var_os("GRIDLOOM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
        assert!(!required, "{error}");
        eprintln!("skipped: {error}");
    }
    missing.is_none()
}

#[test]
fn cuda_files_are_compiled() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new("cuda");
    let file = folder.write("twice.cu", TWICE.as_bytes());
    assert!(succeeds(&["ptx", "check", &file]).contains("1 kernel: twice"));
    assert!(succeeds(&["ptx", "info", &file]).contains("kernel twice"));
    let args = ["ptx", "check", "-"];
    assert!(expect_success(&args, &gridloom_with_input(&args, TWICE)).contains("1 kernel: twice"));
    let data = folder.write("data.bin", &3f32.to_le_bytes());
    let inout = format!("inout:{data}");
    succeeds(&["ptx", "run", &file, "--arg", &inout]);
    assert_eq!(std::fs::read(data).expect("written"), 6f32.to_le_bytes());
    // Line information is on: the line is that of the CUDA C++.
    fails(&["ptx", "run", &file, "--block", "2", "--arg", &inout], &["twice.cu:3", "beyond", "argument 0"]);
    let wrong = folder.write("wrong.cu", TWICE.replace("data[", "date[").as_bytes());
    fails(&["ptx", "check", &wrong], &["wrong.cu(3)", "date"]);
}

#[test]
fn cc_prints_as_json_what_it_compiled_or_where_it_is() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new("cc-json");
    let file =
        folder.write("scale.cu", b"template <typename T> __global__ void scale(T *x, T by) { *x *= by; }");
    let args = ["cc", &*file, "--name", "scale<float>", "--json"];
    let facts = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&succeeds(args)).expect("JSON") };
    let printed = facts(&args);
    let name = printed["names"]["scale<float>"].as_str().expect("a name");
    let ptx = printed["ptx"].as_str().expect("the PTX");
    assert!(ptx.contains(&format!(".entry {name}(")), "{ptx}");
    assert_eq!(printed["written"], serde_json::Value::Null);
    let path = folder.path("scale.ptx");
    let written = facts(&[&args[..], &["-o", &path]].concat());
    assert_eq!((&written["written"], &written["ptx"]), (&path.clone().into(), &serde_json::Value::Null));
    assert_eq!(std::fs::read_to_string(path).expect("written"), ptx);
}

#[test]
fn a_cuda_file_without_a_compiler_is_one_line() {
    let folder = Folder::new("no-nvrtc");
    let file = folder.write("twice.cu", TWICE.as_bytes());
    let args = ["ptx", "check", &file];
    let output = command(&args).env("GRIDLOOM_NVRTC", "/nowhere/libnvrtc.so").output().expect("it runs");
    let complaint =
        expect_failure(&args, &output, &["twice.cu: ", "NVRTC", "nvidia-cuda-nvrtc", "GRIDLOOM_NVRTC"]);
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
}

#[test]
fn cuda_given_as_ptx_says_how_to_compile_it() {
    let folder = Folder::new("cuda-as-ptx");
    let file = folder.write("twice.ptx", TWICE.as_bytes());
    for subcommand in ["check", "info", "run"] {
        fails(&["ptx", subcommand, &file], &["this looks like CUDA C++", "gridloom cc", "nvcc -ptx"]);
    }
}

#[test]
fn a_struct_passed_by_value_is_an_argument() {
    const TEXT: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .entry product(.param .align 4 .b8 pair[8], .param .u64 out)
{
    .reg .f32 %f<3>;
    .reg .b64 %rd0;
    ld.param.f32 %f0, [pair];
    ld.param.f32 %f1, [pair+4];
    ld.param.u64 %rd0, [out];
    mul.f32 %f2, %f0, %f1;
    st.global.f32 [%rd0], %f2;
    ret;
}
";
    let folder = Folder::new("struct");
    let file = folder.write("product.ptx", TEXT.as_bytes());
    let out = format!("out:{}:4", folder.path("out.bin"));
    succeeds(&["ptx", "run", &file, "--arg", "bytes:0000204000000040", "--arg", &out]);
    assert_eq!(std::fs::read(folder.path("out.bin")).expect("written"), 5f32.to_le_bytes());
    fails(&["ptx", "run", &file, "--arg", "bytes:00002040", "--arg", &out], &["parameter 0", "8 bytes", "4"]);
    fails(&["ptx", "run", &file, "--arg", "bytes:xyz", "--arg", &out], &["bytes:xyz", "hexadecimal"]);
}
