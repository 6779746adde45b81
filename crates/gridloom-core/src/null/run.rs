//! Streams, events and executables that do nothing.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Call, FakeAllocation, Shared};
use crate::backend::{self, Allocation, DeviceId, EventOptions, StreamOptions};
use crate::error::{Error, Result, bail};
use crate::event::CaptureMark;
use crate::executable::{ConditionalReport, MemoryUse, Report};
use crate::graph::{ConditionKey, Definition, NodeData, NodeKey};
use crate::lower;
use crate::op::{AllocOp, Operation};

pub(super) struct FakeStream {
    shared: Arc<Shared>,
    number: u64,
    options: StreamOptions,
}

impl FakeStream {
    pub(super) fn new(shared: Arc<Shared>, number: u64, options: StreamOptions) -> Self {
        FakeStream { shared, number, options }
    }
}

impl fmt::Debug for FakeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeStream({})", self.number)
    }
}

// SAFETY: the device runs nothing.
unsafe impl backend::Stream for FakeStream {
    fn device(&self) -> DeviceId {
        self.shared.id
    }

    unsafe fn enqueue(&self, operation: &Operation) -> Result<()> {
        self.shared.record(Call::Enqueue { stream: self.number, operation: operation.clone() })
    }

    fn synchronize(&self) -> Result<()> {
        self.shared.record(Call::Synchronize(self.number))
    }

    fn synchronize_timeout(&self, _: Duration) -> Result<()> {
        self.synchronize()
    }

    fn cancel(&self) {}

    fn is_idle(&self) -> Result<bool> {
        Ok(true)
    }

    fn priority(&self) -> Result<i32> {
        Ok(self.options.priority)
    }

    fn read(&self, src: &dyn Allocation, offset: u64, dst: &mut [u8]) -> Result<()> {
        self.shared.record(Call::Read(dst.len()))?;
        backend::check_access(self.shared.id, src, offset, dst.len())?;
        FakeAllocation::of(src)?.read(offset, dst)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[derive(Debug)]
pub(super) struct FakeEvent {
    device: DeviceId,
    options: EventOptions,
    mark: CaptureMark,
}

impl FakeEvent {
    pub(super) fn new(device: DeviceId, options: EventOptions) -> Self {
        FakeEvent { device, options, mark: CaptureMark::default() }
    }
}

// SAFETY: the device runs nothing.
unsafe impl backend::Event for FakeEvent {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn options(&self) -> EventOptions {
        self.options
    }

    fn capture_mark(&self) -> &CaptureMark {
        &self.mark
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn synchronize_timeout(&self, _: Duration) -> Result<()> {
        Ok(())
    }

    fn is_reached(&self) -> Result<bool> {
        Ok(true)
    }

    fn elapsed_since(&self, _earlier: &dyn backend::Event) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) struct FakeExecutable {
    shared: Arc<Shared>,
    number: u64,
    /// The alloc nodes. The rest of the definition is not kept, because it would keep alive what
    /// updates replace.
    allocs: HashMap<NodeKey, Arc<AllocOp>>,
    status: Arc<FakeStatus>,
}

struct FakeStatus {
    report: Report,
    /// Memory of the latest launch that outlives it, created on request.
    outliving: Mutex<HashMap<NodeKey, Arc<FakeAllocation>>>,
}

impl backend::ExecutableStatus for FakeStatus {
    fn take_error(&self) -> Option<Error> {
        None
    }

    fn report(&self) -> Report {
        self.report.clone()
    }

    fn memory(&self) -> MemoryUse {
        let allocations = self.outliving.lock().values().map(|memory| memory.bytes()).sum();
        MemoryUse { allocations, overhead: 0 }
    }
}

impl FakeExecutable {
    pub(super) fn new(shared: Arc<Shared>, definition: &Definition, number: u64) -> Self {
        let alloc = |(node, data): (NodeKey, &NodeData)| Some((node, data.operation().as_alloc()?.clone()));
        let allocs = definition.all_nodes().filter_map(alloc).collect();
        let reported = |node| ConditionalReport {
            node,
            name: definition.label(node),
            native: false,
            reason: "the null device runs nothing".into(),
        };
        let conditionals = lower::conditionals(definition).into_iter().map(reported).collect();
        let report = Report { conditionals, ..Report::default() };
        let status = Arc::new(FakeStatus { report, outliving: Mutex::default() });
        FakeExecutable { shared, number, allocs, status }
    }

    fn stream_number(stream: &Arc<dyn backend::Stream>) -> Result<u64> {
        match stream.as_any().downcast_ref::<FakeStream>() {
            Some(stream) => Ok(stream.number),
            None => bail!(WrongDevice, "the stream is not of the null device"),
        }
    }
}

impl fmt::Debug for FakeExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeExecutable({})", self.number)
    }
}

impl backend::Executable for FakeExecutable {
    fn launch(&mut self, stream: &Arc<dyn backend::Stream>) -> Result<()> {
        let stream = Self::stream_number(stream)?;
        self.shared.record(Call::Launch { executable: self.number, stream })?;
        self.status.outliving.lock().clear();
        Ok(())
    }

    fn upload(&mut self, stream: &Arc<dyn backend::Stream>) -> Result<()> {
        let stream = Self::stream_number(stream)?;
        self.shared.record(Call::Upload { executable: self.number, stream })
    }

    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn Allocation>> {
        let Some(op) = self.allocs.get(&alloc) else {
            bail!(InvalidArgument, "{alloc:?} is not an alloc node");
        };
        let mut outliving = self.status.outliving.lock();
        let memory = outliving.entry(alloc).or_insert_with(|| {
            let (device, ledger) = (self.shared.id, &self.shared.memory);
            Arc::new(FakeAllocation::new(device, ledger, op.bytes(), op.kind))
        });
        Ok(memory.clone())
    }

    fn passes(&mut self, _conditional: NodeKey) -> Result<backend::Passes> {
        Ok(Box::new(|| Ok(0)))
    }

    fn status(&self) -> Arc<dyn backend::ExecutableStatus> {
        self.status.clone()
    }

    fn update(
        &mut self,
        _definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        _defaults: &[ConditionKey],
    ) -> Result<()> {
        let mut nodes: Vec<NodeKey> = replaced.iter().map(|(node, _)| *node).collect();
        nodes.dedup();
        self.shared.record(Call::Update { executable: self.number, nodes })
    }

    fn set_enabled(&mut self, _definition: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        self.shared.record(Call::SetEnabled { executable: self.number, node, enabled })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire(&mut self, _definition: &Arc<Definition>) {}
}
