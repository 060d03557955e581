//! The extents of an array.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

/// The extents of an array, outermost axis first.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Shape(Vec<u64>);

impl Shape {
    /// A shape with these extents.
    pub fn new(extents: impl Into<Vec<u64>>) -> Self {
        Self(extents.into())
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of elements, unless it overflows. A shape without axes has one.
    pub fn elements(&self) -> Option<u64> {
        self.0.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent))
    }

    /// The number of bytes with elements of `size` bytes, unless it overflows.
    pub fn bytes(&self, size: usize) -> Option<u64> {
        self.elements()?.checked_mul(size as u64)
    }
}

impl Deref for Shape {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl AsRef<[u64]> for Shape {
    fn as_ref(&self) -> &[u64] {
        &self.0
    }
}

impl From<&[u64]> for Shape {
    fn from(extents: &[u64]) -> Self {
        Self(extents.to_vec())
    }
}

impl<const N: usize> From<[u64; N]> for Shape {
    fn from(extents: [u64; N]) -> Self {
        Self(extents.to_vec())
    }
}

impl From<Vec<u64>> for Shape {
    fn from(extents: Vec<u64>) -> Self {
        Self(extents)
    }
}

/// Extents joined by `×`: `7×5`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        for (axis, extent) in self.0.iter().enumerate() {
            if axis > 0 {
                f.write_str("×")?;
            }
            write!(f, "{extent}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
