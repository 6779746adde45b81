//! Numbers that divide memory, and barriers, that threads would disagree on.

use std::sync::atomic::Ordering::Relaxed;

use gridloom::{Atomic, KernelType, Out, block, device, kernel, thread, warp};

use crate::refused;

const SAME: &str = "must be the same for all threads";
const REACHED: &str = "not all threads of a";

/// Defines kernels that are refused when they are loaded.
macro_rules! refused_kernels {
    ($($name:ident($($param:ident: $ty:ty),*) says $says:expr, { $($body:tt)* })*) => {$(
        #[test]
        fn $name() {
            #[kernel]
            fn attack($($param: $ty),*) { $($body)* }
            refused(attack::load, $says);
        }
    )*};
}

#[derive(Clone, Copy, KernelType)]
#[repr(u8)]
enum Maybe {
    Nothing,
    Width(usize),
}

#[device]
fn width_of(thread: usize) -> usize {
    thread + 1
}

refused_kernels! {
    the_size_of_a_chunk_from_the_thread(out: Out<u32>) says SAME, {
        if let Some(part) = out.chunk(thread::index() + 1) { part[0] = 1; }
    }
    the_size_of_a_chunk_from_a_device_function(out: Out<u32>) says SAME, {
        if let Some(part) = out.chunk(width_of(thread::index())) { part[0] = 1; }
    }
    the_size_of_a_chunk_from_the_block(out: Out<u32>) says SAME, {
        if let Some(part) = out.chunk(block::x() as usize + 1) { part[0] = 1; }
    }
    the_size_of_a_tile_from_the_block(out: Out<u32>) says SAME, {
        if let Some(mut part) = out.tile(block::x() as usize + 1) && let Some(slot) = part.mine() { *slot = 1; }
    }
    a_width_from_memory_at_the_index_of_the_thread(x: &[usize], out: Out<u32>) says SAME, {
        if let Some((_, out)) = out.mine_2d(x[thread::index()]) { *out = 1; }
    }
    a_width_from_an_option_that_one_thread_sets(n: usize, out: Out<u32>) says SAME, {
        let mut width = None;
        for i in 1..n {
            if i == thread::index() { width = Some(i); }
        }
        if let Some((_, out)) = out.mine_2d(width.unwrap()) { *out = 1; }
    }
    a_width_from_an_enum_that_one_thread_sets(n: usize, out: Out<u32>) says SAME, {
        let mut width = Maybe::Nothing;
        for i in 1..n {
            if i == thread::index() { width = Maybe::Width(i); }
        }
        if let Maybe::Width(width) = width && let Some((_, out)) = out.mine_2d(width) { *out = 1; }
    }
    a_width_that_is_set_late(n: usize, out: Out<u32>) says SAME, {
        let width;
        let mut i = 0;
        loop {
            i += 1;
            if i > thread::index() || i > n {
                width = i;
                break;
            }
        }
        if let Some((_, out)) = out.mine_2d(width) { *out = 1; }
    }
    a_width_from_a_loop_that_threads_leave_at_different_times(x: &[u32], out: Out<u32>) says SAME, {
        let mut width = 0;
        for i in 0..x.len() {
            width += 1;
            if x[(i + thread::index()) % x.len()] == 0 { break; }
        }
        if let Some((_, out)) = out.mine_2d(width) { *out = 1; }
    }
    a_width_from_the_value_of_a_labelled_block(out: Out<u32>) says SAME, {
        let width = 'found: {
            if thread::index() % 2 == 0 { break 'found 3; }
            5
        };
        if let Some((_, out)) = out.mine_2d(width) { *out = 1; }
    }
    a_width_from_a_vote(out: Out<u32>) says SAME, {
        let width = warp::ballot(thread::index() % 3 == 0) as usize;
        if let Some((_, out)) = out.mine_2d(width) { *out = 1; }
    }
    a_width_from_an_atomic(counts: &[Atomic<u32>], out: Out<u32>) says SAME, {
        let width = counts[0].fetch_add(1, Relaxed) as usize;
        if let Some((_, out)) = out.mine_2d(width) { *out = 1; }
    }
    a_width_from_shared_memory(out: Out<u32>) says SAME, {
        let tile = block::sync(block::shared_from_fn::<usize, 4>(|i| i + block::x() as usize));
        if let Some((_, out)) = out.mine_2d(tile[0]) { *out = 1; }
    }
    a_width_from_an_array_of_the_thread(out: Out<u32>) says SAME, {
        let mut widths = [1usize, 2, 3, 4];
        widths[0] = thread::index();
        if let Some((_, out)) = out.mine_2d(widths[0]) { *out = 1; }
    }
    rows_of_each_thread(out: Out<u32>) says SAME, {
        for (_, out) in out.each_mine_2d(8, thread::y() as usize + 1) { *out = 1; }
    }
    memory_divided_in_two_ways(c: u32, out: Out<u32>) says "divided in two ways", {
        if c == 0 {
            if let Some((_, out)) = out.mine() { *out = 1; }
        } else if let Some(part) = out.chunk(2) {
            part[0] = 1;
        }
    }
    memory_divided_by_two_widths(out: Out<u32>) says "divided in two ways", {
        if thread::index() == 0 {
            if let Some((_, out)) = out.mine_2d(3) { *out = 1; }
        } else if let Some((_, out)) = out.mine_2d(4) {
            *out = 1;
        }
    }
    memory_divided_by_a_width_that_changes(out: Out<u32>) says "divided in two ways", {
        let mut width = 3;
        if thread::index() == 0 {
            if let Some((_, out)) = out.mine_2d(width) { *out = 1; }
        } else {
            width += 1;
            if let Some((_, out)) = out.mine_2d(width) { *out = 1; }
        }
    }
    memory_divided_into_rows_of_two_counts(out: Out<u32>) says "divided in two ways", {
        if thread::index() == 0 {
            for (_, out) in out.each_mine_2d(8, 1) { *out = 1; }
        } else {
            for (_, out) in out.each_mine_2d(8, 2) { *out = 1; }
        }
    }
    a_barrier_in_a_branch_of_the_thread(out: Out<u32>) says REACHED, {
        if thread::x() < 3 { block::sync(()); }
        if let Some((_, out)) = out.mine() { *out = 1; }
    }
    barriers_in_both_branches(out: Out<u32>) says REACHED, {
        if thread::x() < 3 { block::sync(()); } else { block::sync(()); }
        if let Some((_, out)) = out.mine() { *out = 1; }
    }
    a_barrier_behind_a_return(out: Out<u32>) says REACHED, {
        if thread::x() == 3 { return; }
        block::sync(());
        if let Some((_, out)) = out.mine() { *out = 1; }
    }
    a_barrier_behind_the_end_of_the_memory(out: Out<u32>) says REACHED, {
        let Some((_, out)) = out.mine() else { return };
        block::sync(());
        *out = 1;
    }
    a_barrier_in_a_loop_of_the_thread(out: Out<u32>) says REACHED, {
        for _ in 0..thread::x() { block::sync(()); }
        if let Some((_, out)) = out.mine() { *out = 1; }
    }
    a_barrier_in_a_loop_with_continue(out: Out<u32>) says REACHED, {
        for i in 0..4u32 {
            if i == thread::x() { continue; }
            block::sync(());
        }
        if let Some((_, out)) = out.mine() { *out = 1; }
    }
    a_barrier_in_a_closure_for_each_element(x: &[u32], out: Out<u32>) says REACHED, {
        (0..x[thread::index()]).for_each(|_| { block::sync(()); });
        if let Some((_, out)) = out.mine() { *out = 1; }
    }
    a_barrier_in_the_right_side_of_and(out: Out<u32>) says REACHED, {
        let holds = thread::x() == 0 && block::sum(1u32) > 3;
        if let Some((_, out)) = out.mine() { *out = holds as u32; }
    }
    a_shuffle_in_a_branch_of_the_thread(out: Out<u32>) says REACHED, {
        let value = if thread::x() % 2 == 0 { warp::shuffle_down(1u32, 1) } else { 0 };
        if let Some((_, out)) = out.mine() { *out = value; }
    }
    a_shuffle_behind_a_loop_left_by_a_lane(x: &[u32], out: Out<u32>) says REACHED, {
        let mut i = 0;
        let mut sum = 0;
        while x[i] != thread::x() {
            i += 1;
            sum += warp::sum(i as u32);
        }
        if let Some((_, out)) = out.mine() { *out = sum; }
    }
    an_exchange_in_a_branch_of_the_thread(out: Out<u32>) says REACHED, {
        let mut all = block::shared::<u32, 8>(0).pairs();
        if thread::x() > 2 { all.exchange(1, |_, a, b| (b, a)); }
        let all = block::sync(all);
        if let Some((_, out)) = out.mine() { *out = all[0]; }
    }
    shared_memory_in_a_loop(out: Out<u32>) says "shared memory is declared once", {
        let mut sum = 0;
        for i in 0..3u32 {
            let tile = block::sync(block::shared_from_fn::<u32, 8>(|j| j as u32 + i));
            sum += tile[7];
        }
        if let Some((_, out)) = out.mine() { *out = sum; }
    }
    shared_memory_chosen_by_a_branch(c: u32, out: Out<u32>) says "memory", {
        let a = block::shared::<u32, 8>(0);
        let b = block::shared::<u32, 8>(1);
        let mut chosen = if c == 0 { a } else { b };
        if let Some(slot) = chosen.mine() { *slot = 5; }
        let chosen = block::sync(chosen);
        if let Some((_, out)) = out.mine() { *out = chosen[0]; }
    }
    two_dynamic_memories(out: Out<u32>) says "one dynamic shared memory", {
        let a = block::sync(block::shared_dynamic(0u32));
        let b = block::sync(block::shared_dynamic(0u64));
        if let Some((_, out)) = out.mine() { *out = a.len() as u32 + b.len() as u32; }
    }
}

#[device]
fn even(n: u32) -> bool {
    if n == 0 { true } else { odd(n - 1) }
}

#[device]
fn odd(n: u32) -> bool {
    if n == 0 { false } else { even(n - 1) }
}

#[test]
fn functions_that_call_each_other_are_refused() {
    #[kernel]
    fn attack(out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            *out = even(i as u32) as u32;
        }
    }
    refused(attack::load, "cannot be recursive");
}
