//! Function bodies.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};

use super::operand::{Names, int};
use super::{declaration, instruction_text, quoted};
use crate::model::{Body, Function, Module, Prototype, SourceLocation};

pub(super) fn body(f: &mut dyn Write, module: &Module, function: &Function) -> fmt::Result {
    let Some(body) = &function.body else { return f.write_str(";\n") };
    f.write_str("{\n")?;
    declarations(f, module, function, body)?;
    // Labels in the order of the instructions after them.
    let mut labels: Vec<usize> = (0..body.labels.len()).collect();
    labels.sort_by_key(|index| body.labels[*index].target);
    let mut labels = labels.into_iter().map(|index| &body.labels[index]).peekable();
    let mut pragmas = body.pragmas.iter().peekable();
    let mut location = None;
    let mut locations = Locations::new(body);
    for (index, instruction) in body.instructions.iter().enumerate() {
        while let Some(label) = labels.next_if(|label| label.target as usize <= index) {
            writeln!(f, "{}:", label.name)?;
        }
        while let Some(pragma) = pragmas.next_if(|pragma| pragma.at as usize <= index) {
            writeln!(f, "\t.pragma {};", quoted(&pragma.texts))?;
        }
        if instruction.location != location {
            if let Some(id) = instruction.location {
                locations.write(f, id.index())?;
            }
            location = instruction.location;
        }
        writeln!(f, "\t{};", instruction_text(module, function, instruction))?;
    }
    for label in labels {
        writeln!(f, "{}:", label.name)?;
    }
    for pragma in pragmas {
        writeln!(f, "\t.pragma {};", quoted(&pragma.texts))?;
    }
    f.write_str("}\n")
}

/// The source positions of a body that are already printed.
struct Locations<'a> {
    all: &'a [SourceLocation],
    /// The first entry with each position.
    first: HashMap<(u32, u32, u32), usize>,
    printed: HashSet<(u32, u32, u32)>,
}

impl<'a> Locations<'a> {
    fn new(body: &'a Body) -> Self {
        let mut first = HashMap::new();
        for (index, location) in body.locations.iter().enumerate() {
            first.entry(location.position()).or_insert(index);
        }
        Self { all: &body.locations, first, printed: HashSet::new() }
    }

    /// Writes an entry after the entries it was inlined at, because the assembler requires that
    /// order.
    fn write(&mut self, f: &mut dyn Write, index: usize) -> fmt::Result {
        let mut chain = vec![index];
        while let Some(last) = chain.last().copied()
            && let Some(inlined) = self.all.get(last).and_then(|location| location.inlined.as_ref())
            && !self.printed.contains(&inlined.position())
            && let Some(call) = self.first.get(&inlined.position()).copied()
            && call < last
        {
            chain.push(call);
        }
        for location in chain.into_iter().rev().filter_map(|index| self.all.get(index)) {
            self.printed.insert(location.position());
            write!(f, "\t.loc {} {} {}", location.file, location.line, location.column)?;
            if let Some(inlined) = &location.inlined {
                write!(f, ", function_name {}", inlined.function_label)?;
                if inlined.function_offset != 0 {
                    write!(f, "+{}", int(inlined.function_offset))?;
                }
                write!(f, ", inlined_at {} {} {}", inlined.file, inlined.line, inlined.column)?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

fn declarations(f: &mut dyn Write, module: &Module, function: &Function, body: &Body) -> fmt::Result {
    // Register parameters are declared by the signature and come first.
    let declared =
        function.returns.iter().chain(&function.params).filter(|param| param.register.is_some()).count();
    for group in body.registers.groups().iter().skip(declared) {
        match group.range {
            Some(count) => writeln!(f, "\t.reg .{} {}<{count}>;", group.ty, group.name)?,
            None => writeln!(f, "\t.reg .{} {};", group.ty, group.name)?,
        }
    }
    for local in &body.locals {
        write!(f, "\t{}", declaration::declarator(local))?;
        declaration::initializer(f, module, local)?;
        f.write_str(";\n")?;
    }
    let names = Names { module, function };
    for table in &body.branch_tables {
        let targets: Vec<&str> = table.targets.iter().map(|label| names.label(*label)).collect();
        writeln!(f, "{}: .branchtargets {};", table.name, targets.join(", "))?;
    }
    for table in &body.call_tables {
        let targets: Vec<&str> = table.targets.iter().map(|id| names.symbol(*id)).collect();
        writeln!(f, "{}: .calltargets {};", table.name, targets.join(", "))?;
    }
    for prototype in &body.prototypes {
        write_prototype(f, prototype)?;
    }
    Ok(())
}

fn write_prototype(f: &mut dyn Write, prototype: &Prototype) -> fmt::Result {
    let lists = declaration::parameter_lists(&prototype.returns, "_", &prototype.params);
    write!(f, "{}: .callprototype {lists}", prototype.name)?;
    if prototype.noreturn {
        f.write_str(" .noreturn")?;
    }
    if let Some(count) = prototype.abi_preserve {
        write!(f, " .abi_preserve {count}")?;
    }
    if let Some(count) = prototype.abi_preserve_control {
        write!(f, " .abi_preserve_control {count}")?;
    }
    f.write_str(";\n")
}
