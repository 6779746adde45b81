//! The host as a compilation target, and memory for machine code.
//!
//! Code is written to writable pages, which then become executable and read-only. No page is ever
//! writable and executable.

use crate::wide;
use cranelift_codegen::Context;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, Type};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use memmap2::Mmap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Returns the host as a target, or why it is not one.
pub(crate) fn target() -> Result<OwnedTargetIsa, String> {
    static TARGET: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    TARGET
        .get_or_init(|| {
            let mut flags = settings::builder();
            for (name, value) in [
                // The optimiser would sink computations into the branches that use them and
                // duplicate them at every side exit. The optimisations that are worthwhile here are
                // made while the code is emitted.
                ("opt_level", "none"),
                ("is_pic", "false"),
                ("use_colocated_libcalls", "false"),
                // Each load must see what other threads have stored in the meantime.
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

/// Returns whether the machine can select vector elements by the sign of another vector.
pub(crate) fn picks_by_sign() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4.1");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Returns whether the machine can pick bytes of a vector by another.
pub(crate) fn picks_bytes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("ssse3");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Returns whether the machine has an instruction that multiplies vectors of 64-bit integers.
pub(crate) fn multiplies_wide_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Wraps a runtime function in one that preserves all registers and returns nothing. A call of it
/// does not force values into memory on paths that do not reach it.
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

/// The compiler's working memory, kept for the next function. A concurrent compilation allocates
/// its own.
static SPARE: Mutex<Option<Box<Context>>> = Mutex::new(None);

/// The most Cranelift instructions of a function whose working memory is kept: a few megabytes.
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

/// A function as machine code, with the memory it is in.
pub(crate) struct Machine {
    module: Option<JITModule>,
    /// The memory of code of the generator for wide vectors.
    _wide: Option<Mmap>,
    entry: *const u8,
    /// Bytes of the code.
    pub(crate) bytes: usize,
    /// The intermediate code and the machine code as text, if they were requested.
    pub(crate) listing: Option<[String; 2]>,
}

// SAFETY: the code is complete and never changes again. The module is only kept to be dropped.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

impl Machine {
    /// Compiles the function that `build` emits for wide vectors.
    pub(crate) fn compile_wide(
        list: bool,
        build: impl FnOnce(&mut ir::Function, &OwnedTargetIsa) -> Result<(), String>,
    ) -> Result<Self, String> {
        let isa = target()?;
        let mut context = spare_context();
        let result = build(&mut context.func, &isa).and_then(|()| {
            if cfg!(debug_assertions)
                && let Err(errors) = cranelift_codegen::verify_function(&context.func, &*isa)
            {
                panic!("{errors} in {}", context.func);
            }
            let code = wide::generate(&context.func)?;
            let listing = list.then(|| [context.func.to_string(), code.listing()]);
            Ok((code, listing))
        });
        spare(context);
        let (code, listing) = result?;
        let memory = wide::executable(&code.bytes)?;
        let entry = memory.as_ptr();
        Ok(Machine { module: None, _wide: Some(memory), entry, bytes: code.bytes.len(), listing })
    }

    /// Compiles the function that `build` emits.
    pub(crate) fn compile(
        list: bool,
        build: impl FnOnce(&mut ir::Function, &OwnedTargetIsa) -> Result<(), String>,
    ) -> Result<Self, String> {
        let isa = target()?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa.clone(), default_libcall_names()));
        let mut context = spare_context();
        let mut machine =
            Machine { module: None, _wide: None, entry: std::ptr::null(), bytes: 0, listing: None };
        let result = (|| -> Result<_, String> {
            build(&mut context.func, &isa)?;
            let text = list.then(|| context.func.to_string());
            context.set_disasm(list);
            let id = module
                .declare_function("kernel", Linkage::Export, &context.func.signature)
                .map_err(|error| error.to_string())?;
            module.define_function(id, &mut context).map_err(|error| format!("{error:?}"))?;
            module.finalize_definitions().map_err(|error| error.to_string())?;
            let compiled = context.compiled_code();
            let bytes = compiled.map_or(0, |code| code.code_buffer().len());
            let code = compiled.and_then(|code| code.vcode.clone()).unwrap_or_default();
            Ok((module.get_finalized_function(id), bytes, text.map(|text| [text, code])))
        })();
        machine.module = Some(module);
        spare(context);
        (machine.entry, machine.bytes, machine.listing) = result?;
        Ok(machine)
    }

    /// Returns its address.
    pub(crate) fn entry(&self) -> *const u8 {
        self.entry
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: a launch keeps the code it runs alive, so no thread is in this code or can
            // enter it.
            unsafe { module.free_memory() };
        }
    }
}
