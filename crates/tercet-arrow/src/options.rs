//! How a table is carried over.

use tercet_core::Limits;
use tercet_tatami::{Field, Type};

use crate::error::{ColumnRole, ColumnRoleError, Error};

/// How a table is carried over into a `.tatami` file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Which columns get which roles.
    pub column_options: ColumnOptions,
    /// How times are carried over.
    pub timestamps: Timestamps,
    /// Whether the file is for other readers of the format, which know no lists.
    pub interop: bool,
    /// The columns that are read, whatever their order; names that are not there are passed over, as are the types of
    /// columns that are not named. None reads all.
    pub columns: Option<Vec<String>>,
    /// How much a file may make the reader allocate.
    pub limits: Limits,
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the roles.
    pub fn with_column_options(mut self, column_options: ColumnOptions) -> Self {
        self.column_options = column_options;
        self
    }

    /// Sets how times are carried over.
    pub fn with_timestamps(mut self, timestamps: Timestamps) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Sets which columns are read.
    pub fn with_columns(mut self, columns: Option<Vec<String>>) -> Self {
        self.columns = columns;
        self
    }

    /// Sets whether lists are refused.
    pub fn with_interop(mut self, interop: bool) -> Self {
        self.interop = interop;
        self
    }

    /// Sets how much a file may make the reader allocate.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// What becomes of times that are not in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// They are scaled; one between two microseconds is refused.
    #[default]
    Exact,
    /// They are scaled; one between two microseconds is cut to the one before.
    Floor,
    /// Their numbers are copied, whatever their unit, as the reference implementation does.
    Raw,
}

/// Columns that are stored apart, that have filters, that are to be sorted by.
///
/// Where nothing is said, names decide: `markdown`, `body` and `html` are stored apart; `doc_id`, `url` and `digest` get
/// filters; every other text gets the hint that a dictionary would fit.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ColumnOptions {
    /// Stored apart.
    pub blob: Option<Vec<String>>,
    /// With bloom filters.
    pub bloom: Option<Vec<String>>,
    /// With the dictionary hint.
    pub dict: Option<Vec<String>>,
    /// The rows are in the order of this column.
    pub sort_key: Option<String>,
}

const BLOBS: [&str; 3] = ["markdown", "body", "html"];
const BLOOMS: [&str; 3] = ["doc_id", "url", "digest"];

impl ColumnOptions {
    /// What names decide.
    pub fn by_name() -> Self {
        Self::default()
    }

    /// No roles at all.
    pub fn none() -> Self {
        Self { blob: Some(Vec::new()), bloom: Some(Vec::new()), dict: Some(Vec::new()), sort_key: None }
    }

    /// Gives fields the roles that are said, and leaves the others as they are.
    pub fn apply_explicit(&self, fields: &mut [Field]) -> Result<(), Error> {
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
        all.apply(fields)
    }

    /// Gives fields their roles.
    pub(crate) fn apply(&self, fields: &mut [Field]) -> Result<(), Error> {
        let said = |list: &Option<Vec<String>>, name: &str, usual: &[&str]| match list {
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
            let wanted = said(&self.blob, &field.name, &BLOBS);
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
            let wanted = said(&self.bloom, &field.name, &BLOOMS);
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

fn role_error(role: ColumnRole, column: &str, reason: ColumnRoleError) -> Error {
    Error::ColumnRole { role, column: column.to_owned(), reason }
}

fn find<'a>(fields: &'a mut [Field], role: ColumnRole, name: &str) -> Result<&'a mut Field, Error> {
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
    fn names_decide_unless_something_is_said() {
        let mut by_name = fields();
        ColumnOptions::by_name().apply(&mut by_name).unwrap();
        let of = |fields: &[Field], index: usize| {
            let field = &fields[index];
            (field.kind, field.bloom, field.dictionary_hint)
        };
        assert_eq!(of(&by_name, 0), (Type::String, true, false));
        assert_eq!(of(&by_name, 1), (Type::BlobRef, false, false));
        assert_eq!(of(&by_name, 2), (Type::Int32, false, false));
        assert_eq!(of(&by_name, 3), (Type::String, false, true));
        let mut said = fields();
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let column_options = ColumnOptions {
            blob: list(&["title"]),
            bloom: list(&["body"]),
            dict: list(&["url"]),
            sort_key: Some("body".into()),
        };
        column_options.apply(&mut said).unwrap();
        assert_eq!(of(&said, 0), (Type::String, false, true));
        assert_eq!(of(&said, 1), (Type::String, false, false));
        assert_eq!(of(&said, 2), (Type::Int32, true, false));
        assert_eq!(of(&said, 3), (Type::BlobRef, false, false));
        assert!(said[2].sort_key);
        for wrong in [
            ColumnOptions { blob: list(&["body"]), ..ColumnOptions::default() },
            ColumnOptions { bloom: list(&["nothing"]), ..ColumnOptions::default() },
            ColumnOptions { bloom: list(&["html"]), ..ColumnOptions::default() },
            ColumnOptions { sort_key: Some("html".into()), ..ColumnOptions::default() },
        ] {
            assert!(wrong.apply(&mut fields()).is_err(), "{wrong:?}");
        }
    }
}
