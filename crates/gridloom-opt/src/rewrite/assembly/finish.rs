//! The finished module: the assembled kernel, or a copy of a kernel with a prefix.

use std::sync::Arc;

use gridloom_ptx::op::{Instruction, MemoryOp, Op, OperandMut, OperandRef};
use gridloom_ptx::{
    Address, AddressBase, Directives, Function, FunctionKind, Item, Linkage, Module, Operand, Param, ParamId,
    PlainSpecial, ScalarType, Source, Space, Span, SpecialReg, Symbol, SymbolId, Target, VarRef, VarSpace,
    Version,
};
use rustc_hash::FxHashSet;

use super::unroll::unroll;
use crate::rewrite::Sections;
use crate::rewrite::source::KernelSource;

use super::{Assembly, Refusal, SMALL_PARAMETERS, bytes, make_coherent};

/// The registers of each thread with which a multiprocessor has room for the largest blocks.
const REGISTERS_OF_LARGEST_BLOCK: u32 = 64;
/// The most static shared memory of a kernel.
const MAX_STATIC_SHARED: u64 = 48 << 10;

impl Assembly {
    /// Returns the module with a kernel of this name and block shape, whose one parameter has this
    /// many bytes, and where its instructions come from.
    pub(crate) fn finish(
        mut self,
        name: &str,
        block: [u32; 3],
        params: u64,
        align: u64,
    ) -> Result<(Module, Sections), Refusal> {
        if params > SMALL_PARAMETERS {
            self.require(Version { major: 8, minor: 1 }, 70);
        }
        if let Some(arena) = self.arena {
            let all = self.finish_slots();
            if all > MAX_STATIC_SHARED {
                return Err(format!("together they need {all} bytes of static shared memory"));
            }
            let variable = &mut self.body.locals[arena.index()];
            variable.dims = vec![Some(all)];
            variable.align = Some(self.arena_align.max(4) as u32);
        }
        let mut sections = std::mem::take(&mut self.sections);
        sections.number_registers(&self.body);
        let var = bytes("parameters".into(), VarSpace::Param, params.max(1), align as u32);
        let function = Function {
            name: name.into(),
            kind: FunctionKind::Entry,
            linkage: Linkage::Visible,
            attributes: Vec::new(),
            returns: Vec::new(),
            params: vec![Param { var, pointer: None, register: None, offset: 0 }],
            directives: Directives { maxntid: Some(block), ..Directives::default() },
            body: Some(Box::new(std::mem::take(&mut self.body))),
            alias_of: None,
            span: Span::default(),
        };
        Ok((self.finish_with(function)?, sections))
    }

    /// Returns how many instructions at the start of a kernel only compute. Nothing leads into
    /// them.
    fn computing_start(&self, instructions: &[Instruction]) -> usize {
        let labels = self.body.labels.iter().map(|label| label.target);
        let pragmas = self.body.pragmas.iter().map(|pragma| pragma.at);
        let first = labels.chain(pragmas).min().map_or(usize::MAX, |at| at as usize);
        instructions.iter().take(first).take_while(|instruction| only_computes(instruction)).count()
    }

    /// Returns the module with this kernel. If the kernel has no body, it gets the assembled one.
    fn finish_with(mut self, function: Function) -> Result<Module, Refusal> {
        let entry = self.declare(Symbol::Function(Box::new(function)));
        self.make_names_unique(entry);
        let mut items = self.declared;
        items.append(&mut self.defined);
        items.push(Item::Define(entry));
        let module = Module {
            version: self.version,
            target: Target { words: vec![self.target.1] },
            address_size: 64,
            symbols: self.symbols,
            items,
            files: Vec::new(),
            sections: Vec::new(),
            source: Source::default(),
        };
        // Every name is unique by construction and every type comes from checked code. If the check
        // fails all the same, the kernels are not replaced.
        match gridloom_ptx::check(&module).first() {
            None => Ok(module),
            Some(wrong) => Err(format!("the rewritten kernel does not check: {}", wrong.message)),
        }
    }

    /// Gives symbols other names if the kernel, an external function or another symbol has theirs.
    fn make_names_unique(&mut self, entry: SymbolId) {
        let is_fixed = |at: usize, symbol: &Symbol| {
            let external = |function: &Function| function.body.is_none();
            at == entry.index() || matches!(symbol, Symbol::Function(function) if external(function))
        };
        let all = self.symbols.iter().enumerate();
        let fixed =
            all.filter(|(at, symbol)| is_fixed(*at, symbol)).map(|(_, symbol)| symbol.name().to_owned());
        let mut taken: FxHashSet<String> = fixed.collect();
        for (at, symbol) in self.symbols.iter_mut().enumerate() {
            if is_fixed(at, symbol) {
                continue;
            }
            let mut name = symbol.name().to_owned();
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            match symbol {
                Symbol::Function(function) => function.name = name,
                Symbol::Variable(variable) => variable.name = name,
            }
        }
    }

    /// Returns the module with a copy of a kernel that starts with other instructions. Those that
    /// `prefix` writes may come later. It has this many more parameters of 8 bytes, and no loads
    /// that bypass the coherent caches.
    pub(crate) fn finish_prefixed(
        mut self,
        source: &KernelSource,
        (start, prefix): (impl FnOnce(&mut Assembly), impl FnOnce(&mut Assembly, &[ParamId])),
        parameters: usize,
        changes: Changes,
    ) -> Result<Module, Refusal> {
        self.link(source, true)?;
        let key = Arc::as_ptr(source.module()) as usize;
        let mut function = source.function().clone();
        function.span = Span::default();
        function.linkage = Linkage::Visible;
        let mut body = function.body.take().ok_or("a kernel without a body")?;
        body.locations.clear();
        let mut added = Vec::with_capacity(parameters);
        for number in 0..parameters {
            let id = ParamId(function.params.len() as u32);
            let offset = function.param_bytes().next_multiple_of(8);
            // A kernel that already has such parameters gets others with other names.
            let name = format!("gate{}_{number}", id.0);
            let mut var = bytes(name, VarSpace::Param, 8, 8);
            (var.ty, var.dims, var.align) = (ScalarType::U64, Vec::new(), None);
            function.params.push(Param { var, pointer: None, register: None, offset });
            added.push(id);
        }
        // Replaces the symbols in the body by those of this module.
        for instruction in &mut body.instructions {
            instruction.location = None;
            instruction.span = Span::default();
            make_coherent(&mut instruction.op);
            let mut failed = None;
            instruction.for_each_name_mut(&mut |place| {
                let result = match place {
                    OperandMut::Function(id) => self.linked_function(source.module(), id),
                    OperandMut::Src(Operand::Address { base: VarRef::Symbol(id), .. })
                    | OperandMut::Var(VarRef::Symbol(id))
                    | OperandMut::Addr(Address { base: AddressBase::Var(VarRef::Symbol(id)), .. }) => {
                        self.module_symbol(source.module(), key, id)
                    }
                    _ => Ok(()),
                };
                failed = failed.take().or(result.err());
            });
            if let Some(failed) = failed {
                return Err(failed);
            }
        }
        // The prefix is written after the body's registers are in place, so that its own registers
        // follow them.
        self.body = *body;
        self.name_glue();
        if changes.unrolls && unroll(&mut self) {
            give_registers(&mut function.directives);
        }
        let mut instructions = std::mem::take(&mut self.body.instructions);
        let first_label = self.body.labels.len();
        start(&mut self);
        let early = if changes.is_late { self.computing_start(&instructions) } else { 0 };
        self.body.instructions.extend(instructions.drain(..early));
        prefix(&mut self, &added);
        // Labels and pragmas are all behind what was written.
        let shift = (self.body.instructions.len() - early) as u32;
        for label in &mut self.body.labels[..first_label] {
            label.target += shift;
        }
        for pragma in &mut self.body.pragmas {
            pragma.at += shift;
        }
        self.body.instructions.extend(instructions);
        function.body = Some(Box::new(std::mem::take(&mut self.body)));
        self.finish_with(function)
    }
}

/// How a kernel with a prefix differs from the original besides the prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changes {
    /// Whether loops make several passes between two tests.
    pub(crate) unrolls: bool,
    /// Whether instructions at the start that only compute come before the prefix.
    pub(crate) is_late: bool,
}

/// Returns whether an instruction has the same result at any time, and no other effect: it computes
/// from registers, arguments and the place of the thread.
fn only_computes(instruction: &Instruction) -> bool {
    let computes = match &instruction.op {
        Op::Int(_) | Op::Bits(_) | Op::Float(_) | Op::Compare(_) | Op::Convert(_) => true,
        Op::Memory(MemoryOp::Ld { access, .. }) => {
            matches!(access.space, Space::Param | Space::ParamEntry)
                && matches!(access.addr.base, AddressBase::Var(VarRef::Param(_)))
        }
        _ => false,
    };
    let mut is_fixed = true;
    instruction.op.for_each_operand(&mut |operand, _| {
        let place = |special: &SpecialReg| {
            matches!(special, SpecialReg::Dim(..) | SpecialReg::Plain(PlainSpecial::LaneId))
        };
        is_fixed &= !matches!(operand, OperandRef::Src(Operand::Special(special)) if !place(special));
    });
    computes && is_fixed
}

/// Lets an assembler use more registers than those with which most blocks run side by side, for
/// loads that are under way together. Every block that could run before still can.
fn give_registers(directives: &mut Directives) {
    let Directives { maxntid, reqntid, minnctapersm, maxnctapersm, maxnreg, .. } = directives;
    if minnctapersm.is_some() || maxnctapersm.is_some() || maxnreg.is_some() {
        return;
    }
    if maxntid.is_some() || reqntid.is_some() {
        *minnctapersm = Some(1);
    } else {
        *maxnreg = Some(REGISTERS_OF_LARGEST_BLOCK);
    }
}
