//! Ingestion: tables of any format into `.tatami` files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::{ByteSource, Progress, Sink};
use tercet_tatami::{ErrorKind, Field, LogicalType, Schema, Type, Writer, WriterOptions, Written};

use super::format::TableFormat;
use super::ingest::{IngestError, rejected_row, transfer};
use super::reject::Reject;
use super::table::{Rows, Table, TableOptions};

/// Options of [`create`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IngestOptions {
    /// How the inputs are read.
    pub table: TableOptions,
    /// How the file is written.
    pub writer: WriterOptions,
    /// Sort the rows by this column, which becomes the sort key.
    pub sort: Option<String>,
    /// String or bytes columns that are stored as blobs, for large values.
    pub blobs: Vec<String>,
    /// Columns with bloom filters.
    pub blooms: Vec<String>,
}

impl IngestOptions {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how the inputs are read.
    pub fn with_table(mut self, table: TableOptions) -> Self {
        self.table = table;
        self
    }

    /// Sets how the file is written.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }

    /// Sets the column that the rows are sorted by.
    pub fn with_sort(mut self, column: Option<String>) -> Self {
        self.sort = column;
        self
    }

    /// Sets the columns that are stored as blobs.
    pub fn with_blobs(mut self, columns: Vec<String>) -> Self {
        self.blobs = columns;
        self
    }

    /// Sets the columns with bloom filters.
    pub fn with_blooms(mut self, columns: Vec<String>) -> Self {
        self.blooms = columns;
        self
    }

    /// The columns with their roles; the strings among the blobs are annotated.
    fn schema(&self, table: &mut Table) -> Result<Schema, IngestError> {
        let mut fields = table.schema().fields().to_vec();
        let is_text = |field: &Field| matches!(field.kind, Type::String | Type::Bytes | Type::BlobRef);
        for name in &self.blobs {
            let field = named(&mut fields, name)?;
            if !is_text(field) {
                return Err(IngestError::Role { column: name.clone(), role: "a blob", kind: field.kind });
            }
            if field.kind == Type::String {
                table.annotate(LogicalType::key(name), "string".to_owned());
            }
            (field.kind, field.blob_separated) = (Type::BlobRef, true);
        }
        for name in &self.blooms {
            named(&mut fields, name)?.bloom = true;
        }
        if let Some(name) = &self.sort {
            for field in &mut fields {
                field.sort_key = false;
            }
            let field = named(&mut fields, name)?;
            if matches!(field.kind, Type::BlobRef | Type::List) {
                return Err(IngestError::Role {
                    column: name.clone(),
                    role: "the sort key",
                    kind: field.kind,
                });
            }
            field.sort_key = true;
        }
        Schema::new(fields).map_err(|error| IngestError::Schema(error.to_string().into()))
    }
}

fn named<'a>(fields: &'a mut [Field], name: &str) -> Result<&'a mut Field, IngestError> {
    let found = fields.iter_mut().find(|field| *field.name == *name);
    found.ok_or_else(|| IngestError::NoSuchColumn { column: name.to_owned() })
}

/// Writes files of one format as one `.tatami` file, atomically. Rejected records of text are passed to `reject`; again, if the types
/// of the sample do not hold a later value and are inferred from all rows.
///
/// ```
/// use std::sync::Arc;
/// use tercet_convert::tables::{IngestOptions, TableFormat, create};
/// use tercet_core::{progress::NoProgress, source::Memory};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("cities.tatami");
/// let csv = Memory::new("cities.csv", "name;people\nUlm;126000\nBonn;331000\n");
/// let options = IngestOptions::new().with_sort(Some("name".into()));
/// let written = create(&path, &[Arc::new(csv)], TableFormat::Csv, &options, &NoProgress, &mut drop)?;
/// assert_eq!(written.rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create(
    path: impl AsRef<Path>,
    sources: &[Arc<dyn ByteSource>],
    format: TableFormat,
    options: &IngestOptions,
    progress: &dyn Progress,
    reject: &mut (dyn FnMut(Reject) + Send),
) -> Result<Written<PathBuf>, IngestError> {
    let path = path.as_ref();
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut table = Table::open(sources, format, &options.table, progress)?;
    loop {
        let schema = options.schema(&mut table)?;
        table.set_schema(schema.clone());
        let mut writer_options = options.writer.clone();
        for (key, value) in table.pairs() {
            writer_options = writer_options.with_metadata(key, value);
        }
        let sort = options.sort.as_ref().and_then(|name| schema.index_of(name));
        let mut has_nulls = table.has_unknown_nulls().then(|| vec![false; schema.len()]);
        let mut writer = Writer::create(path, schema, writer_options)?;
        let done =
            transfer(&mut table, sort, Some(directory.unwrap_or(Path::new("."))), progress, reject, |rows| {
                for (seen, column) in has_nulls.iter_mut().flatten().zip(&rows.columns) {
                    *seen |= column.nulls() > 0;
                }
                append(&mut writer, &rows)
            });
        match done {
            // The types of the sample do not hold all values. The incomplete output is discarded.
            Err(IngestError::Table(error)) if error.is_outside_sample() => table.infer_all(progress)?,
            Err(error) => return Err(error),
            Ok(_) => {
                writer.declare_present(|column| has_nulls.as_ref().is_some_and(|seen| !seen[column]));
                return Ok(writer.finish()?);
            }
        }
    }
}

/// Appends rows; errors of a row name its place in the input.
fn append<S: Sink>(writer: &mut Writer<S>, rows: &Rows) -> Result<(), IngestError> {
    let before = writer.rows();
    let Err(error) = writer.append(&rows.columns) else { return Ok(()) };
    let ErrorKind::Batch(batch) = error.kind() else { return Err(error.into()) };
    let Some((row, column, reason)) = rejected_row(batch, before) else { return Err(error.into()) };
    let line = rows.lines.as_ref().and_then(|lines| lines.get(usize::try_from(row).ok()?).copied());
    Err(IngestError::Row { input: Arc::clone(&rows.input), line, column: column.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use tercet_core::progress::NoProgress;
    use tercet_core::source::Memory;
    use tercet_tatami::{File, Scalar};

    use super::super::{OnError, Sample, TextOptions};
    use tercet_core::{Class, Diagnostic as _};

    use super::*;

    fn sources(texts: &[&'static str]) -> Vec<Arc<dyn ByteSource>> {
        let source = |text: &&'static str| Arc::new(Memory::new("rows", *text)) as Arc<dyn ByteSource>;
        texts.iter().map(source).collect()
    }

    #[test]
    fn inputs_become_one_sorted_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tatami");
        let inputs = sources(&["k,t\n3,c\n1,a\n", "k,t\n2,b\n"]);
        let options = IngestOptions::new().with_sort(Some("k".into())).with_blobs(vec!["t".into()]);
        let written = create(&path, &inputs, TableFormat::Csv, &options, &NoProgress, &mut drop).unwrap();
        assert_eq!(written.rows, 3);
        let file = File::open(&path).unwrap();
        let columns = file.read_columns(&[0, 1]).unwrap();
        assert_eq!(
            (0..3).map(|row| columns[0].scalar(row).unwrap()).collect::<Vec<_>>(),
            [Scalar::Int64(1), Scalar::Int64(2), Scalar::Int64(3)]
        );
        assert_eq!(columns[1].scalar(2), Some(Scalar::Bytes(b"c".to_vec())));
        assert_eq!(file.logical_types()[1], Some(LogicalType::Utf8));
        assert!(!file.schema().fields()[0].nullable);
    }

    #[test]
    fn types_are_inferred_again_from_all_rows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tatami");
        let text = TextOptions::new().with_sample(Sample::Rows(1));
        let mut options = IngestOptions::new().with_table(TableOptions::new().with_text(text.clone()));
        let mut rejected = Vec::new();
        let mut reject = |record: Reject| rejected.push(record.line);
        let inputs = sources(&["k\n1\nx\n"]);
        create(&path, &inputs, TableFormat::Csv, &options, &NoProgress, &mut reject).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!((file.rows(), file.schema().fields()[0].kind), (2, Type::String));
        options.table.text = text.with_on_error(OnError::Skip);
        options.writer = options.writer.with_overwrite(true);
        let inputs = sources(&["k\n1\n2,2\n3\n"]);
        create(&path, &inputs, TableFormat::Csv, &options, &NoProgress, &mut reject).unwrap();
        assert_eq!(File::open(&path).unwrap().rows(), 2);
        assert_eq!(rejected, [3]);
    }

    #[test]
    fn decompressed_files_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tatami");
        let inputs = sources(&["k\n1\n"]);
        create(&path, &inputs, TableFormat::Csv, &IngestOptions::new(), &NoProgress, &mut drop).unwrap();
        let file = tercet_core::source::File::open(&path).unwrap();
        let bytes = file.read_at(tercet_core::Span::first(file.len())).unwrap();
        let packed: Vec<Arc<dyn ByteSource>> =
            vec![Arc::new(Memory::new("a.zst", zstd::encode_all(&bytes[..], 1).unwrap()))];
        let open = |limit: usize| {
            let options = TableOptions::new().with_max_unpacked(limit as u64);
            Table::open(&packed, TableFormat::Tatami, &options, &NoProgress)
        };
        assert_eq!(open(bytes.len()).unwrap().schema().len(), 1);
        let error = open(bytes.len() - 1).unwrap_err();
        let text = format!("a.zst: the decompressed file exceeds {} bytes", bytes.len() - 1);
        assert_eq!((error.to_string(), error.class()), (text, Class::Limit));
    }

    #[test]
    fn errors_name_the_line_and_leave_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tatami");
        let error = |options: &IngestOptions| {
            let inputs = sources(&["k,l\n1,[1]\n"]);
            create(&path, &inputs, TableFormat::Csv, options, &NoProgress, &mut drop).unwrap_err()
        };
        let missing = error(&IngestOptions::new().with_sort(Some("x".into())));
        assert_eq!((missing.to_string().as_str(), missing.class()), ("no such column: `x`", Class::Request));
        let number = error(&IngestOptions::new().with_blobs(vec!["k".into()]));
        assert_eq!(number.to_string(), "column `k` is int64, which cannot be a blob");
        let declared = super::super::DeclaredColumns {
            fields: vec![Field::new("k", Type::Int64), Field::list("l", Type::Int64)],
            annotations: vec![(LogicalType::key("l"), "fixed_list[2]".to_owned())],
        };
        let table = TableOptions::new().with_declared(Some(declared));
        let length = error(&IngestOptions::new().with_table(table));
        assert_eq!(length.to_string(), "rows: line 2: column `l`: the list has another length than declared");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
