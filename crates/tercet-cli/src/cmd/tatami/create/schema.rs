//! `--schema`: `id:int64,title:string:nullable,tags:list:string,price:decimal128[9, 2]`.

use std::path::PathBuf;
use std::str::FromStr;

use tercet::convert::tables::DeclaredColumns;
use tercet::core::escape;
use tercet::tatami::logical_type::{Annotation, ValueType};
use tercet::tatami::schema::TYPES;
use tercet::tatami::{Field, LogicalType, Schema, Type};

use super::roles::Roles;
use crate::cmd::tatami::names;
use crate::failure::Failure;

/// The schema of text input.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SchemaArgs {
    /// Schema of CSV or JSONL input: `name:type[:nullable],…` [default: inferred]
    #[arg(long, value_name = "COLUMNS", help_heading = "Columns")]
    schema: Option<Declared>,
    /// File with the schema: one `name:type[:nullable]` per line
    #[arg(long, value_name = "FILE", help_heading = "Columns", conflicts_with = "schema")]
    schema_file: Option<PathBuf>,
}

impl SchemaArgs {
    /// The declared columns, if any.
    pub(in crate::cmd::tatami) fn declared(&self) -> Result<Option<Declared>, Failure> {
        let Some(path) = &self.schema_file else { return Ok(self.schema.clone()) };
        let name = crate::output::display_path(path);
        let text = std::fs::read_to_string(path).map_err(|error| Failure::io(&name, &error))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let columns = lines.map(|line| line.trim_end_matches(',')).collect::<Vec<_>>().join(",");
        let declared = columns.parse().map_err(|reason| Failure::request(format!("{name}: {reason}")))?;
        Ok(Some(declared))
    }
}

/// Declared columns.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    fields: Vec<Field>,
    /// Logical type annotations for the footer.
    annotations: Vec<(String, String)>,
}

impl Declared {
    /// The declared columns.
    pub(super) fn fields(&self) -> Vec<Field> {
        self.fields.clone()
    }

    /// The declared columns with their logical types.
    pub(in crate::cmd::tatami) fn columns(&self) -> DeclaredColumns {
        DeclaredColumns { fields: self.fields.clone(), annotations: self.annotations.clone() }
    }

    /// The schema with an optional sort key.
    pub(crate) fn schema(&self, sort_key: Option<&str>) -> Result<Schema, Failure> {
        Roles::sorted_by(sort_key).apply(self.fields())
    }
}

impl FromStr for Declared {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut declared = Self { fields: Vec::new(), annotations: Vec::new() };
        for part in names::split(text, ',', true) {
            let (field, annotation) = field(part.trim())?;
            if let Some(annotation) = annotation {
                declared.annotations.push((LogicalType::key(&field.name), annotation));
            }
            declared.fields.push(field);
        }
        Ok(declared)
    }
}

/// A column and its logical type annotation.
fn field(text: &str) -> Result<(Field, Option<String>), String> {
    let wrong = |reason: &str| format!("`{}`: {reason}", escape::name(text));
    let mut tokens = names::split(text, ':', true).into_iter();
    let name = names::name(tokens.next().unwrap_or_default())?;
    if name.is_empty() {
        return Err(wrong("missing column name"));
    }
    let type_name = tokens.next();
    if let Some((len, element)) = type_name.and_then(fixed_list) {
        let len: i32 = len.parse().ok().filter(|len| *len > 0).ok_or_else(|| wrong("invalid list length"))?;
        let (element, logical) = element_type(Some(element)).map_err(|reason| wrong(&reason))?;
        let value = logical.and_then(|logical| ValueType::parse(&logical));
        let annotation = Annotation { fixed_len: Some(len), value, ..Annotation::default() };
        let field = with_nulls(Field::list(name, element), tokens).map_err(wrong)?;
        return Ok((field, Some(annotation.to_string())));
    }
    let (kind, mut annotation) = kind(type_name).map_err(|reason| wrong(&reason))?;
    let field = match kind {
        Type::List => {
            let (element, logical) = element_type(tokens.next()).map_err(|reason| wrong(&reason))?;
            annotation = logical;
            Field::list(name, element)
        }
        kind => Field::new(name, kind),
    };
    Ok((with_nulls(field, tokens).map_err(wrong)?, annotation))
}

/// A field that is nullable if the rest of its declaration says so.
fn with_nulls<'a>(field: Field, mut rest: impl Iterator<Item = &'a str>) -> Result<Field, &'static str> {
    match (rest.next(), rest.next()) {
        (None, _) => Ok(field),
        (Some("nullable"), None) => Ok(field.with_nulls()),
        (Some("nullable"), Some(_)) => Err("expected `name:type` or `name:type:nullable`"),
        (Some(_), _) => Err("expected `nullable` after the type"),
    }
}

/// The arguments of `fixed_list[LENGTH, TYPE]`.
fn fixed_list(name: &str) -> Option<(&str, &str)> {
    let (len, element) = name.strip_prefix("fixed_list[")?.strip_suffix(']')?.split_once(',')?;
    Some((len.trim(), element.trim()))
}

/// The type of list elements, and its annotation.
fn element_type(name: Option<&str>) -> Result<(Type, Option<String>), String> {
    let found = kind(name)?;
    if matches!(found.0, Type::List | Type::BlobRef) {
        return Err("lists of lists or blobs are not supported".to_owned());
    }
    Ok(found)
}

/// A type of the format, or the storage type of a logical type with its annotation.
fn kind(name: Option<&str>) -> Result<(Type, Option<String>), String> {
    let known = || {
        let logical = "date32, date64, time[UNIT], duration[UNIT], timestamp[UNIT], decimal128[DIGITS, SCALE], uuid, json, enum, fixed_list[LENGTH, TYPE]";
        format!("{}, {logical}", TYPES.map(Type::name).join(", "))
    };
    let name = name.ok_or_else(|| format!("missing type; supported types: {}", known()))?;
    if let Some(kind) = Type::from_name(name) {
        return Ok((kind, None));
    }
    // Annotations have a space after each comma; the command line need not.
    let parts: Vec<&str> = name.split(',').map(str::trim).collect();
    let annotation = parts.join(", ");
    let (_, kind) = LogicalType::parse(&annotation)
        .ok_or_else(|| format!("unknown type `{}`; supported types: {}", escape::name(name), known()))?;
    Ok((kind, Some(annotation)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_parsed() {
        let declared: Declared = "id:int64, t:string:nullable,l:list:float32:nullable".parse().unwrap();
        let fields = declared.fields();
        assert_eq!((&*fields[0].name, fields[0].kind, fields[0].nullable), ("id", Type::Int64, false));
        assert_eq!((fields[1].kind, fields[1].nullable), (Type::String, true));
        assert_eq!((fields[2].element, fields[2].nullable), (Some(Type::Float32), true));
        let declared: Declared =
            "`a,b`:decimal128[20, 2],l:list:date32:nullable,t:timestamp[ms, +02:00]".parse().unwrap();
        let fields = declared.fields();
        assert_eq!((&*fields[0].name, fields[0].kind), ("a,b", Type::Bytes));
        assert_eq!((fields[1].element, fields[1].nullable), (Some(Type::Int32), true));
        assert_eq!(fields[2].kind, Type::TimestampMicros);
        let annotations = declared
            .annotations
            .iter()
            .map(|(key, annotation)| format!("{key}={annotation}"))
            .collect::<Vec<_>>();
        assert_eq!(annotations[0], "arrow.type:a,b=decimal128[20, 2]");
        let declared: Declared =
            "u:uuid,j:json:nullable,v:fixed_list[3, float32]:nullable,w:fixed_list[2,timestamp[ms,UTC]]"
                .parse()
                .unwrap();
        let kinds: Vec<_> =
            declared.fields().iter().map(|field| (field.kind, field.element, field.nullable)).collect();
        assert_eq!(kinds[..2], [(Type::Bytes, None, false), (Type::String, None, true)]);
        assert_eq!(kinds[2], (Type::List, Some(Type::Float32), true));
        let texts: Vec<&str> = declared.annotations.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["uuid", "json", "fixed_list[3]", "fixed_list[2, timestamp[ms, UTC]]"]);
        assert_eq!(annotations[1..], ["arrow.type:l=date32", "arrow.type:t=timestamp[ms, +02:00]"]);
        for wrong in [
            "",
            "id",
            ":int64",
            "id:number",
            "id:int64:maybe",
            "id:int64:nullable:x",
            "l:list",
            "l:list:list",
            "a:int8,",
            "a:decimal128[39, 2]",
            "a:time[h]",
            "a:fixed_list[0, int8]",
            "a:fixed_list[2]",
            "a:fixed_list[2, blobref]",
            "a:fixed_list[2, int8]:nullable:x",
            "`a:int8",
        ] {
            assert!(wrong.parse::<Declared>().is_err(), "{wrong}");
        }
    }
}
