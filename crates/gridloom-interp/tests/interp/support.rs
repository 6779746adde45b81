//! Runs PTX on the interpreter: whole modules, or the body of a kernel that gives one number per
//! thread.

use gridloom_interp::{Fault, Heap, KernelCode, Launch, Layout, MemoryMap, Program, Scratch};
use std::ops::Range;
use std::sync::{Arc, Mutex};

pub(crate) const HEADER: &str = ".version 8.3\n.target sm_90\n.address_size 64\n";

/// Memory aligned for every type and vector of PTX.
#[derive(Clone, Copy)]
#[repr(align(256))]
pub(crate) struct Chunk([u8; 256]);

impl Chunk {
    /// Chunks that hold at least these bytes.
    pub(crate) fn holding(bytes: &[u8]) -> Vec<Self> {
        let mut chunks = vec![Self([0; 256]); bytes.len().div_ceil(256).max(1)];
        for (chunk, bytes) in chunks.iter_mut().zip(bytes.chunks(256)) {
            chunk.0[..bytes.len()].copy_from_slice(bytes);
        }
        chunks
    }

    /// Returns the first bytes of some chunks.
    pub(crate) fn bytes(chunks: &[Self], length: usize) -> Vec<u8> {
        chunks.iter().flat_map(|chunk| chunk.0).take(length).collect()
    }
}

/// A module with its variables in memory.
pub(crate) struct Module {
    pub(crate) program: Program,
    pub(crate) heap: Heap,
    /// Keeps the variables alive.
    pub(crate) memory: Vec<Vec<Chunk>>,
}

impl Module {
    pub(crate) fn new(ptx: &str) -> Self {
        Self::load(ptx).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Loads a module, or says in words why not.
    pub(crate) fn load(ptx: &str) -> Result<Self, String> {
        let module = gridloom_ptx::parse(ptx).map_err(|error| error.to_string())?;
        let layout = Layout::of(&module).map_err(|error| error.to_string())?;
        let mut memory: Vec<Vec<Chunk>> =
            layout.variables().iter().map(|v| Chunk::holding(&vec![0; v.size as usize])).collect();
        let addresses: Vec<u64> =
            memory.iter_mut().map(|m| m.as_mut_ptr().expose_provenance() as u64).collect();
        for (i, memory) in memory.iter_mut().enumerate() {
            let image = Chunk::holding(&layout.image(i, &addresses));
            memory[..image.len()].copy_from_slice(&image);
        }
        let program = Program::new(Arc::new(module), layout, addresses);
        Ok(Self { program, heap: Heap::new(1 << 16), memory })
    }

    /// A module of the header and this text.
    pub(crate) fn of(text: &str) -> Self {
        Self::new(&format!("{HEADER}{text}"))
    }

    pub(crate) fn kernel(&self, name: &str) -> Arc<KernelCode> {
        self.program.kernel(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the bytes of a module-scope variable.
    pub(crate) fn variable(&self, name: &str) -> Vec<u8> {
        let (index, _) = self.program.variable(name).expect("a variable of the module");
        Chunk::bytes(&self.memory[index], self.program.layout().variables()[index].size as usize)
    }
}

/// Parameters of a launch, each at its alignment.
#[derive(Default, Clone)]
pub(crate) struct Params(pub(crate) Vec<u8>);

impl Params {
    pub(crate) fn push<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.0.resize(self.0.len().next_multiple_of(N), 0);
        self.0.extend(bytes);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.push(value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.push(value.to_le_bytes())
    }

    pub(crate) fn buffer<T>(self, buffer: &mut [T]) -> Self {
        self.u64(buffer.as_mut_ptr().expose_provenance() as u64)
    }
}

/// Runs every block of a launch, one after the other.
pub(crate) fn run(launch: &Launch<'_>) -> Result<(), Box<Fault>> {
    // SAFETY: the kernels of these tests access the buffers they are given, which outlive the call
    // and which nobody else uses, or memory that the interpreter refuses.
    unsafe { launch.run_blocks(0..launch.blocks(), &mut Scratch::new()) }
}

/// Runs every block of a launch in turns.
pub(crate) fn run_cooperative(launch: &Launch<'_>) -> Result<(), Box<Fault>> {
    // SAFETY: as in `run`.
    unsafe { launch.run_cooperative(0..launch.blocks(), &mut Scratch::new()) }
}

/// The memory map of some buffers.
#[derive(Default)]
pub(crate) struct Map(Mutex<Vec<Range<u64>>>);

impl Map {
    pub(crate) fn with<T>(self, buffer: &[T]) -> Self {
        let start = buffer.as_ptr().expose_provenance() as u64;
        self.0.lock().unwrap().push(start..start + size_of_val(buffer) as u64);
        self
    }
}

impl MemoryMap for Map {
    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        self.0.lock().unwrap().iter().find(|range| range.contains(&address)).cloned()
    }
}

/// Returns the text of a kernel `test(out)` that stores `%r0` of each thread to `out`, by its
/// number in the grid. The body may use `%r0` to `%r31`, `%rd0` to `%rd15`, `%p0` to `%p7`, `%f0`
/// to `%f7`, `%h0` to `%h7`; `%r1` is `%tid.x`, `%rd15` is `out`.
pub(crate) fn kernel_text(body: &str) -> String {
    format!(
        ".visible .entry test(.param .u64 out) {{
            .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .pred %p<8>; .reg .f32 %f<8>; .reg .b16 %h<8>;
            mov.u32 %r1, %tid.x;
            ld.param.u64 %rd15, [out];
            {body}
            OUT:
            mov.u32 %r30, %ctaid.x;
            mov.u32 %r31, %ntid.x;
            mad.lo.u32 %r31, %r30, %r31, %r1;
            mul.wide.u32 %rd14, %r31, 4;
            add.u64 %rd14, %rd15, %rd14;
            st.global.u32 [%rd14], %r0;
            ret;
        }}"
    )
}

/// Runs such a kernel behind the declarations `before` it.
pub(crate) fn try_threads(
    before: &str,
    body: &str,
    blocks: u32,
    threads: u32,
) -> Result<Vec<u32>, Box<Fault>> {
    let module = Module::of(&format!("{before}\n{}", kernel_text(body)));
    let kernel = module.kernel("test");
    let mut out = vec![u32::MAX; (blocks * threads) as usize];
    let params = Params::default().buffer(&mut out);
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        params: &params.0,
        step_limit: Some(4_000_000),
        ..Launch::new(&kernel, &module.heap)
    };
    run(&launch).map(|()| out)
}

/// `%r0` of each of `threads` threads after `body`.
pub(crate) fn threads(body: &str, threads: u32) -> Vec<u32> {
    try_threads("", body, 1, threads).unwrap_or_else(|fault| panic!("{fault}"))
}

/// `%r0` of one thread after `body`.
pub(crate) fn thread(body: &str) -> u32 {
    threads(body, 1)[0]
}

/// Returns the fault of `threads` threads that run `body`.
pub(crate) fn fault(body: &str, threads: u32) -> Box<Fault> {
    try_threads("", body, 1, threads).expect_err("a fault")
}

/// Returns the line of `text` that a marker stands on, in a module of [`HEADER`] and `text`.
pub(crate) fn line_of(text: &str, marker: &str) -> u32 {
    let before = &text[..text.find(marker).expect("the marker")];
    (HEADER.matches('\n').count() + before.matches('\n').count() + 1) as u32
}
