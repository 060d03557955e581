//! Column selection.

use tercet::core::escape;
use tercet::tatami::{Field, File, LogicalType};

use super::names;
use crate::failure::Failure;

/// The columns of a verb.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Columns {
    /// Select columns, in this order [default: all]. Quote names with commas in backticks
    #[arg(short, long, value_name = "NAMES")]
    columns: Option<String>,
}

impl Columns {
    /// The selected names without duplicates; `None` for all columns.
    pub(super) fn names(&self) -> Result<Option<Vec<String>>, Failure> {
        let list = self.columns.as_deref().map(str::trim).filter(|list| !list.is_empty());
        let Some(list) = list else { return Ok(None) };
        let names = names::list(list).map_err(Failure::request)?;
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                let message = format!("duplicate column `{}`", escape::name(name));
                return Err(Failure::request(message));
            }
        }
        Ok(Some(names))
    }

    /// The positions of the selected columns.
    pub(super) fn positions_in(&self, file: &File) -> Result<Vec<usize>, Failure> {
        match self.names()? {
            None => Ok((0..file.schema().len()).collect()),
            Some(names) => Ok(names.iter().map(|name| file.column_index(name)).collect::<Result<_, _>>()?),
        }
    }
}

/// The error of a missing column.
pub(super) fn no_column(file: &str, name: &str, all: &[String]) -> Failure {
    let message = format!("{}: no column `{}`", escape::name(file), escape::name(name));
    let failure = Failure::request(message);
    if all.is_empty() { failure } else { failure.with_hint(listed(all)) }
}

/// The first available columns, for a hint.
pub(super) fn listed(names: &[String]) -> String {
    const MAX_NAMES: usize = 12;
    let mut listed: Vec<String> =
        names.iter().take(MAX_NAMES).map(|name| format!("`{}`", escape::name(name))).collect();
    if names.len() > MAX_NAMES {
        listed.push("…".to_owned());
    }
    format!("columns: {}", listed.join(", "))
}

/// Whether stored values are printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct AsStored {
    /// Print stored values instead of logical types (dates, times, decimals)
    #[arg(long)]
    stored: bool,
}

impl AsStored {
    /// The logical type of a column, unless stored values are printed.
    pub(super) fn logical_type(self, file: &File, column: usize) -> Option<LogicalType> {
        if self.stored { None } else { file.logical_types().get(column).copied().flatten() }
    }

    /// The columns at these positions with their logical types.
    pub(super) fn typed_columns<'a>(
        self,
        file: &'a File,
        columns: &'a [usize],
    ) -> impl Iterator<Item = (&'a Field, Option<LogicalType>)> {
        let logical_types = if self.stored { Vec::new() } else { file.logical_types() };
        columns.iter().filter_map(move |column| {
            let field = file.schema().fields().get(*column)?;
            Some((field, logical_types.get(*column).copied().flatten()))
        })
    }
}
