//! The kernels: in Rust, and from CUDA C++, on the same data.

use gridloom::kernel::{Arguments, Parameters};
use gridloom::prelude::*;

use super::kernels;

/// One kernel in three forms, each with memory of its own.
pub(crate) struct Case {
    pub(crate) cuda: Executable,
    pub(crate) checked: Executable,
    /// With the indices promised to be in range.
    pub(crate) promised: Executable,
    /// The greatest difference between the results of each Rust form and those of CUDA C++,
    /// relative to the greatest value.
    pub(crate) difference: Box<dyn Fn() -> Result<f64>>,
    /// The greatest difference that is right: 0 where every operation is exact.
    pub(crate) bound: f64,
}

/// Makes a case of about this many elements.
pub(crate) type Make = fn(&Device, usize) -> Result<Case>;

/// Name, how to make it, elements to measure and to compare.
pub(crate) const CASES: [(&str, Make, usize, usize); 13] = [
    ("saxpy", saxpy, 1 << 24, 1000),
    ("5-point stencil", stencil, 1 << 24, 1000),
    ("reduction", reduction, 1 << 24, 2048),
    ("tiled matrix product", matmul, 768 * 768, 40 * 40),
    ("histogram", histogram, 1 << 26, 5000),
    ("n-body step", nbody, 1 << 12, 200),
    ("Black-Scholes", black_scholes, 1 << 22, 1000),
    ("scan", scan, 1 << 24, 2000),
    ("bitonic sort", bitonic, 1024, 1000),
    ("softmax", softmax, 1 << 22, 3000),
    ("sparse product", sparse, 1 << 20, 500),
    ("transpose", transpose, 1 << 24, 50 * 50),
    ("k-means step", kmeans, 1 << 22, 1000),
];

/// The graph of one launch.
#[allow(clippy::print_stdout, reason = "`--ptx` asks for it")]
fn graph<P: Parameters>(
    device: &Device,
    kernel: &Kernel<P>,
    config: LaunchConfig,
    args: impl Arguments<P>,
) -> Result<Executable> {
    if std::env::args().any(|word| word == "--ptx") {
        println!("{}", kernel.ptx().unwrap_or_default());
    }
    let graph = Graph::new(device);
    graph.launch(kernel, config, args)?;
    graph.instantiate()
}

/// The graph of one launch of a kernel from CUDA C++.
fn cuda<P: Parameters>(
    device: &Device,
    ptx: &str,
    name: &str,
    config: LaunchConfig,
    args: impl Arguments<P>,
) -> Result<Executable> {
    // SAFETY: each caller states the parameters that the header of the source names, and gives
    // buffers as large as it asks for.
    let kernel: Kernel<P> = unsafe { device.load_ptx(ptx)?.kernel(name)? };
    let graph = Graph::new(device);
    // SAFETY: as above.
    unsafe { graph.launch_unchecked(&kernel, config, args)? };
    graph.instantiate()
}

/// Whole numbers of a few bits, so that sums and products of many are exact in any order.
fn whole(count: usize, limit: u32) -> Vec<f32> {
    (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 16) % limit).map(|i| i as f32).collect()
}

/// Numbers between two bounds.
fn between(count: usize, low: f32, high: f32) -> Vec<f32> {
    let fraction = |i: u32| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32;
    (0..count as u32).map(|i| low + (high - low) * fraction(i)).collect()
}

fn apart<T: Copy + Into<f64>>(ours: &[T], theirs: &[T]) -> f64 {
    let largest = theirs.iter().map(|&value| value.into().abs()).fold(1e-300, f64::max);
    let worst = ours.iter().zip(theirs).map(|(&a, &b)| {
        let (a, b): (f64, f64) = (a.into(), b.into());
        if a == b { 0.0 } else { (a - b).abs().max(f64::MIN_POSITIVE) }
    });
    worst.fold(0.0, |worst, d| if d.is_nan() { f64::INFINITY } else { f64::max(worst, d) }) / largest
}

/// Compares the memory that the three forms have written.
fn compare<T: Element + Into<f64>>(memory: [Buffer<T>; 3]) -> Box<dyn Fn() -> Result<f64>> {
    Box::new(move || {
        let [cuda, checked, promised] = [memory[0].to_vec()?, memory[1].to_vec()?, memory[2].to_vec()?];
        Ok(apart(&checked, &cuda).max(apart(&promised, &cuda)))
    })
}

fn three<T: Element>(device: &Device, values: &[T]) -> Result<[Buffer<T>; 3]> {
    Ok([device.buffer_from(values)?, device.buffer_from(values)?, device.buffer_from(values)?])
}

/// Launches a kernel in Rust in both forms.
macro_rules! in_rust {
    ($device:expr, $kernel:ident, $config:expr, |$form:ident| $args:expr) => {{
        let checked = {
            let $form = 1;
            graph($device, &kernels::$kernel::load($device)?, $config, $args)?
        };
        let promised = {
            let $form = 2;
            // SAFETY: the checked form has run on the same data, and no index was out of range.
            graph($device, &unsafe { kernels::$kernel::load_unchecked($device) }?, $config, $args)?
        };
        (checked, promised)
    }};
}

fn case(
    cuda: Executable,
    rust: (Executable, Executable),
    difference: Box<dyn Fn() -> Result<f64>>,
    bound: f64,
) -> Case {
    Case { cuda, checked: rust.0, promised: rust.1, difference, bound }
}

fn saxpy(device: &Device, n: usize) -> Result<Case> {
    let (x, y) = (device.buffer_from(&whole(n, 100))?, three(device, &whole(n, 7))?);
    let config = LaunchConfig::new((n as u32).div_ceil(256), 256);
    let ptx = include_str!("../../tests/kernels/saxpy.ptx");
    let cuda =
        cuda::<(PtrMut<f32>, Ptr<f32>, u32, f32)>(device, ptx, "saxpy", config, (&y[0], &x, n as u32, 2.0))?;
    let rust = in_rust!(device, saxpy, config, |form| (2.0, &x, &y[form]));
    Ok(case(cuda, rust, compare(y), 0.0))
}

fn stencil(device: &Device, n: usize) -> Result<Case> {
    let width = (n as f64).sqrt() as usize;
    let input = between(width * width, -1.0, 1.0);
    let (x, out) = (device.buffer_from(&input)?, three(device, &vec![0.0f32; width * width])?);
    let config = LaunchConfig::new(((width as u32).div_ceil(64), (width as u32).div_ceil(4)), (64, 4));
    let ptx = include_str!("../../tests/kernels/stencil.ptx");
    let w = width as i32;
    let cuda = cuda::<(PtrMut<f32>, Ptr<f32>, i32, i32, f32)>(
        device,
        ptx,
        "stencil_5point",
        config,
        (&out[0], &x, w, w, 0.2),
    )?;
    let rust = in_rust!(device, stencil, config, |form| (width, width, 0.2, &x, &out[form]));
    Ok(case(cuda, rust, compare(out), 0.0))
}

fn reduction(device: &Device, n: usize) -> Result<Case> {
    let blocks = n.div_ceil(256);
    let (x, sums) = (device.buffer_from(&whole(n, 100))?, three(device, &vec![0.0f32; blocks])?);
    let config = LaunchConfig::new(blocks as u32, 256);
    let ptx = include_str!("../../tests/kernels/reduce.ptx");
    let cuda =
        cuda::<(PtrMut<f32>, Ptr<f32>, u32)>(device, ptx, "reduce_tree", config, (&sums[0], &x, n as u32))?;
    let rust = in_rust!(device, reduction, config, |form| (&x, &sums[form]));
    Ok(case(cuda, rust, compare(sums), 0.0))
}

fn matmul(device: &Device, n: usize) -> Result<Case> {
    let rows = (n as f64).sqrt() as usize;
    let (a, b) = (device.buffer_from(&whole(rows * rows, 10))?, device.buffer_from(&whole(rows * rows, 12))?);
    let c = three(device, &vec![0.0f32; rows * rows])?;
    let (tiles, r) = ((rows as u32).div_ceil(16), rows as i32);
    let config = LaunchConfig::new((tiles, tiles), (16, 16));
    let ptx = include_str!("../../tests/kernels/matmul.ptx");
    let cuda = cuda::<(PtrMut<f32>, Ptr<f32>, Ptr<f32>, i32, i32, i32)>(
        device,
        ptx,
        "matmul_tiled",
        config,
        (&c[0], &a, &b, r, r, r),
    )?;
    let rust = in_rust!(device, matmul, config, |form| (rows, &a, &b, &c[form]));
    Ok(case(cuda, rust, compare(c), 0.0))
}

fn histogram(device: &Device, n: usize) -> Result<Case> {
    let data: Vec<u8> = (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (data, bins) = (device.buffer_from(&data)?, three(device, &[0u32; 256])?);
    let config = LaunchConfig::new((n / 256).clamp(1, 1024) as u32, 256);
    let ptx = include_str!("../../tests/kernels/histogram.ptx");
    let cuda = cuda::<(PtrMut<u32>, Ptr<u8>, u32)>(
        device,
        ptx,
        "histogram256",
        config,
        (&bins[0], &data, n as u32),
    )?;
    let rust = in_rust!(device, histogram, config, |form| (&data, &bins[form]));
    Ok(case(cuda, rust, compare(bins), 0.0))
}

fn nbody(device: &Device, n: usize) -> Result<Case> {
    let spread = between(4 * n, -1.0, 1.0);
    let bodies: Vec<[f64; 4]> =
        spread.chunks_exact(4).map(|p| [p[0].into(), p[1].into(), p[2].into(), p[3].abs().into()]).collect();
    let flat: Vec<f64> = bodies.iter().flatten().copied().collect();
    let config = LaunchConfig::new((n as u32).div_ceil(128), 128);
    let (p, v, next) = (
        device.buffer_from(&flat)?,
        device.buffer_from(&vec![0.0; 4 * n])?,
        device.buffer_from(&vec![0.0; 4 * n])?,
    );
    let ptx = include_str!("../../tests/kernels/nbody.ptx");
    let cuda = cuda::<(Ptr<f64>, PtrMut<f64>, PtrMut<f64>, u32, f64, f64)>(
        device,
        ptx,
        "nbody_step",
        config,
        (&p, &v, &next, n as u32, 1e-3, 1e-2),
    )?;
    let position = device.buffer_from(&bodies)?;
    let (velocity, places) = (three(device, &vec![[0.0f64; 4]; n])?, three(device, &vec![[0.0f64; 4]; n])?);
    let rust =
        in_rust!(device, nbody, config, |form| (1e-3, 1e-2, &position, &velocity[form], &places[form]));
    let difference = move || {
        let theirs = next.to_vec()?;
        let ours = [places[1].to_vec()?, places[2].to_vec()?];
        Ok(ours.iter().map(|ours| apart(ours.as_flattened(), &theirs)).fold(0.0, f64::max))
    };
    Ok(case(cuda, rust, Box::new(difference), 0.0))
}

fn black_scholes(device: &Device, n: usize) -> Result<Case> {
    let price = device.buffer_from(&between(n, 5.0, 30.0))?;
    let strike = device.buffer_from(&between(n, 1.0, 100.0).into_iter().rev().collect::<Vec<_>>())?;
    let years = device.buffer_from(&between(n, 0.25, 10.0))?;
    let (call, put) = (three(device, &vec![0.0f32; n])?, three(device, &vec![0.0f32; n])?);
    let config = LaunchConfig::new((n as u32).div_ceil(256), 256);
    let ptx = include_str!("../../tests/kernels/finance.ptx");
    let cuda = cuda::<(PtrMut<f32>, PtrMut<f32>, Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, f32, f32)>(
        device,
        ptx,
        "black_scholes",
        config,
        (&call[0], &put[0], &price, &strike, &years, n as u32, 0.02, 0.3),
    )?;
    let rust = in_rust!(device, black_scholes, config, |form| (
        0.02,
        0.3,
        &price,
        &strike,
        &years,
        &call[form],
        &put[form]
    ));
    // Products are fused there and not here, and the logarithms differ in their last bits.
    Ok(case(cuda, rust, compare(call), 1e-5))
}

fn scan(device: &Device, n: usize) -> Result<Case> {
    let input: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 12).collect();
    let blocks = n.div_ceil(256);
    let (x, out, sums) =
        (device.buffer_from(&input)?, three(device, &vec![0u32; n])?, three(device, &vec![0u32; blocks])?);
    let config = LaunchConfig::new(blocks as u32, 256);
    let ptx = include_str!("../../tests/kernels/scan.ptx");
    let cuda = cuda::<(PtrMut<u32>, PtrMut<u32>, Ptr<u32>, u32)>(
        device,
        ptx,
        "scan_block",
        config,
        (&out[0], &sums[0], &x, n as u32),
    )?;
    let rust = in_rust!(device, scan, config, |form| (&x, &out[form], &sums[form]));
    let (of_elements, of_blocks) = (compare(out), compare(sums));
    Ok(case(cuda, rust, Box::new(move || Ok(of_elements()?.max(of_blocks()?))), 0.0))
}

fn bitonic(device: &Device, n: usize) -> Result<Case> {
    let input: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 3).collect();
    let keys = three(device, &input)?;
    let config = LaunchConfig::new(1, 512);
    let ptx = include_str!("../../tests/kernels/sort.ptx");
    let cuda = cuda::<(PtrMut<u32>, u32)>(device, ptx, "bitonic_block", config, (&keys[0], n as u32))?;
    let rust = in_rust!(device, bitonic, config, |form| (&keys[form],));
    Ok(case(cuda, rust, compare(keys), 0.0))
}

fn softmax(device: &Device, n: usize) -> Result<Case> {
    let columns = n.min(1024);
    let rows = n / columns;
    let x = device.buffer_from(&between(rows * columns, -5.0, 5.0))?;
    let out = three(device, &vec![0.0f32; rows * columns])?;
    let config = LaunchConfig::new(rows as u32, 256);
    let ptx = include_str!("../../tests/kernels/softmax.ptx");
    let cuda =
        cuda::<(PtrMut<f32>, Ptr<f32>, u32)>(device, ptx, "softmax", config, (&out[0], &x, columns as u32))?;
    let rust = in_rust!(device, softmax, config, |form| (columns, &x, &out[form]));
    // The exponentials differ in their last bits.
    Ok(case(cuda, rust, compare(out), 1e-6))
}

fn sparse(device: &Device, rows: usize) -> Result<Case> {
    const EACH: usize = 9;
    let starts: Vec<u32> = (0..=rows as u32).map(|row| row * EACH as u32).collect();
    let columns: Vec<u32> = (0..(rows * EACH) as u32)
        .map(|k| (k / EACH as u32 + k.wrapping_mul(2_654_435_761) % 64) % rows as u32)
        .collect();
    let (start, column) = (device.buffer_from(&starts)?, device.buffer_from(&columns)?);
    let (value, x) = (
        device.buffer_from(&between(rows * EACH, -1.0, 1.0))?,
        device.buffer_from(&between(rows, -1.0, 1.0))?,
    );
    let y = three(device, &vec![0.0f32; rows])?;
    let config = LaunchConfig::new((rows as u32).div_ceil(256), 256);
    let ptx = include_str!("../../tests/kernels/sparse.ptx");
    let cuda = cuda::<(PtrMut<f32>, Ptr<u32>, Ptr<u32>, Ptr<f32>, Ptr<f32>, u32)>(
        device,
        ptx,
        "spmv_scalar",
        config,
        (&y[0], &start, &column, &value, &x, rows as u32),
    )?;
    let rust = in_rust!(device, sparse, config, |form| (&start, &column, &value, &x, &y[form]));
    Ok(case(cuda, rust, compare(y), 0.0))
}

fn transpose(device: &Device, n: usize) -> Result<Case> {
    let width = (n as f64).sqrt() as usize;
    let height = width;
    let (x, out) = (
        device.buffer_from(&between(width * height, -1.0, 1.0))?,
        three(device, &vec![0.0f32; width * height])?,
    );
    let tiles = |size: usize| (size as u32).div_ceil(32);
    let ptx = include_str!("../../tests/kernels/matmul.ptx");
    let cuda = cuda::<(PtrMut<f32>, Ptr<f32>, i32, i32)>(
        device,
        ptx,
        "transpose",
        LaunchConfig::new((tiles(width), tiles(height)), (32, 8)),
        (&out[0], &x, width as i32, height as i32),
    )?;
    let config = LaunchConfig::new((tiles(height), tiles(width)), (32, 8));
    let rust = in_rust!(device, transpose, config, |form| (width, height, &x, &out[form]));
    Ok(case(cuda, rust, compare(out), 0.0))
}

fn kmeans(device: &Device, n: usize) -> Result<Case> {
    const K: usize = 16;
    // Few enough points of each cluster that sums of whole numbers are exact.
    let flat = whole(2 * n, 7);
    let points: Vec<[f32; 2]> = flat.chunks_exact(2).map(|p| [p[0], p[1]]).collect();
    let corners = between(2 * K, 0.0, 6.0);
    let centroids: Vec<[f32; 2]> = corners.chunks_exact(2).map(|p| [p[0], p[1]]).collect();
    let (labels, sums, counts) =
        (three(device, &vec![0u32; n])?, three(device, &[0.0f32; 2 * K])?, three(device, &[0u32; K])?);
    let config = LaunchConfig::new((n as u32).div_ceil(256), 256);
    let ptx = include_str!("../../tests/kernels/kmeans.ptx");
    let (given, near) = (device.buffer_from(&flat)?, device.buffer_from(&corners)?);
    let cuda = cuda::<(PtrMut<u32>, PtrMut<f32>, PtrMut<u32>, Ptr<f32>, Ptr<f32>, u32, u32)>(
        device,
        ptx,
        "kmeans_step",
        config,
        (&labels[0], &sums[0], &counts[0], &given, &near, n as u32, K as u32),
    )?;
    let (given, near) = (device.buffer_from(&points)?, device.buffer_from(&centroids)?);
    let rust =
        in_rust!(device, kmeans, config, |form| (&given, &near, &labels[form], &sums[form], &counts[form]));
    let (of_labels, of_counts) = (compare(labels), compare(counts));
    Ok(case(cuda, rust, Box::new(move || Ok(of_labels()?.max(of_counts()?))), 0.0))
}
