//! Runs PTX on memory of the simulated driver, which is memory of the host.

use crate::simulator::Shape;
use gridloom_core::Stream;
use gridloom_core::backend::{Device, Kernel};
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::op::{KernelArgs, KernelOp, Launch, Operation};
use gridloom_cpu::{CpuDevice, CpuOptions, Engine};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

static DEVICE: LazyLock<Arc<dyn Device>> =
    LazyLock::new(|| CpuDevice::new(CpuOptions::new().engine(Engine::Interpreter).threads(1)).unwrap());

static KERNELS: LazyLock<Mutex<HashMap<String, Arc<dyn Kernel>>>> = LazyLock::new(Mutex::default);

thread_local! {
    static STREAM: Stream = Stream::new(&*DEVICE).unwrap();
}

/// Runs a kernel of a PTX text.
pub(crate) fn run(text: &str, name: &str, shape: Shape, bytes: &[u8]) {
    let known = KERNELS.lock().unwrap().get(text).cloned();
    let kernel = known.unwrap_or_else(|| {
        let kernel = DEVICE.load_ptx(text).and_then(|module| module.kernel(name)).unwrap();
        KERNELS.lock().unwrap().insert(text.to_owned(), kernel.clone());
        kernel
    });
    let layout = kernel.params().expect("a kernel of PTX").clone();
    let mut bytes = bytes.to_vec();
    bytes.resize(layout.buffer_bytes(), 0);
    let args = KernelArgs { bytes: bytes.as_slice().into(), layout, ..KernelArgs::default() };
    let config = LaunchConfig::new(Dim3::from(shape.grid), Dim3::from(shape.block)).shared(shape.shared);
    // SAFETY: the simulated driver was given these arguments for this kernel.
    let launch = unsafe { KernelOp::new(kernel, config, args) };
    let run = |stream: &Stream| {
        stream.enqueue(Operation::Kernel(Launch::new(launch))).and_then(|()| stream.synchronize())
    };
    STREAM.with(run).unwrap_or_else(|error| panic!("{error}\n{text}"));
}
