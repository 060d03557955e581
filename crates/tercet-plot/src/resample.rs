//! Means of blocks: fewer pixels than values. More pixels than values repeat them.

/// The range of values of a pixel, with fractions: pixel `number` of `pixels` over `values`.
fn extent(number: usize, pixels: usize, values: usize) -> (f64, f64) {
    let at = |number: usize| as_f64(number) * as_f64(values) / as_f64(pixels.max(1));
    (at(number), at(number + 1))
}

/// The value of each pixel: the mean of the values that it covers, weighted by the covered part; without NaN and infinities. Pixels smaller than a
/// value take the value at their centre.
pub(crate) fn field(
    values: &[f64],
    (rows, columns): (usize, usize),
    (to_rows, to_columns): (usize, usize),
) -> Vec<f64> {
    // First along rows, then along columns. Sums and weights are kept apart, so that missing values have no weight.
    let horizontal = weights(columns, to_columns);
    let vertical = weights(rows, to_rows);
    let mut sums = vec![(0.0, 0.0); rows * to_columns];
    for row in 0..rows {
        for (column, parts) in horizontal.iter().enumerate() {
            let pixel = &mut sums[row * to_columns + column];
            for &(from, weight) in parts {
                let value = values[row * columns + from];
                if value.is_finite() {
                    *pixel = (pixel.0 + value * weight, pixel.1 + weight);
                }
            }
        }
    }
    let mut out = Vec::with_capacity(to_rows * to_columns);
    for parts in &vertical {
        for column in 0..to_columns {
            let mut total = (0.0, 0.0);
            for &(from, weight) in parts {
                let (sum, part) = sums[from * to_columns + column];
                total = (total.0 + sum * weight, total.1 + part * weight);
            }
            out.push(if total.1 > 0.0 { total.0 / total.1 } else { f64::NAN });
        }
    }
    out
}

/// The values of each pixel and their weights.
fn weights(values: usize, pixels: usize) -> Vec<Vec<(usize, f64)>> {
    let one = |number: usize| {
        let (start, end) = extent(number, pixels, values);
        if values <= pixels {
            return vec![(to_index(f64::midpoint(start, end), values), 1.0)];
        }
        let (first, last) = (to_index(start, values), to_index(end.ceil() - 1.0, values));
        let covered = |value: usize| (as_f64(value + 1).min(end) - as_f64(value).max(start)).max(0.0);
        (first..=last).map(|value| (value, covered(value))).filter(|(_, weight)| *weight > 0.0).collect()
    };
    (0..pixels).map(one).collect()
}

#[expect(clippy::cast_precision_loss, reason = "numbers of pixels")]
pub(crate) fn as_f64(number: usize) -> f64 {
    number as f64
}

/// The pixel of a position.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(crate) fn to_index(position: f64, len: usize) -> usize {
    (position.max(0.0) as usize).min(len.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_means_of_the_values_that_they_cover() {
        assert_eq!(field(&[1.0, 3.0, 5.0, 7.0], (1, 4), (1, 2)), [2.0, 6.0]);
        assert_eq!(
            field(&[1.0, 2.0, 6.0], (1, 3), (1, 2)),
            [(1.0 + 2.0 * 0.5) / 1.5, (2.0 * 0.5 + 6.0) / 1.5]
        );
        assert_eq!(field(&[1.0, 2.0, 3.0, 4.0], (2, 2), (1, 1)), [2.5]);
        assert_eq!(field(&[1.0, 2.0], (1, 2), (2, 4)), [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn missing_values_have_no_weight() {
        let nan = f64::NAN;
        assert_eq!(field(&[1.0, nan, nan, 3.0], (1, 4), (1, 2)), [1.0, 3.0]);
        assert!(field(&[nan, nan], (1, 2), (1, 1))[0].is_nan());
        assert_eq!(field(&[f64::INFINITY, 3.0], (1, 2), (1, 1)), [3.0]);
        assert!(field(&[f64::NEG_INFINITY], (1, 1), (1, 1))[0].is_nan());
    }

    #[test]
    fn the_mean_is_kept() {
        let values: Vec<f64> = (0..35).map(|n| f64::from(n * n % 11)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / as_f64(values.len());
        for pixels in [(1, 1), (5, 7), (3, 2), (2, 6), (4, 5)] {
            assert!((mean(&field(&values, (5, 7), pixels)) - mean(&values)).abs() < 1e-9, "{pixels:?}");
        }
    }
}
