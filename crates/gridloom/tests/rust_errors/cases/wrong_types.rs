//! What the compiler finds in kernels: types, names and methods.
use std::sync::atomic::Ordering::Relaxed;

use gridloom::{Atomic, KernelType, Out, block, device, kernel, par, program, thread, warp};

#[kernel]
fn adds_different_types(x: &[u32], out: Out<f32>) {
    if let Some((i, out)) = out.mine() {
        *out = x[i] + 1.0f32;
        //~^ [*]: E0308
        //~^ [+]: E0277
        //~^ [1.0f32]: E0277 an operator of device code cannot take `gridloom::__kernel::V<f32>`
    }
}

#[kernel]
fn indexes_with_a_signed_number(x: &[u32], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        let index = i as i32;
        *out = x[index];
        //~^ [index]: E0277
        //~^ [index]: E0277 device code cannot index a slice with `gridloom::__kernel::V<i32>`
    }
}

#[kernel]
fn misspells(x: &[u32], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        *out = x[j];
        //~^ [j]: E0425
    }
}

#[kernel]
fn calls_a_host_function(x: &[f32], out: Out<f32>) {
    if let Some((i, out)) = out.mine() {
        *out = on_the_host(x[i]);
        //~^ [on_the_host]: E0433
    }
}
fn on_the_host(v: f32) -> f32 {
    v
}

#[kernel]
//~^ [#[kernel]]: E0277 a kernel cannot have a parameter of type `&[char]`
fn takes_a_char(x: &[char], out: Out<u32>) {}
//~^ [&]: E0277 `&[char]` is not a type that device code can use
//~^ [&]: E0277 a kernel cannot have a parameter of type `&[char]`
//~^ [&[char]]: E0277 a kernel cannot have a parameter of type `&[char]`

#[kernel]
//~^ [#[kernel]]: E0277
fn takes_a_truth_value(is_last: bool, out: Out<u32>) {}
//~^ [bool]: E0277
//~^ [bool]: E0277 a kernel cannot have a parameter of type `bool`

#[kernel]
fn uses_wide_numbers(x: &[u64], out: Out<u64>) {
    if let Some((i, out)) = out.mine() {
        *out = (x[i] as u128 >> 64) as u64;
        //~^ [(x[i] as u128 >> 64)]: E0277 device code cannot cast `u128` with `as`
        //~^ [u128]: E0277 `u128` is not a number of device code
        //~^ [x]: E0277
        //~^ [x]: E0277 `u128` is not a type that device code can use
    }
}

#[kernel]
fn calls_an_unknown_method(x: &[f32], out: Out<f32>) {
    if let Some((i, out)) = out.mine() {
        *out = x[i].lerp(1.0);
        //~^ [lerp]: E0599
    }
}

struct Plain {
    value: f32,
}
#[kernel]
//~^ [#[kernel]]: E0277 a kernel cannot have a parameter of type `&[Plain]`
fn takes_a_plain_struct(x: &[Plain], out: Out<f32>) {}
//~^ [&]: E0277 `&[Plain]` is not a type that device code can use
//~^ [&]: E0277 a kernel cannot have a parameter of type `&[Plain]`
//~^ [&[Plain]]: E0277 a kernel cannot have a parameter of type `&[Plain]`

#[kernel]
fn reads_its_result(out: Out<f32>) {
    let first = out[0];
    //~^ [[0]]: E0608
    //~^ [out]: E0599
}

#[kernel]
fn gives_no_value(x: &[u32], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        *out = if x[i] > 3 { x[i] };
        //~^ [*]: E0308
        //~^ [if x[i] > 3 { x[i] }]: E0317
    }
}

#[kernel]
fn forgets_a_case(x: &[u8], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        *out = match x[i] {
        //~^ [x[i]]: E0004
            0 => 1,
            1..=9 => 2,
        };
    }
}

#[kernel]
fn reads_an_atomic(counts: &[Atomic<u32>], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        *out = counts[i] + 1;
        //~^ [+]: E0369
        //~^ [counts]: E0277 an operator of device code cannot take `gridloom_kernel::atomic::AtomicTwin<u32>`
    }
}

#[kernel]
fn reads_before_the_barrier(x: &[u32], out: Out<u32>) {
    let tile = block::shared::<u32, 32>(0);
    let first = tile[0];
    //~^ [[0]]: E0608
    //~^ [tile]: E0599
}

#[kernel]
fn waits_for_a_number(x: &[u32], out: Out<u32>) {
    block::sync(x[0]);
    //~^ [block]: E0277 `block::sync` cannot take `gridloom::__kernel::V<u32>`
    //~^ [block::sync(x[0])]: E0277 `block::sync` cannot take `u32`
    //~^ [x]: E0277 `block::sync` cannot take `gridloom::__kernel::V<u32>`
    //~^ [x[0]]: E0277 `block::sync` cannot take `u32`
}

#[device]
fn min(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}
#[kernel]
fn calls_its_own_minimum(x: &[u32], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        *out = min(x[i], 3);
        //~^ [min]: E0107
        //~^ [min]: E0277 this function has the name of one of the standard library, which device code would call instead
    }
}

#[device]
fn largest<T: Copy>(a: T, b: T) -> T {
    if a > b { a } else { b }
    //~^ [>]: E0369
    //~^ [a]: E0277 device code cannot compare values of type `T`
}

#[device]
trait Shape {
    fn area(&self) -> f32;
}
#[derive(Clone, Copy, KernelType)]
struct Square(f32);
impl Shape for Square {
//~^ [impl Shape for Square]: E0046
    fn area(&self) -> f32 {
        self.0 * self.0
    }
}

#[kernel]
fn compares_floats(x: &[f32], out: Out<f32>) {
    if let Some((_, out)) = out.mine() {
        *out = x.iter().copied().max().unwrap_or(0.0);
        //~^ [max]: E0277
    }
}

#[kernel]
fn names_the_rest_of_an_array(x: &[u32], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        let [first, rest @ ..] = [x[i], 2, 3];
        //~^ [rest]: E0277 device code has no `name @ ..` in patterns of arrays
        *out = first + rest[0];
        //~^ [rest]: E0599
    }
}

#[kernel]
fn strides_behind_an_adaptor(x: &[u32], out: Out<u32>) {
    if let Some((_, out)) = out.mine() {
        for v in x.iter().skip(1).step_by(2) {
        //~^ [step_by]: E0277 device code cannot go over `gridloom::__kernel::Skip<gridloom::__kernel::Iter<gridloom::__kernel::Slice<u32>>>` with a stride
            *out += *v;
        }
    }
}

#[program]
fn uses_an_unknown_name(x: &mut [f32]) {
    for i in par(0..x.len()) {
        x[i] = missing;
        //~^ [missing]: E0425
    }
}

fn launches(device: &gridloom::Device, stream: &gridloom::Stream, out: &gridloom::Buffer<f32>) {
    let kernel = reads_its_result::load(device).unwrap();
    let n = gridloom::LaunchConfig::linear(1);
    stream.launch(&kernel, n, (1.0f64,)).unwrap();
    //~^ [1.0f64]: E0277 `f64` cannot be passed for a kernel parameter of type `gridloom::kernel::Write<f32>`
    stream.launch(&kernel, n, (out, out)).unwrap();
    //~^ [(out, out)]: E0277 these arguments do not fit the kernel's parameters `RustParams<(gridloom::kernel::Write<f32>,)>`
}

#[derive(Clone, Copy, KernelType)]
struct Place {
    x: f32,
    y: f32,
}

#[kernel]
fn compares_structs(out: Out<u32>) {
    let (a, b) = (Place { x: 1.0, y: 2.0 }, Place { x: 1.0, y: 2.0 });
    let same = a == b;
    //~^ [==]: E0369
    //~^ [a]: E0277 device code cannot compare values of type `Place`
}

#[derive(Clone, Copy, PartialEq, KernelType)]
struct Derived {
    x: f32,
}

#[kernel]
fn compares_with_a_derived_equality(out: Out<u32>) {
    let same = Derived { x: 1.0 } == Derived { x: 2.0 };
    //~^ [Derived]: E0277 device code cannot compare values of type `Derived`
}

#[kernel]
fn a_variable_reference(x: &[i32], out: Out<i32>) {
    let (a, b) = (1, 2);
    let mut r = &a;
    //~^ [&]: E0277 `gridloom::__kernel::R<gridloom::__kernel::V<{integer}>>` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
    r = &b;
    //~^ [r]: E0277 `gridloom::__kernel::R<gridloom::__kernel::V<{integer}>>` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
}

#[kernel]
fn a_chosen_reference(x: &[i32], out: Out<i32>) {
    let (a, b) = (1, 2);
    let r = if x.len() > 3 { &a } else { &b };
    //~^ [if]: E0277 `gridloom::__kernel::R<gridloom::__kernel::V<{integer}>>` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
    //~^ [{ &a }]: E0277 `gridloom::__kernel::R<gridloom::__kernel::V<{integer}>>` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
    //~^ [{ &b }]: E0277 `gridloom::__kernel::R<gridloom::__kernel::V<{integer}>>` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
}

#[kernel]
fn an_array_of_tuples(out: Out<i32>) {
    let pairs = [(1, 2.0f32), (3, 4.0)];
    //~^ [[(1, 2.0f32), (3, 4.0)]]: E0277 device code has no arrays of `(gridloom::__kernel::V<{integer}>, gridloom::__kernel::V<f32>)`
}

#[kernel]
fn wide_integers(x: &[u64], out: Out<u64>) {
    let product = x[0] as u128 * x[1] as u128;
    //~^ [product]: E0277 `u128` is not a type that device code can use
    //~^ [u128]: E0277 `u128` is not a number of device code
    //~^ [x]: E0277 `u128` is not a type that device code can use
    //~^ [x]: E0277 device code has no such operator for `u128` and `_`
}

#[kernel]
fn a_character(x: &[u8], out: Out<u8>) {
    let letter = x[0] as char;
    //~^ [char]: E0277 `char` is not a number of device code
    //~^ [letter]: E0277 `char` is not a type that device code can use
    //~^ [x]: E0277 `char` is not a type that device code can use
}

#[kernel]
fn an_atomic_that_is_assigned(counts: &[Atomic<u32>]) {
    counts[0] = 3;
    //~^ [3]: E0308
    //~^ [counts]: E0277 `gridloom_kernel::atomic::AtomicTwin<u32>` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
    //~^ [counts]: E0308
}

#[kernel]
fn an_atomic_float_with_bits(sums: &[Atomic<f32>]) {
    sums[0].fetch_or(1.0, Relaxed);
    //~^ [fetch_or]: E0599
}

#[kernel]
fn an_ordering_that_is_computed(counts: &[Atomic<u32>]) {
    let order = if thread::x() == 0 { Relaxed } else { std::sync::atomic::Ordering::SeqCst };
    //~^ [if]: E0277 `std::sync::atomic::Ordering` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
    //~^ [{ Relaxed }]: E0277 `std::sync::atomic::Ordering` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
    //~^ [{ std::sync::atomic::Ordering::SeqCst }]: E0277 `std::sync::atomic::Ordering` cannot be in a mutable variable of device code, nor chosen by `if` or `match`
    counts[0].fetch_add(1, order);
}

#[kernel]
fn a_float_in_a_warp_vote(x: &[f32]) {
    let any = warp::any(x[0]);
    //~^ [x]: E0308
    //~^ [x[0]]: E0308
}

#[kernel]
fn a_signed_index(x: &[f32], out: Out<f32>) {
    let i: i32 = 3;
    let value = x[i];
    //~^ [i]: E0277
    //~^ [i]: E0277 device code cannot index a slice with `gridloom::__kernel::V<i32>`
}

#[kernel]
fn mixed_types(x: &[f32], out: Out<f32>) {
    let value = x[0] * 2;
    //~^ [*]: E0277
    //~^ [2]: E0277 an operator of device code cannot take `gridloom::__kernel::V<{integer}>`
}

#[kernel]
fn a_match_without_an_arm(x: &[u32], out: Out<u32>) {
    let value = match x[0] {
    //~^ [x[0]]: E0004
        0 => 1,
        1..=9 => 2,
    };
}

#[device]
fn not_a_device_type(text: &str) -> u32 {
//~^ [&]: E0277
//~^ [&]: E0277 `str` is not a type that device code can use
    1
}

#[kernel]
fn calls_a_plain_method(x: &[f32], out: Out<u32>) {
    let value = Place { x: 1.0, y: 2.0 }.plain();
    //~^ [plain]: E0599
}
impl Place {
    fn plain(self) -> f32 {
        self.x + self.y
    }
}

fn main() {}
