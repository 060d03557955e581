//! Term scores.
//!
//! The native ranking is BM25 with `b = 0`, without length normalization. It is computed in `f32` in the order written here,
//! so that every implementation gets bit-identical scores.

/// Term frequency saturation.
pub const K1: f32 = 1.2;

/// The inverse document frequency of a term that occurs in `found` of `documents` documents.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the format specifies it")]
pub fn idf(documents: u64, found: u64) -> f32 {
    let (n, df) = (documents as f64, found.min(documents) as f64);
    ((n - df + 0.5) / (df + 0.5) + 1.0).ln() as f32
}

/// The score of a term with this frequency.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "the format specifies it")]
pub fn term(idf: f32, frequency: u32) -> f32 {
    let f = frequency as f32;
    idf * f * (K1 + 1.0) / (K1 + f)
}
