//! Covariance and correlation matrices of the columns of a table, in one visit.

use tercet_core::tensor::{AxisSlice, OutOfMemory};
use tercet_core::{Selection, with_element};
use tercet_kernel::{Work, vectorized};

use super::drive::as_values;
use super::job::Job;
use super::number::Number;
use super::predicate::Predicate;
use super::task::to_usize;
use crate::error::ErrorKind;
use crate::query::resolved::Operation;

/// A square matrix with one number per pair of variables.
#[derive(Debug)]
pub(crate) struct Matrix {
    /// Values, row-major.
    pub(crate) values: Vec<f64>,
    /// Number of variables.
    pub(crate) order: usize,
    pub(crate) elements: u64,
}

/// Bytes of a band of observations, as f64.
const BAND: u64 = if cfg!(test) { 256 } else { 8 << 20 };
/// Maximum number of partial results.
const SEGMENTS: usize = 8;

/// Covariance or correlation matrix of the variables. `operation` reduces the axis of the observations.
pub(crate) fn matrix(job: &Job<'_>, operation: &Operation, correlation: bool) -> Result<Matrix, ErrorKind> {
    let axis = operation.axes.first().copied().unwrap_or(0);
    let axes = job.plan.selection.axes();
    let (observations, variables) = (axes[axis].count(), axes[1 - axis].count());
    let order = to_usize(variables);
    let bands = bands(job, axis, observations, variables);
    let each = bands.len().div_ceil(SEGMENTS).max(1);
    let segments: Vec<&[(u64, u64)]> = bands.chunks(each).collect();
    let partials = with_element!(job.plan.grid.element(), |T| job.each(&segments, |bands| {
        let mut total = Moments::new(order);
        for band in *bands {
            job.progress.check()?;
            total.merge(&band_moments::<T>(job, axis, *band, order)?);
        }
        Ok(total)
    }))?;
    let mut total = Moments::new(order);
    for partial in &partials {
        total.merge(partial);
    }
    job.count(job.plan.total_stored_bytes());
    let values = if correlation { total.correlations() } else { total.covariances() };
    Ok(Matrix { values, order, elements: job.plan.element_count() })
}

/// Ranges of observations that fit in memory; complete chunks where those fit.
fn bands(job: &Job<'_>, axis: usize, observations: u64, variables: u64) -> Vec<(u64, u64)> {
    let most = (BAND.min(job.budget.max(1)) / (variables * 8)).max(1);
    let slice = job.plan.selection.axes()[axis];
    let chunk = job.plan.grid.chunk_shape()[axis];
    let mut bands = Vec::new();
    let mut start = 0;
    while start < observations {
        let mut end = (start + most).min(observations);
        // Back to a chunk boundary, if the band crosses one.
        let last_chunk = (slice.start + (end - 1) * slice.step) / chunk * chunk;
        let edge = last_chunk.saturating_sub(slice.start).div_ceil(slice.step);
        if end < observations && edge > start {
            end = edge;
        }
        bands.push((start, end));
        start = end;
    }
    bands
}

/// Moments of a band of observations.
fn band_moments<T: Number>(
    job: &Job<'_>,
    axis: usize,
    (start, end): (u64, u64),
    order: usize,
) -> Result<Moments, ErrorKind> {
    let mut axes: Vec<AxisSlice> = job.plan.selection.axes().to_vec();
    axes[axis] = super::chunk_lookup::clip(axes[axis], &(start..end));
    let grid = &job.plan.grid;
    let selection = Selection::new(axes, grid.shape())?;
    let rows = to_usize(end - start);
    let mut bytes = vec![0; rows * order * size_of::<T>()];
    job.dataset.fill(grid, &selection, &mut bytes, &tercet_core::progress::NoProgress)?;
    let count = rows * order;
    let mut values: Vec<f64> = Vec::new();
    values.try_reserve_exact(count).map_err(|_| OutOfMemory { bytes: count * 8 })?;
    if let Some(decode) = &job.resolved.values.decode {
        values.resize(count, 0.0);
        decode.gather(T::ELEMENT, &bytes, 1, &mut values);
    } else {
        let mut aligned = Vec::new();
        let missing = job.resolved.missing_filter(T::ELEMENT);
        let missing = missing.map(|filter| Predicate::<T>::new(&filter, job.resolved.fills()));
        let is_missing = |value: T| missing.as_ref().is_some_and(|missing| !missing.passes(value));
        let number = |&value: &T| if is_missing(value) { f64::NAN } else { value.to_f64() };
        values.extend(as_values::<T>(&bytes, &mut aligned).iter().map(number));
    }
    // Observations are stored one after the other.
    let table = if axis == 0 {
        values
    } else {
        (0..rows)
            .flat_map(|row| (0..order).map(move |of| (row, of)))
            .map(|(row, of)| values[of * rows + row])
            .collect()
    };
    if let Some(at) = table.iter().position(|value| !value.is_finite()) {
        let (row, of) = (start + (at / order) as u64, (at % order) as u64);
        let position = if axis == 0 { [row, of] } else { [of, row] };
        return Err(ErrorKind::NotFinite { dataset: job.dataset.name().into(), position: position.into() });
    }
    Ok(Moments::from_table(table, order))
}

/// Computes the moments of consecutive observations, and replaces the observations with differences from the means.
struct Distances<'t> {
    table: &'t mut [f64],
    order: usize,
}

impl Work for Distances<'_> {
    type Output = Moments;

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 observations")]
    fn work(self) -> Moments {
        let Self { table, order } = self;
        let n = (table.len() / order) as f64;
        let mut moments = Moments { n, ..Moments::new(order) };
        for row in table.chunks_exact(order) {
            for (mean, value) in moments.means.iter_mut().zip(row) {
                *mean += value;
            }
        }
        for mean in &mut moments.means {
            *mean /= n;
        }
        for row in table.chunks_exact_mut(order) {
            for ((value, mean), rest) in row.iter_mut().zip(&moments.means).zip(&mut moments.rests) {
                *value -= mean;
                *rest += *value / n;
            }
        }
        // Four observations at a time: the matrix is larger than they are.
        let mut four = table.chunks_exact(4 * order);
        for rows in &mut four {
            let [first, second, third, fourth] =
                [0, 1, 2, 3].map(|row| &rows[row * order..(row + 1) * order]);
            for i in 0..order {
                let products = &mut moments.products[i * order + i..(i + 1) * order];
                let others = first[i..].iter().zip(&second[i..]).zip(third[i..].iter().zip(&fourth[i..]));
                for (product, ((x, y), (z, w))) in products.iter_mut().zip(others) {
                    *product += (first[i] * x + second[i] * y) + (third[i] * z + fourth[i] * w);
                }
            }
        }
        for row in four.remainder().chunks_exact(order) {
            for i in 0..order {
                let products = &mut moments.products[i * order + i..(i + 1) * order];
                for (product, other) in products.iter_mut().zip(&row[i..]) {
                    *product += row[i] * other;
                }
            }
        }
        // Differences are from rounded means.
        for i in 0..order {
            let products = &mut moments.products[i * order + i..(i + 1) * order];
            for (product, rest) in products.iter_mut().zip(&moments.rests[i..]) {
                *product -= n * moments.rests[i] * rest;
            }
        }
        moments
    }
}

/// Means, and sums of products of differences from them.
struct Moments {
    n: f64,
    /// Means, and their rounding errors.
    means: Vec<f64>,
    rests: Vec<f64>,
    /// Upper triangle only, with the diagonal.
    products: Vec<f64>,
}

impl Moments {
    fn new(order: usize) -> Self {
        let zeros = vec![0.0; order];
        Self { n: 0.0, means: zeros.clone(), rests: zeros, products: vec![0.0; order * order] }
    }

    fn from_table(mut table: Vec<f64>, order: usize) -> Self {
        vectorized(Distances { table: &mut table, order })
    }

    /// Merges moments by Chan's rule.
    fn merge(&mut self, later: &Self) {
        if later.n == 0.0 {
            return;
        }
        if self.n == 0.0 {
            self.n = later.n;
            self.means.clone_from(&later.means);
            self.rests.clone_from(&later.rests);
            self.products.clone_from(&later.products);
            return;
        }
        let order = self.means.len();
        let n = self.n + later.n;
        let distance = |i: usize| (later.means[i] - self.means[i]) + (later.rests[i] - self.rests[i]);
        let distances: Vec<f64> = (0..order).map(distance).collect();
        let weight = self.n * later.n / n;
        for i in 0..order {
            for j in i..order {
                let at = i * order + j;
                self.products[at] += later.products[at] + distances[i] * distances[j] * weight;
            }
        }
        for (i, distance) in distances.into_iter().enumerate() {
            let (mean, off) = (self.means[i], self.rests[i] + distance * (later.n / n));
            let sum = mean + off;
            self.means[i] = sum;
            self.rests[i] = (mean - (sum - off)) + (off - (sum - (sum - off)));
        }
        self.n = n;
    }

    /// Completes a square matrix from its upper triangle.
    fn square(&self, value: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let order = self.means.len();
        let pairs = (0..order).flat_map(|i| (0..order).map(move |j| (i.min(j), i.max(j))));
        pairs.map(|(i, j)| value(i, j) + 0.0).collect()
    }

    fn covariances(&self) -> Vec<f64> {
        let order = self.means.len();
        self.square(|i, j| self.products[i * order + j] / self.n)
    }

    /// Correlation matrix: 1 on the diagonal; 0 for a constant variable.
    fn correlations(&self) -> Vec<f64> {
        let order = self.means.len();
        let deviation = |i: usize| self.products[i * order + i].sqrt();
        self.square(|i, j| {
            let scale = deviation(i) * deviation(j);
            match (i == j, scale == 0.0) {
                (true, _) => 1.0,
                (_, true) => 0.0,
                _ => (self.products[i * order + j] / deviation(i) / deviation(j)).clamp(-1.0, 1.0),
            }
        })
    }
}
