//! The list of files, and what every file has: summary, byte layout, verification, bytes.

use std::time::Instant;

use axum::http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use tercet::core::{ByteSource as _, Outline, OutlineOptions, Progress, Span, VerifyOptions};

use super::{cached, entry, matches_tag, opened, tagged, utc};
use crate::admission::Work;
use crate::catalog::{Entry, EntryKind, Opened};
use crate::endpoint::{Call, Content, Endpoint, Parameter, Run};
use crate::failure::Failure;
use crate::reply::{BYTES, EVENTS, Reply, Shortest, Sink, millis};

/// Bytes of a download that are read at a time.
const PIECE: u64 = 256 << 10;
/// Bytes between two progress events.
const PROGRESS_BYTES: u64 = 16 << 20;

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/files",
        tag: "files",
        summary: "The listed files and collections, by path",
        parameters: &[
            Parameter::one_of("format", &["tet", "tgm", "tatami", "collection"], "Only this format"),
            Parameter::text("match", "Only paths that contain this text, ignoring case"),
            Parameter::text("prefix", "Only paths that start with this text"),
            Parameter::flag("searchable", "Only search segments and collections of them, or only others"),
            Parameter::integer("offset", 0, u64::MAX, "Entries to skip"),
            Parameter::integer("limit", 0, 100_000, "Maximum number of entries [default: 1000]"),
        ],
        run: Run::Light,
        content: &[Content::json::<FilesJson>()],
        handler: files,
    },
    Endpoint {
        path: "/api/files/{id}",
        tag: "files",
        summary: "One entry of the list",
        parameters: &[Parameter::id()],
        run: Run::Light,
        content: &[Content::json::<FileJson>()],
        handler: |call| Ok(Reply::json(&FileJson::new(&*entry(call)?))),
    },
    Endpoint {
        path: "/api/files/{id}/summary",
        tag: "files",
        summary: "The contents of a file without values, as `tercet info --json` prints them",
        parameters: &[Parameter::id()],
        run: Run::Work,
        content: &[Content::json::<SummaryJson<'static, serde_json::Value>>()],
        handler: summary,
    },
    Endpoint {
        path: "/api/files/{id}/outline",
        tag: "files",
        summary: "The byte layout of a file as a tree, and what is known of checksums",
        parameters: &[
            Parameter::id(),
            Parameter::integer("max_rows", 1, 4096, "Maximum number of rows of each table [default: 64]"),
            Parameter::flag("pages", "Whether the pages of .tatami files are listed [default: true]"),
        ],
        run: Run::Work,
        content: &[Content::json::<OutlineJson>()],
        handler: outline,
    },
    Endpoint {
        path: "/api/files/{id}/verify",
        tag: "files",
        summary: "Verify structure and checksums; with `Accept: text/event-stream` with progress and without a deadline",
        parameters: &[Parameter::id(), Parameter::flag("deep", "Decode every value as well")],
        run: Run::Stream,
        content: &[Content::json::<VerifyJson<serde_json::Value>>(), Content::other("text/event-stream")],
        handler: verify,
    },
    Endpoint {
        path: "/api/files/{id}/raw",
        tag: "files",
        summary: "The bytes of a file, or a range of them",
        parameters: &[Parameter::id()],
        run: Run::Stream,
        content: &[Content::other("application/octet-stream")],
        handler: raw,
    },
];

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FileList")]
struct FilesJson {
    root: String,
    generation: String,
    /// The number of entries that match.
    total: usize,
    offset: usize,
    files: Vec<FileJson>,
    /// Files that look like ours and are not listed.
    skipped: u64,
}

/// A listed file or collection.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FileEntry")]
struct FileJson {
    id: String,
    path: String,
    name: String,
    directory: String,
    format: EntryKind,
    size: u64,
    modified: Option<String>,
    version: String,
    summary: Option<String>,
    searchable: bool,
    documents: Option<u64>,
    /// The ID of the collection that the file is a member of.
    collection: Option<String>,
    /// Why the file cannot be opened.
    problem: Option<String>,
}

impl FileJson {
    fn new(entry: &Entry) -> Self {
        let (directory, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
        Self {
            id: entry.id.clone(),
            path: entry.path.clone(),
            name: name.to_owned(),
            directory: directory.to_owned(),
            format: entry.kind,
            size: entry.size,
            modified: utc(entry.stamp.modified()),
            version: entry.stamp.version(),
            summary: entry.facts.summary.clone(),
            searchable: entry.facts.is_searchable,
            documents: entry.facts.documents,
            collection: entry.collection.clone(),
            problem: entry.facts.problem.clone(),
        }
    }
}

pub(crate) fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Tet => "tet",
        EntryKind::Tgm => "tgm",
        EntryKind::Tatami => "tatami",
        EntryKind::Collection => "collection",
    }
}

fn files(call: &Call<'_>) -> Result<Reply, Failure> {
    let (snapshot, params) = (call.state.catalog.snapshot(), &call.params);
    let tag = format!("\"{}-{}\"", snapshot.generation, params.digest());
    tagged(call, &tag, || {
        let part = params.get("match").map(str::to_lowercase);
        let prefix = params.get("prefix").unwrap_or("");
        let matches = |entry: &&std::sync::Arc<Entry>| {
            params.get("format").is_none_or(|format| format == kind_name(entry.kind))
                && part.as_ref().is_none_or(|part| entry.path.to_lowercase().contains(part))
                && entry.path.starts_with(prefix)
                && params
                    .get("searchable")
                    .is_none_or(|_| params.flag("searchable") == entry.facts.is_searchable)
        };
        let offset = params.number("offset").unwrap_or(0);
        let limit = params.number("limit").unwrap_or(1000);
        let found: Vec<_> = snapshot.entries.iter().filter(matches).collect();
        Ok(Reply::json(&FilesJson {
            root: call.state.catalog.root_name(),
            generation: snapshot.generation.clone(),
            total: found.len(),
            offset,
            files: found.iter().skip(offset).take(limit).map(|entry| FileJson::new(entry)).collect(),
            skipped: snapshot.skipped,
        }))
    })
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Summary")]
struct SummaryJson<'a, S> {
    id: &'a str,
    path: &'a str,
    format: EntryKind,
    file_len: u64,
    /// As the format defines it.
    summary: S,
}

fn summary(call: &Call<'_>) -> Result<Reply, Failure> {
    let entry = entry(call)?;
    if entry.kind == EntryKind::Collection {
        let collection = call.state.catalog.collection(&entry)?;
        let members: Vec<_> = collection.members().iter().map(|member| {
            serde_json::json!({ "path": member.path, "rows": member.live_rows(), "bytes": member.bytes, "tier": member.tier })
        }).collect();
        let summary = serde_json::json!({ "rows": collection.rows(), "deleted_rows": collection.deleted_rows(), "members": members });
        let (id, path) = (&*entry.id, &*entry.path);
        return Ok(Reply::json(&SummaryJson {
            id,
            path,
            format: entry.kind,
            file_len: collection.bytes(),
            summary,
        }));
    }
    let opened = call.state.catalog.opened(&entry)?;
    cached(call, &opened.stamp, || {
        if let tercet::Container::Tgm(file) = &opened.container {
            file.scan_with(call.work)?;
        }
        let summary = opened.container.summary()?;
        let (id, path) = (&*entry.id, &*entry.path);
        Ok(Reply::json(&SummaryJson { id, path, format: entry.kind, file_len: opened.source.len(), summary }))
    })
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Outline")]
struct OutlineJson {
    id: String,
    path: String,
    file_len: u64,
    /// A tree of `{name, span: {start, end}, value?, parts?}`.
    #[schemars(with = "serde_json::Value")]
    outline: Outline,
    /// Byte ranges whose checksums are known to match or not.
    states: Vec<RangeState>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RangeState {
    start: u64,
    end: u64,
    #[schemars(extend("enum" = super::CHECKSUM_STATES))]
    state: &'static str,
}

fn outline(call: &Call<'_>) -> Result<Reply, Failure> {
    let (entry, opened) = opened(call)?;
    let rows = call.params.number("max_rows").unwrap_or(64);
    let options =
        OutlineOptions::new().with_max_rows(Some(rows)).with_pages(call.params.flag_or("pages", true));
    if let tercet::Container::Tgm(file) = &opened.container {
        file.scan_with(call.work)?;
    }
    let outline = opened.container.outline(options)?;
    call.work.check_deadline()?;
    let file_len = opened.source.len();
    let states = states(&opened, file_len);
    Ok(Reply::json(&OutlineJson {
        id: entry.id.clone(),
        path: entry.path.clone(),
        file_len,
        outline,
        states,
    }))
}

/// What the last verification of the whole file found.
fn states(opened: &Opened, file_len: u64) -> Vec<RangeState> {
    let Some((is_ok, mut damaged)) = opened.verified() else { return Vec::new() };
    if !is_ok && damaged.is_empty() {
        // Something is wrong that has no place.
        return Vec::new();
    }
    damaged.sort();
    let (mut states, mut at) = (Vec::new(), 0);
    for span in damaged {
        let (start, end) = (span.start().max(at), span.end().min(file_len));
        if start >= end {
            continue;
        }
        if start > at {
            states.push(RangeState { start: at, end: start, state: "ok" });
        }
        states.push(RangeState { start, end, state: "damaged" });
        at = end;
    }
    if at < file_len {
        states.push(RangeState { start: at, end: file_len, state: "ok" });
    }
    states
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Verification")]
struct VerifyJson<R> {
    id: String,
    path: String,
    deep: bool,
    took_ms: Shortest<f64>,
    /// `{ok, path, file_len, findings: [{check, severity, ok, site?, detail?}], …}`.
    report: R,
}

#[derive(Debug, Serialize)]
struct ProgressJson {
    bytes: u64,
    total: u64,
}

/// Reports progress as events.
struct Reporter<'a> {
    sink: &'a Sink,
    work: Work,
    total: u64,
    done: std::sync::atomic::AtomicU64,
}

impl Progress for Reporter<'_> {
    fn advance(&self, bytes: u64) {
        use std::sync::atomic::Ordering::Relaxed;
        let before = self.done.fetch_add(bytes, Relaxed);
        let bytes = before + bytes;
        if before / PROGRESS_BYTES != bytes / PROGRESS_BYTES {
            // A client that is gone is noticed by `is_cancelled`.
            let _ = self.sink.event("progress", None, &ProgressJson { bytes, total: self.total });
        }
    }

    fn is_cancelled(&self) -> bool {
        self.sink.is_gone() || self.work.is_cancelled()
    }
}

fn verify(call: &Call<'_>) -> Result<Reply, Failure> {
    let (entry, deep) = (entry(call)?, call.params.flag("deep"));
    let (source, _) = call.state.catalog.raw(&entry)?;
    let total = source.len();
    let opened = call.state.catalog.opened(&entry).ok();
    let run = move |progress: &dyn Progress| -> Result<VerifyJson<tercet::Report>, Failure> {
        let started = Instant::now();
        let report = tercet::verify_source(source, VerifyOptions::new().with_deep(deep), progress)?;
        if let Some(opened) = opened {
            let damaged = report.failures().filter_map(|finding| finding.site.as_ref()?.span).collect();
            opened.set_verified(report.is_ok(), damaged);
        }
        let (id, path) = (entry.id.clone(), entry.path.clone());
        Ok(VerifyJson { id, path, deep, took_ms: millis(started.elapsed()), report })
    };
    let accepts_events = call
        .headers
        .get_all(header::ACCEPT)
        .iter()
        .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains(EVENTS)));
    if !accepts_events {
        return Ok(Reply::json(&run(call.work)?));
    }
    let work = call.work.without_deadline();
    Ok(Reply::stream(EVENTS, move |sink| {
        let reporter = Reporter { sink, work, total, done: std::sync::atomic::AtomicU64::new(0) };
        // A client that is gone does not wait for the result.
        let _ = sink.event("progress", None, &ProgressJson { bytes: 0, total });
        let _ = match run(&reporter) {
            Ok(report) => sink.event("report", None, &report),
            Err(failure) => {
                let error = serde_json::json!({ "error": failure.message, "code": failure.code, "hint": failure.hint });
                sink.event("error", None, &error)
            }
        };
    })
    .with_header(header::CACHE_CONTROL, "no-store"))
}

fn raw(call: &Call<'_>) -> Result<Reply, Failure> {
    let entry = entry(call)?;
    let (source, stamp) = call.state.catalog.raw(&entry)?;
    let tag = format!("\"{}\"", stamp.version());
    let len = source.len();
    let name = entry.path.rsplit('/').next().unwrap_or("file");
    let encoded = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    let finish = |reply: Reply| {
        reply
            .with_header(header::ETAG, &tag)
            .with_header(header::ACCEPT_RANGES, "bytes")
            .with_header(header::CACHE_CONTROL, "no-cache")
            .with_header(header::CONTENT_DISPOSITION, &format!("attachment; filename*=UTF-8''{encoded}"))
    };
    if matches_tag(call.headers, &tag) {
        return Ok(finish(Reply::empty(StatusCode::NOT_MODIFIED)));
    }
    let text = |name| call.headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    // A range of another version would be mixed with it.
    let is_current = text(header::IF_RANGE).is_none_or(|known| known == tag);
    let range = text(header::RANGE).filter(|_| is_current).and_then(|range| requested(range, len));
    let (span, status) = match range {
        None => (Span::first(len), StatusCode::OK),
        Some(Some(span)) => (span, StatusCode::PARTIAL_CONTENT),
        Some(None) => {
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let body = format!(
                "{{\"error\":\"the file has {len} bytes\",\"code\":\"range_not_satisfiable\",\"hint\":null,\"at\":null,\"request_id\":\"\"}}\n"
            );
            let reply = Reply::bytes(crate::reply::JSON, body).with_status(status);
            return Ok(finish(reply).with_header(header::CONTENT_RANGE, &format!("bytes */{len}")));
        }
    };
    let work = call.work.without_deadline();
    let mut reply = Reply::stream(BYTES, move |sink| {
        let mut at = span.start();
        while at < span.end() && !work.is_cancelled() {
            let piece = Span::clamped(at, PIECE.min(span.end() - at));
            match source.read_at(piece) {
                Ok(bytes) => {
                    if sink.send(bytes).is_err() {
                        return;
                    }
                    at = piece.end();
                }
                // The file was cut: the body is not complete.
                Err(error) => return sink.abort(error.to_string()),
            }
        }
        if at < span.end() {
            sink.abort("the server is shutting down".to_owned());
        }
    })
    .with_status(status)
    .with_header(header::CONTENT_LENGTH, &span.len().to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        let value = format!("bytes {}-{}/{len}", span.start(), span.end() - 1);
        reply = reply.with_header(header::CONTENT_RANGE, &value);
    }
    Ok(finish(reply))
}

/// The range of a header with a single range; `None` if the header is not one, `Some(None)` if the file has no such bytes.
#[expect(clippy::option_option, reason = "no range, or one that the file has not")]
pub(crate) fn requested(header: &str, len: u64) -> Option<Option<Span>> {
    let range = header.trim().strip_prefix("bytes=")?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A larger number is after the end as well.
        is_number.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let (start, end) = match (first.is_empty(), last.is_empty()) {
        (true, _) => (len.saturating_sub(number(last)?), len),
        (false, true) => (number(first)?, len),
        (false, false) => (number(first)?, number(last)?.saturating_add(1).min(len)),
    };
    if !first.is_empty() && !last.is_empty() && number(first)? > number(last)? {
        return None;
    }
    Some(Span::between(start, end).filter(|span| !span.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        let span = |start, end| Some(Span::between(start, end));
        for (header, expected) in [
            ("bytes=0-0", span(0, 1)),
            ("bytes=2-", span(2, 10)),
            ("bytes=-3", span(7, 10)),
            ("bytes=-30", span(0, 10)),
            ("bytes=5-99999999999999999999", span(5, 10)),
            ("bytes=10-", Some(None)),
            ("bytes=99999999999999999999-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=3-2", None),
            ("bytes=a-b", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
            ("bytes=-", None),
            ("bytes=+1-2", None),
        ] {
            assert_eq!(requested(header, 10), expected, "{header}");
        }
    }
}
