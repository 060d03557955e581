//! Merges files: concatenated, or sorted by the sort key if there is one.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use tercet_core::{Progress, Sink};

use super::{Collection, Member};
use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::scalar::Scalar;
use crate::scan::Batches;
use crate::schema::{Field, Schema};
use crate::writer::{Writer, WriterOptions, Written};

/// Rows per input in memory.
const BATCH_ROWS: u64 = 2048;

impl Collection {
    /// Writes the rows of some members to a new member that replaces them, atomically: readers see the old members or
    /// the new one. The old files are not deleted.
    pub fn merge<P: AsRef<Path>>(
        &mut self,
        inputs: &[P],
        output: &Path,
        options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Member, Error> {
        let mut members = Vec::with_capacity(inputs.len());
        let mut files = Vec::with_capacity(inputs.len());
        for input in inputs {
            let path = input.as_ref();
            let display = path.to_string_lossy();
            let member = if let Some(member) = self.member(&display) {
                member.clone()
            } else {
                let relative = self.relative(path)?;
                let missing = || self.error(ErrorKind::NoSuchMember { path: relative.as_str().into() });
                self.member(&relative).cloned().ok_or_else(missing)?
            };
            files.push(self.open_member(&member)?);
            members.push(member);
        }
        let Some(first) = files.first() else {
            return Err(self.error(ErrorKind::NoSuchMember { path: "".into() }));
        };
        let schema = (**first.schema()).clone();
        let options = with_common(options, &files).with_overwrite(true);
        let writer = Writer::create_on(Arc::clone(&self.disk), output, schema, options)?;
        merge_into(&files, writer, progress)?;
        self.exchange(output, &members)
    }
}

/// Merges files with the same columns. With a sort key the rows are sorted by it, and rows with equal keys are in file order;
/// without, the files are concatenated.
///
/// A batch of each file is in memory. A file that is not sorted by its sort key is an error.
pub fn merge_files<S: Sink>(
    files: &[File],
    sink: S,
    options: WriterOptions,
    progress: &dyn Progress,
) -> Result<Written<S::Output>, Error> {
    let Some(first) = files.first() else {
        return Err(Error::new("merge".into(), ErrorKind::NoSuchMember { path: "".into() }));
    };
    let schema = (**first.schema()).clone();
    let options = with_common(options, files);
    let writer = Writer::new(sink, schema, options)?;
    merge_into(files, writer, progress)
}

fn merge_into<S: Sink>(
    files: &[File],
    mut writer: Writer<S>,
    progress: &dyn Progress,
) -> Result<Written<S::Output>, Error> {
    let schema = writer.schema().clone();
    for file in files {
        check_same_schema(&schema, files, file)?;
    }
    let key = schema.sort_key();
    let mut inputs: Vec<Input> =
        files.iter().map(|file| Input::new(file, key)).collect::<Result<_, Error>>()?;
    while let Some(at) = next_input(&inputs) {
        progress.check().map_err(|cancelled| writer.error(cancelled.into()))?;
        let rows = match key {
            // All rows before the next row of any other file are copied together.
            Some(_) => inputs[at].run(&inputs, at),
            None => inputs[at].left(),
        };
        let input = &mut inputs[at];
        let batch = input.cut(schema.fields(), rows);
        writer.append(&batch)?;
        input.fill()?;
    }
    writer.finish()
}

/// Adds the key-value pairs that all footers have in common, except those of the format itself.
fn with_common(mut options: WriterOptions, files: &[File]) -> WriterOptions {
    let Some((first, others)) = files.split_first() else { return options };
    for pair in &first.footer().pairs {
        let is_common = others.iter().all(|other| other.footer().pairs.contains(pair));
        if is_common && !pair.0.starts_with("tatami.") && !options.metadata.contains(pair) {
            options.metadata.push(pair.clone());
        }
    }
    options
}

/// Whether two schemas have the same columns, in the same order.
pub(super) fn has_same_columns(one: &Schema, other: &Schema) -> bool {
    let same = |one: &Field, other: &Field| {
        one.name == other.name
            && (one.kind, one.element, one.nullable, one.sort_key)
                == (other.kind, other.element, other.nullable, other.sort_key)
    };
    one.len() == other.len() && one.fields().iter().zip(other.fields()).all(|(a, b)| same(a, b))
}

/// The columns must be the same, in the same order, with the same logical types.
fn check_same_schema(schema: &Schema, files: &[File], file: &File) -> Result<(), Error> {
    let fields = file.schema().fields();
    let alike = has_same_columns(schema, file.schema());
    let Some(first) = files.first() else { return Ok(()) };
    if alike {
        let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        return super::rows::check_same_schema(first, file, &names);
    }
    Err(file.error(ErrorKind::SchemaMismatch {
        other: (**first.name()).into(),
        reason: "the columns differ".into(),
    }))
}

/// An input file.
struct Input {
    batches: Batches,
    key: Option<usize>,
    batch: Vec<Column>,
    at: usize,
    /// The key of the next row; `None` for nulls, which sort first.
    head: Option<Scalar>,
}

impl Input {
    fn new(file: &File, key: Option<usize>) -> Result<Self, Error> {
        let batches = file.scan().with_batch_rows(BATCH_ROWS).without_read_ahead().batches();
        let mut out = Self { batches, key, batch: Vec::new(), at: 0, head: None };
        out.fill()?;
        Ok(out)
    }

    fn left(&self) -> usize {
        self.batch.first().map_or(0, Column::len) - self.at
    }

    /// Reads the next batch if the current one is exhausted.
    fn fill(&mut self) -> Result<(), Error> {
        while self.left() == 0 {
            let Some(batch) = self.batches.next() else { break };
            (self.batch, self.at) = (batch?.columns, 0);
        }
        if self.left() > 0 {
            self.head = self.key_at(self.at);
        }
        Ok(())
    }

    fn key_at(&self, row: usize) -> Option<Scalar> {
        self.batch.get(self.key?)?.scalar(row).filter(|key| !key.is_nan())
    }

    /// The number of rows before the next row of every other input; at least one.
    fn run(&self, inputs: &[Self], at: usize) -> usize {
        let others = || inputs.iter().enumerate().filter(|(other, input)| *other != at && input.left() > 0);
        let comes_first = |row: usize| {
            let key = self.key_at(row);
            others().all(|(other, input)| precedes((key.as_ref(), at), (input.head.as_ref(), other)))
        };
        let end = self.at + self.left();
        // Keys ascend, so runs are found by galloping.
        let mut known = self.at + 1;
        let mut step = 1;
        while known < end && comes_first(known.min(end - 1)) && comes_first((known + step - 1).min(end - 1)) {
            known = (known + step).min(end);
            step *= 2;
        }
        while known < end && comes_first(known) {
            known += 1;
        }
        known - self.at
    }

    /// Takes the next rows.
    fn cut(&mut self, fields: &[Field], rows: usize) -> Vec<Column> {
        let (from, to) = (self.at, self.at + rows);
        self.at = to;
        let columns = self.batch.iter().zip(fields);
        let piece = columns.map(|(column, field)| {
            let mut out = Column::empty(field);
            out.extend_from(column, from, to);
            out
        });
        piece.collect()
    }
}

/// Whether a row comes before another: by key, then by file.
fn precedes(one: (Option<&Scalar>, usize), other: (Option<&Scalar>, usize)) -> bool {
    let order = match (one.0, other.0) {
        (Some(a), Some(b)) => a.order(b).unwrap_or(Ordering::Equal),
        (a, b) => a.is_some().cmp(&b.is_some()),
    };
    order.then(one.1.cmp(&other.1)) == Ordering::Less
}

/// The input with the next row; without a sort key, the first non-empty input.
fn next_input(inputs: &[Input]) -> Option<usize> {
    let open = inputs.iter().enumerate().filter(|(_, input)| input.left() > 0);
    let best = open.reduce(|best, input| {
        let (one, other) = ((input.1.head.as_ref(), input.0), (best.1.head.as_ref(), best.0));
        if input.1.key.is_some() && precedes(one, other) { input } else { best }
    });
    best.map(|(at, _)| at)
}
