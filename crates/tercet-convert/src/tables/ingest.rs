//! Passing the rows of tables on, sorted if requested, and the errors of ingestion.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use tercet_core::progress::Cancelled;
use tercet_core::{Class, Diagnostic, Hint, Progress, Span, escape, threads};
use tercet_tatami::{BatchError, Type};

use super::error::{Error, ErrorKind};
use super::reject::Reject;
use super::sort::{SortError, Sorter};
use super::table::{Rows, Table, TableError};

/// Batches that wait for the consumer while the next one is read.
const WAITING_BATCHES: usize = 2;

/// Passes the rows of a table on while a thread reads the next ones. With `sort`, the position of a column, the rows are sorted
/// by it, in temporary files in `directory`. Returns warnings with the input of each.
pub fn transfer<E>(
    table: &mut Table,
    sort: Option<usize>,
    directory: Option<&Path>,
    progress: &dyn Progress,
    reject: &mut (dyn FnMut(Reject) + Send),
    mut push: impl FnMut(Rows) -> Result<(), E>,
) -> Result<Vec<(Arc<str>, String)>, E>
where
    E: From<TableError> + From<SortError> + Send,
{
    let name = table.name();
    let cancelled = || TableError::from(Error::new(Arc::clone(&name), ErrorKind::Cancelled(Cancelled)));
    let mut sorter = sort.map(|key| Sorter::new(table.schema(), key, directory)).transpose()?;
    let mut take = |rows: Rows| match &mut sorter {
        Some(sorter) => Ok::<_, E>(sorter.push(&rows.columns)?),
        None => push(rows),
    };
    let warnings = if threads::can_start(1).is_ok() {
        let (sender, receiver) = sync_channel::<Rows>(WAITING_BATCHES);
        let (table, cancelled) = (&mut *table, &cancelled);
        std::thread::scope(|scope| {
            let reading = std::thread::Builder::new().spawn_scoped(scope, move || {
                table.read(progress, reject, |rows| {
                    // The receiver is gone after an error of the consumer, which is returned instead.
                    sender.send(rows).map_err(|_| E::from(cancelled()))
                })
            });
            let failed = |error| TableError::from(Error::new(Arc::clone(&name), ErrorKind::Read(error)));
            let reading = reading.map_err(failed)?;
            // The receiver is dropped after an error, which ends the reader.
            let taken = receiver.into_iter().try_for_each(&mut take);
            let read = reading.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
            taken.and(read)
        })?
    } else {
        table.read(progress, reject, &mut take)?
    };
    if let Some(sorter) = sorter {
        sorter.finish(|columns| {
            if progress.is_cancelled() {
                return Err(cancelled().into());
            }
            push(Rows { input: Arc::clone(&name), columns, lines: None })
        })?;
    }
    Ok(warnings)
}

/// Error of a table that is written to a `.tatami` file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// An input could not be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The rows could not be sorted.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] tercet_tatami::Error),
    /// A row that the file cannot have, by its place in the input.
    #[error("{}: {}column `{}`: {reason}", escape::name(input), display_line(*line), escape::name(column))]
    Row {
        /// The input.
        input: Arc<str>,
        /// The line of text input, from 1.
        line: Option<u64>,
        /// The column.
        column: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A column with a role does not exist.
    #[error("no such column: `{}`", escape::name(column))]
    NoSuchColumn {
        /// The column.
        column: String,
    },
    /// The type of a column does not allow its role.
    #[error("column `{}` is {kind}, which cannot be {role}", escape::name(column))]
    Role {
        /// The column.
        column: String,
        /// The role.
        role: &'static str,
        /// The type of the column.
        kind: Type,
    },
    /// The columns with their roles are not a schema.
    #[error("{0}")]
    Schema(Box<str>),
}

fn display_line(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

impl Diagnostic for IngestError {
    fn class(&self) -> Class {
        match self {
            Self::Table(error) => error.class(),
            Self::Sort(error) => error.class(),
            Self::Write(error) => error.class(),
            _ => Class::Request,
        }
    }
    fn span(&self) -> Option<Span> {
        match self {
            Self::Table(error) => error.span(),
            Self::Write(error) => error.span(),
            _ => None,
        }
    }
    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Table(error) => error.hint(),
            Self::Write(error) => error.hint(),
            _ => None,
        }
    }
    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Table(error) if error.is_cancelled())
    }
}

/// The row, column and reason of a rejected batch, if a row of the input is the cause. `before` is the number of rows written
/// before the batch.
pub fn rejected_row(error: &BatchError, before: u64) -> Option<(u64, &str, &'static str)> {
    Some(match error {
        BatchError::Unsorted { column, row } => {
            (row.saturating_sub(before), &**column, "sort key is less than in the previous row")
        }
        BatchError::Null { column, row } => (*row, &**column, "null in a non-nullable column"),
        BatchError::ListLength { column, row, .. } => {
            (*row, &**column, "the list has another length than declared")
        }
        BatchError::TooLarge { column, row, .. } => (*row, &**column, "value exceeds the maximum page size"),
        _ => return None,
    })
}
