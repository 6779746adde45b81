//! Checks of one instruction.

use super::types::{fits, wrong_type};
use super::{Checker, Context};
use crate::model::op::{
    Access, AtomOp, AtomicOp, CacheOp, CallArg, CallTarget, ControlOp, ConvertOp, Cvt, CvtRounding, MemoryOp,
    Op, OperandRef, Order, PackType, Rule, SyncOp,
};
use crate::model::{Imm, Operand, Param, ScalarType, SpecialReg, VarRef, VarSpace};
use crate::print::op_name;

impl<'a> Checker<'a> {
    pub(super) fn instruction(&mut self, context: &Context<'a>, op: &'a Op) {
        if let Some(ty) = wrong_type(op) {
            let name = op_name(self.module, context.function, op);
            self.wrong(
                context.span,
                format!("`{name}` does not exist for .{ty}, or not with these modifiers"),
            );
        }
        op.for_each_operand(&mut |place, rule| self.operand(context, op, place, rule));
        match op {
            Op::Convert(ConvertOp::Cvt(cvt)) => self.conversion(context, cvt),
            Op::Convert(op) => self.packing(context, op),
            Op::Memory(op) => self.memory(context, op),
            Op::Atomic(AtomicOp::Atom { rmw, .. } | AtomicOp::Red { rmw }) => {
                if (rmw.op == AtomOp::Cas) != rmw.c.is_some() {
                    self.wrong(context.span, "only a compare-and-swap has a second value, and it needs one");
                }
                self.vector(context, rmw.b.len(), rmw.ty);
            }
            Op::Control(op) => self.control(context, op),
            Op::Sync(SyncOp::Barrier { id: Operand::Imm(Imm::Int(id)), .. }) if !(0..16).contains(id) => {
                self.wrong(context.span, format!("a block has the barriers 0 to 15, not {id}"));
            }
            _ => {}
        }
    }

    fn operand(&mut self, context: &Context<'a>, op: &Op, place: OperandRef<'a>, rule: Rule) {
        let registers = &context.body.registers;
        if let OperandRef::Src(Operand::Special(special)) = place
            && let Some(reason) = special_obstacle(op, *special)
        {
            let (name, register) = (op_name(self.module, context.function, op), special.to_string());
            let span = self.word(context.span, &register);
            return self.wrong(span, format!("`{name}`: `{register}` {reason}"));
        }
        if let Some(reg) = place.reg() {
            let ty = registers.ty(reg);
            if !fits(rule, ty) {
                let wanted = match rule {
                    Rule::Is(ty) => format!("a .{ty}"),
                    Rule::AtLeast(ty) => format!("a .{ty} or wider"),
                    Rule::Pred => "a predicate".to_owned(),
                    Rule::Address => "an address".to_owned(),
                    Rule::Value | Rule::Any => "a value".to_owned(),
                };
                let (name, register) = (op_name(self.module, context.function, op), registers.name(reg));
                let span = self.word(context.span, &register);
                self.wrong(span, format!("`{name}`: `{register}` is a .{ty}; {wanted} is needed here"));
            }
            return;
        }
        if let (OperandRef::Src(Operand::Imm(Imm::F32(_) | Imm::F64(_))), Rule::Is(ty) | Rule::AtLeast(ty)) =
            (place, rule)
            && ty.is_integer()
        {
            let name = op_name(self.module, context.function, op);
            self.wrong(context.span, format!("`{name}`: a floating point constant where a .{ty} is needed"));
        }
        if let (
            OperandRef::Src(Operand::Imm(Imm::Int(value))),
            Rule::Is(ty @ (ScalarType::F32 | ScalarType::F64)),
        ) = (place, rule)
        {
            let name = op_name(self.module, context.function, op);
            self.wrong(
                context.span,
                format!("`{name}`: the integer {value} where a .{ty} is needed; write {value}.0"),
            );
        }
    }

    /// Checks the rounding of a conversion, which depends on its types.
    fn conversion(&mut self, context: &Context<'a>, cvt: &Cvt) {
        let (to, from) = (cvt.dst_ty, cvt.src_ty);
        let plain = |ty: ScalarType| {
            matches!(ty, ScalarType::F16 | ScalarType::Bf16 | ScalarType::F32 | ScalarType::F64)
        };
        let narrows = plain(to) && plain(from) && to.size() < from.size();
        let integral = matches!(
            cvt.rounding,
            Some(CvtRounding::Rni | CvtRounding::Rzi | CvtRounding::Rmi | CvtRounding::Rpi)
        );
        let wrong = match (to.is_float(), from.is_float()) {
            (false, true) if !integral => "needs a rounding to an integer such as .rzi",
            (true, false) if cvt.rounding.is_none() || integral => "needs a rounding such as .rn",
            (true, true) if narrows && (cvt.rounding.is_none() || integral) => "needs a rounding such as .rn",
            (false, false) if cvt.rounding.is_some() => "rounds nothing",
            _ => return,
        };
        self.wrong(context.span, format!("a conversion from .{from} to .{to} {wrong}"));
    }

    /// Checks that the elements of a pack or unpack have the size of the whole.
    fn packing(&mut self, context: &Context<'a>, op: &ConvertOp) {
        if let ConvertOp::CvtPack { dst_ty, c, .. } = op
            && matches!(dst_ty, PackType::U16 | PackType::S16) == c.is_some()
        {
            let wants = if c.is_some() {
                "fill a register: there is no third operand"
            } else {
                "go below a third operand, of .b32"
            };
            self.wrong(context.span, format!("two fields of .{dst_ty} {wants}"));
        }
        let registers = &context.body.registers;
        let (ty, count, widths): (ScalarType, usize, Vec<u32>) = match op {
            ConvertOp::Pack { ty, srcs, .. } => {
                let regs = srcs.iter().filter_map(Operand::as_reg);
                (*ty, srcs.len(), regs.map(|reg| registers.ty(reg).size()).collect())
            }
            ConvertOp::Unpack { ty, dsts, .. } => {
                (*ty, dsts.len(), dsts.iter().flatten().map(|reg| registers.ty(*reg).size()).collect())
            }
            _ => return,
        };
        let fits = widths.iter().all(|width| *width as usize * count == ty.size() as usize);
        if !matches!(count, 2 | 4 | 8) || !fits {
            let message =
                format!("{count} elements of {} bytes do not make a .{ty}", widths.first().unwrap_or(&0));
            self.wrong(context.span, message);
        }
    }

    fn vector(&mut self, context: &Context<'a>, count: usize, ty: ScalarType) {
        if !matches!(count, 1 | 2 | 4 | 8) || (count > 1 && count * ty.size() as usize > 32) {
            self.wrong(context.span, format!("there is no vector of {count} elements of .{ty}"));
        }
    }

    fn memory(&mut self, context: &Context<'a>, op: &MemoryOp) {
        match op {
            MemoryOp::Ld { ty, dsts, access } => {
                self.vector(context, dsts.len(), *ty);
                self.access(context, access, true);
            }
            MemoryOp::St { ty, srcs, access } => {
                self.vector(context, srcs.len(), *ty);
                self.access(context, access, false);
            }
            MemoryOp::Ldu { ty, dsts, .. } => self.vector(context, dsts.len(), *ty),
            MemoryOp::CpAsync(copy) => {
                let ok = match copy.cache {
                    CacheOp::Cg => copy.size == 16,
                    _ => matches!(copy.size, 4 | 8 | 16),
                };
                if !ok {
                    let message = format!("cp.async.{} does not copy {} bytes", copy.cache, copy.size);
                    self.wrong(context.span, message);
                }
            }
            MemoryOp::Discard { size, .. } | MemoryOp::ApplyPriority { size, .. } if *size != 128 => {
                self.wrong(context.span, format!("the size is 128 bytes, not {size}"));
            }
            _ => {}
        }
    }

    fn access(&mut self, context: &Context<'a>, access: &Access, load: bool) {
        let forbidden = if load { Order::Release } else { Order::Acquire };
        if access.order == forbidden {
            let what = if load { "a load" } else { "a store" };
            self.wrong(context.span, format!("{what} cannot be .{forbidden}"));
        }
        if access.scope.is_some() && matches!(access.order, Order::Weak | Order::Volatile) {
            self.wrong(context.span, "a scope needs .relaxed, .acquire, .release or .mmio");
        }
    }

    fn control(&mut self, context: &Context<'a>, op: &ControlOp) {
        match op {
            ControlOp::Bra { target, .. } if !context.has_label(*target) => {
                self.wrong(context.span, "a branch to a label that does not exist");
            }
            ControlOp::BrxIdx { table, .. } if table.index() >= context.body.branch_tables.len() => {
                self.wrong(context.span, "a branch through a table that does not exist");
            }
            ControlOp::SetMaxNReg { count, .. } if !(24..=256).contains(count) || count % 8 != 0 => {
                self.wrong(context.span, format!("a multiple of 8 between 24 and 256, not {count}"));
            }
            ControlOp::Call { target, returns, args, .. } => self.call(context, *target, returns, args),
            _ => {}
        }
    }

    fn call(&mut self, context: &Context<'a>, target: CallTarget, returns: &[CallArg], args: &[CallArg]) {
        let (name, wanted_returns, wanted): (&str, &[Param], &[Param]) = match target {
            CallTarget::Direct(id) => match self.module.function(id) {
                Some(function) => (&function.name, &function.returns, &function.params),
                None => return self.wrong(context.span, "a call of something that is not a function"),
            },
            CallTarget::Prototype(_, id) => match context.body.prototypes.get(id.index()) {
                Some(prototype) => (&prototype.name, &prototype.returns, &prototype.params),
                None => return self.wrong(context.span, "a call with a prototype that does not exist"),
            },
            CallTarget::Table(_, id) => {
                if id.index() >= context.body.call_tables.len() {
                    self.wrong(context.span, "a call with a table that does not exist");
                }
                return;
            }
        };
        for (what, given, wanted) in [("return values", returns, wanted_returns), ("arguments", args, wanted)]
        {
            if given.len() != wanted.len() {
                let message = format!("`{name}` has {} {what}, not {}", wanted.len(), given.len());
                self.wrong(context.span, message);
                continue;
            }
            for (arg, param) in given.iter().zip(wanted) {
                self.argument(context, name, arg, param);
            }
        }
    }

    fn argument(&mut self, context: &Context<'a>, callee: &str, arg: &CallArg, param: &Param) {
        let CallArg::Var(var) = arg else { return };
        let given = match var {
            VarRef::Local(id) => context.body.locals.get(id.index()),
            VarRef::Param(id) => context.function.params.get(id.index()).map(|param| &param.var),
            VarRef::Return(id) => context.function.returns.get(id.index()).map(|param| &param.var),
            VarRef::Symbol(_) => None,
        };
        let Some(given) = given else {
            return self.wrong(context.span, "an argument that does not exist");
        };
        if given.space != VarSpace::Param {
            let message = format!("`{}` is in .{}; arguments are passed in .param", given.name, given.space);
            self.wrong(context.span, message);
        }
        // Lists of unknown length are declared without a size.
        let (have, want) = (given.size(), param.var.size());
        if have != want && !param.var.is_unsized() && !given.is_unsized() {
            let message = format!("`{}` has {have} bytes; `{callee}` takes {want} here", given.name);
            self.wrong(context.span, message);
        }
    }
}

/// Returns why an instruction cannot read a special register, or `None` if it can. Assemblers take
/// special registers as numbers that are moved or converted to others, and nowhere else.
fn special_obstacle(op: &Op, special: SpecialReg) -> Option<String> {
    let read_as = match op {
        Op::Convert(ConvertOp::Mov { ty, .. }) if !ty.is_float() => *ty,
        Op::Convert(ConvertOp::Cvt(cvt)) if !cvt.dst_ty.is_float() && !cvt.src_ty.is_float() => cvt.src_ty,
        Op::Convert(ConvertOp::Pack { .. } | ConvertOp::Unpack { .. }) | Op::Unsupported(_) => return None,
        _ => return Some("can only be moved to a register of integers, or converted to one".into()),
    };
    let bits = special.bits().max(32);
    (read_as.size() * 8 > bits).then(|| format!("has {bits} bits, and is read as .{read_as}"))
}
