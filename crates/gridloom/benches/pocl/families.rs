//! The cases of `families.cu`.

use crate::cases::{Case, Numbers, Value, words};

/// Numbers of one to five bytes, of which most are short, and where each sixteenth starts.
fn numbers_in_bytes(numbers: &mut Numbers, threads: u32) -> (Vec<u8>, Vec<u8>) {
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..threads {
        starts.push(bytes.len() as u32);
        for _ in 0..16 {
            let length = 1 + (numbers.next() % 64).leading_zeros().saturating_sub(27).min(4);
            bytes.extend((1..length).map(|_| numbers.next() as u8 | 128));
            bytes.push(numbers.next() as u8 & 127);
        }
    }
    (bytes, words(starts))
}

pub(crate) fn cases(numbers: &mut Numbers, quick: bool) -> Vec<Case> {
    use Value::{Bytes, Doubles, Floats, Number};
    let scale = if quick { 1u32 } else { 16 };
    let stream = 65_536 * scale;
    let picture = if quick { 128 } else { 2048 };
    let pixels = (picture * picture) as usize;
    let blocks = |n: u32| [n.div_ceil(256), 1, 1];
    const ROW: [u32; 3] = [256, 1, 1];
    let zeros = |count: u32| Floats(vec![0.0; count as usize]);
    let empty = |count: u32| Bytes(vec![0; count as usize * 4]);
    let words_of = |numbers: &mut Numbers, count: u32| Bytes(numbers.words(count as usize));
    let mut cases = Vec::new();
    let mut add = |name, family, grid, block, args, tolerance| {
        cases.push(Case { name, family, grid, block, args, tolerance });
    };

    let words_in = words_of(numbers, stream);
    add("warp_scan", "scans by shuffles", blocks(stream), ROW, vec![empty(stream), words_in], 0.0);
    let words_in = words_of(numbers, stream);
    add("block_redux", "reductions by redux", blocks(stream), ROW, vec![empty(stream / 64), words_in], 0.0);
    let keys = words((0..stream).map(|_| (numbers.next() % 64) * (numbers.next() % 64) / 64));
    add("match_count", "aggregation by match", blocks(stream), ROW, vec![empty(64), Bytes(keys)], 0.0);
    let threads = stream / 16;
    let (bytes, starts) = numbers_in_bytes(numbers, threads);
    add(
        "decode_numbers",
        "decoding of runs",
        blocks(threads),
        ROW,
        vec![empty(threads), Bytes(bytes), Bytes(starts), Number(threads)],
        0.0,
    );
    let (nx, ny, nz) = if quick { (64, 32, 8) } else { (256, 128, 32) };
    add(
        "mean27",
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
    add(
        "separable",
        "byte images with a border",
        [picture / 32, picture / 16, 1],
        [32, 16, 1],
        vec![Bytes(vec![0; pixels]), Bytes(numbers.bytes(pixels)), Number(picture), Number(picture)],
        0.0,
    );
    let words_in = words_of(numbers, stream);
    add("warp_sort", "sorting networks by shuffles", blocks(stream), ROW, vec![words_in], 0.0);
    let systems = stream / 16;
    add(
        "solve5",
        "small matrices in registers",
        blocks(systems),
        ROW,
        vec![zeros(5 * systems), Floats(numbers.floats(30 * systems as usize)), Number(systems)],
        1e-3,
    );
    let threads = stream / 8;
    add(
        "collatz",
        "loops of different lengths, 64 bits",
        blocks(threads),
        ROW,
        vec![empty(threads), Number(1), Number(threads)],
        0.0,
    );
    add(
        "sample",
        "sampling by hashes",
        blocks(threads),
        ROW,
        vec![empty(threads), Floats(numbers.floats(16 * threads as usize)), Number(threads)],
        0.0,
    );
    let halves = |numbers: &mut Numbers| {
        let bits = (0..stream).map(|_| (0x3000 + numbers.next() % 0x0c00) as u16);
        Bytes(bits.flat_map(u16::to_ne_bytes).collect())
    };
    let (x, y) = (halves(numbers), halves(numbers));
    let blank = || Bytes(vec![0; stream as usize * 2]);
    add("halves", "narrow floats", blocks(stream), ROW, vec![blank(), blank(), x, y, Number(stream)], 0.0);
    let words_in = words_of(numbers, threads);
    add(
        "powers",
        "arithmetic of 64 bits",
        blocks(threads),
        ROW,
        vec![empty(2 * threads), words_in, Number(threads)],
        0.0,
    );
    let inputs = numbers.floats(threads as usize).into_iter().map(|value| f64::from(value) * 4.0);
    add(
        "functions",
        "functions of double precision",
        blocks(threads),
        ROW,
        vec![Doubles(vec![0.0; threads as usize]), Doubles(inputs.collect()), Number(threads)],
        1e-9,
    );
    let words_in = words_of(numbers, 8 * threads);
    add(
        "longest_runs",
        "loops of different lengths",
        blocks(threads),
        ROW,
        vec![empty(threads), words_in, Number(threads)],
        0.0,
    );
    cases
}
