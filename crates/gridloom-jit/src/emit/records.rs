//! Loads of the fields of records, such as `in[9 * i + k]` for several `k`.
//!
//! Each thread has a record, and an instruction loads one word of it in each thread. Four words of
//! a record that lie one behind the other, and are all loaded before anything is stored, are loaded
//! at once, as by `ld.v4`. The words that later instructions load are kept until then.

use super::Emitter;
use super::address::Access;
use super::value::Val;
use crate::native::Class;
use cranelift_codegen::ir::Value;
use gridloom_interp::Space;
use gridloom_interp::code::{Base, Instruction, Load, Op};
use gridloom_interp::lanes::{Slot, Source};

/// The words of a record that are loaded at once.
const CHUNK: usize = 4;

/// A word of each thread's record that is loaded already.
#[derive(Clone)]
pub(super) struct Field {
    /// The address of the record in the first thread, and the distance from thread to thread.
    first: Value,
    step: i64,
    offset: i64,
    parts: Vec<Value>,
}

impl Emitter<'_> {
    /// Loads a word of each thread's record, with others of it. Returns whether it did.
    pub(super) fn load_field(&mut self, load: &Load, access: Access, (address, offset): (&Val, i64)) -> bool {
        let (&Val::Affine(first, step), Base::Source(Source::Slot(base))) = (address, load.operand.base)
        else {
            return false;
        };
        let &[slot] = &load.destinations[..] else { return false };
        let fits = self.is_wide()
            && self.party.is_none()
            && self.lanes as usize >= self.per_vector(Class::B32)
            && Self::is_field(load)
            && !access.narrow
            && step % 4 == 0
            && step.unsigned_abs() >= 4 * CHUNK as u64
            && !self.is_by_lane(slot);
        if !fits {
            return false;
        }
        let known = |field: &&Field| (field.first, field.step, field.offset) == (first, step, offset);
        if let Some(field) = self.facts.fields.iter().find(known) {
            let parts = field.parts.clone();
            self.define(slot, Val::Many(parts), Class::B32, None);
            return true;
        }
        let Some(start) = self.chunk_around(base, offset) else { return false };
        let access = Access { size: 4 * CHUNK as u32, ..access };
        let places = self.places_of_all(access, &load.operand, address, start);
        let columns = self.load_chunks(&places, CHUNK, CHUNK);
        for (parts, at) in columns.into_iter().zip((start..).step_by(4)) {
            self.facts.fields.push(Field { first, step, offset: at, parts: parts.clone() });
            if at == offset {
                self.define(slot, Val::Many(parts), Class::B32, None);
            }
        }
        true
    }

    /// Returns whether a load is of one word in global memory, which may be loaded with others.
    fn is_field(load: &Load) -> bool {
        load.operand.space == Space::Global
            && !load.operand.narrow
            && load.extend.size == 4
            && load.extend.signed_to.is_none()
            && load.destinations.len() == 1
            && !load.acquire
    }

    /// Returns where four words of a record start, one of them at an offset, that this instruction
    /// and later ones of the block load before anything is stored. Each word is in one such chunk
    /// at most.
    fn chunk_around(&self, base: Slot, offset: i64) -> Option<i64> {
        let mut offsets = Vec::new();
        for pc in self.pc..self.block_end {
            let instruction = self.plan.flow.instruction(pc);
            match &instruction.op {
                Op::Load(load) if load.acquire => break,
                Op::Load(load) => {
                    let same = matches!(load.operand.base, Base::Source(Source::Slot(slot)) if slot == base);
                    if same && Self::is_field(load) && instruction.guard.is_none() {
                        offsets.push(load.operand.offset);
                    }
                }
                _ if keeps_memory(instruction) => {}
                _ => break,
            }
            let mut redefined = false;
            instruction.for_each_definition(&mut |slot| redefined |= slot == base);
            if redefined {
                break;
            }
        }
        offsets.sort_unstable();
        offsets.dedup();
        let mut rest = &offsets[..];
        while rest.len() >= CHUNK {
            if rest[CHUNK - 1] != rest[0] + 4 * (CHUNK as i64 - 1) {
                rest = &rest[1..];
                continue;
            }
            if rest[..CHUNK].contains(&offset) {
                return Some(rest[0]);
            }
            rest = &rest[CHUNK..];
        }
        None
    }
}

/// Returns whether an instruction neither changes memory nor waits for others that do.
pub(super) fn keeps_memory(instruction: &Instruction) -> bool {
    match &instruction.op {
        Op::Map(_) | Op::Special { .. } | Op::FrameAddress { .. } | Op::Nothing => true,
        Op::Load(load) => !load.acquire,
        _ => false,
    }
}
