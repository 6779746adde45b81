//! Devices, streams, events, memory and modules.

use std::time::Duration;

use gridloom::prelude::*;
use gridloom::{CompileOptions, StreamOptions};

use super::common;
use super::step::Step;
use crate::support::is_cpu;

/// Work on a stream.
pub(crate) fn enqueue(step: &mut Step<'_>) -> Result<()> {
    let stream = step.stream()?;
    common::add(step, &stream)
}

pub(crate) fn stream(step: &mut Step<'_>) -> Result<()> {
    let stream = step.stream()?;
    match step.below(10) {
        0..=2 => stream.synchronize(),
        3 => stream.is_idle().map(drop),
        4 => match step.choices.one_in(2) {
            true => stream.synchronize_timeout(Duration::from_micros(step.choices.below(300) as u64)),
            false => {
                stream.cancel();
                Ok(())
            }
        },
        5 => {
            let taken = step.world.streams.take(step.choices);
            drop((stream, taken));
            Ok(())
        }
        6 => match (step.choices.below(4), &step.world.other) {
            (0, _) => step.device().synchronize_timeout(Duration::from_micros(100)),
            // The threads' own work must not be cancelled.
            (1, Some(other)) => {
                other.cancel();
                Ok(())
            }
            _ => step.device().synchronize(),
        },
        7 => {
            let options =
                StreamOptions::new().priority(step.choices.i32()).non_blocking(step.choices.one_in(2));
            let device = step.device();
            let stream = device.stream_with(options)?;
            assert!(device.priority_range()?.contains(&stream.priority()?));
            step.world.streams.put(step.choices, stream);
            Ok(())
        }
        8 => {
            let buffer = step.buffer()?;
            match step.choices.one_in(2) {
                true => buffer.to_vec_after(&stream).map(drop),
                false => {
                    let mut out = vec![0; buffer.len() + usize::from(step.choices.one_in(6))];
                    buffer.read_into_after(&stream, &mut out)
                }
            }
        }
        _ => {
            let _ = (stream.is_capturing(), format!("{stream:?}"), stream.device().name());
            stream.alloc::<i32>(4).map(drop)
        }
    }
}

pub(crate) fn event(step: &mut Step<'_>) -> Result<()> {
    let event = step.event()?;
    match step.below(8) {
        0 | 1 => event.synchronize(),
        2 => event.is_reached().map(drop),
        3 => event.elapsed_since(&step.event()?).map(drop),
        4 => event.synchronize_timeout(Duration::from_micros(step.choices.below(300) as u64)),
        5 => {
            let taken = step.world.events.take(step.choices);
            drop((event, taken));
            Ok(())
        }
        6 => step.stream()?.record(&event),
        _ => step.stream()?.wait(&event),
    }
}

/// An element of an unusual size and alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Wide([u64; 8]);
// SAFETY: eight numbers that fill it; every bit pattern is one.
unsafe impl bytemuck::Zeroable for Wide {}
// SAFETY: as above, without padding.
unsafe impl bytemuck::Pod for Wide {}

pub(crate) fn memory(step: &mut Step<'_>) -> Result<()> {
    match step.below(17) {
        0 | 1 => {
            let buffer = step.buffer()?;
            buffer.to_vec().map(drop)
        }
        2 => {
            let buffer = step.buffer()?;
            let mut out = vec![0; buffer.len() + usize::from(step.choices.one_in(6))];
            buffer.read_into(&mut out)
        }
        3 | 4 => {
            let buffer = step.buffer()?;
            buffer.write(&vec![2; buffer.len() + usize::from(step.choices.one_in(6))])
        }
        5 => match step.maybe(&step.world.slices) {
            Some(slice) => {
                let _ = (slice.len(), slice.is_empty(), format!("{slice:?}"));
                let part = slice.slice(step.choices.below(4)..)?;
                match step.choices.one_in(2) {
                    true => part.write(&vec![6; part.len()]),
                    false => part.to_vec().map(drop),
                }
            }
            None => Ok(()),
        },
        6 => {
            let buffer = step.buffer()?;
            buffer.close();
            assert!(buffer.is_closed() && buffer.to_vec().is_err());
            Ok(())
        }
        7 => {
            let taken = step.world.buffers.take(step.choices);
            drop(taken);
            Ok(())
        }
        8 => {
            let len = step.choices.pick(&[0, usize::MAX, usize::MAX / 4, 1 << 40, 1 << 28]);
            step.world.device.alloc::<i32>(len).map(drop)
        }
        9 => {
            let device = step.device();
            let _ = (device.properties(), device.name(), device.ordinal(), device.kind(), device.limits());
            device.memory_use().map(drop)
        }
        10 => {
            let buffer = step.device().buffer_from(&[Wide([5; 8]); 3])?;
            step.stream()?.memset(&buffer, 9u8)?;
            let read = buffer.slice(1..)?.to_vec()?;
            assert!(read.iter().all(|wide| wide.0[0] == 5 || wide.0[0] == 0x0909_0909_0909_0909));
            Ok(())
        }
        11 => {
            let buffer = step.buffer()?;
            let _ = (buffer.kind(), buffer.device(), buffer.address(), format!("{buffer:?}"));
            Ok(())
        }
        12 => {
            let device = step.device();
            let memory = device.graph_memory()?;
            assert!(memory.used_high >= memory.used, "{memory:?}");
            match step.choices.one_in(2) {
                true => device.trim(),
                false => device.reset_graph_memory_high(),
            }
        }
        13 => {
            // Dropped here, the memory stays while graphs and launches can reach it.
            let weak = step.buffer()?.downgrade();
            match weak.upgrade() {
                Some(buffer) => buffer.to_vec().map(drop),
                None => Ok(()),
            }
        }
        _ => module(step),
    }
}

fn module(step: &mut Step<'_>) -> Result<()> {
    if !is_cpu(&step.world.device) {
        return Ok(());
    }
    if step.choices.one_in(12) {
        // Without NVRTC as well as with it.
        return step.device().load_cuda("__global__ void broken(", &CompileOptions::new()).map(drop);
    }
    let module = match step.maybe(&step.world.modules) {
        Some(module) if !step.choices.one_in(4) => module,
        _ => {
            let module = step.device().load_ptx(include_str!("hostile.ptx"))?;
            step.world.modules.put(step.choices, module.clone());
            module
        }
    };
    match step.below(6) {
        0 => {
            let counter = module.global::<i32>("attack_counter")?;
            step.world.buffers.put(step.choices, counter);
            Ok(())
        }
        1 => module.global::<u64>("attack_counter").map(drop),
        2 => {
            let taken = step.world.modules.take(step.choices);
            drop((taken, module));
            Ok(())
        }
        3 => {
            let text = step.choices.pick(&["", ".version 8.3\n.target sm_75\n.visible .entry x(", "\u{0}"]);
            step.device().load_ptx(text).map(drop)
        }
        4 => step.device().load_binary(&[0x7f, b'E', b'L', b'F', 2, 1]).map(drop),
        _ => {
            let kernel = module.untyped_kernel(step.choices.pick(&["count", "hello", "none"]))?;
            let _ = (kernel.name(), kernel.params(), kernel.info(), format!("{kernel:?} {module:?}"));
            // SAFETY: the kernel has no parameters and touches only a variable of its module.
            let typed = unsafe { kernel.typed::<()>()? };
            let stream = step.stream()?;
            match typed.name() {
                "count" => stream.launch(&typed, LaunchConfig::linear(2), ()),
                _ => Ok(()),
            }
        }
    }
}
