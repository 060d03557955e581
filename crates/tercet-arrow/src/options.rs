//! Conversion options.

use std::sync::Arc;

use tercet_core::Limits;
use tercet_tatami::{Field, Type};

use crate::error::{ColumnRole, ColumnRoleError, Error, ErrorKind};

/// Options of the conversion to `.tatami`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Roles of the columns: blobs, bloom filters, dictionaries, sort key.
    pub column_options: ColumnOptions,
    /// Conversion of timestamps.
    pub timestamps: Timestamps,
    /// Whether the file must be readable by other implementations, which do not support lists.
    pub interop: bool,
    /// Names of the columns to read, in any order; `None` reads all. Names that do not exist are ignored, and so are the types of
    /// other columns.
    pub columns: Option<Vec<String>>,
    /// How structs, maps and nested lists are read from files; `None` rejects them.
    pub nested: Option<Nested>,
    /// Largest sizes accepted when reading.
    pub limits: Limits,
}

impl Options {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the column roles.
    pub fn with_column_options(mut self, column_options: ColumnOptions) -> Self {
        self.column_options = column_options;
        self
    }

    /// Sets the conversion of timestamps.
    pub fn with_timestamps(mut self, timestamps: Timestamps) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Sets the columns to read.
    pub fn with_columns(mut self, columns: Option<Vec<String>>) -> Self {
        self.columns = columns;
        self
    }

    /// Sets whether lists are rejected.
    pub fn with_interop(mut self, interop: bool) -> Self {
        self.interop = interop;
        self
    }

    /// Sets how structs, maps and nested lists are read from files.
    pub fn with_nested(mut self, nested: Option<Nested>) -> Self {
        self.nested = nested;
        self
    }

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// How nested columns are read. Maps, lists of lists and lists of structs are always JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// One column for each member of a struct, named by its path: `a.b`.
    #[default]
    Flatten,
    /// Structs are JSON text too.
    Json,
}

/// Conversion of timestamps that are not in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// Scale; reject values finer than microseconds.
    #[default]
    Exact,
    /// Scale; round values finer than microseconds down.
    Floor,
    /// Copy the raw integers regardless of the unit, as the reference implementation does.
    Raw,
}

/// Roles of columns: blobs, bloom filters, dictionary hints, sort key.
///
/// Column names decide where a list is `None`: `markdown`, `body` and `html` are blobs; `doc_id`, `url` and `digest` get bloom
/// filters; every other string column gets the dictionary hint.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ColumnOptions {
    /// Columns stored in the blob region.
    pub blob: Option<Vec<String>>,
    /// Columns with bloom filters.
    pub bloom: Option<Vec<String>>,
    /// Columns with the dictionary hint.
    pub dict: Option<Vec<String>>,
    /// Column by which the rows are sorted.
    pub sort_key: Option<String>,
}

const BLOBS: [&str; 3] = ["markdown", "body", "html"];
const BLOOMS: [&str; 3] = ["doc_id", "url", "digest"];

impl ColumnOptions {
    /// Roles by column name.
    pub fn by_name() -> Self {
        Self::default()
    }

    /// No roles.
    pub fn none() -> Self {
        Self { blob: Some(Vec::new()), bloom: Some(Vec::new()), dict: Some(Vec::new()), sort_key: None }
    }

    /// Applies the explicit roles and keeps the others; `name` is the file, for errors.
    pub fn apply_explicit(&self, name: &Arc<str>, fields: &mut [Field]) -> Result<(), Error> {
        let names = |wanted: &dyn Fn(&Field) -> bool| {
            let named = fields.iter().filter(|field| wanted(field));
            Some(named.map(|field| field.name.to_string()).collect::<Vec<_>>())
        };
        let is_plain = |field: &Field| field.kind != Type::BlobRef;
        let all = Self {
            blob: self.blob.clone().or_else(|| Some(Vec::new())),
            bloom: self.bloom.clone().or_else(|| names(&|field| field.bloom && is_plain(field))),
            dict: self.dict.clone().or_else(|| names(&|field| field.dictionary_hint)),
            sort_key: self.sort_key.clone(),
        };
        if all.sort_key.is_some() {
            for field in &mut *fields {
                field.sort_key = false;
            }
        }
        all.apply(name, fields)
    }

    /// Applies the roles; `name` is the file, for errors.
    pub(crate) fn apply(&self, name: &Arc<str>, fields: &mut [Field]) -> Result<(), Error> {
        self.assign(fields).map_err(|kind| Error::new(Arc::clone(name), kind))
    }

    fn assign(&self, fields: &mut [Field]) -> Result<(), ErrorKind> {
        let is_listed = |list: &Option<Vec<String>>, name: &str, usual: &[&str]| match list {
            Some(names) => names.iter().any(|known| known == name),
            None => usual.contains(&name),
        };
        let listed = [
            (ColumnRole::Blob, &self.blob),
            (ColumnRole::Bloom, &self.bloom),
            (ColumnRole::Dictionary, &self.dict),
        ];
        for (role, names) in listed {
            for name in names.iter().flatten() {
                find(fields, role, name)?;
            }
        }
        for field in &mut *fields {
            let wanted = is_listed(&self.blob, &field.name, &BLOBS);
            match field.kind {
                Type::String | Type::Bytes | Type::BlobRef if wanted => {
                    field.kind = Type::BlobRef;
                    field.blob_separated = true;
                }
                kind if wanted && self.blob.is_some() => {
                    let reason = ColumnRoleError::NotBytes(kind);
                    return Err(role_error(ColumnRole::Blob, &field.name, reason));
                }
                _ => {}
            }
            let is_blob = field.kind == Type::BlobRef;
            let wanted = is_listed(&self.bloom, &field.name, &BLOOMS);
            if wanted && is_blob && self.bloom.is_some() {
                return Err(role_error(ColumnRole::Bloom, &field.name, ColumnRoleError::BlobBloom));
            }
            field.bloom = wanted && !is_blob;
            let listed =
                self.dict.as_ref().is_none_or(|names| names.iter().any(|name| **name == *field.name));
            field.dictionary_hint = field.kind == Type::String && !field.bloom && listed;
        }
        if let Some(name) = &self.sort_key {
            let field = find(fields, ColumnRole::SortKey, name)?;
            if matches!(field.kind, Type::BlobRef | Type::List) {
                let reason = ColumnRoleError::Unordered(field.kind);
                return Err(role_error(ColumnRole::SortKey, name, reason));
            }
            field.sort_key = true;
        }
        Ok(())
    }
}

fn role_error(role: ColumnRole, column: &str, reason: ColumnRoleError) -> ErrorKind {
    ErrorKind::ColumnRole { role, column: column.to_owned(), reason }
}

fn find<'a>(fields: &'a mut [Field], role: ColumnRole, name: &str) -> Result<&'a mut Field, ErrorKind> {
    fields
        .iter_mut()
        .find(|field| *field.name == *name)
        .ok_or_else(|| role_error(role, name, ColumnRoleError::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<Field> {
        vec![
            Field::new("url", Type::String),
            Field::new("html", Type::String),
            Field::new("body", Type::Int32),
            Field::new("title", Type::String),
        ]
    }

    #[test]
    fn explicit_roles_override_column_names() {
        let mut by_name = fields();
        ColumnOptions::by_name().apply(&"t".into(), &mut by_name).unwrap();
        let of = |fields: &[Field], index: usize| {
            let field = &fields[index];
            (field.kind, field.bloom, field.dictionary_hint)
        };
        assert_eq!(of(&by_name, 0), (Type::String, true, false));
        assert_eq!(of(&by_name, 1), (Type::BlobRef, false, false));
        assert_eq!(of(&by_name, 2), (Type::Int32, false, false));
        assert_eq!(of(&by_name, 3), (Type::String, false, true));
        let mut explicit = fields();
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let column_options = ColumnOptions {
            blob: list(&["title"]),
            bloom: list(&["body"]),
            dict: list(&["url"]),
            sort_key: Some("body".into()),
        };
        column_options.apply(&"t".into(), &mut explicit).unwrap();
        assert_eq!(of(&explicit, 0), (Type::String, false, true));
        assert_eq!(of(&explicit, 1), (Type::String, false, false));
        assert_eq!(of(&explicit, 2), (Type::Int32, true, false));
        assert_eq!(of(&explicit, 3), (Type::BlobRef, false, false));
        assert!(explicit[2].sort_key);
        for wrong in [
            ColumnOptions { blob: list(&["body"]), ..ColumnOptions::default() },
            ColumnOptions { bloom: list(&["nothing"]), ..ColumnOptions::default() },
            ColumnOptions { bloom: list(&["html"]), ..ColumnOptions::default() },
            ColumnOptions { sort_key: Some("html".into()), ..ColumnOptions::default() },
        ] {
            assert!(wrong.apply(&"t".into(), &mut fields()).is_err(), "{wrong:?}");
        }
    }
}
