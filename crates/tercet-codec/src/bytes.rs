//! Bytes to bytes: compression.

pub mod zstd;
