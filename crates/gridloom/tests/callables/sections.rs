//! Sections that run side by side.

use gridloom::prelude::*;

use super::{assert_built_once, for_each_way, with_graphs};
use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device};

#[test]
fn sections_start_after_what_came_before_and_join_before_what_comes_next() {
    for_each_way(|kernels, options| {
        let (affine, mix) = (kernels.affine.clone(), kernels.mix.clone());
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, y, z): (Param<i32>, Param<i32>, Param<i32>)| {
                g.launch(&affine, LaunchConfig::one(), (&x, &x, 1, 10, 1))?;
                g.parallel(|sections| {
                    sections.section(|s| {
                        s.launch(&affine, LaunchConfig::one(), (&y, &x, 1, 2, 0))?;
                        s.launch(&affine, LaunchConfig::one(), (&y, &y, 1, 3, 1))
                    })?;
                    sections.section(|s| s.launch(&affine, LaunchConfig::one(), (&z, &x, 1, 5, 0)))
                })?;
                g.launch(&mix, LaunchConfig::one(), (&y, &z, 1))
            },
        );
        for start in [1, 4] {
            let (x, y, z) = (kernels.value(start)?, kernels.value(0)?, kernels.value(0)?);
            work.call(&kernels.stream, (&x, &y, &z))?;
            let x = 10 * start + 1;
            assert_eq!((read(&y)?, read(&z)?), (31 * (6 * x + 1) + 5 * x, 5 * x));
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

#[test]
fn three_sections_in_a_loop_join_at_every_pass() {
    for_each_way(|kernels, options| {
        let (increase, mix) = (kernels.increase.clone(), kernels.mix.clone());
        let work = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (sum, parts, left): (Param<i32>, Param<[i32]>, Param<i32>)| {
                g.do_while(&left, |body| {
                    body.parallel(|sections| {
                        sections.section(|s| s.launch(&increase, LaunchConfig::one(), (&parts, 1, 1)))?;
                        sections.section(|s| s.launch(&increase, LaunchConfig::one(), (&left, 1, -1)))?;
                        sections.section(|s| {
                            s.repeat(2, |r| r.launch(&increase, LaunchConfig::one(), (&sum, 1, 3)))
                        })
                    })?;
                    body.launch(&mix, LaunchConfig::one(), (&sum, &parts, 1))
                })
            },
        );
        for passes in [3, 5] {
            let (sum, parts, left) = (kernels.value(0)?, kernels.value(0)?, kernels.value(passes)?);
            work.call(&kernels.stream, (&sum, &parts, &left))?;
            let expected =
                (1..=passes).fold(0i32, |sum, pass| sum.wrapping_add(6).wrapping_mul(31).wrapping_add(pass));
            assert_eq!((read(&sum)?, read(&parts)?, read(&left)?), (expected, passes, 0));
        }
        assert_built_once(&work, options, 2);
        Ok(())
    });
}

/// Returns the labels of nodes, with those they depend on.
fn order(graph: &Graph) -> Result<Vec<(String, Vec<String>)>> {
    let of = |node: &Node| node.label();
    graph
        .nodes()
        .iter()
        .map(|node| {
            let mut before: Vec<String> = node.predecessors()?.iter().map(of).collect();
            before.sort();
            Ok((of(node), before))
        })
        .collect()
}

#[test]
fn sections_have_no_edges_between_them_and_one_join() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let increase = kernels.increase.clone();
        let work =
            Callable::with_options(device, with_graphs(), move |g, (x, y): (Param<i32>, Param<i32>)| {
                let step = |s: &Sequence, name: &str| {
                    s.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
                    s.named(name)
                };
                step(g, "a")?;
                g.parallel(|sections| {
                    sections.section(|s| {
                        step(s, "b")?;
                        step(s, "c")
                    })?;
                    sections.section(|s| {
                        s.parallel(|inner| {
                            inner.section(|s| step(s, "d"))?;
                            inner.section(|s| step(s, "e"))
                        })
                    })?;
                    // Nothing inside: what comes next still waits for the others.
                    sections.section(|_| Ok(()))
                })?;
                let _ = y;
                step(g, "f")
            });
        work.call(&kernels.stream, (&kernels.value(0)?, &kernels.value(0)?))?;
        let found = order(&work.graph()?.expect("it was called"))?;
        let expected = [
            ("a", vec![]),
            ("b", vec!["a"]),
            ("c", vec!["b"]),
            ("d", vec!["a"]),
            ("e", vec!["a"]),
            ("f", vec!["a", "c", "d", "e"]),
        ];
        let expected: Vec<(String, Vec<String>)> = expected
            .into_iter()
            .map(|(name, before)| (name.into(), before.into_iter().map(Into::into).collect()))
            .collect();
        assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn what_is_added_to_the_sequence_itself_meanwhile_is_joined_too() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let increase = kernels.increase.clone();
        let work = Callable::with_options(device, with_graphs(), move |g, (x,): (Param<i32>,)| {
            let step = |s: &Sequence, name: &str| {
                s.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
                s.named(name)
            };
            g.parallel(|sections| {
                sections.section(|s| step(s, "a"))?;
                step(g, "b")
            })?;
            step(g, "c")
        });
        work.call(&kernels.stream, (&kernels.value(0)?,))?;
        let found = order(&work.graph()?.expect("it was called"))?;
        assert_eq!(found.last(), Some(&("c".into(), vec!["a".into(), "b".into()])));
        Ok(())
    });
}
