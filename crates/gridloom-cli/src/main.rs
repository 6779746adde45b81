//! The `gridloom` command.
fn main() {}
