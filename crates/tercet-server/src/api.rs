//! The endpoints, by group; each file has a table of them and their handlers.

pub(crate) mod files;
pub(crate) mod reference;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod tatami;
pub(crate) mod tet;
pub(crate) mod tgm;

mod arrow;
mod cells;
mod marks;

pub(crate) use files::requested;

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};

use crate::catalog::{Entry, Opened, Stamp};
use crate::endpoint::Call;
use crate::failure::Failure;
use crate::reply::Reply;

/// The entry that the path names.
fn entry(call: &Call<'_>) -> Result<Arc<Entry>, Failure> {
    call.state.catalog.entry(call.params.path("id"))
}

/// The open file that the path names.
fn opened(call: &Call<'_>) -> Result<(Arc<Entry>, Arc<Opened>), Failure> {
    let entry = entry(call)?;
    let opened = call.state.catalog.opened(&entry)?;
    Ok((entry, opened))
}

fn wrong_format(entry: &Entry, expected: &str) -> Failure {
    let kind = match entry.kind {
        crate::catalog::EntryKind::Collection => "a collection".to_owned(),
        crate::catalog::EntryKind::Tet => "a .tet file".to_owned(),
        crate::catalog::EntryKind::Tgm => "a .tgm file".to_owned(),
        crate::catalog::EntryKind::Tatami => "a .tatami file".to_owned(),
    };
    Failure::wrong_format(format!("{} is {kind}, not {expected}", crate::catalog::shown(&entry.path)))
}

/// A reply that is the same as long as the file is the same.
fn cached(
    call: &Call<'_>,
    stamp: &Stamp,
    make: impl FnOnce() -> Result<Reply, Failure>,
) -> Result<Reply, Failure> {
    tagged(call, &format!("\"{}-{}\"", stamp.version(), call.params.digest()), make)
}

fn tagged(
    call: &Call<'_>,
    tag: &str,
    make: impl FnOnce() -> Result<Reply, Failure>,
) -> Result<Reply, Failure> {
    let reply = if matches_tag(call.headers, tag) { Reply::empty(StatusCode::NOT_MODIFIED) } else { make()? };
    Ok(reply.with_header(header::ETAG, tag).with_header(header::CACHE_CONTROL, "no-cache"))
}

/// Whether the client has the response with this tag.
pub(crate) fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    let given = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given
        .flat_map(|value| value.split(','))
        .map(|one| one.trim().trim_start_matches("W/"))
        .any(|one| one == tag || one == "*")
}

/// What is known about the checksum of a part of a file.
const CHECKSUM_STATES: [&str; 5] = ["ok", "unverified", "damaged", "unprotected", "missing"];

/// The schema of a state.
fn checksum_state() -> serde_json::Value {
    serde_json::json!({ "type": "string", "enum": CHECKSUM_STATES })
}

/// A time in UTC, to the second.
fn utc(time: std::time::SystemTime) -> Option<String> {
    let time = jiff::Timestamp::try_from(time).ok()?;
    Some(jiff::Timestamp::from_second(time.as_second()).ok()?.to_string())
}
