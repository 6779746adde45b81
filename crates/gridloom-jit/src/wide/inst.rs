//! Instructions of the machine on virtual registers.

use super::encode::{Code, Condition};
use regalloc2::{Operand, PReg, PRegSet, RegClass, VReg};

/// General-purpose registers, vectors, and masks.
pub(super) const GENERAL: RegClass = RegClass::Int;
pub(super) const VECTOR: RegClass = RegClass::Float;
pub(super) const MASK: RegClass = RegClass::Vector;

pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;
pub(super) const RBX: u8 = 3;
pub(super) const RSP: u8 = 4;
pub(super) const RBP: u8 = 5;
pub(super) const RSI: u8 = 6;
pub(super) const RDI: u8 = 7;

/// Registers that a function must preserve, beside the stack and frame pointers.
pub(super) const CALLEE_SAVED: [u8; 5] = [RBX, 12, 13, 14, 15];
/// Registers of the first integer arguments.
pub(super) const ARGUMENTS: [u8; 6] = [RDI, RSI, RDX, RCX, 8, 9];

pub(super) fn general(number: u8) -> PReg {
    PReg::new(number.into(), GENERAL)
}

/// Returns the registers that a call does not preserve.
pub(super) fn caller_saved() -> PRegSet {
    let mut set = PRegSet::empty();
    for number in [RAX, RCX, RDX, RSI, RDI, 8, 9, 10, 11] {
        set.add(general(number));
    }
    (0..32).for_each(|number| set.add(PReg::new(number, VECTOR)));
    (0..8).for_each(|number| set.add(PReg::new(number, MASK)));
    set
}

/// What a field of an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    None,
    /// The register of an operand.
    Operand(u8),
    /// A number that is part of the instruction.
    Number(u8),
}

/// The base of a place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The register of an operand.
    Operand(u8),
    /// The function's own memory.
    Frame,
    Constant(u32),
    /// The index is the address.
    None,
}

/// A place in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) base: Base,
    /// The operand that is the index, and the logarithm of its scale.
    pub(super) index: Option<(u8, u8)>,
    pub(super) displacement: i32,
    /// Whether the index is a vector, so that there is a place for each element.
    pub(super) each: bool,
}

/// An immediate operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Immediate {
    None,
    Byte(u8),
    Word(i32),
}

/// An instruction with an encoding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoded {
    pub(super) code: Code,
    pub(super) reg: Field,
    pub(super) vvvv: Field,
    /// The operand in a register, unless it is in memory.
    pub(super) rm: Field,
    pub(super) memory: Option<Memory>,
    pub(super) mask: Field,
    pub(super) zero: bool,
    /// Whether the operand in memory is one element, for all. With operands in registers, the
    /// length says how to round.
    pub(super) broadcast: bool,
    pub(super) immediate: Immediate,
    /// Whether a prefix makes it atomic.
    pub(super) lock: bool,
}

/// How a value in memory is combined with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    /// By an instruction of arithmetic.
    Arithmetic(u8),
    /// The value stays under a condition between the other and itself.
    Choose(Condition),
}

/// An atomic operation. Its operands are the base of the address, the value, the old value, and a
/// register of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicLoop {
    pub(super) combine: Combine,
    pub(super) wide: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    Encoded(Encoded),
    /// Loads a constant into the first operand.
    Constant(i64),
    /// Sets the first operand to the truth of a condition.
    Set(Condition),
    /// Divides the second operand by the first.
    Divide {
        signed: bool,
        wide: bool,
    },
    /// Reverses the bytes of the first operand, which the second takes the register of.
    SwapBytes {
        wide: bool,
    },
    /// Combines a value in memory with another, as one access: tries until nobody interferes.
    AtomicLoop(AtomicLoop),
    /// Continues with the only successor.
    Jump,
    /// Continues with the first successor if a condition holds, otherwise with the second.
    JumpIf(Condition),
    /// Continues with the successor whose number is in the first operand, or with the last one. The
    /// second operand is for its own use.
    JumpTable,
    /// Defines the parameters of the function.
    Arguments,
    /// Calls the function at the address in the first operand.
    Call,
    Return,
}

/// An instruction, and which of the function's operands are its own.
#[derive(Clone, Debug)]
pub(super) struct Inst {
    pub(super) op: Op,
    pub(super) operands: (u32, u32),
    pub(super) clobbers: Clobbers,
}

/// Registers that an instruction overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clobbers {
    Nothing,
    /// What a call does not preserve, apart from the operands that it defines.
    Call,
    /// One general-purpose register.
    Register(u8),
}

/// The instructions selected so far for one instruction of the intermediate code, in order.
#[derive(Default)]
pub(super) struct Sequence {
    pub(super) insts: Vec<Inst>,
    pub(super) operands: Vec<Operand>,
}

impl Sequence {
    pub(super) fn push(&mut self, op: Op, operands: &[Operand]) {
        self.push_clobbering(op, operands, Clobbers::Nothing);
    }

    pub(super) fn push_clobbering(&mut self, op: Op, operands: &[Operand], clobbers: Clobbers) {
        let first = self.operands.len() as u32;
        self.operands.extend(operands);
        self.insts.push(Inst { op, operands: (first, self.operands.len() as u32), clobbers });
    }
}

/// The operands of an instruction under selection.
pub(super) struct Operands {
    list: [Operand; 8],
    count: u8,
}

impl Operands {
    pub(super) fn new() -> Self {
        Self { list: [Operand::reg_use(VReg::new(0, GENERAL)); 8], count: 0 }
    }

    pub(super) fn add(&mut self, operand: Operand) -> Field {
        self.list[usize::from(self.count)] = operand;
        self.count += 1;
        Field::Operand(self.count - 1)
    }

    pub(super) fn list(&self) -> &[Operand] {
        &self.list[..usize::from(self.count)]
    }
}
