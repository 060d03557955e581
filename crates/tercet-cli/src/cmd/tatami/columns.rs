//! Which columns are meant.

use tercet::core::escape;
use tercet::tatami::{Field, File, Meaning};

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

/// The positions of columns in a schema, of which a file has all that it was asked for.
#[cfg(feature = "arrow")]
pub(super) fn positions(
    file: &str,
    schema: &tercet::tatami::Schema,
    names: &[String],
) -> Result<Vec<usize>, Failure> {
    let position = |name: &String| {
        let missing =
            || Failure::request(format!("{}: has no column `{}`", escape::name(file), escape::name(name)));
        schema.index_of(name).ok_or_else(missing)
    };
    names.iter().map(position).collect()
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
    ) -> impl Iterator<Item = (&'a Field, Option<Meaning>)> {
        let meanings = if self.stored { Vec::new() } else { file.meanings() };
        columns.iter().filter_map(move |column| {
            let field = file.schema().fields().get(*column)?;
            Some((field, meanings.get(*column).copied().flatten()))
        })
    }
}
