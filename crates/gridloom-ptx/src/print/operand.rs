//! Operands.

use crate::model::op::{CallArg, RawToken};
use crate::model::{
    Address, AddressBase, Function, Imm, LabelId, Module, Operand, PredOperand, RegId, Space, SymbolId,
    VarRef,
};

/// The tables that turn indices back into names.
pub(super) struct Names<'a> {
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
}

/// Prints an integer. The smallest one is printed in hexadecimal, because its magnitude is no
/// `i64`.
pub(super) fn int(value: i64) -> String {
    if value == i64::MIN { "0x8000000000000000".to_owned() } else { value.to_string() }
}

pub(super) fn imm(value: Imm) -> String {
    match value {
        Imm::Int(value) => int(value),
        Imm::F32(bits) => format!("0f{bits:08X}"),
        Imm::F64(bits) => format!("0d{bits:016X}"),
    }
}

/// `.word`, or nothing.
pub(super) fn flag(on: bool, word: &'static str) -> &'static str {
    if on { word } else { "" }
}

/// `.word` of a modifier, if there is one.
pub(super) fn modifier(word: Option<impl std::fmt::Display>) -> String {
    word.map(|word| format!(".{word}")).unwrap_or_default()
}

pub(super) fn space(space: Space) -> String {
    if space == Space::Generic { String::new() } else { format!(".{space}") }
}

/// `.v4`, for four elements.
pub(super) fn vector(count: usize) -> String {
    if count > 1 { format!(".v{count}") } else { String::new() }
}

impl Names<'_> {
    pub(super) fn reg(&self, reg: RegId) -> String {
        match &self.function.body {
            Some(body) => body.registers.name(reg),
            None => format!("%?{}", reg.0),
        }
    }

    /// Writes a destination; `_` for none.
    pub(super) fn dst(&self, reg: Option<RegId>) -> String {
        reg.map_or_else(|| "_".to_owned(), |reg| self.reg(reg))
    }

    /// `d|p`, or `d` alone.
    pub(super) fn pair(&self, first: Option<RegId>, second: Option<RegId>) -> String {
        match second {
            Some(second) => format!("{}|{}", self.dst(first), self.reg(second)),
            None => self.dst(first),
        }
    }

    pub(super) fn var(&self, var: VarRef) -> String {
        match var {
            VarRef::Symbol(id) => self.symbol(id).to_owned(),
            VarRef::Local(id) => {
                let local = self.function.body.as_ref().and_then(|body| body.locals.get(id.index()));
                local.map_or_else(String::new, |local| local.name.clone())
            }
            VarRef::Param(id) => {
                self.function.params.get(id.index()).map_or_else(String::new, |p| p.var.name.clone())
            }
            VarRef::Return(id) => {
                self.function.returns.get(id.index()).map_or_else(String::new, |p| p.var.name.clone())
            }
        }
    }

    pub(super) fn symbol(&self, id: SymbolId) -> &str {
        self.module.name_of(id)
    }

    pub(super) fn label(&self, label: LabelId) -> &str {
        let body = self.function.body.as_ref();
        body.and_then(|body| body.labels.get(label.index())).map_or("", |label| &label.name)
    }

    pub(super) fn src(&self, operand: &Operand) -> String {
        match operand {
            Operand::Reg(reg) => self.reg(*reg),
            Operand::Imm(value) => imm(*value),
            Operand::Special(special) => special.to_string(),
            Operand::Address { base, offset: 0 } => self.var(*base),
            Operand::Address { base, offset } => format!("{}+{}", self.var(*base), int(*offset)),
        }
    }

    /// Operands, each with `, ` before it.
    pub(super) fn more<'o>(&self, operands: impl IntoIterator<Item = &'o Operand>) -> String {
        operands.into_iter().map(|operand| format!(", {}", self.src(operand))).collect()
    }

    pub(super) fn pred(&self, pred: &PredOperand) -> String {
        match pred {
            PredOperand::Reg { reg, negated } => {
                format!("{}{}", if *negated { "!" } else { "" }, self.reg(*reg))
            }
            PredOperand::Const(value) => i64::from(*value).to_string(),
        }
    }

    pub(super) fn addr(&self, address: &Address) -> String {
        let base = match address.base {
            AddressBase::Absolute => return format!("[{}]", int(address.offset)),
            AddressBase::Reg(reg) => self.reg(reg),
            AddressBase::Var(var) => self.var(var),
        };
        match address.offset {
            0 => format!("[{base}]"),
            offset => format!("[{base}+{}]", int(offset)),
        }
    }

    pub(super) fn dsts(&self, dsts: &[Option<RegId>]) -> String {
        match dsts {
            [one] => self.dst(*one),
            many => {
                let many: Vec<String> = many.iter().map(|dst| self.dst(*dst)).collect();
                format!("{{{}}}", many.join(", "))
            }
        }
    }

    pub(super) fn srcs(&self, srcs: &[Operand]) -> String {
        match srcs {
            [one] => self.src(one),
            many => {
                let many: Vec<String> = many.iter().map(|src| self.src(src)).collect();
                format!("{{{}}}", many.join(", "))
            }
        }
    }

    pub(super) fn call_args(&self, args: &[CallArg]) -> String {
        let args: Vec<String> = args
            .iter()
            .map(|arg| match arg {
                CallArg::Var(var) => self.var(*var),
                CallArg::Reg(reg) => self.reg(*reg),
                CallArg::Imm(value) => imm(*value),
                CallArg::Sink => "_".to_owned(),
            })
            .collect();
        format!("({})", args.join(", "))
    }

    pub(super) fn raw(&self, token: &RawToken) -> String {
        match token {
            RawToken::Reg(reg) => self.reg(*reg),
            RawToken::Special(special) => special.to_string(),
            RawToken::Var(var) => self.var(*var),
            RawToken::Label(label) => self.label(*label).to_owned(),
            RawToken::Text(text) => text.clone(),
        }
    }
}
