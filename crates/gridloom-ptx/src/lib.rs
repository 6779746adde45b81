//! PTX: reading, checking and printing NVIDIA's parallel thread code.
