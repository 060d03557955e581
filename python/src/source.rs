//! Python objects as byte sources: file objects, fsspec files, object stores.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use tercet::core::source::check_span;
use tercet::core::{ByteSource, SourceError, Span};

/// Bytes that functions of Python read.
pub(crate) struct PythonSource {
    name: Arc<str>,
    len: u64,
    /// `read([(start, length), …])` returns one object with bytes for each range.
    read: Py<PyAny>,
}

impl PythonSource {
    pub(crate) fn new(name: &str, len: u64, read: Py<PyAny>) -> Self {
        Self { name: name.into(), len, read }
    }

    /// The bytes of the spans, exactly.
    fn exact(&self, spans: &[Span]) -> Result<Vec<Vec<u8>>, SourceError> {
        for &span in spans {
            check_span(span, self.len)?;
        }
        let first = spans.first().copied().unwrap_or(Span::empty(0));
        let failed = |error: String| SourceError::Read { span: first, error: io::Error::other(error) };
        let parts = self.call(spans).map_err(|error| failed(error.to_string()))?;
        let fits = parts.len() == spans.len()
            && parts.iter().zip(spans).all(|(part, span)| part.len() as u64 == span.len());
        if fits { Ok(parts) } else { Err(failed("the object returned another number of bytes".to_owned())) }
    }

    fn call(&self, spans: &[Span]) -> PyResult<Vec<Vec<u8>>> {
        Python::attach(|py| {
            let ranges: Vec<(u64, u64)> = spans.iter().map(|span| (span.start(), span.len())).collect();
            let parts: Vec<PyBuffer<u8>> = self.read.bind(py).call1((ranges,))?.extract()?;
            parts.iter().map(|part| part.to_vec(py)).collect()
        })
    }
}

impl fmt::Debug for PythonSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonSource")
            .field("name", &self.name)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl ByteSource for PythonSource {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        Ok(self.exact(&[span])?.pop().unwrap_or_default().into())
    }

    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        if spans.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.exact(spans)?.into_iter().map(Into::into).collect())
    }

    fn is_remote(&self) -> bool {
        true
    }
}
