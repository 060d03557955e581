//! Results of arrays as Arrow IPC streams: a row for each value, with its coordinates.

use tercet::tet::Results;

use crate::failure::Failure;
use crate::reply::Reply;

/// The media type.
pub(super) const STREAM: &str = "application/vnd.apache.arrow.stream";

/// One column for each dimension, with coordinates or positions, and one for each result.
#[cfg(feature = "arrow")]
pub(super) fn results(results: &Results) -> Result<Reply, Failure> {
    use std::sync::Arc;

    use tercet::arrow::{Format, Table, TableWriter};
    use tercet::core::num::saturating_usize;
    use tercet::tatami::{Column, Field, Schema, Type, Values};
    use tercet::tet::{CoordinateValues, ResultValues};

    let unsupported =
        |what: &str| Failure::request(format!("{what} have no Arrow form")).with_hint("write `format=json`");
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    let mut push = |name: &str, values: Values| {
        let kind = match values {
            Values::Bool(_) => Type::Bool,
            Values::Int8(_) => Type::Int8,
            Values::Int16(_) => Type::Int16,
            Values::Int32(_) => Type::Int32,
            Values::Int64(_) => Type::Int64,
            Values::UInt8(_) => Type::UInt8,
            Values::UInt16(_) => Type::UInt16,
            Values::UInt32(_) => Type::UInt32,
            Values::UInt64(_) => Type::UInt64,
            Values::Float32(_) => Type::Float32,
            Values::Float64(_) => Type::Float64,
            _ => Type::String,
        };
        fields.push(Field::new(name, kind));
        columns.push(Column::new(values));
    };
    let first = results.arrays.first().ok_or_else(|| unsupported("empty results"))?;
    let shape = first.shape();
    let rows = saturating_usize(shape.iter().product());
    let mut stride = rows;
    for dim in &first.dims {
        let len = saturating_usize(dim.len);
        stride = stride.checked_div(len).unwrap_or(0);
        let positions = (0..rows).map(|row| row / stride.max(1) % len.max(1));
        let coordinates = dim.coordinates.as_ref().filter(|found| found.len() == len);
        let values = match coordinates.map(|found| (&found.values, found)) {
            None => Values::Int64(positions.map(|at| i64::try_from(at).unwrap_or(i64::MAX)).collect()),
            Some((CoordinateValues::Numbers(numbers), _)) => {
                Values::Float64(positions.map(|at| numbers[at]).collect())
            }
            Some((_, found)) => {
                let texts: Vec<String> = (0..len).map(|at| found.text(at)).collect();
                Values::Bytes(positions.map(|at| texts[at].as_str()).collect())
            }
        };
        push(&dim.name, values);
    }
    for array in &results.arrays {
        if array.shape() != shape {
            return Err(unsupported("results of different shapes"));
        }
        let values = match &array.values {
            ResultValues::Numbers(tensor) => {
                numbers(tensor).ok_or_else(|| unsupported("values of this type"))?
            }
            ResultValues::Flags(tensor) => {
                Values::Bool(tensor.bytes().iter().map(|byte| *byte != 0).collect())
            }
            _ => return Err(unsupported("positions")),
        };
        push(&array.name, values);
    }
    let failed = |error: tercet::arrow::Error| Failure::from_error(&error);
    let name: Arc<str> = results.dataset.as_str().into();
    let schema = Schema::new(fields).map_err(|error| Failure::request(error.to_string()))?;
    let table = Table::from_schema(&name, &schema).map_err(failed)?;
    let mut writer = TableWriter::new(Format::ArrowStream, &name, &table, Vec::new()).map_err(failed)?;
    writer.append(columns).map_err(failed)?;
    Ok(Reply::bytes(STREAM, writer.finish().map_err(failed)?.output))
}

/// The elements of a tensor as a column. Narrow floats are widened, which is exact.
#[cfg(feature = "arrow")]
fn numbers(tensor: &tercet::core::Tensor) -> Option<tercet::tatami::Values> {
    use tercet::core::DType;
    use tercet::core::tensor::{bf16, f16};
    use tercet::tatami::Values;

    Some(match tensor.dtype() {
        DType::Bool => Values::Bool(tensor.bytes().iter().map(|byte| *byte != 0).collect()),
        DType::I8 => Values::Int8(tensor.to_vec()?),
        DType::I16 => Values::Int16(tensor.to_vec()?),
        DType::I32 => Values::Int32(tensor.to_vec()?),
        DType::I64 => Values::Int64(tensor.to_vec()?),
        DType::U8 => Values::UInt8(tensor.to_vec()?),
        DType::U16 => Values::UInt16(tensor.to_vec()?),
        DType::U32 => Values::UInt32(tensor.to_vec()?),
        DType::U64 => Values::UInt64(tensor.to_vec()?),
        DType::F16 => Values::Float32(tensor.to_vec::<f16>()?.into_iter().map(f16::to_f32).collect()),
        DType::BF16 => Values::Float32(tensor.to_vec::<bf16>()?.into_iter().map(bf16::to_f32).collect()),
        DType::F32 => Values::Float32(tensor.to_vec()?),
        DType::F64 => Values::Float64(tensor.to_vec()?),
        _ => return None,
    })
}

#[cfg(not(feature = "arrow"))]
pub(super) fn results(_: &Results) -> Result<Reply, Failure> {
    Err(Failure::request("this build has no Arrow"))
}
