//! The foreign code of the tests: calls of the driver on a raw stream.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use super::common::*;
use super::simulator;
use gridloom_core::backend::{Allocation, Kernel};
use gridloom_core::graph::{EdgeKind, Graph, Node};
use gridloom_core::op::{Launch, NodeKind, Operation};
use gridloom_core::{Capture, Result};
use gridloom_cuda::foreign::{self, CaptureMode, ForeignOptions, ForeignStream};
use gridloom_cuda::sys::*;
use gridloom_cuda::{CudaVersion, Driver, interop};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a test on a simulated GPU, and on the real one where there is one, with the context
/// current. Tests take turns: a capture may restrict every thread. The environment may cap both
/// drivers.
pub fn for_each_gpu(test: impl Fn(&Gpu)) {
    on(|| [Some(Gpu::new(simulator::device_of_environment())), gpu()], test);
}

/// The same where the driver is of `version` or newer. What an older one answers instead has tests
/// of its own.
pub fn for_each_gpu_since(version: CudaVersion, test: impl Fn(&Gpu)) {
    for_each_gpu(|gpu| match gpu.device.driver().version() {
        found if found < version => {
            eprintln!("skipped: it needs a driver for CUDA {version}, this one is for {found}")
        }
        _ => test(gpu),
    });
}

/// The same behind drivers that hide what is newer than `version`.
pub fn for_each_old_gpu(version: CudaVersion, test: impl Fn(&Gpu)) {
    on(|| [Some(Gpu::new(simulator::device(Some(version)))), gpu_capped(version)], test);
}

/// Runs a test on a simulated GPU alone.
pub fn on_simulator(test: impl Fn(&Gpu)) {
    on(|| [Some(Gpu::new(simulator::device(None))), None], test);
}

fn on(gpus: impl FnOnce() -> [Option<Gpu>; 2], test: impl Fn(&Gpu)) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for gpu in gpus().into_iter().flatten() {
        let driver = Arc::clone(gpu.device.driver());
        unsafe { driver.cu_ctx_push_current(gpu.device.context().raw()) }.unwrap();
        test(&gpu);
        assert_eq!(simulator::violations(), Vec::<String>::new());
        unsafe { driver.cu_ctx_pop_current(&mut ptr::null_mut()) }.unwrap();
    }
}

/// Captures foreign code into an open capture.
pub fn foreign(
    capture: &Capture,
    options: impl Into<ForeignOptions>,
    code: impl FnOnce(&ForeignStream) -> Result<()>,
) -> Result<Vec<Node>> {
    unsafe { foreign::record(capture, options, code) }
}

/// A graph of nothing but foreign code.
pub fn captured(
    gpu: &Gpu,
    options: impl Into<ForeignOptions>,
    code: impl FnOnce(&ForeignStream),
) -> (Graph, Vec<Node>) {
    let capture = gpu.stream.capture().unwrap();
    let nodes = foreign(&capture, options, |raw| {
        code(raw);
        Ok(())
    });
    let nodes = nodes.unwrap();
    (capture.end().unwrap(), nodes)
}

/// A graph of foreign code that needs no special mode.
pub fn plain(gpu: &Gpu, code: impl FnOnce(&ForeignStream)) -> (Graph, Vec<Node>) {
    captured(gpu, CaptureMode::ThreadLocal, code)
}

pub fn kinds(nodes: &[Node]) -> Vec<NodeKind> {
    nodes.iter().map(|node| node.kind().unwrap()).collect()
}

/// The edges of a graph as positions in the list of its nodes.
pub fn edges(graph: &Graph) -> Vec<(usize, usize, EdgeKind)> {
    let nodes = graph.nodes();
    let position = |node: &Node| nodes.iter().position(|other| other == node).unwrap();
    graph.edges().iter().map(|(from, to, kind)| (position(from), position(to), *kind)).collect()
}

pub fn kernel_of(node: &Node) -> Launch {
    match node.operation().unwrap() {
        Operation::Kernel(op) => op,
        other => panic!("{other:?} is no kernel"),
    }
}

/// Calls of the driver.
pub fn driver(gpu: &Gpu) -> &Driver {
    gpu.device.driver()
}

pub fn fill_words(gpu: &Gpu, raw: &ForeignStream, buffer: &Arc<dyn Allocation>, value: u32) {
    let words = buffer.bytes() as usize / 4;
    unsafe { driver(gpu).cu_memset_d32_async(buffer.address(), value, words, raw.raw()) }.unwrap();
}

pub fn copy_bytes(gpu: &Gpu, raw: &ForeignStream, to: u64, from: u64, bytes: usize) {
    unsafe { driver(gpu).cu_memcpy_async(to, from, bytes, raw.raw()) }.unwrap();
}

/// Launches a function with its arguments, each as its bytes.
pub fn launch(gpu: &Gpu, stream: CUstream, function: CUfunction, threads: u32, arguments: &[&[u8]]) {
    let mut pointers: Vec<*mut c_void> =
        arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
    unsafe {
        driver(gpu).cu_launch_kernel(
            function,
            1,
            1,
            1,
            threads,
            1,
            1,
            0,
            stream,
            pointers.as_mut_ptr(),
            ptr::null_mut(),
        )
    }
    .unwrap();
}

/// Adds to every word of a buffer, of at most 1,024, with `function`.
pub fn add_words(
    gpu: &Gpu,
    raw: &ForeignStream,
    function: CUfunction,
    buffer: &Arc<dyn Allocation>,
    value: i32,
) {
    let words = (buffer.bytes() / 4) as u32;
    let arguments = [&buffer.address().to_ne_bytes()[..], &value.to_ne_bytes(), &words.to_ne_bytes()];
    launch(gpu, raw.raw(), function, words, &arguments);
}

/// The structure that `move_words` takes.
pub fn move_argument(to: &Arc<dyn Allocation>, from: &Arc<dyn Allocation>) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&to.address().to_ne_bytes());
    bytes[8..16].copy_from_slice(&from.address().to_ne_bytes());
    bytes[16..20].copy_from_slice(&((to.bytes() / 4) as u32).to_ne_bytes());
    bytes
}

/// The handle of a kernel of Gridloom's.
pub fn function(kernel: &Arc<dyn Kernel>) -> CUfunction {
    interop::kernel_to_raw(&**kernel).unwrap()
}

/// Code that was loaded without Gridloom.
pub struct TheirModule {
    driver: Arc<Driver>,
    context: CUcontext,
    raw: CUmodule,
}

unsafe impl Send for TheirModule {}
unsafe impl Sync for TheirModule {}

impl TheirModule {
    pub fn load(gpu: &Gpu) -> Self {
        let mut raw = ptr::null_mut();
        let text = std::ffi::CString::new(KERNELS).unwrap();
        unsafe {
            driver(gpu).cu_module_load_data_ex(
                &mut raw,
                text.as_ptr().cast(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        }
        .unwrap();
        TheirModule { driver: gpu.device.driver().clone(), context: gpu.device.context().raw(), raw }
    }

    pub fn function(&self, name: &std::ffi::CStr) -> CUfunction {
        let mut function = ptr::null_mut();
        unsafe { self.driver.cu_module_get_function(&mut function, self.raw, name.as_ptr()) }.unwrap();
        function
    }
}

impl Drop for TheirModule {
    fn drop(&mut self) {
        unsafe {
            self.driver.cu_ctx_push_current(self.context).unwrap();
            self.driver.cu_module_unload(self.raw).unwrap();
            self.driver.cu_ctx_pop_current(&mut ptr::null_mut()).unwrap();
        }
    }
}

/// An event that was made without Gridloom.
pub struct TheirEvent {
    driver: Arc<Driver>,
    pub raw: CUevent,
}

impl TheirEvent {
    pub fn new(gpu: &Gpu) -> Self {
        let mut raw = ptr::null_mut();
        unsafe { driver(gpu).cu_event_create(&mut raw, CUevent_flags::CU_EVENT_DISABLE_TIMING.0) }.unwrap();
        TheirEvent { driver: gpu.device.driver().clone(), raw }
    }
}

impl Drop for TheirEvent {
    fn drop(&mut self) {
        unsafe { self.driver.cu_event_destroy(self.raw) }.unwrap();
    }
}

/// A stream that was made without Gridloom.
pub struct TheirStream {
    driver: Arc<Driver>,
    pub raw: CUstream,
}

impl TheirStream {
    pub fn new(gpu: &Gpu) -> Self {
        let mut raw = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
        unsafe { driver(gpu).cu_stream_create_with_priority(&mut raw, flags, 0) }.unwrap();
        TheirStream { driver: gpu.device.driver().clone(), raw }
    }
}

impl Drop for TheirStream {
    fn drop(&mut self) {
        unsafe { self.driver.cu_stream_destroy(self.raw) }.unwrap();
    }
}
