//! A document on each line.

use std::io::{BufRead as _, BufReader, Read as _};

use serde_json::{Map, Value};

use super::Page;
use super::files::{MOST_BYTES, Source, open, refused};
use crate::failure::Failure;
use crate::ui::Bar;
use tercet::core::Progress as _;

/// What identities and texts are called where nothing is said.
const IDS: [&str; 2] = ["doc_id", "id"];
const BODIES: [&str; 3] = ["body", "text", "contents"];

const URL: &str = "url";
const TITLE: &str = "title";
const ANCHOR: &str = "anchor";

/// What the fields of a document are called. Those that the user names have to be there.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "the options are called so")]
#[command(next_help_heading = "Fields of JSONL, columns of Parquet")]
pub(super) struct Names {
    /// The identity; without it `doc_id` or `id`, if there is one
    #[arg(long, value_name = "NAME")]
    id_field: Option<String>,
    /// The address
    #[arg(long, value_name = "NAME", help = "The address [default: url]")]
    url_field: Option<String>,
    /// The title
    #[arg(long, value_name = "NAME", help = "The title [default: title]")]
    title_field: Option<String>,
    /// The text; without it `body`, `text` or `contents`, whichever there is
    #[arg(long, value_name = "NAME")]
    body_field: Option<String>,
    /// What others say of the document
    #[arg(
        long,
        value_name = "NAME",
        help = "What others say of the document, which is searched but not kept [default: anchor]"
    )]
    anchor_field: Option<String>,
}

/// Reads the documents of a file; tells how many of them have no text because no field is called like one.
pub(super) fn read(
    source: &Source,
    names: &Names,
    bar: &Bar,
    add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut lines = BufReader::with_capacity(1 << 18, open(source)?);
    let mut line = Vec::new();
    let mut missing = names.said();
    let (mut documents, mut has_body) = (0, names.body_field.is_some());
    for number in 1u64.. {
        line.clear();
        let mut limited = lines.by_ref().take(MOST_BYTES);
        let len = limited.read_until(b'\n', &mut line).map_err(|error| refused(&source.path, &error))?;
        if len == 0 {
            break;
        }
        let wrong = |reason: &str| {
            Failure::request(format!("{}: line {number}: {reason}", crate::output::shown(&source.path)))
        };
        if len as u64 == MOST_BYTES && !line.ends_with(b"\n") {
            return Err(wrong("a document of more than 1 GiB"));
        }
        bar.advance(len as u64);
        // What some programs put in front of UTF-8 is no part of it.
        let bare = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
        if bare.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object: Map<String, Value> = serde_json::from_slice(bare).map_err(|error| {
            let (line, column, told) = (error.line(), error.column(), error.to_string());
            let reason = told.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&told);
            let name = crate::output::shown(&source.path);
            Failure::request(format!("{name}: line {number}, column {column}: is no JSON object: {reason}"))
        })?;
        missing.retain(|name| !object.contains_key(*name));
        has_body |= BODIES.iter().any(|name| object.contains_key(*name));
        documents += 1;
        let page = names.page(|name| text_of(object.get(name), name));
        add(&page.map_err(|reason| wrong(&reason))?)?;
    }
    match missing.first() {
        Some(name) if documents > 0 => Err(Failure::request(format!(
            "{}: no line has `{}`",
            crate::output::shown(&source.path),
            tercet::core::escape::name(name)
        ))),
        _ => Ok(if has_body { 0 } else { documents }),
    }
}

/// The text of a field, if there is one.
fn text_of(value: Option<&Value>, name: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) if is_rounded(number) => Err(format!(
            "`{}` is a number with more digits than are kept: write it in quotes",
            tercet::core::escape::name(name)
        )),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(format!("`{}` is no text", tercet::core::escape::name(name))),
    }
}

/// Whether a number may have lost digits: two of them could be the same identity.
fn is_rounded(number: &serde_json::Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.is_f64() && number.as_f64().is_none_or(|value| value.abs() >= EXACT)
}

impl Names {
    /// The fields that were named by the user.
    pub(super) fn said(&self) -> Vec<&str> {
        let all = [&self.id_field, &self.body_field, &self.url_field, &self.title_field, &self.anchor_field];
        all.into_iter().flatten().map(String::as_str).collect()
    }

    /// The fields that are looked for.
    #[cfg(feature = "arrow")]
    pub(super) fn all(&self) -> Vec<String> {
        let usual = [self.url(), self.title(), self.anchor()];
        let all = IDS.into_iter().chain(BODIES).chain(usual).chain(self.said());
        all.map(str::to_owned).collect()
    }

    /// Whether the user said which field is the text, or one of these is called like it.
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

    /// Reason something is no document.
    pub(super) fn nameless(&self) -> String {
        let url = tercet::core::escape::name(self.url());
        match &self.id_field {
            Some(id) => format!("has neither `{}` nor `{url}`", tercet::core::escape::name(id)),
            None => format!("has neither an identity nor `{url}`"),
        }
    }

    /// The document whose fields `one` tells.
    pub(super) fn page(&self, one: impl Fn(&str) -> Result<Option<String>, String>) -> Result<Page, String> {
        let first = |said: Option<&String>, others: &[&str]| -> Result<Option<String>, String> {
            if let Some(name) = said {
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
