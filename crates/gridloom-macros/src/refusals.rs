//! Error messages for programs that the macros refuse. Errors that only the compiler can find
//! (types, borrows) are not here.

use proc_macro2::TokenStream;

use crate::{derive, function, methods, program};

/// Returns what a kernel of these statements expands to.
fn body(statements: &str) -> String {
    kernel(&format!("fn wrong(x: &[i32], out: Out<i32>) {{ {statements} }}"))
}

fn kernel(source: &str) -> String {
    function::kernel(TokenStream::new(), syn::parse_str(source).expect("it is Rust")).to_string()
}

fn device(source: &str) -> String {
    methods::device(TokenStream::new(), syn::parse_str(source).expect("it is Rust")).to_string()
}

#[track_caller]
fn refused(expansion: &str, says: &str) {
    assert!(expansion.contains("compile_error"), "expected to be refused with {says:?}");
    assert!(expansion.contains(says), "expected {says:?} in what is said: {expansion}");
}

#[test]
fn statements_that_device_code_cannot_have() {
    for (statements, says) in [
        ("let v = vec![1, 2];", "device code has no heap; use an array"),
        ("let v = Vec::new();", "`Vec` is not available: device code has no heap"),
        ("let v = Vec::<i32>::with_capacity(3);", "`Vec` is not available"),
        ("let s = String::from(x);", "`String` is not available"),
        ("let b = Box::new(3);", "`Box` is not available"),
        ("let m = std::collections::HashMap::new();", "`HashMap` is not available"),
        ("let m = std::sync::Mutex::new(3);", "`Mutex` is not available: device code shares memory"),
        ("let r = Ok(3);", "`Ok` is not available: device code has no `Result`"),
        ("let r = Err(3);", "device code has no `Result`"),
        ("match f(x) { Ok(y) => y, Err(_) => 3 };", "device code has no `Result`"),
        ("let s = \"text\";", "device code has no strings"),
        ("let c = 'c';", "device code has no `char`; use a byte"),
        ("let s = b\"bytes\";", "use numbers, or an array"),
        ("let s = format!(\"{}\", 3);", "device code has no strings"),
        ("println!(\"{:x}\", 3);", "device code prints values as `{}`"),
        ("println!(\"{} {}\", 3);", "there is no value for a `{}`"),
        ("println!(\"{}\", 3, 4);", "there is no `{}` for this value"),
        ("println!(TEXT);", "the text to print is a literal"),
        ("eprintln!(\"{}\", 3);", "device code has no output of this kind; use `println!`"),
        ("dbg!(3);", "device code has no output of this kind"),
        ("some_macro!(3);", "device code does not know the macro `some_macro!`"),
        ("std::arch::asm!(\"nop\");", "device code has no inline assembly"),
        ("let y = f(x)?;", "device code has no `?`"),
        ("let y = async { 3 };", "device code cannot be `async`"),
        ("let y = f(x).await;", "device code cannot be `async`"),
        ("let y = x[0].clone();", "values of device code are copied"),
        ("let y = x.to_vec();", "device code has no heap"),
        ("let y = x.iter().min_by_key(|a| **a);", "write a `for` loop"),
        ("for y in x.iter().chain(x) {}", "write a `for` loop"),
        ("let y = u8::try_from(x[0]);", "device code has no `Result`"),
        ("let y: u8 = x[0].try_into();", "device code has no `Result`"),
        ("let ref y = x;", "device code has no `ref` in patterns"),
        ("match x[0] { ref y => {} }", "device code has no `ref` in patterns"),
        ("let (.., b) = (1, 2);", "at the end of a tuple pattern"),
        ("match x[0] { (a | a) => {} }", "write an arm for each"),
        ("let y = x[1..3];", "write `&x[a..b]`"),
        ("fn inner() {}", "move it out of the function"),
        ("let order = x[0].cmp(&7);", "device code has no `Ordering`"),
        ("struct Inner;", "move it out of the function"),
        ("let y = (f)(3)(4);", "by their names"),
        ("let y = wrong(x, out);", "device code cannot be recursive"),
        ("let f = |y: i32| { return y; };", "a closure of device code ends with its last expression"),
        ("let p = &raw const x;", "device code has no raw addresses"),
        ("let y = if (let Some(z) = f()) == true { 1 } else { 2 };", "`let` in the condition"),
        ("let (a, b);", "gives a pattern its value where it is declared"),
        ("#[cfg(unix)] let y = 3;", "write `if cfg!(…) { … }`"),
        ("match x[0] { #[cfg(unix)] 0 => {} _ => {} }", "device code has no `#[cfg]` inside of functions"),
        ("assert!();", "an assertion needs a condition"),
        ("assert_eq!(3);", "this assertion compares two values"),
        ("let y = <Point as Make>::Made { x: 3 };", "names a struct by its path"),
    ] {
        refused(&body(statements), says);
    }
}

#[test]
fn signatures_that_kernels_cannot_have() {
    for (source, says) in [
        ("fn k(x: &mut [f32]) {}", "take `Out<T>`, of which each thread owns its elements"),
        ("fn k(x: &[f32]) -> f32 { 1.0 }", "write its results to an `Out` parameter"),
        ("async fn k() {}", "device code cannot be `async`"),
        ("extern \"C\" fn k() {}", "remove `extern`"),
        ("fn k(f: impl Fn(f32) -> f32) {}", "a kernel cannot take `impl Trait`"),
        ("fn k(f: impl Copy) {}", "name a type parameter"),
        ("fn k<'a>(x: &'a [f32]) {}", "a kernel has no lifetime parameters"),
        ("fn k(self) {}", "a kernel is a function, not a method"),
        ("fn k(&self) {}", "a kernel is a function, not a method"),
    ] {
        refused(&kernel(source), says);
    }
}

#[test]
fn what_cannot_be_device_code() {
    for (source, says) in [
        ("struct Point;", "for functions, traits and `impl` blocks"),
        ("enum Kind {}", "for functions, traits and `impl` blocks"),
        ("trait Shape<T> {}", "a trait of device code has no generic parameters"),
        ("trait Shape { fn area(&self) -> f32 { vec![1]; 3.0 } }", "device code has no heap"),
        ("impl Shape for Disc { fn area(&self) -> f32 { vec![1]; 3.0 } }", "device code has no heap"),
        (
            "impl Mul<f32> for Matrix { type Output = f32; fn mul(self, by: f32) -> f32 { by } }",
            "a result of the type of its left side",
        ),
        ("mod inner {}", "for functions, traits and `impl` blocks"),
        ("async fn f() {}", "device code cannot be `async`"),
        ("fn f() -> impl Copy { 3 }", "name the type"),
        ("fn f() -> ! { loop {} }", "device code cannot return `!`"),
        ("impl Display for Point {}", "device code cannot call `Display`"),
        ("impl [f32] { fn f(&self) {} }", "types that are named by a path"),
        ("impl Point { fn f(&self) -> i32 { vec![1]; 3 } }", "device code has no heap"),
        ("fn f(x: i32) -> i32 { f(x - 1) }", "device code cannot be recursive"),
        ("fn f<T>(x: T) -> T { f::<T>(x) }", "device code cannot be recursive"),
        ("impl PartialEq for Point { fn ne(&self, other: &Self) -> bool { true } }", "remove `ne`"),
    ] {
        refused(&device(source), says);
    }
}

#[test]
fn arguments_of_the_attributes_are_refused() {
    let function = || syn::parse_str("fn k() {}").expect("it is Rust");
    let tokens: TokenStream = "fast".parse().expect("a word");
    for (arguments, says) in [
        ("fast", "`#[kernel]` takes `block(x)`"),
        ("3", "`#[kernel]` takes `block(x)`"),
        ("block()", "`#[kernel]` takes `block(x)`"),
        ("block(1, 2, 3, 4)", "`#[kernel]` takes `block(x)`"),
        ("block", "`#[kernel]` takes `block(x)`"),
        ("block = 32", "`#[kernel]` takes `block(x)`"),
        ("block(\"32\")", "`#[kernel]` takes `block(x)`"),
        ("block(32) fmad", "`#[kernel]` takes `block(x)`"),
        ("fmad = true", "`#[kernel]` takes `block(x)`"),
        ("block(0)", "from 1 to 1024 threads"),
        ("block(64, 32)", "from 1 to 1024 threads"),
        ("block(8), block(8)", "`block` is given twice"),
        ("fmad, fmad", "`fmad` is given twice"),
    ] {
        let arguments: TokenStream = arguments.parse().expect("these are tokens");
        refused(&function::kernel(arguments, function()).to_string(), says);
    }
    refused(
        &methods::device(tokens, syn::Item::Fn(function())).to_string(),
        "`#[device]` takes no arguments",
    );
}

#[test]
fn types_that_are_not_plain() {
    for (source, says) in [
        ("enum Kind { A, B }", "add `#[repr(u8)]`"),
        ("#[repr(C)] enum Kind { A, B }", "add `#[repr(u8)]`"),
        ("enum Kind { A(u8), B }", "add `#[repr(u8)]`"),
        ("#[repr(u8)] enum Kind { A(u8) = 3, B = 4 }", "numbers its variants itself"),
        ("#[repr(u8)] enum Kind<T> { A, B }", "an enum of device code has no generic parameters"),
        ("union Bits { a: u32, b: f32 }", "`KernelType` is derived for structs and enums"),
        ("struct Name<'a> { text: &'a str }", "a `KernelType` is plain data and has no references"),
    ] {
        let error = derive::kernel_type(syn::parse_str(source).expect("it is Rust")).expect_err("refused");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn what_device_code_can_have_is_not_refused() {
    for statements in [
        "let y = match x[0] { 1 | 2 => 3, n @ 4..=5 => n, _ => return };",
        "'a: loop { break 'a; } while let Some(y) = f(x) && y > 3 { continue; }",
        "let Some(y) = f(x) else { panic!(\"no\") }; assert!(y > 3, \"{y}\");",
        "let p = Point { x: 1, ..Point::new(3) }; let Point { x, .. } = p;",
        "for (i, y) in x.iter().enumerate() { if *y > 3 || x[i] < 2 { break; } }",
    ] {
        assert!(!body(statements).contains("compile_error"), "{statements}");
    }
}

#[test]
fn what_programs_cannot_be() {
    let body = |statements: &str| {
        format!("fn p(n: usize, x: &[f32], y: &mut [f32], left: &mut i32) {{ {statements} }}")
    };
    for (source, says) in [
        ("fn p(x: &mut [f32]) -> f32 { 1.0 }".to_owned(), "a program returns nothing"),
        ("fn p<T>(x: &mut [T]) {}".to_owned(), "a program has no generic parameters"),
        ("unsafe fn p(x: &mut [f32]) {}".to_owned(), "a program is safe"),
        ("fn p((a, b): (f32, f32)) {}".to_owned(), "a parameter of a program is a name"),
        ("fn p(&self) {}".to_owned(), "a program is a function, not a method"),
        (body("let z = par(0..n);"), "`par` is the range of a `for` loop"),
        (
            body("while let Some(z) = f(*left) { for i in par(0..n) { y[i] = 1.0; } }"),
            "the device decides by a value: compute a `bool` before",
        ),
        (
            body("if let Some(z) = f(n) { for i in par(0..n) { y[i] = 1.0; } }"),
            "the device decides by a value: compute a `bool` before",
        ),
        (body("loop { for i in par(0..n) { y[i] = 1.0; } }"), "is left by a statement `if … { break; }`"),
        (
            body("while n > 3 { for i in par(0..n) { y[i] = 1.0; } if n > 4 { continue; } }"),
            "is left by a statement `if … { break; }`",
        ),
        (
            body("while n > 3 { for i in par(0..n) { y[i] = 1.0; } if n > 4 { if n > 5 { break; } } }"),
            "is left by a statement `if … { break; }`",
        ),
        (
            body(
                "'a: while n > 3 { while n > 4 { for i in par(0..n) { y[i] = 1.0; } if n > 5 { break 'a; } } }",
            ),
            "is left by a statement `if … { break; }`",
        ),
        (
            body("loop { if n > 4 { for i in par(0..n) { y[i] = 1.0; } break; } }"),
            "a branch that leaves a loop on the device has no parallel loops",
        ),
        (
            body("if n > 4 { return; } for i in par(0..n) { y[i] = 1.0; }"),
            "a program runs to its end: put what follows into an `if`",
        ),
        (
            body("for k in 0..*left { for i in par(0..n) { y[i] = 1.0; } *left -= 1; }"),
            "what this loop goes over changes inside of it: copy the bounds to variables before",
        ),
        (
            body("let mut k = 0; while k < 3 { for i in par(0..n) { y[i] = 1.0; } k += 1; }"),
            "declare it alone and with its type, `let mut k: T = …`",
        ),
        (
            body("let (a, b): (f32, f32) = (x[0], x[1]); for i in par(0..n) { y[i] = a + b; }"),
            "declare it alone and with its type",
        ),
        (
            body("let k: f32; k = x[0]; for i in par(0..n) { y[i] = k; }"),
            "`k` lives on the device from one kernel to the next: give it a value here",
        ),
        (
            body("let k = n; let mut k: f32 = x[0]; for i in par(0..n) { y[i] = k; }"),
            "`k` is the name of another value already",
        ),
        (
            body("let mut k: i32 = x[0]; for i in par(0..n) { k += 1; y[i] = 1.0; }"),
            "all threads would write `k`",
        ),
        (
            "fn p(mut n: usize, y: &mut [f32]) { for i in par(0..n) { y[i] = 1.0; } }".to_owned(),
            "a parameter of a program does not change: remove `mut`",
        ),
        (body("for i in par(0..n) { for j in par(0..n) { y[j] = 1.0; } }"), "cannot be inside of each other"),
        (body("for i in par(0..n) { if i > 3 { return; } y[i] = 1.0; }"), "a parallel loop cannot be left"),
        (body("for i in par(0..n) { *left = 3; y[i] = 1.0; }"), "all threads would write `left`"),
        (body("for (i, j) in par((1..n, 0..n)) { y[j * n + i] = 1.0; }"), "start at 0"),
        (body("for i in par((0..n, 0..n)) { y[i] = 1.0; }"), "names one index for each of its ranges"),
        (
            body("match n { 0 => {} k => for i in par(0..n) { y[i] = k as f32; } }"),
            "has patterns without names",
        ),
        (
            body("let e = f(*left); for i in par(0..n) { y[i] = e as f32; }"),
            "`e` lives on the device from one kernel to the next",
        ),
    ] {
        let function = syn::parse_str(&source).expect("it is Rust");
        refused(&program::program(TokenStream::new(), function).to_string(), says);
    }
}
