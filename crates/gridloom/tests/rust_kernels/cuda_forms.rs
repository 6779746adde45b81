//! Kernels in Rust give the results of the same kernels from CUDA C++, with their checks and
//! without.

#[path = "../../benches/rust_kernels/cases.rs"]
#[allow(dead_code, reason = "what the benchmark uses")]
mod cases;
#[path = "../../benches/rust_kernels/kernels.rs"]
mod kernels;

use crate::support::for_each_device;

#[track_caller]
fn same_as_cuda(name: &str) {
    let (_, make, _, elements) =
        cases::CASES.into_iter().find(|case| case.0 == name).expect("there is such a kernel");
    for_each_device(|device| {
        let case = make(device, elements)?;
        let stream = device.stream()?;
        for form in [&case.cuda, &case.checked, &case.promised] {
            form.launch(&stream)?;
            stream.synchronize()?;
        }
        let difference = (case.difference)()?;
        assert!(difference <= case.bound, "{name}: {difference:e}");
        Ok(())
    });
}

macro_rules! kernels {
    ($($test:ident: $name:literal;)*) => {$(
        #[test]
        fn $test() {
            same_as_cuda($name);
        }
    )*};
}
kernels! {
    saxpy: "saxpy";
    stencil: "5-point stencil";
    reduction: "reduction";
    matmul: "tiled matrix product";
    histogram: "histogram";
    nbody: "n-body step";
    black_scholes: "Black-Scholes";
    scan: "scan";
    bitonic: "bitonic sort";
    softmax: "softmax";
    sparse: "sparse product";
    transpose: "transpose";
    kmeans: "k-means step";
}
