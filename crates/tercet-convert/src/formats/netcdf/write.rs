//! Writer of classic files: the header first, then the values of any size.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use tercet_core::publish::AtomicFile;
use tercet_core::{DType, Progress};

use super::header::{PlannedVariable, encode};
use super::{Version, padded, swap};
use crate::arrays::sink::slabs;
use crate::arrays::source::refused;
use crate::arrays::{ArraySink, Header, Values};
use crate::{Error, ErrorKind};

/// Writes a classic file.
#[derive(Debug)]
pub(crate) struct NetCdfSink {
    file: AtomicFile,
    name: String,
    header: Header,
    layouts: Vec<VariableLayout>,
    end: u64,
}

/// Where the values of a variable are stored.
#[derive(Clone, Copy, Debug)]
struct VariableLayout {
    begin: u64,
    /// The distance of records; `None` without the unlimited dimension.
    record: Option<u64>,
}

impl NetCdfSink {
    /// Starts a file. The header has the types, names and dimensions of the version.
    pub(crate) fn create(
        path: &Path,
        header: Header,
        version: Version,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        let dim_number = |dim: &String| header.dims.iter().position(|found| found.name == *dim);
        let records = header.dims.iter().find(|dim| dim.unlimited).map_or(0, |dim| dim.len);
        let mut planned = Vec::new();
        let mut is_record = Vec::new();
        for variable in &header.variables {
            let dims: Option<Vec<u32>> = variable
                .dims
                .iter()
                .map(|dim| dim_number(dim).and_then(|number| u32::try_from(number).ok()))
                .collect();
            let dims =
                dims.ok_or_else(|| refused(&name, format!("unknown dimension of `{}`", variable.name)))?;
            let record = dims.first().is_some_and(|dim| header.dims[*dim as usize].unlimited);
            let inner = &variable.shape[usize::from(record)..];
            let size =
                inner.iter().try_fold(variable.item_size() as u64, |size, extent| size.checked_mul(*extent));
            let size =
                size.ok_or_else(|| refused(&name, format!("variable `{}` is too large", variable.name)))?;
            is_record.push(record);
            let (name, attrs, kind) = (&variable.name, &variable.attrs, variable.kind);
            planned.push(PlannedVariable { name, dims, attrs, kind, size: padded(size), begin: 0 });
        }
        let single = is_record.iter().filter(|record| **record).count() == 1;
        let piece = |size: u64, variable: &crate::arrays::Variable| {
            if single {
                variable.shape[1..].iter().product::<u64>() * variable.item_size() as u64
            } else {
                size
            }
        };
        // Offsets do not change the length of the header.
        let mut at = padded(encode(version, records, &header.dims, &header.attrs, &planned).len() as u64);
        for (variable, record) in planned.iter_mut().zip(&is_record) {
            if !record {
                variable.begin = at;
                at += variable.size;
            }
        }
        let first_record = at;
        for ((variable, record), item) in planned.iter_mut().zip(&is_record).zip(&header.variables) {
            if *record {
                variable.begin = at;
                at += piece(variable.size, item);
            }
        }
        let record_bytes = at - first_record;
        let layouts: Vec<VariableLayout> = planned
            .iter()
            .zip(&is_record)
            .map(|(variable, record)| VariableLayout {
                begin: variable.begin,
                record: record.then_some(record_bytes),
            })
            .collect();
        let end = first_record + record_bytes * records;
        let bytes = encode(version, records, &header.dims, &header.attrs, &planned);
        let error = |kind: ErrorKind| Error::new(name.as_str().into(), kind);
        let file = if overwrite { AtomicFile::create(path) } else { AtomicFile::create_new(path) };
        let mut file = file.map_err(|publish| error(publish.into()))?;
        file.write_all(&bytes).map_err(|io| error(io.into()))?;
        drop(planned);
        Ok(Self { file, name, header, layouts, end })
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|io| Error::new(self.name.as_str().into(), io.into()))
    }
}

impl ArraySink for NetCdfSink {
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let item = self.header.variables[variable].clone();
        let (size, dtype) = (item.item_size(), item.dtype().unwrap_or(DType::U8));
        let VariableLayout { begin, record } = self.layouts[variable];
        let mut buffer = Vec::new();
        for (start, extents) in slabs(&item.shape, size, values.source_chunks.as_deref()) {
            progress.check().map_err(|cancelled| Error::new(self.name.as_str().into(), cancelled.into()))?;
            let elements: u64 = extents.iter().product();
            let len = usize::try_from(elements * size as u64).unwrap_or(usize::MAX);
            buffer.clear();
            buffer.resize(len, 0);
            (values.fill)(&start, &extents, &mut buffer)?;
            swap(dtype, &mut buffer);
            let linear = |start: &[u64], shape: &[u64]| {
                start.iter().zip(shape).fold(0, |linear, (at, extent)| linear * extent + at) * size as u64
            };
            match record {
                None => self.put(begin + linear(&start, &item.shape), &buffer)?,
                Some(distance) => {
                    let within = linear(&start[1..], &item.shape[1..]);
                    let piece = len / usize::try_from(extents[0]).unwrap_or(1).max(1);
                    for (number, bytes) in (start[0]..).zip(buffer.chunks(piece.max(1))) {
                        self.put(begin + number * distance + within, bytes)?;
                    }
                }
            }
            progress.advance(len as u64);
        }
        Ok(())
    }

    fn write_strings(&mut self, variable: usize, _strings: &[String]) -> Result<(), Error> {
        let name = &self.header.variables[variable].name;
        Err(refused(&self.name, format!("variable `{name}`: NetCDF classic files have no strings")))
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        let error = |kind: ErrorKind| Error::new(self.name.as_str().into(), kind);
        // Padding at the end, and values of variables without any.
        let len = self.file.seek(SeekFrom::End(0)).map_err(|io| error(io.into()))?;
        if len < self.end {
            self.file.set_len(self.end).map_err(|publish| error(publish.into()))?;
        }
        self.file.publish().map_err(|publish| error(publish.into()))?;
        Ok(())
    }
}
