//! Values through their pipelines and back.

mod golden;
mod legal;
mod masks;
mod matrix;
mod precision;
mod ranges;
#[cfg(feature = "sz3")]
mod sz3;
