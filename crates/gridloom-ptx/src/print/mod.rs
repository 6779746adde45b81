//! The model to text. What is printed parses to the module it was printed from.

mod body;
mod declaration;
mod instruction;
mod memory;
mod operand;
mod sync;

use std::collections::HashSet;
use std::fmt::{self, Write};

use crate::model::op::{Instruction, Op};
use crate::model::{
    Function, Item, Linkage, Module, Section, SectionItem, SectionValue, Symbol, SymbolId, Variable,
};
use operand::Names;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {}.{}", self.version.major, self.version.minor)?;
        writeln!(f, ".target {}", self.target.words.join(", "))?;
        writeln!(f, ".address_size {}", self.address_size)?;
        if !self.files.is_empty() {
            writeln!(f)?;
        }
        for file in &self.files {
            write!(f, ".file {} \"{}\"", file.index, file.name)?;
            if let Some((time, size)) = file.stamp {
                write!(f, ", {time}, {size}")?;
            }
            writeln!(f)?;
        }
        let define = |item: &Item| if let Item::Define(id) = item { Some(*id) } else { None };
        let defined: HashSet<SymbolId> = self.items.iter().filter_map(define).collect();
        for item in &self.items {
            writeln!(f)?;
            match item {
                Item::Declare(id) => match self.symbols.get(id.index()) {
                    Some(Symbol::Variable(variable)) if defined.contains(id) => {
                        let declared = Variable { linkage: Linkage::Extern, init: None, ..variable.clone() };
                        declaration::module_variable(f, self, &declared)?;
                    }
                    Some(Symbol::Variable(variable)) => declaration::module_variable(f, self, variable)?,
                    Some(Symbol::Function(function)) => declaration::prototype(f, function)?,
                    None => {}
                },
                Item::Define(id) => match self.symbols.get(id.index()) {
                    Some(Symbol::Variable(variable)) => declaration::module_variable(f, self, variable)?,
                    Some(Symbol::Function(function)) => {
                        declaration::signature(f, function)?;
                        declaration::directives(f, &function.directives)?;
                        body::body(f, self, function)?;
                    }
                    None => {}
                },
                Item::Alias { alias, aliasee } => {
                    writeln!(f, ".alias {}, {};", self.name_of(*alias), self.name_of(*aliasee))?;
                }
                Item::Pragma(texts) => writeln!(f, ".pragma {};", quoted(texts))?,
            }
        }
        for section in &self.sections {
            write_section(f, section)?;
        }
        Ok(())
    }
}

/// Returns the text of one instruction of `function`, without its `;`.
#[must_use]
pub fn instruction_text(module: &Module, function: &Function, instruction: &Instruction) -> String {
    let names = Names { module, function };
    let mut text = String::new();
    if let Some(guard) = instruction.guard {
        let _ = write!(text, "@{}{} ", if guard.negated { "!" } else { "" }, names.reg(guard.reg));
    }
    text.push_str(&instruction::op(&names, &instruction.op));
    text
}

/// Returns the name of an operation with its modifiers.
pub(crate) fn op_name(module: &Module, function: &Function, op: &Op) -> String {
    let text = instruction::op(&Names { module, function }, op);
    text.split(' ').next().unwrap_or("").to_owned()
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    texts.join(", ")
}

fn write_section(f: &mut fmt::Formatter<'_>, section: &Section) -> fmt::Result {
    writeln!(f, "\n.section {}\n{{", section.name)?;
    for item in &section.items {
        match item {
            SectionItem::Label(name) => writeln!(f, "{name}:")?,
            SectionItem::Data(data) => {
                let values: Vec<String> = data
                    .values
                    .iter()
                    .map(|value| match value {
                        SectionValue::Int(value) => operand::int(*value),
                        SectionValue::Label(label, 0) => label.clone(),
                        SectionValue::Label(label, offset) => format!("{label}+{}", operand::int(*offset)),
                        SectionValue::Difference(a, b) => format!("{a}-{b}"),
                    })
                    .collect();
                writeln!(f, ".b{} {}", data.width * 8, values.join(", "))?;
            }
        }
    }
    writeln!(f, "}}")
}
