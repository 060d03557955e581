//! Memory of results, shared with NumPy.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use tercet::core::Tensor;
use tercet::tet::Chunk;

use crate::error::request;

/// The bytes of an array. NumPy uses them without a copy and keeps this object alive.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Buffer {
    start: AtomicPtr<u8>,
    len: usize,
    is_writable: bool,
    _owner: Owner,
}

/// What keeps the bytes alive.
#[derive(Debug)]
#[expect(dead_code, reason = "dropped with the buffer")]
enum Owner {
    Tensor(Tensor),
    /// A part of a memory map.
    Chunk(Chunk),
}

impl Buffer {
    pub(crate) fn new(mut tensor: Tensor) -> Self {
        let bytes = tensor.bytes_mut();
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        Self { start: AtomicPtr::new(start), len, is_writable: true, _owner: Owner::Tensor(tensor) }
    }

    /// A read-only view of a chunk.
    pub(crate) fn view(chunk: Chunk) -> Self {
        let (start, len) = (chunk.bytes().as_ptr().cast_mut(), chunk.bytes().len());
        Self { start: AtomicPtr::new(start), len, is_writable: false, _owner: Owner::Chunk(chunk) }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.len
    }

    #[expect(unsafe_code, reason = "the buffer protocol hands out pointers")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, len, read_only) = {
            let this = slf.get();
            (this.start.load(Ordering::Relaxed), this.len, c_int::from(!this.is_writable))
        };
        let len = isize::try_from(len).map_err(crate::error::internal)?;
        // SAFETY: `view` is the structure that the interpreter asks to fill. The bytes are on the heap or in
        // a memory map, are never moved or changed by this module after construction, and live as long as this object, to
        // which the view holds a reference. Bytes of a map are handed out as read-only.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast(), len, read_only, flags) };
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

/// The bytes of a contiguous buffer of Python, for writing.
#[expect(unsafe_code, reason = "buffers of Python are pointers")]
pub(crate) fn bytes_mut<'b>(py: Python<'_>, buffer: &'b mut PyBuffer<u8>) -> PyResult<&'b mut [u8]> {
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(request(py, "the output array is read-only or not contiguous"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the buffer is writable, contiguous and has `len_bytes` bytes; `buffer` holds a view that keeps the memory until
    // it is dropped. Callers pass arrays that only this call uses, as every function of NumPy with `out` assumes.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) })
}

/// The bytes of a contiguous buffer of Python.
#[expect(unsafe_code, reason = "buffers of Python are pointers")]
pub(crate) fn bytes<'b>(py: Python<'_>, buffer: &'b PyBuffer<u8>) -> PyResult<&'b [u8]> {
    if !buffer.is_c_contiguous() {
        return Err(request(py, "the array is not contiguous"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is contiguous and has `len_bytes` bytes; `buffer` holds a view that keeps the memory and its
    // length until it is dropped. Callers pass arrays that only this call uses, as every function of NumPy assumes.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) })
}
