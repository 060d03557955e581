//! Which columns are meant.

use tercet::core::escape;
use tercet::tatami::{Field, File};

use crate::failure::Failure;

/// The columns that a verb prints.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Columns {
    /// Print these columns, in this order; without it, all of them
    #[arg(short, long, value_name = "NAMES")]
    columns: Option<String>,
}

impl Columns {
    /// Whether some columns are named.
    #[cfg(feature = "arrow")]
    pub(super) fn is_some(&self) -> bool {
        self.columns.is_some()
    }

    /// The positions of the columns. A name may stand in the list once.
    pub(super) fn of(&self, file: &File) -> Result<Vec<usize>, Failure> {
        let named = self.columns.as_deref().map(str::trim).filter(|list| !list.is_empty());
        let Some(list) = named else { return Ok((0..file.schema().len()).collect()) };
        let mut found = Vec::new();
        for name in list.split(',').map(str::trim) {
            let column = file.column_index(name)?;
            if found.contains(&column) {
                let said = format!("column `{}` is asked for twice", escape::name(name));
                return Err(Failure::request(said));
            }
            found.push(column);
        }
        Ok(found)
    }
}

/// The fields at some positions.
pub(super) fn fields<'a>(file: &'a File, columns: &'a [usize]) -> impl Iterator<Item = &'a Field> {
    columns.iter().filter_map(|column| file.schema().fields().get(*column))
}
