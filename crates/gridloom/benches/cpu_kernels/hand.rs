//! The same computations in hand-written safe Rust with rayon, which the compiler can vectorise.

use rayon::prelude::*;

/// Elements that one task of rayon's takes at a time where there are many.
const CHUNK: usize = 1 << 14;

/// `a * b + c`, rounded once where the machine this is compiled for does that in one instruction.
#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_feature = "fma") { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn multiply_add_f64(a: f64, b: f64, c: f64) -> f64 {
    if cfg!(target_feature = "fma") { a.mul_add(b, c) } else { a * b + c }
}

pub(crate) fn saxpy(y: &mut [f32], x: &[f32], a: f32) {
    y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| {
        for (y, x) in y.iter_mut().zip(x) {
            *y = multiply_add(a, *x, *y);
        }
    });
}

pub(crate) fn stencil(out: &mut [f32], input: &[f32], width: usize, c: f32) {
    let height = input.len() / width;
    out.par_chunks_mut(width).enumerate().for_each(|(row, out)| {
        let here = &input[row * width..][..width];
        if row == 0 || row == height - 1 {
            out.copy_from_slice(here);
            return;
        }
        let above = &input[(row - 1) * width..][..width];
        let below = &input[(row + 1) * width..][..width];
        out[0] = here[0];
        out[width - 1] = here[width - 1];
        let inside = out[1..width - 1].iter_mut().zip(here.windows(3));
        for ((out, here), (above, below)) in inside.zip(above[1..].iter().zip(&below[1..])) {
            let (sides, ends) = (here[0] + here[2], above + below);
            *out = here[1] + c * ((sides + ends) - 4.0 * here[1]);
        }
    });
}

/// The sum of every 256 elements.
pub(crate) fn sums(partial: &mut [f32], x: &[f32]) {
    partial.par_chunks_mut(64).zip(x.par_chunks(64 * 256)).for_each(|(partial, x)| {
        for (partial, x) in partial.iter_mut().zip(x.chunks(256)) {
            let mut lanes = [0.0f32; 16];
            for x in x.chunks_exact(16) {
                for (lane, x) in lanes.iter_mut().zip(x) {
                    *lane += x;
                }
            }
            *partial = lanes.iter().sum();
        }
    });
}

/// `c = a * b`, square matrices of `n` rows.
pub(crate) fn matmul(c: &mut [f32], a: &[f32], b: &[f32], n: usize) {
    /// Rows of `c` that one pass over a strip of `b` serves.
    const ROWS: usize = 4;
    /// Columns of `b` at a time, which stay in the first cache.
    const COLUMNS: usize = 128;
    c.par_chunks_mut(ROWS * n).zip(a.par_chunks(ROWS * n)).for_each(|(c, a)| {
        c.fill(0.0);
        for start in (0..n).step_by(COLUMNS) {
            let end = (start + COLUMNS).min(n);
            for k in 0..n {
                let b = &b[k * n + start..k * n + end];
                for (c, a) in c.chunks_mut(n).zip(a.chunks(n)) {
                    let a = a[k];
                    for (c, b) in c[start..end].iter_mut().zip(b) {
                        *c = multiply_add(a, *b, *c);
                    }
                }
            }
        }
    });
}

/// How often each byte occurs, added to `bins`.
pub(crate) fn histogram(bins: &mut [u32], data: &[u8]) {
    let counts = data
        .par_chunks(1 << 20)
        .map(|data| {
            // Four tables, so that the same byte twice in a row need not wait for itself.
            let mut tables = [[0u32; 256]; 4];
            let mut quads = data.chunks_exact(4);
            for quad in &mut quads {
                for (table, byte) in tables.iter_mut().zip(quad) {
                    table[usize::from(*byte)] += 1;
                }
            }
            for byte in quads.remainder() {
                tables[0][usize::from(*byte)] += 1;
            }
            let mut sum = [0u32; 256];
            for table in tables {
                sum.iter_mut().zip(table).for_each(|(sum, count)| *sum += count);
            }
            sum
        })
        .reduce(
            || [0; 256],
            |mut a, b| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                a
            },
        );
    bins.iter_mut().zip(counts).for_each(|(bin, count)| *bin += count);
}

/// Bodies that are computed side by side.
const SIDE: usize = 8;

/// Returns the forces of all bodies on those at these places, by axis. It is a separate function
/// with one loop per step, so that the compiler vectorises it.
#[inline(never)]
fn pull(position: &[[f64; 4]], place: &[[f64; SIDE]; 3], softening: f64) -> [[f64; SIDE]; 3] {
    let mut pull = [[0.0; SIDE]; 3];
    for other in position {
        let [mut x, mut y, mut z, mut scale] = [[0.0; SIDE]; 4];
        for lane in 0..SIDE {
            x[lane] = other[0] - place[0][lane];
            y[lane] = other[1] - place[1][lane];
            z[lane] = other[2] - place[2][lane];
        }
        for lane in 0..SIDE {
            let square = multiply_add_f64(z[lane], z[lane], softening);
            let square = multiply_add_f64(y[lane], y[lane], square);
            scale[lane] = multiply_add_f64(x[lane], x[lane], square);
        }
        for scale in &mut scale {
            let inverse = 1.0 / scale.sqrt();
            *scale = other[3] * inverse * inverse * inverse;
        }
        for lane in 0..SIDE {
            pull[0][lane] = multiply_add_f64(x[lane], scale[lane], pull[0][lane]);
            pull[1][lane] = multiply_add_f64(y[lane], scale[lane], pull[1][lane]);
            pull[2][lane] = multiply_add_f64(z[lane], scale[lane], pull[2][lane]);
        }
    }
    pull
}

/// One step of gravity. Bodies are `x, y, z, mass`.
pub(crate) fn nbody(
    position: &[[f64; 4]],
    velocity: &mut [[f64; 4]],
    next: &mut [[f64; 4]],
    dt: f64,
    softening: f64,
) {
    let bodies = position.par_chunks(SIDE).zip(velocity.par_chunks_mut(SIDE)).zip(next.par_chunks_mut(SIDE));
    bodies.for_each(|((mine, velocity), next)| {
        let mut place = [[0.0; SIDE]; 3];
        for (lane, body) in mine.iter().enumerate() {
            for axis in 0..3 {
                place[axis][lane] = body[axis];
            }
        }
        let pull = pull(position, &place, softening);
        for (lane, ((body, velocity), next)) in mine.iter().zip(velocity).zip(next).enumerate() {
            for axis in 0..3 {
                velocity[axis] = multiply_add_f64(pull[axis][lane], dt, velocity[axis]);
                next[axis] = multiply_add_f64(velocity[axis], dt, body[axis]);
            }
            next[3] = body[3];
        }
    });
}

fn normal(d: f32) -> f32 {
    const COEFFICIENTS: [f32; 5] = [1.330_274_4, -1.821_255_9, 1.781_477_9, -0.356_563_78, 0.319_381_53];
    let k = 1.0 / (1.0 + 0.231_641_9 * d.abs());
    let polynomial = k * COEFFICIENTS.iter().fold(0.0, |sum, coefficient| coefficient + k * sum);
    let tail = 0.398_942_3 * (-0.5 * d * d).exp() * polynomial;
    if d > 0.0 { 1.0 - tail } else { tail }
}

/// Prices of options: `call`, `put`, `price`, `strike`, `years`.
pub(crate) fn black_scholes(
    (call, put): (&mut [f32], &mut [f32]),
    (price, strike, years): (&[f32], &[f32], &[f32]),
    (rate, volatility): (f32, f32),
) {
    let results = call.par_chunks_mut(CHUNK).zip(put.par_chunks_mut(CHUNK));
    let given = price.par_chunks(CHUNK).zip(strike.par_chunks(CHUNK)).zip(years.par_chunks(CHUNK));
    results.zip(given).for_each(|((call, put), ((price, strike), years))| {
        for (i, (call, put)) in call.iter_mut().zip(put).enumerate() {
            let (s, x, t) = (price[i], strike[i], years[i]);
            let sigma = volatility * t.sqrt();
            let d1 = ((s / x).ln() + (rate + 0.5 * volatility * volatility) * t) / sigma;
            let (n1, n2) = (normal(d1), normal(d1 - sigma));
            let discounted = x * (-rate * t).exp();
            *call = s * n1 - discounted * n2;
            *put = discounted * (1.0 - n2) - s * (1.0 - n1);
        }
    });
}
