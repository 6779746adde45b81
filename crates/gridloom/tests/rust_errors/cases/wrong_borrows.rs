//! What the compiler finds in kernels: moves, borrows and assignments.
use gridloom::{Out, block, kernel};

#[kernel]
fn writes_what_it_reads(x: &[u32]) {
    x[0] = 1;
    //~^ [x[0] = 1]: E0594
}

#[kernel]
fn asks_twice(out: Out<u32>) {
    let first = out.mine();
    let second = out.mine();
    //~^ [out]: E0382
}

#[kernel]
fn asks_in_a_loop(out: Out<u32>) {
    for _ in 0..2 {
        let element = out.mine();
        //~^ [out]: E0382
    }
}

#[kernel]
fn keeps_an_element_across_a_barrier(out: Out<u32>) {
    let mut tile = block::shared::<u32, 32>(0);
    let slot = tile.mine();
    let view = block::sync(tile);
    //~^ [tile]: E0505
    if let Some(slot) = slot {
        *slot = 1;
    }
}

#[kernel]
fn uses_memory_after_the_barrier(out: Out<u32>) {
    let mut tile = block::shared::<u32, 32>(0);
    let view = block::sync(tile);
    tile.mine();
    //~^ [tile]: E0382
}

#[kernel]
fn writes_a_view(out: Out<u32>) {
    let view = block::sync(block::shared::<u32, 32>(0));
    view[0] = 1;
    //~^ [view[0] = 1]: E0594
}

#[kernel]
fn changes_a_constant(x: &[u32], out: Out<u32>) {
    let count = 0;
    for v in x {
        count += *v;
        //~^ [count += *v]: E0384
    }
}

#[kernel]
fn reads_before_it_writes(x: &[u32], out: Out<u32>) {
    let value: u32;
    if x.len() > 3 {
        value = x[0];
    }
    if let Some((_, out)) = out.mine() {
        *out = value;
        //~^ [value]: E0381
    }
}

#[kernel]
fn keeps_a_view_across_a_barrier(out: Out<u32>) {
    let view = block::sync(block::shared::<u32, 32>(0));
    let first = &view[0];
    let tile = block::sync(view);
    //~^ [view]: E0505
    assert!(*first == 0);
}

fn main() {}
