//! Calls with other arguments: arrays, lengths and scalars.

use gridloom::callable::{CallableOptions, per_element, shape_of};
use gridloom::prelude::*;

use super::{assert_built_once, for_each_way, with_graphs};
use crate::support::{GraphKernels, for_each_device};

type Add = Callable<(Param<[i32]>, Scalar<i32>)>;

/// Adds a scalar to every element.
fn adder(kernels: &GraphKernels, options: &CallableOptions) -> Add {
    let increase = kernels.increase.clone();
    Callable::with_options(
        &kernels.device,
        options.clone(),
        move |g, (x, by): (Param<[i32]>, Scalar<i32>)| {
            g.launch(&increase, per_element(&x), (&x, x.len(), &by))
        },
    )
}

#[test]
fn the_same_arguments_are_replayed_with_nothing_to_patch() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (add, x) = (adder(&kernels, &with_graphs()), kernels.buffer(&[1, 2, 3])?);
        for _ in 0..5 {
            add.call(&kernels.stream, (&x, 10))?;
        }
        assert_eq!(x.to_vec()?, [51, 52, 53]);
        let stats = add.stats();
        assert_eq!((stats.builds, stats.calls, stats.replays), (1, 5, 4));
        assert_eq!((stats.patched_nodes, stats.bytes_uploaded), (0, 0));
        assert!(stats.last_replayed);
        Ok(())
    });
}

#[test]
fn other_arrays_are_used_and_the_old_ones_left_alone() {
    for_each_way(|kernels, options| {
        let add = adder(kernels, options);
        let (x, y) = (kernels.buffer(&[1, 2])?, kernels.buffer(&[10, 20])?);
        add.call(&kernels.stream, (&x, 1))?;
        add.call(&kernels.stream, (&y, 1))?;
        add.call(&kernels.stream, (&y, 1))?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![2, 3], vec![12, 22]));
        assert_built_once(&add, options, 3);
        Ok(())
    });
}

#[test]
fn launch_shapes_follow_the_lengths_of_arrays() {
    for_each_way(|kernels, options| {
        let add = adder(kernels, options);
        // Up, down, and to what is no multiple of a block.
        for (call, len) in [256, 1024, 3, 1000, 1].into_iter().enumerate() {
            let x = kernels.buffer(&vec![7; len])?;
            add.call(&kernels.stream, (&x, 1))?;
            assert_eq!(x.to_vec()?, vec![8; len]);
            assert_built_once(&add, options, call as u64 + 1);
        }
        Ok(())
    });
}

#[test]
fn a_shape_can_be_computed_from_several_lengths() {
    for_each_way(|kernels, options| {
        let affine = kernels.affine.clone();
        let scale = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (out, x): (Param<[i32]>, Param<[i32]>)| {
                let shape = shape_of([out.len(), x.len()], |lengths| {
                    LaunchConfig::linear(lengths[0].min(lengths[1]))
                });
                g.launch(&affine, shape, (&out, &x, out.len(), 2, 1))
            },
        );
        for len in [5, 700] {
            let (out, x) = (kernels.buffer(&vec![0; len])?, kernels.buffer(&vec![4; len + 1])?);
            scale.call(&kernels.stream, (&out, &x))?;
            assert_eq!(out.to_vec()?, vec![9; len]);
        }
        assert_built_once(&scale, options, 2);
        Ok(())
    });
}

#[test]
fn scalars_change_from_call_to_call() {
    for_each_way(|kernels, options| {
        let (add, x) = (adder(kernels, options), kernels.value(0)?);
        for by in [1, 20, -300, 4000] {
            add.call(&kernels.stream, (&x, by))?;
        }
        assert_eq!(x.to_vec()?, [3721]);
        assert_built_once(&add, options, 4);
        Ok(())
    });
}

#[test]
fn calls_come_from_several_places_and_streams() {
    for_each_way(|kernels, options| {
        let add = adder(kernels, options);
        let (here, there) = (kernels.value(1)?, kernels.value(2)?);
        let other = kernels.device.stream()?;
        let elsewhere = |by: i32| add.call(&other, (&there, by));
        for round in 0..10 {
            add.call(&kernels.stream, (&here, round))?;
            elsewhere(-round)?;
        }
        assert_eq!((here.to_vec()?, there.to_vec()?), (vec![46], vec![-43]));
        assert_built_once(&add, options, 20);
        Ok(())
    });
}

#[test]
fn a_part_of_a_buffer_is_an_array_too() {
    for_each_way(|kernels, options| {
        let (add, x) = (adder(kernels, options), kernels.buffer(&[0; 6])?);
        add.call(&kernels.stream, (&x.slice(0..4)?, 1))?;
        add.call(&kernels.stream, (&x.slice(2..6)?, 10))?;
        add.call(&kernels.stream, (&x.slice(5..6)?, 100))?;
        assert_eq!(x.to_vec()?, [1, 1, 11, 11, 10, 110]);
        assert_built_once(&add, options, 3);
        Ok(())
    });
}

#[test]
fn one_buffer_may_stand_for_two_parameters() {
    for_each_way(|kernels, options| {
        let affine = kernels.affine.clone();
        let scale = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (out, x): (Param<[i32]>, Param<[i32]>)| {
                g.launch(&affine, per_element(&x), (&out, &x, x.len(), 3, 1))
            },
        );
        let (x, y) = (kernels.buffer(&[1, 2])?, kernels.buffer(&[0, 0])?);
        scale.call(&kernels.stream, (&y, &x))?;
        scale.call(&kernels.stream, (&x, &x))?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![4, 7], vec![4, 7]));
        assert_built_once(&scale, options, 2);
        Ok(())
    });
}

#[test]
fn fills_copies_and_fixed_buffers_follow_the_arguments_as_kernels_do() {
    for_each_way(|kernels, options| {
        let (mix, fixed) = (kernels.mix.clone(), kernels.buffer(&[5, 6])?);
        let kept = fixed.clone();
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (a, b): (Param<[i32]>, Param<[i32]>)| {
                g.memset(&a, 1)?;
                g.launch(&mix, per_element(&a), (&a, &fixed, a.len()))?;
                g.memcpy(&b, &a)?;
                g.memcpy(&fixed, &b)
            },
        );
        let (a, b) = (kernels.buffer(&[0, 0])?, kernels.buffer(&[0, 0])?);
        let (c, d) = (kernels.buffer(&[0, 0])?, kernels.buffer(&[0, 0])?);
        work.call(&kernels.stream, (&a, &b))?;
        assert_eq!((a.to_vec()?, b.to_vec()?), (vec![36, 37], vec![36, 37]));
        work.call(&kernels.stream, (&c, &d))?;
        assert_eq!((c.to_vec()?, d.to_vec()?), (vec![67, 68], vec![67, 68]));
        assert_eq!((b.to_vec()?, kept.to_vec()?), (vec![36, 37], vec![67, 68]));
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn only_the_nodes_that_follow_what_changed_are_patched() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let increase = kernels.increase.clone();
        let work = Callable::with_options(
            device,
            with_graphs(),
            move |g, (x, y, by): (Param<[i32]>, Param<[i32]>, Scalar<i32>)| {
                g.launch(&increase, per_element(&x), (&x, x.len(), 1))?;
                g.launch(&increase, per_element(&y), (&y, y.len(), 2))?;
                g.launch(&increase, per_element(&y), (&y, y.len(), &by))
            },
        );
        let (x, y, z) = (kernels.value(0)?, kernels.value(0)?, kernels.value(0)?);
        let mut patched = Vec::new();
        for arguments in [(&x, &y, 1), (&z, &y, 1), (&z, &x, 1), (&z, &x, 5), (&z, &x, 5), (&x, &z, 6)] {
            work.call(&kernels.stream, arguments)?;
            patched.push(work.stats().patched_nodes);
        }
        assert_eq!(patched, [0, 1, 3, 4, 4, 7]);
        // A kernel of these has 8 bytes of address, 4 of length and 4 of scalar.
        assert_eq!(work.stats().bytes_uploaded, 7 * 16);
        assert_eq!((x.to_vec()?, y.to_vec()?, z.to_vec()?), (vec![19], vec![6], vec![12]));
        Ok(())
    });
}

#[test]
fn a_length_can_be_passed_in_every_width() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        // The kernel's parameter is 4 bytes of either sign.
        let bench = crate::support::Bench::new(device, include_str!("../support/graph.ptx"))?;
        let signed: Kernel<(PtrMut<i32>, Len<i32>, i32)> = bench.kernel("increase")?;
        let add = Callable::with_options(device, with_graphs(), move |g, (x,): (Param<[i32]>,)| {
            g.launch(&signed, per_element(&x), (&x, x.len(), 1))
        });
        let x = kernels.buffer(&[1, 2, 3])?;
        add.call(&kernels.stream, (&x,))?;
        assert_eq!(x.to_vec()?, [2, 3, 4]);
        Ok(())
    });
}

#[test]
fn there_can_be_16_parameters_and_none() {
    for_each_way(|kernels, options| {
        type P = Param<i32>;
        type S = Scalar<i32>;
        let increase = kernels.increase.clone();
        let wide = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g,
                  (a, b, c, d, e, f, h, i, j, k, l, m, n, o, p, q): (
                P,
                S,
                P,
                S,
                P,
                S,
                P,
                S,
                P,
                S,
                P,
                S,
                P,
                S,
                P,
                S,
            )| {
                for (x, by) in [(a, b), (c, d), (e, f), (h, i), (j, k), (l, m), (n, o), (p, q)] {
                    g.launch(&increase, LaunchConfig::one(), (&x, 1, &by))?;
                }
                Ok(())
            },
        );
        let x: Vec<Buffer<i32>> = (0..8).map(|_| kernels.value(0)).collect::<Result<_>>()?;
        for _ in 0..2 {
            let call = (&x[0], 1, &x[1], 2, &x[2], 3, &x[3], 4, &x[4], 5, &x[5], 6, &x[6], 7, &x[7], 8);
            wide.call(&kernels.stream, call)?;
        }
        for (place, x) in x.iter().enumerate() {
            assert_eq!(x.to_vec()?, [2 * (place as i32 + 1)]);
        }
        assert_built_once(&wide, options, 2);

        let (increase, x) = (kernels.increase.clone(), x[0].clone());
        let inside = x.clone();
        let nothing = Callable::with_options(&kernels.device, options.clone(), move |g, (): ()| {
            g.launch(&increase, LaunchConfig::one(), (&inside, 1, 10))
        });
        nothing.call(&kernels.stream, ())?;
        nothing.call(&kernels.stream, ())?;
        assert_eq!(x.to_vec()?, [22]);
        assert_built_once(&nothing, options, 2);
        Ok(())
    });
}
