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

/// What the fields of a document are called.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "the options are called so")]
#[command(next_help_heading = "Fields of JSONL, columns of Parquet")]
pub(super) struct Names {
    /// The identity; without it `doc_id` or `id`, if there is one
    #[arg(long, value_name = "NAME")]
    id_field: Option<String>,
    /// The address
    #[arg(long, value_name = "NAME", default_value = "url")]
    url_field: String,
    /// The title
    #[arg(long, value_name = "NAME", default_value = "title")]
    title_field: String,
    /// The text; without it `body`, `text` or `contents`, whichever there is
    #[arg(long, value_name = "NAME")]
    body_field: Option<String>,
    /// What others say of the document, which is searched but not kept
    #[arg(long, value_name = "NAME", default_value = "anchor")]
    anchor_field: String,
}

/// Reads the documents of a file.
pub(super) fn read(
    source: &Source,
    names: &Names,
    bar: &Bar,
    add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut lines = BufReader::with_capacity(1 << 18, open(source)?);
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let mut limited = lines.by_ref().take(MOST_BYTES);
        let len = limited.read_until(b'\n', &mut line).map_err(|error| refused(&source.path, &error))?;
        if len == 0 {
            break;
        }
        let wrong = |why: &str| {
            Failure::request(format!("{}: line {number}: {why}", crate::output::shown(&source.path)))
        };
        if len as u64 == MOST_BYTES && !line.ends_with(b"\n") {
            return Err(wrong("a document of more than 1 GiB"));
        }
        bar.advance(len as u64);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object: Map<String, Value> =
            serde_json::from_slice(&line).map_err(|error| wrong(&format!("is no JSON object: {error}")))?;
        let page = names.page(|name| text_of(object.get(name), name));
        add(&page.map_err(|why| wrong(&why))?)?;
    }
    Ok(())
}

/// The text of a field, if there is one.
fn text_of(value: Option<&Value>, name: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(format!("`{}` is no text", tercet::core::escape::name(name))),
    }
}

impl Names {
    /// The fields that are looked for, and those of them that were named by the user.
    #[cfg(feature = "arrow")]
    pub(super) fn all(&self) -> (Vec<String>, Vec<&str>) {
        let said: Vec<&str> =
            [&self.id_field, &self.body_field].into_iter().flatten().map(String::as_str).collect();
        let usual = [&self.url_field, &self.title_field, &self.anchor_field].map(String::as_str);
        let others = IDS.into_iter().chain(BODIES).chain(usual).chain(said.iter().copied());
        (others.map(str::to_owned).collect(), said)
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
            url: one(&self.url_field)?.unwrap_or_default(),
            title: one(&self.title_field)?.unwrap_or_default(),
            body: first(self.body_field.as_ref(), &BODIES)?.unwrap_or_default(),
            anchor: one(&self.anchor_field)?.unwrap_or_default(),
        };
        if page.id.is_none() && page.url.is_empty() {
            return Err(format!(
                "has neither an identity nor `{}`",
                tercet::core::escape::name(&self.url_field)
            ));
        }
        Ok(page)
    }
}
