//! Reader of classic files.

use std::sync::Arc;

use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, DType, Limits, Span};

use super::header::{HeaderError, ParsedHeader};
use super::{padded, swap};
use crate::arrays::source::{check_box, malformed};
use crate::arrays::{ArraySource, Header, Variable};
use crate::formats::strided::{Run, RunAxis};
use crate::{Error, ErrorKind};

/// An open classic file.
#[derive(Debug)]
pub(crate) struct NetCdf {
    source: Arc<dyn ByteSource>,
    header: Header,
    /// Offset and byte strides of each variable.
    layouts: Vec<VariableLayout>,
}

#[derive(Debug)]
struct VariableLayout {
    begin: u64,
    strides: Vec<u64>,
    dtype: DType,
}

/// The first read of a header.
const FIRST_READ: u64 = 64 << 10;

impl NetCdf {
    /// Opens a file.
    pub(crate) fn open(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        let parsed = read_header(&*source, limits)?;
        let name = source.name().clone();
        let mut dims = parsed.dims;
        let is_record = |dims_of: &[usize]| dims_of.first().is_some_and(|dim| dims[*dim].unlimited);
        // The bytes of one record of every record variable.
        let mut pieces = Vec::new();
        for variable in parsed.variables.iter().filter(|variable| is_record(&variable.dims)) {
            let size = item_size(variable.kind);
            let inner =
                variable.dims[1..].iter().try_fold(size, |product, dim| product.checked_mul(dims[*dim].len));
            let inner = inner.filter(|bytes| *bytes < 1 << 62);
            pieces.push(
                inner
                    .ok_or_else(|| malformed(&name, format!("variable `{}` is too large", variable.name)))?,
            );
        }
        let record_bytes = match pieces[..] {
            // A single record variable is not padded.
            [only] => only,
            _ => pieces.iter().map(|piece| padded(*piece)).fold(0, u64::saturating_add),
        };
        let first_record = parsed
            .variables
            .iter()
            .filter(|variable| is_record(&variable.dims))
            .map(|variable| variable.begin)
            .min()
            .unwrap_or(0);
        let available = source.len().saturating_sub(first_record);
        let records = match parsed.records {
            Some(records) => records,
            None if record_bytes == 0 => 0,
            None => available / record_bytes,
        };
        for dim in &mut dims {
            if dim.unlimited {
                dim.len = records;
            }
        }
        let mut variables = Vec::new();
        let mut layouts = Vec::new();
        for variable in parsed.variables {
            let shape: Vec<u64> = variable.dims.iter().map(|dim| dims[*dim].len).collect();
            let size = item_size(variable.kind);
            let is_record = variable.dims.first().is_some_and(|dim| dims[*dim].unlimited);
            let layout = layout(&shape, size, variable.begin, is_record.then_some(record_bytes));
            let (strides, end) = layout
                .ok_or_else(|| malformed(&name, format!("variable `{}` is too large", variable.name)))?;
            let item = Variable {
                name: variable.name,
                kind: variable.kind,
                dims: variable.dims.iter().map(|dim| dims[*dim].name.clone()).collect(),
                shape,
                chunks: None,
                attrs: variable.attrs,
            };
            if end > source.len() {
                return Err(malformed(
                    &name,
                    format!(
                        "variable `{}` ends at byte {end}, but the file has {} bytes",
                        tercet_core::escape::name(&item.name),
                        source.len()
                    ),
                ));
            }
            let dtype = item.dtype().unwrap_or(DType::U8);
            layouts.push(VariableLayout { begin: variable.begin, strides, dtype });
            variables.push(item);
        }
        let header = Header {
            format: parsed.version.name().to_owned(),
            attrs: parsed.attrs,
            dims,
            variables,
            ..Header::default()
        };
        Ok(Self { source, header, layouts })
    }
}

fn item_size(kind: crate::arrays::Kind) -> u64 {
    match kind {
        crate::arrays::Kind::Number(dtype) => dtype.size().unwrap_or(1) as u64,
        _ => 1,
    }
}

/// Byte strides and the end of the values; `None` if a number overflows.
fn layout(shape: &[u64], size: u64, begin: u64, record: Option<u64>) -> Option<(Vec<u64>, u64)> {
    let mut strides = vec![size; shape.len()];
    let mut bytes = size;
    for axis in (0..shape.len()).rev() {
        strides[axis] = bytes;
        bytes = bytes.checked_mul(shape[axis])?;
    }
    if let (Some(record), Some(first)) = (record, strides.first_mut()) {
        *first = record;
    }
    if shape.contains(&0) {
        return Some((strides, 0));
    }
    let mut end = begin.checked_add(size)?;
    for (stride, extent) in strides.iter().zip(shape) {
        end = end.checked_add(stride.checked_mul(extent - 1)?)?;
    }
    (end < 1 << 62).then_some((strides, end))
}

/// Reads and parses the header: more bytes are read until it is complete.
fn read_header(source: &dyn ByteSource, limits: Limits) -> Result<ParsedHeader, Error> {
    let name = source.name();
    let error = |kind: ErrorKind| Error::new(name.clone(), kind);
    let mut len = FIRST_READ.min(source.len());
    loop {
        let bytes = source.read_at(Span::first(len)).map_err(|source| error(source.into()))?;
        match ParsedHeader::parse(&bytes) {
            Ok(header) => return Ok(header),
            Err(HeaderError::Malformed(detail)) => return Err(malformed(name, detail)),
            Err(HeaderError::Short) if len == source.len() => {
                return Err(malformed(name, "the header is truncated"));
            }
            Err(HeaderError::Short) => {
                len = len.saturating_mul(8).min(source.len());
                check_limit("the header", len, limits.metadata_bytes).map_err(|limit| error(limit.into()))?;
            }
        }
    }
}

impl ArraySource for NetCdf {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        let size = item.item_size();
        check_box(self.name(), &item.shape, size, (start, extents), out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let layout = &self.layouts[variable];
        let fit = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let mut axes = Vec::with_capacity(extents.len());
        let (mut from, mut to_stride) = (0, size);
        for axis in (0..extents.len()).rev() {
            let count = fit(extents[axis]);
            from += fit(start[axis] * layout.strides[axis]);
            axes.push(RunAxis { count, from_stride: fit(layout.strides[axis]), to_stride });
            to_stride *= count;
        }
        axes.reverse();
        let run = Run { size, from, to: 0, axes };
        let read = run.fetch::<ErrorKind>(&*self.source, layout.begin, out);
        read.map_err(|kind| Error::new(self.source.name().clone(), kind))?;
        swap(layout.dtype, out);
        Ok(())
    }
}
