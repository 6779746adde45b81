//! The CUDA device of Gridloom: a driver loaded at run time, and graphs lowered to CUDA graphs.
