//! An instruction under selection: what it reads and writes, in virtual registers.

use super::super::encode::Code;
use super::super::inst::{Clobbers, Immediate};
use regalloc2::VReg;

/// A register or a place that an instruction reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Register(VReg),
    Memory(Address),
    /// One element in memory, for all.
    Element(Address),
}

/// An address whose registers are virtual.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) base: AddressBase,
    pub(super) index: Option<(VReg, u8)>,
    pub(super) displacement: i32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum AddressBase {
    Register(VReg),
    Frame,
    Constant(u32),
}

/// An operand of an instruction that is being selected.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    None,
    Number(u8),
    Read(VReg),
    Fixed(VReg, u8),
    Write(VReg),
    /// Written to the register of another, which is read.
    Over(VReg, VReg),
}

/// An instruction that is being selected.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) code: Code,
    pub(super) reg: Use,
    pub(super) vvvv: Use,
    pub(super) rm: Result<Source, Use>,
    pub(super) mask: Option<VReg>,
    pub(super) zero: bool,
    pub(super) immediate: Immediate,
    pub(super) lock: bool,
    /// Whether the length of vectors is that of the longest, and its field says how to round.
    pub(super) rounds: bool,
    pub(super) clobbers: Clobbers,
}

impl Form {
    pub(super) fn new(code: Code) -> Self {
        Self {
            code,
            reg: Use::None,
            vvvv: Use::None,
            rm: Err(Use::None),
            mask: None,
            zero: false,
            immediate: Immediate::None,
            lock: false,
            rounds: false,
            clobbers: Clobbers::Nothing,
        }
    }

    pub(super) fn reg(mut self, reg: Use) -> Self {
        self.reg = reg;
        self
    }

    pub(super) fn vvvv(mut self, vvvv: Use) -> Self {
        self.vvvv = vvvv;
        self
    }

    pub(super) fn rm(mut self, source: Source) -> Self {
        self.rm = Ok(source);
        self
    }

    pub(super) fn rm_use(mut self, operand: Use) -> Self {
        self.rm = Err(operand);
        self
    }

    pub(super) fn under(mut self, mask: VReg, zero: bool) -> Self {
        (self.mask, self.zero) = (Some(mask), zero);
        self
    }

    /// Rounds towards minus infinity. The operands are registers.
    pub(super) fn down(mut self) -> Self {
        (self.code, self.rounds) = (self.code.of(32), true);
        self
    }

    pub(super) fn byte(mut self, immediate: u8) -> Self {
        self.immediate = Immediate::Byte(immediate);
        self
    }

    pub(super) fn word(mut self, immediate: i32) -> Self {
        self.immediate = Immediate::Word(immediate);
        self
    }
}
