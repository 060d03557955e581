//! Log lines of requests, as text or JSON.

use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::fmt::writer::MakeWriter;

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text, one line for each event.
    #[default]
    Text,
    /// One JSON object for each event.
    Json,
}

/// Writes log lines to `writer`; returns whether it is the first call in this process, which alone has an effect.
pub fn install<W>(format: Format, writer: W) -> bool
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_writer(writer).with_timer(SystemTime).with_target(false);
    match format {
        Format::Text => builder.with_ansi(false).try_init().is_ok(),
        Format::Json => builder.json().flatten_event(true).with_current_span(false).try_init().is_ok(),
    }
}

/// Logs a request that was answered.
pub(crate) fn request(
    id: &str,
    method: &axum::http::Method,
    path: &str,
    status: u16,
    elapsed: std::time::Duration,
    bytes: Option<u64>,
) {
    let took_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    // Names in a path are those of a client: control characters are escaped.
    let path = tercet::core::escape::name(path);
    if status >= 500 {
        tracing::warn!(request_id = id, %method, %path, status, took_us, bytes, "request");
    } else {
        tracing::info!(request_id = id, %method, %path, status, took_us, bytes, "request");
    }
}
