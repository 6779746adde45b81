//! Poisson's equation on a square, solved by a program whose loop runs on the device.
//!
//! `cargo run --release --example poisson -- [width]`

#![allow(clippy::print_stdout, reason = "it draws in the terminal")]

use std::sync::atomic::Ordering::Relaxed;

use gridloom::prelude::*;
use gridloom::{Atomic, par, program};

/// Relaxes `u` until no element changes by `tolerance` or more, at most `most` times. Elements of
/// one colour of a chessboard depend on those of the other alone, so that each half is computed
/// from the other.
#[program]
#[allow(clippy::too_many_arguments, reason = "a solver has many arrays")]
fn poisson(
    width: usize,
    weight: f32,
    tolerance: f32,
    most: u32,
    source: &[f32],
    u: &mut [f32],
    old: &mut [f32],
    change: &[Atomic<u32>],
    passes: &mut u32,
) {
    let height = source.len() / width;
    let mut pass: u32 = 0;
    let mut moved = f32::MAX;
    while pass < most && moved >= tolerance {
        for i in par(0..u.len()) {
            old[i] = u[i];
        }
        for (x, y) in par((0..width, 0..height)) {
            let i = y * width + x;
            let is_inside = x > 0 && y > 0 && x + 1 < width && y + 1 < height;
            if is_inside && (x + y) % 2 == 0 {
                let mean = 0.25 * (old[i - 1] + old[i + 1] + old[i - width] + old[i + width] + source[i]);
                u[i] = old[i] + weight * (mean - old[i]);
                change[0].fetch_max((u[i] - old[i]).abs().to_bits(), Relaxed);
            }
        }
        for i in par(0..u.len()) {
            old[i] = u[i];
        }
        for (x, y) in par((0..width, 0..height)) {
            let i = y * width + x;
            let is_inside = x > 0 && y > 0 && x + 1 < width && y + 1 < height;
            if is_inside && (x + y) % 2 == 1 {
                let mean = 0.25 * (old[i - 1] + old[i + 1] + old[i - width] + old[i + width] + source[i]);
                u[i] = old[i] + weight * (mean - old[i]);
                change[0].fetch_max((u[i] - old[i]).abs().to_bits(), Relaxed);
            }
        }
        moved = f32::from_bits(change[0].load(Relaxed));
        change[0].store(0, Relaxed);
        pass += 1;
    }
    *passes = pass;
}

fn main() -> Result<()> {
    let width: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(96);
    const MOST: u32 = 20_000;
    let device = Device::best()?;
    let stream = device.stream()?;
    let poisson = poisson::load(&device)?;

    // Two charges of opposite sign.
    let mut source = vec![0.0f32; width * width];
    source[width / 3 * width + width / 3] = 4.0;
    source[2 * width / 3 * width + 2 * width / 3] = -4.0;
    let weight = 2.0 / (1.0 + (std::f32::consts::PI / width as f32).sin());
    let zeros = vec![0.0f32; width * width];
    let (source, u, old) =
        (device.buffer_from(&source)?, device.buffer_from(&zeros)?, device.buffer_from(&zeros)?);
    let (change, passes) = (device.buffer_from(&[0u32])?, device.alloc::<u32>(1)?);

    // One call: the host does not read back between iterations.
    poisson.call(&stream, (width, weight, 1.0e-6, MOST, &source, &u, &old, &change, &passes))?;
    stream.synchronize()?;

    let (u, passes) = (u.to_vec()?, passes.to_vec()?[0]);
    let largest = u.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    for y in (0..width).step_by((width / 24).max(1)) {
        let shade = |x: usize| {
            let level = u[y * width + x] / largest;
            let index = (level.abs().sqrt() * 4.99) as usize;
            (if level < 0.0 { [' ', '.', ':', '-', '='] } else { [' ', '+', 'o', 'O', '@'] })[index]
        };
        println!("{}", (0..width).step_by((width / 48).max(1)).map(shade).collect::<String>());
    }
    println!("{passes} iterations on {}, {width} x {width} elements", device.name());
    Ok(())
}
