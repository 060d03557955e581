//! JSONL documents.

use std::io::{BufRead as _, BufReader, Read as _};

use serde_json::{Map, Value};

use super::Page;
use super::files::{MAX_BYTES, Source, open, read_failure};
use crate::failure::Failure;
use crate::ui::Bar;
use tercet::core::Progress as _;

/// Default names of the ID and body fields.
const IDS: [&str; 2] = ["doc_id", "id"];
const BODIES: [&str; 3] = ["body", "text", "contents"];

const URL: &str = "url";
const TITLE: &str = "title";
const ANCHOR: &str = "anchor";

/// The field names of a document. Given names must exist.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "these are the names of the options")]
#[command(next_help_heading = "Fields of JSONL, columns of Parquet")]
pub(super) struct Names {
    /// ID field [default: `doc_id` or `id`, if present]
    #[arg(long, value_name = "NAME")]
    id_field: Option<String>,
    /// URL field
    #[arg(long, value_name = "NAME", help = "URL field [default: url]")]
    url_field: Option<String>,
    /// Title field
    #[arg(long, value_name = "NAME", help = "Title field [default: title]")]
    title_field: Option<String>,
    /// Body field [default: body, text or contents]
    #[arg(long, value_name = "NAME")]
    body_field: Option<String>,
    /// Anchor text field
    #[arg(
        long,
        value_name = "NAME",
        help = "Anchor text of inbound links; indexed, not stored [default: anchor]"
    )]
    anchor_field: Option<String>,
}

/// Reads the documents of a file; returns the number of documents without a body field.
pub(super) fn read(
    source: &Source,
    names: &Names,
    bar: &Bar,
    add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut lines = BufReader::with_capacity(1 << 18, open(source)?);
    let mut line = Vec::new();
    let mut missing = names.given();
    let (mut documents, mut has_body) = (0, names.body_field.is_some());
    for number in 1u64.. {
        line.clear();
        let mut limited = lines.by_ref().take(MAX_BYTES);
        let len = limited.read_until(b'\n', &mut line).map_err(|error| read_failure(&source.path, &error))?;
        if len == 0 {
            break;
        }
        let wrong = |reason: &str| {
            Failure::request(format!(
                "{}: line {number}: {reason}",
                crate::output::display_path(&source.path)
            ))
        };
        if len as u64 == MAX_BYTES && !line.ends_with(b"\n") {
            return Err(wrong("document exceeds 1 GiB"));
        }
        bar.advance(len as u64);
        // Byte order mark.
        let bare = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
        if bare.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object: Map<String, Value> = serde_json::from_slice(bare).map_err(|error| {
            let (line, column, message) = (error.line(), error.column(), error.to_string());
            let reason =
                message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message);
            let name = crate::output::display_path(&source.path);
            Failure::request(format!("{name}: line {number}, column {column}: invalid JSON object: {reason}"))
        })?;
        missing.retain(|name| !object.contains_key(*name));
        has_body |= BODIES.iter().any(|name| object.contains_key(*name));
        documents += 1;
        let page = names.page(|name| text_of(object.get(name), name));
        add(&page.map_err(|reason| wrong(&reason))?)?;
    }
    match missing.first() {
        Some(name) if documents > 0 => Err(Failure::request(format!(
            "{}: no line has field `{}`",
            crate::output::display_path(&source.path),
            tercet::core::escape::name(name)
        ))),
        _ => Ok(if has_body { 0 } else { documents }),
    }
}

/// A field as text, if present.
fn text_of(value: Option<&Value>, name: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) if is_rounded(number) => Err(format!(
            "field `{}`: number is not exact as float64; quote it",
            tercet::core::escape::name(name)
        )),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(format!("field `{}`: expected a string", tercet::core::escape::name(name))),
    }
}

/// Whether a number may have lost digits: two IDs could collide.
fn is_rounded(number: &serde_json::Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.is_f64() && number.as_f64().is_none_or(|value| value.abs() >= EXACT)
}

impl Names {
    /// The fields named on the command line.
    pub(super) fn given(&self) -> Vec<&str> {
        let all = [&self.id_field, &self.body_field, &self.url_field, &self.title_field, &self.anchor_field];
        all.into_iter().flatten().map(String::as_str).collect()
    }

    /// All candidate field names.
    #[cfg(feature = "arrow")]
    pub(super) fn all(&self) -> Vec<String> {
        let usual = [self.url(), self.title(), self.anchor()];
        let all = IDS.into_iter().chain(BODIES).chain(usual).chain(self.given());
        all.map(str::to_owned).collect()
    }

    /// Whether a body field is named or exists.
    #[cfg(feature = "arrow")]
    pub(super) fn has_body(&self, is_there: impl Fn(&str) -> bool) -> bool {
        self.body_field.is_some() || BODIES.iter().any(|name| is_there(name))
    }

    fn url(&self) -> &str {
        self.url_field.as_deref().unwrap_or(URL)
    }

    fn title(&self) -> &str {
        self.title_field.as_deref().unwrap_or(TITLE)
    }

    fn anchor(&self) -> &str {
        self.anchor_field.as_deref().unwrap_or(ANCHOR)
    }

    /// The error of a document without ID and URL.
    pub(super) fn nameless(&self) -> String {
        let url = tercet::core::escape::name(self.url());
        match &self.id_field {
            Some(id) => format!("no field `{}` or `{url}`", tercet::core::escape::name(id)),
            None => format!("no ID and no field `{url}`"),
        }
    }

    /// Builds a document from its fields.
    pub(super) fn page(&self, one: impl Fn(&str) -> Result<Option<String>, String>) -> Result<Page, String> {
        let first = |given: Option<&String>, others: &[&str]| -> Result<Option<String>, String> {
            if let Some(name) = given {
                return one(name);
            }
            others.iter().find_map(|name| one(name).transpose()).transpose()
        };
        let page = Page {
            id: first(self.id_field.as_ref(), &IDS)?,
            url: one(self.url())?.unwrap_or_default(),
            title: one(self.title())?.unwrap_or_default(),
            body: first(self.body_field.as_ref(), &BODIES)?.unwrap_or_default(),
            anchor: one(self.anchor())?.unwrap_or_default(),
        };
        if page.id.is_none() && page.url.is_empty() {
            return Err(self.nameless());
        }
        Ok(page)
    }
}
