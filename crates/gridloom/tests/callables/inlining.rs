//! Callables made of other callables.

use std::sync::{Arc, OnceLock};

use gridloom::callable::{CallableOptions, per_element};
use gridloom::prelude::*;

use super::{assert_built_once, for_each_way, with_graphs};
use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device, refused};

type Task = Callable<(Param<[i32]>, Scalar<i32>)>;

/// `x = 3 x + by`, for every element.
fn task(kernels: &GraphKernels, options: &CallableOptions) -> Task {
    let affine = kernels.affine.clone();
    let increase = kernels.increase.clone();
    Callable::with_options(&kernels.device, options.clone(), move |g, (x, by)| {
        g.launch(&affine, per_element(&x), (&x, &x, x.len(), 3, 0))?;
        g.launch(&increase, per_element(&x), (&x, x.len(), &by))
    })
}

/// Three of another, one after the other.
fn thrice(kernels: &GraphKernels, options: &CallableOptions, inner: Task) -> Task {
    Callable::with_options(&kernels.device, options.clone(), move |g, (x, by)| {
        for _ in 0..3 {
            g.call(&inner, (x, by))?;
        }
        Ok(())
    })
}

#[test]
fn nine_tasks_from_nested_callables_are_one_graph() {
    for_each_way(|kernels, options| {
        let single = task(kernels, options);
        let nine = thrice(kernels, options, thrice(kernels, options, single.clone()));
        for (len, by) in [(5, 1), (700, 2), (5, 3)] {
            let x = kernels.buffer(&vec![1; len])?;
            nine.call(&kernels.stream, (&x, by))?;
            let expected = (0..9).fold(1i32, |x, _| x.wrapping_mul(3).wrapping_add(by));
            assert_eq!(x.to_vec()?, vec![expected; len]);
        }
        assert_built_once(&nine, options, 3);
        assert_eq!(single.stats().builds, 0);
        if let Some(graph) = nine.graph()? {
            assert_eq!((graph.len(), graph.edges().len()), (18, 17));
        }
        Ok(())
    });
}

#[test]
fn a_callable_can_be_called_in_a_loop_of_another() {
    for_each_way(|kernels, options| {
        let (inner, increase) = (task(kernels, options), kernels.increase.clone());
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, by, left): (Param<[i32]>, Scalar<i32>, Param<i32>)| {
                g.do_while(&left, |body| {
                    body.call(&inner, (x, by))?;
                    body.launch(&increase, LaunchConfig::one(), (&left, 1, -1))
                })
            },
        );
        for (by, passes) in [(1, 3), (5, 2)] {
            let (x, left) = (kernels.buffer(&[1, 1])?, kernels.value(passes)?);
            work.call(&kernels.stream, (&x, by, &left))?;
            let expected = (0..passes).fold(1, |x, _| 3 * x + by);
            assert_eq!((x.to_vec()?, read(&left)?), (vec![expected; 2], 0));
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn a_callable_that_calls_itself_is_refused() {
    for_each_way(|kernels, options| {
        let itself: Arc<OnceLock<Callable<(Param<i32>,)>>> = Arc::default();
        let inside = itself.clone();
        let work = Callable::with_options(&kernels.device, options.clone(), move |g, (x,): (Param<i32>,)| {
            g.call(inside.get().expect("set before the call"), (x,))
        });
        itself.set(work.clone()).expect("set once");
        let x = kernels.value(0)?;
        let says = ["does one call itself?"];
        refused(work.call(&kernels.stream, (&x,)), ErrorKind::InvalidArgument, &says);
        assert_eq!((work.stats().builds, work.stats().graphs), (0, 0));
        Ok(())
    });
}

#[test]
fn a_call_on_a_stream_inside_a_closure_is_refused() {
    for_each_way(|kernels, options| {
        let itself: Arc<OnceLock<Callable<(Param<i32>,)>>> = Arc::default();
        let (inside, stream, y) = (itself.clone(), kernels.stream.clone(), kernels.value(0)?);
        let work = Callable::with_options(&kernels.device, options.clone(), move |_, (_,): (Param<i32>,)| {
            inside.get().expect("set before the call").call(&stream, (&y,))
        });
        itself.set(work.clone()).expect("set once");
        let x = kernels.value(0)?;
        refused(work.call(&kernels.stream, (&x,)), ErrorKind::InvalidState, &["use Sequence::call"]);

        // Calls outside are as before.
        let add = task(kernels, options);
        add.call(&kernels.stream, (&x, 4))?;
        assert_eq!(read(&x)?, 4);
        Ok(())
    });
}

#[test]
fn a_callable_of_another_device_cannot_be_called_inside() {
    for_each_device(|device| {
        let (kernels, other) = (GraphKernels::new(device)?, GraphKernels::new(&Device::cpu()?)?);
        let inner = task(&other, &with_graphs());
        let work = thrice(&kernels, &with_graphs(), inner);
        let x = kernels.value(0)?;
        refused(work.call(&kernels.stream, (&x, 1)), ErrorKind::WrongDevice, &["another device"]);
        Ok(())
    });
}
