//! The position of the least or the greatest value.

use super::single::Single;
use crate::exec::number::Number;

/// Which value is looked for. NaN is skipped; of equal values the first one counts. The result is an index, or −1 if
/// there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Arg {
    #[inline(always)]
    fn is_better<T: Number>(self, new: T, old: T) -> bool {
        match self {
            Self::Min => new < old,
            Self::Max => new > old,
        }
    }
}

impl Single for Arg {
    const INDEXED: bool = true;
    type State<T: Number> = Option<(T, u64)>;

    fn start<T: Number>(&self) -> Self::State<T> {
        None
    }

    #[inline(always)]
    fn add<T: Number>(&self, state: &mut Self::State<T>, value: T, index: u64) {
        if value.is_nan() {
            return;
        }
        match *state {
            // Values do not come in the order of their indices.
            Some((best, at)) if !self.is_better(value, best) && (value != best || at < index) => {}
            _ => *state = Some((value, index)),
        }
    }

    fn merge<T: Number>(&self, state: &mut Self::State<T>, later: &Self::State<T>) {
        if let Some((value, index)) = *later {
            self.add(state, value, index);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 values")]
    fn finish<T: Number>(&self, state: &Self::State<T>, put: &mut dyn FnMut(f64)) {
        put(state.map_or(-1.0, |(_, index)| index as f64));
    }
}
