//! Owned and borrowed arrays.

use std::fmt;

use super::buffer::OutOfMemory;
use super::{Buffer, DType, Scalar, Shape};

/// A borrowed array: dense, row-major, little-endian.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    dtype: DType,
    shape: &'a [u64],
    bytes: &'a [u8],
}

/// The error of bytes whose number does not fit shape and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeMismatch {
    /// The shape.
    pub shape: Shape,
    /// The element type.
    pub dtype: DType,
    /// The number of bytes.
    pub bytes: u64,
}

impl fmt::Display for ShapeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes are not an array of shape {} and type {}", self.bytes, self.shape, self.dtype)
    }
}

impl std::error::Error for ShapeMismatch {}

/// Why values are not an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromVecError {
    /// Their number does not fit the shape.
    Shape(ShapeMismatch),
    /// There is no memory for a copy.
    Memory(OutOfMemory),
}

impl fmt::Display for FromVecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FromVecError {}

impl<'a> TensorView<'a> {
    /// A view of row-major little-endian bytes.
    pub fn new(dtype: impl Into<DType>, shape: &'a [u64], bytes: &'a [u8]) -> Result<Self, ShapeMismatch> {
        let dtype = dtype.into();
        // An array with an empty axis has no elements, however long the others are.
        let elements = if shape.contains(&0) { Some(0) } else { Shape::from(shape).elements() };
        let expected = elements.and_then(|elements| dtype.byte_len(elements));
        if expected != Some(bytes.len() as u64) {
            return Err(ShapeMismatch { shape: shape.into(), dtype, bytes: bytes.len() as u64 });
        }
        Ok(Self { dtype, shape, bytes })
    }

    /// A view of a slice of values, without a copy. Little-endian hosts only.
    #[cfg(target_endian = "little")]
    pub fn from_slice<T: Scalar>(shape: &'a [u64], values: &'a [T]) -> Result<Self, ShapeMismatch> {
        Self::new(T::DTYPE, shape, bytemuck::cast_slice(values))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// The bytes: row-major, little-endian.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements without a copy, if the type matches, the bytes are aligned and the host is little-endian.
    pub fn as_slice<T: Scalar>(&self) -> Option<&'a [T]> {
        if T::DTYPE != self.dtype || cfg!(target_endian = "big") {
            return None;
        }
        bytemuck::try_cast_slice(self.bytes).ok()
    }

    /// The elements, copied; `None` if the type differs.
    pub fn to_vec<T: Scalar>(&self) -> Option<Vec<T>> {
        if T::DTYPE != self.dtype {
            return None;
        }
        let elements = self.bytes.chunks_exact(size_of::<T>());
        Some(elements.map(|element| bytemuck::pod_read_unaligned::<T>(element).swap_le()).collect())
    }
}

/// An owned array: dense, row-major, little-endian, aligned.
#[derive(Debug)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    bytes: Buffer,
}

impl Tensor {
    /// An array of zeros.
    pub fn zeros(dtype: impl Into<DType>, shape: Shape) -> Result<Self, OutOfMemory> {
        let dtype = dtype.into();
        let bytes = shape.elements().and_then(|elements| dtype.byte_len(elements));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = Buffer::zeroed(bytes.ok_or(OutOfMemory { bytes: usize::MAX })?)?;
        Ok(Self { dtype, shape, bytes })
    }

    /// An array of row-major little-endian bytes.
    pub fn from_buffer(dtype: DType, shape: Shape, bytes: Buffer) -> Result<Self, ShapeMismatch> {
        TensorView::new(dtype, &shape, &bytes)?;
        Ok(Self { dtype, shape, bytes })
    }

    /// An array of values; 8-byte types are not copied on little-endian hosts.
    pub fn from_vec<T: Scalar>(shape: impl Into<Shape>, values: Vec<T>) -> Result<Self, FromVecError> {
        let (shape, len) = (shape.into(), values.len() as u64);
        let expected = if shape.contains(&0) { Some(0) } else { shape.elements() };
        if expected != Some(len) {
            let bytes = len.saturating_mul(size_of::<T>() as u64);
            return Err(FromVecError::Shape(ShapeMismatch { shape, dtype: T::DTYPE, bytes }));
        }
        let words = if cfg!(target_endian = "little") {
            bytemuck::try_cast_vec::<T, u64>(values).map_err(|(_, values)| values)
        } else {
            Err(values)
        };
        let values = match words {
            Ok(words) => return Ok(Self { dtype: T::DTYPE, shape, bytes: Buffer::from_words(words) }),
            Err(values) => values,
        };
        let mut tensor = Self::zeros(T::DTYPE, shape).map_err(FromVecError::Memory)?;
        for (slot, value) in tensor.bytes.chunks_exact_mut(size_of::<T>()).zip(values) {
            slot.copy_from_slice(bytemuck::bytes_of(&value.swap_le()));
        }
        Ok(tensor)
    }

    /// The elements; `None` if the type differs. Arrays of [`from_vec`](Self::from_vec) are not copied if it did not.
    pub fn into_vec<T: Scalar>(self) -> Option<Vec<T>> {
        if T::DTYPE != self.dtype {
            return None;
        }
        if size_of::<T>() != 8 || cfg!(target_endian = "big") {
            return self.to_vec();
        }
        let Self { dtype, shape, bytes } = self;
        match bytes.into_words() {
            Ok(words) => bytemuck::try_cast_vec(words).ok(),
            Err(bytes) => Self { dtype, shape, bytes }.to_vec(),
        }
    }

    /// The same elements with other extents.
    pub fn reshape(self, shape: Shape) -> Result<Self, ShapeMismatch> {
        Self::from_buffer(self.dtype, shape, self.bytes)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes: row-major, little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// A borrowed view.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { dtype: self.dtype, shape: &self.shape, bytes: &self.bytes }
    }

    /// The elements without a copy, if the type matches and the host is little-endian.
    pub fn as_slice<T: Scalar>(&self) -> Option<&[T]> {
        self.view().as_slice()
    }

    /// The elements, copied; `None` if the type differs.
    pub fn to_vec<T: Scalar>(&self) -> Option<Vec<T>> {
        self.view().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_check_their_length() {
        assert!(TensorView::new(DType::F32, &[2, 3], &[0; 24]).is_ok());
        assert!(TensorView::new(DType::F32, &[2, 3], &[0; 23]).is_err());
        assert!(TensorView::new(DType::F32, &[u64::MAX, 3], &[0; 24]).is_err());
        assert!(TensorView::new(DType::F32, &[u64::MAX, 3, 0], &[]).is_ok());
        assert!(TensorView::new(DType::Bitmask, &[3, 3], &[0; 2]).is_ok());
        assert!(TensorView::new(DType::Bitmask, &[3, 3], &[0; 9]).is_err());
    }

    #[test]
    fn buffers_become_tensors_of_every_type() {
        for dtype in DType::ALL {
            let shape = Shape::from([3, 5]);
            let len = dtype.byte_len(15).unwrap() as usize;
            let tensor = Tensor::from_buffer(dtype, shape.clone(), Buffer::zeroed(len).unwrap()).unwrap();
            assert_eq!((tensor.dtype(), tensor.bytes().len()), (dtype, len));
            assert_eq!(Tensor::zeros(dtype, shape.clone()).unwrap().bytes().len(), len);
            assert!(Tensor::from_buffer(dtype, shape, Buffer::zeroed(len + 1).unwrap()).is_err());
        }
        let bytes = [0xff, 2];
        assert_eq!(TensorView::new(DType::I8, &[2], &bytes).unwrap().to_vec::<i8>().unwrap(), [-1, 2]);
    }

    #[test]
    fn vectors_become_tensors_and_come_back() {
        let values = vec![1.5f64, -2.0, f64::INFINITY];
        let at = values.as_ptr();
        let tensor = Tensor::from_vec([3], values).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()[..].to_vec()), (DType::F64, vec![3]));
        let back = tensor.into_vec::<f64>().unwrap();
        assert_eq!((&back[..], back.as_ptr()), (&[1.5, -2.0, f64::INFINITY][..], at));
        let tensor = Tensor::from_vec([2, 2], vec![1u16, 2, 3, 4]).unwrap();
        assert_eq!(tensor.to_vec::<u16>().unwrap(), [1, 2, 3, 4]);
        assert_eq!(tensor.into_vec::<f64>(), None);
        assert!(matches!(Tensor::from_vec([2], vec![1i64]), Err(FromVecError::Shape(_))));
        let zeros = Tensor::zeros(DType::I64, [(5 << 20) / 8].into()).unwrap();
        assert_eq!(zeros.into_vec::<i64>().unwrap().len(), (5 << 20) / 8);
    }

    #[test]
    fn unaligned_views_still_copy() {
        let bytes = [9, 1, 0, 0, 0, 2, 0, 0, 0];
        let view = TensorView::new(DType::U32, &[2], &bytes[1..]).unwrap();
        assert_eq!(view.to_vec::<u32>().unwrap(), [1, 2]);
        assert_eq!(view.to_vec::<i32>(), None);
    }
}
