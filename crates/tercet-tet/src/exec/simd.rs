//! One source, compiled for each instruction set, chosen at run time.

/// Runs plain loops compiled for the best instruction set of this machine.
///
/// The number of lanes stands in the source and no operation is contracted, so that results are the same on every
/// machine. What `work` calls must be inlined to profit.
#[inline]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}
