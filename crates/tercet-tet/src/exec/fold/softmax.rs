//! What softmax divides by.

use super::single::Single;
use crate::exec::number::Number;

/// `[max, Σexp(x − max)]`: the greatest value that is not NaN, and the sum over the finite ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoftmaxTotal;

/// The greatest finite value so far with the sum relative to it, and whether there was an infinity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relative {
    finite: f64,
    total: f64,
    greatest: f64,
}

impl Relative {
    fn add(&mut self, finite: f64, total: f64) {
        if total == 0.0 {
            return;
        }
        if finite > self.finite {
            self.total = self.total * (self.finite - finite).exp() + total;
            self.finite = finite;
        } else {
            self.total += total * (finite - self.finite).exp();
        }
    }
}

impl Single for SoftmaxTotal {
    const WIDTH: usize = 2;
    type State<T: Number> = Relative;

    fn start<T: Number>(&self) -> Relative {
        Relative { finite: f64::NEG_INFINITY, total: 0.0, greatest: f64::NAN }
    }

    #[inline]
    fn add<T: Number>(&self, state: &mut Relative, value: T, _: u64) {
        let value = value.to_f64();
        state.greatest = state.greatest.max(value);
        if value.is_finite() {
            state.add(value, 1.0);
        }
    }

    fn merge<T: Number>(&self, state: &mut Relative, later: &Relative) {
        state.greatest = state.greatest.max(later.greatest);
        state.add(later.finite, later.total);
    }

    fn finish<T: Number>(&self, state: &Relative, put: &mut dyn FnMut(f64)) {
        put(state.greatest);
        // Relative to an infinite maximum every finite value vanishes.
        put(if state.greatest.is_infinite() { 0.0 } else { state.total });
    }
}
