//! Updates and lifetimes: changing definitions and executables, and when they release what they
//! held.

mod changes;
mod contracts;
mod disabling;
mod events;
mod in_flight;
mod nested;
mod ownership;
mod parameters;
mod process_exit;
mod random_edits;
mod refusals;
mod release;
mod replacing;
mod stress;
mod typed_arguments;
mod whole;
