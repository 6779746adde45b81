//! Calls whose arguments break the contract of a kernel.

use gridloom::callable::{CallableOptions, per_element};
use gridloom::prelude::*;

use super::{for_each_way, with_graphs};
use crate::support::{GraphKernels, for_each_device, refused};

const BROKEN: ErrorKind = ErrorKind::ContractViolation;

type Mix = Callable<(Param<[i32]>, Param<[i32]>, Scalar<u32>)>;

/// Mixes as many elements of `y` into `x` as a scalar says.
fn mix(kernels: &GraphKernels, options: &CallableOptions) -> Mix {
    let mix = kernels.mix.clone();
    Callable::with_options(
        &kernels.device,
        options.clone(),
        move |g, (x, y, n): (Param<[i32]>, Param<[i32]>, Scalar<u32>)| {
            g.launch(&mix, LaunchConfig::linear(64), (&x, &y, &n))?;
            g.named("mixed")
        },
    )
}

#[test]
fn a_call_that_breaks_a_contract_is_refused_and_changes_nothing() {
    for_each_way(|kernels, options| {
        let work = mix(kernels, options);
        // Without graphs it is built, and named, at every call.
        let node = if options.graphs { "mixed" } else { "mix" };
        let (x, y, short) = (kernels.buffer(&[0; 4])?, kernels.buffer(&[1; 4])?, kernels.buffer(&[9; 3])?);
        refused(work.call(&kernels.stream, (&x, &y, 5)), BROKEN, &["has 4 elements", "needs 5"]);
        // Later calls go another way than the first, and those with changed arguments yet another.
        for _ in 0..3 {
            work.call(&kernels.stream, (&x, &y, 4))?;
            refused(work.call(&kernels.stream, (&x, &y, 5)), BROKEN, &[node, "has 4", "needs 5"]);
            refused(work.call(&kernels.stream, (&x, &short, 4)), BROKEN, &[node, "has 3", "needs 4"]);
            refused(work.call(&kernels.stream, (&short, &y, 4)), BROKEN, &[node, "has 3", "needs 4"]);
            work.call(&kernels.stream, (&short, &y, 3))?;
            work.call(&kernels.stream, (&y, &short, 2))?;
        }
        kernels.stream.synchronize()?;
        let (mut a, mut b, mut c) = ([0i32; 4], [1i32; 4], [9i32; 3]);
        for _ in 0..3 {
            (0..4).for_each(|i| a[i] = a[i].wrapping_mul(31).wrapping_add(b[i]));
            (0..3).for_each(|i| c[i] = c[i].wrapping_mul(31).wrapping_add(b[i]));
            (0..2).for_each(|i| b[i] = b[i].wrapping_mul(31).wrapping_add(c[i]));
        }
        assert_eq!((x.to_vec()?, y.to_vec()?, short.to_vec()?), (a.to_vec(), b.to_vec(), c.to_vec()));
        Ok(())
    });
}

#[test]
fn the_length_of_one_array_is_no_length_of_another() {
    for_each_way(|kernels, options| {
        let mix = kernels.mix.clone();
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, y): (Param<[i32]>, Param<[i32]>)| g.launch(&mix, per_element(&x), (&x, &y, x.len())),
        );
        let (x, y) = (kernels.buffer(&[0; 8])?, kernels.buffer(&[1; 6])?);
        for _ in 0..3 {
            refused(work.call(&kernels.stream, (&x, &y)), BROKEN, &["has 6 elements", "needs 8"]);
            work.call(&kernels.stream, (&y, &x))?;
            work.call(&kernels.stream, (&x.slice(..6)?, &y))?;
        }
        Ok(())
    });
}

#[test]
fn unequal_arrays_of_a_launch_name_the_node_and_the_arguments() {
    for_each_way(|kernels, options| {
        let mix = kernels.mix.clone();
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (y, _, x): (Param<[i32]>, Scalar<u32>, Param<[i32]>)| {
                g.launch(&mix, per_element(&x), (&x, &y, x.len()))?;
                g.named("mixed")
            },
        );
        let (six, eight) = (kernels.buffer(&[0; 6])?, kernels.buffer(&[1; 8])?);
        let refuse = |node: &str| {
            let says = [
                node,
                "has 6 elements",
                "needs 8",
                "argument 1 of mix is argument 0 of the call",
                "argument 2 of mix is the length of argument 2 of the call",
            ];
            refused(work.call(&kernels.stream, (&six, 0, &eight)), BROKEN, &says);
        };
        refuse("kernel#0 mix");
        work.call(&kernels.stream, (&eight, 0, &six))?;
        refuse(if options.graphs { "mixed" } else { "kernel#0 mix" });
        work.call(&kernels.stream, (&six, 0, &six))?;
        refuse(if options.graphs { "mixed" } else { "kernel#0 mix" });
        Ok(())
    });
}

#[test]
fn arrays_and_lengths_change_together_in_one_call() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let work = mix(&kernels, &with_graphs());
        let arrays: Vec<Buffer<i32>> =
            (1..20).map(|len| kernels.buffer(&vec![1; len])).collect::<Result<_>>()?;
        for (one, other) in arrays.iter().zip(arrays.iter().rev()) {
            let both = one.len().min(other.len()) as u32;
            work.call(&kernels.stream, (one, other, both))?;
            refused(work.call(&kernels.stream, (one, other, both + 1)), BROKEN, &["mixed"]);
        }
        kernels.stream.synchronize()?;
        assert_eq!(work.stats().builds, 1);
        Ok(())
    });
}
