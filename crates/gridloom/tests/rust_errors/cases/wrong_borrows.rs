//! What the compiler finds in kernels: moves, borrows and assignments.
use gridloom::{Out, block, kernel, par, program};

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

#[kernel]
fn an_own_element_after_it_moved(out: Out<u32>) {
    let Some((i, element)) = out.mine() else { return };
    let len = out.len();
    //~^ [out]: E0382
    *element = len as u32;
}

#[kernel]
fn a_slice_that_escapes(x: &[u32], out: Out<u32>) {
    let part;
    {
        let local = [1u32, 2, 3];
        part = &local[1..];
        //~^ [local]: E0597
    }
    let first = part[0];
}

#[kernel]
fn two_parts_to_write(out: Out<u32>) {
    let mut all = [1, 2, 3, 4];
    let (a, b) = (&mut all[..2], &mut all[1..]);
    //~^ [all]: E0499
    a[0] = b[0];
}

#[kernel]
fn writes_while_it_reads(out: Out<u32>) {
    let mut all = [1, 2, 3, 4];
    for v in all.iter() {
        all[0] = *v;
        //~^ [all[0] = *v]: E0506
    }
}

#[kernel]
fn an_immutable_element(x: &[u32], out: Out<u32>) {
    for v in x.iter_mut() {
    //~^ [x]: E0596
        *v = 1;
    }
}

#[kernel]
fn keeps_a_view(x: &[u32], out: Out<u32>) {
    let view = block::sync(block::shared::<u32, 32>(x[0]));
    let first = &view[0];
    let tile = block::sync(view);
    //~^ [view]: E0505
    let value = *first;
}

#[program]
fn writes_a_neighbour(x: &mut [u32], y: &[u32]) {
    for i in par(0..x.len()) {
        y[i] = x[i];
        //~^ [y[i] = x[i]]: E0594
    }
}

fn main() {}
