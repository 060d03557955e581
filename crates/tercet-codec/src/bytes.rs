//! Byte codecs: compression.

pub mod blosc2;
pub mod lz4;
pub mod sz3;
pub mod szip;
pub mod zfp;
pub mod zstd;
