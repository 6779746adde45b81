//! Machine code of the host: the target, and memory for code.
//!
//! Code is written to pages that are writable, which are then made executable and not writable any more; no page is ever both.

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, Type};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The host as a target, or why it is none.
pub(crate) fn target() -> Result<OwnedTargetIsa, String> {
    static TARGET: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    TARGET
        .get_or_init(|| {
            let mut flags = settings::builder();
            for (name, value) in [
                // The optimiser moves what is computed into the branches that use it, and would write it out once for each way out of the
                // code; what pays here is done while the code is written.
                ("opt_level", "none"),
                ("is_pic", "false"),
                ("use_colocated_libcalls", "false"),
                // Loads see what other threads have stored meanwhile, each by itself.
                ("enable_alias_analysis", "false"),
                ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
            ] {
                flags.set(name, value).map_err(|error| error.to_string())?;
            }
            cranelift_native::builder()
                .map_err(str::to_owned)?
                .finish(settings::Flags::new(flags))
                .map_err(|error| error.to_string())
        })
        .clone()
        .map_err(|reason| format!("no code is generated for this machine: {reason}"))
}

/// Whether an element of a vector can be picked by the sign of another.
pub(crate) fn picks_by_sign() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4.1");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// A function of the runtime's as one that leaves all registers as they are, and returns nothing. A call of it is no reason to move anything to memory
/// on the ways that do not lead there.
pub(crate) fn preserving(function: usize, params: &[Type]) -> Result<usize, String> {
    static MADE: Mutex<Vec<(usize, Machine)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, machine)) = made.iter().find(|(other, _)| *other == function) {
        return Ok(machine.entry() as usize);
    }
    let machine = Machine::compile(false, |func, isa| {
        let signature = |convention| {
            let mut signature = ir::Signature::new(convention);
            signature.params.extend(params.iter().copied().map(AbiParam::new));
            signature
        };
        func.signature = signature(CallConv::PreserveAll);
        let mut context = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(func, &mut context);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let callee = b.ins().iconst(I64, function as i64);
        let signature = b.import_signature(signature(isa.default_call_conv()));
        let arguments = b.block_params(block).to_vec();
        b.ins().call_indirect(signature, callee, &arguments);
        b.ins().return_(&[]);
        b.seal_all_blocks();
        b.finalize(isa.frontend_config());
        Ok(())
    })?;
    let entry = machine.entry() as usize;
    made.push((function, machine));
    Ok(entry)
}

/// Memory that compiling takes, for the next function. What is compiled at once takes its own.
static SPARE: Mutex<Option<Box<Context>>> = Mutex::new(None);

/// Instructions of Cranelift's of a function whose memory is not kept: a few megabytes.
const MOST_SPARED: usize = 16 << 10;

fn spare_context() -> Box<Context> {
    let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).take();
    spare.unwrap_or_else(|| Box::new(Context::new()))
}

fn spare(mut context: Box<Context>) {
    if context.func.dfg.num_insts() <= MOST_SPARED {
        context.clear();
        *SPARE.lock().unwrap_or_else(PoisonError::into_inner) = Some(context);
    }
}

/// A function as machine code, and the memory it is in.
pub(crate) struct Machine {
    module: Option<JITModule>,
    entry: *const u8,
    /// The intermediate code, and the machine code in words, where they were asked for.
    pub(crate) listing: Option<[String; 2]>,
}

// SAFETY: the code is complete and never changes again; the module is only kept to be dropped.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

impl Machine {
    /// Compiles a function that `build` writes.
    pub(crate) fn compile(
        list: bool,
        build: impl FnOnce(&mut ir::Function, &OwnedTargetIsa) -> Result<(), String>,
    ) -> Result<Self, String> {
        let isa = target()?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa.clone(), default_libcall_names()));
        let mut context = spare_context();
        let mut machine = Machine { module: None, entry: std::ptr::null(), listing: None };
        let result = (|| -> Result<_, String> {
            build(&mut context.func, &isa)?;
            let text = list.then(|| context.func.to_string());
            context.set_disasm(list);
            let id = module
                .declare_function("kernel", Linkage::Export, &context.func.signature)
                .map_err(|error| error.to_string())?;
            module.define_function(id, &mut context).map_err(|error| format!("{error:?}"))?;
            module.finalize_definitions().map_err(|error| error.to_string())?;
            let code = context.compiled_code().and_then(|code| code.vcode.clone()).unwrap_or_default();
            Ok((module.get_finalized_function(id), text.map(|text| [text, code])))
        })();
        machine.module = Some(module);
        spare(context);
        let (entry, listing) = result?;
        (machine.entry, machine.listing) = (entry, listing);
        Ok(machine)
    }

    /// Where it starts.
    pub(crate) fn entry(&self) -> *const u8 {
        self.entry
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: a launch holds what it runs, so nobody is in this code and nobody comes.
            unsafe { module.free_memory() };
        }
    }
}
