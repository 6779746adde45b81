//! Callables: made, called, inspected and reset from any thread.

use std::sync::atomic::{AtomicU64, Ordering};

use gridloom::CallableOptions;
use gridloom::callable::shape_of;
use gridloom::prelude::*;

use super::choices::Choices;
use super::is_left_out;
use super::step::Step;
use super::token::{Intended, call_in};
use super::world::Work;

/// Makes one of random steps. Building it may fail or panic.
fn make(step: &mut Step<'_>) -> Work {
    let options = CallableOptions::new()
        .max_graphs(1 + step.choices.below(3))
        .max_instances(1 + step.choices.below(3))
        .graphs(!step.choices.one_in(4))
        .conditional_mode(step.choices.pick(&[ConditionalMode::Auto, ConditionalMode::Hosted]));
    let (token, seed) = (step.token(), step.choices.u64());
    let inner = step.maybe(&step.world.callables);
    let world = std::sync::Arc::downgrade(step.world);
    let (increase, mix) = (step.world.kernels.increase.clone(), step.world.kernels.mix.clone());
    let builds = AtomicU64::new(seed);
    let build = move |g: &Sequence, (x, flag, by, shape): (Param<[i32]>, Param<i32>, Scalar<i32>, Shape)| {
        let _ = &token;
        // Another one at each build, to tell mistakes of caches; the steps are the same.
        let build = builds.fetch_add(1, Ordering::Relaxed);
        match build % 16 {
            0 => Intended::panic(&mut Choices::seeded(build)),
            1 => return Err(Error::new(ErrorKind::InvalidArgument, "given up by the attack")),
            _ => {}
        }
        let mut choices = Choices::seeded(seed);
        for _ in 0..shape.get().min(3) {
            match choices.below(10) {
                0 => g.memset(&flag, 1i32)?,
                1 => g.memcpy(&x, &x)?,
                2 => g.repeat(2, |body| body.launch(&increase, per_element(&x), (&x, x.len(), &by)))?,
                3 => drop(g.do_while(&flag, |body| body.memset(&x, 3i32))?.max_passes(2)?),
                4 => drop(g.while_nonzero(&flag, |body| body.memset(&flag, 0i32))?.max_passes(3)?),
                5 => g.if_else_nonzero(&flag, |body| body.memset(&x, 1i32), |body| body.memset(&x, 2u8))?,
                6 => {
                    g.switch_on(&flag, 2, |_, body| body.launch(&mix, per_element(&x), (&x, &x, x.len())))?
                }
                7 => g.parallel(|sections| {
                    sections.section(|one| one.memset(&x, 7i32))?;
                    sections.section(|two| two.memset(&flag, 1i32))
                })?,
                8 => {
                    let world = world.clone();
                    g.callback(move || {
                        if let Some(world) = world.upgrade() {
                            world.calls.fetch_add(1, Ordering::SeqCst);
                        }
                    })?;
                }
                _ => match &inner {
                    Some(inner) => g.call(inner, (x, flag, by, shape))?,
                    None => g.launch(&increase, per_element(&x), (&x, x.len(), &by))?,
                },
            }
        }
        let (world, calls) = (world.clone(), AtomicU64::new(build));
        let shape = shape_of([x.len()], move |lengths| {
            let mut choices = Choices::seeded(calls.fetch_add(1, Ordering::Relaxed));
            match choices.below(12) {
                0 if !is_left_out("callback-panics") => Intended::panic(&mut choices),
                1 | 2 if !is_left_out("callback-calls") => {
                    if let Some(world) = world.upgrade() {
                        call_in(&world, &mut choices);
                    }
                }
                _ => {}
            }
            LaunchConfig::linear(lengths[0])
        });
        g.launch(&increase, shape, (&x, x.len(), &by))?;
        g.named("last")
    };
    Callable::with_options(&step.device(), options, build)
}

/// Calls one, or does something else with it.
pub(crate) fn call(step: &mut Step<'_>) -> Result<()> {
    let callable = match step.maybe(&step.world.callables) {
        Some(callable) if !step.choices.one_in(8) => callable,
        _ => {
            let callable = make(step);
            step.world.callables.put(step.choices, callable.clone());
            callable
        }
    };
    match step.below(10) {
        0 => callable.reset(),
        1 => {
            let _ = (callable.stats(), format!("{callable:?}"));
            Ok(())
        }
        2 => {
            if let Some(graph) = callable.graph()? {
                step.world.graphs.put(step.choices, graph);
            }
            Ok(())
        }
        3 => {
            let taken = step.world.callables.take(step.choices);
            drop((taken, callable));
            Ok(())
        }
        _ => {
            let stream = step.stream()?;
            let (x, flag, shape) = (step.buffer()?, step.buffer()?, step.choices.below(4));
            let by = step.choices.i32();
            match step.choices.one_in(8) {
                true => callable.call(&stream, (&x, &flag, by, shape)),
                false => callable.call(&stream, (&x, &flag.slice(0..1)?, by, shape)),
            }
        }
    }
}
