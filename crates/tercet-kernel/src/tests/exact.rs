//! Exact sums, rounded once.

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
