//! Minimum and maximum of values.

use rayon::prelude::*;

use super::{PIECE, VALUE, is_worth_splitting};

/// Values compared in parallel: enough to fill the vector units of any CPU.
const LANES: usize = 16;

/// Statistics of values for packing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    /// The first value.
    pub(super) first: f64,
    /// The minimum; of equal ones (the two zeros) the first.
    pub(super) min: f64,
    /// The maximum.
    pub(super) max: f64,
}

/// The statistics of `values`; `None` without values, an error if one is not finite.
pub(super) fn extent(values: &[u8]) -> Result<Option<Extent>, ()> {
    let (range, all_finite) = over_pieces::<false>(values);
    if !all_finite {
        return Err(());
    }
    Ok(from_range(values, range))
}

/// The statistics of the finite `values`; `None` if there are none.
pub(super) fn finite_extent(values: &[u8]) -> Option<Extent> {
    let (range, _) = over_pieces::<true>(values);
    from_range(values, range)
}

/// Minimum and maximum, and the first piece that contains the minimum.
#[derive(Clone, Copy)]
struct Range {
    min: f64,
    max: f64,
    piece: usize,
}

/// The empty range.
const EMPTY: Range = Range { min: f64::INFINITY, max: f64::NEG_INFINITY, piece: 0 };

impl Range {
    /// Joins the range of later pieces: of equal minima the earlier one stays.
    fn join(self, later: Self) -> Self {
        let max = if later.max > self.max { later.max } else { self.max };
        if later.min < self.min { Self { max, ..later } } else { Self { max, ..self } }
    }
}

fn from_range(values: &[u8], range: Range) -> Option<Extent> {
    if range.min > range.max {
        return None;
    }
    let first = numbers(values).find(|value| value.is_finite())?;
    // The loops do not distinguish the two zeros, and the first one decides the sign of the reference.
    #[expect(clippy::float_cmp, reason = "looks for this very value")]
    let min = numbers(values.get(range.piece * PIECE * VALUE..)?).find(|&value| value == range.min)?;
    Some(Extent { first, min, max: range.max })
}

/// The range of all values (with `SKIP`: of the finite ones), and whether all are finite.
fn over_pieces<const SKIP: bool>(values: &[u8]) -> (Range, bool) {
    let piece = |(index, values): (usize, &[u8])| {
        let (range, all_finite) = over_piece::<SKIP>(values);
        (Range { piece: index, ..range }, all_finite)
    };
    let join = |one: (Range, bool), later: (Range, bool)| (one.0.join(later.0), one.1 && later.1);
    if is_worth_splitting(values) {
        values.par_chunks(PIECE * VALUE).enumerate().map(piece).reduce(|| (EMPTY, true), join)
    } else {
        values.chunks(PIECE * VALUE).enumerate().map(piece).fold((EMPTY, true), join)
    }
}

/// Bits that turn an exponent of all ones into a carry to the sign bit, see [`over_piece`].
const CARRY: u64 = (1 << 63) - f64::INFINITY.to_bits();

fn over_piece<const SKIP: bool>(values: &[u8]) -> (Range, bool) {
    let mut min = [f64::INFINITY; LANES];
    let mut max = [f64::NEG_INFINITY; LANES];
    let mut carries = [0u64; LANES];
    let mut compare = |lane: usize, bits: u64| {
        // Without its sign, a non-finite value is at least infinity: adding the distance from infinity to the sign bit sets that
        // bit. Unlike a comparison this is vectorized on every CPU.
        let carry = (bits & (u64::MAX >> 1)).wrapping_add(CARRY);
        let value = f64::from_bits(bits);
        let skipped = SKIP && carry >> 63 == 1;
        let low = if skipped { f64::INFINITY } else { value };
        let high = if skipped { f64::NEG_INFINITY } else { value };
        min[lane] = if low < min[lane] { low } else { min[lane] };
        max[lane] = if high > max[lane] { high } else { max[lane] };
        carries[lane] |= carry;
    };
    let groups = values.as_chunks::<{ LANES * VALUE }>();
    for group in groups.0 {
        for (lane, bytes) in group.as_chunks::<VALUE>().0.iter().enumerate() {
            compare(lane, u64::from_le_bytes(*bytes));
        }
    }
    for (lane, bytes) in groups.1.as_chunks::<VALUE>().0.iter().enumerate() {
        compare(lane, u64::from_le_bytes(*bytes));
    }
    let mut range = EMPTY;
    for lane in 0..LANES {
        range = range.join(Range { min: min[lane], max: max[lane], piece: 0 });
    }
    (range, carries.iter().fold(0, |all, carry| all | carry) >> 63 == 0)
}

fn numbers(values: &[u8]) -> impl Iterator<Item = f64> {
    values.as_chunks::<VALUE>().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}
