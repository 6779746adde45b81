//! Values that are computed thread by thread, where each thread needs its own.
//!
//! A loaded index, and the address computed from it, are needed once, by one access of each thread.
//! They are computed only there, so that one thread's values no longer occupy registers when the
//! next thread's are computed.

use super::Emitter;
use super::value::Val;
use crate::native::{Class, Native};
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::lanes::Slot;
use std::rc::Rc;

/// How the value of a thread is obtained.
#[derive(Debug)]
enum How {
    /// It is already computed.
    Known(Vec<Value>),
    /// It is an element of `size` bytes in some words.
    Packed { words: Vec<Value>, size: u32 },
    /// An instruction computes it.
    Computed { native: Native, operands: Vec<Val> },
}

/// A value of each thread of a group.
#[derive(Debug)]
pub(crate) struct Scalarized {
    how: How,
    class: Class,
    /// How the register that it is read from is held.
    storage: Class,
}

impl Emitter<'_> {
    /// Returns the value in one thread.
    pub(super) fn scalarized_lane(&mut self, each: &Scalarized, class: Class, lane: usize) -> Value {
        let value = match &each.how {
            How::Known(values) => values[lane],
            How::Packed { words, size } => {
                let per = 8 / *size as usize;
                let bits = 8 * i64::from(*size);
                let word = words[lane / per];
                let element = match bits * (lane % per) as i64 {
                    0 => word,
                    // A rotation does not need a copy of the word first.
                    bits => self.b.ins().rotr_imm_u(word, bits),
                };
                self.b.ins().band_imm_u(element, (1 << bits) - 1)
            }
            How::Computed { native, operands } => {
                let operands = operands.iter().zip(native.operands);
                let values: Vec<Value> =
                    operands.map(|(operand, class)| self.lane(operand, class, lane)).collect();
                self.lower(native, &values, false).value
            }
        };
        let value = self.convert(value, each.class, each.storage);
        self.convert(value, each.storage, class)
    }

    fn write_each(&mut self, slot: Slot, how: How, class: Class) {
        let storage = self.storage(slot);
        self.forget_register(slot);
        self.by_lane.push((slot, Rc::new(Scalarized { how, class, storage })));
    }

    /// Writes a register thread by thread. Only single threads need it.
    pub(super) fn define_each(&mut self, slot: Slot, values: Vec<Value>, class: Class) {
        self.write_each(slot, How::Known(values), class);
    }

    /// Writes a register that only single threads need, with elements of one or two bytes in 64-bit
    /// words.
    pub(super) fn define_packed(&mut self, slot: Slot, words: Vec<Value>, size: u32) {
        debug_assert!(words.iter().all(|&word| self.b.func.dfg.value_type(word) == I64));
        self.write_each(slot, How::Packed { words, size }, Class::B64);
    }

    /// Writes a register that each thread needs once, with the result of an instruction that is
    /// computed later.
    pub(super) fn define_computed(&mut self, slot: Slot, native: Native, operands: Vec<Val>) {
        self.write_each(slot, How::Computed { native, operands }, native.result);
    }

    /// Returns what was written thread by thread to a register in this block.
    pub(super) fn scalarized_of(&self, slot: Slot) -> Option<Rc<Scalarized>> {
        self.by_lane.iter().find(|(other, _)| *other == slot).map(|(_, each)| Rc::clone(each))
    }

    /// Returns whether a register is to be written thread by thread.
    pub(super) fn is_by_lane(&self, slot: Slot) -> bool {
        self.plan.lanewise[slot.0 as usize]
            && self.party.is_none()
            && self.running.is_none()
            && !self.rematerializing
    }
}
