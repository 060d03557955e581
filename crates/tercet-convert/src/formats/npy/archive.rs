//! `.npz` archives of `.npy` files, and `.npy` files as a sink.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use tercet_core::publish::AtomicFile;
use tercet_core::{ByteSource, DType, Limits, Progress};

use super::{Array, header};
use crate::arrays::dims::DimTable;
use crate::arrays::sink::slabs;
use crate::arrays::source::refused;
use crate::arrays::{ArraySink, ArraySource, Header, Kind, Values, Variable};
use crate::formats::zip::Archive;
use crate::{Error, ErrorKind};

/// A `.npz` archive: a variable for each member.
#[derive(Debug)]
pub(crate) struct NpzSource {
    name: Arc<str>,
    arrays: Vec<Array>,
    header: Header,
}

impl NpzSource {
    /// Opens an archive. Compressed members are decompressed in memory.
    pub(crate) fn open(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        let archive = Archive::open(source, limits)?;
        let mut header = Header { format: "NumPy .npz".to_owned(), ..Header::default() };
        let (mut dims, mut arrays) = (DimTable::new(), Vec::new());
        for member in archive.names() {
            let Some(variable) = member.strip_suffix(".npy") else { continue };
            let Some(bytes) = archive.open_member(member)? else { continue };
            match Array::from_source(bytes) {
                Ok(array) => {
                    let shape = array.shape().to_vec();
                    header.variables.push(Variable {
                        name: variable.to_owned(),
                        kind: Kind::Number(array.dtype()),
                        dims: dims.resolve(variable, &[], &shape),
                        shape,
                        chunks: None,
                        attrs: Vec::new(),
                    });
                    arrays.push(array);
                }
                Err(error) => header.unreadable.push((variable.to_owned(), error.kind().to_string())),
            }
        }
        header.dims = dims.into_dims(|_| false);
        Ok(Self { name: archive.name().clone(), arrays, header })
    }
}

impl ArraySource for NpzSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        Ok(self.arrays[variable].read_box(start, extents, out)?)
    }
}

/// Writes `.npy` files: one, or the members of a `.npz` archive.
#[derive(Debug)]
pub(crate) struct NpySink {
    file: AtomicFile,
    name: String,
    header: Header,
    is_archive: bool,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: String,
    crc: u32,
    len: u32,
    at: u32,
}

impl NpySink {
    /// Starts a file.
    pub(crate) fn create(
        path: &Path,
        header: Header,
        is_archive: bool,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        if !is_archive && header.variables.len() != 1 {
            let found = header.variables.len();
            return Err(refused(
                &name,
                format!("a .npy file holds one array, not {found}; select one, or write .npz"),
            ));
        }
        // Programs that extract an archive would write outside of their directory.
        let leaves = |name: &str| {
            name.split(['/', '\\']).any(|part| part.is_empty() || part == "..") || name.contains('\0')
        };
        if let Some(variable) = header.variables.iter().find(|variable| is_archive && leaves(&variable.name))
        {
            let shown = tercet_core::escape::name(&variable.name);
            return Err(refused(&name, format!("`{shown}` is not allowed as a name in an archive")));
        }
        let file = if overwrite { AtomicFile::create(path) } else { AtomicFile::create_new(path) };
        let file = file.map_err(|publish| Error::new(name.as_str().into(), publish.into()))?;
        Ok(Self { file, name, header, is_archive, members: Vec::new() })
    }

    fn io<T>(&self, result: std::io::Result<T>) -> Result<T, Error> {
        result.map_err(|io| Error::new(self.name.as_str().into(), ErrorKind::from(io)))
    }
}

/// The part of a header that members and the directory share: from the version to the length of the name.
fn fields(member: &Member) -> Vec<u8> {
    let mut out = Vec::new();
    // Version 2.0, names in UTF-8, stored, 1980-01-01.
    for value in [20u16, 0x0800, 0, 0, 0x21] {
        out.extend(value.to_le_bytes());
    }
    for value in [member.crc, member.len, member.len] {
        out.extend(value.to_le_bytes());
    }
    out.extend(u16::try_from(member.name.len()).unwrap_or(0).to_le_bytes());
    out
}

impl ArraySink for NpySink {
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let item = self.header.variables[variable].clone();
        let size = item.item_size();
        let head = header(item.dtype().unwrap_or(DType::U8), &item.shape);
        let head = head.ok_or_else(|| refused(&self.name, format!("NumPy has no {}", item.kind)))?;
        let at = self.file.stream_position();
        let at = self.io(at)?;
        let too_large =
            || refused(&self.name, "a .npz archive of 4 GiB or more is not supported; write .zarr or .tet");
        let mut member = None;
        if self.is_archive {
            let len = item.bytes().checked_add(head.len() as u64).and_then(|len| u32::try_from(len).ok());
            let (len, at) = (len.ok_or_else(too_large)?, u32::try_from(at).map_err(|_| too_large())?);
            let entry = Member { name: format!("{}.npy", item.name), crc: 0, len, at };
            let mut local = b"PK\x03\x04".to_vec();
            local.extend(fields(&entry));
            local.extend([0, 0]);
            local.extend(entry.name.as_bytes());
            let written = self.file.write_all(&local);
            self.io(written)?;
            member = Some(entry);
        }
        let mut crc = flate2::Crc::new();
        crc.update(&head);
        let written = self.file.write_all(&head);
        self.io(written)?;
        for (start, extents) in slabs(&item.shape, size, values.source_chunks.as_deref()) {
            progress.check().map_err(|cancelled| Error::new(self.name.as_str().into(), cancelled.into()))?;
            let elements: u64 = extents.iter().product();
            let mut bytes = vec![0; usize::try_from(elements * size as u64).unwrap_or(0)];
            (values.fill)(&start, &extents, &mut bytes)?;
            crc.update(&bytes);
            let written = self.file.write_all(&bytes);
            self.io(written)?;
            progress.advance(bytes.len() as u64);
        }
        if let Some(mut entry) = member {
            entry.crc = crc.sum();
            let patched = (|| {
                self.file.seek(SeekFrom::Start(u64::from(entry.at) + 14))?;
                self.file.write_all(&entry.crc.to_le_bytes())?;
                self.file.seek(SeekFrom::End(0))
            })();
            self.io(patched)?;
            self.members.push(entry);
        }
        Ok(())
    }

    fn write_strings(&mut self, variable: usize, _: &[String]) -> Result<(), Error> {
        Err(refused(&self.name, format!("`{}` contains strings", self.header.variables[variable].name)))
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        if self.is_archive {
            let at = self.file.stream_position();
            let at = self.io(at)?;
            let mut out = Vec::new();
            for member in &self.members {
                out.extend(b"PK\x01\x02\x14\x00");
                out.extend(fields(member));
                // Extra, comment, disk, attributes.
                out.extend([0; 12]);
                out.extend(member.at.to_le_bytes());
                out.extend(member.name.as_bytes());
            }
            let large = || {
                refused(&self.name, "a .npz archive of 4 GiB or more is not supported; write .zarr or .tet")
            };
            let start = u32::try_from(at).map_err(|_| large())?;
            let count = u16::try_from(self.members.len()).map_err(|_| large())?;
            let len = u32::try_from(out.len()).map_err(|_| large())?;
            out.extend(b"PK\x05\x06\0\0\0\0");
            out.extend(count.to_le_bytes());
            out.extend(count.to_le_bytes());
            out.extend(len.to_le_bytes());
            out.extend(start.to_le_bytes());
            out.extend([0, 0]);
            let written = self.file.write_all(&out);
            self.io(written)?;
        }
        let name = self.name.clone();
        self.file.publish().map_err(|publish| Error::new(name.as_str().into(), publish.into()))?;
        Ok(())
    }
}
