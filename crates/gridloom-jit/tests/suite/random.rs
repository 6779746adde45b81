//! Random kernels, run in groups of each size, also where these do not pay, and compared with the
//! interpreter.
//!
//! The programs are those of the tests of `gridloom`, as are the names of the variables that choose
//! them.

#[path = "../../../gridloom/tests/random_ptx/atomics.rs"]
mod atomics;
#[path = "../../../gridloom/tests/random_ptx/buffers.rs"]
mod buffers;
#[path = "../../../gridloom/tests/random_ptx/floating.rs"]
mod floating;
#[path = "../../../gridloom/tests/random_ptx/generate.rs"]
mod generate;
#[path = "../../../gridloom/tests/random_ptx/integer.rs"]
mod integer;
#[path = "../../../gridloom/tests/random_ptx/meeting.rs"]
mod meeting;
#[path = "../../../gridloom/tests/random_ptx/memory.rs"]
mod memory;
#[path = "../../../gridloom/tests/random_ptx/print.rs"]
mod print;
#[path = "../../../gridloom/tests/random_ptx/program.rs"]
#[allow(dead_code, reason = "what makes programs smaller is not used here")]
mod program;
#[path = "../../../gridloom/tests/random_ptx/renaming.rs"]
mod renaming;
#[path = "../../../gridloom/tests/random_ptx/rows.rs"]
mod rows;
#[path = "../../../gridloom/tests/random_ptx/scattered.rs"]
mod scattered;
#[path = "../../../gridloom/tests/random_ptx/tiles.rs"]
mod tiles;
#[path = "../../../gridloom/tests/random_ptx/warps.rs"]
mod warps;

use buffers::BUFFERS;
use gridloom_interp::{Heap, Launch, Layout, Program as Loaded, Scratch};
use gridloom_jit::CompiledKernel;
use program::Program;
use std::sync::Arc;

const DEFAULT_PROGRAMS: u64 = 40;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// Returns what a program leaves in its buffers, or its fault in words; run in groups of so many
/// threads or each by itself, with vectors of 128 bits or the longest of the host, or by the
/// interpreter.
fn run(program: &Program, text: &str, groups: Option<(u32, bool)>) -> Result<Vec<Vec<u8>>, String> {
    let module = gridloom_ptx::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let layout = Layout::of(&module).expect("a layout");
    // The tables of the module, whose bytes refer to no other variable.
    let mut tables: Vec<Vec<u128>> = Vec::new();
    for (index, variable) in layout.variables().iter().enumerate() {
        let mut table = vec![0u128; variable.size.div_ceil(16) as usize];
        for (word, bytes) in table.iter_mut().zip(layout.image(index, &[]).chunks(16)) {
            let mut whole = [0; 16];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u128::from_ne_bytes(whole);
        }
        tables.push(table);
    }
    let places = tables.iter_mut().map(|table| table.as_mut_ptr().expose_provenance() as u64).collect();
    let loaded = Loaded::new(Arc::new(module), layout, places);
    let kernel = loaded.kernel("random").unwrap_or_else(|error| panic!("{error}"));
    let code = groups.map(|(threads, narrow)| {
        let code = CompiledKernel::new(kernel.clone()).expect("a kernel that can be compiled");
        let code = if threads == 1 { code.with_threads_alone() } else { code.with_groups_of(threads) };
        let code = if narrow { code.with_narrow_vectors() } else { code };
        assert!(code.is_vectorized(), "not compiled in groups:\n{text}");
        code
    });
    let mut after = Vec::new();
    for block in [Some(program.block), program.then].into_iter().flatten() {
        let mut buffers = program.buffers(text);
        assert_eq!(buffers.len(), BUFFERS.len());
        let mut params = Vec::new();
        for buffer in &mut buffers {
            params.extend((buffer.as_mut_ptr().expose_provenance() as u64).to_le_bytes());
        }
        params.extend(program.n.to_le_bytes());
        params.resize(params.len().next_multiple_of(8), 0);
        params.extend(program.x.to_le_bytes());
        params.extend(program.z.to_le_bytes());
        let heap = Heap::default();
        let launch = Launch {
            grid: program.grid,
            block,
            params: &params,
            dynamic_shared: program.shared_bytes(),
            compiled: code.as_ref().map(|code| code as _),
            ..Launch::new(&kernel, &heap)
        };
        // SAFETY: a program stays within the buffers that are made for it.
        let result = unsafe { launch.run_blocks(0..launch.blocks(), &mut Scratch::new()) };
        result.map_err(|fault| fault.to_string())?;
        after.extend(buffers);
    }
    Ok(after)
}

#[test]
fn large_groups_compute_what_the_interpreter_does() {
    let first = variable("GRIDLOOM_RANDOM_PTX_FROM").unwrap_or(0);
    let count = variable("GRIDLOOM_RANDOM_PTX").unwrap_or(DEFAULT_PROGRAMS);
    for seed in first..first + count {
        let program = Program::random(seed, true);
        let text = program.text();
        let expected = run(&program, &text, None);
        // Which lanes are active is the same in groups that are warps, as they are in launches.
        // Smaller groups leave what lanes do together to the interpreter.
        let together = ["shfl", "vote", "match", "redux"].iter().any(|name| text.contains(name));
        let threads = match seed % 6 {
            _ if text.contains("activemask") => 32,
            1..=4 if together => 32,
            seed => [8, 16, 32][seed as usize % 3],
        };
        // Threads alone run ahead of those that they would execute a collective with.
        let alone = (!together && !text.contains("activemask")).then_some(1);
        for (threads, narrow) in
            [Some(threads), alone].into_iter().flatten().flat_map(|n| [(n, true), (n, false)])
        {
            let found = run(&program, &text, Some((threads, narrow)));
            assert!(found == expected, "seed {seed}, in groups of {threads}, narrow: {narrow}:\n{text}");
        }
    }
}
