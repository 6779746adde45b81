//! What threads do together, as somebody writes it.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use gridloom::prelude::*;
use gridloom::{
    Atomic, KernelType, Out, SharedView, View2, View3, block, device, grid, host, kernel, thread, warp,
};

use crate::blocks::same_in_blocks;
use crate::harness::same;
use crate::support::for_each_device;

#[kernel]
fn block_transpose(x: &[u32], out: Out<u32>) {
    const N: usize = 8;
    let mut tile = block::shared::<[u32; N], N>([0; N]);
    let rank = thread::rank();
    for (row, line) in tile.each_mine() {
        for (c, v) in line.iter_mut().enumerate() {
            *v = x[(block::x() as usize * N + row) * N + c];
        }
    }
    let tile = block::sync(tile);
    let (r, c) = (rank / N, rank % N);
    if let Some((_, o)) = out.mine() {
        *o = tile[c][r] * 2 + tile[r % N][0];
    }
}

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
struct Best {
    value: f32,
    at: u32,
}
#[device]
impl Best {
    fn better(self, other: Best) -> Best {
        if other.value > self.value || other.value == self.value && other.at < self.at { other } else { self }
    }
}

#[kernel]
fn argmax(x: &[f32], out: Out<u32>) {
    let i = thread::index();
    let own = Best { value: if i < x.len() { x[i] } else { f32::NEG_INFINITY }, at: i as u32 };
    let mut tile = block::shared::<Best, 64>(own);
    if let Some(slot) = tile.mine() {
        *slot = own;
    }
    let mut view = block::sync(tile);
    let mut half = block::threads() / 2;
    while half > 0 {
        let rank = thread::rank();
        let merged = if rank < half { Some(view[rank].better(view[rank + half])) } else { None };
        let mut tile = block::sync(view);
        if let Some(merged) = merged
            && let Some(slot) = tile.mine()
        {
            *slot = merged;
        }
        view = block::sync(tile);
        half /= 2;
    }
    if let Some((_, o)) = out.mine() {
        *o = view[0].at;
    }
}

#[device]
fn blend(tile: &SharedView<f32>, at: usize) -> f32 {
    let (l, r) = (tile[at.saturating_sub(1)], tile[(at + 1).min(tile.len() - 1)]);
    0.25 * l + 0.5 * tile[at] + 0.25 * r
}

#[kernel]
fn blur(x: &[f32], out: Out<f32>) {
    let mut tile = block::shared_dynamic::<f32>(0.0);
    if let Some(v) = tile.mine() {
        *v = x[thread::index()];
    }
    let view = block::sync(tile);
    let v = blend(&view, thread::rank());
    let mut tile = block::sync(view);
    if let Some(slot) = tile.mine() {
        *slot = v;
    }
    let view = block::sync(tile);
    if let Some((_, o)) = out.mine() {
        *o = blend(&view, thread::rank()) + view.len() as f32;
    }
}

#[kernel]
fn warp_prefix(x: &[u32], out: Out<[u32; 6]>) {
    let own = x[thread::index()];
    let mut sum = own;
    let mut d = 1;
    while d < warp::size() {
        let other = warp::shuffle_up(sum, d);
        if warp::lane() >= d {
            sum += other;
        }
        d <<= 1;
    }
    let even = warp::ballot(own % 2 == 0);
    let before = (even & ((1u32 << warp::lane()) - 1)).count_ones();
    let leader = warp::shuffle(own, even.trailing_zeros());
    let mut butterfly = own;
    for k in 0..5 {
        butterfly = butterfly.max(warp::shuffle_xor(butterfly, 1 << k));
    }
    let all = if warp::all(own < 1000) { warp::sum(own) } else { 0 };
    if let Some((_, o)) = out.mine() {
        *o = [sum, even, before, leader, butterfly, all];
    }
}

#[kernel]
fn atomics_of_every_kind(
    x: &[i32],
    counts: &[Atomic<u32>],
    signed: &[Atomic<i64>],
    floats: &[Atomic<f32>],
    out: Out<u32>,
) {
    let Some((i, o)) = out.mine() else { return };
    let v = x[i];
    counts[0].fetch_add(1, Relaxed);
    counts[1].fetch_max(v as u32, AcqRel);
    counts[2].block().fetch_or(1 << (v & 31), Relaxed);
    counts[3].system().fetch_xor(v as u32, SeqCst);
    counts[4].fetch_and(!(1 << (i % 32)), Release);
    signed[0].fetch_min(v as i64, Relaxed);
    signed[1].fetch_sub(v as i64 * 3, Relaxed);
    floats[0].fetch_add(v as f32 * 0.5, Relaxed);
    // A maximum, by comparing and swapping.
    let cell = &counts[5];
    let mut seen = cell.load(Relaxed);
    loop {
        let next = seen.max((v as u32) % 1000);
        let found = cell.compare_and_swap(seen, next, AcqRel);
        if found == seen {
            break;
        }
        seen = found;
    }
    *o = counts.len() as u32 + (counts[6].load(Acquire) == 0) as u32;
}

#[kernel]
fn plane(width: usize, x: &[f32], out: Out<f32>) {
    let view = View2::new(x, width);
    let Some(((c, r), o)) = out.mine_2d(width) else { return };
    let mut sum = 0.0;
    for dr in 0..3usize {
        for dc in 0..3usize {
            if let Some(v) = (r + dr)
                .checked_sub(1)
                .and_then(|r| (c + dc).checked_sub(1).and_then(|c| view.get(c, r).copied()))
            {
                sum += v * (dr * 3 + dc) as f32;
            }
        }
    }
    *o = sum + view.at(c, r) + view.height() as f32;
}

#[kernel]
fn volume(w: usize, h: usize, x: &[i32], out: Out<i32>) {
    if let Some(((i, j, k), o)) = out.mine_3d(w, h) {
        let v = View3::new(x, w, h);
        let up = if k + 1 < v.depth() { v.at(i, j, k + 1) } else { -1 };
        let left = match i {
            0 => 0,
            i => v.at(i - 1, j, k),
        };
        *o = up * 100 + left * 10 + v.get(i, j + 1, k).copied().unwrap_or(7);
    }
}

#[kernel]
fn grid_stride(x: &[u32], out: Out<u32>, sum: &[Atomic<u32>]) {
    let mut total = 0u32;
    for i in (thread::index()..x.len()).step_by(grid::threads()) {
        total = total.wrapping_add(x[i] * (i as u32 + 1));
    }
    let total = block::sum(total);
    if thread::rank() == 0 {
        sum[0].fetch_add(total, Relaxed);
    }
    if let Some((i, o)) = out.mine() {
        *o = total ^ i as u32;
    }
}

#[kernel]
fn own_elements(x: &[f32], out: Out<f32>, copy: Out<f32>) {
    let (Some(mut a), Some(chunk)) = (out.own(), copy.chunk(3)) else { return };
    let i = thread::index();
    a[i] = x[i];
    for k in 0..4 {
        a[i] += k as f32;
    }
    for (k, c) in chunk.iter_mut().enumerate() {
        *c = a[i] * k as f32;
    }
}

#[test]
fn tiles_of_arrays() {
    same_in_blocks!(block_transpose, (0..128).collect::<Vec<u32>>(), 0u32, 128, 2, 64);
}

#[test]
fn structs_in_shared_memory() {
    let x: Vec<f32> = (0..120).map(|i| ((i * 37) % 101) as f32).collect();
    same_in_blocks!(argmax, x, 0u32, 128, 2, 64);
}

#[test]
fn views_are_passed_to_functions() {
    let x: Vec<f32> = (0..32).map(|i| (i % 5) as f32).collect();
    same_in_blocks!(blur, x, 0.0f32, 32, 2, 16, 64);
}

#[test]
fn prefixes_in_a_warp() {
    let x: Vec<u32> = (0..64).map(|i| (i * 7 + 3) % 29).collect();
    same_in_blocks!(warp_prefix, x, [0u32; 6], 64, 1, 64);
}

#[test]
fn atomics_with_scopes() {
    let x: Vec<i32> = (0..100).map(|i| (i * 31) % 77).collect();
    let (mut counts, mut signed, mut floats, mut out) =
        ([0, 0, 0, 0, u32::MAX, 0, 0], [0, 0], [0.0], vec![0; 100]);
    host::run(4, 32, || {
        atomics_of_every_kind(
            &x,
            Atomic::of(&mut counts),
            Atomic::of(&mut signed),
            Atomic::of(&mut floats),
            Out::new(&mut out),
        )
    });
    for_each_device(|device| {
        let (dc, ds) = (device.buffer_from(&[0, 0, 0, 0, u32::MAX, 0, 0])?, device.buffer_from(&[0i64, 0])?);
        let (df, dout, dx) =
            (device.buffer_from(&[0.0f32])?, device.buffer_from(&[0u32; 100])?, device.buffer_from(&x)?);
        let stream = device.stream()?;
        stream.launch(
            &atomics_of_every_kind::load(device)?,
            LaunchConfig::new(4, 32),
            (&dx, &dc, &ds, &df, &dout),
        )?;
        assert_eq!(
            (dc.to_vec()?, ds.to_vec()?, df.to_vec()?, dout.to_vec()?),
            (counts.to_vec(), signed.to_vec(), floats.to_vec(), out.clone())
        );
        Ok(())
    });
}

#[test]
fn planes_and_volumes() {
    let x: Vec<f32> = (0..35).map(|i| (i * i % 11) as f32).collect();
    let mut out = vec![0.0; 35];
    host::run((2, 2), (4, 4), || plane(7, &x, Out::new(&mut out)));
    let y: Vec<i32> = (0..60).map(|i| i * i % 13).collect();
    let mut deep = vec![0; 60];
    host::run((1, 2, 1), (5, 2, 3), || volume(5, 4, &y, Out::new(&mut deep)));
    for_each_device(|device| {
        let stream = device.stream()?;
        let (dx, dout) = (device.buffer_from(&x)?, device.alloc::<f32>(35)?);
        stream.launch(&plane::load(device)?, LaunchConfig::new((2, 2), (4, 4)), (7, &dx, &dout))?;
        assert_eq!(dout.to_vec()?, out);
        let (dy, ddeep) = (device.buffer_from(&y)?, device.alloc::<i32>(60)?);
        stream.launch(
            &volume::load(device)?,
            LaunchConfig::new((1, 2, 1), (5, 2, 3)),
            (5, 4, &dy, &ddeep),
        )?;
        assert_eq!(ddeep.to_vec()?, deep);
        Ok(())
    });
}

#[test]
fn loops_over_the_grid_and_chunks() {
    let x: Vec<u32> = (0..300).collect();
    let (mut out, mut sum) = (vec![0; 64], [0]);
    let (memory, total) = (host::Memory::new(&mut out), Atomic::of(&mut sum));
    host::run_blocks(2, 32, || grid_stride(&x, memory.out(), total));
    drop(memory);
    let y: Vec<f32> = (0..10).map(|i| i as f32).collect();
    let (mut a, mut c) = (vec![0.0; 10], vec![0.0; 28]);
    host::run(3, 4, || own_elements(&y, Out::new(&mut a), Out::new(&mut c)));
    for_each_device(|device| {
        let stream = device.stream()?;
        let (dx, dout, dsum) =
            (device.buffer_from(&x)?, device.alloc::<u32>(64)?, device.buffer_from(&[0u32])?);
        stream.launch(&grid_stride::load(device)?, LaunchConfig::new(2, 32), (&dx, &dout, &dsum))?;
        assert_eq!((dout.to_vec()?, dsum.to_vec()?), (out.clone(), sum.to_vec()));
        let (dy, da, dc) = (device.buffer_from(&y)?, device.alloc::<f32>(10)?, device.alloc::<f32>(28)?);
        stream.launch(&own_elements::load(device)?, LaunchConfig::new(3, 4), (&dy, &da, &dc))?;
        assert_eq!((da.to_vec()?, dc.to_vec()?), (a.clone(), c.clone()));
        Ok(())
    });
}

#[test]
fn a_sorting_network() {
    #[kernel(block(32))]
    fn bitonic(x: &[i32], out: Out<i32>) {
        let own = x[thread::index()];
        let mut tile = block::shared::<i32, 32>(own);
        if let Some(slot) = tile.mine() {
            *slot = own;
        }
        let mut pairs = tile.pairs();
        let mut size = 2;
        while size <= 32 {
            let mut distance = size / 2;
            while distance > 0 {
                pairs.exchange(distance, |i, a, b| {
                    let up = i & size == 0;
                    if (a > b) == up { (b, a) } else { (a, b) }
                });
                distance /= 2;
            }
            size *= 2;
        }
        let tile = block::sync(pairs);
        if let Some((_, o)) = out.mine() {
            *o = tile[thread::rank()];
        }
    }
    let x: Vec<i32> = (0..64).map(|i| (i * 41) % 67 - 30).collect();
    same_in_blocks!(bitonic, x, 0i32, 64, 2, 32);
}

#[test]
fn a_kernel_that_does_nothing() {
    #[kernel]
    fn nothing(_x: &[u32], _: Out<u32>) {}
    same("nothing", |x, out| nothing(x, out), nothing::load, &[1u32, 2]);
}
