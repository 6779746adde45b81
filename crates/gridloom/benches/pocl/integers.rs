//! The cases of `integers.cu`.

use crate::cases::{Case, Numbers, Value};

pub(crate) fn cases(numbers: &mut Numbers, quick: bool) -> Vec<Case> {
    use Value::{Bytes, Floats, Number};
    let count = if quick { 16_384u32 } else { 262_144 };
    let grid = [count / 256, 1, 1];
    let words = |numbers: &mut Numbers, count: u32| Bytes(numbers.words(count as usize));
    let empty = |count: u32| Bytes(vec![0; count as usize * 4]);
    let mut cases = Vec::new();
    let mut add = |name, family, grid, args, tolerance| {
        cases.push(Case { name, family, grid, block: [256, 1, 1], args, tolerance });
    };
    let args = vec![empty(count), words(numbers, 128), words(numbers, 2 * count), Number(count)];
    add("nearest_code", "counts of bits", grid, args, 0.0);
    let args = vec![empty(count), words(numbers, 2 * count), Number(count)];
    add("common_divisors", "remainders in loops", grid, args, 0.0);
    let volume = Floats(numbers.floats(4 * count as usize));
    let (nx, ny, nz) = if quick { (32, 32, 64) } else { (64, 128, 128) };
    let args = vec![Floats(vec![0.0; 4 * count as usize]), volume, Number(nx), Number(ny), Number(nz)];
    add("exchange_axes", "places by divisions", [4 * count / 256, 1, 1], args, 0.0);
    let args = vec![empty(count), words(numbers, count), Number(count)];
    add("digit_sums", "quotients in loops", grid, args, 0.0);
    let weights = Floats(numbers.floats(4 * count as usize));
    let args = vec![Floats(vec![0.0; 64]), words(numbers, 4 * count), weights];
    add("weigh_bins", "histograms of weights", grid, args, 1e-2);
    let args = vec![empty(4 * count), words(numbers, 4 * count), Number(4 * count)];
    add("code_lengths", "places of bits", [4 * count / 256, 1, 1], args, 0.0);
    let args = vec![empty(2 * count), words(numbers, 2 * count), Number(count)];
    add("fold_products", "products of 128 bits", grid, args, 0.0);
    let args = vec![empty(count), words(numbers, 4096), words(numbers, count), Number(count)];
    add("ranks", "counts of bits in loops", grid, args, 0.0);
    cases
}
