//! Covariance and correlation matrices.

use crate::simd::{Work, vectorized};
use crate::sum::compensated;

/// Maximum number of observations whose products are added without compensation.
const BLOCK: usize = 32;

/// Computes the sums of consecutive observations, and replaces the observations with differences from the means.
struct Distances<'t> {
    table: &'t mut [f64],
    order: usize,
}

impl Work for Distances<'_> {
    type Output = Covariance;

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 observations")]
    fn work(self) -> Covariance {
        let Self { table, order } = self;
        let n = (table.len() / order) as f64;
        let mut sums = Covariance { n, ..Covariance::new(order) };
        for row in table.chunks_exact(order) {
            for (mean, value) in sums.means.iter_mut().zip(row) {
                *mean += value;
            }
        }
        for mean in &mut sums.means {
            *mean /= n;
        }
        for row in table.chunks_exact_mut(order) {
            for ((value, mean), rest) in row.iter_mut().zip(&sums.means).zip(&mut sums.rests) {
                *value -= mean;
                *rest += *value / n;
            }
        }
        let mut block = vec![0.0; order * order];
        for observations in table.chunks(BLOCK * order) {
            add_products(&mut block, observations, order);
            let products = sums.products.iter_mut().zip(&mut sums.lost);
            for ((product, lost), more) in products.zip(&mut block) {
                compensated(product, lost, *more);
                *more = 0.0;
            }
        }
        // Differences are from rounded means.
        for i in 0..order {
            let row = i * order + i..(i + 1) * order;
            let products = sums.products[row.clone()].iter_mut().zip(&mut sums.lost[row]);
            for ((product, lost), rest) in products.zip(&sums.rests[i..]) {
                compensated(product, lost, -n * sums.rests[i] * rest);
            }
        }
        sums
    }
}

/// Adds the products of some observations to the upper triangle of a matrix.
#[inline(always)]
fn add_products(products: &mut [f64], observations: &[f64], order: usize) {
    // Four observations at a time: the matrix is larger than they are.
    let mut four = observations.chunks_exact(4 * order);
    for rows in &mut four {
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|row| &rows[row * order..(row + 1) * order]);
        for i in 0..order {
            let products = &mut products[i * order + i..(i + 1) * order];
            let others = first[i..].iter().zip(&second[i..]).zip(third[i..].iter().zip(&fourth[i..]));
            for (product, ((x, y), (z, w))) in products.iter_mut().zip(others) {
                *product += (first[i] * x + second[i] * y) + (third[i] * z + fourth[i] * w);
            }
        }
    }
    for row in four.remainder().chunks_exact(order) {
        for i in 0..order {
            let products = &mut products[i * order + i..(i + 1) * order];
            for (product, other) in products.iter_mut().zip(&row[i..]) {
                *product += row[i] * other;
            }
        }
    }
}

/// Covariance of variables: their means, and sums of products of differences from them. Parts are merged.
#[derive(Clone, Debug)]
pub struct Covariance {
    n: f64,
    /// Means, and their rounding errors.
    means: Vec<f64>,
    rests: Vec<f64>,
    /// Upper triangle only, with the diagonal; and the rounding errors of the additions.
    products: Vec<f64>,
    lost: Vec<f64>,
}

impl Covariance {
    /// No observations of `order` variables.
    pub fn new(order: usize) -> Self {
        let (zeros, matrix) = (vec![0.0; order], vec![0.0; order * order]);
        Self { n: 0.0, means: zeros.clone(), rests: zeros, products: matrix.clone(), lost: matrix }
    }

    /// Observations one after the other, each with the values of all variables.
    pub fn from_table(mut table: Vec<f64>, order: usize) -> Self {
        vectorized(Distances { table: &mut table, order })
    }

    /// Merges later observations, by Chan's rule.
    pub fn merge(&mut self, later: &Self) {
        if later.n == 0.0 {
            return;
        }
        if self.n == 0.0 {
            self.clone_from(later);
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
                let (product, lost) = (&mut self.products[at], &mut self.lost[at]);
                compensated(product, lost, later.products[at]);
                compensated(product, lost, distances[i] * distances[j] * weight);
                *lost += later.lost[at];
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

    /// Sum of the products of two variables.
    fn product(&self, i: usize, j: usize) -> f64 {
        let at = i * self.means.len() + j;
        let product = self.products[at];
        if product.is_finite() { product + self.lost[at] } else { product }
    }

    /// Covariance matrix, row-major.
    pub fn covariances(&self) -> Vec<f64> {
        self.square(|i, j| self.product(i, j) / self.n)
    }

    /// Correlation matrix: 1 on the diagonal; 0 for a constant variable.
    pub fn correlations(&self) -> Vec<f64> {
        // Rounding errors may exceed sums of squares that are almost 0.
        let deviation = |i: usize| self.product(i, i).max(0.0).sqrt();
        self.square(|i, j| {
            let scale = deviation(i) * deviation(j);
            match (i == j, scale == 0.0) {
                (true, _) => 1.0,
                (_, true) => 0.0,
                _ => (self.product(i, j) / deviation(i) / deviation(j)).clamp(-1.0, 1.0),
            }
        })
    }
}
