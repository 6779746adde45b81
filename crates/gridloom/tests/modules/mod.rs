//! Modules and kernels: what loading and looking up refuse, and how a kernel that fails says so.

mod arguments;
mod contracts;
mod faults;
mod hostile;
mod loading;
mod printing;
