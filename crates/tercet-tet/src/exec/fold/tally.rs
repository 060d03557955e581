//! How many values are of a kind.

use super::lanes::{self, Gather, Kernel, Panel, SHORT, Strand, Target, disjoint};
use super::sum::{add, to_f64};
use super::{Block, Fold, Rows};
use crate::exec::number::{Number, Word};
use crate::exec::predicate::fill_value;
use crate::query::operation::Scalar;
use crate::stats::{Range, Stats};

/// A count of the values of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tally {
    /// All values.
    Count,
    /// NaN.
    Nan,
    /// Infinities.
    Infinite,
    /// Infinities, but the number only says whether there are any: so statistics can tell.
    AnyInfinite,
    /// Infinities and NaN, but the number only says whether there are any.
    AnyNotFinite,
    /// Values equal to a fill value after it was rounded to their type; NaN is equal to NaN.
    Null(Scalar),
}

/// Which bits a value of the kind has.
#[derive(Clone, Copy, Debug)]
enum Kind<W> {
    All,
    None,
    Some(Matching<W>),
}

/// Bits that lie, after masking, in a range.
#[derive(Clone, Copy, Debug)]
struct Matching<W> {
    mask: W,
    low: W,
    /// From the lowest to the highest.
    span: W,
}

impl<W: Word> Matching<W> {
    fn check_limit(mask: u64, low: u64, high: u64) -> Self {
        Self { mask: W::from_u64(mask), low: W::from_u64(low), span: W::from_u64(high - low) }
    }

    #[inline(always)]
    fn matches(&self, word: W) -> bool {
        (word & self.mask).minus(self.low) <= self.span
    }
}

impl Tally {
    fn kind<T: Number>(self) -> Kind<T::Word> {
        let ones: u64 = T::Word::ONES.into();
        // All bits but the sign, and those of an infinity: only what is NaN is above.
        let magnitude = ones >> 1;
        let infinity = match size_of::<T>() {
            2 => 0x7c00,
            4 => u64::from(f32::INFINITY.to_bits()),
            _ => f64::INFINITY.to_bits(),
        };
        let matching = |low, high| Kind::Some(Matching::check_limit(magnitude, low, high));
        match self {
            Self::Count => Kind::All,
            Self::Null(fill) => match fill_value::<T>(fill) {
                None => Kind::None,
                Some(fill) if fill.is_nan() => matching(infinity + 1, magnitude),
                Some(fill) if T::FLOAT && fill.to_f64() == 0.0 => matching(0, 0),
                Some(fill) => Kind::Some(Matching::check_limit(ones, fill.word().into(), fill.word().into())),
            },
            _ if !T::FLOAT => Kind::None,
            Self::Nan => matching(infinity + 1, magnitude),
            Self::Infinite | Self::AnyInfinite => matching(infinity, infinity),
            Self::AnyNotFinite => matching(infinity, magnitude),
        }
    }
}

/// Counts matching values in words of their own width.
impl<T: Number, const N: usize> Kernel<T, N> for Matching<T::Word> {
    type Lanes = [T::Word; N];
    #[inline(always)]
    fn start(&self) -> [T::Word; N] {
        [T::Word::default(); N]
    }
    #[inline(always)]
    fn step(&self, counts: &mut [T::Word; N], values: &[T; N]) {
        for lane in 0..N {
            counts[lane] += T::Word::one_if(self.matches(values[lane].word()));
        }
    }
}

/// Lanes are words of the elements' own width: they fill whole registers.
const LANES: usize = 32;

/// Adds counts of lanes to those of cells.
struct Counter<'a, W> {
    cells: &'a mut [u64],
    kind: Matching<W>,
}

impl<T: Number, const N: usize> Gather<T, N> for Counter<'_, T::Word> {
    type Kernel = Matching<T::Word>;
    // No more than the narrowest word can count.
    const STEPS: usize = 255;
    const NARROW: bool = true;

    #[inline(always)]
    fn kernel(&self, _: Target, _: &[T; N]) -> Matching<T::Word> {
        self.kind
    }

    #[inline(always)]
    fn take(&mut self, at: usize, lanes: &[T::Word; N], _: &[[T; N]], _: usize) {
        for lane in 0..N {
            self.cells[at] += lanes[lane].into();
        }
    }

    #[inline(always)]
    fn take_panel(&mut self, at: usize, lanes: &[T::Word; N], _: &Rows<'_, T>, panel: Panel) {
        for (count, &lane) in self.cells[panel.cells::<N>(at)].iter_mut().zip(&lanes[panel.skip..]) {
            *count += lane.into();
        }
    }

    #[inline(always)]
    fn take_strand(&mut self, at: usize, lanes: &[T::Word; N], strand: &Strand<'_, T, N>) {
        for lane in 0..N {
            self.cells[at + strand.column(lane)] += lanes[lane].into();
        }
    }
}

/// Counts matching values of one cell.
#[inline]
fn count<T: Number>(cells: &mut [u64], kind: Matching<T::Word>, at: usize, values: &[T]) {
    let mut rest = values;
    if values.len() >= SHORT {
        let mut counter = Counter { cells: &mut *cells, kind };
        rest = lanes::run::<T, _, LANES>(&mut counter, at, values);
    }
    for value in rest {
        cells[at] += u64::from(kind.matches(value.word()));
    }
}

impl Fold for Tally {
    /// How many values of each cell are of the kind.
    type Cells<T: Number> = Vec<u64>;

    fn cell_bytes<T: Number>(&self) -> usize {
        8
    }

    fn start<T: Number>(&self, block: &Block) -> Vec<u64> {
        vec![0; block.len()]
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut Vec<u64>, at: usize, values: &[T], _: u64) {
        match self.kind::<T>() {
            Kind::All => cells[at] += values.len() as u64,
            Kind::None => {}
            Kind::Some(kind) => count(cells, kind, at, values),
        }
    }

    fn rows<T: Number>(&self, cells: &mut Vec<u64>, at: usize, rows: &Rows<'_, T>) {
        match self.kind::<T>() {
            Kind::All => cells[at..at + rows.width].iter_mut().for_each(|count| *count += rows.count as u64),
            Kind::None => {}
            Kind::Some(kind) => {
                let mut counter = Counter { cells: &mut *cells, kind };
                let done = lanes::rows::<T, _, LANES>(&mut counter, at, rows);
                lanes::columns(rows, done, |column, _, values| count(cells, kind, at + column, values));
            }
        }
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut Vec<u64>, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut Vec<u64>, usize),
        (later, from): (&Vec<u64>, usize),
        count: usize,
    ) {
        add(&mut into[at..at + count], &later[from..from + count]);
    }

    fn merge_within<T: Number>(&self, cells: &mut Vec<u64>, at: usize, from: usize, count: usize) {
        let (into, later) = disjoint(cells, at, from, count);
        add(into, later);
    }

    fn takes_stats(&self) -> bool {
        !matches!(self, Self::Infinite | Self::Null(_))
    }

    fn absorb<T: Number>(&self, cells: &mut Vec<u64>, at: usize, stats: &Stats) {
        let infinite = match stats.range {
            Range::Float { min, max, .. } => u64::from(min.is_infinite()) + u64::from(max.is_infinite()),
            _ => 0,
        };
        cells[at] += match self {
            Self::Count => stats.count,
            Self::Nan => stats.nan_count,
            Self::AnyInfinite => infinite,
            Self::AnyNotFinite => infinite + stats.nan_count,
            Self::Infinite | Self::Null(_) => 0,
        };
    }

    fn finish<T: Number>(&self, cells: Vec<u64>) -> Vec<f64> {
        cells.into_iter().map(to_f64).collect()
    }
}
