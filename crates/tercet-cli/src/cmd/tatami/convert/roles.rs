//! What columns of the file are to be besides their types.

use tercet::arrow::Roles;

/// Lists of columns; one that is not given leaves the choice to names.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RoleLists {
    /// The rows are in the order of this column, so that `lookup` finds them; unsorted rows are refused
    #[arg(long, value_name = "NAME", help_heading = "Columns")]
    sort_key: Option<String>,
    /// Store the values of these text or bytes columns apart from the rows, for large values
    #[arg(long, value_name = "NAMES", help_heading = "Columns")]
    blob: Option<String>,
    /// Give these columns bloom filters
    #[arg(long, value_name = "NAMES", help_heading = "Columns")]
    bloom: Option<String>,
    /// Give these columns the hint that a dictionary is worth it; every column is tried with one anyway
    #[arg(long, value_name = "NAMES", help_heading = "Columns")]
    dict: Option<String>,
}

impl RoleLists {
    /// Whether anything is said.
    pub(super) fn is_given(&self) -> bool {
        self.sort_key.is_some() || self.blob.is_some() || self.bloom.is_some() || self.dict.is_some()
    }

    /// The lists. One without names is a list all the same.
    pub(super) fn roles(&self) -> Roles {
        let list = |text: &Option<String>| {
            let names = |text: &String| {
                text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
            };
            text.as_ref().map(names)
        };
        let mut roles = Roles::by_name();
        (roles.blob, roles.bloom, roles.dict) = (list(&self.blob), list(&self.bloom), list(&self.dict));
        roles.sort_key.clone_from(&self.sort_key);
        roles
    }
}
