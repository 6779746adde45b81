//! What the threads of a block do together: shared memory, barriers, reductions, tiles. As a block
//! of host threads, and on every device.

use gridloom::prelude::*;
use gridloom::{Out, block, host, kernel, thread};

use crate::support::for_each_device;

/// Runs a kernel of one slice and one `Out` as blocks of host threads and on every device, and
/// compares what it writes.
macro_rules! same_in_blocks {
    ($kernel:ident, $x:expr, $zero:expr, $len:expr, $grid:expr, $block:expr) => {
        same_in_blocks!($kernel, $x, $zero, $len, $grid, $block, 0)
    };
    ($kernel:ident, $x:expr, $zero:expr, $len:expr, $grid:expr, $block:expr, $bytes:expr) => {{
        let input = $x;
        let mut expected = vec![$zero; $len];
        let memory = host::Memory::new(&mut expected);
        host::run_blocks_with($grid, $block, $bytes, || $kernel(&input, memory.out()));
        drop(memory);
        for_each_device(|device| {
            let (x, out) = (device.buffer_from(&input)?, device.buffer_from(&vec![$zero; $len])?);
            let stream = device.stream()?;
            let config = LaunchConfig::new($grid, $block).shared($bytes as u32);
            stream.launch(&$kernel::load(device)?, config, (&x, &out))?;
            assert_eq!(out.to_vec()?, expected);
            Ok(())
        });
        expected
    }};
}
pub(crate) use same_in_blocks;

#[test]
fn what_threads_write_all_threads_read_after_a_barrier() {
    #[kernel]
    fn reverse(x: &[u32], out: Out<u32>) {
        let mut tile = block::shared::<u32, 16>(7);
        if let Some(slot) = tile.mine() {
            *slot = x[thread::index()] * 10;
        }
        let tile = block::sync(tile);
        if let Some((_, out)) = out.mine() {
            *out = tile[block::threads() - 1 - thread::rank()] + tile[15];
        }
    }
    let x: Vec<u32> = (0..24).collect();
    let found = same_in_blocks!(reverse, x, 0u32, 24, 2, 12);
    assert_eq!(found[..3], [110 + 7, 100 + 7, 90 + 7]);
}

#[test]
fn a_thread_owns_every_so_many_elements() {
    #[kernel]
    fn halo(x: &[i32], out: Out<i32>) {
        let mut tile = block::shared::<i32, 19>(0);
        let start = block::x() as usize * block::threads();
        for (i, slot) in tile.each_mine() {
            let at = start + i;
            *slot = if at >= 1 && at <= x.len() { x[at - 1] } else { 0 };
        }
        let tile = block::sync(tile);
        let rank = thread::rank();
        if let Some((_, out)) = out.mine() {
            *out = tile[rank] + tile[rank + 1] + tile[rank + 2];
        }
    }
    let x: Vec<i32> = (0..30).map(|i| i * i).collect();
    same_in_blocks!(halo, x, 0i32, 30, 4, 8);
}

#[test]
fn memory_changes_its_phase_again_and_again() {
    #[kernel]
    fn steps(x: &[u32], out: Out<u32>) {
        let mut tile = block::shared::<u32, 8>(0);
        if let Some(slot) = tile.mine() {
            *slot = x[thread::index()];
        }
        for step in 0..5u32 {
            let view = block::sync(tile);
            let next = view[(thread::rank() + 1) % 8].wrapping_mul(3).wrapping_add(step);
            tile = block::sync(view);
            if let Some(slot) = tile.mine() {
                *slot = next;
            }
        }
        let view = block::sync(tile);
        if let Some((_, out)) = out.mine() {
            *out = view[7 - thread::rank()];
        }
    }
    same_in_blocks!(steps, [3u32, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3], 0u32, 16, 2, 8);
}

#[test]
fn two_memories_change_places_at_one_barrier() {
    #[kernel]
    fn exchange(x: &[f32], out: Out<f32>) {
        let mut a = block::shared::<f32, 8>(0.0);
        let mut b = block::sync(block::shared::<f32, 8>(1.0));
        if let Some(slot) = a.mine() {
            *slot = x[thread::index()];
        }
        for _ in 0..3 {
            let (view, mut next) = block::sync((a, b));
            if let Some(slot) = next.mine() {
                *slot = view[thread::rank() ^ 1] + 0.5;
            }
            let (view, mut next) = block::sync((next, view));
            if let Some(slot) = next.mine() {
                *slot = view[thread::rank() ^ 2] * 2.0;
            }
            a = next;
            b = view;
        }
        let (view, _) = block::sync((a, b));
        if let Some((_, out)) = out.mine() {
            *out = view[thread::rank()];
        }
    }
    same_in_blocks!(exchange, [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 0.0f32, 8, 1, 8);
}

#[test]
fn the_launch_says_how_much_dynamic_memory_there_is() {
    #[kernel]
    fn dynamic(x: &[u64], out: Out<u64>) {
        let mut memory = block::shared_dynamic::<u64>(5);
        let len = memory.len() as u64;
        if let Some(slot) = memory.mine() {
            *slot = x[thread::index()];
        }
        let memory = block::sync(memory);
        if let Some((i, out)) = out.mine() {
            *out = memory[(i + 1) % memory.len()] * 100 + len;
        }
    }
    let found = same_in_blocks!(dynamic, [1u64, 2, 3, 4], 0u64, 4, 1, 4, 52);
    assert_eq!(found, [206, 306, 406, 506]);
}

#[test]
fn a_block_owns_a_tile() {
    #[kernel]
    fn sums(x: &[u32], out: Out<u32>) {
        let own = x[thread::index()];
        let total = block::sum(own);
        if let Some(mut tile) = out.tile(2) {
            if let Some(slot) = tile.mine() {
                *slot = total + thread::x();
            }
            let view = block::sync(tile);
            let both = view[0] + view[1];
            let mut tile = block::sync(view);
            if let Some(slot) = tile.mine() {
                *slot += 1000 * both;
            }
        }
    }
    let x: Vec<u32> = (0..60).collect();
    let found = same_in_blocks!(sums, x, 0u32, 6, 3, 20);
    assert_eq!(found[..2], [190 + 381_000, 191 + 381_000]);
}

#[test]
fn reductions_and_scans_of_a_block() {
    #[kernel]
    fn reduce(x: &[f32], out: Out<[f32; 4]>) {
        let own = x[thread::index()];
        let mut all = [block::sum(own), block::min(own), block::max(own), block::scan(own)];
        for k in 0..3 {
            all[0] += block::sum(all[3] * k as f32);
        }
        if let Some((_, out)) = out.mine() {
            *out = all;
        }
    }
    for threads in [1u32, 3, 32, 33, 40, 64, 100] {
        let count = 2 * threads as usize;
        let x: Vec<f32> = (0..count).map(|i| ((i * 37) % 101) as f32 * 0.3 - 7.0).collect();
        let found = same_in_blocks!(reduce, x.clone(), [0.0f32; 4], count, 2, threads);
        let first = &x[..threads as usize];
        assert_eq!(found[0][1], first.iter().copied().fold(f32::INFINITY, f32::min));
        assert_eq!(found[0][2], first.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    }
}

#[test]
fn integer_reductions_of_every_width() {
    #[kernel]
    fn reduce(x: &[i64], out: Out<i64>) {
        let own = x[thread::index()];
        let small = block::sum(own as i8) as i64;
        let wide = block::scan(own) + block::max(own as u16) as i64 + block::min(own as i32) as i64;
        if let Some((_, out)) = out.mine() {
            *out = small * 1_000_003 + wide;
        }
    }
    let x: Vec<i64> = (0..70).map(|i| i * i * 1001 - 500).collect();
    same_in_blocks!(reduce, x, 0i64, 70, 1, 70);
}

#[test]
fn two_dimensional_blocks() {
    #[kernel]
    fn transpose(x: &[u32], out: Out<u32>) {
        let mut tile = block::shared::<u32, 16>(0);
        if let Some(slot) = tile.mine() {
            *slot = x[thread::index_y() * 4 + thread::index()];
        }
        let tile = block::sync(tile);
        if let Some(((x, y), out)) = out.mine_2d(4) {
            *out = tile[x * 4 + y];
        }
    }
    let x: Vec<u32> = (0..16).collect();
    let found = same_in_blocks!(transpose, x, 0u32, 16, 1, (4, 4));
    assert_eq!(found[..4], [0, 4, 8, 12]);
}

#[test]
fn three_dimensional_memory() {
    #[kernel]
    fn volume(x: &[u32], out: Out<u32>) {
        if let Some(((x_at, y, z), out)) = out.mine_3d(3, 2) {
            let view = gridloom::View3::new(x, 3, 2);
            let plane = gridloom::View2::new(x, 3);
            let mut sum = view.at(2 - x_at, y, z) + 100 * plane.at(x_at, y) + 1000 * view.depth() as u32;
            if let Some(above) = view.get(x_at, y, z + 1) {
                sum += *above * 7;
            }
            *out = sum
                + plane.height() as u32
                + plane.width() as u32
                + view.height() as u32 * 5
                + view.width() as u32;
        }
    }
    let x: Vec<u32> = (0..24).collect();
    same_in_blocks!(volume, x, 0u32, 24, (1, 1, 2), (4, 2, 2));
}

#[test]
fn structs_and_arrays_in_shared_memory() {
    #[kernel]
    fn arrays(x: &[i32], out: Out<i32>) {
        let mut tile = block::shared::<[i32; 3], 8>([0, 1, 2]);
        if let Some(slot) = tile.mine() {
            let own = x[thread::index()];
            slot[(own % 3) as usize] = own;
        }
        let tile = block::sync(tile);
        let mut sum = 0;
        for row in tile.iter() {
            for k in 0..3 {
                sum = sum * 3 % 1009 + row[k];
            }
        }
        if let Some((i, out)) = out.mine() {
            *out = sum + tile[i % 8][1];
        }
    }
    same_in_blocks!(arrays, [5, 1, 7, 3, 9, 2, 6, 8], 0i32, 8, 1, 8);
}

#[test]
fn a_barrier_that_some_threads_do_not_reach_is_refused() {
    #[kernel]
    fn branch(x: &[u32]) {
        if x[thread::index()] > 3 {
            block::sync(());
        }
    }
    #[kernel]
    fn early(x: &[u32]) {
        if thread::index() >= x.len() {
            return;
        }
        block::sync(());
    }
    #[kernel]
    fn counted(x: &[u32]) {
        for _ in 0..x[thread::index()] {
            block::sync(());
        }
    }
    #[kernel]
    fn in_one_warp(x: &[u32]) {
        if gridloom::warp::index() == 0 {
            block::sync(());
        }
        let _ = x;
    }
    #[kernel]
    fn fine(x: &[u32]) {
        let tile = block::sync(block::shared::<u32, 4>(2));
        if x[0] > 3 {
            block::sync(());
        }
        for _ in 0..tile[1] {
            block::sync(());
        }
        if block::x() == 1 {
            block::sync(());
        }
    }
    let device = Device::cpu().expect("a CPU");
    fine::load(&device).expect("all threads of a block decide alike");
    let errors =
        [branch::load(&device), early::load(&device), counted::load(&device), in_one_warp::load(&device)];
    for error in errors.map(|loaded| loaded.expect_err("refused")) {
        let text = error.to_string();
        assert!(text.contains("not all threads of a block may come to `block::sync`"), "{text}");
        assert!(text.contains("blocks.rs:"), "{text}");
    }
}

#[test]
fn shared_memory_in_a_loop_is_refused() {
    #[kernel]
    fn again(x: &[u32]) {
        for _ in 0..x[0] {
            let tile = block::shared::<u32, 4>(0);
            block::sync(tile);
        }
    }
    #[kernel]
    fn twice(x: &[u32]) {
        let _ = (block::shared_dynamic::<u32>(x[0]), block::shared_dynamic::<f32>(0.0));
    }
    #[kernel]
    fn swapped(x: &[u32]) {
        let mut a = block::shared::<u32, 4>(x[0]);
        let b = block::shared::<u32, 4>(x[0]);
        if thread::x() == 0 {
            a = b;
        }
        block::sync(a);
    }
    let device = Device::cpu().expect("a CPU");
    for (loaded, says) in [
        (again::load(&device), "declared once, outside of loops"),
        (twice::load(&device), "one dynamic shared memory"),
        (swapped::load(&device), "is given other memory"),
    ] {
        let text = loaded.expect_err("refused").to_string();
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn host_threads_that_do_not_meet_fail_instead_of_waiting() {
    fn fails(kernel: impl Fn() + Sync) -> String {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host::run_blocks(1, 4, kernel)))
            .expect_err("it fails");
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
            .unwrap_or_default()
    }
    let text = fails(|| {
        if thread::x() == 0 {
            block::sync(());
        }
    });
    assert!(text.contains("not all threads of the block come to"), "{text}");
    let text = fails(|| {
        let (a, b) = (block::shared::<u32, 4>(0), block::shared::<u32, 4>(0));
        block::sync(if thread::x() == 0 { a } else { b });
    });
    assert!(text.contains("with different memory"), "{text}");
    let mut memory = [0; 4];
    let out = host::Memory::new(&mut memory);
    let text = fails(|| {
        let _ = (out.out(), out.out());
    });
    assert!(text.contains("twice"), "{text}");
}

#[test]
fn memory_of_a_block_computed_from_indices() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        let start = block::x() as usize * 20;
        let tile = block::sync(block::shared_from_fn::<i32, 20>(|i| {
            if start + i < x.len() { x[start + i] * 2 } else { -1 }
        }));
        if let Some((i, out)) = out.mine() {
            *out = tile[i % 20] * 100 + tile[19 - i % 20];
        }
    }
    same_in_blocks!(program, (0..34).collect::<Vec<i32>>(), 0, 24, 3, 8);
}

#[test]
fn a_scan_with_its_sum() {
    #[kernel]
    fn program(x: &[f32], out: Out<[f32; 2]>) {
        let own = x[thread::index()];
        let mut all = [0.0; 2];
        for k in 1..3 {
            let (up_to, total) = block::scan_and_sum(own * k as f32);
            all[0] += up_to;
            all[1] += total;
        }
        if let Some((_, out)) = out.mine() {
            *out = all;
        }
    }
    for block in [1, 5, 32, 33, 64, 100] {
        let x: Vec<f32> = (0..2 * block).map(|i| 0.1 * i as f32).collect();
        same_in_blocks!(program, x, [0.0f32; 2], 2 * block, 2, block as u32);
    }
}
