//! Round trips through pipelines.

mod golden;
mod masks;
mod matrix;
mod precision;
mod ranges;
mod sz3;
mod validity;
