//! The functions of the Python package `tensogram`, for `tercet.compat.tensogram`.

use std::io::Cursor;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tercet::core::progress::NoProgress;
use tercet::tgm::compat::{self, TensogramError};
use tercet::tgm::{
    DataObjectDescriptor, Depth, EncodeOptions, Error, GlobalMetadata, MaskKind, MaskMethod, MessageView,
    Object, Placement, PreEncoded, ReadOptions, StreamingEncoder, ValidateOptions, Value,
};

use crate::buffer::{self, Array, bytes};
use crate::error::internal;
use crate::value;

/// Makes the exception that the package raises for an error.
fn raise(error: impl Into<TensogramError>) -> PyErr {
    let error = error.into();
    let (kind, message) = match &error {
        TensogramError::Framing(message) => ("FramingError", message.clone()),
        TensogramError::Metadata(message) => ("MetadataError", message.clone()),
        TensogramError::Encoding(message) => ("EncodingError", message.clone()),
        TensogramError::Compression(message) => ("CompressionError", message.clone()),
        TensogramError::Object(message) => ("ObjectError", message.clone()),
        TensogramError::HashMismatch { .. } => ("HashMismatch", error.to_string()),
        TensogramError::MissingHash(message) => ("MissingHash", message.clone()),
        _ => ("Io", error.to_string()),
    };
    Python::attach(|py| {
        let make = || py.import("tercet.compat.tensogram")?.getattr("_error")?.call1((kind, message));
        make().map_or_else(|failed| failed, PyErr::from_value)
    })
}

/// How messages are encoded.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct EncodeArgs {
    hash: bool,
    threads: usize,
    allow_nan: bool,
    allow_inf: bool,
    nan_mask_method: Option<String>,
    pos_inf_mask_method: Option<String>,
    neg_inf_mask_method: Option<String>,
    small_mask_threshold_bytes: Option<u64>,
    aggregate_hash: Option<String>,
}

impl EncodeArgs {
    fn options(&self) -> PyResult<EncodeOptions> {
        let method = |name: &Option<String>| match name {
            Some(name) => {
                let unknown = |_| raise(TensogramError::Encoding(format!("unknown mask method: {name}")));
                name.parse::<MaskMethod>().map_err(unknown)
            }
            None => Ok(MaskMethod::default()),
        };
        let mut options = EncodeOptions::new()
            .with_hash(self.hash)
            .with_allowed(self.allow_nan, self.allow_inf)
            .with_threads(NonZeroUsize::new(self.threads));
        options.nan_mask = method(&self.nan_mask_method)?;
        options.pos_inf_mask = method(&self.pos_inf_mask_method)?;
        options.neg_inf_mask = method(&self.neg_inf_mask_method)?;
        if let Some(bytes) = self.small_mask_threshold_bytes {
            options = options.with_small_mask_threshold(bytes);
        }
        Ok(options.with_hashes(match self.aggregate_hash.as_deref() {
            None | Some("auto") => Placement::Auto,
            Some("none") => Placement::None,
            Some("header") => Placement::Header,
            Some("footer") => Placement::Footer,
            Some("both") => Placement::Both,
            Some(other) => {
                return Err(raise(TensogramError::Encoding(format!("unknown aggregate_hash: {other}"))));
            }
        }))
    }
}

fn metadata(dict: &Bound<'_, PyDict>) -> PyResult<GlobalMetadata> {
    let value = value::from_python(dict.as_any(), 0)?;
    GlobalMetadata::from_value(value).map_err(|error| raise(TensogramError::Metadata(error.to_string())))
}

fn descriptor(dict: &Bound<'_, PyDict>) -> PyResult<DataObjectDescriptor> {
    let value = value::from_python(dict.as_any(), 0)?;
    DataObjectDescriptor::from_value(value)
        .map_err(|error| raise(TensogramError::Metadata(error.to_string())))
}

type NewObject<'py> = (Bound<'py, PyDict>, PyBuffer<u8>);

/// Encodes one message.
#[pyfunction]
pub(crate) fn tgm_encode<'py>(
    py: Python<'py>,
    global: &Bound<'py, PyDict>,
    objects: Vec<NewObject<'py>>,
    options: EncodeArgs,
    pre_encoded: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let (metadata, options) = (metadata(global)?, options.options()?);
    let descriptors = objects.iter().map(|(dict, _)| descriptor(dict)).collect::<PyResult<Vec<_>>>()?;
    let payloads = objects.iter().map(|(_, data)| bytes(py, data)).collect::<PyResult<Vec<_>>>()?;
    let message = py.detach(|| {
        if pre_encoded {
            let objects = descriptors.iter().zip(&payloads);
            let objects: Vec<_> =
                objects.map(|(descriptor, payload)| PreEncoded { descriptor, payload }).collect();
            tercet::tgm::encode_pre_encoded(&metadata, &objects, &options)
        } else {
            let objects: Vec<_> = descriptors.iter().zip(payloads.iter().copied()).collect();
            tercet::tgm::encode_message(&metadata, &objects, &options)
        }
    });
    Ok(PyBytes::new(py, &message.map_err(raise)?))
}

/// How messages are decoded.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DecodeArgs {
    verify: bool,
    require_hash: bool,
    threads: usize,
    restore: bool,
}

impl DecodeArgs {
    fn open<'b>(&self, buffer: &'b [u8]) -> Result<MessageView<'b>, TensogramError> {
        let options = ReadOptions::new()
            .with_verify(self.verify)
            .with_restore_non_finite(self.restore)
            .with_threads(NonZeroUsize::new(self.threads));
        let message = MessageView::open_with("buffer", buffer, options)?;
        let unhashed = message.layout().objects().position(|frame| frame.hash().is_none());
        match unhashed.filter(|_| self.require_hash) {
            Some(object) => Err(TensogramError::MissingHash(format!("object_index={object}"))),
            None => Ok(message),
        }
    }
}

type Sections = (Py<PyAny>, Py<PyAny>, Py<PyAny>);

fn sections(py: Python<'_>, metadata: &GlobalMetadata) -> PyResult<Sections> {
    let section = |value: Value| value::to_python(py, &value);
    let base = Value::Array(metadata.base.iter().cloned().map(Value::from).collect());
    Ok((section(metadata.extra.clone().into())?, section(base)?, section(metadata.reserved.clone().into())?))
}

fn described(py: Python<'_>, object: &Object<'_>) -> PyResult<Py<PyAny>> {
    let hash = object.frame().hash().map(|hash| format!("{hash:016x}"));
    let dict = value::to_python(py, &object.descriptor().to_value())?;
    dict.bind(py).set_item("_hash", hash)?;
    Ok(dict)
}

type Decoded = (Py<PyAny>, Array, Vec<(&'static str, Py<PyBytes>)>);

/// Metadata, and descriptor, values and masks of the objects of a message.
#[pyfunction]
pub(crate) fn tgm_decode(
    py: Python<'_>,
    buffer: PyBuffer<u8>,
    args: DecodeArgs,
    objects: Option<Vec<u64>>,
    masks: bool,
) -> PyResult<(Sections, Vec<Decoded>)> {
    let data = bytes(py, &buffer)?;
    let message = py.detach(|| args.open(data)).map_err(raise)?;
    let wanted = objects.unwrap_or_else(|| (0..message.object_count()).collect());
    let mut decoded = Vec::with_capacity(wanted.len());
    for index in wanted {
        let object = message.object(index).map_err(raise)?;
        let (tensor, bitmaps) = py
            .detach(|| {
                if masks {
                    object.decode_with_masks()
                } else {
                    object.decode().map(|tensor| (tensor, Vec::new()))
                }
            })
            .map_err(raise)?;
        let bitmaps = bitmaps.into_iter().map(|(kind, bits)| {
            let name = match kind {
                MaskKind::Nan => "nan",
                MaskKind::PosInf => "inf+",
                MaskKind::NegInf => "inf-",
            };
            (name, PyBytes::new(py, &bits).unbind())
        });
        decoded.push((described(py, &object)?, buffer::tensor(py, tensor)?, bitmaps.collect()));
    }
    Ok((sections(py, message.metadata())?, decoded))
}

/// Metadata and descriptors of a message.
#[pyfunction]
pub(crate) fn tgm_describe(
    py: Python<'_>,
    buffer: PyBuffer<u8>,
    args: DecodeArgs,
) -> PyResult<(Sections, Vec<Py<PyAny>>)> {
    let data = bytes(py, &buffer)?;
    let message = py.detach(|| args.open(data)).map_err(raise)?;
    let objects = (0..message.object_count()).map(|index| message.object(index).map_err(raise));
    let descriptors = objects.map(|object| described(py, &object?)).collect::<PyResult<_>>()?;
    Ok((sections(py, message.metadata())?, descriptors))
}

/// Ranges of elements, each an offset and a count.
#[pyfunction]
pub(crate) fn tgm_ranges(
    py: Python<'_>,
    buffer: PyBuffer<u8>,
    object: u64,
    ranges: Vec<(u64, u64)>,
    args: DecodeArgs,
) -> PyResult<(Py<PyAny>, Vec<Array>)> {
    let data = bytes(py, &buffer)?;
    let ranges: Vec<_> =
        ranges.into_iter().map(|(start, count)| start..start.saturating_add(count)).collect();
    let message = py.detach(|| args.open(data)).map_err(raise)?;
    let object = message.object(object).map_err(raise)?;
    let decoded = py.detach(|| object.decode_ranges(&ranges)).map_err(|error| {
        // A range outside of an object is not a missing object.
        raise(match TensogramError::from(error) {
            TensogramError::Object(message) => TensogramError::Encoding(message),
            other => other,
        })
    })?;
    let arrays =
        decoded.arrays.into_iter().map(|array| buffer::tensor(py, array)).collect::<PyResult<_>>()?;
    Ok((described(py, &object)?, arrays))
}

/// Offset and length of the messages of a buffer.
#[pyfunction]
pub(crate) fn tgm_scan(py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<Vec<(usize, usize)>> {
    let data = bytes(py, &buffer)?;
    Ok(py.detach(|| compat::scan(data)))
}

fn validation(level: &str, canonical: bool) -> ValidateOptions {
    let depth = match level {
        "quick" => Depth::Quick,
        "checksum" => Depth::Checksum,
        "full" => Depth::Full,
        _ => Depth::Default,
    };
    ValidateOptions::new().with_depth(depth).with_canonical(canonical)
}

/// The issues of a message, as JSON.
#[pyfunction]
pub(crate) fn tgm_validate(
    py: Python<'_>,
    buffer: PyBuffer<u8>,
    level: &str,
    canonical: bool,
) -> PyResult<String> {
    let data = bytes(py, &buffer)?;
    let report = py.detach(|| tercet::tgm::validate_bytes(data, &validation(level, canonical)));
    serde_json::to_string(&report.map_err(raise)?).map_err(internal)
}

/// The issues of a file, as JSON.
#[pyfunction]
pub(crate) fn tgm_validate_file(
    py: Python<'_>,
    path: &str,
    level: &str,
    canonical: bool,
) -> PyResult<String> {
    let report = py.detach(|| {
        let file = tercet::tgm::File::open(path)?;
        tercet::tgm::validate_source(file.source(), &validation(level, canonical), &NoProgress)
    });
    serde_json::to_string(&report.map_err(raise)?).map_err(internal)
}

/// The hash of bytes.
#[pyfunction]
pub(crate) fn tgm_hash(py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<String> {
    let data = bytes(py, &buffer)?;
    Ok(format!("{:016x}", py.detach(|| tercet::core::checksum::xxh3(data))))
}

/// The parameters of `simple_packing`: reference value, binary and decimal scale factor, bits per value.
#[pyfunction]
pub(crate) fn tgm_packing(
    py: Python<'_>,
    values: PyBuffer<f64>,
    bits: u32,
    decimal: i32,
) -> PyResult<(f64, i32, i32, u32)> {
    let values = values.to_vec(py)?;
    let params = py.detach(|| compat::compute_packing_params(&values, bits, decimal)).map_err(raise)?;
    Ok((
        params.reference_value,
        params.binary_scale_factor,
        params.decimal_scale_factor,
        params.bits_per_value,
    ))
}

/// A message that is encoded object by object.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct TgmEncoder {
    /// None when finished.
    encoder: Mutex<Option<StreamingEncoder<Cursor<Vec<u8>>>>>,
}

impl TgmEncoder {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut StreamingEncoder<Cursor<Vec<u8>>>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done =
            py.detach(|| self.encoder.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work));
        done.ok_or_else(|| internal("StreamingEncoder already finished"))?.map_err(raise)
    }
}

#[pymethods]
impl TgmEncoder {
    #[new]
    fn new(global: &Bound<'_, PyDict>, options: EncodeArgs) -> PyResult<Self> {
        let encoder = StreamingEncoder::new(Cursor::new(Vec::new()), &metadata(global)?, options.options()?);
        Ok(Self { encoder: Mutex::new(Some(encoder.map_err(raise)?)) })
    }

    fn write_object(
        &self,
        described: &Bound<'_, PyDict>,
        data: PyBuffer<u8>,
        pre_encoded: bool,
    ) -> PyResult<()> {
        let py = described.py();
        let (descriptor, payload) = (descriptor(described)?, bytes(py, &data)?);
        self.with(py, |encoder| {
            if pre_encoded {
                encoder.write_pre_encoded(PreEncoded { descriptor: &descriptor, payload })
            } else {
                encoder.write_object(&descriptor, payload)
            }
        })
    }

    fn finish<'py>(&self, py: Python<'py>, backfill: bool) -> PyResult<Bound<'py, PyBytes>> {
        let finished = py.detach(|| {
            let encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner).take();
            encoder.map(|encoder| if backfill { encoder.finish_with_length() } else { encoder.finish() })
        });
        let finished = finished.ok_or_else(|| internal("StreamingEncoder already finished"))?;
        Ok(PyBytes::new(py, finished.map_err(raise)?.get_ref()))
    }
}
