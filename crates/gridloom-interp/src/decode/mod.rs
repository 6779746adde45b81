//! Decoding: from the typed model of a module to the flat code of one kernel.
//!
//! A kernel is decoded with every function it can call: directly, or through an address that the
//! code or a module variable holds. Shared memory is laid out per kernel, from the variables that
//! its code uses.

mod compare;
mod control;
mod convert;
mod cvt;
mod float;
mod function;
mod integer;
mod memory;
mod sync;

use super::code::{Code, Function, Position};
use super::error::{Error, PARAMETER_BYTES};
use super::fault::SourceLine;
use super::kernel::{KernelCode, KernelParam};
use super::lanes::LANES;
use super::layout::VariableId;
use super::program::Program;
use function::FunctionDecoder;
use gridloom_ptx::{Module, SymbolId, Variable};
use std::collections::HashMap;

/// The alignment of dynamic shared memory, as in CUDA.
const DYNAMIC_ALIGN: u64 = 16;

/// The reason why an instruction cannot be executed here.
pub(crate) enum Refusal {
    /// A description.
    Because(String),
    /// It needs a function that is not defined.
    Undefined(String),
}

impl Refusal {
    fn because(reason: impl Into<String>) -> Self {
        Self::Because(reason.into())
    }
}

/// The state of decoding one kernel.
pub(crate) struct Decoder<'a> {
    program: &'a Program,
    module: &'a Module,
    code: Code,
    /// The functions found so far, in the order of [`Code::functions`].
    found: Vec<SymbolId>,
    /// The constants by value, so that each is stored once.
    constants: HashMap<u64, u32>,
    /// The offsets of shared variables in the window.
    shared: HashMap<VariableId, u64>,
    shared_bytes: u64,
    /// The constants that are addresses in dynamic shared memory. Its start is known last.
    dynamic: Vec<u32>,
    dynamic_align: u64,
}

/// Decodes a kernel and every function it can reach.
pub(crate) fn kernel(program: &Program, id: SymbolId) -> Result<KernelCode, Error> {
    let module = &*program.module;
    let mut decoder = Decoder {
        program,
        module,
        code: Code {
            instructions: Vec::new(),
            positions: Vec::new(),
            constants: Vec::new(),
            functions: Vec::new(),
            by_symbol: HashMap::new(),
        },
        found: Vec::new(),
        constants: HashMap::new(),
        shared: HashMap::new(),
        shared_bytes: 0,
        dynamic: Vec::new(),
        dynamic_align: DYNAMIC_ALIGN,
    };
    let Some(entry) = module.function(id) else {
        return Err(Error::UnknownKernel { name: module.symbol(id).name().to_owned(), known: Vec::new() });
    };
    let bytes =
        entry.params.iter().map(|param| param.offset.saturating_add(param.var.size())).max().unwrap_or(0);
    if bytes > PARAMETER_BYTES {
        return Err(Error::Parameters { kernel: entry.name.clone(), bytes });
    }
    decoder.find(id);
    // Decoding a function may find others, which are appended.
    let mut next = 0;
    while let Some(&id) = decoder.found.get(next) {
        let function = decoder.function(&entry.name, id)?;
        decoder.code.functions[next] = function;
        next += 1;
    }
    let shared_bytes = decoder.place_dynamic(&entry.name)?;
    let params = entry.params.iter().map(|param| KernelParam {
        name: param.var.name.clone(),
        offset: param.offset,
        size: param.var.size(),
        align: param.var.alignment(),
        ty: param.var.ty,
        pointer: param.pointer.is_some(),
    });
    Ok(KernelCode {
        name: entry.name.clone(),
        params: params.collect(),
        shared_bytes,
        max_threads: entry.directives.maxntid,
        required_threads: entry.directives.reqntid,
        module: program.module.clone(),
        code: decoder.code,
    })
}

impl Decoder<'_> {
    /// Returns the index of a function in the code. A new function is queued for decoding.
    fn find(&mut self, id: SymbolId) -> u32 {
        if let Some(&index) = self.code.by_symbol.get(&id.0) {
            return index;
        }
        let index = self.found.len() as u32;
        self.found.push(id);
        self.code.functions.push(Function::default());
        self.code.by_symbol.insert(id.0, index);
        index
    }

    fn function(&mut self, kernel: &str, id: SymbolId) -> Result<Function, Error> {
        let module = self.module;
        let Some((function, body)) = module.function(id).and_then(|f| Some((f, f.body.as_deref()?))) else {
            // `find` is called only for functions with a body.
            let name = module.symbol(id).name().to_owned();
            return Err(Error::UndefinedFunction {
                kernel: kernel.to_owned(),
                caller: name.clone(),
                function: name,
                line: 0,
            });
        };
        let mut decoder = FunctionDecoder::new(self, id, function, body)
            .map_err(|refusal| explain(module, kernel, &function.name, function.span, refusal))?;
        for (index, instruction) in (0..).zip(&body.instructions) {
            let start = decoder.len();
            decoder.begin_instruction();
            if let Err(refusal) = decoder.instruction(instruction) {
                return Err(explain(module, kernel, &function.name, instruction.span, refusal));
            }
            let source = instruction.location.map(|id| body.location(id)).map(|location| {
                let file = module.files.iter().find(|file| file.index == location.file);
                let file = file.map_or_else(|| format!("file {}", location.file), |file| file.name.clone());
                SourceLine { file, line: location.line }
            });
            let (line, _) = module.source.position(instruction.span);
            decoder.note_positions(start, Position { line, source, instruction: index });
        }
        Ok(decoder.finish())
    }

    /// Returns the index of a constant. It can be read like a register.
    fn constant(&mut self, value: u64) -> u32 {
        if let Some(&index) = self.constants.get(&value) {
            return index;
        }
        let index = self.new_constant(value);
        self.constants.insert(value, index);
        index
    }

    fn new_constant(&mut self, value: u64) -> u32 {
        self.code.constants.push([value; LANES]);
        self.code.constants.len() as u32 - 1
    }

    /// Returns the offset of a variable in static shared memory.
    fn shared_offset(&mut self, id: VariableId, variable: &Variable) -> u64 {
        *self.shared.entry(id).or_insert_with(|| {
            let offset = self.shared_bytes.next_multiple_of(variable.alignment().max(1));
            self.shared_bytes = offset.saturating_add(variable.size());
            offset
        })
    }

    /// Returns the index of a constant that is an address `offset` bytes into dynamic shared
    /// memory.
    fn dynamic_shared(&mut self, variable: &Variable, offset: i64) -> u32 {
        self.dynamic_align = self.dynamic_align.max(variable.alignment());
        let index = self.new_constant(offset as u64);
        self.dynamic.push(index);
        index
    }

    /// Places dynamic shared memory after the static variables. Returns the bytes before it.
    fn place_dynamic(&mut self, kernel: &str) -> Result<u32, Error> {
        let start = if self.dynamic.is_empty() {
            self.shared_bytes
        } else {
            self.shared_bytes.next_multiple_of(self.dynamic_align)
        };
        for &index in &self.dynamic {
            for value in &mut self.code.constants[index as usize] {
                *value = value.wrapping_add(start);
            }
        }
        u32::try_from(start).map_err(|_| Error::Variable {
            name: kernel.to_owned(),
            reason: format!("the kernel takes {start} bytes of shared memory, more than a window holds"),
        })
    }
}

/// Converts a refusal to an error with its position.
fn explain(
    module: &Module,
    kernel: &str,
    function: &str,
    span: gridloom_ptx::Span,
    refusal: Refusal,
) -> Error {
    let (line, _) = module.source.position(span);
    match refusal {
        Refusal::Undefined(name) => Error::UndefinedFunction {
            kernel: kernel.to_owned(),
            caller: function.to_owned(),
            function: name,
            line,
        },
        Refusal::Because(reason) => {
            let text = module.source.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
            Error::Unsupported {
                kernel: kernel.to_owned(),
                function: function.to_owned(),
                instruction: text.trim_end_matches(';').to_owned(),
                line,
                reason,
            }
        }
    }
}
