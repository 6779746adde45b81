//! The kernels, in Rust.

use std::sync::atomic::Ordering::Relaxed;

use gridloom::{Atomic, Out, block, device, grid, kernel, thread};

/// y = a x + y.
#[kernel]
pub(crate) fn saxpy(a: f32, x: &[f32], y: Out<f32>) {
    if let Some((i, y)) = y.mine() {
        *y = a.mul_add(x[i], *y);
    }
}

/// One step of heat on a plane in rows of `width`; its border stays.
#[kernel]
pub(crate) fn stencil(width: usize, height: usize, c: f32, x: &[f32], out: Out<f32>) {
    if let Some(((column, row), out)) = out.mine_2d(width) {
        let i = row * width + column;
        let here = x[i];
        *out = if column > 0 && column < width - 1 && row > 0 && row < height - 1 {
            let s = x[i - 1] + x[i + 1];
            let t = x[i - width] + x[i + width];
            here + c * ((s + t) - 4.0 * here)
        } else {
            here
        };
    }
}

/// The sum of each block's elements.
#[kernel(block(256))]
pub(crate) fn reduction(x: &[f32], sums: Out<f32>) {
    let i = thread::index();
    let sum = block::sum(if i < x.len() { x[i] } else { 0.0 });
    if let Some(mut sums) = sums.tile(1)
        && let Some(slot) = sums.mine()
    {
        *slot = sum;
    }
}

/// The product of two square matrices, by tiles of 16 by 16.
#[kernel(block(16, 16))]
pub(crate) fn matmul(n: usize, a: &[f32], b: &[f32], c: Out<f32>) {
    let (tx, ty) = (thread::x() as usize, thread::y() as usize);
    let (row, column) = (block::y() as usize * 16 + ty, block::x() as usize * 16 + tx);
    let (mut tile_a, mut tile_b) = (block::shared::<f32, 256>(0.0), block::shared::<f32, 256>(0.0));
    let mut sum = 0.0f32;
    let mut base = 0;
    while base < n {
        if let Some(slot) = tile_a.mine() {
            *slot = if row < n && base + tx < n { a[row * n + base + tx] } else { 0.0 };
        }
        if let Some(slot) = tile_b.mine() {
            *slot = if base + ty < n && column < n { b[(base + ty) * n + column] } else { 0.0 };
        }
        let (view_a, view_b) = block::sync((tile_a, tile_b));
        for i in 0..16 {
            sum = view_a[ty * 16 + i].mul_add(view_b[i * 16 + tx], sum);
        }
        (tile_a, tile_b) = block::sync((view_a, view_b));
        base += 16;
    }
    if let Some((_, c)) = c.mine_2d(n) {
        *c = sum;
    }
}

/// How often each byte occurs.
#[kernel(block(256))]
pub(crate) fn histogram(data: &[u8], bins: &[Atomic<u32>]) {
    let own = block::shared_atomics::<u32, 256>(0);
    let mut i = thread::index();
    let stride = block::threads() * grid::size_x() as usize;
    while i < data.len() {
        own[data[i] as usize].block().fetch_add(1, Relaxed);
        i += stride;
    }
    block::sync(());
    let mut bin = thread::rank();
    while bin < 256 {
        let count = own[bin].load(Relaxed);
        if count != 0 {
            bins[bin].fetch_add(count, Relaxed);
        }
        bin += block::threads();
    }
}

/// Gravity between bodies (x, y, z, mass), by tiles of 128.
#[kernel(block(128))]
pub(crate) fn nbody(
    dt: f64,
    softening: f64,
    position: &[[f64; 4]],
    velocity: Out<[f64; 4]>,
    next: Out<[f64; 4]>,
) {
    let mut tile = block::shared::<[f64; 4], 128>([0.0; 4]);
    let i = thread::index();
    let p = if i < position.len() { position[i] } else { [0.0; 4] };
    let (mut ax, mut ay, mut az) = (0.0f64, 0.0f64, 0.0f64);
    let mut base = 0;
    while base < position.len() {
        let other = base + thread::rank();
        if let Some(slot) = tile.mine() {
            *slot = if other < position.len() { position[other] } else { [0.0; 4] };
        }
        let view = block::sync(tile);
        for j in 0..128 {
            let (dx, dy, dz) = (view[j][0] - p[0], view[j][1] - p[1], view[j][2] - p[2]);
            let r2 = dx.mul_add(dx, dy.mul_add(dy, dz.mul_add(dz, softening)));
            let inverse = 1.0 / r2.sqrt();
            let s = view[j][3] * inverse * inverse * inverse;
            ax = dx.mul_add(s, ax);
            ay = dy.mul_add(s, ay);
            az = dz.mul_add(s, az);
        }
        tile = block::sync(view);
        base += 128;
    }
    if let (Some((_, velocity)), Some((_, next))) = (velocity.mine(), next.mine()) {
        let v = *velocity;
        let v = [ax.mul_add(dt, v[0]), ay.mul_add(dt, v[1]), az.mul_add(dt, v[2]), v[3]];
        *velocity = v;
        *next = [v[0].mul_add(dt, p[0]), v[1].mul_add(dt, p[1]), v[2].mul_add(dt, p[2]), p[3]];
    }
}

#[device]
fn normal(d: f32) -> f32 {
    let k = 1.0 / (1.0 + 0.231_641_9 * d.abs());
    let series =
        k * (0.319_381_53 + k * (-0.356_563_78 + k * (1.781_477_9 + k * (-1.821_255_9 + k * 1.330_274_5))));
    let tail = 0.398_942_3 * (-0.5 * d * d).exp() * series;
    if d > 0.0 { 1.0 - tail } else { tail }
}

/// Option prices after Black and Scholes.
#[kernel(fmad)]
pub(crate) fn black_scholes(
    rate: f32,
    volatility: f32,
    price: &[f32],
    strike: &[f32],
    years: &[f32],
    call: Out<f32>,
    put: Out<f32>,
) {
    if let (Some((i, call)), Some((_, put))) = (call.mine(), put.mine()) {
        let (s, x, t) = (price[i], strike[i], years[i]);
        let sigma = volatility * t.sqrt();
        let d1 = ((s / x).ln() + (rate + 0.5 * volatility * volatility) * t) / sigma;
        let d2 = d1 - sigma;
        let (n1, n2) = (normal(d1), normal(d2));
        let discounted = x * (-rate * t).exp();
        *call = s * n1 - discounted * n2;
        *put = discounted * (1.0 - n2) - s * (1.0 - n1);
    }
}

/// Sums up to each element of a block, and the sum of each block.
#[kernel(block(256))]
pub(crate) fn scan(x: &[u32], out: Out<u32>, sums: Out<u32>) {
    let i = thread::index();
    let (value, total) = block::scan_and_sum(if i < x.len() { x[i] } else { 0 });
    if let Some((_, out)) = out.mine() {
        *out = value;
    }
    if let Some(mut sums) = sums.tile(1)
        && let Some(slot) = sums.mine()
    {
        *slot = total;
    }
}

/// Sorts up to 1,024 keys of each block.
#[kernel(block(512))]
pub(crate) fn bitonic(keys: Out<u32>) {
    let len = keys.len();
    if let Some(keys) = keys.tile(len) {
        let given = block::sync(keys);
        let mut sorted =
            block::shared_from_fn::<u32, 1024>(|i| if i < len { given[i] } else { u32::MAX }).pairs();
        let mut k = 2;
        while k <= 1024 {
            let mut j = k / 2;
            while j > 0 {
                sorted.exchange(j, |i, a, b| if (a > b) == (i & k == 0) { (b, a) } else { (a, b) });
                j /= 2;
            }
            k *= 2;
        }
        let (sorted, mut keys) = block::sync((sorted, given));
        for (i, slot) in keys.each_mine() {
            *slot = sorted[i];
        }
    }
}

/// The softmax of each row of `columns` elements, a block for each.
#[kernel(block(256))]
pub(crate) fn softmax(columns: usize, x: &[f32], out: Out<f32>) {
    if let Some(mut out) = out.tile(columns) {
        let row = &x[block::x() as usize * columns..];
        let mut largest = f32::NEG_INFINITY;
        let mut i = thread::rank();
        while i < columns {
            largest = largest.max(row[i]);
            i += block::threads();
        }
        let largest = block::max(largest);
        let mut sum = 0.0;
        let mut i = thread::rank();
        while i < columns {
            sum += (row[i] - largest).exp();
            i += block::threads();
        }
        let sum = block::sum(sum);
        for (i, slot) in out.each_mine() {
            *slot = (row[i] - largest).exp() / sum;
        }
    }
}

/// A sparse matrix, by rows, times a vector.
#[kernel]
pub(crate) fn sparse(start: &[u32], column: &[u32], value: &[f32], x: &[f32], y: Out<f32>) {
    if let Some((row, y)) = y.mine() {
        let mut sum = 0.0f32;
        for k in start[row] as usize..start[row + 1] as usize {
            sum = value[k].mul_add(x[column[k] as usize], sum);
        }
        *y = sum;
    }
}

/// The transpose of a matrix, by tiles of 32 by 32. The launch has the shape of the result, with a
/// thread for every four rows.
#[kernel(block(32, 8))]
pub(crate) fn transpose(width: usize, height: usize, x: &[f32], out: Out<f32>) {
    let (left, top) = (block::y() as usize * 32, block::x() as usize * 32);
    // Columns of the tile are mixed, so that threads that read one below the other use different
    // banks.
    let tile = block::sync(block::shared_from_fn::<f32, 1024>(|i| {
        let (column, row) = (left + ((i % 32) ^ (i / 32)), top + i / 32);
        if column < width && row < height { x[row * width + column] } else { 0.0 }
    }));
    let (tx, ty) = (thread::x() as usize, thread::y() as usize);
    for (j, (_, out)) in out.each_mine_2d(height, 4).enumerate() {
        *out = tile[tx * 32 + ((4 * ty + j) ^ tx)];
    }
}

/// One step of k-means in the plane.
#[kernel]
pub(crate) fn kmeans(
    points: &[[f32; 2]],
    centroids: &[[f32; 2]],
    labels: Out<u32>,
    sums: &[Atomic<f32>],
    counts: &[Atomic<u32>],
) {
    if let Some((i, label)) = labels.mine() {
        let (x, y) = (points[i][0], points[i][1]);
        let (mut nearest, mut least) = (0, f32::INFINITY);
        for c in 0..centroids.len() {
            let (dx, dy) = (x - centroids[c][0], y - centroids[c][1]);
            let d = dx.mul_add(dx, dy * dy);
            if d < least {
                least = d;
                nearest = c;
            }
        }
        *label = nearest as u32;
        sums[2 * nearest].fetch_add(x, Relaxed);
        sums[2 * nearest + 1].fetch_add(y, Relaxed);
        counts[nearest].fetch_add(1, Relaxed);
    }
}
