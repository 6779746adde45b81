//! Modules: PTX that is parsed and placed in memory.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use gridloom_core::backend::{self, Allocation, DeviceId};
use gridloom_core::{Error, ErrorKind, Result};
use gridloom_jit::CompiledKernel;
use parking_lot::Mutex;

use crate::device::{Engine, Shared};
use crate::interp::{self, KernelCode, Layout, Program};
use crate::kernel::{CpuKernel, KernelEngine};
use crate::memory::{ALIGNMENT, CpuAllocation, HostBlock};
use crate::transfer;

/// The state that a module and its kernels share.
pub(crate) struct Loaded {
    pub(crate) device: DeviceId,
    program: Program,
    /// The engines of the kernels that were looked up.
    engines: Mutex<HashMap<String, KernelEngine>>,
    /// The device's engine. If the device must interpret regardless, `interprets` is the reason.
    engine: Engine,
    interprets: Option<&'static str>,
    /// The module's variables, in the order of the program's layout.
    variables: Vec<Arc<CpuAllocation>>,
}

/// A module of the CPU device.
pub(crate) struct CpuModule(Arc<Loaded>);

impl CpuModule {
    /// Parses PTX, allocates its variables and initializes them.
    pub(crate) fn load(device: &Shared, source: &str) -> Result<Self> {
        let module = gridloom_ptx::parse(source).map_err(|error| {
            let first = &error.diagnostics()[0];
            let more = match error.diagnostics().len() - 1 {
                0 => String::new(),
                1 => " (and one more)".to_owned(),
                more => format!(" (and {more} more)"),
            };
            let help = first.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
            let message =
                format!("the PTX cannot be read: line {}: {}{help}{more}", first.line, first.message);
            Error::new(ErrorKind::InvalidModule, message).with_log(error.render("<ptx>")).with_source(error)
        })?;
        let module = Arc::new(module);
        let layout = Layout::of(&module).map_err(invalid)?;
        let mut variables = Vec::with_capacity(layout.variables().len());
        for variable in layout.variables() {
            if variable.align > ALIGNMENT {
                return Err(Error::new(
                    ErrorKind::InvalidModule,
                    format!(
                        "module variable {} wants an alignment of {} bytes; the CPU device gives {ALIGNMENT}",
                        variable.name, variable.align
                    ),
                ));
            }
            let block = HostBlock::new(&device.memory, variable.size.max(1))
                .map_err(|error| error.context(format_args!("module variable {}", variable.name)))?;
            variables.push(CpuAllocation::of_variable(block, variable.size, &module, &variable.name));
        }
        let addresses: Vec<u64> = variables.iter().map(|variable| variable.address()).collect();
        for (index, &address) in addresses.iter().enumerate() {
            let image = layout.image(index, &addresses);
            // The rest is already zero. SAFETY: the image is no longer than the variable, whose
            // memory was just allocated and is known to nobody else.
            unsafe { transfer::write(address, &image) }
        }
        let program = Program::new(module, layout, addresses);
        let interprets = match (device.checked, device.step_limit) {
            (true, _) => Some("the device checks memory"),
            (_, Some(_)) => Some("the device limits steps"),
            _ => None,
        };
        Ok(CpuModule(Arc::new(Loaded {
            device: device.id,
            program,
            engines: Mutex::default(),
            engine: device.engine,
            interprets,
            variables,
        })))
    }
}

impl Loaded {
    /// Returns the PTX that the module was read from.
    pub(crate) fn source(&self) -> &str {
        self.program.module().source.text()
    }

    /// Returns the names and addresses of the module's variables.
    pub(crate) fn variables(&self) -> Vec<(&str, Range<u64>)> {
        let layouts = self.program.layout().variables().iter();
        let places = self.variables.iter().map(|place| place.address()..place.address() + place.bytes());
        layouts.map(|variable| variable.name.as_str()).zip(places).collect()
    }

    /// Returns the engine of a kernel. A kernel is compiled once, no matter who looks it up.
    fn engine(&self, code: &Arc<KernelCode>) -> KernelEngine {
        if self.engine != Engine::Jit {
            return KernelEngine::Interpreter { reason: None };
        }
        if let Some(reason) = self.interprets {
            return KernelEngine::Interpreter { reason: Some(reason.to_owned()) };
        }
        let mut engines = self.engines.lock();
        engines
            .entry(code.name().to_owned())
            .or_insert_with(|| match CompiledKernel::new(code.clone()) {
                Ok(compiled) => KernelEngine::Jit(Arc::new(compiled)),
                Err(reason) => KernelEngine::Interpreter { reason: Some(reason) },
            })
            .clone()
    }
}

fn invalid(error: interp::Error) -> Error {
    let kind = match &error {
        interp::Error::UnknownKernel { .. } => ErrorKind::NotFound,
        interp::Error::Unsupported { .. } => ErrorKind::NotSupported,
        _ => ErrorKind::InvalidModule,
    };
    Error::new(kind, error.to_string()).with_source(error)
}

impl backend::Module for CpuModule {
    fn device(&self) -> DeviceId {
        self.0.device
    }

    fn kernel_names(&self) -> Vec<String> {
        self.0.program.module().entries().map(|(_, function)| function.name.clone()).collect()
    }

    fn kernel(self: Arc<Self>, name: &str) -> Result<Arc<dyn backend::Kernel>> {
        let code = self.0.program.kernel(name).map_err(invalid)?;
        let engine = self.0.engine(&code);
        Ok(Arc::new(CpuKernel::new(code, engine, self.0.clone())))
    }

    fn global(self: Arc<Self>, name: &str) -> Result<Arc<dyn Allocation>> {
        if let Some((index, _)) = self.0.program.variable(name) {
            return Ok(self.0.variables[index].clone());
        }
        let known: Vec<&str> = self
            .0
            .program
            .layout()
            .variables()
            .iter()
            .filter(|variable| variable.module_scope)
            .map(|variable| variable.name.as_str())
            .collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Error::new(
            ErrorKind::NotFound,
            format!("no variable `{name}` in device memory; the module defines {known}"),
        ))
    }
}

impl fmt::Debug for CpuModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuModule({})", backend::Module::kernel_names(self).join(", "))
    }
}
