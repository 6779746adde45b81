//! Checks beyond the grammar: types, sizes, ranges, and that every index refers to something.
//!
//! The rules are those of NVIDIA's assembler where they are known, and lenient elsewhere: a module
//! that the assembler accepts must pass.

mod instruction;
mod types;

use crate::error::{Diagnostic, closest};
use crate::limits;
use crate::model::op::{Op, OperandRef, RawToken, Unsupported};
use crate::model::{
    AddressBase, Body, Function, FunctionKind, Item, LabelId, Module, Operand, RegId, ScalarType, Span,
    Symbol, SymbolId, VarRef, VarSpace, Variable,
};
use crate::not_run::{NEWEST_PTX, NotRun};
use crate::parse::inst::MNEMONICS;

/// Returns the errors in a module's types, sizes and ranges: at most the first 50, or none if the
/// module is correct.
///
/// ```
/// let module = gridloom_ptx::parse(
///     ".version 8.0 .target sm_80 .address_size 64
///      .entry k() { .reg .f32 %f<2>; .reg .b64 %rd; add.f32 %f1, %f0, %rd; ret; }",
/// )?;
/// let wrong = gridloom_ptx::check(&module);
/// assert_eq!(wrong.len(), 1);
/// assert!(wrong[0].message.contains("%rd"));
/// # Ok::<(), gridloom_ptx::Error>(())
/// ```
#[must_use]
pub fn check(module: &Module) -> Vec<Diagnostic> {
    let mut checker = Checker { module, found: Vec::new() };
    for item in &module.items {
        checker.item(item);
    }
    for symbol in &module.symbols {
        match symbol {
            Symbol::Variable(variable) => checker.variable(variable),
            Symbol::Function(function) => checker.function(function),
        }
    }
    checker.found.sort_by_key(|diagnostic| diagnostic.span.start());
    checker.found
}

pub(super) struct Checker<'a> {
    pub(super) module: &'a Module,
    found: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    pub(super) fn wrong(&mut self, span: Span, message: impl Into<String>) {
        if self.found.len() < limits::DIAGNOSTICS {
            self.found.push(Diagnostic::new(&self.module.source, span, message));
        }
    }

    /// Returns the span of a word inside a span, or the span itself if the word does not occur in
    /// it.
    fn word(&self, span: Span, word: &str) -> Span {
        let text = self.module.source.slice(span);
        let part_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        let found = text.match_indices(word).find(|(at, _)| {
            let after = text.get(at + word.len()..).unwrap_or("");
            !text[..*at].ends_with(part_of_name) && !after.starts_with(part_of_name)
        });
        let Some((at, _)) = found else { return span };
        let start = u32::try_from(span.start() + at).unwrap_or(0);
        Span::new(start, start.saturating_add(u32::try_from(word.len()).unwrap_or(0)))
    }

    fn is_symbol(&self, id: SymbolId) -> bool {
        id.index() < self.module.symbols.len()
    }

    fn item(&mut self, item: &Item) {
        let known = match item {
            Item::Declare(id) | Item::Define(id) => self.is_symbol(*id),
            Item::Alias { alias, aliasee } => self.is_symbol(*alias) && self.is_symbol(*aliasee),
            Item::Pragma(_) => true,
        };
        if !known {
            self.wrong(Span::default(), "a statement names a symbol that does not exist");
        }
    }

    fn variable(&mut self, variable: &Variable) {
        if variable.ty == ScalarType::Pred && variable.space != VarSpace::Reg {
            self.wrong(variable.span, format!("`{}`: a predicate has no place in memory", variable.name));
        }
        if variable.align.is_some_and(|align| !align.is_power_of_two()) {
            self.wrong(variable.span, format!("`{}`: an alignment is a power of two", variable.name));
        }
        if let Some(image) = variable.image() {
            if matches!(variable.space, VarSpace::Shared | VarSpace::Local | VarSpace::Param) {
                let message =
                    format!("`{}`: a .{} variable has no initial value", variable.name, variable.space);
                self.wrong(variable.span, message);
            }
            if !variable.is_unsized() && image.bytes.len() as u64 > variable.size() {
                self.wrong(
                    variable.span,
                    format!("`{}`: the initial value is larger than it", variable.name),
                );
            }
            for relocation in &image.relocations {
                if !self.is_symbol(relocation.symbol) {
                    let message = format!("`{}`: the initial value names an unknown symbol", variable.name);
                    self.wrong(variable.span, message);
                }
                let end = relocation.offset.saturating_add(u64::from(relocation.size));
                if end > image.bytes.len() as u64 {
                    self.wrong(
                        variable.span,
                        format!("`{}`: an address lies outside the value", variable.name),
                    );
                }
                if relocation.byte.is_none() && relocation.size < 4 {
                    self.wrong(
                        variable.span,
                        format!(
                            "`{}`: an address does not fit into {} bytes",
                            variable.name, relocation.size
                        ),
                    );
                }
            }
        }
    }

    fn function(&mut self, function: &'a Function) {
        if function.kind == FunctionKind::Entry && !function.returns.is_empty() {
            self.wrong(function.span, format!("`{}`: a kernel returns nothing", function.name));
        }
        if function.alias_of.is_some_and(|id| !self.is_symbol(id)) {
            self.wrong(function.span, format!("`{}` is an alias of nothing", function.name));
        }
        let Some(body) = &function.body else { return };
        for local in &body.locals {
            self.variable(local);
        }
        let count = body.instructions.len();
        for label in &body.labels {
            if label.target as usize > count {
                self.wrong(
                    label.span,
                    format!("label `{}` stands beyond the end of the function", label.name),
                );
            }
        }
        for table in &body.branch_tables {
            if table.targets.iter().any(|label| label.index() >= body.labels.len()) {
                self.wrong(table.span, format!("`{}` names a label that does not exist", table.name));
            }
        }
        for table in &body.call_tables {
            if table.targets.iter().any(|id| self.module.function(*id).is_none()) {
                self.wrong(table.span, format!("`{}` names something that is not a function", table.name));
            }
        }
        let mut context = Context { function, body, span: function.span };
        for instruction in &body.instructions {
            context.span = instruction.span;
            if !self.operands_exist(&context, instruction) {
                continue;
            }
            if let Some(guard) = instruction.guard {
                let ty = body.registers.ty(guard.reg);
                if ty != ScalarType::Pred {
                    let name = body.registers.name(guard.reg);
                    self.wrong(instruction.span, format!("`@{name}`: a guard is a predicate, not a .{ty}"));
                }
            }
            match &instruction.op {
                Op::Unsupported(op) => self.unsupported(instruction.span, op),
                op => self.instruction(&context, op),
            }
        }
    }

    /// Reports an instruction outside the model, unless it is one that exists.
    fn unsupported(&mut self, span: Span, op: &Unsupported) {
        if self.found.len() >= limits::DIAGNOSTICS {
            return;
        }
        let version = (self.module.version.major, self.module.version.minor);
        if NotRun::find(&op.mnemonic, &op.modifiers).is_some() {
            let unknown = NotRun::unknown_modifier(&op.mnemonic, &op.modifiers);
            if let Some(unknown) = unknown.filter(|_| version <= NEWEST_PTX) {
                let message = format!("`{}` has no `.{unknown}`", op.mnemonic);
                self.found.push(Diagnostic::new(&self.module.source, self.word(span, unknown), message));
            }
            return;
        }
        let known = || MNEMONICS.iter().copied().chain(NotRun::mnemonics());
        let mnemonic = op.mnemonic.as_str();
        // The reason names the culprit in backquotes: the last word of it, or the instruction as a
        // whole.
        let culprit = op.reason.rsplit('`').nth(1).map_or(mnemonic, |word| word.trim_start_matches('.'));
        let mut diagnostic =
            Diagnostic::new(&self.module.source, self.word(span, culprit), op.reason.clone());
        if let Some(meant) = closest(mnemonic, known()).filter(|_| !known().any(|known| known == mnemonic)) {
            diagnostic = diagnostic.with_help(format!("did you mean `{meant}`?"));
        } else {
            let (major, minor) = NEWEST_PTX;
            if version > NEWEST_PTX {
                diagnostic = diagnostic.with_help(format!(
                    "the module is PTX {}.{}, and Gridloom knows PTX up to {major}.{minor}",
                    version.0, version.1
                ));
            }
        }
        self.found.push(diagnostic);
    }

    /// Returns whether every index in the instruction refers to something. The other checks rely on
    /// it.
    fn operands_exist(
        &mut self,
        context: &Context<'a>,
        instruction: &'a crate::model::op::Instruction,
    ) -> bool {
        let mut regs_exist = instruction.guard.is_none_or(|guard| context.has_reg(guard.reg));
        let mut vars_exist = true;
        let module = self.module;
        instruction.op.for_each_operand(&mut |place, _| {
            regs_exist &= place.reg().is_none_or(|reg| context.has_reg(reg));
            vars_exist &= match place {
                OperandRef::Src(Operand::Address { base, .. }) => context.has_var(module, *base),
                OperandRef::Addr(address) => match address.base {
                    AddressBase::Var(var) => context.has_var(module, var),
                    _ => true,
                },
                _ => true,
            };
        });
        if let Op::Unsupported(op) = &instruction.op {
            for token in &op.operands {
                vars_exist &= match token {
                    RawToken::Var(var) => context.has_var(module, *var),
                    RawToken::Label(label) => context.has_label(*label),
                    _ => true,
                };
            }
        }
        if !regs_exist {
            self.wrong(instruction.span, "a register that the function does not have");
        }
        if !vars_exist {
            self.wrong(instruction.span, "a variable or label that does not exist");
        }
        regs_exist && vars_exist
    }
}

/// The instruction being checked.
pub(super) struct Context<'a> {
    pub(super) function: &'a Function,
    pub(super) body: &'a Body,
    pub(super) span: Span,
}

impl Context<'_> {
    fn has_reg(&self, reg: RegId) -> bool {
        reg.index() < self.body.registers.len()
    }

    pub(super) fn has_label(&self, label: LabelId) -> bool {
        label.index() < self.body.labels.len()
    }

    pub(super) fn has_var(&self, module: &Module, var: VarRef) -> bool {
        match var {
            VarRef::Symbol(id) => id.index() < module.symbols.len(),
            VarRef::Local(id) => id.index() < self.body.locals.len(),
            VarRef::Param(id) => id.index() < self.function.params.len(),
            VarRef::Return(id) => id.index() < self.function.returns.len(),
        }
    }
}
