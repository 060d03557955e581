//! Executor: visits the chunks of a plan once or a few times and reduces, sorts or transforms their values.

mod chunk_lookup;
mod chunks;
mod cut;
pub(crate) mod dense;
mod drive;
pub(crate) mod explain;
mod histogram;
pub(crate) mod integers;
pub(crate) mod job;
pub(crate) mod locate;
mod matrix;
pub(crate) mod memory;
mod number;
mod order;
mod predicate;
pub(crate) mod preview;
pub(crate) mod reduce;
mod rolling;
mod several;
mod sizes;
pub(crate) mod spill;
#[cfg(any(unix, windows))]
pub(crate) mod target;
#[cfg(not(any(unix, windows)))]
#[path = "exec/target/none.rs"]
pub(crate) mod target;
mod task;
pub(crate) mod transform;
mod visit;
mod walk;

#[cfg(any(unix, windows))]
pub(crate) use number::to_half;
pub(crate) use predicate::{compute_fill, compute_filter, fill_value};
pub(crate) use spill::blank;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod testing;
