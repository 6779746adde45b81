//! Looking kernels up: what is refused, and with which message.

use crate::support::{HEADER, Module};
use gridloom_interp::{Error, Layout};

#[test]
fn an_unknown_kernel_lists_those_there_are() {
    let module = Module::of(".visible .entry first() { ret; } .visible .entry second() { ret; }");
    let error = module.program.kernel("third").unwrap_err();
    assert_eq!(error.to_string(), "no kernel `third`; the module defines first, second");
}

#[test]
fn an_unknown_instruction_is_refused_when_its_kernel_is_looked_up() {
    let module = Module::of(
        ".visible .entry good() { ret; }
         .visible .entry bad() {
            .reg .b32 %r<2>;
            wgmma.fence.sync.aligned;
            ret;
         }",
    );
    module.kernel("good");
    let error = module.program.kernel("bad").unwrap_err();
    let Error::Unsupported { kernel, instruction, line, .. } = &error else { panic!("{error}") };
    assert_eq!((kernel.as_str(), instruction.as_str()), ("bad", "wgmma.fence.sync.aligned"));
    assert_eq!(*line, HEADER.matches('\n').count() as u32 + 4);
}

#[test]
fn an_unknown_instruction_in_a_function_that_a_kernel_calls_is_refused_too() {
    let module = Module::of(
        ".func deep() { wgmma.fence.sync.aligned; ret; }
         .func shallow() { call deep; ret; }
         .visible .entry test() { call shallow; ret; }
         .visible .entry other() { ret; }",
    );
    let error = module.program.kernel("test").unwrap_err();
    let Error::Unsupported { function, .. } = &error else { panic!("{error}") };
    assert_eq!(function, "deep");
    module.kernel("other");
}

#[test]
fn a_function_that_nobody_defines_is_refused_when_the_kernel_is_looked_up() {
    let module = Module::of(
        ".extern .func mystery (.param .b32 x);
         .visible .entry test() { { .param .b32 p; st.param.b32 [p], 1; call mystery, (p); } ret; }",
    );
    let error = module.program.kernel("test").unwrap_err();
    let Error::UndefinedFunction { function, caller, .. } = &error else { panic!("{error}") };
    assert_eq!((function.as_str(), caller.as_str()), ("mystery", "test"));
}

#[test]
fn a_variable_that_nobody_defines_is_refused_when_the_kernel_is_looked_up() {
    let module = Module::of(
        ".extern .global .u32 elsewhere;
         .visible .entry test() { .reg .b32 %r; ld.global.u32 %r, [elsewhere]; ret; }
         .visible .entry other() { ret; }",
    );
    let error = module.program.kernel("test").unwrap_err().to_string();
    assert!(error.contains("`elsewhere`"), "{error}");
    module.kernel("other");
}

#[test]
fn a_builtin_declared_otherwise_is_refused() {
    let module = Module::of(
        ".extern .func free (.param .b32 p);
         .visible .entry test() { { .param .b32 p; st.param.b32 [p], 1; call free, (p); } ret; }",
    );
    assert!(matches!(module.program.kernel("test"), Err(Error::Unsupported { .. })));
}

#[test]
fn a_module_of_32_bit_addresses_is_refused() {
    let mut module = gridloom_ptx::parse(HEADER).unwrap();
    module.address_size = 32;
    assert_eq!(Layout::of(&module).err(), Some(Error::AddressSize { bits: 32 }));
}

#[test]
fn a_kernel_tells_what_a_launch_must_respect() {
    let module = Module::of(
        ".visible .entry test(.param .u32 a, .param .u64 b) .maxntid 256, 1, 1 .reqntid 64, 2 {
            .shared .align 8 .b8 mem[24]; .local .align 4 .b8 own[12]; .reg .b32 %r;
            st.shared.u32 [mem], 1; st.local.u32 [own], 2; ret;
         }",
    );
    let kernel = module.kernel("test");
    assert_eq!(kernel.name(), "test");
    assert_eq!((kernel.shared_bytes(), kernel.local_bytes(), kernel.param_bytes()), (24, 12, 16));
    assert_eq!((kernel.max_threads(), kernel.required_threads()), (Some([256, 1, 1]), Some([64, 2, 1])));
    assert!(kernel.instruction_count() >= 3);
}

#[test]
fn a_kernel_is_decoded_once() {
    let module = Module::of(".visible .entry test() { ret; }");
    assert!(std::sync::Arc::ptr_eq(&module.kernel("test"), &module.kernel("test")));
}

#[test]
fn more_local_memory_than_a_thread_has_is_refused() {
    let module = Module::of(
        ".visible .entry test() { .local .align 4 .b8 own[1000000]; st.local.u32 [own], 1; ret; }",
    );
    let error = module.program.kernel("test").unwrap_err().to_string();
    assert!(error.contains("`own`"), "{error}");
}
