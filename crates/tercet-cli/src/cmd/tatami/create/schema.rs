//! Columns as they are told on a command line: `id:int64,title:string:nullable,tags:list:string`.

use std::str::FromStr;

use tercet::core::escape;
use tercet::tatami::schema::TYPES;
use tercet::tatami::{Field, Schema, Type};

use crate::failure::Failure;

/// Columns that were declared.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    fields: Vec<Field>,
}

impl Declared {
    /// The columns.
    pub(super) fn fields(&self) -> Vec<Field> {
        self.fields.clone()
    }

    /// The columns as those of a file, in the order of one of them.
    pub(crate) fn schema(&self, sort_key: Option<&str>) -> Result<Schema, Failure> {
        let roles = Roles { sort_key: sort_key.map(str::to_owned), ..Roles::default() };
        roles.apply(self.fields())
    }
}

impl FromStr for Declared {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fields = text.split(',').map(|part| field(part.trim())).collect::<Result<_, _>>()?;
        Ok(Self { fields })
    }
}

fn field(text: &str) -> Result<Field, String> {
    let wrong = |why: &str| format!("`{}`: {why}", escape::name(text));
    let mut words = text.split(':');
    let name = words.next().filter(|name| !name.is_empty()).ok_or_else(|| wrong("a column has a name"))?;
    let kind = kind(words.next()).map_err(|why| wrong(&why))?;
    let mut field = match kind {
        Type::List => {
            let element = self::kind(words.next()).map_err(|why| wrong(&why))?;
            if matches!(element, Type::List | Type::BlobRef) {
                return Err(wrong("a list cannot hold lists or blobs"));
            }
            Field::list(name, element)
        }
        kind => Field::new(name, kind),
    };
    match words.next() {
        None => {}
        Some("nullable") => field = field.with_nulls(),
        Some(_) => return Err(wrong("after the type only `nullable` can stand")),
    }
    match words.next() {
        None => Ok(field),
        Some(_) => Err(wrong("write it like `name:type` or `name:type:nullable`")),
    }
}

fn kind(name: Option<&str>) -> Result<Type, String> {
    let known = || TYPES.map(Type::name).join(", ");
    let name = name.ok_or_else(|| format!("a column has a type; types are {}", known()))?;
    Type::from_name(name).ok_or_else(|| format!("there is no type `{name}`; types are {}", known()))
}

/// What some columns are to be besides their types.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Roles {
    /// The rows are in the order of this column, so that `lookup` finds them; unsorted rows are refused
    #[arg(long, value_name = "NAME", help_heading = "Columns")]
    sort_key: Option<String>,
    /// Store the values of these text or bytes columns apart from the rows, for large values
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Columns")]
    blob: Vec<String>,
    /// Give these columns bloom filters
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Columns")]
    bloom: Vec<String>,
    /// Give these columns the hint that a dictionary is worth it; every column is tried with one anyway
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Columns")]
    dict: Vec<String>,
}

impl Roles {
    /// The columns with their roles.
    pub(super) fn apply(&self, mut fields: Vec<Field>) -> Result<Schema, Failure> {
        for name in &self.blob {
            let field = named(&mut fields, name, "--blob")?;
            if !matches!(field.kind, Type::String | Type::Bytes | Type::BlobRef) {
                let (name, kind) = (escape::name(name), field.kind);
                let said =
                    format!("`--blob {name}`: only text and bytes can be stored apart, and it is {kind}");
                return Err(Failure::request(said));
            }
            field.kind = Type::BlobRef;
            field.blob_separated = true;
        }
        for name in &self.bloom {
            named(&mut fields, name, "--bloom")?.bloom = true;
        }
        for name in &self.dict {
            named(&mut fields, name, "--dict")?.dictionary_hint = true;
        }
        if let Some(name) = &self.sort_key {
            let field = named(&mut fields, name, "--sort-key")?;
            if field.kind == Type::BlobRef {
                let said =
                    format!("`--sort-key {}`: a blob has no order to look it up by", escape::name(name));
                return Err(Failure::request(said));
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
        let failure = Failure::request(format!("`{option} {}`: there is no such column", escape::name(name)));
        failure.with_hint(format!("columns: {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read() {
        let declared: Declared = "id:int64, t:string:nullable,l:list:float32:nullable".parse().unwrap();
        let fields = declared.fields();
        assert_eq!((&*fields[0].name, fields[0].kind, fields[0].nullable), ("id", Type::Int64, false));
        assert_eq!((fields[1].kind, fields[1].nullable), (Type::String, true));
        assert_eq!((fields[2].element, fields[2].nullable), (Some(Type::Float32), true));
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
        ] {
            assert!(wrong.parse::<Declared>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn roles_need_columns_that_can_have_them() {
        let fields = || "id:int64,t:string".parse::<Declared>().unwrap().fields();
        let roles = |sort_key: Option<&str>, blob: &[&str]| Roles {
            sort_key: sort_key.map(str::to_owned),
            blob: blob.iter().map(|name| (*name).to_owned()).collect(),
            ..Roles::default()
        };
        let schema = roles(Some("id"), &["t"]).apply(fields()).unwrap();
        assert_eq!((schema.sort_key(), schema.fields()[1].kind), (Some(0), Type::BlobRef));
        assert!(roles(Some("x"), &[]).apply(fields()).is_err());
        assert!(roles(None, &["id"]).apply(fields()).is_err());
        assert!(roles(Some("t"), &["t"]).apply(fields()).is_err());
    }
}
