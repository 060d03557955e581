//! SIMD dispatch: one source, compiled for each instruction set, selected at run time.

/// Work that is compiled for several instruction sets.
///
/// Closures and functions do not suffice: the compiler need not inline them, and code that is not inlined is compiled
/// for the baseline instruction set. `work`, and all functions called in its loops, must be `#[inline(always)]`.
pub(crate) trait Work {
    /// Return type of the work.
    type Output;
    /// Runs the work.
    fn work(self) -> Self::Output;
}

/// Runs work with the best instruction set of this machine.
#[inline(always)]
pub(crate) fn vectorized<W: Work>(work: W) -> W::Output {
    pulp::Arch::new().dispatch(Dispatched(work))
}

struct Dispatched<W>(W);

impl<W: Work> pulp::NullaryFnOnce for Dispatched<W> {
    type Output = W::Output;
    #[inline(always)]
    fn call(self) -> W::Output {
        self.0.work()
    }
}
