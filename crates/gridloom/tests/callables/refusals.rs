//! What a call refuses, and that a refused call changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gridloom::callable::{CallableOptions, per_element, shape_of};
use gridloom::prelude::*;

use super::{assert_built_once, assert_counts, for_each_way, with_graphs};
use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device, refused};

type Copy2 = Callable<(Param<[i32]>, Param<[i32]>, Scalar<i32>)>;

/// `x += by`, then `y = x`: the copy refuses arrays of different lengths after the kernel took
/// them.
fn add_and_copy(kernels: &GraphKernels, options: &CallableOptions) -> Copy2 {
    let increase = kernels.increase.clone();
    Callable::with_options(
        &kernels.device,
        options.clone(),
        move |g, (x, y, by): (Param<[i32]>, Param<[i32]>, Scalar<i32>)| {
            g.launch(&increase, per_element(&x), (&x, x.len(), &by))?;
            g.memcpy(&y, &x)?;
            g.named("copy out")
        },
    )
}

#[test]
fn memory_of_another_device_is_refused_by_its_place() {
    for_each_way(|kernels, options| {
        let work = add_and_copy(kernels, options);
        let (x, foreign) = (kernels.value(0)?, Device::cpu()?.buffer_from(&[0])?);
        let says = ["argument 1", "another device"];
        refused(work.call(&kernels.stream, (&x, &foreign, 1)), ErrorKind::WrongDevice, &says);
        assert_counts(&work, options, 0, 0);
        Ok(())
    });
}

#[test]
fn a_stream_of_another_device_is_refused() {
    for_each_way(|kernels, options| {
        let work = add_and_copy(kernels, options);
        let (x, y) = (kernels.value(0)?, kernels.value(0)?);
        let foreign = Device::cpu()?.stream()?;
        refused(work.call(&foreign, (&x, &y, 1)), ErrorKind::WrongDevice, &["stream", "another device"]);
        Ok(())
    });
}

#[test]
fn a_closed_buffer_is_refused_by_its_place() {
    for_each_way(|kernels, options| {
        let work = add_and_copy(kernels, options);
        let (x, y, closed) = (kernels.value(0)?, kernels.value(0)?, kernels.value(0)?);
        closed.close();
        let says = ["argument 0", "closed"];
        refused(work.call(&kernels.stream, (&closed, &y, 1)), ErrorKind::InvalidHandle, &says);
        work.call(&kernels.stream, (&x, &y, 1))?;
        refused(work.call(&kernels.stream, (&closed, &y, 1)), ErrorKind::InvalidHandle, &says);
        work.call(&kernels.stream, (&x, &y, 1))?;
        assert_eq!((read(&x)?, read(&y)?), (2, 2));
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn a_refused_length_changes_nothing_and_the_callable_stays_usable() {
    for_each_way(|kernels, options| {
        let work = add_and_copy(kernels, options);
        let (x, y) = (kernels.buffer(&[1, 2])?, kernels.buffer(&[0, 0])?);
        let (short, z) = (kernels.buffer(&[0])?, kernels.buffer(&[7, 7])?);
        work.call(&kernels.stream, (&x, &y, 10))?;
        refused(work.call(&kernels.stream, (&z, &short, 100)), ErrorKind::InvalidArgument, &["same length"]);
        // Nothing of the refused call ran or stayed: the kernel before the copy has its old
        // arguments.
        assert_eq!((z.to_vec()?, short.to_vec()?), (vec![7, 7], vec![0]));
        work.call(&kernels.stream, (&x, &y, 10))?;
        assert_eq!((x.to_vec()?, y.to_vec()?, z.to_vec()?), (vec![21, 22], vec![21, 22], vec![7, 7]));
        work.call(&kernels.stream, (&z, &y, 1))?;
        assert_eq!((y.to_vec()?, x.to_vec()?), (vec![8, 8], vec![21, 22]));
        assert_built_once(&work, options, 3);
        Ok(())
    });
}

#[test]
fn unequal_arrays_of_a_copy_name_the_node_and_the_arguments() {
    for_each_way(|kernels, options| {
        let work = add_and_copy(kernels, options);
        let (two, three) = (kernels.buffer(&[1, 2])?, kernels.buffer(&[0; 3])?);
        let says = "argument 0 of the call (2 elements) to argument 1 of the call (3 elements)";
        let refuse = |node: &str| {
            let refusal = work.call(&kernels.stream, (&two, &three, 1));
            refused(refusal, ErrorKind::InvalidArgument, &[node, says, "same length"]);
        };
        // The closure names the node once it is added, which a refused build does not do.
        refuse("memcpy#1");
        work.call(&kernels.stream, (&two, &kernels.buffer(&[0, 0])?, 1))?;
        refuse(if options.graphs { "copy out" } else { "memcpy#1" });
        Ok(())
    });
}

#[test]
fn a_copy_to_memory_of_the_closure_names_the_node_and_the_argument() {
    for_each_way(|kernels, options| {
        let out = kernels.buffer(&[0; 3])?;
        let work =
            Callable::with_options(&kernels.device, options.clone(), move |g, (x,): (Param<[i32]>,)| {
                g.repeat(2, |body| body.memcpy(&out, &x))
            });
        let one = kernels.buffer(&[1])?;
        let says = ["/memcpy#0", "argument 0 of the call (1 element) to a buffer that the closure chose (3"];
        refused(work.call(&kernels.stream, (&one,)), ErrorKind::InvalidArgument, &says);
        work.call(&kernels.stream, (&kernels.buffer(&[1, 2, 3])?,))?;
        refused(work.call(&kernels.stream, (&one,)), ErrorKind::InvalidArgument, &says);
        Ok(())
    });
}

#[test]
fn a_length_that_a_launch_shape_cannot_serve_is_refused() {
    for_each_way(|kernels, options| {
        let increase = kernels.increase.clone();
        let work =
            Callable::with_options(&kernels.device, options.clone(), move |g, (x,): (Param<[i32]>,)| {
                // One block, of a thread for each element.
                let shape = shape_of([x.len()], |lengths| LaunchConfig::new(1, lengths[0] as u32));
                g.launch(&increase, shape, (&x, x.len(), 1))
            });
        let (x, large) = (kernels.buffer(&[0; 8])?, kernels.buffer(&[0; 5000])?);
        work.call(&kernels.stream, (&x,))?;
        let error = work.call(&kernels.stream, (&large,)).expect_err("a block has at most 1024 threads");
        assert!(error.to_string().contains("5000"), "{error}");
        work.call(&kernels.stream, (&x,))?;
        assert_eq!((x.to_vec()?, large.to_vec()?), (vec![2; 8], vec![0; 5000]));
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn several_values_where_one_is_expected_are_refused() {
    for_each_way(|kernels, options| {
        let increase = kernels.increase.clone();
        let work = Callable::with_options(&kernels.device, options.clone(), move |g, (x,): (Param<i32>,)| {
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))
        });
        let two = kernels.buffer(&[0, 0])?;
        let says = ["argument 0", "one value", "slice of one"];
        refused(work.call(&kernels.stream, (&two,)), ErrorKind::InvalidArgument, &says);
        work.call(&kernels.stream, (&two.slice(1..2)?,))?;
        assert_eq!(two.to_vec()?, [0, 1]);
        Ok(())
    });
}

#[test]
fn an_array_without_elements_is_refused() {
    for_each_way(|kernels, options| {
        let work = add_and_copy(kernels, options);
        let (x, y) = (kernels.buffer(&[0; 4])?, kernels.buffer(&[0; 4])?);
        let says = ["argument 0", "no elements"];
        refused(work.call(&kernels.stream, (&x.slice(2..2)?, &y, 1)), ErrorKind::InvalidArgument, &says);
        Ok(())
    });
}

#[test]
fn a_conditional_on_more_than_one_integer_is_refused_at_every_call() {
    for_each_way(|kernels, options| {
        let increase = kernels.increase.clone();
        let work =
            Callable::with_options(&kernels.device, options.clone(), move |g, (left,): (Param<[i32]>,)| {
                g.do_while(&left, |body| body.launch(&increase, LaunchConfig::one(), (&left, 1, -1)))
            });
        let (one, two) = (kernels.value(2)?, kernels.buffer(&[2, 2])?);
        let says = ["one integer", "8"];
        refused(work.call(&kernels.stream, (&two,)), ErrorKind::InvalidArgument, &says);
        work.call(&kernels.stream, (&one,))?;
        refused(work.call(&kernels.stream, (&two,)), ErrorKind::InvalidArgument, &says);
        assert_eq!((one.to_vec()?, two.to_vec()?), (vec![0], vec![2, 2]));
        Ok(())
    });
}

#[test]
fn the_closures_own_error_comes_through_and_leaves_nothing_behind() {
    for_each_way(|kernels, options| {
        let (failing, increase) = (Arc::new(AtomicBool::new(true)), kernels.increase.clone());
        let inside = failing.clone();
        let work = Callable::with_options(&kernels.device, options.clone(), move |g, (x,): (Param<i32>,)| {
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
            if inside.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::NotFound, "no such recipe"));
            }
            Ok(())
        });
        let x = kernels.value(0)?;
        for _ in 0..2 {
            refused(work.call(&kernels.stream, (&x,)), ErrorKind::NotFound, &["no such recipe"]);
        }
        let stats = work.stats();
        assert_eq!((stats.builds, stats.calls, stats.graphs), (0, 0, 0));
        assert_eq!(read(&x)?, 0);
        failing.store(false, Ordering::Relaxed);
        work.call(&kernels.stream, (&x,))?;
        assert_eq!(read(&x)?, 1);
        Ok(())
    });
}

#[test]
fn a_closure_that_panics_leaves_the_callable_usable() {
    for_each_way(|kernels, options| {
        let (failing, increase) = (Arc::new(AtomicBool::new(true)), kernels.increase.clone());
        let inside = failing.clone();
        let work = Callable::with_options(&kernels.device, options.clone(), move |g, (x,): (Param<i32>,)| {
            assert!(!inside.load(Ordering::Relaxed), "this panic is part of the test");
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))
        });
        let x = kernels.value(0)?;
        let call = || work.call(&kernels.stream, (&x,));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).expect_err("the closure panics");
        failing.store(false, Ordering::Relaxed);
        work.call(&kernels.stream, (&x,))?;
        assert_eq!(read(&x)?, 1);
        Ok(())
    });
}

#[test]
fn a_parameter_kept_from_another_run_is_refused() {
    for_each_way(|kernels, options| {
        let kept: Arc<Mutex<Option<Param<[i32]>>>> = Arc::default();
        let (inside, increase) = (kept.clone(), kernels.increase.clone());
        let first = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (_, x): (Scalar<i32>, Param<[i32]>)| {
                *inside.lock().expect("no holder panics") = Some(x);
                g.launch(&increase, per_element(&x), (&x, x.len(), 1))
            },
        );
        let (x, y) = (kernels.value(0)?, kernels.value(0)?);
        first.call(&kernels.stream, (0, &x))?;
        let stolen = kept.lock().expect("no holder panics").expect("the closure ran");
        type Use =
            fn(&Sequence, &Kernel<(PtrMut<i32>, Len<u32>, i32)>, Param<[i32]>, Param<[i32]>) -> Result<()>;
        let uses: [Use; 6] = [
            |g, kernel, own, stolen| g.launch(kernel, per_element(&own), (&stolen, 1, 1)),
            |g, kernel, own, stolen| g.launch(kernel, per_element(&stolen), (&own, 1, 1)),
            |g, kernel, own, stolen| g.launch(kernel, per_element(&own), (&own, stolen.len(), 1)),
            |g, _, _, stolen| g.memset(&stolen, 0),
            |g, _, own, stolen| g.memcpy(&own, &stolen),
            |g, _, _, stolen| g.do_while(&stolen, |_| Ok(())).map(drop),
        ];
        for use_it in uses {
            let increase = kernels.increase.clone();
            let second = Callable::with_options(
                &kernels.device,
                options.clone(),
                move |g, (own,): (Param<[i32]>,)| use_it(g, &increase, own, stolen),
            );
            let says = ["parameter 1", "not of this run"];
            refused(second.call(&kernels.stream, (&y,)), ErrorKind::InvalidArgument, &says);
        }
        Ok(())
    });
}

#[test]
fn a_fill_that_does_not_divide_the_array_is_refused() {
    for_each_way(|kernels, options| {
        let work = Callable::with_options(&kernels.device, options.clone(), |g, (x,): (Param<[u8]>,)| {
            g.memset(&x, 0x0102_0304u32)
        });
        let (even, odd) = (kernels.device.buffer_from(&[0u8; 8])?, kernels.device.buffer_from(&[0u8; 6])?);
        work.call(&kernels.stream, (&even,))?;
        refused(work.call(&kernels.stream, (&odd,)), ErrorKind::InvalidArgument, &["6 bytes", "values of 4"]);
        assert_eq!((even.to_vec()?, odd.to_vec()?), ([4, 3, 2, 1].repeat(2), vec![0; 6]));
        Ok(())
    });
}

#[test]
fn a_call_inside_a_callback_is_refused() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let work = add_and_copy(&kernels, &with_graphs());
        let (x, y) = (kernels.value(0)?, kernels.value(0)?);
        work.call(&kernels.stream, (&x, &y, 1))?;
        let outcome = Arc::new(Mutex::new(None));
        let (inside, callable, other) = (outcome.clone(), work.clone(), device.stream()?);
        let (a, b) = (x.clone(), y.clone());
        kernels.stream.callback(move || {
            *inside.lock().expect("no holder panics") = Some(callable.call(&other, (&a, &b, 1)));
        })?;
        kernels.stream.synchronize()?;
        let outcome = outcome.lock().expect("no holder panics").take().expect("the callback ran");
        refused(outcome, ErrorKind::InvalidState, &["callback"]);
        assert_eq!(read(&x)?, 1);
        Ok(())
    });
}
