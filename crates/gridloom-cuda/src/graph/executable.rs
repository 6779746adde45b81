//! A graph ready to be launched.

use super::hosted::{Compiled, CompiledPart, Drive, HostedConditional};
use super::lower::{self, LowerOptions};
use super::modes::{Capabilities, Modes};
use super::plan::{Part, Program};
use super::resources::Resources;
use crate::device::Shared;
use crate::memory::Memory;
use crate::occupancy::Occupation;
use crate::stream::Stream;
use gridloom_core::backend::{self, DeviceId};
use gridloom_core::executable::{InstantiateOptions, MemoryUse, Report};
use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::memory::MemoryKind;
use gridloom_core::op::{ConditionalForm, Operation};
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A compiled graph on a GPU.
pub(super) struct Executable {
    inner: Arc<Inner>,
    report: Report,
    /// The latest hosted launch and the stream it is on: the next one comes after it.
    running: Mutex<Option<HostedLaunch>>,
}

type HostedLaunch = (Arc<Occupation>, Arc<dyn backend::Stream>);

/// What launches in flight keep alive.
struct Inner {
    // The driver's graphs go before what they refer to.
    program: Compiled,
    resources: Resources,
}

impl Executable {
    pub(super) fn new(
        shared: &Arc<Shared>,
        definition: &Arc<Definition>,
        options: &InstantiateOptions,
    ) -> Result<Self> {
        let capabilities = Capabilities::of(shared.context.driver());
        let (modes, program) = Modes::decide(definition, options.conditional_mode, capabilities)?;
        let mut resources = Resources::new(shared, definition, &modes, &program)?;
        let lowering = LowerOptions { modes: &modes, capabilities, node_priority: options.node_priority };
        let program = compile(&mut resources, lowering, &program)?;
        let report = Report { conditionals: modes.report(definition), notes: Vec::new() };
        Ok(Self { inner: Arc::new(Inner { program, resources }), report, running: Mutex::new(None) })
    }

    /// Waits until the latest hosted launch has enqueued everything. Its failure stays with its stream and this executable.
    fn wait_for_running(&self) {
        let running = self.running.lock().as_ref().map(|(running, _)| Arc::clone(running));
        if let Some(running) = running {
            running.wait();
        }
    }

    fn definition(&self) -> &Definition {
        &self.inner.resources.definition
    }

    /// Launches a program in which the host decides, on a thread of its own.
    fn launch_hosted(&self, stream: &Arc<dyn backend::Stream>) -> Result<()> {
        let mut running = self.running.lock();
        let last = running.take();
        if let Some((occupation, _)) = &last {
            occupation.wait();
        }
        let (inner, held) = (Arc::clone(&self.inner), Arc::clone(stream));
        let occupation = Stream::from_backend(&**stream)?.occupy(move || {
            let outcome = Stream::from_backend(&*held).and_then(|stream| {
                // Kernels of the last launch may write conditions until they have run.
                if let Some((_, last)) = &last {
                    Stream::from_backend(&**last)?.wait_for_device()?;
                }
                let outcome = inner.run_hosted(stream);
                // Also after a failure: a part of the program may be under way.
                stream.keep(Arc::clone(&inner));
                outcome
            });
            if let Err(error) = outcome {
                inner.resources.failures.put(error);
            }
        })?;
        *running = Some((occupation, Arc::clone(stream)));
        Ok(())
    }
}

impl Inner {
    fn run_hosted(&self, stream: &Stream) -> Result<()> {
        let _entered = self.resources.shared.context.enter()?;
        if let Some(cells) = &self.resources.cells {
            cells.reset();
        }
        self.program.reset_passes();
        Drive { resources: &self.resources, stream }.run(&self.program)
    }
}

/// Compiles the graphs of a program.
fn compile(resources: &mut Resources, options: LowerOptions<'_>, program: &Program) -> Result<Compiled> {
    let mut parts = Vec::with_capacity(program.parts.len());
    for part in &program.parts {
        parts.push(match part {
            Part::Graph(steps) => CompiledPart::Graph(lower::lower(resources, options, steps)?),
            Part::Hosted { node, bodies } => {
                let bodies = bodies
                    .iter()
                    .map(|body| compile(resources, options, body))
                    .collect::<Result<Vec<_>>>()?;
                let definition = Arc::clone(&resources.definition);
                let Operation::Conditional(op) = definition.node(*node).operation() else { continue };
                CompiledPart::Hosted(HostedConditional::new(resources, *node, op, bodies)?)
            }
        });
    }
    Ok(Compiled { parts })
}

impl backend::Executable for Executable {
    fn launch(&self, stream: &Arc<dyn backend::Stream>) -> Result<()> {
        let cuda_stream = Stream::from_backend(&**stream)?;
        if !self.inner.resources.host_calls.is_empty() || self.inner.program.is_hosted() {
            cuda_stream.report(&self.inner.resources.failures);
        }
        if self.inner.program.is_hosted() {
            return self.launch_hosted(stream);
        }
        cuda_stream.settle();
        let _entered = cuda_stream.context().enter()?;
        let launched =
            Drive { resources: &self.inner.resources, stream: cuda_stream }.run(&self.inner.program);
        // Also after a failure: a part of the program may be under way.
        cuda_stream.keep(Arc::clone(&self.inner));
        launched
    }

    fn upload(&self, stream: &Arc<dyn backend::Stream>) -> Result<()> {
        self.wait_for_running();
        let stream = Stream::from_backend(&**stream)?;
        stream.settle();
        let _entered = stream.context().enter()?;
        let uploaded =
            self.inner.program.for_each_unit(&mut |unit| Ok(unit.executable.upload(stream.raw())?));
        stream.keep(Arc::clone(&self.inner));
        uploaded
    }

    fn outliving(&self, alloc: NodeKey) -> Result<Arc<dyn backend::Allocation>> {
        match self.inner.resources.outliving.get(&alloc) {
            Some(memory) => {
                Ok(Arc::new(Outliving { memory: Arc::clone(memory), released: AtomicBool::new(false) }))
            }
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{} is freed inside the graph", self.definition().label(alloc)),
            )),
        }
    }

    fn passes(&self, conditional: NodeKey) -> Result<u64> {
        self.wait_for_running();
        if let Some(hosted) = self.inner.program.find(conditional) {
            return Ok(hosted.passes.load(Ordering::Relaxed));
        }
        let resources = &self.inner.resources;
        let Some(counter) = resources.counter(conditional) else {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "the passes of a conditional that kernels decide are counted on the device only when the loop has a limit: \
                 give it one, or instantiate with ConditionalMode::Hosted",
            )
            .at_node(self.definition().label(conditional)));
        };
        let context = &resources.shared.context;
        {
            let _entered = context.enter()?;
            // SAFETY: the context is current.
            unsafe { context.driver().cu_ctx_synchronize() }?;
        }
        let mut passes = 0u64;
        resources.shared.allocator.copy_now((&raw mut passes) as u64, counter, size_of::<u64>())?;
        let is_if_else = matches!(
            self.definition().node(conditional).operation(),
            Operation::Conditional(op) if op.form == ConditionalForm::IfElse
        );
        // One of the two bodies always runs.
        Ok(if is_if_else { 1 } else { passes })
    }

    fn take_error(&self) -> Option<Error> {
        self.inner.resources.failures.take_for_executable()
    }

    fn report(&self) -> Report {
        self.report.clone()
    }

    fn memory(&self) -> MemoryUse {
        let (allocations, overhead) = self.inner.resources.bytes();
        MemoryUse { allocations, overhead }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("parts", &self.inner.program.parts.len())
            .field("conditionals", &self.report.conditionals.len())
            .finish_non_exhaustive()
    }
}

/// Memory of an alloc node that outlived a launch. It stays when the executable goes.
#[derive(Debug)]
struct Outliving {
    memory: Arc<Memory>,
    released: AtomicBool,
}

impl backend::Allocation for Outliving {
    fn device(&self) -> DeviceId {
        self.memory.device()
    }

    fn address(&self) -> u64 {
        self.memory.address()
    }

    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    fn release(&self) {
        self.released.store(true, Ordering::Release);
    }

    fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
