//! The module: header, symbols, debug information.

use super::debug::{Section, SourceFile};
use super::function::{Function, FunctionKind};
use super::names::SymbolId;
use super::span::Span;
use super::variable::Variable;
use crate::source::Source;

/// `.version major.minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Before the dot.
    pub major: u32,
    /// After the dot.
    pub minor: u32,
}

/// `.target`: an architecture and further words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The words as written: `sm_80`, `debug`, `texmode_independent`.
    pub words: Vec<String>,
}

impl Target {
    /// Returns the compute capability: 80 for `sm_80`, 90 for `sm_90a`.
    #[must_use]
    pub fn sm(&self) -> Option<u32> {
        self.words.iter().find_map(|word| {
            let digits = word.strip_prefix("sm_").or_else(|| word.strip_prefix("compute_"))?;
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse().ok()
        })
    }
}

/// A module-scope variable or function.
#[derive(Clone, Debug, PartialEq)]
pub enum Symbol {
    /// A variable.
    Variable(Variable),
    /// A kernel or function.
    Function(Box<Function>),
}

impl Symbol {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Symbol::Variable(variable) => &variable.name,
            Symbol::Function(function) => &function.name,
        }
    }

    /// Returns where it was declared.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Symbol::Variable(variable) => variable.span,
            Symbol::Function(function) => function.span,
        }
    }
}

/// A statement at module scope, in source order. PTX requires a declaration before each use, so the
/// order of declarations and definitions is part of the module.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A variable, or a function's prototype without body.
    Declare(SymbolId),
    /// A function with its body, or a variable that was declared `.extern` before.
    Define(SymbolId),
    /// `.alias alias, aliasee;`
    Alias {
        /// The other name; declared before as a function.
        alias: SymbolId,
        /// The function it stands for.
        aliasee: SymbolId,
    },
    /// `.pragma` at module scope.
    Pragma(Vec<String>),
}

/// A PTX module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// `.version`.
    pub version: Version,
    /// `.target`.
    pub target: Target,
    /// `.address_size`, 64 if left out.
    pub address_size: u32,
    /// Variables and functions, in the order their names first appear.
    pub symbols: Vec<Symbol>,
    /// Statements in source order.
    pub items: Vec<Item>,
    /// `.file` directives.
    pub files: Vec<SourceFile>,
    /// `.section` directives.
    pub sections: Vec<Section>,
    /// The text the spans point into; empty for a module built in memory.
    pub source: Source,
}

impl Module {
    /// Returns a symbol.
    ///
    /// # Panics
    /// If the module has no such symbol. [`check`](crate::check()) finds every such index.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.index()]
    }

    /// Returns the name of a symbol; empty if the module has no such symbol.
    #[must_use]
    pub fn name_of(&self, id: SymbolId) -> &str {
        self.symbols.get(id.index()).map_or("", Symbol::name)
    }

    /// Returns the source file that `.loc` calls `index`.
    #[must_use]
    pub fn file(&self, index: u32) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.index == index)
    }

    /// Returns the variable or function named `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(SymbolId, &Symbol)> {
        let index = self.symbols.iter().position(|symbol| symbol.name() == name)?;
        Some((SymbolId(u32::try_from(index).ok()?), &self.symbols[index]))
    }

    /// Returns a function, following aliases, or `None` for a variable.
    #[must_use]
    pub fn function(&self, id: SymbolId) -> Option<&Function> {
        // PTX has no aliases of aliases, but a chain or ring of them must not hang.
        let mut id = id;
        for _ in 0..8 {
            match self.symbols.get(id.index())? {
                Symbol::Variable(_) => return None,
                Symbol::Function(function) => match function.alias_of {
                    Some(next) if function.body.is_none() => id = next,
                    _ => return Some(function),
                },
            }
        }
        None
    }

    /// Returns a variable, or `None` for a function.
    #[must_use]
    pub fn variable(&self, id: SymbolId) -> Option<&Variable> {
        match self.symbols.get(id.index())? {
            Symbol::Variable(variable) => Some(variable),
            Symbol::Function(_) => None,
        }
    }

    /// Returns all functions and kernels, declared or defined.
    pub fn functions(&self) -> impl Iterator<Item = (SymbolId, &Function)> {
        (0u32..).zip(&self.symbols).filter_map(|(index, symbol)| match symbol {
            Symbol::Function(function) => Some((SymbolId(index), &**function)),
            Symbol::Variable(_) => None,
        })
    }

    /// Returns all module-scope variables.
    pub fn variables(&self) -> impl Iterator<Item = (SymbolId, &Variable)> {
        (0u32..).zip(&self.symbols).filter_map(|(index, symbol)| match symbol {
            Symbol::Variable(variable) => Some((SymbolId(index), variable)),
            Symbol::Function(_) => None,
        })
    }

    /// Returns all kernels with a body.
    pub fn entries(&self) -> impl Iterator<Item = (SymbolId, &Function)> {
        self.functions()
            .filter(|(_, function)| function.kind == FunctionKind::Entry && function.body.is_some())
    }

    /// Returns the kernel named `name`.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<(SymbolId, &Function)> {
        self.entries().find(|(_, function)| function.name == name)
    }
}
