//! Graphs of device work, described once and launched many times, on NVIDIA GPUs and on any CPU.
