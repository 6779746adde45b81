//! Modules and kernels: refusals when loading and looking up, and errors of kernels that fail.

mod arguments;
mod contracts;
mod cuda_source;
mod faults;
mod hostile;
mod loading;
mod printing;
