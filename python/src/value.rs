//! Values of message metadata as Python objects, and back.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tercet::tgm::Value;

use crate::error::request;

/// Deeper nesting is refused, as in the format.
const MAX_DEPTH: usize = 64;

pub(crate) fn to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Null => Ok(py.None()),
        Value::Bool(value) => value.into_py_any(py),
        Value::Integer(value) => value.into_py_any(py),
        Value::Float(value) => value.into_py_any(py),
        Value::Bytes(value) => Ok(PyBytes::new(py, value).into_any().unbind()),
        Value::Text(value) => value.into_py_any(py),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            items.into_py_any(py)
        }
        Value::Map(pairs) => {
            let dict = PyDict::new(py);
            for (key, value) in pairs {
                dict.set_item(hashable(py, key)?, to_python(py, value)?)?;
            }
            Ok(dict.into_any().unbind())
        }
        Value::Tag(_, value) => to_python(py, value),
    }
}

/// Keys of maps are strings nearly always; lists and maps as keys become tuples and text.
fn hashable(py: Python<'_>, key: &Value) -> PyResult<Py<PyAny>> {
    match key {
        Value::Array(_) | Value::Map(_) => Ok(PyString::new(py, &format!("{key:?}")).into_any().unbind()),
        _ => to_python(py, key),
    }
}

pub(crate) fn from_python(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = value.py();
    if depth > MAX_DEPTH {
        return Err(request(py, "metadata is nested too deeply"));
    }
    if value.is_none() {
        return Ok(Value::Null);
    }
    // A bool is an int in Python.
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Value::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::Text(value.extract()?));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let mut pairs = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            pairs.push((from_python(&key, depth + 1)?, from_python(&value, depth + 1)?));
        }
        return Ok(Value::Map(pairs));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let mut items = Vec::new();
        for item in value.try_iter()? {
            items.push(from_python(&item?, depth + 1)?);
        }
        return Ok(Value::Array(items));
    }
    // NumPy scalars have `item()`.
    if let Ok(item) = value.call_method0("item") {
        return from_python(&item, depth + 1);
    }
    let type_name = value.get_type().name()?;
    Err(request(py, &format!("metadata cannot hold a value of type `{type_name}`")))
}
