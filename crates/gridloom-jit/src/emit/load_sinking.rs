//! Load sinking: vectors of a row are loaded where they are first used. Otherwise all vectors of
//! several rows would be loaded first and need more registers than there are. The loads of a thread
//! stay in order.

use super::Emitter;
use crate::native::Class;
use cranelift_codegen::ir::{Block, Inst, Opcode, Value, ValueDef};
use std::collections::HashMap;

/// How far back a load is looked for, in instructions.
const FAR: usize = 40;

/// The vector loads of the current block, and which part of a group each belongs to.
#[derive(Default)]
pub(super) struct LoadedRows {
    block: Option<Block>,
    parts: HashMap<Inst, usize>,
}

impl Emitter<'_> {
    /// Records the vectors of a row that were just loaded.
    pub(super) fn note_row(&mut self, class: Class, vectors: &[Value]) {
        let block = self.b.current_block();
        if self.rows.block != block {
            self.rows.parts.clear();
            self.rows.block = block;
        }
        if class.bits() != 32 {
            // Parts of other sizes belong to other threads.
            return;
        }
        for (part, &vector) in vectors.iter().enumerate() {
            if let Some(inst) = self.loaded_by(vector) {
                self.rows.parts.insert(inst, part);
            }
        }
    }

    fn loaded_by(&self, value: Value) -> Option<Inst> {
        let dfg = &self.b.func.dfg;
        match dfg.value_def(value) {
            ValueDef::Result(inst, _) if dfg.insts[inst].opcode() == Opcode::Load => Some(inst),
            _ => None,
        }
    }

    /// Moves the loads of a part's operands here, if only loads of other parts and arithmetic came
    /// between.
    pub(super) fn sink_loads(&mut self, part: usize, operands: &[Value]) {
        let Some(block) = self.rows.block.filter(|&block| self.b.current_block() == Some(block)) else {
            return;
        };
        let of_part = |inst: &Inst| self.rows.parts.get(inst) == Some(&part);
        let mut wanted: Vec<Inst> =
            operands.iter().filter_map(|&value| self.loaded_by(value)).filter(of_part).collect();
        let mut found = Vec::new();
        let mut at = self.b.func.layout.last_inst(block);
        for _ in 0..FAR {
            let Some(inst) = at.filter(|_| found.len() < wanted.len()) else { break };
            let dfg = &self.b.func.dfg;
            let opcode = dfg.insts[inst].opcode();
            if wanted.contains(&inst) {
                found.push(inst);
            } else if let Some(&other) = self.rows.parts.get(&inst) {
                if other == part {
                    break;
                }
            } else if opcode.can_load()
                || opcode.can_store()
                || opcode.can_trap()
                || opcode.other_side_effects()
                || opcode.is_terminator()
            {
                break;
            } else {
                // A load whose result was already used stays in place.
                let used = |load: &Inst| {
                    dfg.inst_values(inst).any(|value| dfg.first_result(*load) == dfg.resolve_aliases(value))
                };
                wanted.retain(|load| found.contains(load) || !used(load));
            }
            at = self.b.func.layout.prev_inst(inst);
        }
        let layout = &mut self.b.func.layout;
        for inst in found.into_iter().rev() {
            layout.remove_inst(inst);
            layout.append_inst(inst, block);
        }
    }
}
