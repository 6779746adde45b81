//! Compiling CUDA C++ on a machine with or without a GPU. Each test is skipped where there is no NVRTC.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use gridloom_cuda::nvrtc::{CompileOptions, Nvrtc, NvrtcError};
use std::sync::Arc;

fn compiler() -> Option<Arc<Nvrtc>> {
    match Nvrtc::get() {
        Ok(nvrtc) => Some(nvrtc),
        Err(error) => {
            let required = std::env::var_os("GRIDLOOM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
            assert!(!required, "{error}");
            let first = error.to_string();
            eprintln!("skipped: {}", first.lines().next().unwrap_or_default());
            None
        }
    }
}

const DOUBLE: &str = r#"
extern "C" __global__ void double_all(float *data, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= FACTOR;
}
"#;

#[test]
fn source_becomes_ptx_with_the_kernel_in_it() {
    let Some(nvrtc) = compiler() else { return };
    let options = CompileOptions::default().flags(["-DFACTOR=2.0f"]);
    let ptx = nvrtc.compile(DOUBLE, &options).unwrap();
    assert!(ptx.text().contains(".visible .entry double_all("), "{}", ptx.text());
    assert_eq!(ptx.log(), "");
    assert!(ptx.version().is_some());
}

#[test]
fn a_mistake_is_an_error_with_the_compilers_words_and_line() {
    let Some(nvrtc) = compiler() else { return };
    let options = CompileOptions::default().name("double.cu");
    let error = nvrtc.compile(DOUBLE, &options).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, NvrtcError::Compile { .. }));
    assert!(text.contains("double.cu(4)"), "{text}");
    assert!(text.contains("FACTOR"), "{text}");
}

#[test]
fn the_architecture_is_the_target_of_the_ptx() {
    let Some(nvrtc) = compiler() else { return };
    let options = CompileOptions::default().architecture((9, 0));
    let ptx = nvrtc.compile("extern \"C\" __global__ void nothing() {}", &options).unwrap();
    assert!(ptx.text().contains(".target sm_90"), "{}", ptx.text());
}

#[test]
fn an_option_the_compiler_does_not_know_is_named() {
    let Some(nvrtc) = compiler() else { return };
    let options = CompileOptions::default().flags(["--no-such-option"]);
    let error = nvrtc.compile("", &options).unwrap_err();
    assert!(error.to_string().contains("no-such-option"), "{error}");
}

#[test]
fn the_condition_setter_compiles_to_a_plain_external_function() {
    let Some(nvrtc) = compiler() else { return };
    let source = r#"
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long, unsigned int);
extern "C" __global__ void stop(unsigned long long handle) { cudaGraphSetConditional(handle, 0); }
"#;
    let ptx = nvrtc.compile(source, &CompileOptions::default()).unwrap();
    assert!(ptx.text().contains(".extern .func cudaGraphSetConditional"), "{}", ptx.text());
}

#[test]
fn a_nul_byte_in_the_source_is_refused() {
    let Some(nvrtc) = compiler() else { return };
    let error = nvrtc.compile("int a;\0int b;", &CompileOptions::default()).unwrap_err();
    assert!(matches!(error, NvrtcError::Nul { what: "source" }), "{error}");
}
