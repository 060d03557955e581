//! [`router`]: all endpoints, and what applies to every request.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::routing::any;

use crate::admission::Work;
use crate::api::reference;
use crate::endpoint::{ALL, Call, Endpoint, Run};
use crate::failure::Failure;
use crate::page;
use crate::params::Params;
use crate::reply::{JSON, Reply, Sink, TEXT};
use crate::state::State;

/// The name of the cookie derived from the token.
const COOKIE: &str = "tercet_session";
/// The header with the ID of a request.
const REQUEST_ID: &str = "x-request-id";
/// Headers that pages of other origins may read.
const EXPOSED: &str = "ETag, Content-Range, Content-Disposition, Tercet-Array, X-Request-Id, Retry-After";

/// All endpoints as an [`axum::Router`].
pub fn router(state: State) -> Router {
    let mut router = Router::new();
    for endpoint in ALL.iter().copied().flatten() {
        let state = state.clone();
        let handler = move |params: RawPathParams, request: Request| {
            let state = state.clone();
            let path: Vec<(String, String)> =
                params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            async move { serve(state, endpoint, path, request).await }
        };
        router = router.route(endpoint.path, any(handler));
    }
    let fallback = |request: Request| async move {
        let (parts, _) = request.into_parts();
        let reply = page::asset(parts.uri.path(), &parts.headers).filter(|_| is_read(&parts.method));
        let reply = reply.unwrap_or_else(|| {
            Reply::bytes(TEXT, &b"404 page not found\n"[..]).with_status(StatusCode::NOT_FOUND)
        });
        reply.into_response(|_, _| {})
    };
    router.fallback(fallback).layer(middleware::from_fn_with_state(state, guard))
}

fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// The ID and the endpoint of a request, for the log.
#[derive(Clone, Debug)]
struct RequestId(Arc<str>);

/// The path of the endpoint that answered.
#[derive(Clone, Copy, Debug)]
struct Answered(&'static str);

/// Checks host and token, adds headers, and logs.
async fn guard(
    axum::extract::State(state): axum::extract::State<State>,
    mut request: Request,
    next: Next,
) -> Result<Response<Body>, Infallible> {
    let started = Instant::now();
    let id = request_id(request.headers());
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = match check(&state, &request) {
        Err(failure) => failed(&failure, &id, &path),
        Ok(()) if method == Method::OPTIONS => preflight(),
        Ok(()) => next.run(request).await,
    };
    let endpoint = response.extensions().get::<Answered>().map_or("other", |answered| answered.0);
    let status = response.status().as_u16();
    let len = response.headers().get(header::CONTENT_LENGTH).and_then(|len| len.to_str().ok()?.parse().ok());
    finish(&state, origin.as_ref(), &id, response.headers_mut());
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    state.shared().metrics.record(endpoint, status, started.elapsed());
    crate::log::request(&id, &method, &path, status, started.elapsed(), len);
    Ok(response)
}

/// Host, length and token of a request.
fn check(state: &State, request: &Request) -> Result<(), Failure> {
    let path = request.uri().path();
    let is_health = matches!(path, "/healthz" | "/readyz");
    let headers = request.headers();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str));
    // Without it, a page of another site could read this server under a name of its own (DNS rebinding).
    if !is_health && !host.is_some_and(|host| state.shared().options.allows_host(host)) {
        let message = "this server is not known under the name in the Host header";
        let failure = Failure::new(StatusCode::FORBIDDEN, "forbidden_host", message);
        return Err(failure.with_hint("allow it with `--host NAME`"));
    }
    let Some(token) = &state.shared().options.token else { return Ok(()) };
    if is_health || page::is_asset(path) || request.method() == Method::OPTIONS {
        return Ok(());
    }
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    if bearer.is_some_and(|secret| token.matches(secret.trim())) {
        return Ok(());
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies =
        cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    if path != "/api/session" && cookies.any(|(name, value)| name == COOKIE && token.matches_cookie(value)) {
        return Ok(());
    }
    let failure = Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", "a token is required");
    Err(failure.with_hint("send `Authorization: Bearer TOKEN`"))
}

/// The ID that a client or a proxy gave the request, or a new one.
fn request_id(headers: &HeaderMap) -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let is_plain = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    };
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(is_plain);
    given.map_or_else(
        || {
            let mut hasher = blake3::Hasher::new();
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            hasher.update(&now.as_nanos().to_le_bytes()).update(&std::process::id().to_le_bytes());
            hasher.update(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
            hasher.finalize().to_hex()[..16].into()
        },
        Arc::from,
    )
}

/// Adds the headers of every response.
fn finish(state: &State, origin: Option<&HeaderValue>, id: &str, headers: &mut HeaderMap) {
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("content-security-policy", page::POLICY),
        ("cross-origin-opener-policy", "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    if state.shared().options.origins.is_empty() {
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        return;
    }
    let is_any = state.shared().options.origins.iter().any(|known| known == "*");
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let known =
        origin.filter(|origin| is_any || state.shared().options.origins.iter().any(|known| *origin == known));
    let Some(origin) = known else { return };
    let allowed = if is_any { HeaderValue::from_static("*") } else { origin.clone() };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
    let allowed = "Authorization, If-None-Match, If-Range, Range, Last-Event-ID, X-Request-Id";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
}

fn preflight() -> Response<Body> {
    let reply = Reply::empty(StatusCode::NO_CONTENT).with_header(header::ALLOW, "GET, HEAD, OPTIONS");
    reply.into_response(|_, _| {})
}

/// The response of an error.
fn failed(failure: &Failure, id: &str, path: &str) -> Response<Body> {
    let body = if path == "/search" { reference::error_body(&failure.message) } else { failure.body(id) };
    let mut reply = Reply::bytes(JSON, body).with_status(failure.status);
    match failure.status {
        StatusCode::SERVICE_UNAVAILABLE => reply = reply.with_header(header::RETRY_AFTER, "1"),
        StatusCode::UNAUTHORIZED => reply = reply.with_header(header::WWW_AUTHENTICATE, "Bearer"),
        StatusCode::METHOD_NOT_ALLOWED => reply = reply.with_header(header::ALLOW, "GET, HEAD"),
        _ => {}
    }
    reply.into_response(|_, _| {})
}

/// Answers a request of an endpoint.
async fn serve(
    state: State,
    endpoint: &'static Endpoint,
    path: Vec<(String, String)>,
    request: Request,
) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let id = parts.extensions.get::<RequestId>().map_or_else(|| Arc::from(""), |id| Arc::clone(&id.0));
    let is_search = matches!(endpoint.path, "/search" | "/api/search");
    let mut response = match answer(&state, endpoint, &path, parts, is_search).await {
        Ok(response) => response,
        Err(mut failure) => {
            failure.message = state.shared().catalog.without_root(&failure.message);
            let metrics = &state.shared().metrics;
            match failure.code {
                "deadline" => drop(metrics.timed_out.fetch_add(1, Ordering::Relaxed)),
                "cancelled" => drop(metrics.canceled.fetch_add(1, Ordering::Relaxed)),
                "overloaded" => drop(metrics.rejected.fetch_add(1, Ordering::Relaxed)),
                _ if is_search && failure.status.is_server_error() => {
                    metrics.failed.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
            if failure.status.is_server_error() {
                tracing::warn!(request_id = &*id, code = failure.code, error = %failure.message, "failure");
            }
            failed(&failure, &id, endpoint.path)
        }
    };
    response.extensions_mut().insert(Answered(endpoint.path));
    response
}

async fn answer(
    state: &State,
    endpoint: &'static Endpoint,
    path: &[(String, String)],
    parts: Parts,
    is_search: bool,
) -> Result<Response<Body>, Failure> {
    check_method(endpoint, &parts.method)?;
    let params = if endpoint.path == "/search" || endpoint.parameters.is_empty() && path.is_empty() {
        // These endpoints of the existing server ignore unknown parameters.
        Params::default()
    } else {
        Params::new(endpoint.parameters, path, parts.uri.query().unwrap_or(""))?
    };
    let shared = Arc::clone(state.shared());
    let work = Work::new(Some(state.shared().options.timeout), Arc::clone(&state.shared().stopped));
    if endpoint.run == Run::Light {
        let headers = with_query(&parts);
        let call = Call { state: &shared, params, headers: &headers, work: &work };
        return Ok((endpoint.handler)(&call)?.into_response(|_, _| {}));
    }
    if endpoint.path == "/search" {
        // The order of checks of the existing server: parameters first, then admission.
        reference::check(&state.shared().options, parts.uri.query().unwrap_or(""))?;
    }
    if state.shared().is_draining.load(Ordering::SeqCst) {
        return Err(Failure::shutting_down());
    }
    let slot = state.shared().slots.take().ok_or_else(Failure::overloaded)?;
    if is_search {
        state.shared().metrics.searches.fetch_add(1, Ordering::Relaxed);
        state.shared().metrics.searching.fetch_add(1, Ordering::Relaxed);
    }
    let headers = with_query(&parts);
    // The client may close the connection: then this future is dropped, and the work ends.
    let mut abandon = AbandonOnDrop(Some(work.clone()));
    let handler = endpoint.handler;
    let task = tokio::task::spawn_blocking({
        let (shared, work) = (Arc::clone(&shared), work.clone());
        move || {
            let call = Call { state: &shared, params, headers: &headers, work: &work };
            let result = handler(&call);
            if is_search {
                shared.metrics.searching.fetch_sub(1, Ordering::Relaxed);
            }
            // The slot belongs to the work, also after its deadline.
            drop(slot);
            result
        }
    });
    let ended = match work.deadline() {
        // Work that takes no notice of its deadline is left alone.
        Some(deadline) if endpoint.run == Run::Work => {
            let grace = deadline + Duration::from_millis(50);
            tokio::time::timeout_at(grace.into(), task).await.map_err(|_| Failure::deadline())?
        }
        _ => task.await,
    };
    abandon.0 = None;
    let reply = ended.map_err(|error| {
        tracing::error!(error = %error, path = endpoint.path, "panic");
        Failure::internal("internal error")
    })??;
    if !reply.is_stream() {
        return Ok(reply.into_response(|_, _| {}));
    }
    let stream_slot = state.shared().streams.take().ok_or_else(Failure::overloaded)?;
    let is_head = parts.method == Method::HEAD;
    Ok(reply.into_response(move |write: Box<dyn FnOnce(&Sink) + Send>, sink| {
        if is_head {
            return;
        }
        tokio::task::spawn_blocking(move || {
            let _slot = stream_slot;
            write(&sink);
        });
    }))
}

/// The headers, with the query string for endpoints that read it themselves.
fn with_query(parts: &Parts) -> HeaderMap {
    let mut headers = parts.headers.clone();
    headers.remove(reference::QUERY);
    if let Ok(method) = HeaderValue::from_str(parts.method.as_str()) {
        headers.insert(reference::METHOD, method);
    }
    if let Some(query) = parts.uri.query().and_then(|query| HeaderValue::from_str(query).ok()) {
        headers.insert(reference::QUERY, query);
    }
    headers
}

fn check_method(endpoint: &Endpoint, method: &Method) -> Result<(), Failure> {
    let is_allowed = match endpoint.path {
        // As the existing server.
        "/healthz" | "/stats" => true,
        "/api/session" => method == Method::POST || method == Method::DELETE,
        "/search" => method == Method::GET,
        _ => is_read(method),
    };
    if is_allowed {
        return Ok(());
    }
    let only = if endpoint.path == "/api/session" {
        "only POST and DELETE are supported"
    } else {
        "only GET is supported"
    };
    Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", only))
}

struct AbandonOnDrop(Option<Work>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        if let Some(work) = &self.0 {
            work.abandon();
        }
    }
}
