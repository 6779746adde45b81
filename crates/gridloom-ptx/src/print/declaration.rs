//! Variables, signatures and directives.

use std::fmt::{self, Write};

use super::{operand, quoted};
use crate::model::{
    Attribute, Directives, Function, FunctionKind, Image, Initializer, Linkage, Module, Param, Relocation,
    ScalarType, VarSpace, Variable,
};

fn attributes(attributes: &[Attribute]) -> String {
    if attributes.is_empty() {
        return String::new();
    }
    let words: Vec<String> = attributes
        .iter()
        .map(|attribute| match attribute {
            Attribute::Managed => ".managed".to_owned(),
            Attribute::Unified(high, low) => format!(".unified({high:#x}, {low:#x})"),
        })
        .collect();
    format!(".attribute({}) ", words.join(", "))
}

fn linkage(linkage: Linkage) -> String {
    if linkage == Linkage::Internal { String::new() } else { format!(".{linkage} ") }
}

/// Returns a variable's declaration without its initial value.
pub(super) fn declarator(variable: &Variable) -> String {
    let mut text =
        format!("{}.{} {}", linkage(variable.linkage), variable.space, attributes(&variable.attributes));
    if let Some(align) = variable.align {
        let _ = write!(text, ".align {align} ");
    }
    text.push_str(&type_and_name(variable, ""));
    text
}

fn type_and_name(variable: &Variable, pointer: &str) -> String {
    let mut text = String::new();
    if variable.vector > 1 {
        let _ = write!(text, ".v{} ", variable.vector);
    }
    let _ = write!(text, ".{}{pointer} {}", variable.ty, variable.name);
    for dim in &variable.dims {
        match dim {
            Some(size) => {
                let _ = write!(text, "[{size}]");
            }
            None => text.push_str("[]"),
        }
    }
    text
}

pub(super) fn module_variable(f: &mut dyn Write, module: &Module, variable: &Variable) -> fmt::Result {
    f.write_str(&declarator(variable))?;
    initializer(f, module, variable)?;
    f.write_str(";\n")
}

/// Writes ` = …`, if the variable has an initial value.
pub(super) fn initializer(f: &mut dyn Write, module: &Module, variable: &Variable) -> fmt::Result {
    match &variable.init {
        None => Ok(()),
        Some(Initializer::Opaque(fields)) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            write!(f, " = {{{}}}", fields.join(", "))
        }
        Some(Initializer::Data(image)) => {
            f.write_str(" = ")?;
            let size = variable.ty.size() as usize;
            let mut values = Values { module, image, ty: variable.ty, at: 0, relocation: 0 };
            let mut levels: Vec<u64> = variable.dims.iter().map(|dim| dim.unwrap_or(u64::MAX)).collect();
            if variable.vector > 1 {
                levels.push(u64::from(variable.vector));
            }
            if levels.is_empty() {
                if image.bytes.len() < size {
                    return f.write_str("{}");
                }
                return values.write_one(f);
            }
            values.write_level(f, &levels)
        }
    }
}

struct Values<'a> {
    module: &'a Module,
    image: &'a Image,
    ty: ScalarType,
    /// The next byte.
    at: usize,
    /// The next relocation.
    relocation: usize,
}

impl Values<'_> {
    fn is_done(&self) -> bool {
        self.at + self.ty.size() as usize > self.image.bytes.len()
    }

    fn write_level(&mut self, f: &mut dyn Write, levels: &[u64]) -> fmt::Result {
        let Some((count, below)) = levels.split_first() else { return self.write_one(f) };
        f.write_str("{")?;
        let mut index = 0;
        while index < *count && !self.is_done() {
            if index > 0 {
                f.write_str(", ")?;
            }
            self.write_level(f, below)?;
            index += 1;
        }
        f.write_str("}")
    }

    fn write_one(&mut self, f: &mut dyn Write) -> fmt::Result {
        let size = self.ty.size() as usize;
        let relocation = self.image.relocations.get(self.relocation);
        let at = self.at;
        self.at += size;
        if let Some(relocation) = relocation
            && relocation.offset == at as u64
        {
            self.relocation += 1;
            return f.write_str(&self.address(relocation));
        }
        let mut bytes = [0u8; 8];
        let used = size.min(8);
        bytes[..used].copy_from_slice(&self.image.bytes[at..at + used]);
        let bits = u64::from_le_bytes(bytes);
        match size {
            4 if self.ty.is_float() => write!(f, "0f{bits:08X}"),
            8 if self.ty.is_float() => write!(f, "0d{bits:016X}"),
            _ => write!(f, "{bits}"),
        }
    }

    fn address(&self, relocation: &Relocation) -> String {
        let name = self.module.name_of(relocation.symbol);
        let mut text = if relocation.generic { format!("generic({name})") } else { name.to_owned() };
        if relocation.addend != 0 {
            let _ = write!(text, "+{}", operand::int(relocation.addend));
        }
        match relocation.byte {
            Some(byte) => {
                format!("{:#X}({text})", 0xffu64 << (8 * u32::from(byte.min(7)))).replace("0X", "0x")
            }
            None => text,
        }
    }
}

fn params(list: &[Param]) -> String {
    let params: Vec<String> = list
        .iter()
        .map(|param| {
            let variable = &param.var;
            let mut pointer = String::new();
            if let Some(attr) = param.pointer {
                pointer.push_str(" .ptr");
                if let Some(space) = attr.space {
                    let _ = write!(pointer, " .{space}");
                }
                if let Some(align) = attr.align {
                    let _ = write!(pointer, " .align {align}");
                }
            }
            let mut text = format!(".{} ", if variable.space == VarSpace::Reg { "reg" } else { "param" });
            if let Some(align) = variable.align {
                let _ = write!(text, ".align {align} ");
            }
            text.push_str(&type_and_name(variable, &pointer));
            text
        })
        .collect();
    params.join(", ")
}

/// `(returns) ` if there are any, then `name`, then `(params)`.
pub(super) fn parameter_lists(returns: &[Param], name: &str, list: &[Param]) -> String {
    let returned = if returns.is_empty() { String::new() } else { format!("({}) ", params(returns)) };
    format!("{returned}{name}({})", params(list))
}

pub(super) fn signature(f: &mut dyn Write, function: &Function) -> fmt::Result {
    let kind = match function.kind {
        FunctionKind::Entry => "entry",
        FunctionKind::Func => "func",
    };
    let lists = parameter_lists(&function.returns, &function.name, &function.params);
    writeln!(f, "{}.{kind} {}{lists}", linkage(function.linkage), attributes(&function.attributes))
}

/// Writes a function without its body.
pub(super) fn prototype(f: &mut dyn Write, function: &Function) -> fmt::Result {
    signature(f, function)?;
    if function.body.is_none() {
        directives(f, &function.directives)?;
    }
    f.write_str(";\n")
}

pub(super) fn directives(f: &mut dyn Write, directives: &Directives) -> fmt::Result {
    let extents = [
        ("maxntid", directives.maxntid),
        ("reqntid", directives.reqntid),
        ("reqnctapercluster", directives.reqnctapercluster),
    ];
    for (word, extent) in extents {
        if let Some([x, y, z]) = extent {
            writeln!(f, ".{word} {x}, {y}, {z}")?;
        }
    }
    let numbers = [
        ("minnctapersm", directives.minnctapersm),
        ("maxnctapersm", directives.maxnctapersm),
        ("maxnreg", directives.maxnreg),
        ("maxclusterrank", directives.maxclusterrank),
        ("abi_preserve", directives.abi_preserve),
        ("abi_preserve_control", directives.abi_preserve_control),
    ];
    for (word, number) in numbers {
        if let Some(number) = number {
            writeln!(f, ".{word} {number}")?;
        }
    }
    let flags = [
        ("noreturn", directives.noreturn),
        ("explicitcluster", directives.explicitcluster),
        ("blocksareclusters", directives.blocksareclusters),
    ];
    for (word, on) in flags {
        if on {
            writeln!(f, ".{word}")?;
        }
    }
    for (word, numbers) in &directives.other {
        let numbers: Vec<String> = numbers.iter().map(|number| operand::int(*number)).collect();
        writeln!(f, ".{word} {}", numbers.join(", "))?;
    }
    if !directives.pragmas.is_empty() {
        writeln!(f, ".pragma {};", quoted(&directives.pragmas))?;
    }
    Ok(())
}
