//! Cancellation, timeouts and limits: they end work that would not end by itself, and keep it
//! within its memory.

mod cancel;
mod endless;
mod memory_limit;
mod node_limit;
mod timeouts;
