//! Branches, calls, returns and exits.

use super::Refusal;
use super::function::{FunctionDecoder, immediate};
use crate::code::{BranchTable, Builtin, Call, Op, Passed, Target};
use crate::lanes::Source;
use gridloom_ptx::op::{CallArg, CallTarget, ControlOp};
use gridloom_ptx::{self as ptx, Imm, Param, ScalarType, SymbolId};

impl FunctionDecoder<'_, '_> {
    pub(super) fn control(&mut self, op: &ControlOp) -> Result<(), Refusal> {
        match op {
            ControlOp::Bra { target, .. } => {
                let target = self.label(*target);
                self.emit(Op::Branch { target });
            }
            ControlOp::BrxIdx { index, table, .. } => {
                let index = self.source(index, ScalarType::U32)?;
                let labels = &self.body.branch_tables[table.index()].targets;
                if labels.is_empty() {
                    return Err(Refusal::because("a branch table without targets"));
                }
                let targets = labels.iter().map(|&label| self.label(label)).collect();
                self.emit(Op::BranchTable(Box::new(BranchTable { index, targets })));
            }
            ControlOp::Call { target, returns, args, .. } => self.call(target, returns, args)?,
            ControlOp::Ret { .. } => self.emit(Op::Return),
            ControlOp::Exit => self.emit(Op::Exit),
            ControlOp::Trap => self.emit(Op::Trap),
            ControlOp::Brkpt => self.emit(Op::Breakpoint),
            ControlOp::Nanosleep { .. } => self.emit(Op::Yield),
            // Here a kernel starts only after the kernels it depends on are complete.
            ControlOp::GridDepControl { .. } | ControlOp::PmEvent { .. } | ControlOp::SetMaxNReg { .. } => {
                self.emit(Op::Nothing);
            }
        }
        Ok(())
    }

    fn call(&mut self, target: &CallTarget, returns: &[CallArg], args: &[CallArg]) -> Result<(), Refusal> {
        let (target, signature) = match *target {
            CallTarget::Direct(id) => self.direct_target(id)?,
            CallTarget::Prototype(register, prototype) => {
                self.find_functions_by_address();
                let prototype = &self.body.prototypes[prototype.index()];
                let target = Target::Indirect { address: Source::Slot(self.slot(register)), table: None };
                (target, Signature { params: sizes(&prototype.params), returns: sizes(&prototype.returns) })
            }
            CallTarget::Table(register, table) => {
                let ids = &self.body.call_tables[table.index()].targets;
                let table = ids.iter().map(|&id| self.find_function(id)).collect::<Result<Vec<_>, _>>()?;
                let Some(function) = ids.first().and_then(|&id| self.decoder.module.function(id)) else {
                    return Err(Refusal::because("a call table without targets"));
                };
                let signature =
                    Signature { params: sizes(&function.params), returns: sizes(&function.returns) };
                let address = Source::Slot(self.slot(register));
                (Target::Indirect { address, table: Some(table) }, signature)
            }
        };
        let arguments = args.iter().map(|arg| self.argument(arg)).collect::<Result<Vec<_>, _>>()?;
        let results = returns.iter().map(|place| self.result(place)).collect::<Result<Vec<_>, _>>()?;
        check("argument", &arguments, &signature.params)?;
        if !results.is_empty() {
            check("result", &results, &signature.returns)?;
        }
        self.emit(Op::Call(Box::new(Call { target, arguments, results, slots: 0 })));
        Ok(())
    }

    fn direct_target(&mut self, id: SymbolId) -> Result<(Target, Signature), Refusal> {
        let module = self.decoder.module;
        let Some(function) = module.function(id) else {
            return Err(Refusal::because(format!("`{}` is not a function", module.symbol(id).name())));
        };
        let signature = Signature { params: sizes(&function.params), returns: sizes(&function.returns) };
        if function.body.is_some() {
            return Ok((Target::Function(self.find_function(id)?), signature));
        }
        match Builtin::from_name(&function.name) {
            Some((builtin, params, returns))
                if signature.params == params && signature.returns == returns =>
            {
                Ok((Target::Builtin(builtin), signature))
            }
            Some(_) => Err(Refusal::because(format!(
                "`{}` is declared with parameters that differ from those of the device function",
                function.name
            ))),
            None => Err(Refusal::Undefined(function.name.clone())),
        }
    }

    fn argument(&mut self, argument: &CallArg) -> Result<Passed, Refusal> {
        match *argument {
            CallArg::Var(variable) => self.passed_variable(variable),
            CallArg::Reg(register) => self.passed_register(register),
            CallArg::Imm(imm) => {
                let ty = match imm {
                    Imm::F32(_) => ScalarType::B32,
                    Imm::Int(_) | Imm::F64(_) => ScalarType::B64,
                };
                let value = immediate(imm, ty)?;
                Ok(Passed::Source(self.constant(value)))
            }
            CallArg::Sink => Err(Refusal::because("a call passes `_` as an argument")),
        }
    }

    fn result(&mut self, place: &CallArg) -> Result<Passed, Refusal> {
        match *place {
            CallArg::Var(variable) => self.passed_variable(variable),
            CallArg::Reg(register) => self.passed_register(register),
            CallArg::Sink => Ok(Passed::Nowhere),
            CallArg::Imm(_) => Err(Refusal::because("a call has a constant as its result")),
        }
    }

    fn passed_register(&self, register: ptx::RegId) -> Result<Passed, Refusal> {
        let ty = self.type_of(register);
        if ty.bits() > 64 {
            return Err(Refusal::because("a call passes a register of 128 bits"));
        }
        Ok(Passed::Slot { slot: self.slot(register), size: ty.size() })
    }
}

/// The sizes of a function's parameters and results.
struct Signature {
    params: Vec<u32>,
    returns: Vec<u32>,
}

fn sizes(params: &[Param]) -> Vec<u32> {
    params.iter().map(|param| param.var.size() as u32).collect()
}

/// Checks that a call passes what the function expects: the same number of values, with the same
/// sizes where both are known.
fn check(what: &str, passed: &[Passed], sizes: &[u32]) -> Result<(), Refusal> {
    if passed.len() != sizes.len() {
        return Err(Refusal::because(format!(
            "a call with {} {what}s of a function with {}",
            passed.len(),
            sizes.len()
        )));
    }
    for (i, (passed, &size)) in passed.iter().zip(sizes).enumerate() {
        if let Passed::Frame { size: own, .. } = passed
            && *own != size
        {
            return Err(Refusal::because(format!(
                "{what} {i} of a call has {own} bytes where the function has {size}"
            )));
        }
    }
    Ok(())
}
