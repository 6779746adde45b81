//! Operations that streams, graphs, nodes and captures share.

use gridloom::prelude::*;

use super::is_left_out;
use super::step::{LENGTHS, Operand, Step, with_memory};
use super::world::rust_increase;

/// Adds any operation.
pub(crate) fn add<P: Ops>(step: &mut Step<'_>, place: &P) -> Result<P::Added> {
    let kernels = &step.world.kernels;
    let mut what = step.below(24);
    let name = match what {
        7 | 8 => "set-conditions",
        10..=12 => "fills",
        13..=16 => "copies",
        19 | 22 | 23 => "event-nodes",
        20 | 21 => "callback-with",
        _ => "",
    };
    if is_left_out(name) {
        what = 0;
    }
    match what {
        0..=2 => {
            let operand = step.operand()?;
            let len = operand.len() + usize::from(step.choices.one_in(12));
            let (config, by) = (step.config(len), step.choices.i32());
            with_memory!(&operand, |x| place.launch(&kernels.increase, config, (x, len, by)))
        }
        3 => {
            let (out, x) = (step.operand()?, step.operand()?);
            let len = out.len().min(x.len());
            let config = step.config(len);
            with_memory!(&out, |out| with_memory!(&x, |x| {
                place.launch(&kernels.affine, config, (out, x, len, 3, 1))
            }))
        }
        4 => {
            let (out, x) = (step.operand()?, step.operand()?);
            let len = out.len().min(x.len());
            let config = step.config(len);
            with_memory!(&out, |out| with_memory!(&x, |x| place.launch(&kernels.mix, config, (out, x, len))))
        }
        5 => {
            let (flag, x, bound) = (step.one()?, step.one()?, step.choices.i32());
            with_memory!(&flag, |flag| with_memory!(&x, |x| {
                place.launch(&kernels.below, LaunchConfig::one(), (flag, x, bound))
            }))
        }
        6 => {
            let (out, rounds) = (step.one()?, 1 + step.choices.below(400) as u32);
            with_memory!(&out, |out| place.launch(&kernels.late, LaunchConfig::one(), (out, rounds)))
        }
        7 => {
            let (condition, value) = (step.condition(None)?, step.one()?);
            with_memory!(&value, |value| {
                place.launch(&kernels.set_condition, LaunchConfig::one(), (&condition, value))
            })
        }
        8 => {
            let (condition, left) = (step.condition(None)?, step.one()?);
            with_memory!(&left, |left| {
                place.launch(&kernels.countdown, LaunchConfig::one(), (&condition, left))
            })
        }
        // A simulated driver knows kernels by name.
        9 if step.choices.one_in(3) && step.world.device.name() != "simulated" => {
            let (kernel, x) = (rust_increase::load(&step.device())?, step.operand()?);
            let (config, by) = (step.config(x.len()), step.choices.i32());
            with_memory!(&x, |x| place.launch(&kernel, config, (x, by)))
        }
        9 => match &step.world.hostile {
            Some(hostile) => {
                let kernel = match step.below(8) {
                    0 if !is_left_out("faults") => &hostile.fail_trap,
                    1 | 2 if !is_left_out("prints") => &hostile.hello,
                    _ => &hostile.count,
                };
                let config = step.config(3);
                place.launch(kernel, config, ())
            }
            None => place.callback(step.callback()),
        },
        10 | 11 => {
            let (dst, value) = (step.operand()?, step.choices.i32());
            with_memory!(&dst, |dst| match value {
                0 => place.memset(dst, 0u8),
                1 => place.memset(dst, 1u16),
                2 => place.memset(dst, 2u64),
                _ => place.memset(dst, value),
            })
        }
        12 => {
            let (dst, pitch) = (step.operand()?, step.choices.below(9));
            let (width, height) = (step.choices.below(9), step.choices.below(9));
            let rows = with_memory!(&dst, |dst| Memory::<i32>::rows(dst, pitch))?;
            place.memset_2d(rows, 5i32, width, height)
        }
        13 | 14 => {
            let (dst, src) = (step.operand()?, step.operand()?);
            copy(step, place, &dst, &src)
        }
        15 => {
            let dst = step.operand()?;
            let values = vec![step.choices.i32(); dst.len() + usize::from(step.choices.one_in(8))];
            with_memory!(&dst, |dst| place.memcpy(dst, &values))
        }
        16 => {
            let (dst, src) = (step.operand()?, step.operand()?);
            let pitches = [step.choices.below(6), step.choices.below(6)];
            let extents = [step.choices.below(5), step.choices.below(5), step.choices.below(3)];
            let dst = with_memory!(&dst, |dst| Memory::<i32>::planes(dst, pitches[0], extents[1]))?;
            let src = with_memory!(&src, |src| Memory::<i32>::planes(src, pitches[1], 3))?;
            match step.choices.one_in(2) {
                true => place.memcpy_2d(dst, src, extents[0], extents[1]),
                false => place.memcpy_3d(dst, src, extents),
            }
        }
        17 | 18 => place.callback(step.callback()),
        19 => place.record(&step.event()?),
        20 | 21 => {
            let memory = match step.choices.one_in(3) || is_left_out("host-memory") {
                true => step.operand()?,
                false => {
                    let host = step.world.device.alloc_host::<i32>(step.choices.pick(LENGTHS))?;
                    step.world.buffers.put(step.choices, host.clone());
                    Operand::Buffer(host)
                }
            };
            let (len, mut callback) =
                (with_memory!(&memory, |memory| Memory::<i32>::len(memory)), step.callback());
            let look = move |values: &[i32]| {
                assert_eq!(values.len(), len);
                callback();
            };
            with_memory!(&memory, |memory| place.callback_with(memory, look))
        }
        _ => place.wait(&step.event()?),
    }
}

/// Copies between memory of any kinds: of one length, mostly.
fn copy<P: Ops>(step: &mut Step<'_>, place: &P, dst: &Operand, src: &Operand) -> Result<P::Added> {
    if let (Operand::Buffer(dst), Operand::Buffer(src)) = (dst, src)
        && !step.choices.one_in(8)
    {
        let len = dst.len().min(src.len());
        return place.memcpy(&dst.slice(0..len)?, &src.slice(src.len() - len..)?);
    }
    with_memory!(dst, |dst| match src {
        Operand::Buffer(src) => place.memcpy(dst, src),
        Operand::Slice(src) => place.memcpy(dst, src),
        Operand::Alloc(src) => place.memcpy(dst, src),
        Operand::AllocSlice(src) => place.memcpy(dst, src),
    })
}
