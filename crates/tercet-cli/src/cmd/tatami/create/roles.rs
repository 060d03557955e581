//! Column roles: sort key, blob, bloom filter, dictionary.

use tercet::core::escape;
use tercet::tatami::{Field, Schema, Type};

use crate::cmd::tatami::names;
use crate::failure::Failure;

/// The roles of columns. An empty list differs from no list.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Roles {
    /// Sort key column, for `lookup`; the input must be sorted by it
    #[arg(long, value_name = "NAME", help_heading = "Columns")]
    sort_key: Option<String>,
    /// Sort the rows by this column, which becomes the sort key
    #[arg(long, value_name = "NAME", help_heading = "Columns", conflicts_with = "sort_key")]
    sort: Option<String>,
    /// Store these string or bytes columns as blobs, for large values
    #[arg(long, value_name = "NAMES", help_heading = "Columns")]
    blob: Option<Vec<String>>,
    /// Write bloom filters for these columns
    #[arg(long, value_name = "NAMES", help_heading = "Columns")]
    bloom: Option<Vec<String>>,
    /// Set the dictionary hint of these columns; a dictionary is tried for every column
    #[arg(long, value_name = "NAMES", help_heading = "Columns")]
    dict: Option<Vec<String>>,
}

/// The names of a given list.
fn list(given: Option<&Vec<String>>) -> Result<Option<Vec<String>>, Failure> {
    let Some(given) = given else { return Ok(None) };
    let mut all = Vec::new();
    for text in given {
        all.extend(names::list(text).map_err(Failure::request)?);
    }
    all.retain(|name| !name.is_empty());
    Ok(Some(all))
}

impl Roles {
    /// A sort key only.
    pub(super) fn sorted_by(column: Option<&str>) -> Self {
        Self { sort_key: column.map(str::to_owned), ..Self::default() }
    }

    /// The column to sort the rows by.
    pub(in crate::cmd::tatami) fn sort(&self) -> Option<&str> {
        self.sort.as_deref()
    }

    /// The first option that is given.
    #[cfg(feature = "arrow")]
    pub(in crate::cmd::tatami) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--sort-key", self.sort_key.is_some()),
            ("--blob", self.blob.is_some()),
            ("--bloom", self.bloom.is_some()),
            ("--dict", self.dict.is_some()),
        ];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// The roles for Arrow and Parquet input, with defaults by name.
    #[cfg(feature = "arrow")]
    pub(in crate::cmd::tatami) fn for_table(&self) -> Result<tercet::arrow::ColumnOptions, Failure> {
        let mut roles = tercet::arrow::ColumnOptions::by_name();
        (roles.blob, roles.bloom, roles.dict) =
            (list(self.blob.as_ref())?, list(self.bloom.as_ref())?, list(self.dict.as_ref())?);
        roles.sort_key = self.sort_key.clone().or_else(|| self.sort.clone());
        Ok(roles)
    }

    /// Applies the roles to columns.
    pub(in crate::cmd::tatami) fn apply(&self, mut fields: Vec<Field>) -> Result<Schema, Failure> {
        for name in &list(self.blob.as_ref())?.unwrap_or_default() {
            let field = named(&mut fields, name, "--blob")?;
            if !matches!(field.kind, Type::String | Type::Bytes | Type::BlobRef) {
                let (name, kind) = (escape::name(name), field.kind);
                let message = format!("`--blob {name}`: requires string or bytes, found {kind}");
                return Err(Failure::request(message));
            }
            field.kind = Type::BlobRef;
            field.blob_separated = true;
        }
        for name in &list(self.bloom.as_ref())?.unwrap_or_default() {
            named(&mut fields, name, "--bloom")?.bloom = true;
        }
        for name in &list(self.dict.as_ref())?.unwrap_or_default() {
            named(&mut fields, name, "--dict")?.dictionary_hint = true;
        }
        if let Some(name) = self.sort_key.as_ref().or(self.sort.as_ref()) {
            let option = if self.sort.is_some() { "--sort" } else { "--sort-key" };
            let field = named(&mut fields, name, option)?;
            if field.kind == Type::BlobRef {
                let message =
                    format!("`{option} {}`: a blob column cannot be the sort key", escape::name(name));
                return Err(Failure::request(message));
            }
            field.sort_key = true;
        }
        Schema::new(fields).map_err(|error| Failure::request(error.to_string()))
    }
}

fn named<'a>(fields: &'a mut [Field], name: &str, option: &str) -> Result<&'a mut Field, Failure> {
    let names: Vec<String> = fields.iter().map(|field| format!("`{}`", escape::name(&field.name))).collect();
    let found = fields.iter_mut().find(|field| *field.name == *name);
    found.ok_or_else(|| {
        let failure = Failure::request(format!("`{option} {}`: no such column", escape::name(name)));
        failure.with_hint(format!("columns: {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_require_suitable_columns() {
        let fields = || vec![Field::new("id", Type::Int64), Field::new("t", Type::String)];
        let roles = |sort_key: Option<&str>, blob: &[&str]| Roles {
            sort_key: sort_key.map(str::to_owned),
            blob: Some(blob.iter().map(|name| (*name).to_owned()).collect()),
            ..Roles::default()
        };
        let schema = roles(Some("id"), &["t"]).apply(fields()).unwrap();
        assert_eq!((schema.sort_key(), schema.fields()[1].kind), (Some(0), Type::BlobRef));
        assert!(roles(Some("x"), &[]).apply(fields()).is_err());
        assert!(roles(None, &["id"]).apply(fields()).is_err());
        assert!(roles(Some("t"), &["t"]).apply(fields()).is_err());
    }
}
