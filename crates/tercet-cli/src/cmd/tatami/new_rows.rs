//! New rows of a file or collection: JSONL or CSV.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tercet::convert::tables::{
    Batch, CsvOptions, DeclaredColumns, Sample, TextFormat, TextOptions, TextTable,
};
use tercet::core::Progress;
use tercet::core::progress::NoProgress;
use tercet::tatami::{File, LogicalType, Schema};

use crate::failure::Failure;
use crate::input::Input;
use crate::render::parse_size;

/// Where new rows are read.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct NewRowsArgs {
    /// New rows: a JSONL or CSV file or URL; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Format of the new rows [default: by file extension, JSONL for standard input]
    #[arg(long, value_name = "FORMAT")]
    format: Option<RowsFormat>,
    /// Maximum size of standard input, which is buffered in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    max_stdin: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RowsFormat {
    Jsonl,
    Csv,
    Tsv,
}

impl NewRowsArgs {
    /// The path of the input.
    pub(super) fn path(&self) -> &Path {
        &self.from
    }

    fn format(&self) -> RowsFormat {
        let extension =
            self.from.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        self.format.unwrap_or(match extension.as_deref() {
            Some("csv") => RowsFormat::Csv,
            Some("tsv") => RowsFormat::Tsv,
            _ => RowsFormat::Jsonl,
        })
    }

    /// Opens the new rows: with the columns of a file, or with inferred ones.
    pub(super) fn open(&self, columns: Option<&File>) -> Result<TextTable, Failure> {
        let source = Input { path: self.from.clone(), max_stdin: self.max_stdin }.source()?;
        let declared = columns.map(|file| {
            let is_annotation = |(key, _): &&(String, String)| {
                file.schema().fields().iter().any(|field| *key == LogicalType::key(&field.name))
            };
            let annotations = file.footer().pairs.iter().filter(is_annotation).cloned().collect();
            DeclaredColumns { fields: file.schema().fields().to_vec(), annotations }
        });
        let (format, delimiter) = match self.format() {
            RowsFormat::Jsonl => (TextFormat::Jsonl, None),
            RowsFormat::Csv => (TextFormat::Csv, None),
            RowsFormat::Tsv => (TextFormat::Csv, Some(b'\t')),
        };
        let csv = CsvOptions::new().with_delimiter(delimiter).with_header(Some(true));
        // Rows are written while they are read: no later row may change the types.
        let options = TextOptions::new().with_csv(csv).with_sample(Sample::All);
        Ok(TextTable::open(&[source], format, options, declared, &NoProgress)?)
    }
}

/// Passes all rows of a table to a function.
pub(super) fn read(
    table: &TextTable,
    schema: &Schema,
    progress: &(dyn Progress + Sync),
    mut append: impl FnMut(&Batch) -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    // Without `--on-error`, the first invalid record is an error.
    table.read(schema, progress, &mut |_| {}, |_, batch| append(&batch))
}
