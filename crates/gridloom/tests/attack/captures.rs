//! Captures: begun, forked, joined, filled, ended, closed and dropped in any order, from any
//! thread.

use std::sync::Arc;

use gridloom::ForeignOptions;
use gridloom::prelude::*;
use gridloom_core::backend::AsDevice;
use gridloom_cuda::CudaDevice;

use super::common;
use super::graphs;
use super::step::{LENGTHS, Step};
use super::token::Intended;

fn keep(step: &mut Step<'_>, capture: Capture) -> Arc<Capture> {
    let capture = Arc::new(capture);
    step.world.captures.put(step.choices, capture.clone());
    capture
}

fn capture(step: &mut Step<'_>) -> Result<Arc<Capture>> {
    match step.maybe(&step.world.captures) {
        Some(capture) if !step.choices.one_in(8) => Ok(capture),
        _ => {
            let capture = step.stream()?.capture()?;
            Ok(keep(step, capture))
        }
    }
}

/// Records any operation.
pub(crate) fn record(step: &mut Step<'_>) -> Result<()> {
    let capture = capture(step)?;
    let node = common::add(step, &*capture)?;
    step.keep_node(&node);
    Ok(())
}

/// Steps of a capture's life.
pub(crate) fn drive(step: &mut Step<'_>) -> Result<()> {
    let capture = capture(step)?;
    match step.below(20) {
        0 | 1 => {
            for fork in capture.fork(1 + step.choices.below(3))? {
                keep(step, fork);
            }
            Ok(())
        }
        2..=4 => {
            let forks: Vec<_> =
                (0..1 + step.choices.below(2)).filter_map(|_| step.maybe(&step.world.captures)).collect();
            capture.join(forks.iter().map(|fork| &**fork))
        }
        5 => capture.begin(),
        6..=8 => {
            let graph = capture.end()?;
            step.world.graphs.put(step.choices, graph);
            Ok(())
        }
        9 => {
            let outcome = capture.fill(|inside| {
                common::add(step, inside)?;
                match step.choices.below(6) {
                    0 => Intended::panic(step.choices),
                    1 => Err(Error::new(ErrorKind::InvalidArgument, "given up by the attack")),
                    _ => Ok(()),
                }
            });
            outcome.map(drop)
        }
        10 => {
            capture.close();
            Ok(())
        }
        11 => {
            let graph = capture.graph()?;
            step.world.graphs.put(step.choices, graph);
            Ok(())
        }
        12 => {
            let condition = capture.condition(step.choices.pick(&[None, Some(0), Some(1), Some(2)]))?;
            step.world.conditions.put(step.choices, condition);
            Ok(())
        }
        13 => {
            let graph = step.graph()?;
            match step.choices.one_in(2) {
                true => capture.embed(&graph).map(drop),
                false => capture.inline(&graph).map(drop),
            }
        }
        14 => {
            let _ = (capture.kind(), capture.state(), format!("{capture:?}"));
            capture.owner().map(drop)
        }
        15 => {
            drop(capture);
            let taken = step.world.captures.take(step.choices);
            drop(taken);
            Ok(())
        }
        _ => structure(step, &capture),
    }
}

fn structure(step: &mut Step<'_>, capture: &Capture) -> Result<()> {
    let graph = capture.owner().and_then(|node| node.graph()).ok();
    if step.choices.one_in(2) {
        let condition = capture.condition(step.choices.pick(&[0, 1, 2]))?;
        step.world.conditions.put(step.choices, condition);
    }
    for body in graphs::structure(step, capture, graph.as_ref())? {
        match step.choices.below(3) {
            0 => drop(keep(step, body)),
            1 => drop(body.fill(|inside| common::add(step, inside).map(drop))?),
            _ => drop(common::add(step, &body.graph()?)?),
        }
    }
    Ok(())
}

/// Has the driver capture calls that Gridloom does not know. The code may give up or panic.
pub(crate) fn foreign(step: &mut Step<'_>) -> Result<()> {
    let capture = capture(step)?;
    // Memory of a driver's device that no other thread can close or free yet. From addresses alone,
    // nothing keeps it until the nodes do.
    let buffers = [
        step.world.device.alloc::<i32>(step.choices.pick(LENGTHS))?,
        step.world.device.alloc::<i32>(step.choices.pick(LENGTHS))?,
    ];
    let end = step.below(8);
    let mut options =
        ForeignOptions::from(step.choices.pick(&[CaptureMode::ThreadLocal, CaptureMode::Relaxed]));
    if step.choices.one_in(2) {
        options = options.keeping(Arc::new(step.token()));
    }
    let device = step.world.device.as_device().clone();
    // SAFETY: the calls use memory of this device only, as operands, and within its bounds.
    let nodes = unsafe {
        capture.foreign(options, |stream| {
            let cuda = device.as_any().downcast_ref::<CudaDevice>();
            let driver = cuda.expect("another device has refused the code").driver();
            let [one, other] = [buffers[0].address()?, buffers[1].address()?];
            let bytes = 4 * buffers[0].len().min(buffers[1].len());
            driver.cu_memset_d8_async(one, 1, bytes, stream.raw())?;
            driver.cu_memcpy_async(other, one, bytes, stream.raw())?;
            match end {
                0 => Intended::panic(step.choices),
                1 => Err(Error::new(ErrorKind::InvalidArgument, "given up by the attack")),
                _ => Ok(()),
            }
        })?
    };
    nodes.iter().for_each(|node| step.keep_node(node));
    buffers.into_iter().for_each(|buffer| step.world.buffers.put(step.choices, buffer));
    Ok(())
}

/// A whole capture of one stream, and of another that an event makes a part of it.
pub(crate) fn scope(step: &mut Step<'_>) -> Result<()> {
    let stream = step.stream()?;
    let graph = stream.capture_scope(|capture| {
        for _ in 0..1 + step.choices.below(4) {
            match step.choices.below(8) {
                0 => {
                    let (side, event) = (step.stream()?, step.event()?);
                    stream.record(&event)?;
                    side.wait(&event)?;
                    common::add(step, &side)?;
                    side.record(&event)?;
                    capture.wait(&event)?;
                }
                1 => {
                    let forks = capture.fork(2)?;
                    common::add(step, &forks[0])?;
                    capture.join(&forks)?;
                }
                2 => {
                    capture.repeat(2)?.fill(|body| common::add(step, body).map(drop))?;
                }
                3 if step.choices.one_in(4) => Intended::panic(step.choices),
                _ => match step.choices.one_in(2) {
                    true => common::add(step, &stream)?,
                    false => drop(common::add(step, capture)?),
                },
            }
        }
        Ok(())
    })?;
    step.world.graphs.put(step.choices, graph);
    Ok(())
}
