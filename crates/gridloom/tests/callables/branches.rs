//! Branches inside callables.

use gridloom::callable::CallableOptions;
use gridloom::prelude::*;

use super::{assert_built_once, for_each_way};
use crate::support::GraphKernels;
use crate::support::graph_kernels::read;

type Chosen = Callable<(Param<i32>, Param<i32>, Scalar<i32>)>;

/// A callable of a value, what decides, and a scalar.
fn callable(
    kernels: &GraphKernels,
    options: &CallableOptions,
    closure: impl Fn(
        &Sequence,
        &Kernel<(PtrMut<i32>, Len<u32>, i32)>,
        Param<i32>,
        Param<i32>,
        Scalar<i32>,
    ) -> Result<()>
    + Send
    + Sync
    + 'static,
) -> Chosen {
    let increase = kernels.increase.clone();
    Callable::with_options(&kernels.device, options.clone(), move |g, (x, which, by)| {
        closure(g, &increase, x, which, by)
    })
}

/// Calls it with a value of 0 and returns what became of it; with other buffers every time.
fn outcome(kernels: &GraphKernels, callable: &Chosen, which: i32, by: i32) -> Result<i32> {
    let (x, which) = (kernels.value(0)?, kernels.value(which)?);
    callable.call(&kernels.stream, (&x, &which, by))?;
    read(&x)
}

#[test]
fn if_nonzero_runs_its_body_or_not() {
    for_each_way(|kernels, options| {
        let work = callable(kernels, options, |g, increase, x, which, by| {
            g.if_nonzero(&which, |then| then.launch(increase, LaunchConfig::one(), (&x, 1, &by)))?;
            g.launch(increase, LaunchConfig::one(), (&x, 1, 100))
        });
        for (which, by) in [(1, 5), (0, 6), (-3, 7)] {
            let expected = 100 + if which == 0 { 0 } else { by };
            assert_eq!(outcome(kernels, &work, which, by)?, expected);
        }
        assert_built_once(&work, options, 3);
        Ok(())
    });
}

#[test]
fn if_else_nonzero_runs_exactly_one_body() {
    for_each_way(|kernels, options| {
        let work = callable(kernels, options, |g, increase, x, which, by| {
            g.if_else_nonzero(
                &which,
                |then| then.launch(increase, LaunchConfig::one(), (&x, 1, &by)),
                |other| other.launch(increase, LaunchConfig::one(), (&x, 1, -1)),
            )
        });
        for (which, by, expected) in [(1, 5, 5), (0, 6, -1), (2, 7, 7), (0, 8, -1)] {
            assert_eq!(outcome(kernels, &work, which, by)?, expected);
        }
        assert_built_once(&work, options, 4);
        Ok(())
    });
}

#[test]
fn switch_on_runs_the_case_with_the_number_or_none() {
    for_each_way(|kernels, options| {
        let work = callable(kernels, options, |g, increase, x, which, by| {
            g.switch_on(&which, 3, |number, case| {
                case.launch(increase, LaunchConfig::one(), (&x, 1, &by))?;
                case.launch(increase, LaunchConfig::one(), (&x, 1, 10 * number as i32))
            })
        });
        for (which, by, expected) in [(0, 1, 1), (1, 2, 12), (2, 3, 23), (3, 4, 0), (-1, 5, 0)] {
            assert_eq!(outcome(kernels, &work, which, by)?, expected);
        }
        assert_built_once(&work, options, 5);
        Ok(())
    });
}

#[test]
fn a_branch_inside_a_loop_is_decided_at_every_pass() {
    for_each_way(|kernels, options| {
        let increase = kernels.increase.clone();
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, odd, left): (Param<i32>, Param<i32>, Param<i32>)| {
                g.do_while(&left, |body| {
                    body.if_else_nonzero(
                        &odd,
                        |then| {
                            then.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
                            then.launch(&increase, LaunchConfig::one(), (&odd, 1, -1))
                        },
                        |other| {
                            other.launch(&increase, LaunchConfig::one(), (&x, 1, 100))?;
                            other.launch(&increase, LaunchConfig::one(), (&odd, 1, 1))
                        },
                    )?;
                    body.launch(&increase, LaunchConfig::one(), (&left, 1, -1))
                })
            },
        );
        for (passes, expected) in [(5, 302), (2, 101)] {
            let (x, odd, left) = (kernels.value(0)?, kernels.value(0)?, kernels.value(passes)?);
            work.call(&kernels.stream, (&x, &odd, &left))?;
            assert_eq!(read(&x)?, expected);
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}
