//! Loading: what is refused then, and what is recorded once.

use gridloom::prelude::*;
use gridloom::{Out, kernel, thread};

#[test]
fn a_width_that_threads_do_not_agree_on_is_refused() {
    #[kernel]
    fn plane(x: &[u32], out: Out<u32>) {
        let width = if thread::x() == 0 { 4 } else { 5 };
        if let Some((_, out)) = out.mine_2d(width) {
            *out = x[0];
        }
    }
    #[kernel]
    fn fine(x: &[u32], out: Out<u32>) {
        let mut width = x[0] as usize;
        for k in 0..x.len() {
            width += k;
        }
        if let Some((_, out)) = out.mine_2d(width * gridloom::grid::size_x() as usize) {
            *out = x[0];
        }
    }
    #[kernel]
    fn changed(x: &[u32], out: Out<u32>) {
        let mut width = 4;
        while width < thread::index() {
            width += 1;
        }
        if let Some((_, out)) = out.mine_2d(width) {
            *out = x[0];
        }
    }
    let device = Device::cpu().expect("a CPU");
    fine::load(&device).expect("all threads compute the same width");
    for error in [plane::load(&device).expect_err("refused"), changed::load(&device).expect_err("refused")] {
        assert_eq!(error.kind(), ErrorKind::InvalidModule);
        let text = error.to_string();
        assert!(text.contains("the same for all threads") && text.contains("loading.rs:"), "{text}");
    }
}

#[test]
fn memory_that_is_shared_out_in_two_ways_is_refused() {
    #[kernel]
    fn both(out: Out<u32>) {
        if thread::x() == 0 {
            if let Some(out) = out.chunk(4) {
                out[3] = 1;
            }
        } else if let Some((_, out)) = out.mine() {
            *out = 2;
        }
    }
    let error =
        both::load(&Device::cpu().expect("a CPU")).expect_err("thread 0 would own what thread 3 owns");
    assert!(error.to_string().contains("divided in two ways"), "{error}");
}

#[test]
fn functions_that_call_each_other_in_a_circle_are_refused() {
    #[gridloom::device]
    fn even(x: u32) -> bool {
        if x == 0 { true } else { odd(x - 1) }
    }
    #[gridloom::device]
    fn odd(x: u32) -> bool {
        if x == 0 { false } else { even(x - 1) }
    }
    #[kernel]
    fn parity(x: &[u32], out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            *out = even(x[i]) as u32;
        }
    }
    assert!(even(4) && odd(3));
    let error = parity::load(&Device::cpu().expect("a CPU")).expect_err("it has no end");
    assert!(error.to_string().contains("cannot be recursive"), "{error}");
}

#[test]
fn a_kernel_with_unsafe_blocks_is_loaded_with_unsafe() {
    #[kernel]
    fn promise(x: &[u32], out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            // SAFETY: the launch gives as many elements of x as of out.
            *out = unsafe { *x.get_unchecked(i) } + 1;
        }
    }
    let device = Device::cpu().expect("a CPU");
    // SAFETY: the launch below gives as many elements of x as of out.
    let promise = unsafe { promise::load(&device) }.expect("it loads");
    let (x, out) =
        (device.buffer_from(&[1, 2, 3]).expect("memory"), device.buffer_from(&[0; 3]).expect("memory"));
    let stream = device.stream().expect("a stream");
    stream.launch(&promise, LaunchConfig::linear(3), (&x, &out)).expect("launched");
    assert_eq!(out.to_vec().expect("read"), [2, 3, 4]);
}
