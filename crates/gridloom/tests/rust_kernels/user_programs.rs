//! Programs, as somebody writes them who has read the guide.

use std::sync::atomic::Ordering::Relaxed;

use gridloom::{Atomic, KernelType, device, par, program};

use crate::support::for_each_device;

#[derive(Clone, Copy, Debug, Default, PartialEq, KernelType)]
#[repr(C)]
struct Particle {
    at: [f32; 2],
    v: [f32; 2],
}
// SAFETY: four floats.
unsafe impl bytemuck::Zeroable for Particle {}
// SAFETY: four floats without padding.
unsafe impl bytemuck::Pod for Particle {}

#[device]
impl Particle {
    fn step(mut self, dt: f32) -> Self {
        for k in 0..2 {
            self.at[k] += self.v[k] * dt;
            if self.at[k] < 0.0 || self.at[k] > 1.0 {
                self.v[k] = -self.v[k];
            }
        }
        self
    }
    fn energy(&self) -> f32 {
        0.5 * self.v.iter().map(|v| v * v).sum::<f32>()
    }
}

#[program]
fn bounce(dt: f32, steps: u32, particles: &mut [Particle], energy: &mut [f32], total: &mut f32) {
    for _ in 0..steps {
        for i in par(0..particles.len()) {
            particles[i] = particles[i].step(dt);
        }
    }
    for i in par(0..energy.len()) {
        energy[i] = particles[i].energy();
    }
    *total = energy.iter().sum();
}

#[program]
fn power_iteration(
    n: usize,
    a: &[f32],
    x: &mut [f32],
    y: &mut [f32],
    eigenvalue: &mut f32,
    rounds: &mut u32,
) {
    let mut last: f32 = 0.0;
    let mut now: f32 = 1.0;
    *rounds = 0;
    while (now - last).abs() > 1e-4 * now.abs() && *rounds < 100 {
        for i in par(0..n) {
            let mut sum = 0.0;
            for k in 0..n {
                sum += a[i * n + k] * x[k];
            }
            y[i] = sum;
        }
        last = now;
        let mut norm = 0.0f32;
        for v in y.iter() {
            norm = norm.max(v.abs());
        }
        now = norm;
        for i in par(0..n) {
            x[i] = y[i] / now;
        }
        *rounds += 1;
    }
    *eigenvalue = now;
}

#[program]
fn floyd(n: usize, d: &mut [u32], row: &mut [u32], column: &mut [u32]) {
    for k in 0..n {
        for i in par(0..n) {
            row[i] = d[k * n + i];
        }
        for i in par(0..n) {
            column[i] = d[i * n + k];
        }
        for (j, i) in par((0..n, 0..n)) {
            let through = column[i].saturating_add(row[j]);
            if through < d[i * n + j] {
                d[i * n + j] = through;
            }
        }
    }
}

#[program]
fn odd_even(x: &mut [i32], next: &mut [i32], swaps: &[Atomic<u32>], rounds: &mut u32) {
    let n = x.len();
    let mut round: usize = 0;
    loop {
        swaps[0].store(0, Relaxed);
        for parity in 0..2usize {
            for i in par(0..n) {
                let other = if i % 2 == parity { i + 1 } else { i.wrapping_sub(1) };
                next[i] = x[i];
                if other < n {
                    let (a, b) = (x[i], x[other]);
                    let should = if i < other { b < a } else { a < b };
                    if should {
                        next[i] = b;
                        swaps[0].fetch_add(1, Relaxed);
                    }
                }
            }
            for i in par(0..n) {
                x[i] = next[i];
            }
        }
        round += 1;
        if swaps[0].load(Relaxed) == 0 {
            break;
        }
    }
    *rounds = round as u32;
}

#[program]
fn scan(x: &mut [u32], other: &mut [u32]) {
    let n = x.len();
    let mut d: usize = 1;
    while d < n {
        for i in par(0..n) {
            other[i] = if i >= d { x[i] + x[i - d] } else { x[i] };
        }
        for i in par(0..n) {
            x[i] = other[i];
        }
        d *= 2;
    }
}

const WIDTH: usize = 6;

#[device]
fn alive(cells: &[u8], x: usize, y: usize, w: usize, h: usize) -> u8 {
    let mut count = 0;
    for dy in [h - 1, 0, 1] {
        for dx in [w - 1, 0, 1] {
            if dx != 0 || dy != 0 {
                count += cells[(y + dy) % h * w + (x + dx) % w];
            }
        }
    }
    match (cells[y * w + x], count) {
        (1, 2 | 3) | (0, 3) => 1,
        _ => 0,
    }
}

#[program]
fn life(generations: i32, cells: &mut [u8], next: &mut [u8], history: &mut [u32]) {
    let h = cells.len() / WIDTH;
    let mut g: i32 = 0;
    while g < generations {
        for (x, y) in par((0..WIDTH, 0..h)) {
            next[y * WIDTH + x] = alive(cells, x, y, WIDTH, h);
        }
        for (x, y) in par((0..WIDTH, 0..h)) {
            cells[y * WIDTH + x] = next[y * WIDTH + x];
        }
        let population: u32 = cells.iter().map(|&c| c as u32).sum();
        history[g as usize] = population;
        if population == 0 {
            break;
        }
        g += 1;
    }
}

#[program]
fn heat3(w: usize, h: usize, d: usize, k: f64, u: &mut [f64], v: &mut [f64], times: &i32) {
    for _ in 0..*times {
        for (x, y, z) in par((0..w, 0..h, 0..d)) {
            let at = |x: usize, y: usize, z: usize| u[(z * h + y) * w + x];
            let c = at(x, y, z);
            let mut sum = 0.0;
            if x > 0 {
                sum += at(x - 1, y, z) - c;
            }
            if x + 1 < w {
                sum += at(x + 1, y, z) - c;
            }
            if y > 0 {
                sum += at(x, y - 1, z) - c;
            }
            if y + 1 < h {
                sum += at(x, y + 1, z) - c;
            }
            if z > 0 {
                sum += at(x, y, z - 1) - c;
            }
            if z + 1 < d {
                sum += at(x, y, z + 1) - c;
            }
            v[(z * h + y) * w + x] = c + k * sum;
        }
        for i in par(0..u.len()) {
            u[i] = v[i];
        }
    }
}

#[program]
fn bisect(low: &mut f64, high: &mut f64, steps: &mut i32) {
    *steps = 0;
    while *high - *low > 1e-9 {
        let middle = 0.5 * (*low + *high);
        if middle * middle - 2.0 > 0.0 {
            *high = middle;
        } else {
            *low = middle;
        }
        *steps += 1;
    }
}

#[program]
fn collatz(n: u64, steps: &mut [u32], longest: &mut u32, at: &mut u64) {
    for i in par(0..steps.len()) {
        let mut v = n + i as u64;
        let mut count = 0;
        while v != 1 {
            v = if v % 2 == 0 { v / 2 } else { 3 * v + 1 };
            count += 1;
        }
        steps[i] = count;
    }
    *longest = 0;
    for (i, s) in steps.iter().enumerate() {
        if *s > *longest {
            *longest = *s;
            *at = n + i as u64;
        }
    }
}

#[program]
fn branches(mode: u32, x: &mut [f32], flag: &mut u32) {
    match mode {
        0 => {
            for i in par(0..x.len()) {
                x[i] += 1.0;
            }
        }
        1 | 2 => {
            for i in par(0..x.len()) {
                x[i] *= 2.0;
            }
        }
        _ => *flag = 9,
    }
    if mode == 2 {
        for i in par(0..x.len()) {
            x[i] = -x[i];
        }
    }
    {
        let k = x[0];
        for i in par(0..x.len()) {
            x[i] += k;
        }
    }
}

#[program]
fn conjugate(
    n: usize,
    b: &[f64],
    x: &mut [f64],
    r: &mut [f64],
    p: &mut [f64],
    q: &mut [f64],
    iterations: &mut u32,
) {
    for i in par(0..n) {
        x[i] = 0.0;
        r[i] = b[i];
        p[i] = b[i];
    }
    let mut rr: f64 = 0.0;
    for v in r.iter() {
        rr += v * v;
    }
    *iterations = 0;
    while rr > 1e-18 && *iterations < 50 {
        for i in par(0..n) {
            let left = if i > 0 { p[i - 1] } else { 0.0 };
            let right = if i + 1 < n { p[i + 1] } else { 0.0 };
            q[i] = 2.5 * p[i] - left - right;
        }
        let pq: f64 = p.iter().zip(q.iter()).map(|(a, b)| a * b).sum();
        let alpha = rr / pq;
        for i in par(0..n) {
            x[i] += alpha * p[i];
        }
        for i in par(0..n) {
            r[i] -= alpha * q[i];
        }
        let new: f64 = r.iter().map(|v| v * v).sum();
        let beta = new / rr;
        rr = new;
        for i in par(0..n) {
            p[i] = r[i] + beta * p[i];
        }
        *iterations += 1;
    }
}

#[program]
fn bfs(start: usize, offsets: &[u32], edges: &[u32], level: &[Atomic<u32>], depth: &mut u32) {
    let n = offsets.len() - 1;
    for i in par(0..n) {
        level[i].store(if i == start { 0 } else { u32::MAX }, Relaxed);
    }
    let mut now: u32 = 0;
    let mut found: u32 = 1;
    while found != 0 {
        for i in par(0..n) {
            if level[i].load(Relaxed) == now {
                for e in offsets[i]..offsets[i + 1] {
                    level[edges[e as usize] as usize].fetch_min(now + 1, Relaxed);
                }
            }
        }
        now += 1;
        found = 0;
        for i in 0..n {
            if level[i].load(Relaxed) == now {
                found += 1;
            }
        }
    }
    *depth = now - 1;
}

#[program]
fn early(x: &mut [u32], done: &mut i32) {
    *done = 0;
    let mut k: u8 = 250;
    'outer: while *done == 0 {
        for i in par(0..x.len()) {
            x[i] = x[i].wrapping_add(k as u32);
        }
        k = k.wrapping_add(1);
        if k == 3 {
            break 'outer;
        }
        *done = (x[0] > 100_000) as i32;
    }
    x[0] += k as u32;
}

#[program]
fn fibonacci(out: &mut [u64]) {
    let n = out.len();
    let mut a: u64 = 0;
    let mut b: u64 = 1;
    for i in 0..n {
        out[i] = a;
        (a, b) = (b, a.wrapping_add(b));
    }
    for i in par(0..n) {
        out[i] ^= a;
    }
}

#[program]
fn rows(width: usize, x: &[f32], sums: &mut [f32], normal: &mut [f32]) {
    for r in par(0..sums.len()) {
        let row = &x[r * width..(r + 1) * width];
        sums[r] = row.iter().copied().sum::<f32>();
    }
    for (c, r) in par((0..width, 0..sums.len())) {
        normal[r * width + c] = x[r * width + c] / sums[r];
    }
}

#[test]
fn particles_that_bounce() {
    let start: Vec<Particle> =
        (0..50).map(|i| Particle { at: [0.02 * i as f32, 0.5], v: [0.3, 0.01 * i as f32 - 0.2] }).collect();
    let (mut p, mut e, mut total) = (start.clone(), vec![0.0; 50], 0.0);
    bounce(0.1, 30, &mut p, &mut e, &mut total);
    for_each_device(|device| {
        let (dp, de, dt) =
            (device.buffer_from(&start)?, device.alloc::<f32>(50)?, device.buffer_from(&[0.0f32])?);
        bounce::load(device)?.call(&device.stream()?, (0.1, 30, &dp, &de, &dt))?;
        assert_eq!((dp.to_vec()?, de.to_vec()?, dt.to_vec()?), (p.clone(), e.clone(), vec![total]));
        Ok(())
    });
}

#[test]
fn an_eigenvalue() {
    let n = 12;
    let a: Vec<f32> =
        (0..n * n).map(|i| ((i * 7) % 5) as f32 + if i % (n + 1) == 0 { 4.0 } else { 0.0 }).collect();
    let (mut x, mut y, mut e, mut rounds) = (vec![1.0; n], vec![0.0; n], 0.0, 0);
    power_iteration(n, &a, &mut x, &mut y, &mut e, &mut rounds);
    assert!(rounds > 2 && rounds < 100);
    for_each_device(|device| {
        let (da, dx, dy) =
            (device.buffer_from(&a)?, device.buffer_from(&vec![1.0f32; n])?, device.alloc::<f32>(n)?);
        let (de, dr) = (device.buffer_from(&[0.0f32])?, device.buffer_from(&[7u32])?);
        power_iteration::load(device)?.call(&device.stream()?, (n, &da, &dx, &dy, &de, &dr))?;
        assert_eq!((dx.to_vec()?, de.to_vec()?, dr.to_vec()?), (x.clone(), vec![e], vec![rounds]));
        Ok(())
    });
}

#[test]
fn shortest_paths() {
    let n = 9;
    let start: Vec<u32> = (0..n * n)
        .map(|i| {
            if i % (n + 1) == 0 {
                0
            } else if i * 5 % 7 < 3 {
                (i * 3 % 11 + 1) as u32
            } else {
                u32::MAX
            }
        })
        .collect();
    let (mut d, mut r, mut c) = (start.clone(), vec![0; n], vec![0; n]);
    floyd(n, &mut d, &mut r, &mut c);
    for_each_device(|device| {
        let (dd, dr, dc) = (device.buffer_from(&start)?, device.alloc::<u32>(n)?, device.alloc::<u32>(n)?);
        floyd::load(device)?.call(&device.stream()?, (n, &dd, &dr, &dc))?;
        assert_eq!(dd.to_vec()?, d);
        Ok(())
    });
}

#[test]
fn sorts_and_scans() {
    let start: Vec<i32> = (0..33).map(|i| (i * 17) % 34).collect();
    let (mut x, mut next, mut swaps, mut rounds) = (start.clone(), vec![0; 33], [0], 0);
    odd_even(&mut x, &mut next, Atomic::of(&mut swaps), &mut rounds);
    assert!(x.is_sorted());
    let (mut s, mut t) = ((1..40u32).collect::<Vec<_>>(), vec![0; 39]);
    scan(&mut s, &mut t);
    assert_eq!(s[38], 780);
    for_each_device(|device| {
        let (dx, dn) = (device.buffer_from(&start)?, device.alloc::<i32>(33)?);
        let (ds, dr) = (device.buffer_from(&[0u32])?, device.buffer_from(&[0u32])?);
        let stream = device.stream()?;
        odd_even::load(device)?.call(&stream, (&dx, &dn, &ds, &dr))?;
        assert_eq!((dx.to_vec()?, dr.to_vec()?), (x.clone(), vec![rounds]));
        let (da, db) = (device.buffer_from(&(1..40u32).collect::<Vec<_>>())?, device.alloc::<u32>(39)?);
        scan::load(device)?.call(&stream, (&da, &db))?;
        assert_eq!(da.to_vec()?, s);
        Ok(())
    });
}

#[test]
fn cells_that_live_and_die() {
    let mut start = vec![0u8; 36];
    for i in [7, 8, 9, 14, 20, 3] {
        start[i] = 1;
    }
    let (mut cells, mut next, mut history) = (start.clone(), vec![0; 36], vec![0; 40]);
    life(40, &mut cells, &mut next, &mut history);
    for_each_device(|device| {
        let (dc, dn, dh) =
            (device.buffer_from(&start)?, device.alloc::<u8>(36)?, device.buffer_from(&[0u32; 40])?);
        life::load(device)?.call(&device.stream()?, (40, &dc, &dn, &dh))?;
        assert_eq!((dc.to_vec()?, dh.to_vec()?), (cells.clone(), history.clone()));
        Ok(())
    });
}

#[test]
fn heat_in_a_volume() {
    let start: Vec<f64> = (0..60).map(|i| (i % 7) as f64).collect();
    let (mut u, mut v) = (start.clone(), vec![0.0; 60]);
    heat3(3, 4, 5, 0.1, &mut u, &mut v, &6);
    for_each_device(|device| {
        let (du, dv, dt) = (device.buffer_from(&start)?, device.alloc::<f64>(60)?, device.buffer_from(&[6])?);
        heat3::load(device)?.call(&device.stream()?, (3, 4, 5, 0.1, &du, &dv, &dt))?;
        assert_eq!(du.to_vec()?, u);
        Ok(())
    });
}

#[test]
fn numbers_alone() {
    let (mut low, mut high, mut steps) = (0.0, 2.0, 0);
    bisect(&mut low, &mut high, &mut steps);
    let (mut count, mut longest, mut at) = (vec![0; 100], 0, 0);
    collatz(10, &mut count, &mut longest, &mut at);
    let mut fib = vec![0; 30];
    fibonacci(&mut fib);
    for_each_device(|device| {
        let stream = device.stream()?;
        let (dl, dh, ds) =
            (device.buffer_from(&[0.0f64])?, device.buffer_from(&[2.0f64])?, device.buffer_from(&[5])?);
        bisect::load(device)?.call(&stream, (&dl, &dh, &ds))?;
        assert_eq!((dl.to_vec()?, ds.to_vec()?), (vec![low], vec![steps]));
        let (dc, dlong, dat) =
            (device.alloc::<u32>(100)?, device.buffer_from(&[0u32])?, device.buffer_from(&[0u64])?);
        collatz::load(device)?.call(&stream, (10, &dc, &dlong, &dat))?;
        assert_eq!((dc.to_vec()?, dlong.to_vec()?, dat.to_vec()?), (count.clone(), vec![longest], vec![at]));
        let df = device.alloc::<u64>(30)?;
        fibonacci::load(device)?.call(&stream, (&df,))?;
        assert_eq!(df.to_vec()?, fib);
        Ok(())
    });
}

#[test]
fn branches_by_arguments() {
    for mode in 0..5 {
        let (mut x, mut flag) = (vec![1.5, 2.0, -3.0], 0);
        branches(mode, &mut x, &mut flag);
        for_each_device(|device| {
            let (dx, df) = (device.buffer_from(&[1.5f32, 2.0, -3.0])?, device.buffer_from(&[0u32])?);
            branches::load(device)?.call(&device.stream()?, (mode, &dx, &df))?;
            assert_eq!((dx.to_vec()?, df.to_vec()?), (x.clone(), vec![flag]));
            Ok(())
        });
    }
}

#[test]
fn conjugate_gradients() {
    let b: Vec<f64> = (0..20).map(|i| (i % 4) as f64 - 1.0).collect();
    let [mut x, mut r, mut p, mut q] = [const { [0.0; 20] }; 4];
    let mut count = 0;
    conjugate(20, &b, &mut x, &mut r, &mut p, &mut q, &mut count);
    for_each_device(|device| {
        let db = device.buffer_from(&b)?;
        let all = [0; 4].map(|_| device.alloc::<f64>(20).expect("memory"));
        let dcount = device.buffer_from(&[0u32])?;
        conjugate::load(device)?
            .call(&device.stream()?, (20, &db, &all[0], &all[1], &all[2], &all[3], &dcount))?;
        assert_eq!((all[0].to_vec()?, dcount.to_vec()?), (x.to_vec(), vec![count]));
        Ok(())
    });
}

#[test]
fn a_search_over_a_graph() {
    let offsets = [0u32, 2, 4, 5, 7, 7, 8];
    let edges = [1u32, 2, 3, 0, 3, 5, 4, 5];
    let (mut level, mut depth) = ([0u32; 6], 0);
    bfs(0, &offsets, &edges, Atomic::of(&mut level), &mut depth);
    for_each_device(|device| {
        let (doff, de) = (device.buffer_from(&offsets)?, device.buffer_from(&edges)?);
        let (dl, dd) = (device.buffer_from(&[0u32; 6])?, device.buffer_from(&[0u32])?);
        bfs::load(device)?.call(&device.stream()?, (0, &doff, &de, &dl, &dd))?;
        assert_eq!((dl.to_vec()?, dd.to_vec()?), (level.to_vec(), vec![depth]));
        Ok(())
    });
}

#[test]
fn labels_and_rows() {
    let (mut x, mut done) = (vec![5, 6], 0);
    early(&mut x, &mut done);
    let y: Vec<f32> = (0..12).map(|i| i as f32 + 0.5).collect();
    let (mut sums, mut normal) = (vec![0.0; 3], vec![0.0; 12]);
    rows(4, &y, &mut sums, &mut normal);
    for_each_device(|device| {
        let stream = device.stream()?;
        let (dx, dd) = (device.buffer_from(&[5u32, 6])?, device.buffer_from(&[0])?);
        early::load(device)?.call(&stream, (&dx, &dd))?;
        assert_eq!(dx.to_vec()?, x);
        let (dy, ds, dn) = (device.buffer_from(&y)?, device.alloc::<f32>(3)?, device.alloc::<f32>(12)?);
        rows::load(device)?.call(&stream, (4, &dy, &ds, &dn))?;
        assert_eq!((ds.to_vec()?, dn.to_vec()?), (sums.clone(), normal.clone()));
        Ok(())
    });
}
