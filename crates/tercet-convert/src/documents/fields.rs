//! The fields of a document in JSONL and Parquet.

use tercet_core::escape;

use super::Document;

/// Default names of the ID and body fields.
const IDS: [&str; 2] = ["doc_id", "id"];
const BODIES: [&str; 3] = ["body", "text", "contents"];

/// The names of the fields of a document. A name that is set must exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldNames {
    /// The ID; by default `doc_id` or `id`, if present.
    pub id: Option<String>,
    /// The URL; by default `url`.
    pub url: Option<String>,
    /// The title; by default `title`.
    pub title: Option<String>,
    /// The body; by default `body`, `text` or `contents`.
    pub body: Option<String>,
    /// The anchor text; by default `anchor`.
    pub anchor: Option<String>,
}

impl FieldNames {
    /// The default names.
    pub fn new() -> Self {
        Self::default()
    }

    /// The names that are set.
    pub(super) fn given(&self) -> Vec<&str> {
        let all = [&self.id, &self.body, &self.url, &self.title, &self.anchor];
        all.into_iter().flatten().map(String::as_str).collect()
    }

    /// The names of the fields that [`document`](Self::document) reads of a document with some fields.
    pub(super) fn used(&self, has: impl Fn(&str) -> bool) -> [Option<&str>; 5] {
        let first = |others: &[&'static str]| others.iter().copied().find(|name| has(name));
        [
            self.id.as_deref().or_else(|| first(&IDS)),
            self.body.as_deref().or_else(|| first(&BODIES)),
            Some(self.url()),
            Some(self.title()),
            Some(self.anchor()),
        ]
    }

    /// Whether a field of this name may be read.
    pub(super) fn is_usual(&self, name: &str) -> bool {
        let usual = [self.url(), self.title(), self.anchor()];
        let mut all = IDS.into_iter().chain(BODIES).chain(usual).chain(self.given());
        all.any(|other| other == name)
    }

    /// Whether a field with an ID or a URL exists.
    pub(super) fn has_name(&self, is_there: impl Fn(&str) -> bool) -> bool {
        let has_id = match &self.id {
            Some(id) => is_there(id),
            None => IDS.iter().any(|name| is_there(name)),
        };
        has_id || is_there(self.url())
    }

    /// Whether a body field is named or exists.
    pub(super) fn has_body(&self, is_there: impl Fn(&str) -> bool) -> bool {
        self.body.is_some() || BODIES.iter().any(|name| is_there(name))
    }

    fn url(&self) -> &str {
        self.url.as_deref().unwrap_or("url")
    }

    fn title(&self) -> &str {
        self.title.as_deref().unwrap_or("title")
    }

    fn anchor(&self) -> &str {
        self.anchor.as_deref().unwrap_or("anchor")
    }

    /// The error of a document without ID and URL.
    pub(super) fn nameless(&self) -> String {
        let url = escape::name(self.url());
        match &self.id {
            Some(id) => format!("no field `{}` or `{url}`", escape::name(id)),
            None => format!("no ID and no field `{url}`"),
        }
    }

    /// Builds a document from its fields.
    pub(super) fn document(
        &self,
        one: impl Fn(&str) -> Result<Option<String>, String>,
    ) -> Result<Document, String> {
        let first = |given: Option<&String>, others: &[&str]| -> Result<Option<String>, String> {
            if let Some(name) = given {
                return one(name);
            }
            others.iter().find_map(|name| one(name).transpose()).transpose()
        };
        let document = Document {
            id: first(self.id.as_ref(), &IDS)?,
            url: one(self.url())?.unwrap_or_default(),
            title: one(self.title())?.unwrap_or_default(),
            body: first(self.body.as_ref(), &BODIES)?.unwrap_or_default(),
            anchor: one(self.anchor())?.unwrap_or_default(),
            values: Vec::new(),
        };
        if document.id.is_none() && document.url.is_empty() {
            return Err(self.nameless());
        }
        Ok(document)
    }
}
