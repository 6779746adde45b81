//! Slots: the parts of a block in which several blocks of the original kernels run side by side.
//!
//! Each slot has its own copy of the shared memory of the kernels, and its own numbers of barriers.

use gridloom_ptx::op::{ConvertOp, IntArith, IntOp, MulMode, Op};
use gridloom_ptx::{Operand, RegId, ScalarType, VarRef};

use super::{Assembly, int};

/// The slots of a kernel under construction.
pub(super) struct Slots {
    /// The number of slots.
    pub(super) count: u32,
    /// The register with the number of the thread's slot.
    pub(super) slot: RegId,
    /// The start of the slot's static shared memory.
    pub(super) statics: Start,
    /// The start of the slot's dynamic shared memory.
    pub(super) dynamics: Option<Start>,
    /// The instructions with the distance between the static shared memory of two slots, which is
    /// known when all kernels are inlined.
    distances: [usize; 2],
}

/// An address in shared memory, in registers of both widths that PTX allows.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) narrow: RegId,
    pub(super) wide: RegId,
}

impl Assembly {
    /// Divides the block into slots, before anything is inlined. `slot` holds the number of a
    /// thread's slot, and `dynamic` is the dynamic shared memory of each in bytes.
    pub(crate) fn divide(&mut self, count: u32, slot: RegId, dynamic: u32) {
        let arena = VarRef::Local(self.arena());
        let statics = self.start(arena, slot, 0);
        // `start` ends with the two instructions that multiply.
        let last = self.body.instructions.len() - 1;
        let dynamics = (dynamic > 0).then(|| {
            let whole = VarRef::Symbol(self.dynamic_shared_symbol());
            self.start(whole, slot, dynamic)
        });
        self.slots = Some(Slots { count, slot, statics, dynamics, distances: [last - 1, last] });
    }

    fn start(&mut self, base: VarRef, slot: RegId, distance: u32) -> Start {
        let first = Operand::Address { base, offset: 0 };
        let from = self.mov(ScalarType::U32, first);
        let from_wide = self.mov(ScalarType::U64, first);
        let narrow = self.register(ScalarType::U32);
        self.emit(IntOp::Mad {
            mode: MulMode::Lo,
            ty: ScalarType::U32,
            sat: false,
            dst: narrow,
            a: slot.into(),
            b: int(distance.into()),
            c: from.into(),
        });
        let wide = self.mul_add_wide(slot.into(), distance.into(), from_wide);
        Start { narrow, wide }
    }

    /// Fills in the distance between slots. Returns the bytes of all of them.
    pub(super) fn finish_slots(&mut self) -> u64 {
        let bytes = self.arena_bytes.max(1);
        let Some(slots) = &self.slots else { return bytes };
        let distance = bytes.next_multiple_of(self.arena_align.max(16));
        for at in slots.distances {
            if let Op::Int(IntOp::Mad { b, .. }) = &mut self.body.instructions[at].op {
                *b = int(distance as i64);
            }
        }
        distance * u64::from(slots.count)
    }

    /// Returns the number of a kernel's barrier in the thread's slot.
    pub(super) fn slot_barrier(&mut self, number: Operand) -> Operand {
        let (Some(slots), Operand::Imm(gridloom_ptx::Imm::Int(number))) = (&self.slots, &number) else {
            return number;
        };
        let (slot, first) = (slots.slot, number * i64::from(slots.count));
        self.arith(IntArith::Add, ScalarType::U32, slot.into(), int(first)).into()
    }
}

/// Returns the type in which an instruction takes an address, or `None` if it takes none.
pub(super) fn address_type(op: &Op) -> Option<ScalarType> {
    match op {
        Op::Convert(ConvertOp::Mov { ty, .. } | ConvertOp::Cvta { ty, .. }) => Some(*ty),
        _ => None,
    }
}
