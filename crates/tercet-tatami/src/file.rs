//! An open file.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use tercet_core::Location;
use tercet_core::checksum::{Mismatch, crc32c};
use tercet_core::limits::check_limit;
pub use tercet_core::source::Access;
use tercet_core::source::Memory;
#[cfg(all(any(unix, windows), not(feature = "remote")))]
use tercet_core::source::open_location;
use tercet_core::{
    Budget, ByteSource, Class, CommonError, Diagnostic as _, FieldReader, Limits, Malformed, Reason, Site,
    Span, threads,
};
#[cfg(all(any(unix, windows), feature = "remote"))]
use tercet_remote::open_location;

use crate::blob::BlobReader;
use crate::block_codec::fault;
use crate::chunk::{ChunkReader, PageTable};
use crate::dictionary::Dictionaries;
use crate::error::{Error, ErrorKind};
use crate::logical_type::{Annotation, LogicalType};
use crate::pool::Pool;
use crate::prune::key::PageIndex;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::scan::RowSelection;
use crate::schema::{Field, Schema, Type};
use crate::search::page_headers::PageHeaders;
use crate::wire::footer::{Chunk, FEATURES, Footer, Group, TRAILER_LEN, Zone};
use crate::wire::header::{self, Header};
use crate::wire::ids::{file_flags, offers, requires};
use crate::wire::page::HEADER_LEN;

/// How a `.tatami` file is read.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Verification, limits, file access and threads.
    pub common: tercet_core::ReadOptions,
    /// Return invalid UTF-8 strings unchanged instead of failing.
    pub allow_invalid_utf8: bool,
    /// For salvage: blob runs may have more values than the column has rows.
    pub(crate) recovery: bool,
}

impl ReadOptions {
    /// Verified positional reads with default limits; strings must be valid UTF-8.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether checksums of pages and records are verified.
    pub fn with_verify(mut self, verify: bool) -> Self {
        self.common.verify = verify;
        self
    }

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.common.limits = limits;
        self
    }

    /// Sets how files on this machine are read.
    pub fn with_access(mut self, access: Access) -> Self {
        self.common.access = access;
        self
    }

    /// Sets the number of threads.
    pub fn with_threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.common.threads = threads;
        self
    }

    /// Sets whether invalid UTF-8 strings are returned unchanged instead of failing.
    pub fn with_allow_invalid_utf8(mut self, allow: bool) -> Self {
        self.allow_invalid_utf8 = allow;
        self
    }
}

impl From<tercet_core::ReadOptions> for ReadOptions {
    fn from(common: tercet_core::ReadOptions) -> Self {
        Self { common, ..Self::default() }
    }
}

/// An open `.tatami` file. Clones share it.
#[derive(Clone, Debug)]
pub struct File {
    inner: Arc<Inner>,
    /// Rows that are not deleted; `None` if none is. See [`File::without_rows`].
    live: Option<Arc<RowSelection>>,
}

/// The shared state of an open file: its footer, and its records. Column chunks are read by [`ChunkReader`], pages by
/// [`PageReader`](crate::page::decode::PageReader).
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) source: Arc<dyn ByteSource>,
    pub(crate) options: ReadOptions,
    pub(crate) header: Header,
    pub(crate) footer: Footer,
    pub(crate) footer_span: Span,
    pub(crate) footer_crc: u32,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) blobs: Vec<BlobReader>,
    pub(crate) pool: Arc<Pool>,
    /// Cached page tables, by row group and column.
    pub(crate) tables: Mutex<HashMap<(u32, u32), Arc<PageTable>>>,
    pub(crate) page_headers: PageHeaders,
    pub(crate) key_indexes: Vec<OnceLock<Arc<PageIndex>>>,
    location: Option<Location>,
}

impl File {
    /// Opens a file: a path, or a URL with the feature `remote`. Header and footer are read, no rows.
    #[cfg(any(unix, windows))]
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, ReadOptions::new())
    }

    /// Opens a file with options.
    #[cfg(any(unix, windows))]
    pub fn open_with(location: impl Into<Location>, options: ReadOptions) -> Result<Self, Error> {
        let location = location.into();
        let source = open_location(&location, options.common.access)
            .map_err(|error| Error::new(location.to_string().into(), error.into()))?;
        Self::from_parts(source, options, Some(location))
    }

    /// Opens a file from any source of bytes.
    pub fn from_source(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self, Error> {
        Self::from_parts(source, options, None)
    }

    /// Opens a file in memory. Errors show `name`.
    pub fn from_bytes(name: &str, bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_source(Arc::new(Memory::new(name, bytes)), ReadOptions::new())
    }

    fn from_parts(
        source: Arc<dyn ByteSource>,
        options: ReadOptions,
        location: Option<Location>,
    ) -> Result<Self, Error> {
        let name = Arc::clone(source.name());
        let inner = Inner::open(source, options, location).map_err(|fault| Error::new(name, fault))?;
        Ok(Self { inner: Arc::new(inner), live: None })
    }

    /// A file with a rebuilt footer; its records end at `end`.
    pub(crate) fn with_footer(
        source: Arc<dyn ByteSource>,
        mut options: ReadOptions,
        footer: Footer,
        end: u64,
    ) -> Result<Self, ErrorKind> {
        options.recovery = true;
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        let header = Header {
            major: 1,
            minor: 1,
            flags: flag(footer.schema.sort_key().is_some(), file_flags::SORTED),
            checksum: 1,
            default_codec: crate::wire::ids::Codec::Zstd,
            page_size_hint: 0,
            uuid: [0; 16],
            rows: footer.statistics.rows,
            footer_offset: end,
            created_millis: 0,
            creator_id: 0,
        };
        let inner = Inner::assemble(source, options, None, header, footer, Span::empty(end), 0)?;
        Ok(Self { inner: Arc::new(inner), live: None })
    }

    /// The name of the file, for messages.
    pub fn name(&self) -> &Arc<str> {
        self.inner.source.name()
    }

    /// The path of the file, if it was opened by path.
    pub fn path(&self) -> Option<&Path> {
        self.location()?.as_path()
    }

    /// Where the file was opened; `None` for other sources of bytes.
    pub fn location(&self) -> Option<&Location> {
        self.inner.location.as_ref()
    }

    /// The length of the file in bytes.
    pub fn len(&self) -> u64 {
        self.inner.source.len()
    }

    /// Whether the file has no bytes, which no valid file has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.inner.header
    }

    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.inner.footer
    }

    /// The byte range of the footer.
    pub fn footer_span(&self) -> Span {
        self.inner.footer_span
    }

    /// The checksum of the footer, from the trailer.
    pub fn footer_crc(&self) -> u32 {
        self.inner.footer_crc
    }

    /// The columns.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.inner.footer.schema
    }

    /// The annotations of the columns in the footer: logical types, dictionaries, lengths of fixed-size lists.
    pub fn annotations(&self) -> Vec<Option<Annotation>> {
        let pairs = &self.footer().pairs;
        self.schema().fields().iter().map(|field| Annotation::for_field(field, pairs)).collect()
    }

    /// The logical types of the values of the columns, from annotations in the footer.
    pub fn logical_types(&self) -> Vec<Option<LogicalType>> {
        LogicalType::for_fields(self.schema().fields(), &self.footer().pairs)
    }

    /// The number of rows, including those of [`without_rows`](Self::without_rows).
    pub fn rows(&self) -> u64 {
        self.inner.header.rows
    }

    /// The file without some rows, which a collection or a change deleted. Scans, lookups and searches skip them; row numbers do
    /// not change. Columns, row groups and rows read by number still contain them.
    #[must_use]
    pub fn without_rows(&self, deleted: &RowSelection) -> Self {
        if deleted.is_empty() {
            return self.clone();
        }
        let live = deleted.complement(self.rows());
        let live = self.live.as_ref().map_or(live.clone(), |old| old.intersection(&live));
        Self { inner: Arc::clone(&self.inner), live: Some(Arc::new(live)) }
    }

    /// The file with the rows that [`without_rows`](Self::without_rows) hides.
    pub(crate) fn with_deleted_rows(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), live: None }
    }

    /// The rows that are not deleted; `None` if none is.
    pub(crate) fn live(&self) -> Option<&RowSelection> {
        self.live.as_deref()
    }

    /// The number of rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.live().map_or(self.rows(), RowSelection::len)
    }

    /// The number of row groups.
    pub fn group_count(&self) -> usize {
        self.inner.footer.groups.len()
    }

    /// The position of a column.
    pub fn column_index(&self, name: &str) -> Result<usize, Error> {
        let missing = || ErrorKind::NoSuchColumn { name: name.into(), available: self.schema().some_names() };
        self.schema().index_of(name).ok_or_else(|| self.error(missing()))
    }

    /// Adds the location of this file to an error.
    pub(crate) fn error(&self, fault: ErrorKind) -> Error {
        Error::new(Arc::clone(self.name()), fault)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The features that a reader must support: declared in the file or used by its chunks.
    pub fn required_features(&self) -> u64 {
        self.inner.required_features()
    }
}

impl Inner {
    fn open(
        source: Arc<dyn ByteSource>,
        options: ReadOptions,
        location: Option<Location>,
    ) -> Result<Self, ErrorKind> {
        let (footer_span, footer_crc, bytes) = read_footer(&*source, &options.common.limits)?;
        let footer = Footer::parse(&bytes, footer_span.start())?;
        let header = Header::parse(&source.read_at(Span::first(header::LEN))?)?;
        check_equal(
            "footer_offset",
            40,
            header.footer_offset,
            footer_span.start(),
            "the length in the trailer",
        )?;
        check_equal("row_count", 32, header.rows, footer.statistics.rows, "the statistics of the footer")?;
        let in_groups = footer.groups.last().map_or(0, |group| group.first_row + group.rows);
        check_equal("row_count", 32, header.rows, in_groups, "the rows of the row groups")?;
        check_chunks(&footer, footer_span.start())?;
        Self::assemble(source, options, location, header, footer, footer_span, footer_crc)
    }

    fn assemble(
        source: Arc<dyn ByteSource>,
        options: ReadOptions,
        location: Option<Location>,
        header: Header,
        footer: Footer,
        footer_span: Span,
        footer_crc: u32,
    ) -> Result<Self, ErrorKind> {
        let limits = options.common.limits.for_file(source.len());
        let options = options.with_limits(limits);
        let dictionaries = Dictionaries::new(&footer)?;
        let blobs = BlobReader::all(&footer, options.recovery)?;
        let key_indexes = footer.groups.iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            source,
            options,
            header,
            footer,
            footer_span,
            footer_crc,
            dictionaries,
            blobs,
            pool: Arc::default(),
            tables: Mutex::default(),
            page_headers: PageHeaders::default(),
            key_indexes,
            location,
        })
    }

    /// Runs `work` on the threads of [`ReadOptions`].
    pub(crate) fn on_threads<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        threads::install(self.options.common.threads, work)
    }

    /// Whether record headers have checksums.
    pub(crate) fn has_header_checksums(&self) -> bool {
        self.offers(offers::HEADER_SUMS)
    }

    /// Whether the file offers a feature.
    pub(crate) fn offers(&self, bit: u64) -> bool {
        self.footer.features.as_ref().is_some_and(|features| features.offers & bit != 0)
    }

    pub(crate) fn field(&self, column: usize) -> &Field {
        &self.footer.schema.fields()[column]
    }

    pub(crate) fn group(&self, group: usize) -> Result<&Group, ErrorKind> {
        let groups = self.footer.groups.len() as u64;
        self.footer.groups.get(group).ok_or(ErrorKind::NoSuchGroup { group: group as u64, groups })
    }

    pub(crate) fn chunk(&self, group: usize, column: usize) -> Result<&Chunk, ErrorKind> {
        let found = self.group(group)?.chunks.get(column);
        found.ok_or_else(|| ErrorKind::NoSuchColumn {
            name: column.to_string().into(),
            available: self.footer.schema.some_names(),
        })
    }

    /// The memory budget of one returned column.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new("the values of a column", self.options.common.limits.array_bytes)
    }

    /// The limit for one decoded page or record.
    pub(crate) fn page_limit(&self) -> u64 {
        self.options.common.limits.chunk_bytes
    }

    /// Whether an error is not caused by the file: I/O failed, out of memory, or the caller lowered the limits. A size
    /// beyond the default limits may be damaged itself.
    pub(crate) fn is_not_damage(&self, fault: &ErrorKind) -> bool {
        let (limits, default) = (self.options.common.limits, Limits::default().for_file(self.source.len()));
        let lowered = limits.chunk_bytes < default.chunk_bytes || limits.array_bytes < default.array_bytes;
        match fault {
            ErrorKind::Common(CommonError::OutOfMemory(_)) => true,
            fault => match fault.class() {
                Class::Io => true,
                Class::Limit => lowered,
                _ => false,
            },
        }
    }

    pub(crate) fn blob(&self, column: usize) -> Result<&BlobReader, ErrorKind> {
        let at = self.blobs.binary_search_by_key(&column, |blob| blob.column).ok();
        at.map(|at| &self.blobs[at]).ok_or_else(|| ErrorKind::NoSuchColumn {
            name: self.field(column).name.as_ref().into(),
            available: self.footer.schema.some_names(),
        })
    }

    /// Whether a column is stored in the blob region.
    pub(crate) fn is_blob(&self, column: usize) -> bool {
        self.field(column).kind == Type::BlobRef
    }

    /// The reader of a column chunk.
    pub(crate) const fn chunk_reader(&self, group: usize, column: usize) -> ChunkReader<'_> {
        ChunkReader::new(self, group, column)
    }

    /// Whether a zone is reliable; zones of floats only if NaN is excluded or there is a single page.
    pub(crate) fn trusted(&self, kind: Type, pages: u64, zone: &Zone) -> bool {
        if !kind.is_float() {
            return true;
        }
        let number = |bytes: &[u8]| Scalar::from_bytes(kind, bytes).is_some_and(|value| !value.is_nan());
        number(&zone.min) && number(&zone.max) && (pages == 1 || self.offers(offers::FLOAT_ZONES))
    }

    /// The key-value pairs of the user, without those of the writer.
    pub(crate) fn user_pairs(&self) -> Vec<(String, String)> {
        let added = |key: &str| matches!(key, "tatami.version" | "tatami.sort_key");
        self.footer.pairs.iter().filter(|(key, _)| !added(key)).cloned().collect()
    }

    /// Rejects files with features that this build does not support.
    pub(crate) fn check_features(&self) -> Result<(), ErrorKind> {
        let Some(features) = &self.footer.features else { return Ok(()) };
        let unknown = features.requires & !requires::KNOWN;
        if unknown == 0 {
            return Ok(());
        }
        Err(ErrorKind::UnsupportedFeatures { features: requires::names(unknown).join(", ").into() })
    }

    fn required_features(&self) -> u64 {
        use crate::wire::ids::{Codec, Encoding};

        let mut bits = self.footer.features.as_ref().map_or(0, |features| features.requires);
        for (column, field) in self.footer.schema.fields().iter().enumerate() {
            if field.kind == Type::List {
                bits |= requires::LIST;
            }
            for chunk in self.footer.groups.iter().filter_map(|group| group.chunks.get(column)) {
                bits |= match chunk.codec {
                    Codec::Lz4 => requires::LZ4,
                    Codec::ZstdDict => requires::ZSTD_DICT,
                    _ => 0,
                };
                bits |= match chunk.encoding {
                    Encoding::Dictionary => requires::DICTIONARY,
                    Encoding::Fsst => requires::FSST,
                    Encoding::Rle | Encoding::BitpackFor | Encoding::Delta if field.scalar().is_float() => {
                        requires::FLOAT
                    }
                    _ => 0,
                };
            }
        }
        bits
    }
}

/// Finds and verifies the footer: byte range, stored checksum, contents.
fn read_footer(source: &dyn ByteSource, limits: &Limits) -> Result<(Span, u32, Bytes), ErrorKind> {
    let len = source.len();
    let min_len = header::LEN + TRAILER_LEN;
    if len < min_len {
        let site = Site { region: Region::Trailer, field: "file", span: Span::first(len) };
        return Err(Malformed { site, reason: Reason::Truncated { need: min_len, have: len } }.into());
    }
    // One read of the tail suffices for most files; a longer footer takes a second one.
    let tail_len = len.min(64 << 10);
    let tail_start = len - tail_len;
    let tail = source.read_at(Span::at(tail_start, tail_len).unwrap_or(Span::first(len)))?;
    let trailer_start = len - TRAILER_LEN;
    let at = usize::try_from(trailer_start - tail_start).unwrap_or(0);
    let mut fields = FieldReader::new(Region::Trailer, trailer_start, &tail[at..]);
    let footer_len = fields.u32_le("footer_length")?;
    let stored = fields.u32_le("footer_crc")?;
    fields.magic("magic", header::MAGIC)?;
    let Some(start) = trailer_start.checked_sub(footer_len.into()).filter(|start| *start >= header::LEN)
    else {
        let site = Site {
            region: Region::Trailer,
            field: "footer_length",
            span: Span::at(trailer_start, 4).unwrap_or(Span::empty(trailer_start)),
        };
        let reason = Reason::OutOfBounds {
            offset: trailer_start.saturating_sub(footer_len.into()),
            len: footer_len.into(),
            end: trailer_start - header::LEN,
            what: "the bytes after the header",
        };
        return Err(Malformed { site, reason }.into());
    };
    check_limit("the footer", footer_len.into(), limits.metadata_bytes)?;
    let span = Span::between(start, trailer_start).unwrap_or(Span::empty(start));
    let bytes = if start >= tail_start {
        let from = usize::try_from(start - tail_start).unwrap_or(0);
        tail.slice(from..at)
    } else {
        source.read_at(span)?
    };
    Mismatch::check_crc32c(stored, crc32c(&bytes)).map_err(|mismatch| CommonError::Checksum {
        region: Region::Footer,
        span,
        mismatch,
    })?;
    Ok((span, stored, bytes))
}

/// Rejects chunks that declare more rows than their pages can hold, chunks outside of the bytes before the footer, and
/// overlapping chunks: otherwise a small file could declare any number of rows.
fn check_chunks(footer: &Footer, end: u64) -> Result<(), ErrorKind> {
    let mut spans: Vec<(Span, u32, u32)> = Vec::new();
    for (group, entry) in (0..).zip(&footer.groups) {
        for (column, chunk) in (0..).zip(&entry.chunks) {
            if chunk.values > chunk.pages.saturating_mul(u32::MAX.into()) {
                let allowed = "at most 2³² - 1 rows per page";
                let reason = Reason::OutOfRange { found: chunk.values, allowed };
                return Err(fault(Region::Chunk { group, column }, "num_values", chunk.offset, 0, reason));
            }
            let len = chunk.pages.saturating_mul(HEADER_LEN).saturating_add(chunk.stored_bytes);
            let inside = Span::at(chunk.offset, len).filter(|span| span.end() <= end);
            if len > 0 && inside.is_none() {
                let what = "the bytes before the footer";
                let reason = Reason::OutOfBounds { offset: chunk.offset, len, end, what };
                return Err(fault(
                    Region::Chunk { group, column },
                    "data_page_offset",
                    chunk.offset,
                    0,
                    reason,
                ));
            }
            spans.extend(inside.filter(|_| len > 0).map(|span| (span, group, column)));
        }
    }
    // Writers store chunks in this order already.
    spans.sort_by_key(|(span, ..)| span.start());
    for pair in spans.windows(2) {
        let [(before, ..), (span, group, column)] = pair else { continue };
        if before.end() > span.start() {
            let region = Region::Chunk { group: *group, column: *column };
            let reason = Reason::Unexpected { rule: "column chunks do not overlap" };
            return Err(fault(region, "data_page_offset", span.start(), span.len(), reason));
        }
    }
    Ok(())
}

/// Checks that a field of the header equals an expected value.
fn check_equal(
    field: &'static str,
    offset: u64,
    found: u64,
    expected: u64,
    because: &'static str,
) -> Result<(), ErrorKind> {
    if found == expected {
        return Ok(());
    }
    let span = Span::at(offset, 8).unwrap_or(Span::empty(offset));
    let site = Site { region: Region::Header, field, span };
    Err(Malformed { site, reason: Reason::Mismatch { found, expected, because } }.into())
}

/// An error in a section of the footer, without a byte range.
pub(crate) fn section_fault(tag: u64, field: &'static str, reason: Reason) -> ErrorKind {
    Malformed { site: Site { region: Region::Section { tag }, field, span: Span::empty(0) }, reason }.into()
}

/// Converts a dictionary number of the footer to an index.
pub(crate) fn check_dictionary(footer: &Footer, number: u64) -> Result<usize, ErrorKind> {
    let index = number.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    index.filter(|index| *index < footer.dictionaries.len()).ok_or_else(|| {
        let allowed = "the number of a dictionary in the file";
        section_fault(FEATURES, "dict_index", Reason::OutOfRange { found: number, allowed })
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::{Column, Values, Writer, WriterOptions};

    #[test]
    fn the_number_of_threads_is_used() {
        let schema = Schema::new(vec![Field::new("a", Type::Int32)]).unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), schema, WriterOptions::new()).unwrap();
        writer.append(&[Column::new(Values::Int32(vec![1, 2, 3]))]).unwrap();
        let bytes = writer.finish().unwrap().output;
        for threads in [1, 2] {
            let options = ReadOptions::new().with_threads(NonZeroUsize::new(threads));
            let file = File::from_source(Arc::new(Memory::new("a", bytes.clone())), options).unwrap();
            assert_eq!(file.inner().on_threads(rayon::current_num_threads), threads);
            assert_eq!(file.read_column(0).unwrap().values, Values::Int32(vec![1, 2, 3]));
            assert_eq!(file.scan().batches().map(|batch| batch.unwrap().rows.len()).sum::<usize>(), 3);
        }
    }
}
