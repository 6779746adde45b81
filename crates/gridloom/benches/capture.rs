//! What capturing costs beside building the same graph explicitly: 1,000 launches, in several ways
//! of writing either.
//!
//! All ways are measured by turns within one run, so that what else the machine does falls on all
//! alike. The bound is 1.2. On a GPU, the driver's own capture of the same launches is measured
//! beside them, and what it takes to capture them so and to take the graph apart; the aim is a
//! tenth of the first.

use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

use gridloom::prelude::*;
use gridloom::{DeviceKind, demo_kernels, interop};
use gridloom_cuda::Driver;
use gridloom_cuda::sys::{CUfunction, CUstream, CUstream_flags, CUstreamCaptureMode};

const LAUNCHES: usize = 1000;
const ROUNDS: usize = 301;
const BOUND: f64 = 1.2;
const DRIVER_AIM: f64 = 0.1;

struct Work {
    device: Device,
    stream: Stream,
    kernel: Kernel<(PtrMut<i32>,)>,
    value: Buffer<i32>,
}

impl Work {
    /// Adds every launch to one place, whatever it is.
    fn on<S: Ops>(&self, place: &S) -> Result<()> {
        for _ in 0..LAUNCHES {
            place.launch(&self.kernel, LaunchConfig::one(), (&self.value,))?;
        }
        Ok(())
    }

    /// Explicitly: each node after the one before.
    fn chain(&self) -> Result<Graph> {
        let graph = Graph::new(&self.device);
        let mut last = graph.launch(&self.kernel, LaunchConfig::one(), (&self.value,))?;
        for _ in 1..LAUNCHES {
            last = last.launch(&self.kernel, LaunchConfig::one(), (&self.value,))?;
        }
        Ok(graph)
    }

    fn through_the_capture(&self) -> Result<Graph> {
        self.stream.capture_scope(|capture| self.on(capture))
    }

    fn through_the_stream(&self) -> Result<Graph> {
        self.stream.capture_scope(|_| self.on(&self.stream))
    }
}

/// The same launches with nothing but calls of the driver.
struct Bare {
    driver: std::sync::Arc<Driver>,
    stream: CUstream,
    function: CUfunction,
    address: u64,
}

impl Bare {
    /// `None` where there is no GPU.
    fn new(work: &Work) -> Result<Option<Self>> {
        if work.device.kind() != DeviceKind::Cuda {
            return Ok(None);
        }
        let driver = Driver::get()?;
        let mut stream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
        // SAFETY: the context is made current for the rest of the program; one handle is written.
        unsafe {
            driver.cu_ctx_push_current(interop::context_to_raw(&work.device)?)?;
            driver.cu_stream_create_with_priority(&mut stream, flags, 0)?;
        }
        let function = interop::kernel_to_raw(&work.kernel.untyped())?;
        Ok(Some(Bare { driver, stream, function, address: work.value.address()? }))
    }

    fn launch_all(&self, stream: CUstream) -> Result<()> {
        for _ in 0..LAUNCHES {
            let mut arguments: [*mut c_void; 1] = [(&raw const self.address).cast_mut().cast()];
            let (arguments, none) = (arguments.as_mut_ptr(), ptr::null_mut());
            // SAFETY: the kernel changes the one integer whose address it is given, which exists.
            unsafe {
                self.driver.cu_launch_kernel(self.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, none)
            }?;
        }
        Ok(())
    }

    /// Times the driver's own capture.
    fn capture(&self) -> Result<Duration> {
        let (start, mut graph) = (Instant::now(), ptr::null_mut());
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is this one's alone; one handle is written.
        unsafe { self.driver.cu_stream_begin_capture(self.stream, mode) }?;
        self.launch_all(self.stream)?;
        // SAFETY: as above.
        unsafe { self.driver.cu_stream_end_capture(self.stream, &mut graph) }?;
        let took = start.elapsed();
        // SAFETY: the graph is the caller's.
        unsafe { self.driver.cu_graph_destroy(graph) }?;
        Ok(took)
    }

    /// Times the driver's own capture, including the conversion to nodes.
    fn foreign(&self, work: &Work) -> Result<Duration> {
        let build = |work: &Work| {
            work.stream.capture_scope(|capture| {
                // SAFETY: kernel and memory are Gridloom's.
                unsafe { capture.foreign(CaptureMode::ThreadLocal, |raw| self.launch_all(raw.raw())) }
                    .map(drop)
            })
        };
        let start = Instant::now();
        let graph = build(work)?;
        let took = start.elapsed();
        drop(graph);
        Ok(took)
    }
}

fn timed(build: impl Fn(&Work) -> Result<Graph>, work: &Work) -> Result<Duration> {
    let start = Instant::now();
    let graph = build(work)?;
    let took = start.elapsed();
    assert_eq!((graph.len(), graph.edges().len()), (LAUNCHES, LAUNCHES - 1));
    Ok(took)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn main() -> Result<()> {
    let device = Device::best()?;
    let module = device.load_ptx(demo_kernels::SWITCH)?;
    // SAFETY: the kernel changes the one integer it is given.
    let kernel = unsafe { module.kernel("double_it")? };
    let work = Work { stream: device.stream()?, value: device.buffer_from(&[1])?, kernel, device };

    let bare = Bare::new(&work)?;
    let mut times = [const { Vec::new() }; 3];
    let (mut drivers, mut foreign) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if let Some(bare) = &bare {
            drivers.push(bare.capture()?);
            foreign.push(bare.foreign(&work)?);
        }
        let ways: [fn(&Work) -> Result<Graph>; 3] =
            [Work::chain, Work::through_the_capture, Work::through_the_stream];
        for turn in 0..ways.len() {
            // Each way comes first as often as the others.
            let way = (turn + round) % ways.len();
            times[way].push(timed(ways[way], &work)?);
        }
    }
    let [explicit, capture, stream] = times.map(median);
    let ratio = |time: Duration| time.as_secs_f64() / explicit.as_secs_f64();
    println!("{LAUNCHES} launches on {}, median of {ROUNDS}:", work.device.name());
    println!("  explicit nodes       {explicit:>10.1?}  1.00");
    println!("  through the capture  {capture:>10.1?}  {:.2}", ratio(capture));
    println!("  through the stream   {stream:>10.1?}  {:.2}", ratio(stream));
    if bare.is_some() {
        let (driver, foreign) = (median(drivers), median(foreign));
        println!("  the driver's capture {driver:>10.1?}  {:.2}", ratio(driver));
        println!("  foreign capture      {foreign:>10.1?}  {:.2}", ratio(foreign));
        let part = |time: Duration| time.as_secs_f64() / driver.as_secs_f64();
        println!(
            "capture / driver's capture = {:.2} (the aim is {DRIVER_AIM}), foreign capture / driver's = {:.2}",
            part(capture.max(stream)),
            part(foreign)
        );
    }
    let worst = ratio(capture).max(ratio(stream));
    let verdict = if worst <= BOUND { "within" } else { "NOT within" };
    println!("capture / explicit = {worst:.2}, {verdict} the bound of {BOUND}");
    Ok(())
}
