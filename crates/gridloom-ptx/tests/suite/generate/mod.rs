//! Random modules, made from the model: every variant of every family, with every modifier.
//!
//! A module is a function of a list of numbers, so that the property test's shrinking shrinks the
//! module.

mod ops;

use gridloom_ptx::op::{CallArg, Instruction};
use gridloom_ptx::{
    Address, AddressBase, Attribute, Body, BodyPragma, BranchTable, BranchTableId, CallTable, CallTableId,
    Dim, DimSpecial, Directives, Dsts, Function, FunctionKind, Guard, Image, Imm, Initializer, InlinedAt,
    Item, Label, LabelId, Linkage, LocalVarId, LocationId, Module, Operand, Param, ParamId, PlainSpecial,
    PointerAttr, PredOperand, Prototype, PrototypeId, RegId, Registers, Relocation, ScalarType, Source,
    SourceFile, SourceLocation, Space, Span, SpecialReg, Srcs, Symbol, SymbolId, Target, VarRef, VarSpace,
    Variable, Version,
};

/// Registers of each generated body: 4 predicates first, then values.
const PREDICATES: u32 = 4;
const REGISTERS: u32 = 20;
const LABELS: u32 = 3;

/// Choices, from a list of numbers; all zero once the list is used up.
pub(crate) struct Choices<'a> {
    numbers: &'a [u64],
    at: usize,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(numbers: &'a [u64]) -> Self {
        Self { numbers, at: 0 }
    }

    fn number(&mut self) -> u64 {
        let number = self.numbers.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        number
    }

    fn below(&mut self, limit: u32) -> u32 {
        (self.number() % u64::from(limit)) as u32
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    // --- operands ---

    fn reg(&mut self) -> RegId {
        RegId(self.below(REGISTERS))
    }

    fn value_reg(&mut self) -> RegId {
        RegId(PREDICATES + self.below(REGISTERS - PREDICATES))
    }

    fn maybe_reg(&mut self) -> Option<RegId> {
        self.maybe(Self::reg)
    }

    fn imm(&mut self) -> Imm {
        match self.below(4) {
            0 => Imm::Int(i64::from(self.below(64))),
            1 => Imm::Int(self.number().cast_signed()),
            2 => Imm::F32(self.number() as u32),
            _ => Imm::F64(self.number()),
        }
    }

    fn offset(&mut self) -> i64 {
        match self.below(3) {
            0 => 0,
            1 => i64::from(self.below(256)),
            _ => self.number().cast_signed(),
        }
    }

    fn var(&mut self) -> VarRef {
        match self.below(4) {
            0 => VarRef::Symbol(SymbolId(self.below(3))),
            1 => VarRef::Local(LocalVarId(self.below(2))),
            2 => VarRef::Param(ParamId(self.below(2))),
            _ => VarRef::Return(ParamId(0)),
        }
    }

    fn special(&mut self) -> SpecialReg {
        match self.below(6) {
            0 => SpecialReg::Plain(self.pick(PlainSpecial::ALL)),
            1 => SpecialReg::EnvReg(self.below(32) as u8),
            2 => SpecialReg::Pm(self.below(8) as u8),
            3 => SpecialReg::Pm64(self.below(8) as u8),
            4 => SpecialReg::ReservedSmemOffset(self.below(2) as u8),
            _ => SpecialReg::Dim(self.pick(DimSpecial::ALL), self.pick(Dim::ALL)),
        }
    }

    fn src(&mut self) -> Operand {
        match self.below(6) {
            0..=2 => Operand::Reg(self.value_reg()),
            3 => Operand::Imm(self.imm()),
            4 => Operand::Special(self.special()),
            _ => Operand::Address { base: self.var(), offset: self.offset() },
        }
    }

    fn pred(&mut self) -> PredOperand {
        match self.below(4) {
            0 => PredOperand::Const(self.flag()),
            _ => PredOperand::Reg { reg: self.reg(), negated: self.flag() },
        }
    }

    fn addr(&mut self) -> Address {
        let base = match self.below(4) {
            0 => AddressBase::Var(self.var()),
            1 => AddressBase::Absolute,
            _ => AddressBase::Reg(self.value_reg()),
        };
        Address { base, offset: self.offset() }
    }

    fn dsts(&mut self, count: usize) -> Dsts {
        (0..count).map(|_| self.maybe_reg()).collect()
    }

    fn srcs(&mut self, count: usize) -> Srcs {
        (0..count).map(|_| self.src()).collect()
    }

    fn length(&mut self) -> usize {
        self.pick(&[1, 1, 2, 4, 8])
    }

    fn space(&mut self) -> Space {
        self.pick(Space::ALL)
    }

    fn int_type(&mut self) -> ScalarType {
        use ScalarType::*;
        self.pick(&[U16, U32, U64, S16, S32, S64, B32, B64, U16x2, S16x2])
    }

    fn float_type(&mut self) -> ScalarType {
        use ScalarType::*;
        self.pick(&[F32, F64, F16, Bf16, F16x2, Bf16x2, F32x2])
    }

    fn call_arg(&mut self) -> CallArg {
        match self.below(4) {
            0 => CallArg::Var(VarRef::Local(LocalVarId(self.below(2)))),
            1 => CallArg::Reg(self.reg()),
            2 => CallArg::Imm(self.imm()),
            _ => CallArg::Sink,
        }
    }

    // --- modules ---

    fn variable(&mut self, name: &str, space: VarSpace) -> Variable {
        use ScalarType::*;
        let ty = self.pick(&[B8, U8, S16, B32, U32, F32, B64, F64]);
        let vector = self.pick(&[1, 1, 2, 4]);
        let dims = match self.below(3) {
            0 => vec![],
            1 => vec![Some(1 + u64::from(self.below(4)))],
            _ => vec![Some(1 + u64::from(self.below(3))), Some(1 + u64::from(self.below(3)))],
        };
        Variable {
            name: name.to_owned(),
            linkage: Linkage::Internal,
            space,
            align: self.maybe(|c| 1 << c.below(8)),
            ty,
            vector,
            dims,
            init: None,
            attributes: Vec::new(),
            span: Span::default(),
        }
    }

    fn initialise(&mut self, variable: &mut Variable) {
        let size = variable.ty.size();
        let elements = (variable.size() / u64::from(size)) as u32;
        let count =
            if variable.dims.is_empty() && variable.vector == 1 { 1 } else { self.below(elements + 1) };
        let mut image = Image { bytes: Vec::new(), relocations: Vec::new() };
        for index in 0..count {
            if self.below(4) == 0 {
                image.relocations.push(Relocation {
                    offset: u64::from(index * size),
                    size,
                    symbol: SymbolId(0),
                    addend: self.offset(),
                    generic: self.flag(),
                    byte: self.maybe(|c| c.below(8) as u8),
                });
                image.bytes.resize(image.bytes.len() + size as usize, 0);
            } else {
                let bytes = self.number().to_le_bytes();
                image.bytes.extend_from_slice(&bytes[..size as usize]);
            }
        }
        variable.init = Some(Initializer::Data(image));
    }

    fn param(&mut self, name: &str, end: &mut u64) -> Param {
        let var = self.variable(name, VarSpace::Param);
        let offset = end.next_multiple_of(var.alignment());
        *end = offset + var.size();
        let pointer = self.maybe(|c| PointerAttr {
            space: c.maybe(|c| c.pick(&[VarSpace::Global, VarSpace::Shared])),
            align: c.maybe(|c| 1 << c.below(6)),
        });
        Param { var, pointer, register: None, offset }
    }

    fn directives(&mut self) -> Directives {
        Directives {
            maxntid: self.maybe(|c| [c.below(1024), 1, 2]),
            reqntid: self.maybe(|c| [c.below(1024), 1, 1]),
            minnctapersm: self.maybe(|c| c.below(8)),
            maxnctapersm: self.maybe(|c| c.below(8)),
            maxnreg: self.maybe(|c| c.below(256)),
            noreturn: self.flag(),
            reqnctapercluster: self.maybe(|c| [c.below(8), 1, 1]),
            maxclusterrank: self.maybe(|c| c.below(8)),
            explicitcluster: self.flag(),
            blocksareclusters: self.flag(),
            abi_preserve: self.maybe(|c| c.below(8)),
            abi_preserve_control: self.maybe(|c| c.below(8)),
            pragmas: if self.flag() { vec!["nounroll".to_owned()] } else { vec![] },
            other: vec![],
        }
    }

    fn registers(&mut self) -> Registers {
        let mut registers = Registers::new();
        let mut declare = |name: &str, range, ty| {
            registers.declare(name, range, ty, Span::default());
        };
        declare("%p", Some(PREDICATES), ScalarType::Pred);
        declare("%r", Some(7), ScalarType::B32);
        declare("x", None, ScalarType::F64);
        declare("%none", Some(0), ScalarType::B16);
        declare("%r$1_", None, ScalarType::B64);
        declare("%rd", Some(REGISTERS - PREDICATES - 9), ScalarType::B64);
        registers
    }

    fn location(&mut self, body: &mut Body) -> LocationId {
        let inlined = self.maybe(|c| {
            Box::new(InlinedAt {
                function_label: "$L__info_string0".to_owned(),
                function_offset: i64::from(c.below(3)),
                file: 1,
                line: c.below(100),
                column: c.below(80),
            })
        });
        let location = SourceLocation { file: 1, line: self.below(100), column: self.below(80), inlined };
        let known = body.locations.iter().position(|known| *known == location);
        let index = known.unwrap_or_else(|| {
            body.locations.push(location);
            body.locations.len() - 1
        });
        LocationId(index as u32)
    }

    fn body(&mut self) -> Body {
        let mut body = Body {
            registers: self.registers(),
            locals: vec![self.variable("buffer", VarSpace::Shared), self.variable("slot", VarSpace::Param)],
            branch_tables: vec![BranchTable {
                name: "table".to_owned(),
                targets: vec![LabelId(self.below(LABELS)), LabelId(0)],
                span: Span::default(),
            }],
            call_tables: vec![CallTable {
                name: "list".to_owned(),
                targets: vec![SymbolId(2)],
                span: Span::default(),
            }],
            prototypes: vec![Prototype {
                name: "proto".to_owned(),
                returns: vec![],
                params: vec![self.param("_", &mut 0)],
                noreturn: self.flag(),
                abi_preserve: self.maybe(|c| c.below(4)),
                abi_preserve_control: self.maybe(|c| c.below(4)),
                span: Span::default(),
            }],
            ..Body::default()
        };
        let count = self.below(12);
        let mut location = None;
        for _ in 0..count {
            if self.below(3) == 0 {
                location = Some(self.location(&mut body));
            }
            let guard = self.maybe(|c| Guard { reg: c.reg(), negated: c.flag() });
            let op = self.op();
            body.instructions.push(Instruction { guard, op, location, span: Span::default() });
        }
        let mut targets: Vec<u32> = (0..LABELS).map(|_| self.below(count + 1)).collect();
        targets.sort_unstable();
        body.labels = targets
            .into_iter()
            .enumerate()
            .map(|(index, target)| Label { name: format!("$L{index}"), target, span: Span::default() })
            .collect();
        if self.flag() {
            body.pragmas
                .push(BodyPragma { at: self.below(count + 1), texts: vec!["a".to_owned(), "b".to_owned()] });
        }
        body
    }

    pub(crate) fn module(&mut self) -> Module {
        let extern_table = Variable {
            linkage: Linkage::Extern,
            attributes: vec![Attribute::Managed],
            ..self.variable("first", VarSpace::Global)
        };
        let mut with_value = self.variable("second", VarSpace::Const);
        self.initialise(&mut with_value);
        let mut end = 0;
        let function = Function {
            name: "f".to_owned(),
            kind: FunctionKind::Func,
            linkage: self.pick(&[Linkage::Internal, Linkage::Visible, Linkage::Weak]),
            attributes: self.maybe(|c| Attribute::Unified(c.number(), c.number())).into_iter().collect(),
            returns: vec![self.param("result", &mut 0)],
            params: vec![self.param("a", &mut end), self.param("b", &mut end)],
            directives: self.directives(),
            body: Some(Box::new(self.body())),
            alias_of: None,
            span: Span::default(),
        };
        let items = match self.flag() {
            false => vec![Item::Declare(SymbolId(0)), Item::Declare(SymbolId(1)), Item::Define(SymbolId(2))],
            true => vec![
                Item::Declare(SymbolId(0)),
                Item::Declare(SymbolId(1)),
                Item::Declare(SymbolId(2)),
                Item::Define(SymbolId(2)),
                Item::Pragma(vec!["late".to_owned()]),
            ],
        };
        Module {
            version: Version { major: 8, minor: self.below(10) },
            target: Target { words: vec!["sm_90a".to_owned()] },
            address_size: 64,
            symbols: vec![
                Symbol::Variable(extern_table),
                Symbol::Variable(with_value),
                Symbol::Function(Box::new(function)),
            ],
            items,
            files: vec![SourceFile {
                index: 1,
                name: "a.cu".to_owned(),
                stamp: self.maybe(|c| (c.number() >> 1, 7)),
            }],
            sections: vec![],
            source: Source::default(),
        }
    }

    fn label(&mut self) -> LabelId {
        LabelId(self.below(LABELS))
    }

    fn branch_table(&self) -> BranchTableId {
        BranchTableId(0)
    }

    fn call_table(&self) -> CallTableId {
        CallTableId(0)
    }

    fn prototype(&self) -> PrototypeId {
        PrototypeId(0)
    }
}
