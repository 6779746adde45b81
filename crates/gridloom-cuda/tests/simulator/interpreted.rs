//! Kernels that the optimiser made. They have no Rust function, so their PTX runs.

use super::code::Shape;
use gridloom_ptx::Module;
use parking_lot::Mutex;
use std::sync::OnceLock;

/// Runs a kernel of a PTX text: its name, shape and parameter buffer.
pub type Runner = fn(&str, &str, Shape, &[u8]);

static RUNNER: OnceLock<Runner> = OnceLock::new();

/// Has kernels that have no Rust function run by this one.
pub fn run_others_with(runner: Runner) {
    RUNNER.get_or_init(|| runner);
}

/// Whether the optimiser gave the kernels of a text other code, so that it counts.
pub fn is_rewritten(text: &str) -> bool {
    RUNNER.get().is_some() && (text.contains(".func set_condition") || text.contains(".u64 gate"))
}

/// The offset and size of each parameter, if somebody runs PTX.
pub fn params(text: &str, name: &str) -> Option<Vec<(usize, usize)>> {
    RUNNER.get()?;
    let module: Module = gridloom_ptx::parse(text).ok()?;
    let (_, function) = module.entry(name)?;
    Some(function.params.iter().map(|param| (param.offset as usize, param.var.size() as usize)).collect())
}

/// The most conditions that the threads of one launch set.
const MAX_SET: usize = 1 << 16;

/// How many conditions were set, and the handle and value of each.
static SET: Mutex<Option<Box<[u64; 1 + 2 * MAX_SET]>>> = Mutex::new(None);

/// Runs a kernel. Returns the handles and values of the conditions that it set, in this order.
pub fn run(text: &str, name: &str, shape: Shape, bytes: &[u8]) -> Vec<(u64, u32)> {
    let run = RUNNER.get().expect("a runner of PTX");
    const DECLARATION: &str = ".extern .func cudaGraphSetConditional";
    let Some((before, rest)) = text.split_once(DECLARATION) else {
        run(text, name, shape, bytes);
        return Vec::new();
    };
    let (_, after) = rest.split_once(';').expect("a declaration ends");
    let mut set = SET.lock();
    let set = set.get_or_insert_with(|| Box::new([0; 1 + 2 * MAX_SET]));
    set[0] = 0;
    let text = format!(
        "{before}.func cudaGraphSetConditional(.param .b64 handle, .param .b32 value) {{ \
         .reg .b64 %h, %s, %n; .reg .b32 %v; ld.param.b64 %h, [handle]; ld.param.b32 %v, [value]; \
         mov.b64 %s, {}; atom.global.add.u64 %n, [%s], 1; min.u64 %n, %n, {}; mad.lo.u64 %s, %n, 16, %s; \
         st.global.b64 [%s+8], %h; st.global.b32 [%s+16], %v; ret; }}{after}",
        set.as_mut_ptr() as u64,
        MAX_SET - 1,
    );
    run(&text, name, shape, bytes);
    let count = (set[0] as usize).min(MAX_SET);
    set[1..].chunks_exact(2).take(count).map(|set| (set[0], set[1] as u32)).collect()
}
