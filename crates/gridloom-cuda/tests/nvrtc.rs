//! Compiling CUDA C++ on a machine with or without a GPU. Each test is skipped where there is no
//! NVRTC.

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
fn the_condition_setter_needs_no_declaration() {
    let Some(nvrtc) = compiler() else { return };
    let kernel = "extern \"C\" __global__ void stop(cudaGraphConditionalHandle handle) { cudaGraphSetConditional(handle, 0); }";
    let own = "extern \"C\" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long, unsigned int);";
    for source in [kernel.to_owned(), format!("{own}\n{kernel}")] {
        let ptx = nvrtc.compile(&source, &CompileOptions::default()).unwrap();
        assert!(ptx.text().contains(".extern .func cudaGraphSetConditional"), "{}", ptx.text());
    }
    // The line of a mistake is that of the source as it was given.
    let error = nvrtc.compile(&format!("{kernel}\nmistake"), &CompileOptions::default()).unwrap_err();
    assert!(error.to_string().contains("source.cu(2)"), "{error}");
}

#[test]
fn names_of_templates_can_be_asked_for() {
    let Some(nvrtc) = compiler() else { return };
    let source = "
        namespace lib { template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; } }
        __constant__ int table[4];";
    let asked = ["lib::scale<float>", "lib::scale<double>", "&table"];
    let ptx = nvrtc.compile(source, &CompileOptions::new().name_expressions(asked)).unwrap();
    let float = ptx.lowered_name("lib::scale<float>").unwrap();
    assert!(ptx.text().contains(&format!(".entry {float}(")), "{float}\n{}", ptx.text());
    assert_ne!(ptx.lowered_name("lib::scale<double>").unwrap(), float);
    assert_eq!(ptx.lowered_name("&table"), Some("table"));
    assert_eq!(ptx.lowered_name("lib::scale<int>"), None);
    assert_eq!(ptx.lowered_names().count(), 3);
    let error = nvrtc.compile(source, &CompileOptions::new().name_expressions(["missing<int>"])).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn an_error_about_a_missing_header_says_where_headers_are_looked_for() {
    let Some(nvrtc) = compiler() else { return };
    let error = nvrtc.compile("#include \"no_such_header.h\"", &CompileOptions::default()).unwrap_err();
    let text = error.to_string();
    for part in ["no_such_header.h", "Headers are looked for in", "-I", "nvidia-cuda-runtime"] {
        assert!(text.contains(part), "expected {part:?} in {text}");
    }
    let error = nvrtc.compile("mistake", &CompileOptions::default()).unwrap_err();
    assert!(!error.to_string().contains("Headers are looked for"), "{error}");
}

#[test]
fn headers_of_cuda_are_found() {
    let Some(nvrtc) = compiler() else { return };
    let source = "#include <cuda_fp16.h>
        extern \"C\" __global__ void half_it(__half *x) { *x = __hmul(*x, __float2half(0.5f)); }";
    match nvrtc.compile(source, &CompileOptions::default()) {
        Ok(ptx) => assert!(ptx.text().contains(".entry half_it("), "{}", ptx.text()),
        // A machine may have the compiler alone.
        Err(error) => {
            assert!(error.to_string().contains("no headers of CUDA were found"), "{error}");
            eprintln!("skipped: NVRTC is here without the headers of CUDA");
        }
    }
}

#[test]
fn line_information_names_the_source() {
    let Some(nvrtc) = compiler() else { return };
    let options = CompileOptions::default().flags(["-DFACTOR=2.0f"]).name("double.cu");
    assert!(!nvrtc.compile(DOUBLE, &options).unwrap().text().contains(".loc"));
    let ptx = nvrtc.compile(DOUBLE, &options.line_info(true)).unwrap();
    assert!(ptx.text().contains(".loc") && ptx.text().contains("double.cu"), "{}", ptx.text());
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
