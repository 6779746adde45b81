//! Programs: functions of device arrays, as host functions and as callables.

use std::sync::atomic::Ordering::Relaxed;

use gridloom::{Atomic, par, program};

use crate::support::{for_each_device, is_cpu};

#[program]
fn scale(factor: f32, x: &[f32], out: &mut [f32]) {
    for i in par(0..out.len()) {
        out[i] = factor * x[i];
    }
}

#[test]
fn a_parallel_loop_is_a_kernel() {
    for_each_device(|device| {
        let scale_on_device = scale::load(device)?;
        let stream = device.stream()?;
        for len in [3usize, 1000, 7] {
            let input: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let mut expected = vec![0.0; len];
            scale(len as f32, &input, &mut expected);
            let (x, out) = (device.buffer_from(&input)?, device.alloc::<f32>(len)?);
            scale_on_device.call(&stream, (len as f32, &x, &out))?;
            assert_eq!(out.to_vec()?, expected);
        }
        assert_eq!(scale_on_device.stats().builds, 1);
        Ok(())
    });
}

/// Jacobi steps on a plane until the change is small, at most `left` of them.
#[program]
fn relax(
    width: usize,
    bound: f32,
    u: &mut [f32],
    next: &mut [f32],
    change: &[Atomic<u32>],
    left: &mut i32,
    again: &mut i32,
    passes: &mut u32,
) {
    let height = u.len() / width;
    *again = 1;
    *passes = 0;
    while *again != 0 {
        for (x, y) in par((0..width, 0..height)) {
            let i = y * width + x;
            if x == 0 || y == 0 || x + 1 == width || y + 1 == height {
                next[i] = u[i];
                continue;
            }
            next[y * width + x] = 0.25 * (u[i - 1] + u[i + 1] + u[i - width] + u[i + width]);
            let moved = (next[i] - u[i]).abs();
            change[0].fetch_max(moved.to_bits(), Relaxed);
        }
        for i in par(0..u.len()) {
            u[i] = next[i];
        }
        *left -= 1;
        *passes += 1;
        if *left == 0 || f32::from_bits(change[0].load(Relaxed)) < bound {
            *again = 0;
        }
        change[0].store(0, Relaxed);
    }
}

#[test]
fn a_loop_on_the_device_ends_when_its_flag_does() {
    let start: Vec<f32> = (0..80).map(|i| if i < 10 { 1.0 } else { 0.0 }).collect();
    let (mut u, mut next, mut change) = (start.clone(), vec![0.0; 80], [0]);
    let (mut left, mut again, mut passes) = (500, 0, 0);
    relax(10, 1.0e-3, &mut u, &mut next, Atomic::of(&mut change), &mut left, &mut again, &mut passes);
    assert!(passes > 10 && passes < 500, "{passes}");
    for_each_device(|device| {
        let relax = relax::load(device)?;
        let (du, dnext, dchange) =
            (device.buffer_from(&start)?, device.alloc::<f32>(80)?, device.buffer_from(&[0u32])?);
        let (dleft, dagain, dpasses) =
            (device.buffer_from(&[500])?, device.buffer_from(&[0])?, device.buffer_from(&[0u32])?);
        let stream = device.stream()?;
        relax.call(&stream, (10, 1.0e-3, &du, &dnext, &dchange, &dleft, &dagain, &dpasses))?;
        assert_eq!(dpasses.to_vec()?, [passes]);
        assert_eq!(du.to_vec()?, u);
        Ok(())
    });
}

/// Loops inside of loops, side by side, branches, and a volume.
#[program]
fn flow(steps: u32, x: &mut [u32], outer: &mut i32, inner: &mut i32, odd: &mut i32, log: &mut [u32]) {
    let (w, h) = (3, 2);
    let d = x.len() / (w * h);
    for (i, j, k) in par((0..w, 0..h, 0..d)) {
        x[(k * h + j) * w + i] = (100 * k + 10 * j + i) as u32;
    }
    loop {
        *inner = 2;
        while *inner != 0 {
            for i in par(0..x.len()) {
                x[i] = x[i].wrapping_mul(3).wrapping_add(steps);
            }
            *inner -= 1;
        }
        *odd = *outer % 2;
        if *odd != 0 {
            for i in par(1..x.len()) {
                x[i] ^= 0x55;
            }
        } else {
            for i in par(0..x.len()) {
                x[i] >>= 1;
            }
        }
        let slot = *outer as usize;
        log[slot] = x[0] + log[slot];
        *outer -= 1;
        if *outer == 0 {
            break;
        }
    }
    for _ in 0..3 {
        for i in par(0..x.len()) {
            x[i] += 1;
        }
    }
    let mut total = 0;
    for i in 0..x.len() {
        total += x[i] % 7;
    }
    log[0] = total;
}

#[test]
fn loops_and_branches_stand_in_any_order() {
    let (mut x, mut log) = (vec![0; 12], vec![0; 6]);
    flow(5, &mut x, &mut 4, &mut 0, &mut 0, &mut log);
    for_each_device(|device| {
        let flow = flow::load(device)?;
        let (dx, dlog) = (device.alloc::<u32>(12)?, device.buffer_from(&[0u32; 6])?);
        let (outer, inner, odd) =
            (device.buffer_from(&[4])?, device.alloc::<i32>(1)?, device.alloc::<i32>(1)?);
        flow.call(&device.stream()?, (5, &dx, &outer, &inner, &odd, &dlog))?;
        assert_eq!(dx.to_vec()?, x);
        assert_eq!(dlog.to_vec()?, log);
        Ok(())
    });
}

#[program]
fn shift(x: &mut [u32]) {
    let n = x.len();
    for i in par(0..n) {
        x[(i + 1) % n] = 7;
    }
}

#[program]
fn too_far(n: usize, x: &mut [u32]) {
    for i in par(0..n) {
        x[i] = 7;
    }
}

#[test]
fn a_pass_that_writes_the_element_of_another_fails() {
    for_each_device(|device| {
        // A failed assertion costs a GPU its context, which the other tests use.
        if !is_cpu(device) {
            return Ok(());
        }
        let (stream, x) = (device.stream()?, device.alloc::<u32>(4)?);
        shift::load(device)?.call(&stream, (&x,))?;
        let error = stream.synchronize().expect_err("threads would race");
        let text = error.to_string();
        assert!(
            text.contains("the element of its own index alone") && text.contains("programs.rs:"),
            "{text}"
        );
        too_far::load(device)?.call(&stream, (5, &x))?;
        let error = stream.synchronize().expect_err("the array is shorter");
        assert!(error.to_string().contains("goes past the end of `x`"), "{error}");
        Ok(())
    });
}
