//! Memory of results, shared with NumPy.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use tercet::core::Tensor;

/// The bytes of a tensor. NumPy uses them without a copy and keeps this object alive.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Buffer {
    start: AtomicPtr<u8>,
    len: usize,
    /// Owns the bytes.
    _tensor: Tensor,
}

impl Buffer {
    pub(crate) fn new(mut tensor: Tensor) -> Self {
        let bytes = tensor.bytes_mut();
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        Self { start: AtomicPtr::new(start), len, _tensor: tensor }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.len
    }

    #[expect(unsafe_code, reason = "the buffer protocol hands out pointers")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, len) = {
            let this = slf.get();
            (this.start.load(Ordering::Relaxed), this.len)
        };
        let len = isize::try_from(len).map_err(crate::error::internal)?;
        // SAFETY: `view` is the structure that the interpreter asks to fill. The bytes are on the heap, are never moved or
        // changed by this module after construction, and live as long as this object, to which the view holds a reference.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast(), len, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// `(buffer, dtype, shape)`.
pub(crate) type Array = (Py<Buffer>, &'static str, Vec<u64>);

/// A tensor for Python.
pub(crate) fn tensor(py: Python<'_>, tensor: Tensor) -> PyResult<Array> {
    let (dtype, shape) = (tensor.dtype().name(), tensor.shape().to_vec());
    Ok((Py::new(py, Buffer::new(tensor))?, dtype, shape))
}
