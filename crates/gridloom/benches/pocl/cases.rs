//! The kernels of the comparison: arguments, sizes, and the allowed difference.

use crate::{families, integers, programs};

/// An argument of a kernel.
pub(crate) enum Value {
    /// Memory that is compared afterwards as `f32`, within the case's tolerance.
    Floats(Vec<f32>),
    /// Memory that is compared afterwards as `f64`, within the case's tolerance.
    Doubles(Vec<f64>),
    /// Memory that is compared byte for byte.
    Bytes(Vec<u8>),
    /// A plain value.
    Number(u32),
    /// A plain value.
    Real(f32),
}

/// One kernel, launched in the same groups on both sides.
pub(crate) struct Case {
    /// The kernel's name in both sources.
    pub(crate) name: &'static str,
    /// What it stands for.
    pub(crate) family: &'static str,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) args: Vec<Value>,
    /// The largest relative difference allowed between floating-point results.
    pub(crate) tolerance: f64,
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Numbers(u32);

impl Numbers {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Mixed, because neighbours of the sequence alone have related bits.
        let mixed = (self.0 ^ self.0 >> 15).wrapping_mul(0x2c1b_3c6d);
        (mixed ^ mixed >> 12) >> 8
    }

    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next() as f32 / (1 << 24) as f32).collect()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 8) as u8).collect()
    }

    pub(crate) fn words(&mut self, count: usize) -> Vec<u8> {
        words((0..count).map(|_| self.next()))
    }
}

pub(crate) fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// Rows of 0 to 40 entries, with the columns anywhere.
fn sparse(numbers: &mut Numbers, rows: u32) -> (Vec<u8>, Vec<u8>, Vec<f32>) {
    let mut starts = vec![0];
    for _ in 0..rows {
        starts.push(starts.last().copied().unwrap_or(0) + numbers.next() % 41);
    }
    let entries = starts[rows as usize] as usize;
    let columns = words((0..entries).map(|_| numbers.next() % rows));
    (words(starts), columns, numbers.floats(entries))
}

/// All cases. `quick` gives sizes that only show that everything works.
pub(crate) fn all(quick: bool) -> Vec<Case> {
    use Value::{Bytes, Doubles, Floats, Number, Real};
    let numbers = &mut Numbers(1);
    let scale = if quick { 1u32 } else { 16 };
    let stream = 65_536 * scale * 2;
    let side = if quick { 64 } else { 512 };
    let picture = if quick { 128 } else { 2048 };
    let blocks = |n: u32| [n.div_ceil(256), 1, 1];
    let square = |n: u32| [n / 16, n / 16, 1];
    const ROW: [u32; 3] = [256, 1, 1];
    const TILE: [u32; 3] = [16, 16, 1];
    let pixels = (picture * picture) as usize;
    let empty = |count: u32| Bytes(vec![0; count as usize * 4]);
    let mut cases = Vec::new();
    let mut add = |name, family, grid, block, args, tolerance| {
        cases.push(Case { name, family, grid, block, args, tolerance });
    };

    let x = numbers.floats(stream as usize);
    let y = numbers.floats(stream as usize);
    add(
        "saxpy",
        "streams",
        blocks(stream),
        ROW,
        vec![Floats(y.clone()), Floats(x.clone()), Real(0.5), Number(stream)],
        1e-5,
    );
    let doubles = |values: &[f32]| Doubles(values.iter().map(|value| f64::from(*value)).collect());
    add(
        "daxpy",
        "double streams",
        blocks(stream),
        ROW,
        vec![doubles(&y), doubles(&x), Real(0.5), Number(stream)],
        1e-12,
    );
    add(
        "mandelbrot",
        "divergent iteration",
        square(side * 2),
        TILE,
        vec![empty(side * side * 4), Number(side * 2), Number(side * 2), Number(200)],
        0.0,
    );
    let a = numbers.floats((side * side) as usize);
    let b = numbers.floats((side * side) as usize);
    let product = || {
        vec![Floats(vec![0.0; (side * side) as usize]), Floats(a.clone()), Floats(b.clone()), Number(side)]
    };
    add("matmul", "plain products", square(side), TILE, product(), 1e-4);
    add("matmul_tiled", "tiled products", square(side), TILE, product(), 1e-4);
    add(
        "hash",
        "hashing",
        blocks(stream),
        ROW,
        vec![empty(stream), Bytes(numbers.words(stream as usize)), Number(stream)],
        0.0,
    );
    let points = stream / 4;
    add(
        "nearest",
        "clustering",
        blocks(points),
        ROW,
        vec![empty(points), Floats(x.clone()), Floats(numbers.floats(64 * 4)), Number(points), Number(64)],
        0.0,
    );
    add(
        "monte_carlo",
        "Monte Carlo",
        blocks(points / 8),
        ROW,
        vec![empty(points / 8), Number(points / 8), Number(256)],
        0.0,
    );
    let image = numbers.floats(pixels);
    add(
        "convolve",
        "tiled convolution",
        square(picture),
        TILE,
        vec![
            Floats(vec![0.0; pixels]),
            Floats(image),
            Floats(numbers.floats(25)),
            Number(picture),
            Number(picture),
        ],
        1e-4,
    );
    let groups = 64;
    add(
        "reduce_shuffle",
        "reductions by shuffles",
        [groups, 1, 1],
        ROW,
        vec![Floats(vec![0.0; groups as usize]), Floats(x.clone()), Number(stream)],
        1e-3,
    );
    add(
        "count_votes",
        "votes",
        blocks(stream),
        ROW,
        vec![empty(stream / 32), Floats(x.clone()), Real(0.5)],
        0.0,
    );
    add(
        "bitonic",
        "sorting networks",
        [stream / 1024, 1, 1],
        ROW,
        vec![Bytes(numbers.words(stream as usize / 2))],
        0.0,
    );
    let (nx, ny, nz) = if quick { (64, 32, 8) } else { (256, 128, 64) };
    let volume = numbers.floats((nx * ny * nz) as usize);
    add(
        "stencil3d",
        "three-dimensional stencils",
        [nx / 32, ny / 8, nz],
        [32, 8, 1],
        vec![Floats(vec![0.0; volume.len()]), Floats(volume), Number(nx), Number(ny), Number(nz)],
        1e-5,
    );
    let rows = stream / 32;
    let (starts, columns, values) = sparse(numbers, rows);
    add(
        "spmv",
        "sparse products",
        blocks(rows),
        ROW,
        vec![
            Floats(vec![0.0; rows as usize]),
            Bytes(starts),
            Bytes(columns),
            Floats(values),
            Floats(x[..rows as usize].to_vec()),
            Number(rows),
        ],
        1e-4,
    );
    add(
        "scan",
        "scans",
        blocks(stream),
        ROW,
        vec![Floats(vec![0.0; stream as usize]), Floats(x.clone())],
        1e-4,
    );
    let channel = |numbers: &mut Numbers| Bytes(numbers.bytes(pixels));
    add(
        "grey",
        "byte images",
        [(picture * picture) / 256, 1, 1],
        ROW,
        vec![
            Bytes(vec![0; pixels]),
            channel(numbers),
            channel(numbers),
            channel(numbers),
            Number(picture * picture),
        ],
        0.0,
    );
    add(
        "blur",
        "byte images with a border",
        square(picture),
        TILE,
        vec![Bytes(vec![0; pixels]), channel(numbers), Number(picture), Number(picture)],
        0.0,
    );
    let matrices = stream / 16;
    add(
        "small_matrices",
        "small matrices in registers",
        blocks(matrices),
        ROW,
        vec![Floats(vec![0.0; stream as usize]), Floats(x.clone()), Floats(y.clone()), Number(matrices)],
        1e-4,
    );
    add(
        "softmax",
        "softmax",
        blocks(stream),
        ROW,
        vec![Floats(vec![0.0; stream as usize]), Floats(x.clone())],
        1e-3,
    );
    add(
        "histogram",
        "histograms",
        [groups, 1, 1],
        ROW,
        vec![Bytes(vec![0; 1024]), Bytes(numbers.bytes(stream as usize)), Number(stream)],
        0.0,
    );
    add(
        "transpose",
        "transposition",
        square(side * 2),
        TILE,
        vec![
            Floats(vec![0.0; (side * side * 4) as usize]),
            Floats(numbers.floats((side * side * 4) as usize)),
            Number(side * 2),
        ],
        0.0,
    );
    let bodies = if quick { 256 } else { 4096 };
    add(
        "nbody",
        "n-body",
        blocks(bodies),
        ROW,
        vec![
            Floats(vec![0.0; bodies as usize * 4]),
            Floats(numbers.floats(bodies as usize * 4)),
            Number(bodies),
        ],
        1e-2,
    );
    let trips = words((0..points).map(|_| numbers.next() % 48));
    add(
        "divergent",
        "branches and loops of different lengths",
        blocks(points),
        ROW,
        vec![
            Floats(vec![0.0; points as usize]),
            Floats(x[..points as usize].to_vec()),
            Bytes(trips),
            Number(points),
        ],
        1e-3,
    );
    add(
        "dct8",
        "unrolled transforms",
        blocks(stream / 8),
        ROW,
        vec![Floats(vec![0.0; stream as usize]), Floats(x), Number(stream / 8)],
        1e-3,
    );
    cases.extend(idioms(numbers, quick));
    cases.extend(families::cases(numbers, quick));
    cases.extend(programs::cases(numbers, quick));
    cases.extend(integers::cases(numbers, quick));
    cases
}

/// The cases of `idioms.cu`.
fn idioms(numbers: &mut Numbers, quick: bool) -> Vec<Case> {
    use Value::{Bytes, Floats, Number};
    let scale = if quick { 1u32 } else { 16 };
    let stream = 65_536 * scale;
    let picture = if quick { 128 } else { 2048 };
    let pixels = (picture * picture) as usize;
    let blocks = |n: u32| [n.div_ceil(256), 1, 1];
    const ROW: [u32; 3] = [256, 1, 1];
    let zeros = |count: u32| Floats(vec![0.0; count as usize]);
    let empty = |count: u32| Bytes(vec![0; count as usize * 4]);
    let mut cases = Vec::new();
    let mut add = |name, family, grid, block, args, tolerance| {
        cases.push(Case { name, family, grid, block, args, tolerance });
    };

    let heads = words((0..stream).map(|_| u32::from(numbers.next().is_multiple_of(20))));
    add(
        "segmented_scan",
        "scans",
        blocks(stream),
        ROW,
        vec![zeros(stream), Floats(numbers.floats(stream as usize)), Bytes(heads)],
        1e-4,
    );
    add(
        "odd_even_sort",
        "sorting networks",
        [stream / 512, 1, 1],
        ROW,
        vec![Bytes(numbers.words(stream as usize))],
        0.0,
    );
    let (nx, ny, nz) = if quick { (64, 32, 8) } else { (256, 128, 64) };
    add(
        "heat3d",
        "three-dimensional stencils",
        [nx / 32, ny / 8, nz],
        [32, 8, 1],
        vec![
            zeros(nx * ny * nz),
            Floats(numbers.floats((nx * ny * nz) as usize)),
            Number(nx),
            Number(ny),
            Number(nz),
        ],
        1e-5,
    );
    let rows = stream / 16;
    let (starts, columns, values) = sparse(numbers, rows);
    add(
        "spmv_warp",
        "sparse products",
        blocks(32 * rows),
        ROW,
        vec![
            zeros(rows),
            Bytes(starts),
            Bytes(columns),
            Floats(values),
            Floats(numbers.floats(rows as usize)),
            Number(rows),
        ],
        1e-4,
    );
    let blank = || Bytes(vec![0; pixels]);
    let mut channel = || Bytes(numbers.bytes(pixels));
    let mut channels = vec![blank(), blank(), blank()];
    channels.extend([channel(), channel(), channel(), Number(picture * picture)]);
    add("yuv", "byte images", blocks(picture * picture), ROW, channels, 0.0);
    let matrices = stream / 8;
    add(
        "lu4",
        "small matrices in registers",
        blocks(matrices),
        ROW,
        vec![zeros(16 * matrices), Floats(numbers.floats(16 * matrices as usize)), Number(matrices)],
        1e-3,
    );
    add(
        "box_blur",
        "byte images with a border",
        [picture / 32, picture / 16, 1],
        [32, 16, 1],
        vec![blank(), Bytes(numbers.bytes(pixels)), Number(picture), Number(picture)],
        0.0,
    );
    let values = numbers.floats(2 * stream as usize);
    add(
        "argmax",
        "reductions by shuffles",
        blocks(2 * stream),
        ROW,
        vec![empty(stream / 128), Floats(values)],
        0.0,
    );
    add(
        "byte_histogram",
        "histograms",
        [64, 1, 1],
        ROW,
        vec![Bytes(vec![0; 1024]), Bytes(numbers.bytes(4 * stream as usize)), Number(stream)],
        0.0,
    );
    let runs = words((0..2 * stream).map(|_| numbers.next() % 3));
    add(
        "run_starts",
        "votes",
        blocks(2 * stream),
        ROW,
        vec![empty(2 * stream), empty(stream / 16), Bytes(runs)],
        0.0,
    );
    cases
}
