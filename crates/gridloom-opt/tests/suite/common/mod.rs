//! Helpers of the optimiser's tests.

use std::sync::Arc;

use gridloom_core::Stream;
use gridloom_core::backend::{Allocation, Device, Kernel};
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::memory::MemoryKind;
use gridloom_core::op::{KernelArgs, KernelOp, Launch, Operation};
use gridloom_cpu::{CpuDevice, CpuOptions, Engine};
use gridloom_opt::rewrite::{KernelSource, Rewritten, Role, Team, TeamBarrier};
use gridloom_ptx::Operand;
use gridloom_ptx::op::{ConvertOp, Op, OperandRef};

/// Returns the CPU device with each of its engines.
pub(crate) fn devices() -> Vec<Arc<dyn Device>> {
    [Engine::Interpreter, Engine::Jit]
        .into_iter()
        .map(|engine| -> Arc<dyn Device> {
            CpuDevice::new(CpuOptions::new().engine(engine).threads(2)).unwrap()
        })
        .collect()
}

/// Lists, for kernels that cannot be moved, why: by name.
pub(crate) struct Refused<'a> {
    pub(crate) anywhere: &'a [(&'a str, &'static str)],
    pub(crate) in_batches: &'a [(&'a str, &'static str)],
    pub(crate) in_steps: &'a [(&'a str, &'static str)],
}

impl Refused<'_> {
    /// Expects that each kernel of a module can be moved, or is refused for its reason.
    pub(crate) fn check(&self, text: &str) {
        let module = Arc::new(gridloom_ptx::parse(text).unwrap());
        let mut wrong = Vec::new();
        for (_, function) in module.entries() {
            let name = function.name.as_str();
            let source = KernelSource::new(module.clone(), name).unwrap();
            let reason = |list: &[(&str, &'static str)]| {
                list.iter().find(|(refused, _)| *refused == name).map(|(_, reason)| *reason)
            };
            let of = |list| reason(self.anywhere).or(reason(list));
            for (role, expected) in [(Role::Batched, of(self.in_batches)), (Role::Step, of(self.in_steps))] {
                let found = source.obstacle(role);
                if found.is_some() != expected.is_some()
                    || !found.unwrap_or_default().contains(expected.unwrap_or_default())
                {
                    wrong.push(format!("{name} as {role:?}: {found:?} instead of {expected:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

pub(crate) fn source(text: &str, name: &str) -> KernelSource {
    let module = gridloom_ptx::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    KernelSource::new(Arc::new(module), name).expect("a kernel of the module")
}

pub(crate) fn buffer(device: &Arc<dyn Device>, bytes: &[u8]) -> Arc<dyn Allocation> {
    let memory = device.allocate(bytes.len().max(1) as u64, MemoryKind::Device).unwrap();
    device.write(&*memory, 0, bytes).unwrap();
    memory
}

pub(crate) fn read(device: &Arc<dyn Device>, memory: &Arc<dyn Allocation>) -> Vec<u8> {
    let mut bytes = vec![0; memory.bytes() as usize];
    device.read(&**memory, 0, &mut bytes).unwrap();
    bytes
}

pub(crate) fn kernel(device: &Arc<dyn Device>, text: &str, name: &str) -> Result<Arc<dyn Kernel>, String> {
    device.load_ptx(text).and_then(|module| module.kernel(name)).map_err(|error| format!("{error}\n{text}"))
}

/// Launches a kernel with a whole parameter buffer and waits for it.
pub(crate) fn launch(
    device: &Arc<dyn Device>,
    kernel: &Arc<dyn Kernel>,
    (grid, block, shared): ([u32; 3], [u32; 3], u32),
    params: &[u8],
) -> Result<(), String> {
    let config = LaunchConfig::new(Dim3::from(grid), Dim3::from(block)).shared(shared);
    launch_with(device, kernel, config, params)
}

fn launch_with(
    device: &Arc<dyn Device>,
    kernel: &Arc<dyn Kernel>,
    config: LaunchConfig,
    params: &[u8],
) -> Result<(), String> {
    let layout = kernel.params().expect("a kernel of PTX").clone();
    let mut bytes = params.to_vec();
    bytes.resize(layout.buffer_bytes(), 0);
    let args = KernelArgs { bytes: bytes.as_slice().into(), layout, ..KernelArgs::default() };
    // SAFETY: the tests give each kernel what it takes, and memory that is large enough and
    // outlives this call.
    let launch = unsafe { KernelOp::new(kernel.clone(), config, args) };
    let stream = Stream::new(device).unwrap();
    stream
        .enqueue(Operation::Kernel(Launch::new(launch)))
        .and_then(|()| stream.synchronize())
        .map_err(|error| error.to_string())
}

/// Launches the kernel of a team, with memory for its state; `slices` are the parameters of its
/// steps. Returns the memory of the state, which further launches can use.
pub(crate) fn launch_team(
    device: &Arc<dyn Device>,
    rewritten: &Rewritten,
    team: Team,
    slices: &[Vec<u8>],
    memory: Option<Arc<dyn Allocation>>,
) -> Result<Option<Arc<dyn Allocation>>, String> {
    let mut rewritten = rewritten.clone();
    let memory =
        memory.or_else(|| rewritten.state.map(|state| buffer(device, &vec![0; 8 * state.words as usize])));
    if let (Some(memory), Some(state)) = (&memory, rewritten.state) {
        let at = state.at as usize;
        rewritten.header[at..at + 8].copy_from_slice(&memory.address().to_le_bytes());
    }
    let is_cooperative = team.barrier == TeamBarrier::Grid;
    run_rewritten(device, &rewritten, team.dynamic_shared(), slices, is_cooperative)?;
    Ok(memory)
}

/// Launches a rewritten kernel; `slices` are the parameters of its parts.
pub(crate) fn launch_rewritten(
    device: &Arc<dyn Device>,
    rewritten: &Rewritten,
    shared: u32,
    slices: &[Vec<u8>],
) -> Result<(), String> {
    run_rewritten(device, rewritten, shared, slices, false)
}

fn run_rewritten(
    device: &Arc<dyn Device>,
    rewritten: &Rewritten,
    shared: u32,
    slices: &[Vec<u8>],
    is_cooperative: bool,
) -> Result<(), String> {
    assert_eq!(gridloom_ptx::check(&rewritten.module), []);
    check_special_registers(&rewritten.module);
    let text = rewritten.text();
    let again = gridloom_ptx::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(gridloom_ptx::check(&again), [], "{text}");
    let kernel = kernel(device, &text, &rewritten.name)?;
    let mut params = rewritten.header.clone();
    for (at, slice) in rewritten.slices.iter().zip(slices) {
        params[*at as usize..*at as usize + slice.len()].copy_from_slice(slice);
    }
    let mut config = LaunchConfig::new(rewritten.blocks, Dim3::from(rewritten.block)).shared(shared);
    config.cooperative = is_cooperative;
    launch_with(device, &kernel, config, &params).map_err(|error| format!("{error}\n{text}"))
}

/// Checks that special registers are read by `mov` only. Assemblers take them nowhere else.
pub(crate) fn check_special_registers(module: &gridloom_ptx::Module) {
    let bodies = module.functions().filter_map(|(_, function)| function.body.as_ref());
    for instruction in bodies.flat_map(|body| &body.instructions) {
        if matches!(instruction.op, Op::Convert(ConvertOp::Mov { .. } | ConvertOp::Cvt(_))) {
            continue;
        }
        instruction.op.for_each_operand(&mut |operand, _| {
            let is_special = matches!(operand, OperandRef::Src(Operand::Special(_)));
            assert!(!is_special, "{:?} reads a special register", instruction.op);
        });
    }
}
