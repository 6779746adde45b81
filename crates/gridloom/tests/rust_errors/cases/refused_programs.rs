//! What the attribute of programs refuses.
use gridloom::{par, program};

#[program]
fn with_a_result(x: &mut [f32]) -> f32 {
//~^ [f32]: a program returns nothing; write its results to a `&mut` parameter
    x[0]
}

#[program]
fn generic<T>(x: &mut [T]) {}
//~^ [<]: a program has no generic parameters yet; name the types

#[program]
fn changes_a_parameter(mut n: usize, x: &mut [f32]) {
//~^ [mut]: a parameter of a program does not change: remove `mut`, and copy it to a variable, `let mut n: T = n;`
    for i in par(0..n) {
        x[i] = 1.0;
    }
}

#[program]
fn counts_without_a_type(x: &mut [f32]) {
    let mut pass = 0;
    //~^ [mut]: `pass` lives on the device from one kernel to the next: declare it alone and with its type, `let mut pass: T = …`, or take it as a `&mut T` parameter
    while pass < 3 {
        for i in par(0..x.len()) {
            x[i] += 1.0;
        }
        pass += 1;
    }
}

#[program]
fn returns(n: i32, x: &mut [f32]) {
    if n < 0 {
        return;
        //~^ [return]: a program runs to its end: put what follows into an `if`
    }
    for i in par(0..x.len()) {
        x[i] += 1.0;
    }
}

#[program]
fn continues(n: i32, x: &mut [f32], left: &mut i32) {
    while *left != 0 {
        *left -= 1;
        if n == 3 {
            continue;
            //~^ [continue]: a loop on the device is left by a statement `if … { break; }` of its body, and not continued from within
        }
        for i in par(0..x.len()) {
            x[i] += 1.0;
        }
    }
}

#[program]
fn never_ends(x: &mut [f32]) {
    loop {
    //~^ [loop]: a loop on the device is left by a statement `if … { break; }` of its body
        for i in par(0..x.len()) {
            x[i] += 1.0;
        }
    }
}

#[program]
fn breaks_a_parallel_loop(x: &mut [f32]) {
    for i in par(0..x.len()) {
        if i == 3 {
            break;
            //~^ [break]: a parallel loop cannot be left; use `continue` to go on with the next index
        }
        x[i] += 1.0;
    }
}

#[program]
fn nested(x: &mut [f32]) {
    for i in par(0..x.len()) {
    //~^ [for]: parallel loops cannot be inside of each other; use `par((0..n, 0..m))`, or a plain inner loop
        for j in par(0..3) {
            x[i] += 1.0;
        }
    }
}

#[program]
fn writes_one_value(x: &[f32], sum: &mut f32) {
//~^ [sum]: all threads would write `sum`: use an element for each index, or a parameter `&[Atomic<T>]`
    for i in par(0..x.len()) {
        *sum += x[i];
    }
}

#[program]
fn tests_a_pattern(x: &mut [f32]) {
    if let Some(first) = x.first() {
    //~^ [let]: the device decides by a value: compute a `bool` before, and test that
        for i in par(0..x.len()) {
            x[i] += 1.0;
        }
    }
}

#[program]
fn changes_its_bounds(x: &mut [f32], count: &mut u32) {
    for k in 0..*count {
    //~^ [0]: what this loop goes over changes inside of it: copy the bounds to variables before, `let end: u32 = …;`
        for i in par(0..x.len()) {
            x[i] += 1.0;
        }
        *count -= 1;
    }
}

#[program]
fn keeps_a_range(x: &mut [f32]) {
    let all = par(0..x.len());
    //~^ [let]: `par` is the range of a `for` loop
}

#[program]
fn two_at_once(x: &mut [f32]) {
    let (first, last): (f32, f32) = (x[0], x[1]);
    //~^ [(first, last)]: `first` lives on the device from one kernel to the next: declare it alone and with its type, `let mut first: T = …`, or take it as a `&mut T` parameter
    for i in par(0..x.len()) {
        x[i] = first + last;
    }
}

#[program]
fn from_elsewhere(w: usize, x: &mut [f32]) {
    for (i, j) in par((1..w, 0..w)) {
    //~^ [par]: ranges of a plane or volume start at 0; test the indices inside
        x[j * w + i] = 1.0;
    }
}

#[program]
fn goes_over_elements(x: &mut [f32], y: &[f32]) {
    for v in y {
    //~^ [y]: a loop around parallel loops goes over a range, or over `rev()` or `step_by()` of one: `for k in 0..n`
        for i in par(0..x.len()) {
            x[i] += *v;
        }
    }
}

#[program(fast)]
//~^ [fast]: `#[program]` takes no arguments
fn program_with_an_argument(x: &mut [u32]) {
    for i in par(0..x.len()) {
        x[i] = 1;
    }
}

#[program]
fn a_match_that_binds(mode: u32, x: &mut [u32]) {
    match mode {
    //~^ [mode]: a `match` around parallel loops has patterns without names, of a value that is read without a call, and ends with `_`
        0 => {}
        n => {
            for i in par(0..x.len()) {
                x[i] = n;
            }
        }
    }
}

#[program]
fn adds_to_a_variable(x: &[u32], total: &mut u32) {
    let mut sum: u32 = 0;
    //~^ [sum]: all threads would write `sum`: use an element for each index, or a parameter `&[Atomic<T>]`
    for i in par(0..x.len()) {
        sum += x[i];
    }
    *total = sum;
}

fn main() {}
