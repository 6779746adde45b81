//! What a callable keeps alive, and for how long.

use std::sync::Arc;

use gridloom::callable::per_element;
use gridloom::prelude::*;

use super::with_graphs;
use crate::support::graph_kernels::read;
use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, GraphKernels, eventually, for_each_device, is_cpu};

const LEN: usize = 1 << 20;

fn in_use(device: &Device) -> u64 {
    device.memory_use().expect("the device tells").0
}

#[test]
fn the_arrays_of_a_call_are_released_by_the_next_one_with_others() {
    for_each_device(|device| {
        if !is_cpu(device) {
            return Ok(());
        }
        let kernels = GraphKernels::new(device)?;
        let increase = kernels.increase.clone();
        let add =
            Callable::with_options(device, with_graphs(), move |g, (x, left): (Param<[i32]>, Param<i32>)| {
                g.do_while(&left, |body| {
                    // The first elements are enough to see that it ran.
                    body.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
                    body.launch(&increase, LaunchConfig::one(), (&left, 1, -1))
                })
            });
        let left = kernels.value(1)?;
        let small = kernels.buffer(&[0; 4])?;
        let before = in_use(device);
        let large = kernels.buffer(&vec![0; LEN])?;
        add.call(&kernels.stream, (&large, &left))?;
        kernels.stream.synchronize()?;
        drop(large);
        // The executable holds it until it gets other arguments.
        assert!(in_use(device) >= before + 4 * LEN as u64);
        left.write(&[1])?;
        add.call(&kernels.stream, (&small, &left))?;
        kernels.stream.synchronize()?;
        eventually("the array of the first call is freed", || in_use(device) < before + 4 * LEN as u64);
        assert_eq!((small.to_vec()?[0], add.stats().builds), (1, 1));
        Ok(())
    });
}

#[test]
fn arrays_dropped_right_after_the_call_live_until_it_has_run() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (affine, out) = (kernels.affine.clone(), kernels.buffer(&[0; 100])?);
        let copy = Callable::with_options(
            device,
            with_graphs(),
            move |g, (out, x): (Param<[i32]>, Param<[i32]>)| {
                g.launch(&affine, per_element(&x), (&out, &x, x.len(), 1, 1))
            },
        );
        for round in 0..20 {
            let x = kernels.buffer(&[round; 100])?;
            copy.call(&kernels.stream, (&out, &x))?;
            x.close();
        }
        assert_eq!(out.to_vec()?, [20; 100]);
        assert_eq!(copy.stats().builds, 1);
        Ok(())
    });
}

#[test]
fn executables_that_calls_no_longer_need_go_and_their_arrays_with_them() {
    for_each_device(|device| {
        if !is_cpu(device) {
            return Ok(());
        }
        let kernels = GraphKernels::new(device)?;
        let increase = kernels.increase.clone();
        let add = Callable::with_options(device, with_graphs(), move |g, (x,): (Param<[i32]>,)| {
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))
        });
        let (small, gate, other) = (kernels.buffer(&[0; 4])?, Gate::closed(), device.stream()?);
        let before = in_use(device);
        // Before the gate: writing it waits for everything enqueued.
        let large = kernels.buffer(&vec![0; LEN])?;
        let open = OpenOnDrop(&gate);
        kernels.stream.callback(gate.waiter())?;
        add.call(&kernels.stream, (&small,))?;
        add.call(&other, (&large,))?;
        drop(large);
        drop(open);
        other.synchronize()?;
        kernels.stream.synchronize()?;
        assert_eq!(add.stats().instances, 2);
        for _ in 0..200 {
            add.call(&kernels.stream, (&small,))?;
        }
        kernels.stream.synchronize()?;
        assert_eq!((add.stats().instances, add.stats().builds), (1, 1));
        eventually("the array of the other stream is freed", || in_use(device) < before + 4 * LEN as u64);
        assert_eq!(small.to_vec()?, [201, 0, 0, 0]);
        Ok(())
    });
}

#[test]
fn reset_and_drop_release_what_calls_held() {
    for_each_device(|device| {
        if !is_cpu(device) {
            return Ok(());
        }
        let kernels = GraphKernels::new(device)?;
        let before = in_use(device);
        for reset in [true, false] {
            let increase = kernels.increase.clone();
            let add = Callable::with_options(device, with_graphs(), move |g, (x,): (Param<[i32]>,)| {
                g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))
            });
            add.call(&kernels.stream, (&kernels.buffer(&vec![0; LEN])?,))?;
            if reset {
                add.reset()?;
            } else {
                drop(add);
            }
            kernels.stream.synchronize()?;
            eventually("everything is freed", || in_use(device) <= before);
        }
        Ok(())
    });
}

#[test]
fn the_closure_and_what_it_owns_go_with_the_callable() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (owned, increase) = (Arc::new(()), kernels.increase.clone());
        let (inside, in_callback) = (owned.clone(), owned.clone());
        let work = Callable::with_options(device, with_graphs(), move |g, (x,): (Param<i32>,)| {
            let (_, kept) = (&inside, in_callback.clone());
            g.callback(move || drop(kept.clone()))?;
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))
        });
        let x = kernels.value(0)?;
        work.call(&kernels.stream, (&x,))?;
        work.call(&kernels.stream, (&x,))?;
        assert_eq!(read(&x)?, 2);
        drop(work);
        eventually("nothing holds what the closure owned", || Arc::strong_count(&owned) == 1);
        Ok(())
    });
}
