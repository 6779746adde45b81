//! The same method on the host, in plain Rust, to compare the device's solution with.

/// Returns the length of a vector.
pub(crate) fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Returns the five-point Laplacian of a grid with rows of `width`, with 0 all around.
fn laplacian(x: &[f64], width: usize) -> Vec<f64> {
    let at = |inside: bool, i: usize| if inside { x[i] } else { 0.0 };
    (0..x.len())
        .map(|i| {
            let column = i % width;
            let west = at(column > 0, i.wrapping_sub(1));
            let east = at(column + 1 < width, i + 1);
            let south = at(i >= width, i.wrapping_sub(width));
            let north = at(i + width < x.len(), i + width);
            4.0 * x[i] - west - east - south - north
        })
        .collect()
}

/// Returns the length of what is left of `b` after the matrix was applied to `x`.
pub(crate) fn residual(b: &[f64], x: &[f64], width: usize) -> f64 {
    let applied = laplacian(x, width);
    norm(&b.iter().zip(applied).map(|(b, a)| b - a).collect::<Vec<_>>())
}

/// Conjugate gradients from 0, until the residual is `tolerance` times the first one.
pub(crate) fn solve(b: &[f64], width: usize, tolerance: f64, limit: usize) -> Vec<f64> {
    let (mut x, mut r, mut p) = (vec![0.0; b.len()], b.to_vec(), b.to_vec());
    let mut rr = dot(&r, &r);
    let enough = tolerance * rr.sqrt();
    for _ in 0..limit {
        if rr.sqrt() <= enough {
            break;
        }
        let ap = laplacian(&p, width);
        let alpha = rr / dot(&p, &ap);
        for i in 0..b.len() {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
        }
        let new = dot(&r, &r);
        let beta = new / std::mem::replace(&mut rr, new);
        for (p, r) in p.iter_mut().zip(&r) {
            *p = r + beta * *p;
        }
    }
    x
}
