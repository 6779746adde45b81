//! Encoding of x86-64 instructions: legacy, VEX and EVEX.

/// How an instruction is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Legacy,
    Vex,
    Evex,
    /// EVEX, or the same in VEX, which is shorter, if registers and length allow it.
    Either,
}

/// The part of an encoding that does not depend on operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) kind: Kind,
    /// 0 for one-byte opcodes, 1 for `0F`, 2 for `0F38`, 3 for `0F3A`.
    pub(super) map: u8,
    /// The mandatory prefix: 0 for none, 1 for `66`, 2 for `F3`, 3 for `F2`.
    pub(super) prefix: u8,
    pub(super) opcode: u8,
    /// The bit for 64-bit operands, or for 64-bit elements.
    pub(super) wide: bool,
    /// The base-two logarithm of a vector's length in units of 16 bytes.
    pub(super) length: u8,
    /// The number of bytes that an EVEX instruction accesses in memory.
    pub(super) access: u8,
    /// Whether the `reg` operand, and the `rm` operand, is a byte register.
    pub(super) bytes: [bool; 2],
}

impl Code {
    /// Describes an instruction on general-purpose registers.
    pub(super) const fn legacy(map: u8, prefix: u8, opcode: u8, wide: bool) -> Self {
        let kind = Kind::Legacy;
        Self { kind, map, prefix, opcode, wide, length: 0, access: 1, bytes: [false; 2] }
    }

    /// Describes an instruction on mask registers, or on general-purpose registers with three
    /// operands.
    pub(super) const fn vex(map: u8, prefix: u8, opcode: u8, wide: bool, length: u8) -> Self {
        Self { kind: Kind::Vex, map, prefix, opcode, wide, length, access: 1, bytes: [false; 2] }
    }

    /// Describes a vector instruction.
    pub(super) const fn evex(map: u8, prefix: u8, opcode: u8, wide: bool) -> Self {
        Self { kind: Kind::Evex, map, prefix, opcode, wide, length: 0, access: 0, bytes: [false; 2] }
    }

    /// Describes a vector instruction that has the same encoding in VEX.
    pub(super) const fn either(map: u8, prefix: u8, opcode: u8, wide: bool) -> Self {
        Self { kind: Kind::Either, map, prefix, opcode, wide, length: 0, access: 0, bytes: [false; 2] }
    }

    /// Sets the length of vectors in bytes.
    pub(super) const fn of(mut self, bytes: u32) -> Self {
        self.length = match bytes {
            64 => 2,
            32 => 1,
            _ => 0,
        };
        if self.access == 0 {
            self.access = 16 << self.length;
        }
        self
    }

    /// Sets the number of bytes that are accessed in memory.
    pub(super) const fn accessing(mut self, bytes: u8) -> Self {
        self.access = bytes;
        self
    }

    pub(super) const fn with_bytes(mut self, reg: bool, rm: bool) -> Self {
        self.bytes = [reg, rm];
        self
    }
}

/// The address of an operand in memory, by registers and a displacement.
#[derive(Clone, Copy, Debug)]
pub(super) enum AddressForm {
    /// A base, an index with the logarithm of its scale, and a displacement.
    At { base: u8, index: Option<(u8, u8)>, displacement: i32 },
    /// An address for each element of a vector. The vector is the index; its scale is a logarithm.
    Each { base: Option<u8>, index: (u8, u8), displacement: i32 },
    /// A constant of the function.
    Constant(u32),
}

/// The `rm` operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rm {
    Register(u8),
    Memory(AddressForm),
}

/// The operands of an instruction, by number of their register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) reg: u8,
    pub(super) vvvv: u8,
    pub(super) rm: Rm,
    pub(super) mask: u8,
    /// Whether elements outside the mask become zero.
    pub(super) zero: bool,
    /// Whether the operand in memory is one element, for all. With operands in registers, the
    /// length says how to round.
    pub(super) broadcast: bool,
}

const RSP: u8 = 4;

/// Machine code that is being written.
#[derive(Default)]
pub(super) struct Assembler {
    pub(super) code: Vec<u8>,
    /// Where the distance to a constant is missing: the place of four bytes, what follows them
    /// within the instruction, and the constant.
    pub(super) constants: Vec<(usize, u8, u32)>,
}

impl Assembler {
    /// Writes an instruction. `immediate` is the number of bytes that follow it.
    pub(super) fn instruction(&mut self, code: Code, fields: Fields, immediate: u8) {
        let (base, index) = match fields.rm {
            Rm::Register(register) => (register, if register & 16 != 0 { 8 } else { 0 }),
            Rm::Memory(AddressForm::At { base, index, .. }) => (base, index.map_or(0, |(index, _)| index)),
            Rm::Memory(AddressForm::Each { base, index, .. }) => (base.unwrap_or(0), index.0),
            Rm::Memory(AddressForm::Constant(_)) => (0, 0),
        };
        // The highest bit of an index that is a vector is where other instructions have that of
        // their second operand.
        let vvvv = match fields.rm {
            Rm::Memory(AddressForm::Each { index, .. }) => index.0 & 16,
            _ => fields.vvvv,
        };
        let is_register = matches!(fields.rm, Rm::Register(_));
        let [r, x, b] = [fields.reg & 8 != 0, index & 8 != 0, base & 8 != 0];
        let is_vex = code.kind == Kind::Vex
            || code.kind == Kind::Either
                && code.length < 2
                && fields.mask == 0
                && !fields.broadcast
                && fields.reg < 16
                && fields.vvvv < 16
                && !(is_register && base >= 16);
        let mut scale = 1;
        if code.kind == Kind::Legacy {
            match code.prefix {
                1 => self.code.push(0x66),
                2 => self.code.push(0xf3),
                3 => self.code.push(0xf2),
                _ => {}
            }
            let rex = u8::from(code.wide) << 3 | u8::from(r) << 2 | u8::from(x) << 1 | u8::from(b);
            let low = code.bytes[0] && fields.reg >= 4 || is_register && code.bytes[1] && base >= 4;
            if rex != 0 || low {
                self.code.push(0x40 | rex);
            }
            match code.map {
                1 => self.code.push(0x0f),
                2 => self.code.extend([0x0f, 0x38]),
                3 => self.code.extend([0x0f, 0x3a]),
                _ => {}
            }
        } else if is_vex {
            let vvvv = !vvvv & 15;
            let last = vvvv << 3 | code.length << 2 | code.prefix;
            let x = x && !is_register;
            // What is shorter in VEX ignores the bit for wide elements, or has it in EVEX too.
            if !x && !b && !code.wide && code.map == 1 {
                self.code.extend([0xc5, u8::from(!r) << 7 | last]);
            } else {
                let flags = u8::from(!r) << 7 | u8::from(!x) << 6 | u8::from(!b) << 5;
                self.code.extend([0xc4, flags | code.map, u8::from(code.wide) << 7 | last]);
            }
        } else {
            let high = fields.reg & 16 != 0;
            let flags = u8::from(!r) << 7 | u8::from(!x) << 6 | u8::from(!b) << 5 | u8::from(!high) << 4;
            let second = u8::from(code.wide) << 7 | (!vvvv & 15) << 3 | 4 | code.prefix;
            let last = u8::from(fields.zero) << 7
                | code.length << 5
                | u8::from(fields.broadcast) << 4
                | u8::from(vvvv & 16 == 0) << 3
                | fields.mask;
            self.code.extend([0x62, flags | code.map, second, last]);
            scale = match (fields.broadcast, code.wide) {
                (true, true) => 8,
                (true, false) => 4,
                _ => i32::from(code.access),
            };
        }
        self.code.push(code.opcode);
        self.operand(fields.reg, fields.rm, scale, immediate);
    }

    /// Writes the byte that names the operands, and what it needs.
    fn operand(&mut self, reg: u8, rm: Rm, scale: i32, immediate: u8) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Register(register) => self.code.push(0xc0 | reg | register & 7),
            Rm::Memory(AddressForm::Constant(constant)) => {
                self.code.push(reg | 5);
                self.constants.push((self.code.len(), immediate, constant));
                self.code.extend([0; 4]);
            }
            Rm::Memory(AddressForm::Each { base: None, index: (index, log), displacement }) => {
                self.code.extend([reg | 4, log << 6 | (index & 7) << 3 | 5]);
                self.code.extend(displacement.to_le_bytes());
            }
            Rm::Memory(AddressForm::Each { base: Some(base), index, displacement }) => {
                self.based(reg, base, Some(index), displacement, scale);
            }
            Rm::Memory(AddressForm::At { base, index, displacement }) => {
                self.based(reg, base, index, displacement, scale);
            }
        }
    }

    /// Writes the operand at a base.
    fn based(&mut self, reg: u8, base: u8, index: Option<(u8, u8)>, displacement: i32, scale: i32) {
        let short = (displacement % scale == 0)
            .then_some(displacement / scale)
            .and_then(|short| i8::try_from(short).ok());
        let (mode, short) = match short {
            Some(0) if base & 7 != 5 => (0, None),
            Some(short) => (0x40, Some(short)),
            None => (0x80, None),
        };
        match index {
            Some((index, log)) => {
                self.code.extend([mode | reg | 4, log << 6 | (index & 7) << 3 | base & 7]);
            }
            None if base & 7 == RSP => self.code.extend([mode | reg | 4, 0x24]),
            None => self.code.push(mode | reg | base & 7),
        }
        match (mode, short) {
            (0x40, Some(short)) => self.code.push(short as u8),
            (0x80, _) => self.code.extend(displacement.to_le_bytes()),
            _ => {}
        }
    }
}

/// A condition of the flags, by its number in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Condition {
    Below = 2,
    NotBelow = 3,
    Zero = 4,
    NotZero = 5,
    NotAbove = 6,
    Above = 7,
    Less = 12,
    NotLess = 13,
    NotGreater = 14,
    Greater = 15,
}

impl Condition {
    /// Returns the opposite condition.
    pub(super) fn not(self) -> Self {
        match self {
            Self::Below => Self::NotBelow,
            Self::NotBelow => Self::Below,
            Self::Zero => Self::NotZero,
            Self::NotZero => Self::Zero,
            Self::NotAbove => Self::Above,
            Self::Above => Self::NotAbove,
            Self::Less => Self::NotLess,
            Self::NotLess => Self::Less,
            Self::NotGreater => Self::Greater,
            Self::Greater => Self::NotGreater,
        }
    }
}
