//! What it costs that copies and fills of device memory may race: accesses of `racy` beside plain
//! ones, by turns in one run.
//!
//! `cargo bench -p gridloom-interp --bench racy`

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::hint::black_box;
use std::time::Instant;

use gridloom_interp::racy;

/// What is filled in: its bytes differ, so that the fill is none of bytes.
const VALUE: u32 = 0x0102_0304;

/// Turns of each, of which the median counts.
const TURNS: usize = 21;

#[inline(never)]
fn plain_copy(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: both vectors have so many bytes.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) }
}

#[inline(never)]
fn plain_fill(dst: *mut u8, value: u32, bytes: usize) {
    let dst = dst.cast::<u32>();
    // SAFETY: the vector has so many bytes, and is aligned.
    (0..bytes / 4).for_each(|index| unsafe { dst.add(index).write(value) });
}

fn nanoseconds(times: u32, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..times).for_each(|_| work());
    start.elapsed().as_nanos() as f64 / f64::from(times)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!("nanoseconds, and how many times as long racy accesses take");
    println!(
        "{:>10} {:>11} {:>11} {:>6}  {:>11} {:>11} {:>6}",
        "bytes", "copy", "racy", "ratio", "fill", "racy", "ratio"
    );
    for bytes in [4usize, 8, 16, 64, 256, 1024, 4096, 65_536, 1 << 20, 1 << 24] {
        let (mut to, mut from) = (vec![1u64; bytes.div_ceil(8)], vec![2u64; bytes.div_ceil(8)]);
        let (dst, src) = (to.as_mut_ptr().cast::<u8>(), from.as_mut_ptr().cast::<u8>());
        let times = (4_000_000 / (bytes + 40)).clamp(2, 50_000) as u32;
        let mut found: [Vec<f64>; 4] = Default::default();
        for _ in 0..TURNS {
            found[0]
                .push(nanoseconds(times, || plain_copy(black_box(dst), black_box(src), black_box(bytes))));
            // SAFETY: both vectors have so many bytes.
            found[1].push(nanoseconds(times, || unsafe {
                racy::copy(black_box(dst), black_box(src), black_box(bytes))
            }));
            found[2]
                .push(nanoseconds(times, || plain_fill(black_box(dst), black_box(VALUE), black_box(bytes))));
            // SAFETY: as above.
            found[3].push(nanoseconds(times, || unsafe {
                racy::fill(black_box(dst), black_box(VALUE), 4, black_box(bytes))
            }));
        }
        let [copy, racy_copy, fill, racy_fill] = found.map(median);
        println!(
            "{bytes:>10} {copy:>11.1} {racy_copy:>11.1} {:>6.2}  {fill:>11.1} {racy_fill:>11.1} {:>6.2}",
            racy_copy / copy,
            racy_fill / fill
        );
    }
}
