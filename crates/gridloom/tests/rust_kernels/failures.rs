//! What fails a launch: the error names file, line, block and thread.

use gridloom::prelude::*;
use gridloom::{Out, kernel};

use crate::support::{for_each_device, is_cpu};

type Check =
    Kernel<gridloom::kernel::RustParams<(gridloom::kernel::Read<i32>, gridloom::kernel::Write<i32>)>>;

/// Launches a program that fails in the sixth of eight threads, and returns the error.
fn fails_with(load: impl Fn(&Device) -> Result<Check>, line: u32, says: &[&str]) {
    for_each_device(|device| {
        // A failed assertion costs a GPU its context, which the other tests use.
        if !is_cpu(device) {
            return Ok(());
        }
        let kernel = load(device)?;
        let (x, out) = (device.buffer_from(&[1, 2, 3, 4, 5, 0, 7, 8])?, device.buffer_from(&[0; 8])?);
        let stream = device.stream()?;
        stream.launch(&kernel, LaunchConfig::new(2, 4), (&x, &out))?;
        let error = stream.synchronize().expect_err("the kernel fails");
        assert_eq!(error.kind(), ErrorKind::KernelFault);
        let text = error.to_string();
        let place = format!("failures.rs:{line}");
        for word in [&["block (1, 0, 0)", "thread (1, 0, 0)", &place], says].concat() {
            assert!(text.contains(word), "expected {word:?} in: {text}");
        }
        // The device goes on.
        stream.launch(&kernel, LaunchConfig::new(1, 4), (&x, &out))?;
        stream.synchronize()
    });
}

#[test]
fn an_index_out_of_bounds() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = x[if x[i] == 0 { 8 } else { i }];
        }
    }
    fails_with(program::load, line!() - 3, &["index out of bounds", "in program"]);
}

#[test]
fn a_division_by_zero() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = 10 / x[i];
        }
    }
    fails_with(program::load, line!() - 3, &["attempt to divide by zero"]);
}

#[test]
fn a_remainder_by_zero() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = 10 % x[i];
        }
    }
    fails_with(program::load, line!() - 3, &["remainder with a divisor of zero"]);
}

#[test]
fn a_division_that_overflows() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = (if x[i] == 0 { i32::MIN } else { 5 }) / -1;
        }
    }
    fails_with(program::load, line!() - 3, &["attempt to divide with overflow"]);
}

#[test]
fn an_assertion() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            assert!(x[i] > 0, "all must be positive");
            *out = 1;
        }
    }
    fails_with(program::load, line!() - 4, &["all must be positive"]);
}

#[test]
fn an_assertion_without_a_message() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = 1;
            assert_ne!(x[i], 0);
        }
    }
    fails_with(program::load, line!() - 3, &["assertion failed: x[i] != 0"]);
}

#[test]
fn a_panic() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = match x[i] {
                0 => panic!("there is a zero"),
                n => n,
            };
        }
    }
    fails_with(program::load, line!() - 5, &["there is a zero"]);
}

#[test]
fn an_option_without_a_value() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = (x[i] as u32).checked_sub(1).unwrap() as i32;
        }
    }
    fails_with(program::load, line!() - 3, &["called `Option::unwrap()` on a `None` value"]);
}

#[test]
fn an_array_index_in_a_device_function_names_the_line_of_the_function() {
    #[gridloom::device]
    fn pick(i: usize) -> i32 {
        let a = [1, 2, 3];
        a[i]
    }
    const LINE: u32 = line!() - 2;
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            *out = pick(if x[i] == 0 { 3 } else { 0 });
        }
    }
    fails_with(program::load, LINE, &["index out of bounds: `a[i]`", "in pick"]);
}

/// Programs with debug assertions check for overflow, on the host and on the device.
#[cfg(debug_assertions)]
mod overflow {
    use super::*;

    #[test]
    fn a_sum() {
        #[kernel]
        fn program(x: &[i32], out: Out<i32>) {
            if let Some((i, out)) = out.mine() {
                *out = if x[i] == 0 { i32::MAX } else { 5 } + 1;
            }
        }
        fails_with(program::load, line!() - 3, &["attempt to add with overflow"]);
    }

    #[test]
    fn a_difference() {
        #[kernel]
        fn program(x: &[i32], out: Out<i32>) {
            if let Some((i, out)) = out.mine() {
                *out = (x[i] as u32 - 1) as i32;
            }
        }
        fails_with(program::load, line!() - 3, &["attempt to subtract with overflow"]);
    }

    #[test]
    fn a_product_of_narrow_integers() {
        #[kernel]
        fn program(x: &[i32], out: Out<i32>) {
            if let Some((i, out)) = out.mine() {
                let y: u8 = if x[i] == 0 { 200 } else { 1 };
                *out = (y * 2) as i32;
            }
        }
        fails_with(program::load, line!() - 3, &["attempt to multiply with overflow"]);
    }

    #[test]
    fn a_negation() {
        #[kernel]
        fn program(x: &[i32], out: Out<i32>) {
            if let Some((i, out)) = out.mine() {
                *out = -(if x[i] == 0 { i32::MIN } else { 1 });
            }
        }
        fails_with(program::load, line!() - 3, &["attempt to negate with overflow"]);
    }

    #[test]
    fn a_shift() {
        #[kernel]
        fn program(x: &[i32], out: Out<i32>) {
            if let Some((i, out)) = out.mine() {
                *out = 1 << (if x[i] == 0 { 32 } else { 1 });
            }
        }
        fails_with(program::load, line!() - 3, &["attempt to shift left with overflow"]);
    }
}
