//! Emission of machine code for a function whose registers are allocated.

use super::allocate::Placed;
use super::codes::{VMOVAPS, VMOVUPS, VMOVUPS_STORE, arithmetic};
use super::encode::{AddressForm, Assembler, Code, Condition, Fields, Rm};
use super::inst::*;
use super::listing;
use regalloc2::{Allocation, Block, Edit, Function, InstOrEdit, Output};
use std::ops::Range;

/// Bytes of a page of the stack, of which none is left out.
const PAGE: i32 = 4096;

/// Where a distance to a block is missing.
struct Jump {
    at: usize,
    target: u32,
    /// The place that the distance is counted from.
    from: usize,
}

struct Emitter<'a> {
    assembler: Assembler,
    placed: &'a Placed,
    output: &'a Output,
    jumps: Vec<Jump>,
    /// The start of each block.
    starts: Vec<usize>,
    /// Where the places for registers in memory begin.
    spills: i32,
    /// Callee-saved registers that the function uses.
    saved: Vec<u8>,
    bytes: i32,
    /// Blocks that do nothing but continue with another.
    forwarded: Vec<u32>,
    /// Where each instruction starts.
    instructions: Vec<usize>,
}

fn fields(reg: u8, rm: Rm) -> Fields {
    Fields { reg, vvvv: 0, rm, mask: 0, zero: false, broadcast: false }
}

/// Machine code, with its constants and tables behind it.
pub(crate) struct MachineCode {
    pub(crate) bytes: Vec<u8>,
    /// Where each block starts that has any code.
    blocks: Vec<(usize, usize)>,
    /// Where each instruction starts, and where the last ends.
    instructions: Vec<usize>,
}

impl MachineCode {
    /// Returns the code as text for people: blocks and their instructions.
    pub(crate) fn listing(&self) -> String {
        let mut text = String::new();
        let mut blocks = self.blocks.iter().peekable();
        for instruction in self.instructions() {
            while let Some((_, number)) = blocks.next_if(|(at, _)| *at <= instruction.start) {
                text.push_str(&format!("block{number}:\n"));
            }
            text.push_str(&format!("  {}\n", listing::line(&self.bytes, instruction)));
        }
        text
    }

    /// Returns where each instruction is, in order. Some of these ranges hold several instructions.
    pub(super) fn instructions(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.instructions.iter().skip(1).copied();
        self.instructions.iter().copied().zip(ends).map(|(start, end)| start..end)
    }
}

/// Writes a function, its constants and its tables.
pub(super) fn emit(placed: &Placed, output: &Output, frame: u32, constants: &[Vec<u8>]) -> MachineCode {
    let mut used = [false; 16];
    let mut note = |allocation: Allocation| {
        if let Some(register) = allocation.as_reg()
            && register.class() == GENERAL
        {
            used[register.hw_enc()] = true;
        }
    };
    output.allocs.iter().for_each(|&allocation| note(allocation));
    for (_, Edit::Move { to, .. }) in &output.edits {
        note(*to);
    }
    let saved = CALLEE_SAVED.into_iter().filter(|&number| used[usize::from(number)]).collect();
    let spills = frame.next_multiple_of(64) as i32;
    let bytes = (spills + 8 * output.num_spillslots as i32 + 63) & !63;
    let count = placed.num_blocks();
    let mut emitter = Emitter {
        assembler: Assembler::default(),
        placed,
        output,
        jumps: Vec::new(),
        starts: vec![0; count],
        spills,
        saved,
        bytes,
        forwarded: (0..count as u32).collect(),
        instructions: vec![0],
    };
    emitter.forward();
    emitter.prologue();
    for number in 0..count {
        emitter.block(number);
    }
    emitter.finish(constants)
}

impl Emitter<'_> {
    /// Finds blocks that do nothing but continue with another.
    fn forward(&mut self) {
        for number in 0..self.placed.num_blocks() {
            let block = Block::new(number);
            let insts = self.placed.block_insns(block);
            let is_jump = matches!(self.placed.insts[insts.first().index()].op, Op::Jump);
            if is_jump && self.output.block_insts_and_edits(self.placed, block).count() == 1 {
                self.forwarded[number] = self.placed.blocks[number].successors[0];
            }
        }
        for number in 0..self.forwarded.len() {
            let mut to = self.forwarded[number];
            let mut steps = 0;
            while self.forwarded[to as usize] != to && steps <= self.forwarded.len() {
                to = self.forwarded[to as usize];
                steps += 1;
            }
            // Of blocks that lead to each other in a circle, one stays.
            let is_circle = self.forwarded[to as usize] != to;
            self.forwarded[number] = if is_circle { number as u32 } else { to };
        }
    }

    fn prologue(&mut self) {
        let code = &mut self.assembler.code;
        // push rbp; mov rbp, rsp
        code.extend([0x55, 0x48, 0x89, 0xe5]);
        for &number in &self.saved {
            if number >= 8 {
                code.push(0x41);
            }
            code.push(0x50 | number & 7);
        }
        let mut rest = self.bytes;
        while rest > 0 {
            let step = rest.min(PAGE);
            self.assembler.instruction(Code::legacy(0, 0, 0x81, true), fields(5, Rm::Register(RSP)), 4);
            self.assembler.code.extend(step.to_le_bytes());
            rest -= step;
            if rest > 0 {
                // Touches each page, so that an overflow hits the guard page:
                // or dword ptr [rsp], 0
                self.assembler.code.extend([0x83, 0x0c, 0x24, 0x00]);
            }
        }
        // and rsp, -64
        self.assembler.code.extend([0x48, 0x83, 0xe4, 0xc0]);
    }

    fn epilogue(&mut self) {
        // Other code is faster if no upper half of a vector is in use: vzeroupper
        self.assembler.code.extend([0xc5, 0xf8, 0x77]);
        let displacement = -8 * self.saved.len() as i32;
        let place = Rm::Memory(AddressForm::At { base: RBP, index: None, displacement });
        self.assembler.instruction(Code::legacy(0, 0, 0x8d, true), fields(RSP, place), 0);
        for &number in self.saved.iter().rev() {
            if number >= 8 {
                self.assembler.code.push(0x41);
            }
            self.assembler.code.push(0x58 | number & 7);
        }
        self.assembler.code.extend([0x5d, 0xc3]);
    }

    fn block(&mut self, number: usize) {
        self.starts[number] = self.assembler.code.len();
        if self.forwarded[number] != number as u32 && number != 0 {
            return;
        }
        let block = Block::new(number);
        for item in self.output.block_insts_and_edits(self.placed, block) {
            self.instructions.push(self.assembler.code.len());
            match item {
                InstOrEdit::Edit(Edit::Move { from, to }) => self.copy(*from, *to),
                InstOrEdit::Inst(inst) => self.instruction(number, inst.index()),
            }
        }
    }

    fn slot(&self, allocation: Allocation) -> Option<Rm> {
        let slot = allocation.as_stack()?;
        let displacement = self.spills + 8 * slot.index() as i32;
        Some(Rm::Memory(AddressForm::At { base: RSP, index: None, displacement }))
    }

    fn copy(&mut self, from: Allocation, to: Allocation) {
        if from == to {
            return;
        }
        let register = |allocation: Allocation| allocation.as_reg();
        let (code, reg, rm) = match (register(from), register(to)) {
            (Some(from), Some(to)) => {
                let rm = Rm::Register(from.hw_enc() as u8);
                let code = match to.class() {
                    VECTOR => VMOVAPS.of(64),
                    MASK => Code::vex(1, 0, 0x90, false, 0),
                    _ => arithmetic(0x8b, true),
                };
                (code, to, rm)
            }
            (None, Some(to)) => {
                let Some(rm) = self.slot(from) else { return };
                let code = match to.class() {
                    VECTOR => VMOVUPS.of(64),
                    MASK => Code::vex(1, 0, 0x90, false, 0),
                    _ => arithmetic(0x8b, true),
                };
                (code, to, rm)
            }
            (Some(from), None) => {
                let Some(rm) = self.slot(to) else { return };
                let code = match from.class() {
                    VECTOR => VMOVUPS_STORE.of(64),
                    MASK => Code::vex(1, 0, 0x91, false, 0),
                    _ => arithmetic(0x89, true),
                };
                (code, from, rm)
            }
            (None, None) => return,
        };
        self.assembler.instruction(code, fields(reg.hw_enc() as u8, rm), 0);
    }

    fn instruction(&mut self, block: usize, index: usize) {
        let placed = self.placed;
        let inst = &placed.insts[index];
        let allocations = self.output.inst_allocs(regalloc2::Inst::new(index));
        let register = |number: u8| {
            allocations[usize::from(number)].as_reg().map_or(0, |register| register.hw_enc() as u8)
        };
        match &inst.op {
            Op::Encoded(encoded) => self.encoded(encoded, &register),
            &Op::Constant(constant) => self.constant(register(0), constant),
            &Op::Set(condition) => {
                let to = register(0);
                let code = Code::legacy(1, 0, 0x90 + condition as u8, false).with_bytes(false, true);
                self.assembler.instruction(code, fields(0, Rm::Register(to)), 0);
                let code = Code::legacy(1, 0, 0xb6, false).with_bytes(false, true);
                self.assembler.instruction(code, fields(to, Rm::Register(to)), 0);
            }
            &Op::Divide { signed, wide } => {
                if signed {
                    // cdq, cqo
                    if wide {
                        self.assembler.code.push(0x48);
                    }
                    self.assembler.code.push(0x99);
                } else {
                    self.assembler.instruction(arithmetic(0x33, false), fields(RDX, Rm::Register(RDX)), 0);
                }
                let number = if signed { 7 } else { 6 };
                let code = Code::legacy(0, 0, 0xf7, wide);
                self.assembler.instruction(code, fields(number, Rm::Register(register(0))), 0);
            }
            &Op::SwapBytes { wide } => {
                let to = register(1);
                self.assembler.code.push(0x40 | u8::from(wide) << 3 | u8::from(to >= 8));
                self.assembler.code.extend([0x0f, 0xc8 | to & 7]);
            }
            Op::AtomicLoop(atomic) => self.atomic(*atomic, [0, 1, 3].map(register)),
            Op::Jump => {
                let target = placed.blocks[block].successors[0];
                self.jump(None, target, block);
            }
            &Op::JumpIf(condition) => {
                let [taken, other] = [0, 1].map(|i| placed.blocks[block].successors[i]);
                if self.follows(block, taken) {
                    self.jump(Some(condition.not()), other, block);
                } else {
                    self.jump(Some(condition), taken, block);
                    self.jump(None, other, block);
                }
            }
            Op::JumpTable => self.table(block, [0, 1, 2].map(register)),
            Op::Call => {
                // The callee may run old instructions on vectors.
                if inst.clobbers == Clobbers::Call {
                    self.assembler.code.extend([0xc5, 0xf8, 0x77]);
                }
                let callee = Rm::Register(register(0));
                self.assembler.instruction(Code::legacy(0, 0, 0xff, false), fields(2, callee), 0);
            }
            Op::Return => self.epilogue(),
            Op::Arguments => {}
        }
    }

    fn encoded(&mut self, encoded: &Encoded, register: &dyn Fn(u8) -> u8) {
        let number = |field: Field| match field {
            Field::None => 0,
            Field::Number(number) => number,
            Field::Operand(operand) => register(operand),
        };
        let rm = match encoded.memory {
            None => Rm::Register(number(encoded.rm)),
            Some(memory) => {
                let index = memory.index.map(|(index, log)| (register(index), log));
                let displacement = memory.displacement;
                Rm::Memory(match memory.base {
                    base if memory.each => AddressForm::Each {
                        base: if let Base::Operand(base) = base { Some(register(base)) } else { None },
                        index: index.unwrap_or_default(),
                        displacement,
                    },
                    Base::None => return,
                    Base::Operand(base) => AddressForm::At { base: register(base), index, displacement },
                    Base::Frame => AddressForm::At { base: RSP, index, displacement },
                    Base::Constant(constant) => AddressForm::Constant(constant),
                })
            }
        };
        // In old instructions this is a register that no field names.
        let vvvv = if encoded.code.kind == super::encode::Kind::Legacy { 0 } else { number(encoded.vvvv) };
        let fields = Fields {
            reg: number(encoded.reg),
            vvvv,
            rm,
            mask: number(encoded.mask),
            zero: encoded.zero,
            broadcast: encoded.broadcast,
        };
        if encoded.lock {
            self.assembler.code.push(0xf0);
        }
        let immediate = match encoded.immediate {
            Immediate::None => 0,
            Immediate::Byte(_) => 1,
            Immediate::Word(_) => 4,
        };
        self.assembler.instruction(encoded.code, fields, immediate);
        match encoded.immediate {
            Immediate::None => {}
            Immediate::Byte(byte) => self.assembler.code.push(byte),
            Immediate::Word(word) => self.assembler.code.extend(word.to_le_bytes()),
        }
    }

    fn constant(&mut self, to: u8, constant: i64) {
        let code = &mut self.assembler.code;
        if let Ok(short) = u32::try_from(constant) {
            if to >= 8 {
                code.push(0x41);
            }
            code.push(0xb8 | to & 7);
            code.extend(short.to_le_bytes());
        } else if let Ok(short) = i32::try_from(constant) {
            self.assembler.instruction(Code::legacy(0, 0, 0xc7, true), fields(0, Rm::Register(to)), 4);
            self.assembler.code.extend(short.to_le_bytes());
        } else {
            code.extend([0x48 | u8::from(to >= 8), 0xb8 | to & 7]);
            code.extend(constant.to_le_bytes());
        }
    }

    /// Emits an atomic operation as a loop that compares and exchanges until no other thread
    /// interferes.
    fn atomic(&mut self, atomic: AtomicLoop, [at, value, own]: [u8; 3]) {
        let AtomicLoop { combine, wide } = atomic;
        let place = Rm::Memory(AddressForm::At { base: at, index: None, displacement: 0 });
        self.assembler.instruction(arithmetic(0x8b, wide), fields(RAX, place), 0);
        let start = self.assembler.code.len();
        match combine {
            Combine::Arithmetic(opcode) => {
                self.assembler.instruction(arithmetic(0x8b, wide), fields(own, Rm::Register(RAX)), 0);
                self.assembler.instruction(arithmetic(opcode, wide), fields(own, Rm::Register(value)), 0);
            }
            Combine::Choose(condition) => {
                self.assembler.instruction(arithmetic(0x8b, wide), fields(own, Rm::Register(value)), 0);
                // The old value stays if it is the one to be kept.
                self.assembler.instruction(arithmetic(0x3b, wide), fields(RAX, Rm::Register(value)), 0);
                let code = Code::legacy(1, 0, 0x40 + condition as u8, wide);
                self.assembler.instruction(code, fields(own, Rm::Register(RAX)), 0);
            }
        }
        self.assembler.code.push(0xf0);
        self.assembler.instruction(Code::legacy(1, 0, 0xb1, wide), fields(own, place), 0);
        let distance = start as i64 - (self.assembler.code.len() as i64 + 2);
        self.assembler.code.extend([0x75, distance as u8]);
    }

    /// Returns whether a block comes next, with nothing in between.
    fn follows(&self, block: usize, target: u32) -> bool {
        let target = self.forwarded[target as usize] as usize;
        target > block && (block + 1..target).all(|between| self.forwarded[between] as usize != between)
    }

    fn jump(&mut self, condition: Option<Condition>, target: u32, block: usize) {
        if condition.is_none() && self.follows(block, target) {
            return;
        }
        let target = self.forwarded[target as usize];
        if target as usize <= block {
            // The distance is known.
            let distance = self.starts[target as usize] as i64 - (self.assembler.code.len() as i64 + 2);
            if let Ok(short) = i8::try_from(distance) {
                let opcode = condition.map_or(0xeb, |condition| 0x70 + condition as u8);
                return self.assembler.code.extend([opcode, short as u8]);
            }
        }
        match condition {
            Some(condition) => self.assembler.code.extend([0x0f, 0x80 + condition as u8]),
            None => self.assembler.code.push(0xe9),
        }
        let at = self.assembler.code.len();
        self.assembler.code.extend([0; 4]);
        self.jumps.push(Jump { at, target, from: at + 4 });
    }

    /// Jumps to the target that a table of distances gives.
    fn table(&mut self, block: usize, [index, a, b]: [u8; 3]) {
        let successors = &self.placed.blocks[block].successors;
        let Some((&default, targets)) = successors.split_last() else { return };
        self.assembler.instruction(arithmetic(0x8b, false), fields(a, Rm::Register(index)), 0);
        self.assembler.instruction(Code::legacy(0, 0, 0x81, false), fields(7, Rm::Register(a)), 4);
        self.assembler.code.extend((targets.len() as u32).to_le_bytes());
        self.jump(Some(Condition::NotBelow), default, block);
        // lea b, [rip + table]
        self.assembler.code.extend([0x48 | u8::from(b >= 8) << 2, 0x8d, 5 | (b & 7) << 3]);
        let at = self.assembler.code.len();
        self.assembler.code.extend([0; 4]);
        let place = Rm::Memory(AddressForm::At { base: b, index: Some((a, 2)), displacement: 0 });
        self.assembler.instruction(Code::legacy(0, 0, 0x63, true), fields(a, place), 0);
        self.assembler.instruction(arithmetic(0x03, true), fields(a, Rm::Register(b)), 0);
        self.assembler.instruction(Code::legacy(0, 0, 0xff, false), fields(4, Rm::Register(a)), 0);
        let table = self.assembler.code.len();
        self.assembler.code[at..at + 4].copy_from_slice(&((table - at - 4) as u32).to_le_bytes());
        for &target in targets {
            let target = self.forwarded[target as usize];
            self.jumps.push(Jump { at: self.assembler.code.len(), target, from: table });
            self.assembler.code.extend([0; 4]);
        }
    }

    /// Adds the constants and fills in all distances.
    fn finish(mut self, constants: &[Vec<u8>]) -> MachineCode {
        // The end of the last.
        self.instructions.push(self.assembler.code.len());
        self.instructions.dedup();
        for &Jump { at, target, from } in &self.jumps {
            let distance = self.starts[target as usize] as i64 - from as i64;
            self.assembler.code[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        let mut order: Vec<usize> = (0..constants.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(constants[number].len()));
        let mut places = vec![0; constants.len()];
        let code = &mut self.assembler.code;
        if let Some(&first) = order.first() {
            code.resize(code.len().next_multiple_of(constants[first].len().min(64)), 0xcc);
        }
        for number in order {
            code.resize(code.len().next_multiple_of(constants[number].len()), 0);
            places[number] = code.len();
            code.extend(&constants[number]);
        }
        for &(at, behind, constant) in &self.assembler.constants {
            let from = at + 4 + usize::from(behind);
            let distance = places[constant as usize] as i64 - from as i64;
            code[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        let mut blocks: Vec<(usize, usize)> = self
            .starts
            .iter()
            .enumerate()
            .filter(|&(number, _)| number == 0 || self.forwarded[number] as usize == number)
            .map(|(number, &at)| (at, number))
            .collect();
        if let Some(first) = blocks.first_mut() {
            first.0 = 0;
        }
        MachineCode { bytes: self.assembler.code, blocks, instructions: self.instructions }
    }
}
