//! A decoded object.

use std::fmt;

use tercet_core::tensor::{Buffer, Element};
use tercet_core::{Shape, TensorView};

use crate::dtype::Dtype;

/// A decoded object: dense, in the order in which it was stored, little-endian.
pub struct Array {
    dtype: Dtype,
    shape: Shape,
    bytes: Buffer,
}

impl Array {
    pub(crate) fn new(dtype: Dtype, shape: Shape, bytes: Buffer) -> Self {
        Self { dtype, shape, bytes }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The extents. A scalar has none.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes, little-endian. A bitmask is packed, first element in the highest bit.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The elements in place: if the type is right and the host is little-endian.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        self.view()?.as_slice()
    }

    /// The elements, copied. `None` if the type is another one.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        self.view()?.to_vec()
    }

    /// The array as the rest of the workspace sees it. `None` for types that only messages have.
    pub fn view(&self) -> Option<TensorView<'_>> {
        TensorView::new(self.dtype.core()?, &self.shape, &self.bytes).ok()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} {}, {} bytes)", self.dtype, self.shape, self.bytes.len())
    }
}
