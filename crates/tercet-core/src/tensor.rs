//! Arrays: element types, shapes, selections, owned and borrowed values.

mod buffer;
mod copy;
mod dtype;
mod element;
mod selection;
mod shape;
mod view;

pub use buffer::{Buffer, OutOfMemory};
pub use copy::{BoxCopy, CopyError};
pub use dtype::{DType, UnknownDType};
pub use element::{Element, ElementType, Scalar, bf16, f16};
pub use selection::{AxisSlice, IndexSlice, IndexedSelection, Selection, SelectionError};
pub use shape::Shape;
pub use view::{FromVecError, ShapeMismatch, Tensor, TensorView};
