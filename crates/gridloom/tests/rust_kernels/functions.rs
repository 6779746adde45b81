//! Device functions, generics, constants and modules.

use gridloom::{Out, device, kernel};

use crate::harness::*;

const OFFSET: i32 = 40;

#[device]
fn square(x: i32) -> i32 {
    x * x
}

#[device]
fn first_above(limit: i32, from: i32) -> i32 {
    let mut n = from;
    loop {
        if n > limit {
            return n;
        }
        n += 7;
        if n == 14 {
            return -1;
        }
    }
}

#[device]
fn advance(x: &mut i32, by: i32) {
    if by == 0 {
        return;
    }
    *x += by;
}

#[device]
fn sum(x: &[i32]) -> i32 {
    let mut total = 0;
    for y in x {
        total += *y;
    }
    total
}

#[device]
fn bounds(x: i32) -> (i32, i32) {
    (x - 1, x + 1)
}

#[device]
fn above(x: i32, limit: i32) -> Option<i32> {
    if x > limit { Some(x - limit) } else { None }
}

mod elsewhere {
    #[gridloom::device]
    pub(crate) fn cube(x: i32) -> i32 {
        super::square(x) * x
    }

    pub(crate) const WEIGHT: i32 = 3;
}

programs! {
    a_device_function(x: i32) -> i32, SMALL, { square(x) + square(2) }
    a_function_of_another_module(x: i32) -> i32, SMALL, { elsewhere::cube(x) * elsewhere::WEIGHT + OFFSET }
    a_function_that_returns_early(x: i32) -> i32, SMALL, { first_above(20, x) }
    a_function_that_changes_its_argument(x: i32) -> i32, SMALL, { let mut n = x; advance(&mut n, 3); advance(&mut n, 0); advance(&mut n, x); n }
    a_function_with_a_tuple(x: i32) -> i32, SMALL, { let (low, high) = bounds(x); low * 100 + high }
    a_function_with_an_option(x: i32) -> i32, SMALL, { match above(x, 4) { Some(y) => y, None => -100 } }
    a_function_in_a_condition(x: i32) -> i32, SMALL, { if above(x, 4).is_some() && square(x) > 50 { 1 } else { 0 } }
}

#[test]
fn a_function_takes_a_slice() {
    #[kernel]
    fn sums(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = sum(&x[..i]) * 2 + sum(x);
        }
    }
    same("sums", |x, out| sums(x, out), sums::load, &SMALL);
}

#[device]
fn repeated<const N: usize>(x: i32) -> i32 {
    let mut a = [0; N];
    for i in 0..N {
        a[i] = x + i as i32;
    }
    a[N - 1] * N as i32
}

#[test]
fn kernels_have_generic_constants() {
    #[kernel]
    fn constant<const N: usize, const ADD: bool>(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = repeated::<N>(x[i]) + repeated::<3>(1) + if ADD { 1000 } else { 0 };
        }
    }
    same("4", |x, out| constant::<4, true>(x, out), constant::load::<4, true>, &SMALL);
    same("9", |x, out| constant::<9, false>(x, out), constant::load::<9, false>, &SMALL);
}

#[test]
fn places_of_threads() {
    use gridloom::prelude::*;
    use gridloom::{block, grid, thread};

    use crate::support::for_each_device;

    #[kernel]
    fn places(out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            *out = thread::x()
                + 10 * block::x()
                + 100 * block::size_x()
                + 10_000 * grid::size_x()
                + (thread::index() == i) as u32
                + thread::y()
                + thread::z()
                + block::y()
                + block::z()
                + block::size_y()
                + block::size_z()
                + grid::size_z()
                + (thread::index_y() + thread::index_z()) as u32;
        }
    }
    let mut expected = vec![0; 20];
    gridloom::host::run(3, 8, || places(Out::new(&mut expected)));
    for_each_device(|device| {
        let out = device.buffer_from(&[0u32; 20])?;
        let stream = device.stream()?;
        stream.launch(&places::load(device)?, LaunchConfig::new(3, 8), (&out,))?;
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}
