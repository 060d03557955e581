//! Bounds: converts numbers of a query to values of an element type.

use std::cmp::Ordering;

use crate::exec::number::{Number, Rank};
use crate::query::operation::Scalar;

/// Fill value: a number converted to a type, rounded to the nearest float. `None` if the number is out of range, or has
/// a fraction and the type is an integer type.
pub(crate) fn fill_value<T: Number>(number: Scalar) -> Option<T> {
    match number {
        Scalar::Whole(whole) => T::nearest_i128(whole).filter(|value| !value.is_infinite()),
        Scalar::Float(float) if T::FLOAT => {
            Some(T::nearest_f64(float)).filter(|value| !value.is_infinite() || float.is_infinite())
        }
        Scalar::Float(float) => whole(float).filter(|_| float.fract() == 0.0).and_then(T::nearest_i128),
    }
}

/// Minimum value that is greater than a number, or equal to it if `inclusive`.
pub(super) fn at_least<T: Number>(number: Scalar, inclusive: bool) -> Option<T::Rank> {
    if T::FLOAT {
        let near = nearest::<T::Rank>(number);
        return match order(near.to_f64(), number)? {
            Ordering::Greater => Some(near),
            Ordering::Equal if inclusive => Some(near),
            _ => Some(near.up()).filter(|&next| next > near),
        };
    }
    let least = match number {
        Scalar::Whole(whole) => whole.saturating_add(i128::from(!inclusive)),
        Scalar::Float(float) if inclusive => whole_or_end(float.ceil())?,
        Scalar::Float(float) => whole_or_end(float.floor())?.saturating_add(1),
    };
    let (lowest, highest) = (T::Rank::LOWEST.to_i128(), T::Rank::HIGHEST.to_i128());
    if least > highest { None } else { T::Rank::nearest_i128(least.max(lowest)) }
}

/// Maximum value that is less than a number, or equal to it if `inclusive`.
pub(super) fn at_most<T: Number>(number: Scalar, inclusive: bool) -> Option<T::Rank> {
    if T::FLOAT {
        let near = nearest::<T::Rank>(number);
        return match order(near.to_f64(), number)? {
            Ordering::Less => Some(near),
            Ordering::Equal if inclusive => Some(near),
            _ => Some(near.down()).filter(|&next| next < near),
        };
    }
    let most = match number {
        Scalar::Whole(whole) => whole.saturating_sub(i128::from(!inclusive)),
        Scalar::Float(float) if inclusive => whole_or_end(float.floor())?,
        Scalar::Float(float) => whole_or_end(float.ceil())?.saturating_sub(1),
    };
    let (lowest, highest) = (T::Rank::LOWEST.to_i128(), T::Rank::HIGHEST.to_i128());
    if most < lowest { None } else { T::Rank::nearest_i128(most.min(highest)) }
}

/// Nearest float of a type, possibly infinite.
fn nearest<R: Rank>(number: Scalar) -> R {
    match number {
        Scalar::Whole(whole) => R::nearest_i128(whole).unwrap_or_default(),
        Scalar::Float(float) => R::nearest_f64(float),
    }
}

/// Compares a float with a number, exactly.
fn order(float: f64, number: Scalar) -> Option<Ordering> {
    match number {
        Scalar::Float(number) => float.partial_cmp(&number),
        Scalar::Whole(number) => match whole(float) {
            Some(whole) => Some(whole.cmp(&number).then(float.fract().partial_cmp(&0.0)?)),
            None => float.partial_cmp(&0.0),
        },
    }
}

/// Integer part, if it fits in an i128.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(float: f64) -> Option<i128> {
    const END: f64 = f64::from_bits((1023 + 127) << 52);
    (-END..END).contains(&float).then_some(float as i128)
}

/// Integer part, or the nearest i128.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn whole_or_end(float: f64) -> Option<i128> {
    (!float.is_nan()).then_some(float as i128)
}
