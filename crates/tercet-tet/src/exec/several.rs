//! Several reductions in one visit.

use std::any::Any;

use tercet_core::ElementType;
use tercet_core::tensor::OutOfMemory;
use tercet_kernel::{Accumulator, ComputeType, Counts, Op, Runs, Scan, Statistics};

use super::drive::{Reduction, is_count};
use super::task::Block;

/// Reductions whose accumulators take values of the same compute type.
pub(crate) struct Several<'a> {
    pub(crate) ops: &'a [Op],
    pub(crate) dtype: ElementType,
}

/// Accumulators of several reductions: the results of a slot are stored side by side.
#[derive(Debug)]
struct CombinedAccumulator(Vec<Box<dyn Accumulator>>);

impl Reduction for Several<'_> {
    fn accumulator(&self, block: &Block) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        let global = |slot| block.global(slot);
        let parts = self.ops.iter().map(|op| op.accumulator(self.dtype, block.len(), &global));
        Ok(Box::new(CombinedAccumulator(parts.collect::<Result<_, _>>()?)))
    }
    fn width(&self) -> usize {
        self.ops.iter().map(Op::width).sum()
    }
    fn slot_bytes(&self) -> usize {
        self.ops.iter().map(Op::slot_bytes).sum()
    }
    fn is_indexed(&self) -> bool {
        self.ops.iter().any(Op::is_indexed)
    }
    fn are_indices(&self) -> Vec<bool> {
        self.ops.iter().flat_map(|op| std::iter::repeat_n(op.is_indexed(), op.width())).collect()
    }
    fn are_counts(&self) -> Vec<bool> {
        self.ops.iter().flat_map(|op| std::iter::repeat_n(is_count(op), op.width())).collect()
    }
    fn takes_statistics(&self) -> bool {
        self.ops.iter().all(Op::takes_statistics)
    }
    fn is_counted(&self) -> bool {
        true
    }
}

impl Accumulator for CombinedAccumulator {
    fn compute(&self) -> ComputeType {
        self.0.first().map_or(ComputeType::F64, |part| part.compute())
    }
    fn is_indexed(&self) -> bool {
        self.0.iter().any(|part| part.is_indexed())
    }
    fn is_uniform(&self) -> bool {
        self.0.iter().all(|part| part.is_uniform())
    }
    fn fresh(&self, slots: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        let parts = self.0.iter().map(|part| part.fresh(slots));
        Ok(Box::new(Self(parts.collect::<Result<_, _>>()?)))
    }
    fn clear(&mut self) {
        self.0.iter_mut().for_each(|part| part.clear());
    }
    fn slots(&self) -> usize {
        self.0.first().map_or(0, |part| part.slots())
    }
    fn rows(&mut self, at: usize, rows: &[&[u8]], indices: &[u64]) {
        self.0.iter_mut().for_each(|part| part.rows(at, rows, indices));
    }
    fn plane(&mut self, at: usize, rows: &Runs<'_>) {
        self.0.iter_mut().for_each(|part| part.plane(at, rows));
    }
    fn runs(&mut self, at: usize, runs: &Runs<'_>) {
        self.0.iter_mut().for_each(|part| part.runs(at, runs));
    }
    fn scatter(&mut self, slots: &[u32], values: &[u8], indices: &[u64]) {
        self.0.iter_mut().for_each(|part| part.scatter(slots, values, indices));
    }
    fn takes_statistics(&self) -> bool {
        self.0.iter().all(|part| part.takes_statistics())
    }
    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        self.0.iter_mut().for_each(|part| part.fold_statistics(at, known));
    }
    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        if let Some(Self(later)) = later.as_any().downcast_ref() {
            self.0.iter_mut().zip(later).for_each(|(part, later)| part.merge(at, &**later, from, count));
        }
    }
    fn settle(&mut self) {
        self.0.iter_mut().for_each(|part| part.settle());
    }
    fn scan(&mut self, scan: &Scan, reverse: bool) {
        self.0.iter_mut().for_each(|part| part.scan(scan, reverse));
    }
    fn width(&self) -> usize {
        self.0.iter().map(|part| part.width()).sum()
    }
    fn finish(&mut self, counts: Counts<'_>, out: &mut [f64]) {
        let (all, slots) = (self.width(), self.slots());
        let mut from = 0;
        for part in &mut self.0 {
            let width = part.width();
            let mut own = vec![0.0; slots * width];
            part.finish(counts, &mut own);
            for (out, own) in out.chunks_exact_mut(all).zip(own.chunks_exact(width)) {
                out[from..from + width].copy_from_slice(own);
            }
            from += width;
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
