//! Tables as Arrow streams, through the C stream interface.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use tercet::arrow::{StringLayout, Table};
use tercet::tatami::Scan;

use crate::error::{arrow_to_py, internal, request};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

type Rows = Box<dyn Iterator<Item = Result<RecordBatch, tercet::arrow::Error>> + Send>;

/// The batches of a scan as record batches.
struct ScanReader {
    schema: SchemaRef,
    batches: Rows,
}

impl Iterator for ScanReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(batch.map_err(|error| ArrowError::ExternalError(error.into())))
    }
}

impl RecordBatchReader for ScanReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Not views: engines do not push filters down to columns of views.
const LAYOUT: StringLayout = StringLayout::LargeUtf8;

fn arrow_schema(scan: &Scan) -> PyResult<SchemaRef> {
    let table = Table::from_file(scan.file(), scan.positions()).map_err(|error| arrow_to_py(&error))?;
    Ok(table.arrow_schema(LAYOUT))
}

/// A stream of the rows of a scan. Each call starts again.
pub(crate) fn stream<'py>(py: Python<'py>, scan: &Scan) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = arrow_schema(scan)?;
    let batches = tercet::arrow::batches(scan, LAYOUT).map_err(|error| arrow_to_py(&error))?;
    let reader = ScanReader { schema, batches: Box::new(batches) };
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

/// The schema of the rows of a scan.
pub(crate) fn schema<'py>(py: Python<'py>, scan: &Scan) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = arrow_schema(scan)?;
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(internal)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// A small table in memory: hits, an index of messages.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeTable {
    batch: RecordBatch,
}

#[pymethods]
impl NativeTable {
    /// Makes a table of columns: name, `int`, `float` or `string`, and values.
    #[new]
    fn new(py: Python<'_>, columns: Vec<(String, String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for (name, kind, values) in columns {
            let array: ArrayRef = match kind.as_str() {
                "int" => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
                "float" => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
                "string" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
                other => return Err(request(py, &format!("unknown type of a column: `{other}`"))),
            };
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(internal)?;
        Ok(Self { batch })
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the request.
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(internal)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }
}

/// Takes the stream out of an object with `__arrow_c_stream__`.
#[expect(unsafe_code, reason = "the C stream interface hands over pointers")]
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let py = object.py();
    let Ok(capsule) = object.call_method0("__arrow_c_stream__") else {
        let type_name = object.get_type().name()?;
        return Err(request(
            py,
            &format!("`{type_name}` is not an Arrow table: it has no `__arrow_c_stream__`"),
        ));
    };
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>().as_ptr();
    // SAFETY: a capsule of this name holds a stream, which the interface lets the consumer move out; the capsule keeps
    // a released stream, so that its destructor has nothing to release.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer) };
    ArrowArrayStreamReader::try_new(stream).map_err(internal)
}
