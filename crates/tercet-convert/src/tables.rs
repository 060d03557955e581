//! CSV and JSONL tables as batches of `.tatami` columns.
//!
//! ```text
//! bytes ──▶ Lines ──▶ Record (CSV), object (JSONL) ──▶ Token ──▶ Inference ──▶ fields
//!                                                         └────▶ Builder ────▶ Batch
//! ```
//!
//! Without declared columns, the schema is inferred from the entire input: a first pass finds the types, a second one
//! reads the rows. Both passes are bounded in memory by the longest line and one batch.
//!
//! ```
//! use std::sync::Arc;
//! use tercet_convert::tables::{Error, TextFormat, TextTable};
//! use tercet_core::{progress::NoProgress, source::Memory};
//! use tercet_tatami::{Schema, Type};
//!
//! let csv = Memory::new("cities.csv", "name,people\nBonn,331\nUlm,\n");
//! let table = TextTable::open(Arc::new(csv), TextFormat::csv(), None, &NoProgress)?;
//! assert_eq!((table.fields()[1].kind, table.fields()[1].nullable), (Type::Int64, true));
//!
//! let schema = Schema::new(table.fields().to_vec()).unwrap();
//! let mut lines = Vec::new();
//! table.read(&schema, &NoProgress, |batch| {
//!     lines.extend(batch.lines);
//!     Ok::<_, Error>(())
//! })?;
//! assert_eq!(lines, [2, 3]);
//! # Ok::<(), Error>(())
//! ```

use std::sync::Arc;

use tercet_core::{ByteSource, Progress};
use tercet_tatami::{Field, Schema};

mod assemble;
mod build;
mod csv;
mod error;
mod infer;
mod json;
mod rows;
mod stamp;
mod text;
mod token;

pub use assemble::Batch;
use build::ValueParser;
pub use error::{Error, ErrorKind, NonText};
use text::Lines;

/// Text format of a table.
#[derive(Clone, Debug)]
pub enum TextFormat {
    /// One JSON object per line, with scalars and lists of scalars.
    Jsonl {
        /// The columns to read; `None` for all.
        only: Option<Vec<String>>,
    },
    /// Comma-separated values, or values with another delimiter. An empty field without quotes is null.
    Csv {
        /// The ASCII character between two fields.
        delimiter: u8,
        /// Whether the first record has the column names.
        has_header: bool,
        /// Unquoted fields that mean null.
        nulls: Vec<String>,
    },
}

impl TextFormat {
    /// CSV with commas and a header.
    pub const fn csv() -> Self {
        Self::Csv { delimiter: b',', has_header: true, nulls: Vec::new() }
    }

    /// JSONL with all columns.
    pub const fn jsonl() -> Self {
        Self::Jsonl { only: None }
    }

    /// Whether a column is read.
    fn wants(&self, name: &str) -> bool {
        match self {
            Self::Jsonl { only: Some(only) } => only.iter().any(|known| known == name),
            _ => true,
        }
    }
}

/// Declared columns of a table.
#[derive(Clone, Debug, Default)]
pub struct DeclaredColumns {
    /// The columns.
    pub fields: Vec<Field>,
    /// Logical type annotations, as pairs of footer metadata.
    pub annotations: Vec<(String, String)>,
}

/// A CSV or JSONL table with a schema.
#[derive(Debug)]
pub struct TextTable {
    source: Arc<dyn ByteSource>,
    format: TextFormat,
    /// The names of declared columns, including those that are not read.
    declared: Option<Vec<String>>,
    fields: Vec<Field>,
    annotations: Vec<(String, String)>,
}

impl TextTable {
    /// Opens a table. Without declared columns, they are inferred from the entire input.
    pub fn open(
        source: Arc<dyn ByteSource>,
        format: TextFormat,
        declared: Option<DeclaredColumns>,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let Some(DeclaredColumns { mut fields, annotations }) = declared else {
            let fields = rows::infer(&mut Lines::new(Arc::clone(&source)), &format, progress)?;
            return Ok(Self { source, format, declared: None, fields, annotations: Vec::new() });
        };
        let declared = Some(fields.iter().map(|field| field.name.to_string()).collect());
        fields.retain(|field| format.wants(&field.name));
        Ok(Self { source, format, declared, fields, annotations })
    }

    /// The columns to read.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The logical type annotations, as pairs of footer metadata.
    pub fn annotations(&self) -> &[(String, String)] {
        &self.annotations
    }

    /// All column names of the input. JSONL is read again for them.
    pub fn names(&self, progress: &dyn Progress) -> Result<Vec<String>, Error> {
        match (&self.declared, &self.format) {
            (Some(declared), _) => Ok(declared.clone()),
            (None, TextFormat::Jsonl { only: Some(_) }) => {
                rows::all_names(&mut Lines::new(Arc::clone(&self.source)), progress)
            }
            (None, _) => Ok(self.fields.iter().map(|field| field.name.to_string()).collect()),
        }
    }

    /// Passes all rows to `each` in batches. `schema` differs from [`fields`](Self::fields) in roles and storage only.
    pub fn read<E: From<Error>>(
        &self,
        schema: &Schema,
        progress: &dyn Progress,
        each: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        // Parsing depends on the type, not on the storage.
        let parsers = ValueParser::all(&self.fields, &self.annotations);
        let fields: Vec<(Field, ValueParser)> = schema.fields().iter().cloned().zip(parsers).collect();
        rows::read(&mut Lines::new(Arc::clone(&self.source)), &self.format, &fields, progress, each)
    }
}
