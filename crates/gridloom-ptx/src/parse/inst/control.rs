//! Branches, calls and ends.

use super::Mods;
use crate::lexer::Kind;
use crate::model::op::{CallArg, CallTarget, ControlOp, Op};
use crate::model::{RegId, Span, Symbol};
use crate::parse::scope::Entity;
use crate::parse::{Parse, Parser, shorten};

impl<'a> Parser<'a> {
    pub(super) fn control(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let op = match m.mnemonic {
            "bra" => {
                let uni = m.flag("uni");
                m.finish()?;
                ControlOp::Bra { uni, target: self.label()? }
            }
            "brx" => {
                m.flag("idx");
                let uni = m.flag("uni");
                m.finish()?;
                let index = self.src()?;
                self.comma()?;
                let (name, span) = self.ident("the label of a .branchtargets list")?;
                match self.entity(name) {
                    Some(Entity::BranchTable(table)) => ControlOp::BrxIdx { uni, index, table },
                    _ => {
                        let message =
                            format!("`{}` is not the label of a .branchtargets list", shorten(name));
                        return self.error(span, message);
                    }
                }
            }
            "call" => return self.call(m),
            "ret" => {
                let uni = m.flag("uni");
                m.finish()?;
                ControlOp::Ret { uni }
            }
            "nanosleep" => {
                m.flag("u32");
                m.finish()?;
                ControlOp::Nanosleep { duration: self.src()? }
            }
            "griddepcontrol" => {
                let action = self.need(m, ".launch_dependents or .wait")?;
                m.finish()?;
                ControlOp::GridDepControl { action }
            }
            "pmevent" => {
                let mask = m.flag("mask");
                m.finish()?;
                ControlOp::PmEvent { mask, event: self.src()? }
            }
            "setmaxnreg" => {
                let increase = m.flag("inc");
                if !increase && !m.flag("dec") {
                    m.finish()?;
                    return self.error(m.span, "`setmaxnreg` needs .inc or .dec");
                }
                m.flag("sync");
                m.flag("aligned");
                m.flag("u32");
                m.finish()?;
                ControlOp::SetMaxNReg { increase, count: self.small("a number of registers")? }
            }
            "exit" => {
                m.finish()?;
                ControlOp::Exit
            }
            "trap" => {
                m.finish()?;
                ControlOp::Trap
            }
            _ => {
                m.finish()?;
                ControlOp::Brkpt
            }
        };
        Ok(op.into())
    }

    /// `call (ret), target, (args), table;`, with everything but the target optional.
    fn call(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let uni = m.flag("uni");
        m.finish()?;
        let mut returns = Vec::new();
        if self.at_kind(Kind::LParen) {
            returns = self.call_args()?;
            self.comma()?;
        }
        let (name, span) = self.ident("the function to call")?;
        let mut args = Vec::new();
        let mut table = None;
        if self.eat(Kind::Comma) {
            if self.at_kind(Kind::LParen) {
                args = self.call_args()?;
                if self.eat(Kind::Comma) {
                    table = Some(self.ident("a .callprototype or .calltargets label")?);
                }
            } else {
                table = Some(self.ident("arguments, or a .callprototype or .calltargets label")?);
            }
        }
        let target = match self.entity(name) {
            Some(Entity::Reg(reg)) => self.indirect(reg, span, table)?,
            Some(_) => return self.error(span, format!("`{}` is not a function", shorten(name))),
            None => match self.symbols.get(name).copied() {
                Some(id) if matches!(self.module.symbol(id), Symbol::Function(_)) => {
                    if let Some((_, at)) = table {
                        return self.error(at, "a direct call has no prototype or targets");
                    }
                    CallTarget::Direct(id)
                }
                Some(_) => {
                    return self.error(span, format!("`{}` is a variable, not a function", shorten(name)));
                }
                None => return self.unknown_symbol(name, span),
            },
        };
        Ok(ControlOp::Call { uni, target, returns, args }.into())
    }

    fn indirect(&mut self, reg: RegId, span: Span, table: Option<(&'a str, Span)>) -> Parse<CallTarget> {
        let Some((name, at)) = table else {
            return self.error_with_help(
                span,
                "a call through a register needs to know what it may call",
                Some("add the label of a .callprototype or .calltargets".to_owned()),
            );
        };
        match self.entity(name) {
            Some(Entity::Prototype(prototype)) => Ok(CallTarget::Prototype(reg, prototype)),
            Some(Entity::CallTable(table)) => Ok(CallTarget::Table(reg, table)),
            _ => {
                let message =
                    format!("`{}` is not the label of a .callprototype or .calltargets", shorten(name));
                self.error(at, message)
            }
        }
    }

    fn call_args(&mut self) -> Parse<Vec<CallArg>> {
        self.expect(Kind::LParen, "`(`")?;
        let mut args = Vec::new();
        while !self.at_kind(Kind::RParen) {
            args.push(self.call_arg()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, "`)`")?;
        Ok(args)
    }

    fn call_arg(&mut self) -> Parse<CallArg> {
        if self.at_constant() {
            return self.constant().map(CallArg::Imm);
        }
        let token = self.token();
        let name = self.text_of(token);
        if token.kind == Kind::Ident {
            match self.entity(name) {
                Some(Entity::Var(var)) => {
                    self.advance();
                    return Ok(CallArg::Var(var));
                }
                None if name == "_" => {
                    self.advance();
                    return Ok(CallArg::Sink);
                }
                _ => {}
            }
        }
        self.reg("a .param variable or a register").map(CallArg::Reg)
    }
}
