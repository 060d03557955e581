//! Round trips through pipelines.

mod golden;
mod masks;
mod matrix;
mod precision;
mod ranges;
#[cfg(feature = "sz3")]
mod sz3;
mod validity;
