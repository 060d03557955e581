//! Reductions and comparisons over slices.
//!
//! Ten element types are widened to four compute types ([`widen()`]), so every reduction is compiled four times, not
//! ten. A reduction is an [`Accumulator`]: the states of many output elements (slots), into which rows and runs of
//! values are folded, with one dynamic call per piece of data. This crate has no notion of files, chunks or threads.
//!
//! The number of lanes is fixed in the source and floating-point contraction is never used: results do not depend on
//! the machine.

#![expect(clippy::inline_always, reason = "kernels must be inlined to be compiled for each instruction set")]
#![expect(
    clippy::explicit_counter_loop,
    clippy::needless_bitwise_bool,
    clippy::needless_pass_by_value,
    clippy::needless_range_loop,
    reason = "loops over lanes and branch-free tests are vectorized"
)]
#![expect(clippy::float_cmp, reason = "exact comparison is intended")]

mod accumulator;
mod arg;
mod compute;
mod covariance;
mod decode;
mod extreme;
mod filter;
mod histogram;
mod integer_sum;
mod lanes;
mod moments;
mod op;
mod order;
mod product;
mod roll;
mod round;
mod simd;
mod softmax;
mod sum;
mod tally;
mod transform;
mod typed;
mod widen;

pub use accumulator::{Accumulator, Counts, Runs, Statistics, StatisticsRange};
pub use compute::{Compute, ComputeType, Value};
pub use covariance::Covariance;
pub use decode::Decode;
pub use filter::Filter;
pub use histogram::{Outliers, TINY_RANGE, bin_width};
pub use op::Op;
pub use order::{Capacity, Quantile, Search, SearchRoom};
pub use roll::{Roll, RollPadding, Rolled, Scan, roll};
pub use round::{BitRounding, max_abs_error};
pub use transform::{Formula, Plane, PlaneKernel, Real, SlotNumbers};
pub use widen::{from_half, gather, widen};

#[cfg(test)]
mod tests;
