//! Programs that keep variables on the device, and loop by conditions and counters of their own.

use std::sync::atomic::Ordering::Relaxed;

use gridloom::prelude::*;
use gridloom::{Atomic, par, program};

use crate::support::for_each_device;

/// Relaxes a rod until it changes little, at most 200 times.
#[program]
fn jacobi(x: &mut [f32], next: &mut [f32], tolerance: f32, passes: &mut u32, change: &[Atomic<u32>]) {
    let n = x.len();
    let mut pass: u32 = 0;
    let mut error: f32 = f32::MAX;
    while pass < 200 && error > tolerance {
        for i in par(0..n) {
            next[i] = if i == 0 || i + 1 == n { x[i] } else { 0.5 * (x[i - 1] + x[i + 1]) };
            change[0].fetch_max((next[i] - x[i]).abs().to_bits(), Relaxed);
        }
        for i in par(0..n) {
            x[i] = next[i];
        }
        error = f32::from_bits(change[0].load(Relaxed));
        change[0].store(0, Relaxed);
        pass += 1;
    }
    *passes = pass;
}

#[test]
fn a_loop_tests_variables_of_the_program() {
    let start: Vec<f32> = (0..20).map(|i| if i == 0 { 10.0 } else { 0.0 }).collect();
    for tolerance in [0.05, 0.0, 100.0] {
        let (mut x, mut passes) = (start.clone(), 0);
        jacobi(&mut x, &mut [0.0; 20], tolerance, &mut passes, Atomic::of(&mut [0]));
        for_each_device(|device| {
            let (program, stream) = (jacobi::load(device)?, device.stream()?);
            for _ in 0..3 {
                let (dx, next) = (device.buffer_from(&start)?, device.alloc::<f32>(20)?);
                let (count, change) = (device.buffer_from(&[0u32])?, device.buffer_from(&[0u32])?);
                program.call(&stream, (&dx, &next, tolerance, &count, &change))?;
                assert_eq!((dx.to_vec()?, count.to_vec()?), (x.clone(), vec![passes]));
            }
            Ok(())
        });
    }
}

/// Sorts by exchanges of neighbours, until a round changes nothing.
#[program]
fn sort(x: &mut [i32], old: &mut [i32]) {
    let n = x.len();
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for parity in 0..2 {
            for i in par(0..n) {
                old[i] = x[i];
            }
            for i in par(0..n) {
                let partner = match (i + parity) % 2 {
                    0 => i + 1,
                    _ if i > 0 => i - 1,
                    _ => n,
                };
                if partner < n {
                    let (a, b) = (old[i.min(partner)], old[i.max(partner)]);
                    x[i] = if i < partner { a.min(b) } else { a.max(b) };
                }
            }
            for i in 0..n {
                is_changed |= x[i] != old[i];
            }
        }
    }
}

#[test]
fn a_loop_counts_inside_of_a_loop_that_tests_a_truth_value() {
    let start: Vec<i32> = (0..17).map(|i| (i * 7) % 17).collect();
    let mut x = start.clone();
    sort(&mut x, &mut [0; 17]);
    assert!(x.is_sorted());
    for_each_device(|device| {
        let (dx, old) = (device.buffer_from(&start)?, device.alloc::<i32>(17)?);
        sort::load(device)?.call(&device.stream()?, (&dx, &old))?;
        assert_eq!(dx.to_vec()?, x);
        Ok(())
    });
}

/// Loops that are left in the middle, go backwards and with a stride, and a chain of branches.
#[program]
fn breaks(x: &mut [u32], limit: u32, log: &mut [u32]) {
    let mut steps: u32 = 0;
    loop {
        for i in par(0..x.len()) {
            x[i] = x[i] * 2 + 1;
        }
        steps += 1;
        if x[0] > limit {
            log[0] = steps;
            break;
        }
        for i in par(0..x.len()) {
            x[i] += 10;
        }
        if steps >= 50 {
            break;
        }
    }
    for k in (1..=3u32).rev() {
        for i in par(0..x.len()) {
            x[i] = x[i] * 10 + k;
        }
        if x[1] > 1_000_000 {
            break;
        }
    }
    for s in (0..10).step_by(4) {
        for i in par(0..x.len()) {
            x[i] ^= s << 3;
        }
    }
    if steps > 2 && x[0] != 0 {
        for i in par(0..x.len()) {
            x[i] += 1;
        }
    } else if steps == 1 {
        for i in par(0..x.len()) {
            x[i] += 2;
        }
    } else {
        log[1] = 7;
    }
    log[2] = steps;
}

#[test]
fn a_loop_is_left_where_a_condition_holds() {
    for limit in [0, 20, 100, 10_000] {
        let (mut x, mut log) = ([1, 2, 3], [0; 3]);
        breaks(&mut x, limit, &mut log);
        for_each_device(|device| {
            let (dx, dlog) = (device.buffer_from(&[1u32, 2, 3])?, device.buffer_from(&[0u32; 3])?);
            breaks::load(device)?.call(&device.stream()?, (&dx, limit, &dlog))?;
            assert_eq!((dx.to_vec()?, dlog.to_vec()?), (x.to_vec(), log.to_vec()));
            Ok(())
        });
    }
}

/// Loops in loops, whose bounds are arguments, variables and values in memory.
#[program]
fn nested(times: usize, x: &mut [i64], bound: &i64, rounds: &mut i32) {
    const WIDTH: usize = 3;
    let total = x.len() * WIDTH;
    let mut outer: i64 = -2;
    while outer < 2 {
        let mut inner: i64 = outer;
        while inner < *bound {
            for i in par(0..x.len()) {
                x[i] += inner * (i as i64) + outer;
            }
            inner += 1;
            *rounds += 1;
        }
        for k in outer..*bound {
            for i in par(0..x.len()) {
                if i < total {
                    x[i] -= k;
                }
            }
        }
        outer += 1;
    }
    for t in 0..times {
        for i in par(0..x.len()) {
            x[i] ^= t as i64;
        }
    }
    for _ in 0..WIDTH {
        for i in par(0..x.len()) {
            x[i] *= 2;
        }
    }
}

#[test]
fn loops_count_to_arguments_variables_and_memory() {
    for times in [0, 1, 5] {
        let (mut x, mut rounds) = ([1, 2, 3, 4], 0);
        nested(times, &mut x, &3, &mut rounds);
        for_each_device(|device| {
            let (dx, bound) = (device.buffer_from(&[1i64, 2, 3, 4])?, device.buffer_from(&[3i64])?);
            let count = device.buffer_from(&[0])?;
            nested::load(device)?.call(&device.stream()?, (times, &dx, &bound, &count))?;
            assert_eq!((dx.to_vec()?, count.to_vec()?), (x.to_vec(), vec![rounds]));
            Ok(())
        });
    }
}

/// Values of memory are those of when the `let` stands, and not of later kernels.
#[program]
fn snapshots(x: &mut [u32], out: &mut [u32]) {
    let first = x[0];
    let is_large = x[1] > 5 && first < 4;
    let half = (first + 5) / 2;
    let most: u32 = x.iter().copied().max().unwrap_or(0);
    for i in par(0..x.len()) {
        x[i] += 100;
    }
    for i in par(0..out.len()) {
        out[i] = first + most + x[0] + half + if is_large { 1000 } else { 0 };
    }
}

#[test]
fn a_value_of_memory_is_read_where_it_stands() {
    let (mut x, mut out) = ([3, 9, 4], [0; 3]);
    snapshots(&mut x, &mut out);
    for_each_device(|device| {
        let (dx, dout) = (device.buffer_from(&[3u32, 9, 4])?, device.alloc::<u32>(3)?);
        snapshots::load(device)?.call(&device.stream()?, (&dx, &dout))?;
        assert_eq!((dx.to_vec()?, dout.to_vec()?), (x.to_vec(), out.to_vec()));
        Ok(())
    });
}

/// Doubles `x` in `times` passes, which the program counts itself.
#[program]
fn double(times: u32, x: &mut [u64]) {
    let mut pass: u32 = 0;
    while pass < times {
        for i in par(0..x.len()) {
            x[i] *= 2;
        }
        pass += 1;
    }
}

#[test]
fn calls_on_several_streams_at_once_do_not_share_variables() {
    for_each_device(|device| {
        let program = double::load(device)?;
        let calls: Vec<_> = (0..12u32)
            .map(|times| {
                let (stream, x) = (device.stream()?, device.buffer_from(&[1u64; 300])?);
                program.call(&stream, (times * 3, &x))?;
                Ok((stream, x))
            })
            .collect::<Result<_>>()?;
        for (times, (stream, x)) in (0..).zip(calls) {
            stream.synchronize()?;
            assert_eq!(x.to_vec()?, vec![1 << (times * 3); 300], "{times}");
        }
        // Inside another callable the same holds.
        let twice = Callable::new(device, {
            let program = program.clone();
            move |steps, (times, x): (Scalar<u32>, Param<[u64]>)| {
                steps.call(&program, (times, x))?;
                steps.call(&program, (times, x))
            }
        });
        let calls: Vec<_> = (0..6u32)
            .map(|times| {
                let (stream, x) = (device.stream()?, device.buffer_from(&[1u64; 300])?);
                twice.call(&stream, (times * 3, &x))?;
                Ok((stream, x))
            })
            .collect::<Result<_>>()?;
        for (times, (stream, x)) in (0..).zip(calls) {
            stream.synchronize()?;
            assert_eq!(x.to_vec()?, vec![1 << (times * 6); 300], "{times}");
        }
        Ok(())
    });
}

/// Names that mean something else inside of a loop than in its condition or bounds.
#[program]
fn hidden_names(n: u32, x: &mut [u32], out: &mut [u32]) {
    let mut n: u32 = n;
    let k = x.len();
    while n > 0 {
        let m = x[0] + n;
        for i in par(0..k) {
            x[i] += m;
        }
        n -= 1;
        if m > 1000 {
            out[1] += 1;
            break;
        }
        let n = 7u32;
        for i in par(0..k) {
            x[i] ^= n;
        }
    }
    let k = k * 2;
    let mut last = n;
    for k in 0..3u32 {
        for k in 0..k {
            for i in par(0..x.len()) {
                x[i] += k;
            }
            last += 1;
        }
    }
    out[0] = last + k as u32 + n;
    let n = 1000;
    x.swap(0, 1);
    out[1] += n;
    let mut q: u32 = 5;
    while out[0] < 900 {
        q += 1;
        for i in par(0..x.len()) {
            x[i] += q;
        }
        let mut q: u32 = q;
        q += 100;
        for i in par(0..x.len()) {
            x[i] += q;
        }
        out[0] += q;
    }
    out[1] += q;
}

#[test]
fn names_mean_what_they_mean_on_the_host() {
    for n in [0, 1, 4, 60] {
        let (mut x, mut out) = ([1, 2, 3], [0; 2]);
        hidden_names(n, &mut x, &mut out);
        for_each_device(|device| {
            let (dx, dout) = (device.buffer_from(&[1u32, 2, 3])?, device.buffer_from(&[0u32; 2])?);
            hidden_names::load(device)?.call(&device.stream()?, (n, &dx, &dout))?;
            assert_eq!((dx.to_vec()?, dout.to_vec()?), (x.to_vec(), out.to_vec()), "{n}");
            Ok(())
        });
    }
}
