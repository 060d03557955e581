//! Exact sums, rounded once, and exact variances.

/// Exact sum of finite floats, as a list of non-overlapping partial sums.
pub(super) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for mut x in values {
        let mut kept = 0;
        for i in 0..partials.len() {
            let mut y = partials[i];
            if x.abs() < y.abs() {
                std::mem::swap(&mut x, &mut y);
            }
            let high = x + y;
            let low = y - (high - x);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            x = high;
        }
        partials.truncate(kept);
        partials.push(x);
    }
    partials.iter().rev().sum()
}

/// Exact sum of any floats.
pub(super) fn sum_any(values: &[f64]) -> f64 {
    if values.iter().all(|x| x.is_finite()) {
        return sum(values.iter().copied());
    }
    values.iter().filter(|x| !x.is_finite()).sum()
}

/// Variance as NumPy computes it: the mean by pairwise sums, then the mean of squared differences from it.
pub(super) fn two_passes(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = pairwise(values) / n;
    let squares: Vec<f64> = values.iter().map(|x| (x - mean) * (x - mean)).collect();
    pairwise(&squares) / n
}

fn pairwise(values: &[f64]) -> f64 {
    if values.len() < 8 {
        return values.iter().sum();
    }
    if values.len() > 128 {
        let (low, high) = values.split_at(values.len() / 16 * 8);
        return pairwise(low) + pairwise(high);
    }
    let (groups, tail) = values.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for group in groups {
        lanes.iter_mut().zip(group).for_each(|(lane, x)| *lane += x);
    }
    let pair = |at: usize| lanes[at] + lanes[at + 1];
    tail.iter().fold((pair(0) + pair(2)) + (pair(4) + pair(6)), |sum, x| sum + x)
}

/// Error of a variance in units of 2^-53 of it. The values are integers below 2^36, multiplied by a power of two; there
/// are at most 2^14 of them.
pub(super) fn variance_error(found: f64, values: &[i64], scale: i32) -> f64 {
    let n = values.len() as i128;
    let (sum, squares) = values.iter().fold((0i128, 0i128), |(sum, squares), &x| {
        (sum + i128::from(x), squares + i128::from(x) * i128::from(x))
    });
    // n² · variance: an integer.
    let exact = n * squares - sum * sum;
    // The variance of the integers, as digits · 2^exponent.
    let bits = (found * 2f64.powi(-2 * scale)).to_bits();
    let digits = i128::from(bits & ((1 << 52) - 1) | 1 << 52) * n * n;
    let exponent = (bits >> 52) as i32 - 1075;
    let (digits, exact_digits) =
        if exponent >= 0 { (digits << exponent, exact) } else { (digits, exact << -exponent) };
    (digits - exact_digits).abs() as f64 / exact_digits as f64 * 2f64.powi(53)
}
