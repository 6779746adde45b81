//! Any text: loading it and getting its kernels ready answers, with each engine of the CPU device.
#![no_main]

use std::sync::OnceLock;

use gridloom::{CpuOptions, Device, Engine};
use libfuzzer_sys::fuzz_target;

/// What a module may ask for. A text that asks for more is refused, which is an answer.
const MEMORY: u64 = 64 << 20;

fn devices() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let open = |engine| {
            let options =
                CpuOptions { engine, threads: Some(1), memory_limit: Some(MEMORY), ..CpuOptions::default() };
            Device::cpu_with(options).expect("the CPU is always there")
        };
        [Engine::Interpreter, Engine::Auto].map(open).into()
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for device in devices() {
        let module = match device.load_ptx(text) {
            Ok(module) => module,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        for name in module.kernel_names() {
            match module.untyped_kernel(&name) {
                Ok(kernel) => assert!(!kernel.info().is_empty()),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
});
