//! The kernels of `graph.ptx`: integers in, integers out, and conditions.

use gridloom::prelude::*;

use super::Bench;

/// Small kernels to build graphs of, with a stream to launch them on.
pub struct GraphKernels {
    pub device: Device,
    pub stream: Stream,
    /// `increase(x, n, by)`: `x[i] += by`.
    pub increase: Kernel<(PtrMut<i32>, Len<u32>, i32)>,
    /// `affine(out, x, n, a, b)`: `out[i] = a * x[i] + b`; `out` may be `x`.
    pub affine: Kernel<(PtrMut<i32>, Ptr<i32>, Len<u32>, i32, i32)>,
    /// `mix(out, x, n)`: `out[i] = 31 * out[i] + x[i]`.
    pub mix: Kernel<(PtrMut<i32>, Ptr<i32>, Len<u32>)>,
    /// `set_condition(handle, value)`: the condition becomes `*value`.
    pub set_condition: Kernel<(ConditionHandle, Ptr<i32>)>,
    /// `countdown(handle, left)`: `*left -= 1`, and the condition becomes 1 until that is 0.
    pub countdown: Kernel<(ConditionHandle, PtrMut<i32>)>,
    /// `below(flag, x, bound)`: `*flag = *x < bound`.
    pub below: Kernel<(PtrMut<i32>, Ptr<i32>, i32)>,
    /// `late(out, rounds)`: `*out = late_number(rounds)`, after a while.
    pub late: Kernel<(PtrMut<i32>, u32)>,
}

impl GraphKernels {
    pub fn new(device: &Device) -> Result<Self> {
        let bench = Bench::new(device, include_str!("graph.ptx"))?;
        Ok(GraphKernels {
            increase: bench.kernel("increase")?,
            affine: bench.kernel("affine")?,
            mix: bench.kernel("mix")?,
            set_condition: bench.kernel("set_condition")?,
            countdown: bench.kernel("countdown")?,
            below: bench.kernel("below")?,
            late: bench.kernel("late")?,
            device: bench.device,
            stream: bench.stream,
        })
    }

    /// A buffer with these values.
    pub fn buffer(&self, values: &[i32]) -> Result<Buffer<i32>> {
        self.device.buffer_from(values)
    }

    /// A buffer with one value.
    pub fn value(&self, value: i32) -> Result<Buffer<i32>> {
        self.buffer(&[value])
    }

    /// Adds a node that adds `by` to one integer.
    pub fn bump(&self, place: &impl GraphOps, value: &impl Memory<i32>, by: i32) -> Result<Node> {
        place.launch(&self.increase, LaunchConfig::one(), (value, 1, by))
    }

    /// Instantiates a graph, launches it once and waits.
    pub fn run(&self, graph: &Graph) -> Result<Executable> {
        self.run_with(graph, &InstantiateOptions::default())
    }

    /// Instantiates a graph with these options, launches it once and waits.
    pub fn run_with(&self, graph: &Graph, options: &InstantiateOptions) -> Result<Executable> {
        let executable = graph.instantiate_with(options)?;
        executable.launch(&self.stream)?;
        self.stream.synchronize()?;
        Ok(executable)
    }

    /// Instantiates a graph whose conditionals run in this mode and are counted, launches it once
    /// and waits.
    pub fn run_in(&self, graph: &Graph, conditional_mode: ConditionalMode) -> Result<Executable> {
        let options = InstantiateOptions::new().conditional_mode(conditional_mode).count_passes(true);
        self.run_with(graph, &options)
    }
}

/// Returns the one value of a buffer.
pub fn read(buffer: &Buffer<i32>) -> Result<i32> {
    Ok(buffer.to_vec()?[0])
}

/// Returns what the kernel `late` finds.
pub fn late_number(rounds: u32) -> i32 {
    (0..rounds).fold(1u32, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)) as i32
}
