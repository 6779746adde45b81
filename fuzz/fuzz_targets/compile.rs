//! Any text: reading and checking it, laying it out, decoding its kernels and compiling them
//! answers.
#![no_main]

use std::sync::Arc;

use gridloom_interp::{Layout, Program};
use gridloom_jit::CompiledKernel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = gridloom_ptx::parse_bytes(bytes) else { return };
    let _ = gridloom_ptx::check(&module);
    let layout = match Layout::of(&module) {
        Ok(layout) => layout,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let addresses: Vec<u64> = (1..).map(|index| index << 32).take(layout.variables().len()).collect();
    for index in 0..addresses.len() {
        layout.image(index, &addresses);
    }
    let names: Vec<String> = module.entries().map(|(_, function)| function.name.clone()).collect();
    let program = Program::new(Arc::new(module), layout, addresses);
    for name in names {
        match program.kernel(&name) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(kernel) => {
                if let Ok(compiled) = CompiledKernel::new(kernel) {
                    // What cannot be compiled is interpreted.
                    let _ = compiled.compile_all();
                }
            }
        }
    }
});
