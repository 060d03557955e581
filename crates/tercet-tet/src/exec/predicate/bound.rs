//! Numbers of a query as values of an element type.

use std::cmp::Ordering;

use crate::exec::number::{Number, Rank};
use crate::query::operation::Scalar;

/// A number converted to a type: rounded to the nearest float. There is none if it is no integer,
/// or beyond all of them.
pub(crate) fn fill_value<T: Number>(number: Scalar) -> Option<T> {
    match number {
        Scalar::Whole(whole) => T::nearest_i128(whole).filter(|value| !value.is_infinite()),
        Scalar::Float(float) if T::FLOAT => {
            Some(T::nearest_f64(float)).filter(|value| !value.is_infinite() || float.is_infinite())
        }
        Scalar::Float(float) => whole(float).filter(|_| float.fract() == 0.0).and_then(T::nearest_i128),
    }
}

/// The least value that is at least a number, or above it.
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

/// The greatest value that is at most a number, or below it.
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

/// The nearest float of a type; it may be infinite.
fn nearest<R: Rank>(number: Scalar) -> R {
    match number {
        Scalar::Whole(whole) => R::nearest_i128(whole).unwrap_or_default(),
        Scalar::Float(float) => R::nearest_f64(float),
    }
}

/// How a float compares with a number, exactly.
fn order(float: f64, number: Scalar) -> Option<Ordering> {
    match number {
        Scalar::Float(number) => float.partial_cmp(&number),
        Scalar::Whole(number) => match whole(float) {
            Some(whole) => Some(whole.cmp(&number).then(float.fract().partial_cmp(&0.0)?)),
            None => float.partial_cmp(&0.0),
        },
    }
}

/// The whole part, if it is an i128.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(float: f64) -> Option<i128> {
    const END: f64 = f64::from_bits((1023 + 127) << 52);
    (-END..END).contains(&float).then_some(float as i128)
}

/// The whole part, or the i128 nearest to it.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn whole_or_end(float: f64) -> Option<i128> {
    (!float.is_nan()).then_some(float as i128)
}
