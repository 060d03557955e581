//! Handles of `.tgm` files.

use std::sync::OnceLock;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tercet::Container;
use tercet::core::progress::Cancelled;
use tercet::core::tensor::DType;
use tercet::tgm::{
    DataObjectDescriptor, EncodeOptions, Entry, Error, File, GlobalMetadata, Message, Writer, WriterOptions,
};

use crate::buffer::{self, Array};
use crate::error::{request, to_py};
use crate::{job, value};

/// An open `.tgm` file.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Tgm {
    file: File,
    /// The number of messages, once the file was scanned.
    count: OnceLock<u64>,
}

impl Tgm {
    pub(crate) fn new(file: File) -> Self {
        Self { file, count: OnceLock::new() }
    }
}

/// One message of a file.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeMessage {
    message: Message,
}

fn entry<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, item) in entry {
        dict.set_item(key, value::to_python(py, item)?)?;
    }
    Ok(dict)
}

#[pymethods]
impl NativeMessage {
    fn number(&self) -> u64 {
        self.message.number()
    }

    fn span(&self) -> (u64, u64) {
        let span = self.message.span();
        (span.start(), span.end())
    }

    /// The metadata sections `extra`, `base` and `reserved`.
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn metadata<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyDict>, Vec<Bound<'py, PyDict>>, Bound<'py, PyDict>)> {
        let metadata = self.message.metadata();
        let base = metadata.base.iter().map(|one| entry(py, one)).collect::<PyResult<_>>()?;
        Ok((entry(py, &metadata.extra)?, base, entry(py, &metadata.reserved)?))
    }

    fn object_count(&self) -> u64 {
        self.message.object_count()
    }

    /// The descriptor of an object.
    fn descriptor<'py>(&self, py: Python<'py>, object: u64) -> PyResult<Bound<'py, PyDict>> {
        let object = py.detach(|| self.message.object(object)).map_err(to_py)?;
        let descriptor = object.descriptor();
        let dict = PyDict::new(py);
        dict.set_item("type", &descriptor.obj_type)?;
        dict.set_item("dtype", descriptor.dtype.name())?;
        dict.set_item("shape", &descriptor.shape)?;
        dict.set_item("encoding", &descriptor.encoding)?;
        dict.set_item("filter", &descriptor.filter)?;
        dict.set_item("compression", &descriptor.compression)?;
        dict.set_item("params", entry(py, &descriptor.params)?)?;
        dict.set_item("stored_bytes", object.payload_span().len())?;
        Ok(dict)
    }

    /// Decodes an object into an array of its size: contiguous, of its type.
    fn decode_into(&self, py: Python<'_>, object: u64, mut out: PyBuffer<u8>) -> PyResult<()> {
        let out = buffer::bytes_mut(py, &mut out)?;
        py.detach(|| self.message.object(object)?.decode_into(out)).map_err(to_py)
    }

    /// Decodes an object.
    fn decode(&self, py: Python<'_>, object: u64) -> PyResult<Array> {
        let tensor = py.detach(|| self.message.object(object)?.decode()).map_err(to_py)?;
        buffer::tensor(py, tensor)
    }

    /// Decodes ranges of elements of an object.
    fn decode_ranges(&self, py: Python<'_>, object: u64, ranges: Vec<(u64, u64)>) -> PyResult<Vec<Array>> {
        let ranges: Vec<_> = ranges.into_iter().map(|(start, stop)| start..stop).collect();
        let decoded = py.detach(|| self.message.object(object)?.decode_ranges(&ranges)).map_err(to_py)?;
        decoded.arrays.into_iter().map(|array| buffer::tensor(py, array)).collect()
    }

    /// The stored bytes of the message.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.message.bytes()).map_err(to_py)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

#[pymethods]
impl Tgm {
    /// Path or URL.
    fn name(&self) -> String {
        self.file.name().to_string()
    }

    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| crate::summary(&Container::Tgm(self.file.clone())))
    }

    /// The length in bytes.
    fn len(&self) -> u64 {
        self.file.len()
    }

    /// The number of messages. The file is scanned once; signals stop it.
    fn message_count(&self, py: Python<'_>) -> PyResult<u64> {
        if let Some(count) = self.count.get() {
            return Ok(*count);
        }
        let scan = job::run(py, None, |progress| self.file.scan_with(progress))?.map_err(to_py)?;
        Ok(*self.count.get_or_init(|| scan.messages.len() as u64))
    }

    fn message(&self, py: Python<'_>, number: u64) -> PyResult<NativeMessage> {
        let message = py.detach(|| self.file.message(number)).map_err(to_py)?;
        Ok(NativeMessage { message })
    }
}

/// An object to be written. Values are contiguous, row-major and little-endian.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct NewObject<'py> {
    dtype: String,
    shape: Vec<u64>,
    values: PyBuffer<u8>,
    encoding: String,
    filter: String,
    compression: String,
    params: Bound<'py, PyDict>,
    metadata: Bound<'py, PyDict>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct NewMessage<'py> {
    metadata: Bound<'py, PyDict>,
    objects: Vec<NewObject<'py>>,
}

fn to_entry(dict: &Bound<'_, PyDict>) -> PyResult<Entry> {
    let mut entry = Entry::new();
    for (key, item) in dict.iter() {
        let Ok(key) = key.extract::<String>() else {
            return Err(request(dict.py(), "metadata keys must be strings"));
        };
        entry.insert(key, value::from_python(&item, 0)?);
    }
    Ok(entry)
}

/// Writes messages to a new file, or appends them to one. Returns the number of messages.
#[pyfunction]
#[pyo3(signature = (path, messages, *, overwrite = false, append = false, allow_nan = true, progress = None))]
pub(crate) fn write_tgm(
    py: Python<'_>,
    path: &str,
    messages: Vec<NewMessage<'_>>,
    overwrite: bool,
    append: bool,
    allow_nan: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<usize> {
    let mut encoded = Vec::with_capacity(messages.len());
    for message in &messages {
        let mut metadata =
            GlobalMetadata { extra: to_entry(&message.metadata)?, ..GlobalMetadata::default() };
        let mut objects = Vec::with_capacity(message.objects.len());
        for object in &message.objects {
            let dtype: DType = object
                .dtype
                .parse()
                .map_err(|_| request(py, &format!("unknown element type `{}`", object.dtype)))?;
            let mut descriptor = DataObjectDescriptor::new(dtype, object.shape.clone())
                .with_encoding(&object.encoding)
                .with_filter(&object.filter)
                .with_compression(&object.compression);
            for (key, item) in to_entry(&object.params)? {
                descriptor = descriptor.with_param(&key, item);
            }
            metadata.base.push(to_entry(&object.metadata)?);
            objects.push((descriptor, crate::buffer::bytes(py, &object.values)?));
        }
        encoded.push((metadata, objects));
    }
    let options = EncodeOptions::new().with_allowed(allow_nan, allow_nan);
    let count = encoded.len();
    let stopped = || Error::new(path.into(), Cancelled.into());
    let written = job::run(py, progress.as_ref(), |progress| -> Result<(), Error> {
        let writer_options = WriterOptions::new().with_overwrite(overwrite);
        let mut writer = if append {
            Writer::append_with(path, writer_options, progress)?
        } else {
            Writer::create(path, writer_options)?
        };
        for (metadata, objects) in &encoded {
            progress.check().map_err(|_| stopped())?;
            let objects: Vec<_> = objects.iter().map(|(descriptor, bytes)| (descriptor, *bytes)).collect();
            writer.message(metadata, &objects, &options)?;
            progress.advance(objects.iter().map(|(_, bytes)| bytes.len() as u64).sum());
        }
        writer.finish()?;
        Ok(())
    })?;
    written.map_err(to_py)?;
    Ok(count)
}
