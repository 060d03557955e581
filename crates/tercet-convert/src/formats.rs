//! File formats of other programs, one module each.

pub mod npy;
