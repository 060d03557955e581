//! Which columns are meant.

use tercet::core::escape;
use tercet::tatami::{Field, File, LogicalType};

use super::names;
use crate::failure::Failure;

/// The columns that a verb takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Columns {
    /// Take these columns, in this order; without it, all of them. A name with a comma stands in backquotes
    #[arg(short, long, value_name = "NAMES")]
    columns: Option<String>,
}

impl Columns {
    /// The names, each of them once; none if all columns are meant.
    pub(super) fn names(&self) -> Result<Option<Vec<String>>, Failure> {
        let list = self.columns.as_deref().map(str::trim).filter(|list| !list.is_empty());
        let Some(list) = list else { return Ok(None) };
        let names = names::list(list).map_err(Failure::request)?;
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                let said = format!("column `{}` is asked for twice", escape::name(name));
                return Err(Failure::request(said));
            }
        }
        Ok(Some(names))
    }

    /// The positions of the columns.
    pub(super) fn of(&self, file: &File) -> Result<Vec<usize>, Failure> {
        match self.names()? {
            None => Ok((0..file.schema().len()).collect()),
            Some(names) => Ok(names.iter().map(|name| file.column_index(name)).collect::<Result<_, _>>()?),
        }
    }
}

/// The positions of columns in a schema, of which a file has all that it was asked for; `all` is what the file has.
#[cfg(feature = "arrow")]
pub(super) fn positions(
    file: &str,
    schema: &tercet::tatami::Schema,
    names: &[String],
    all: impl FnOnce() -> Vec<String>,
) -> Result<Vec<usize>, Failure> {
    match names.iter().find(|name| schema.index_of(name).is_none()) {
        Some(missing) => Err(no_column(file, missing, &all())),
        None => Ok(names.iter().filter_map(|name| schema.index_of(name)).collect()),
    }
}

/// A column that was asked for and is not there.
#[cfg(feature = "arrow")]
pub(super) fn no_column(file: &str, name: &str, all: &[String]) -> Failure {
    let said = format!("{}: has no column `{}`", escape::name(file), escape::name(name));
    let failure = Failure::request(said);
    if all.is_empty() { failure } else { failure.with_hint(listed(all)) }
}

/// Some of the columns that there are.
#[cfg(feature = "arrow")]
pub(super) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut told: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", escape::name(name))).collect();
    if names.len() > SHOWN {
        told.push("…".to_owned());
    }
    format!("columns: {}", told.join(", "))
}

/// The values of a column as they are printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct AsStored {
    /// Print dates, times and decimals, which notes in the file tell, as the numbers and bytes that are stored
    #[arg(long)]
    stored: bool,
}

impl AsStored {
    /// The columns at some positions, with what their values are to be told as.
    pub(super) fn shown<'a>(
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
