//! What ends work that would not end by itself, and what keeps it within the memory it was given: cancels, timeouts, limits.

mod cancel;
mod endless;
mod memory_limit;
mod node_limit;
mod timeouts;
