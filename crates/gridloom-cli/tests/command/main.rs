//! The command as a user calls it: its output and its exit status.

mod basics;
mod checked;
mod documents;
mod graphs;
mod hostile;
mod output;
mod ptx;
mod support;
#[cfg(target_os = "linux")]
mod terminal;
