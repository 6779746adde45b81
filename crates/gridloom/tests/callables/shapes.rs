//! Functions that compute launch shapes: they are code of the user, which may panic, wait and use
//! the callable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use gridloom::callable::{CallableOptions, shape_of};
use gridloom::prelude::*;

use super::for_each_way;
use crate::support::{GraphKernels, refused};

type Add = Callable<(Param<[i32]>, Scalar<i32>)>;

/// `x += by`, in the shape that `shape` computes.
fn add(
    kernels: &GraphKernels,
    options: &CallableOptions,
    shape: impl Fn(&[usize]) -> LaunchConfig + Clone + Send + Sync + 'static,
) -> Add {
    let increase = kernels.increase.clone();
    Callable::with_options(
        &kernels.device,
        options.clone(),
        move |g, (x, by): (Param<[i32]>, Scalar<i32>)| {
            g.launch(&increase, shape_of([x.len()], shape.clone()), (&x, x.len(), &by))
        },
    )
}

/// Calls a callable whose shapes are computed by a function that does `work` with it, with arrays
/// of several lengths.
#[track_caller]
fn shapes_that(work: impl Fn(&GraphKernels, &Add) + Clone + Send + Sync + 'static) {
    for_each_way(|kernels, options| {
        let place: Arc<OnceLock<(GraphKernels, Add)>> = Arc::default();
        let (inside, work) = (place.clone(), work.clone());
        let it = add(kernels, options, move |lengths| {
            if let Some((kernels, it)) = inside.get() {
                work(kernels, it);
            }
            LaunchConfig::linear(lengths[0])
        });
        let _ = place.set((GraphKernels::new(&kernels.device)?, it.clone()));
        let streams = [kernels.device.stream()?, kernels.device.stream()?];
        for (call, len) in [3, 3, 5, 300, 5, 5].into_iter().enumerate() {
            let x = kernels.buffer(&vec![1; len])?;
            it.call(&streams[call / 3], (&x, call as i32))?;
            assert_eq!(x.to_vec()?, vec![1 + call as i32; len]);
        }
        Ok(())
    });
}

#[test]
fn a_shape_may_look_at_its_callable_and_reset_it() {
    shapes_that(|_, it| {
        assert!(it.graph().is_ok());
        it.reset().unwrap();
    });
}

#[test]
fn a_shape_may_wait_for_a_thread_that_uses_its_callable() {
    shapes_that(|_, it| {
        let it = it.clone();
        std::thread::spawn(move || it.graph().map(drop)).join().unwrap().unwrap();
    });
}

#[test]
fn a_shape_that_calls_a_callable_is_refused() {
    shapes_that(|kernels, it| {
        let x = kernels.buffer(&[1, 2]).unwrap();
        refused(it.call(&kernels.stream, (&x, 1)), ErrorKind::InvalidState, &["closure"]);
    });
}

#[test]
fn a_call_whose_shape_panics_does_nothing() {
    for_each_way(|kernels, options| {
        let fails = Arc::new(AtomicBool::new(false));
        let when = fails.clone();
        let it = add(kernels, options, move |lengths| {
            assert!(!when.load(Ordering::SeqCst), "no shape");
            LaunchConfig::linear(lengths[0])
        });
        let (short, long) = (kernels.buffer(&[1; 4])?, kernels.buffer(&[10; 8])?);
        it.call(&kernels.stream, (&short, 1))?;
        fails.store(true, Ordering::SeqCst);
        for _ in 0..2 {
            let outcome = catch_unwind(AssertUnwindSafe(|| it.call(&kernels.stream, (&long, 2))));
            assert!(outcome.is_err());
        }
        fails.store(false, Ordering::SeqCst);
        assert_eq!((short.to_vec()?, long.to_vec()?), (vec![2; 4], vec![10; 8]));
        it.call(&kernels.stream, (&long, 2))?;
        it.call(&kernels.stream, (&short, 2))?;
        assert_eq!((short.to_vec()?, long.to_vec()?), (vec![4; 4], vec![12; 8]));
        Ok(())
    });
}
