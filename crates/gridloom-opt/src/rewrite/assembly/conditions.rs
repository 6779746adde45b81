//! The function that sets conditions, for kernels that test them elsewhere than the device does.

use gridloom_ptx::op::{
    Access, BitsOp, Compare, CompareOp, ControlOp, ConvertOp, Instruction, IntArith, IntOp, LogicOp,
    MemoryOp, MulMode, Op, Order,
};
use gridloom_ptx::{
    Address, AddressBase, Body, Directives, Function, FunctionKind, Item, Linkage, Operand, Param, ParamId,
    PredOperand, RegId, ScalarType, Space, Span, Symbol, SymbolId, VarRef, VarSpace,
};
use smallvec::smallvec;

use crate::rewrite::program::announced::{SET_TO_NONZERO, SET_TO_ZERO};
use crate::rewrite::source::SET_CONDITION;

use super::{Assembly, Conditions, access, at, bytes, int};

impl Assembly {
    /// Returns the function that sets conditions.
    pub(super) fn condition_setter(&mut self) -> SymbolId {
        if let Some(id) = self.condition_setter {
            return id;
        }
        let body = match self.conditions {
            Conditions::Device => None,
            Conditions::Shared => Some(in_shared_memory(self.condition_words())),
            Conditions::Memory => Some(in_memory()),
            Conditions::Phased => Some(in_phases(self.phase_word(), None)),
            Conditions::Announced => Some(in_phases(self.phase_word(), Some(self.announcement()))),
        };
        let (name, linkage) = match body {
            None => (SET_CONDITION, Linkage::Extern),
            Some(_) => ("set_condition", Linkage::Internal),
        };
        let function = Function { linkage, body: body.map(Box::new), ..declaration(name) };
        let is_defined = function.body.is_some();
        let id = self.declare(Symbol::Function(Box::new(function)));
        self.declared.push(Item::Declare(id));
        if is_defined {
            self.defined.push(Item::Define(id));
        }
        self.condition_setter = Some(id);
        id
    }
}

/// Stores the value in a word of shared memory. The handle is the offset of the word.
fn in_shared_memory(words: SymbolId) -> Body {
    let mut code = Code::default();
    let (handle, value) = code.parameters();
    let place = code.register("%place", ScalarType::U64);
    let base = Operand::Address { base: VarRef::Symbol(words), offset: 0 };
    code.emit(ConvertOp::Mov { ty: ScalarType::U64, dst: place, src: base });
    code.emit(IntOp::Arith {
        op: IntArith::Add,
        ty: ScalarType::U64,
        sat: false,
        relu: false,
        dst: place,
        a: place.into(),
        b: handle.into(),
    });
    let access = Box::new(access(Space::Shared, Order::Weak, at(place, 0)));
    code.emit(MemoryOp::St { ty: ScalarType::B32, srcs: smallvec![value.into()], access });
    code.end()
}

/// Stores the value and a mark. The handle is the address of both.
fn in_memory() -> Body {
    let mut code = Code::default();
    let (handle, value) = code.parameters();
    let mark = code.register("%mark", ScalarType::B32);
    code.emit(ConvertOp::Mov { ty: ScalarType::B32, dst: mark, src: int(1) });
    let access = Box::new(access(Space::Global, Order::Weak, at(handle, 0)));
    code.emit(MemoryOp::St { ty: ScalarType::B32, srcs: smallvec![value.into(), mark.into()], access });
    code.end()
}

/// Stores the value and the number of the phase, which is in shared memory. The handle is the
/// address of two entries, of which phases use the first and the second by turns. `announcement` is
/// a word of shared memory that says that the block set the condition, and whether to 0.
fn in_phases(word: SymbolId, announcement: Option<SymbolId>) -> Body {
    let mut code = Code::default();
    let (handle, value) = code.parameters();
    let phase = code.register("%phase", ScalarType::B64);
    let place = code.register("%place", ScalarType::B64);
    let wide = code.register("%wide", ScalarType::B64);
    let word = Address { base: AddressBase::Var(VarRef::Symbol(word)), offset: 0 };
    // All threads store it there, each before it calls this.
    let access_to_word = Access { order: Order::Volatile, ..access(Space::Shared, Order::Weak, word) };
    code.emit(MemoryOp::Ld {
        ty: ScalarType::B64,
        dsts: smallvec![Some(phase)],
        access: Box::new(access_to_word),
    });
    let (a, b) = (phase.into(), int(1));
    code.emit(BitsOp::Logic { op: LogicOp::And, ty: ScalarType::B64, dst: place, a, b });
    code.emit(IntOp::Mad {
        mode: MulMode::Lo,
        ty: ScalarType::U64,
        sat: false,
        dst: place,
        a: place.into(),
        b: int(16),
        c: handle.into(),
    });
    code.emit(ConvertOp::Pack { ty: ScalarType::B64, dst: wide, srcs: smallvec![value.into(), int(0)] });
    for (offset, part) in [(0, wide), (8, phase)] {
        let access = Box::new(access(Space::Global, Order::Weak, at(place, offset)));
        code.emit(MemoryOp::St { ty: ScalarType::B64, srcs: smallvec![part.into()], access });
    }
    if let Some(announcement) = announcement {
        let is_set = code.register("%nonzero", ScalarType::Pred);
        let says = code.register("%says", ScalarType::B32);
        code.emit(CompareOp::Setp {
            cmp: Compare::Ne,
            combine: None,
            ftz: false,
            ty: ScalarType::U32,
            p: Some(is_set),
            q: None,
            a: value.into(),
            b: int(0),
        });
        code.emit(CompareOp::Selp {
            ty: ScalarType::B32,
            dst: says,
            a: int(SET_TO_NONZERO),
            b: int(SET_TO_ZERO),
            cond: PredOperand::Reg { reg: is_set, negated: false },
        });
        let word = Address { base: AddressBase::Var(VarRef::Symbol(announcement)), offset: 0 };
        let access = Access { order: Order::Volatile, ..access(Space::Shared, Order::Weak, word) };
        code.emit(MemoryOp::St {
            ty: ScalarType::U32,
            srcs: smallvec![says.into()],
            access: Box::new(access),
        });
    }
    code.end()
}

/// The body of a function under construction.
#[derive(Default)]
struct Code(Body);

impl Code {
    fn register(&mut self, name: &str, ty: ScalarType) -> RegId {
        self.0.registers.declare(name, None, ty, Span::default()).expect("few registers")
    }

    fn emit(&mut self, op: impl Into<Op>) {
        let (op, span) = (op.into(), Span::default());
        self.0.instructions.push(Instruction { guard: None, op, location: None, span });
    }

    fn load(&mut self, space: Space, ty: ScalarType, dst: RegId, addr: Address) {
        let access = Box::new(access(space, Order::Weak, addr));
        self.emit(MemoryOp::Ld { ty, dsts: smallvec![Some(dst)], access });
    }

    /// Returns the handle and the value.
    fn parameters(&mut self) -> (RegId, RegId) {
        let handle = self.register("%handle", ScalarType::B64);
        let value = self.register("%value", ScalarType::B32);
        let param = |index| Address { base: AddressBase::Var(VarRef::Param(ParamId(index))), offset: 0 };
        self.load(Space::Param, ScalarType::B64, handle, param(0));
        self.load(Space::Param, ScalarType::B32, value, param(1));
        (handle, value)
    }

    fn end(mut self) -> Body {
        self.emit(ControlOp::Ret { uni: false });
        self.0
    }
}

/// Returns the declaration of a function that takes a handle and a value.
fn declaration(name: &str) -> Function {
    let param = |name: &str, ty, offset| {
        let mut var = bytes(name.into(), VarSpace::Param, 1, 1);
        (var.ty, var.dims, var.align) = (ty, Vec::new(), None);
        Param { var, pointer: None, register: None, offset }
    };
    Function {
        name: name.into(),
        kind: FunctionKind::Func,
        linkage: Linkage::Internal,
        attributes: Vec::new(),
        returns: Vec::new(),
        params: vec![param("handle", ScalarType::B64, 0), param("value", ScalarType::B32, 8)],
        directives: Directives::default(),
        body: None,
        alias_of: None,
        span: Span::default(),
    }
}
