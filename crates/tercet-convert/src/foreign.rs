//! Foreign formats, one module each.

pub mod npy;
