//! A device that runs nothing, for testing the core.
