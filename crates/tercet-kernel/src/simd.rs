//! One source, compiled for each instruction set, chosen at run time.

/// Work that is compiled for several instruction sets.
///
/// Closures and functions will not do: the compiler need not inline them, and what is not inlined stays compiled for
/// the oldest machine. So `work` and what it calls in its loops must be `#[inline(always)]`.
pub trait Work {
    /// What the work returns.
    type Output;
    /// Does the work.
    fn work(self) -> Self::Output;
}

/// Does work with the best instruction set of this machine.
#[inline(always)]
pub fn vectorized<W: Work>(work: W) -> W::Output {
    pulp::Arch::new().dispatch(Task(work))
}

struct Task<W>(W);

impl<W: Work> pulp::NullaryFnOnce for Task<W> {
    type Output = W::Output;
    #[inline(always)]
    fn call(self) -> W::Output {
        self.0.work()
    }
}
