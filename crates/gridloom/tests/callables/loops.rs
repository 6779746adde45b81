//! Loops inside callables: counters, flags, bounds, nesting, and work before and after.

use gridloom::callable::{Sequence, per_element};
use gridloom::prelude::*;

use super::{assert_built_once, for_each_way};
use crate::support::GraphKernels;
use crate::support::graph_kernels::read;

/// `x += by`, for one integer.
fn bump(g: &Sequence, kernels: &Kernels, x: Param<i32>, by: i32) -> Result<()> {
    g.launch(&kernels.increase, LaunchConfig::one(), (&x, 1, by))
}

/// What the closures of callables own.
#[derive(Clone)]
struct Kernels {
    increase: Kernel<(PtrMut<i32>, Len<u32>, i32)>,
    affine: Kernel<(PtrMut<i32>, Ptr<i32>, Len<u32>, i32, i32)>,
    mix: Kernel<(PtrMut<i32>, Ptr<i32>, Len<u32>)>,
    below: Kernel<(PtrMut<i32>, Ptr<i32>, i32)>,
}

fn owned(kernels: &GraphKernels) -> Kernels {
    Kernels {
        increase: kernels.increase.clone(),
        affine: kernels.affine.clone(),
        mix: kernels.mix.clone(),
        below: kernels.below.clone(),
    }
}

#[test]
fn do_while_runs_until_its_counter_is_0() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let count = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, left): (Param<i32>, Param<i32>)| {
                g.do_while(&left, |body| {
                    bump(body, &k, x, 1)?;
                    bump(body, &k, left, -1)
                })
            },
        );
        let (x, left) = (kernels.value(0)?, kernels.value(5)?);
        count.call(&kernels.stream, (&x, &left))?;
        assert_eq!((read(&x)?, read(&left)?), (5, 0));
        left.write(&[10])?;
        count.call(&kernels.stream, (&x, &left))?;
        assert_eq!((read(&x)?, read(&left)?), (15, 0));
        assert_built_once(&count, options, 2);
        Ok(())
    });
}

#[test]
fn do_while_runs_once_where_the_value_is_0_from_the_start() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let once = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, flag): (Param<i32>, Param<i32>)| g.do_while(&flag, |body| bump(body, &k, x, 1)),
        );
        let (x, flag) = (kernels.value(0)?, kernels.value(0)?);
        once.call(&kernels.stream, (&x, &flag))?;
        assert_eq!(read(&x)?, 1);
        Ok(())
    });
}

#[test]
fn while_nonzero_may_make_no_pass_at_all() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let count = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, left): (Param<i32>, Param<i32>)| {
                g.while_nonzero(&left, |body| {
                    bump(body, &k, x, 1)?;
                    bump(body, &k, left, -1)
                })
            },
        );
        for passes in [0, 3, 0] {
            let (x, left) = (kernels.value(0)?, kernels.value(passes)?);
            count.call(&kernels.stream, (&x, &left))?;
            assert_eq!((read(&x)?, read(&left)?), (passes, 0));
        }
        assert_built_once(&count, options, 3);
        Ok(())
    });
}

#[test]
fn a_flag_and_a_threshold_end_a_loop_as_a_counter_does() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let grow = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, flag, bound): (Param<i32>, Param<i32>, Scalar<i32>)| {
                g.do_while(&flag, |body| {
                    bump(body, &k, x, 7)?;
                    body.launch(&k.below, LaunchConfig::one(), (&flag, &x, &bound))
                })
            },
        );
        let (x, flag) = (kernels.value(0)?, kernels.value(1)?);
        grow.call(&kernels.stream, (&x, &flag, 30))?;
        assert_eq!((read(&x)?, read(&flag)?), (35, 0));
        grow.call(&kernels.stream, (&x, &flag, 50))?;
        assert_eq!((read(&x)?, read(&flag)?), (56, 0));
        assert_built_once(&grow, options, 2);
        Ok(())
    });
}

#[test]
fn three_kernels_in_a_body_run_in_order_at_every_pass() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, y, left): (Param<[i32]>, Param<[i32]>, Param<i32>)| {
                g.do_while(&left, |body| {
                    body.launch(&k.affine, per_element(&x), (&y, &x, x.len(), 2, 1))?;
                    body.launch(&k.mix, per_element(&x), (&x, &y, x.len()))?;
                    bump(body, &k, left, -1)
                })
            },
        );
        for (len, passes) in [(4, 3), (300, 5)] {
            let (x, y, left) =
                (kernels.buffer(&vec![1; len])?, kernels.buffer(&vec![0; len])?, kernels.value(passes)?);
            work.call(&kernels.stream, (&x, &y, &left))?;
            let expected = (0..passes).fold(1i32, |x, _| x.wrapping_mul(31).wrapping_add(2 * x + 1));
            assert_eq!(x.to_vec()?, vec![expected; len]);
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn another_counter_at_every_call_needs_no_other_graph() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let count = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, left): (Param<i32>, Param<i32>)| {
                g.do_while(&left, |body| {
                    bump(body, &k, x, 1)?;
                    bump(body, &k, left, -1)
                })
            },
        );
        let x = kernels.value(0)?;
        let counters = [kernels.value(0)?, kernels.value(0)?];
        for call in 0..6 {
            let counter = &counters[call % 2];
            counter.write(&[call as i32 + 1])?;
            count.call(&kernels.stream, (&x, counter))?;
            assert_eq!(read(counter)?, 0);
        }
        assert_eq!(read(&x)?, 21);
        assert_built_once(&count, options, 6);
        Ok(())
    });
}

#[test]
fn max_passes_bounds_a_loop_that_would_not_end() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, y, on): (Param<i32>, Param<i32>, Param<i32>)| {
                g.do_while(&on, |body| bump(body, &k, x, 1))?.max_passes(12)?;
                g.while_nonzero(&on, |body| bump(body, &k, y, 1))?.max_passes(3)
            },
        );
        // The bound stays when the counter is another.
        for _ in 0..2 {
            let (x, y, on) = (kernels.value(0)?, kernels.value(0)?, kernels.value(1)?);
            work.call(&kernels.stream, (&x, &y, &on))?;
            assert_eq!((read(&x)?, read(&y)?, read(&on)?), (12, 3, 1));
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn repeat_runs_its_body_a_number_of_times() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let work = Callable::with_options(&kernels.device, options.clone(), move |g, (x,): (Param<i32>,)| {
            g.repeat(4, |body| body.repeat(3, |inner| bump(inner, &k, x, 1)))?;
            g.repeat(0, |body| bump(body, &k, x, 1000))
        });
        for _ in 0..2 {
            let x = kernels.value(0)?;
            work.call(&kernels.stream, (&x,))?;
            assert_eq!(read(&x)?, 12);
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn two_loops_and_a_third_that_reads_both_run_one_after_the_other() {
    for_each_way(|kernels, options| {
        type P = Param<i32>;
        let k = owned(kernels);
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (a, b, c, i, j, l): (P, P, P, P, P, P)| {
                g.do_while(&i, |body| {
                    bump(body, &k, a, 2)?;
                    bump(body, &k, i, -1)
                })?;
                g.do_while(&j, |body| {
                    bump(body, &k, b, 3)?;
                    bump(body, &k, j, -1)
                })?;
                g.do_while(&l, |body| {
                    body.launch(&k.mix, LaunchConfig::one(), (&c, &a, 1))?;
                    body.launch(&k.mix, LaunchConfig::one(), (&c, &b, 1))?;
                    bump(body, &k, l, -1)
                })
            },
        );
        for (i, j, l) in [(4, 5, 2), (1, 7, 3), (9, 1, 1)] {
            let zero = || kernels.value(0);
            let (a, b, c) = (zero()?, zero()?, zero()?);
            let counters = [kernels.value(i)?, kernels.value(j)?, kernels.value(l)?];
            work.call(&kernels.stream, (&a, &b, &c, &counters[0], &counters[1], &counters[2]))?;
            let expected = (0..l).fold(0i32, |c, _| {
                c.wrapping_mul(31).wrapping_add(2 * i).wrapping_mul(31).wrapping_add(3 * j)
            });
            assert_eq!((read(&a)?, read(&b)?, read(&c)?), (2 * i, 3 * j, expected));
        }
        assert_built_once(&work, options, 3);
        Ok(())
    });
}

#[test]
fn loops_nest_and_their_counts_multiply_with_bounds_from_device_memory() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, bounds, i, j, l): (Param<i32>, Param<i32>, Param<i32>, Param<i32>, Param<i32>)| {
                g.do_while(&i, |outer| {
                    outer.launch(&k.affine, LaunchConfig::one(), (&j, &bounds, 1, 1, 0))?;
                    outer.do_while(&j, |middle| {
                        middle.launch(&k.affine, LaunchConfig::one(), (&l, &bounds, 1, 1, 1))?;
                        middle.do_while(&l, |inner| {
                            bump(inner, &k, x, 1)?;
                            bump(inner, &k, l, -1)
                        })?;
                        bump(middle, &k, j, -1)
                    })?;
                    bump(outer, &k, i, -1)
                })
            },
        );
        for (outer, bound) in [(3, 4), (2, 1), (5, 2)] {
            let (x, bounds, i) = (kernels.value(0)?, kernels.value(bound)?, kernels.value(outer)?);
            let (j, l) = (kernels.value(0)?, kernels.value(0)?);
            work.call(&kernels.stream, (&x, &bounds, &i, &j, &l))?;
            assert_eq!(read(&x)?, outer * bound * (bound + 1));
            assert_eq!((read(&i)?, read(&j)?, read(&l)?, read(&bounds)?), (0, 0, 0, bound));
        }
        assert_built_once(&work, options, 3);
        Ok(())
    });
}

#[test]
fn sibling_loops_inside_a_loop_run_at_every_pass_of_it() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, y, i, j): (Param<i32>, Param<i32>, Param<i32>, Param<i32>)| {
                g.do_while(&i, |outer| {
                    outer.memset(&j, 2)?;
                    outer.do_while(&j, |body| {
                        bump(body, &k, x, 1)?;
                        bump(body, &k, j, -1)
                    })?;
                    outer.memset(&j, 3)?;
                    outer.do_while(&j, |body| {
                        bump(body, &k, y, 1)?;
                        bump(body, &k, j, -1)
                    })?;
                    bump(outer, &k, i, -1)
                })
            },
        );
        for passes in [4, 1] {
            let (x, y, i, j) =
                (kernels.value(0)?, kernels.value(0)?, kernels.value(passes)?, kernels.value(9)?);
            work.call(&kernels.stream, (&x, &y, &i, &j))?;
            assert_eq!((read(&x)?, read(&y)?), (2 * passes, 3 * passes));
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn what_is_before_and_after_a_loop_runs_once_and_in_its_place() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, left): (Param<i32>, Param<i32>)| {
                g.launch(&k.affine, LaunchConfig::one(), (&x, &x, 1, 10, 1))?;
                g.do_while(&left, |body| {
                    body.launch(&k.affine, LaunchConfig::one(), (&x, &x, 1, 2, 0))?;
                    bump(body, &k, left, -1)
                })?;
                g.launch(&k.affine, LaunchConfig::one(), (&x, &x, 1, 1, 5))
            },
        );
        for (start, passes) in [(1, 3), (4, 1)] {
            let (x, left) = (kernels.value(start)?, kernels.value(passes)?);
            work.call(&kernels.stream, (&x, &left))?;
            assert_eq!(read(&x)?, (10 * start + 1) * (1 << passes) + 5);
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn other_arrays_and_scalars_inside_a_loop_need_no_other_graph() {
    for_each_way(|kernels, options| {
        let k = owned(kernels);
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, by, left): (Param<[i32]>, Scalar<i32>, Param<i32>)| {
                g.do_while(&left, |body| {
                    body.launch(&k.increase, per_element(&x), (&x, x.len(), &by))?;
                    bump(body, &k, left, -1)
                })
            },
        );
        for (len, by, passes) in [(256, 1, 2), (1024, 5, 3), (7, -2, 4), (256, 9, 1)] {
            let (x, left) = (kernels.buffer(&vec![100; len])?, kernels.value(passes)?);
            work.call(&kernels.stream, (&x, by, &left))?;
            assert_eq!(x.to_vec()?, vec![100 + by * passes; len]);
        }
        assert_built_once(&work, options, 4);
        Ok(())
    });
}
