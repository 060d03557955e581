//! Formats that are not ours, one module each.

pub mod npy;
