//! What is served, health, counters, the description of the API, and the session cookie.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use axum::http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use tercet::plot::Colormap;

use crate::endpoint::{Call, Content, Endpoint, Run};
use crate::failure::Failure;
use crate::reply::{Reply, TEXT};

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/info",
        tag: "server",
        summary: "What is served, and the limits",
        parameters: &[],
        run: Run::Light,
        content: &[Content::json::<Info>()],
        handler: info,
    },
    Endpoint {
        path: "/healthz",
        tag: "server",
        summary: "Whether the server runs",
        parameters: &[],
        run: Run::Light,
        content: &[Content::other("text/plain")],
        handler: |_| Ok(Reply::bytes(TEXT, &b"ok\n"[..])),
    },
    Endpoint {
        path: "/readyz",
        tag: "server",
        summary: "Whether the server accepts requests",
        parameters: &[],
        run: Run::Light,
        content: &[Content::other("text/plain")],
        handler: readyz,
    },
    Endpoint {
        path: "/metrics",
        tag: "server",
        summary: "Counters in the text format of Prometheus",
        parameters: &[],
        run: Run::Light,
        content: &[Content::other("text/plain")],
        handler: |call| {
            Ok(Reply::bytes(
                "text/plain; version=0.0.4; charset=utf-8",
                call.state.metrics.to_text(call.state),
            ))
        },
    },
    Endpoint {
        path: "/openapi.json",
        tag: "server",
        summary: "This description",
        parameters: &[],
        run: Run::Light,
        content: &[Content::other("application/json")],
        handler: |_| {
            static DOCUMENT: OnceLock<serde_json::Value> = OnceLock::new();
            Ok(Reply::json(DOCUMENT.get_or_init(crate::openapi::document)))
        },
    },
    Endpoint {
        path: "/api/session",
        tag: "server",
        summary: "Set or delete the session cookie",
        parameters: &[],
        run: Run::Light,
        content: &[],
        handler: session,
    },
];

/// What is served.
#[derive(Debug, Serialize, JsonSchema)]
struct Info {
    name: &'static str,
    version: &'static str,
    #[schemars(extend("enum" = ["directory", "file"]))]
    mode: &'static str,
    /// The name of the served directory.
    root: String,
    /// The ID of the only file.
    file: Option<String>,
    /// Differs if the list of files differs.
    generation: String,
    files: usize,
    /// The number of files of each format.
    formats: BTreeMap<&'static str, usize>,
    search: SearchInfo,
    limits: LimitsInfo,
    token_required: bool,
    arrow: bool,
    colormaps: Vec<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchInfo {
    segments: u64,
    documents: u64,
    /// Columns that `facets` can count.
    facets: Vec<String>,
    /// What `sort` can be.
    sorts: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LimitsInfo {
    max_k: usize,
    default_k: usize,
    timeout_ms: u64,
    max_rows: u64,
    max_values: u64,
    max_query_terms: usize,
    max_in_flight: usize,
    max_document_bytes: usize,
}

#[expect(clippy::unnecessary_wraps, reason = "a handler")]
fn info(call: &Call<'_>) -> Result<Reply, Failure> {
    let (state, options) = (call.state, &call.state.options);
    let snapshot = state.catalog.snapshot();
    let mut formats = BTreeMap::new();
    for entry in &snapshot.entries {
        *formats.entry(super::files::kind_name(entry.kind)).or_default() += 1;
    }
    let (segments, documents) = crate::index::SearchSets::size(state);
    let facets: Vec<String> = snapshot.document_columns().into_iter().map(str::to_owned).collect();
    // Every segment has these.
    let own = ["score", "title", "url", "norm_body"].iter().take(if segments > 0 { 4 } else { 1 });
    let sorts = own.map(|name| (*name).to_owned()).chain(facets.iter().cloned()).collect();
    let is_single = state.catalog.is_single();
    let info = Info {
        name: "tercet",
        version: env!("CARGO_PKG_VERSION"),
        mode: if is_single { "file" } else { "directory" },
        root: state.catalog.root_name(),
        file: snapshot.entries.first().filter(|_| is_single).map(|entry| entry.id.clone()),
        generation: snapshot.generation.clone(),
        files: snapshot.entries.len(),
        formats,
        search: SearchInfo { segments, documents, facets, sorts },
        limits: LimitsInfo {
            max_k: options.max_k,
            default_k: options.default_k,
            timeout_ms: u64::try_from(options.timeout.as_millis()).unwrap_or(u64::MAX),
            max_rows: options.max_rows,
            max_values: options.max_values,
            max_query_terms: options.max_query_terms,
            max_in_flight: options.max_in_flight,
            max_document_bytes: options.max_document_bytes,
        },
        token_required: options.token.is_some(),
        arrow: cfg!(feature = "arrow"),
        colormaps: Colormap::ALL.iter().map(|map| map.name()).collect(),
    };
    Ok(Reply::json(&info))
}

#[expect(clippy::unnecessary_wraps, reason = "a handler")]
fn readyz(call: &Call<'_>) -> Result<Reply, Failure> {
    if call.state.is_draining.load(Ordering::SeqCst) {
        let reply = Reply::bytes(TEXT, &b"shutting down\n"[..]).with_status(StatusCode::SERVICE_UNAVAILABLE);
        return Ok(reply.with_header(header::RETRY_AFTER, "1"));
    }
    Ok(Reply::bytes(TEXT, &b"ready\n"[..]))
}

/// The router has checked the token. `DELETE` removes the cookie.
#[expect(clippy::unnecessary_wraps, reason = "a handler")]
fn session(call: &Call<'_>) -> Result<Reply, Failure> {
    let is_delete = call.headers.get(super::reference::METHOD).is_some_and(|method| method == "DELETE");
    let cookie = match &call.state.options.token {
        Some(token) if !is_delete => {
            format!("tercet_session={}; Path=/; HttpOnly; SameSite=Strict", token.cookie())
        }
        _ => "tercet_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0".to_owned(),
    };
    Ok(Reply::empty(StatusCode::NO_CONTENT).with_header(header::SET_COOKIE, &cookie))
}
