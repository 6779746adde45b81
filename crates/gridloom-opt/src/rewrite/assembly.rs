//! A module under construction, with one kernel assembled from the code of others.

mod code;
mod conditions;
mod finish;
mod inline;
mod link;
mod slots;
mod unroll;

use std::sync::Arc;

use gridloom_ptx::{
    Body, Item, Linkage, LocalVarId, Module, RegId, ScalarType, Span, Symbol, SymbolId, VarSpace, Variable,
    Version,
};
use rustc_hash::FxHashMap;

use code::{access, make_coherent, param_address};
pub(crate) use code::{at, int, special};
pub(crate) use finish::Changes;
pub(crate) use inline::{AfterReturn, BlockIndex, Inlining, ParamsAt};
use slots::Slots;

use super::origins::Sections;

/// Parameters larger than this need PTX 8.1 and compute capability 7.0.
pub(crate) const SMALL_PARAMETERS: u64 = 4096;

/// The target of the inlined kernels' calls of `cudaGraphSetConditional`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conditions {
    /// The device's own function.
    Device,
    /// A word of shared memory, at the offset that is passed as the handle.
    Shared,
    /// A marked word of 8 bytes, at the address that is passed as the handle.
    Memory,
    /// One of two entries of 16 bytes, with the number of the phase, at the address that is passed
    /// as the handle.
    Phased,
    /// As `Phased`, and a word of shared memory says that it was set.
    Announced,
}

/// A module with one kernel under construction.
pub(crate) struct Assembly {
    symbols: Vec<Symbol>,
    declared: Vec<Item>,
    defined: Vec<Item>,
    body: Body,
    version: Version,
    target: (u32, String),
    /// The new symbols of symbols of other modules, by the module's address.
    linked: FxHashMap<(usize, SymbolId), SymbolId>,
    /// Keeps the modules alive whose addresses are in `linked`.
    modules: Vec<Arc<Module>>,
    /// Shared memory that the inlined kernels use one after the other.
    arena: Option<LocalVarId>,
    arena_bytes: u64,
    arena_align: u64,
    dynamic_shared: Option<SymbolId>,
    conditions: Conditions,
    condition_setter: Option<SymbolId>,
    condition_words: Option<SymbolId>,
    /// The register with the number of the phase, if conditions are set in phases.
    pub(crate) phase: Option<RegId>,
    /// Words in shared memory, by name.
    shared_words: Vec<(&'static str, SymbolId)>,
    slots: Option<Slots>,
    /// The number of conditions in shared memory.
    condition_count: u64,
    /// Where the instructions come from.
    pub(crate) sections: Sections,
    inlined: usize,
    /// The number of registers between inlined kernels, and how their names and those of labels begin.
    glue: usize,
    glue_name: String,
}

/// The reason why kernels could not be combined.
pub(crate) type Refusal = String;

impl Assembly {
    pub(crate) fn new(conditions: Conditions) -> Self {
        Assembly {
            symbols: Vec::new(),
            declared: Vec::new(),
            defined: Vec::new(),
            body: Body::default(),
            version: Version { major: 6, minor: 4 },
            target: (70, "sm_70".into()),
            linked: FxHashMap::default(),
            modules: Vec::new(),
            arena: None,
            arena_bytes: 0,
            arena_align: 1,
            dynamic_shared: None,
            conditions,
            condition_setter: None,
            condition_words: None,
            phase: None,
            shared_words: Vec::new(),
            slots: None,
            condition_count: 0,
            sections: Sections::default(),
            inlined: 0,
            glue: 0,
            glue_name: "glue".into(),
        }
    }

    /// Sets the number of conditions in shared memory.
    pub(crate) fn share_conditions(&mut self, count: usize) {
        self.condition_count = count as u64;
    }

    /// Raises the module's version and compute capability to at least these.
    pub(crate) fn require(&mut self, version: Version, sm: u32) {
        self.version = self.version.max(version);
        if sm > self.target.0 {
            self.target = (sm, format!("sm_{sm}"));
        }
    }

    fn require_of(&mut self, module: &Arc<Module>) {
        self.version = self.version.max(module.version);
        if let Some(sm) = module.target.sm()
            && let Some(word) = module.target.words.iter().find(|word| word.starts_with("sm_"))
            // `sm_90a` has all features of `sm_90`.
            && (sm, word.len()) > (self.target.0, self.target.1.len())
        {
            self.target = (sm, word.clone());
        }
        if !self.modules.iter().any(|known| Arc::ptr_eq(known, module)) {
            self.modules.push(Arc::clone(module));
        }
    }

    // Shared memory.

    fn arena(&mut self) -> LocalVarId {
        *self.arena.get_or_insert_with(|| {
            let id = LocalVarId(self.body.locals.len() as u32);
            self.body.locals.push(bytes("shared_by_steps".into(), VarSpace::Shared, 1, 1));
            id
        })
    }

    /// Returns the words in shared memory that hold the conditions.
    pub(crate) fn condition_words(&mut self) -> SymbolId {
        if let Some(id) = self.condition_words {
            return id;
        }
        let mut words = bytes("condition_words".into(), VarSpace::Shared, 4, 4);
        (words.ty, words.dims) = (ScalarType::U32, vec![Some(self.condition_count.max(1))]);
        let id = self.declare(Symbol::Variable(words));
        self.declared.push(Item::Declare(id));
        self.condition_words = Some(id);
        id
    }

    /// Returns the word in shared memory that holds the number of the phase, of 8 bytes.
    pub(crate) fn phase_word(&mut self) -> SymbolId {
        self.shared_word("phase_word", ScalarType::U64)
    }

    /// Returns the word in shared memory that says what the block did to the condition.
    pub(crate) fn announcement(&mut self) -> SymbolId {
        self.shared_word("announcement", ScalarType::U32)
    }

    /// Returns the word in shared memory that is 0 if the condition is.
    pub(crate) fn announced_value(&mut self) -> SymbolId {
        self.shared_word("announced_value", ScalarType::U32)
    }

    /// Returns the word in shared memory with this name.
    fn shared_word(&mut self, name: &'static str, ty: ScalarType) -> SymbolId {
        if let Some((_, id)) = self.shared_words.iter().find(|(known, _)| *known == name) {
            return *id;
        }
        let mut word = bytes(name.into(), VarSpace::Shared, 1, ty.size());
        (word.ty, word.dims) = (ty, Vec::new());
        let id = self.declare(Symbol::Variable(word));
        self.declared.push(Item::Declare(id));
        self.shared_words.push((name, id));
        id
    }

    fn declare(&mut self, symbol: Symbol) -> SymbolId {
        let id = SymbolId(self.symbols.len() as u32);
        self.symbols.push(symbol);
        id
    }

    fn dynamic_shared_symbol(&mut self) -> SymbolId {
        if let Some(id) = self.dynamic_shared {
            return id;
        }
        let mut whole = bytes("dynamic_shared".into(), VarSpace::Shared, 0, 16);
        (whole.dims, whole.linkage) = (vec![None], Linkage::Extern);
        let id = self.declare(Symbol::Variable(whole));
        // At the front, because others refer to it.
        self.declared.insert(0, Item::Declare(id));
        self.dynamic_shared = Some(id);
        id
    }

    fn dynamic_shared(&mut self, variable: &Variable) -> SymbolId {
        let id = self.dynamic_shared_symbol();
        if let Symbol::Variable(whole) = &mut self.symbols[id.index()] {
            let align = variable.alignment().max(u64::from(whole.align.unwrap_or(16)));
            whole.align = Some(align as u32);
        }
        id
    }
}

/// Returns an array of bytes.
fn bytes(name: String, space: VarSpace, size: u64, align: u32) -> Variable {
    Variable {
        name,
        linkage: Linkage::Internal,
        space,
        align: Some(align),
        ty: ScalarType::B8,
        vector: 1,
        dims: vec![Some(size)],
        init: None,
        attributes: Vec::new(),
        span: Span::default(),
    }
}
