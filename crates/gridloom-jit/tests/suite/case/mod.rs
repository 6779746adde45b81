//! A kernel that runs in the interpreter and in compiled code.

#![allow(dead_code, reason = "each test uses what it needs")]

use gridloom_interp::{Heap, Launch, Layout, Program, Scratch};
use gridloom_jit::{CompiledKernel, Runs};
use std::cell::Cell;
use std::sync::Arc;

/// What a launch leaves: the words of its buffer, or the fault in words.
pub(crate) type Outcome = Result<Vec<u32>, String>;

/// What runs a kernel.
#[derive(Clone, Copy)]
enum Engine {
    Interpreter,
    /// Compiled code with vectors of 128 bits.
    Narrow,
    /// Compiled code with the longest vectors of the host.
    Compiled,
    /// Compiled code for one thread after the other.
    Alone,
}

pub(crate) struct Case<'a> {
    pub(crate) body: &'a str,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// The buffer that the kernel is given, and its number of words as `n`.
    pub(crate) words: Vec<u32>,
    pub(crate) pointer: Option<u64>,
    pub(crate) cooperative: bool,
    /// How threads were run by compiled code the last time.
    pub(crate) runs: Cell<Runs>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(body: &'a str) -> Self {
        Case {
            body,
            grid: [1, 1, 1],
            block: [64, 1, 1],
            words: vec![0; 64],
            pointer: None,
            cooperative: false,
            runs: Cell::default(),
        }
    }

    /// Runs it on a buffer, whose address is part of some faults.
    fn run(&self, engine: Engine, buffer: &mut [u32]) -> Outcome {
        let text = format!(
            ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n) {{\n\
             .reg .pred %p<9>; .reg .f32 %f<20>; .reg .f64 %d<20>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n\
             .shared .align 16 .b8 tile[1024];\n\
             ld.param.u64 %rd0, [out]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x;\n{}\nret;\n}}",
            self.body
        );
        let module = gridloom_ptx::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let layout = Layout::of(&module).unwrap();
        let program = Program::new(Arc::new(module), layout, vec![]);
        let kernel = program.kernel("k").unwrap_or_else(|error| panic!("{error}"));
        let code = match engine {
            Engine::Interpreter => None,
            Engine::Narrow => Some(CompiledKernel::new(kernel.clone()).unwrap().with_narrow_vectors()),
            Engine::Compiled => Some(CompiledKernel::new(kernel.clone()).unwrap()),
            Engine::Alone => Some(CompiledKernel::new(kernel.clone()).unwrap().with_threads_alone()),
        };
        if let Some(code) = &code {
            code.compile_all().unwrap_or_else(|error| panic!("{error}"));
        }
        buffer.copy_from_slice(&self.words);
        let pointer = self.pointer.unwrap_or(buffer.as_mut_ptr().expose_provenance() as u64);
        let mut params = pointer.to_le_bytes().to_vec();
        params.extend((buffer.len() as u32).to_le_bytes());
        let heap = Heap::default();
        let launch = Launch {
            grid: self.grid,
            block: self.block,
            params: &params,
            compiled: code.as_ref().map(|code| code as _),
            ..Launch::new(&kernel, &heap)
        };
        // SAFETY: the kernels stay inside the buffer, or fault before they leave it.
        let result = unsafe {
            if self.cooperative {
                launch.run_cooperative(0..launch.blocks(), &mut Scratch::new())
            } else {
                launch.run_blocks(0..launch.blocks(), &mut Scratch::new())
            }
        };
        self.runs.set(code.as_ref().map(CompiledKernel::runs).unwrap_or_default());
        result.map(|()| buffer.to_vec()).map_err(|fault| fault.to_string())
    }

    /// As [`same`](Self::same), and also one thread after the other. No thread may read what
    /// another one writes, because the interpreter executes the threads of a warp together.
    #[track_caller]
    pub(crate) fn same_alone(&self) -> Outcome {
        let mut buffer = self.words.clone();
        let expected = self.run(Engine::Interpreter, &mut buffer);
        assert_eq!(self.run(Engine::Alone, &mut buffer), expected, "one thread after the other");
        self.same()
    }

    #[track_caller]
    pub(crate) fn same(&self) -> Outcome {
        let mut buffer = self.words.clone();
        let expected = self.run(Engine::Interpreter, &mut buffer);
        assert_eq!(self.run(Engine::Narrow, &mut buffer), expected, "in vectors of 128 bits");
        let found = self.run(Engine::Compiled, &mut buffer);
        assert_eq!(found, expected);
        found
    }
}

/// Stores `%r19` at the thread's place.
pub(crate) const STORE: &str =
    "mul.wide.u32 %rd18, %r1, 4; add.u64 %rd19, %rd0, %rd18; st.global.u32 [%rd19], %r19;";
