//! What the attribute of kernels and device functions refuses.
use gridloom::{Out, device, kernel};

#[kernel]
fn vector(out: Out<u32>) {
    let values = vec![1, 2, 3];
    //~^ [vec]: device code has no heap; use an array
}

#[kernel]
fn text(out: Out<u32>) {
    let name = "text";
    //~^ ["text"]: device code has no strings, except in `assert!` and `panic!`
}

#[kernel]
fn a_string(out: Out<u32>) {
    let name = String::new();
    //~^ [String]: `String` is not available: device code has no heap; use plain values
}

#[kernel]
fn boxed(x: &[f32], out: Out<f32>) {
    let value = Box::new(x[0]);
    //~^ [Box]: `Box` is not available: device code has no heap; use plain values
}

#[kernel]
fn map(x: &[u32], out: Out<u32>) {
    let seen = std::collections::HashMap::<u32, u32>::new();
    //~^ [HashMap]: `HashMap` is not available: device code has no heap; use arrays
}

#[kernel]
fn result(x: &[u32], out: Out<u32>) {
    let value = x[0].checked_add(1).ok_or(())?;
    //~^ [?]: E0277
    //~^ [x]: device code has no `?`; use `match`, `if let` or `let else`
}

#[kernel]
fn collected(x: &[u32], out: Out<u32>) {
    let all: [u32; 4] = x.iter().copied().collect();
    //~^ [collect]: E0277
    //~^ [collect]: `collect` is not available: device code has no method of this name; write a `for` loop
}

#[kernel]
fn sorted(x: &[u32], out: Out<u32>) {
    let mut few = [x[0], x[1]];
    few.sort();
    //~^ [sort]: `sort` is not available: device code has no method of this name; write a `for` loop
}

#[kernel]
fn cloned(x: &[u32], out: Out<u32>) {
    let value = x[0].clone();
    //~^ [clone]: `clone` is not available: values of device code are copied: write `x`, or `*x` for what a reference leads to
}

#[kernel]
fn printed(x: &[u32], out: Out<u32>) {
    println!("{:?}", x[0]);
}

#[kernel]
fn on_stderr(x: &[u32], out: Out<u32>) {
    eprintln!("{}", x[0]);
    //~^ [eprintln]: device code has no output of this kind; use `println!`
}

#[kernel]
fn formatted(x: &[u32], out: Out<u32>) {
    let text = format!("{}", x[0]);
    //~^ [format]: device code has no strings
}

#[kernel]
fn one_slice_for_all(out: &mut [u32]) {
//~^ [mut]: threads of a kernel would all have the same `&mut`: take `Out<T>`, of which each thread owns its elements
    out[0] = 1;
}

#[kernel]
fn with_a_result(x: &[u32]) -> u32 {
//~^ [u32]: a kernel returns nothing; write its results to an `Out` parameter
    x[0]
}

#[kernel]
fn with_a_lifetime<'a>(x: &'a [u32], out: Out<u32>) {}
//~^ ['a]: a kernel has no lifetime parameters; leave the lifetimes of its references out

#[kernel]
async fn waiting(out: Out<u32>) {}
//~^ [Out<u32>]: E0726
//~^ [async]: device code cannot be `async`: a kernel runs to its end without waiting

#[kernel]
extern "C" fn with_an_abi(out: Out<u32>) {}
//~^ [extern]: device code has no ABI to name; remove `extern`

#[kernel]
fn with_a_function(f: impl Fn(u32) -> u32, out: Out<u32>) {}
//~^ [impl]: a kernel cannot take `impl Trait`; call the function in the kernel, or choose it by a type parameter with a trait
//~^ [impl Fn(u32) -> u32]: E0562

#[kernel(fast)]
//~^ [fast]: `#[kernel]` takes `block(x)`, `block(x, y)` or `block(x, y, z)`, the exact size of its blocks, and `fmad`, which fuses products with sums
fn with_an_unknown_option(out: Out<u32>) {}

#[kernel(block(2048, 2, 2, 2))]
//~^ [block]: `#[kernel]` takes `block(x)`, `block(x, y)` or `block(x, y, z)`, the exact size of its blocks, and `fmad`, which fuses products with sums
fn with_four_axes(out: Out<u32>) {}

#[device]
fn factorial(n: u32) -> u32 {
    if n == 0 { 1 } else { n * factorial(n - 1) }
    //~^ [factorial]: device code cannot be recursive: it is recorded where it is called; use a loop
}

#[kernel]
fn inner_function(x: &[u32], out: Out<u32>) {
    fn twice(v: u32) -> u32 {
    //~^ [fn]: device code cannot declare this inside of a function; move it out of the function
        2 * v
    }
}

#[kernel]
fn inner_struct(out: Out<u32>) {
    struct Pair(u32, u32);
    //~^ [struct]: device code cannot declare this inside of a function; move it out of the function
}

#[kernel]
fn returns_from_a_closure(x: &[u32], out: Out<u32>) {
    let first = |v: u32| {
        if v > 3 {
            return 3;
            //~^ [return]: a closure of device code ends with its last expression
        }
        v
    };
}

#[kernel]
fn by_reference(x: &[u32], out: Out<u32>) {
    let ref first = x[0];
    //~^ [ref]: device code has no `ref` in patterns; match on a value, and refer to its parts with `&`
}

#[kernel]
fn or_with_names(x: &[u32], out: Out<u32>) {
    let value = match (x[0], x[1]) {
        (1, v) | (v, 1) => v,
        //~^ [v]: device code takes no names, structs or references inside `|` patterns; write an arm for each
        _ => 0,
    };
}

#[kernel]
fn a_character(x: &[u8], out: Out<u32>) {
    let is_letter = x[0] == 'a' as u8;
    //~^ ['a']: device code has no `char`; use a byte such as `b'a'`
}

#[kernel]
fn assembly(out: Out<u32>) {
    std::arch::asm!("nop");
    //~^ [std]: device code has no inline assembly
    //~^ [std::arch::asm!("nop")]: E0133
}

#[kernel]
fn an_unknown_macro(out: Out<u32>) {
    my_macro!(3);
    //~^ [my_macro]: cannot find macro `my_macro` in this scope
    //~^ [my_macro]: device code does not know the macro `my_macro!`
}

#[kernel]
fn awaiting(out: Out<u32>) {
    let value = async { 3 };
    //~^ [async]: device code cannot be `async`
}

#[device]
impl std::fmt::Display for Point {
//~^ [std]: device code cannot call `Display`: it calls the operators and traits with `#[device]`; make it an `impl` without a trait
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}

#[device]
impl std::ops::Mul<Point> for f32 {
    type Output = Point;
    //~^ [Point]: an operator of device code has a result of the type of its left side; write a method for this one
    fn mul(self, point: Point) -> Point {
        point
    }
}

#[derive(Clone, Copy)]
struct Point {
    x: f32,
}

#[device]
trait Area<T> {
//~^ [Area]: E0107
//~^ [T]: a trait of device code has no generic parameters
    fn area(&self) -> T;
    //~^ [T]: E0277 `T` is not a type that device code can use
}

#[device]
struct Number(u32);
//~^ [struct]: `#[device]` is for functions, traits and `impl` blocks

#[derive(Clone, Copy, gridloom::KernelType)]
struct Held<'a> {
//~^ ['a]: a `KernelType` is plain data and has no references
    element: &'a u32,
}

#[derive(Clone, Copy, gridloom::KernelType)]
enum Colour {
//~^ [Colour]: an enum of device code says which integer it is: add `#[repr(u8)]`
    Red,
    Green,
}

#[derive(Clone, Copy, gridloom::KernelType)]
union Bits {
//~^ [Bits]: `KernelType` is derived for structs and enums
    word: u32,
    number: f32,
}

#[kernel]
fn greatest_to_write(x: &[u32], out: Out<u32>) {
    let mut few = [x[0], x[1]];
    *few.iter_mut().max().unwrap() = 0;
    //~^ [max]: device code has no `max` of elements to write; write an `if` or a `for` loop
}

#[kernel]
fn assigns_a_part(x: &[u32], out: Out<u32>) {
    let (mut a, mut b);
    //~^ [(mut a, mut b)]: E0282
    //~^ [(mut a, mut b)]: device code gives a pattern its value where it is declared
    (a, ..) = (x[0], x[1], x[2]);
    //~^ [.]: device code has no `..` on the left of `=`; write `_` for each part
}

#[kernel]
fn prints_with_a_format(x: &[f32]) {
    println!("{:.3}", x[0]);
    //~^ [println]: device code prints values as `{}` or `{name}`, without a format
}

#[kernel(block)]
//~^ [block]: `#[kernel]` takes `block(x)`, `block(x, y)` or `block(x, y, z)`, the exact size of its blocks, and `fmad`, which fuses products with sums
fn block_without_a_size(out: Out<u32>) {}

#[kernel(block(0))]
//~^ [0]: a block has from 1 to 1024 threads
fn block_of_nothing(out: Out<u32>) {}

#[kernel(block = 32)]
//~^ [block]: `#[kernel]` takes `block(x)`, `block(x, y)` or `block(x, y, z)`, the exact size of its blocks, and `fmad`, which fuses products with sums
fn block_with_an_equals_sign(out: Out<u32>) {}

#[kernel(block("32"))]
//~^ ["32"]: `#[kernel]` takes `block(x)`, `block(x, y)` or `block(x, y, z)`, the exact size of its blocks, and `fmad`, which fuses products with sums
fn block_of_text(out: Out<u32>) {}

#[kernel(fmad = true)]
//~^ [=]: `#[kernel]` takes `block(x)`, `block(x, y)` or `block(x, y, z)`, the exact size of its blocks, and `fmad`, which fuses products with sums
fn fmad_with_a_value(out: Out<u32>) {}

#[device(inline)]
//~^ [inline]: `#[device]` takes no arguments
fn device_with_an_argument(x: u32) -> u32 {
    x
}

#[device]
fn a_recursive_generic<T: Copy>(x: T, n: u32) -> T {
    if n == 0 { x } else { a_recursive_generic::<T>(x, n - 1) }
    //~^ [a_recursive_generic]: device code cannot be recursive: it is recorded where it is called; use a loop
}

fn main() {}
