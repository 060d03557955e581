//! The summary of a file.

use serde::Serialize;
use tercet_core::Span;

use crate::error::Error;
use crate::file::File;
use crate::wire::ids::VERSION;

/// The summary of a file: the number of messages, its size, unrecognized bytes, its index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The path or URL of the file.
    #[serde(rename = "file")]
    pub location: String,
    /// The number of messages, without the index.
    pub messages: u64,
    /// The length of the file in bytes.
    #[serde(rename = "size")]
    pub file_len: u64,
    /// The format version; `None` for a file without messages.
    pub version: Option<u16>,
    /// The byte ranges outside messages.
    pub unrecognized: Vec<Span>,
    /// The index at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexSummary>,
}

/// The summary of the index of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IndexSummary {
    /// The bytes of the index.
    #[serde(rename = "bytes")]
    pub span: Span,
    /// The indexed keys.
    pub keys: Vec<String>,
}

impl File {
    /// The summary of the file.
    pub fn summary(&self) -> Result<Summary, Error> {
        let scan = self.scan()?;
        let index = self.index()?.map(|index| IndexSummary {
            span: index.span(),
            keys: index.keys().map(str::to_owned).collect(),
        });
        Ok(Summary {
            location: self.name().to_string(),
            messages: scan.messages.len() as u64,
            file_len: self.len(),
            version: (!scan.messages.is_empty()).then_some(VERSION),
            unrecognized: scan.unrecognized.clone(),
            index,
        })
    }
}
