//! The kernels: their data, their graph, the hand-written version, and the allowed difference.

use std::time::{Duration, Instant};

use gridloom::kernel::{Arguments, Parameters};
use gridloom::prelude::*;

use super::hand;

/// What a kernel is measured by.
#[derive(Clone, Copy)]
pub(crate) enum Rate {
    /// Bytes read and written, as few as there can be.
    Bytes(f64),
    /// Floating-point operations; a division, root, logarithm or exponential counts as one.
    Operations(f64),
}

/// A kernel as a graph, and by hand.
pub(crate) struct Case {
    pub(crate) executable: Executable,
    pub(crate) stream: Stream,
    pub(crate) info: Vec<(String, String)>,
    /// How long it took to look the kernel up.
    pub(crate) lookup: Duration,
    pub(crate) rate: Rate,
    pub(crate) by_hand: Box<dyn FnMut()>,
    /// The greatest difference between the results of both after one run each, relative to the
    /// greatest value.
    pub(crate) difference: Box<dyn Fn() -> Result<f64>>,
    /// What may be between them: nothing, where every operation is exact.
    pub(crate) bound: f64,
}

/// Makes a case of about this many elements.
pub(crate) type Make = fn(&Device, usize) -> Result<Case>;

/// Name, how to make it, elements for the comparison and for the interpreter.
pub(crate) const CASES: [(&str, Make, usize, usize); 7] = [
    ("saxpy", saxpy, 1 << 24, 1 << 18),
    ("5-point stencil", stencil, 1 << 24, 1 << 18),
    ("reduction in shared memory", reduction, 1 << 24, 1 << 18),
    ("tiled matrix product", matmul, 768 * 768, 64 * 64),
    ("histogram", histogram, 1 << 26, 1 << 18),
    ("n-body step", nbody, 1 << 12, 1 << 7),
    ("Black-Scholes", black_scholes, 1 << 22, 1 << 16),
];

/// A module with a stream and a graph to launch one of its kernels in.
struct Workshop {
    device: Device,
    module: Module,
}

impl Workshop {
    fn new(device: &Device, ptx: &str) -> Result<Self> {
        Ok(Workshop { device: device.clone(), module: device.load_ptx(ptx)? })
    }

    /// Returns the graph of one launch, without the comparison by hand.
    fn case<P: Parameters>(
        &self,
        name: &str,
        config: LaunchConfig,
        args: impl Arguments<P>,
        rate: Rate,
    ) -> Result<Case> {
        let start = Instant::now();
        // SAFETY: it is launched once, with what its source asks for.
        let kernel: Kernel<P> = unsafe { self.module.kernel(name)? };
        // To say whether a kernel is vectorised, part of it is compiled.
        let info = kernel.info();
        let lookup = start.elapsed();
        let graph = Graph::new(&self.device);
        // SAFETY: each caller states the parameters that the header of the source names, and gives
        // buffers as large as it asks for.
        unsafe { graph.launch_unchecked(&kernel, config, args)? };
        Ok(Case {
            executable: graph.instantiate()?,
            stream: self.device.stream()?,
            info,
            lookup,
            rate,
            by_hand: Box::new(|| {}),
            difference: Box::new(|| Ok(0.0)),
            bound: 0.0,
        })
    }
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
    let difference = |(&a, &b): (&T, &T)| {
        let (a, b): (f64, f64) = (a.into(), b.into());
        // Not a number is as far away as can be.
        if a == b { 0.0 } else { (a - b).abs().max(f64::MIN_POSITIVE) }
    };
    let worst = ours
        .iter()
        .zip(theirs)
        .map(difference)
        .fold(0.0, |worst, d| if d.is_nan() { f64::INFINITY } else { f64::max(worst, d) });
    worst / largest
}

fn saxpy(device: &Device, n: usize) -> Result<Case> {
    let work = Workshop::new(device, include_str!("../../tests/kernels/saxpy.ptx"))?;
    let (x, y) = (whole(n, 100), whole(n, 7));
    let (dx, dy) = (device.buffer_from(&x)?, device.buffer_from(&y)?);
    let case = work.case::<(PtrMut<f32>, Ptr<f32>, u32, f32)>(
        "saxpy",
        LaunchConfig::new((n / 256) as u32, 256),
        (&dy, &dx, n as u32, 2.0),
        Rate::Bytes(12.0 * n as f64),
    )?;
    finish(case, y, 0.0, move |y| hand::saxpy(y, &x, 2.0), move || dy.to_vec())
}

fn stencil(device: &Device, n: usize) -> Result<Case> {
    let work = Workshop::new(device, include_str!("../../tests/kernels/stencil.ptx"))?;
    let width = (n as f64).sqrt() as usize;
    let input = between(width * width, -1.0, 1.0);
    let (din, out) = (device.buffer_from(&input)?, device.buffer_from(&input)?);
    let extent = (width as u32).div_ceil(64);
    let case = work.case::<(PtrMut<f32>, Ptr<f32>, i32, i32, f32)>(
        "stencil_5point",
        LaunchConfig::new((extent, (width as u32).div_ceil(4)), (64, 4)),
        (&out, &din, width as i32, width as i32, 0.2),
        Rate::Bytes(8.0 * (width * width) as f64),
    )?;
    let zeros = vec![0.0; input.len()];
    finish(case, zeros, 0.0, move |out| hand::stencil(out, &input, width, 0.2), move || out.to_vec())
}

fn reduction(device: &Device, n: usize) -> Result<Case> {
    let work = Workshop::new(device, include_str!("../../tests/kernels/reduce.ptx"))?;
    let x = whole(n, 100);
    let blocks = n / 256;
    let (dx, partial) = (device.buffer_from(&x)?, device.buffer_from(&vec![0.0f32; blocks])?);
    let case = work.case::<(PtrMut<f32>, Ptr<f32>, u32)>(
        "reduce_tree",
        LaunchConfig::new(blocks as u32, 256),
        (&partial, &dx, n as u32),
        Rate::Bytes(4.0 * (n + blocks) as f64),
    )?;
    finish(case, vec![0.0; blocks], 0.0, move |partial| hand::sums(partial, &x), move || partial.to_vec())
}

fn matmul(device: &Device, n: usize) -> Result<Case> {
    let work = Workshop::new(device, include_str!("../../tests/kernels/matmul.ptx"))?;
    let rows = (n as f64).sqrt() as usize;
    let (a, b) = (whole(rows * rows, 10), whole(rows * rows, 12));
    let (da, db, dc) =
        (device.buffer_from(&a)?, device.buffer_from(&b)?, device.buffer_from(&vec![0.0f32; rows * rows])?);
    let tiles = (rows as u32).div_ceil(16);
    let r = rows as i32;
    let case = work.case::<(PtrMut<f32>, Ptr<f32>, Ptr<f32>, i32, i32, i32)>(
        "matmul_tiled",
        LaunchConfig::new((tiles, tiles), (16, 16)),
        (&dc, &da, &db, r, r, r),
        Rate::Operations(2.0 * (rows * rows * rows) as f64),
    )?;
    let zeros = vec![0.0; rows * rows];
    finish(case, zeros, 0.0, move |c| hand::matmul(c, &a, &b, rows), move || dc.to_vec())
}

fn histogram(device: &Device, n: usize) -> Result<Case> {
    let work = Workshop::new(device, include_str!("../../tests/kernels/histogram.ptx"))?;
    let data: Vec<u8> = (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (bins, ddata) = (device.buffer_from(&vec![0u32; 256])?, device.buffer_from(&data)?);
    let case = work.case::<(PtrMut<u32>, Ptr<u8>, u32)>(
        "histogram256",
        LaunchConfig::new((n / 256).clamp(1, 1024) as u32, 256),
        (&bins, &ddata, n as u32),
        Rate::Bytes(n as f64),
    )?;
    finish(case, vec![0; 256], 0.0, move |bins| hand::histogram(bins, &data), move || bins.to_vec())
}

fn nbody(device: &Device, n: usize) -> Result<Case> {
    let work = Workshop::new(device, include_str!("../../tests/kernels/nbody.ptx"))?;
    let spread = between(4 * n, -1.0, 1.0);
    let position: Vec<[f64; 4]> = spread
        .chunks_exact(4)
        .map(|p| [f64::from(p[0]), f64::from(p[1]), f64::from(p[2]), f64::from(p[3].abs())])
        .collect();
    let flat: Vec<f64> = position.iter().flatten().copied().collect();
    let (dp, dv, dn) = (
        device.buffer_from(&flat)?,
        device.buffer_from(&vec![0.0; 4 * n])?,
        device.buffer_from(&vec![0.0; 4 * n])?,
    );
    let case = work.case::<(Ptr<f64>, PtrMut<f64>, PtrMut<f64>, u32, f64, f64)>(
        "nbody_step",
        LaunchConfig::new((n as u32).div_ceil(128), 128),
        (&dp, &dv, &dn, n as u32, 1e-3, 1e-2),
        Rate::Operations(20.0 * (n * n) as f64),
    )?;
    let mut velocity = vec![[0.0; 4]; n];
    let mut next = vec![[0.0; 4]; n];
    // What is compared is the bodies' places, written out after the step.
    let step = move |out: &mut Vec<f64>| {
        hand::nbody(&position, &mut velocity, &mut next, 1e-3, 1e-2);
        out.copy_from_slice(next.as_flattened());
    };
    finish(case, vec![0.0; 4 * n], 1e-12, step, move || dn.to_vec())
}

fn black_scholes(device: &Device, n: usize) -> Result<Case> {
    let work = Workshop::new(device, include_str!("../../tests/kernels/finance.ptx"))?;
    let (price, strike, years) = (
        between(n, 5.0, 30.0),
        between(n, 1.0, 100.0).into_iter().rev().collect::<Vec<_>>(),
        between(n, 0.25, 10.0),
    );
    let given = [&price, &strike, &years].map(|values| device.buffer_from(values));
    let [dprice, dstrike, dyears] = given;
    let (dprice, dstrike, dyears) = (dprice?, dstrike?, dyears?);
    let (dcall, dput) = (device.buffer_from(&vec![0.0f32; n])?, device.buffer_from(&vec![0.0f32; n])?);
    let case = work.case::<(PtrMut<f32>, PtrMut<f32>, Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, f32, f32)>(
        "black_scholes",
        LaunchConfig::new((n as u32).div_ceil(256), 256),
        (&dcall, &dput, &dprice, &dstrike, &dyears, n as u32, 0.02, 0.3),
        Rate::Operations(60.0 * n as f64),
    )?;
    let mut put = vec![0.0; n];
    let by_hand = move |call: &mut Vec<f32>| {
        hand::black_scholes((call, &mut put), (&price, &strike, &years), (0.02, 0.3));
    };
    finish(case, vec![0.0; n], 1e-5, by_hand, move || dcall.to_vec())
}

/// Puts the two sides together: `by_hand` changes `values`, `read` gives what the kernel made of
/// the same.
fn finish<T: Copy + Into<f64> + 'static>(
    case: Case,
    values: Vec<T>,
    bound: f64,
    mut by_hand: impl FnMut(&mut Vec<T>) + 'static,
    read: impl Fn() -> Result<Vec<T>> + 'static,
) -> Result<Case> {
    let values = std::rc::Rc::new(std::cell::RefCell::new(values));
    let changed = values.clone();
    Ok(Case {
        by_hand: Box::new(move || by_hand(&mut changed.borrow_mut())),
        difference: Box::new(move || Ok(apart(&read()?, &values.borrow()))),
        bound,
        ..case
    })
}
