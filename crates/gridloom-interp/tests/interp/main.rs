//! What PTX means on the CPU device, one behaviour a test.

mod support;

mod atomics;
mod barriers;
mod builtins;
mod calls;
mod compiled;
mod control;
mod faults;
mod launches;
mod lookup;
mod memory;
mod ptx_files;
mod values;
mod warp_operations;
