//! Requests to the server, before any work begins.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Lines: a value of the path, a query string, then headers.
pub(super) fn run(input: &[u8]) {
    let mut lines = input.split(|&byte| byte == b'\n');
    let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (path, query) = (text(), text());
    let mut headers = HeaderMap::new();
    for line in lines.take(64) {
        let end = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(end);
        let value = HeaderValue::from_bytes(value.strip_prefix(b": ").unwrap_or_default());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value) {
            headers.append(name, value);
        }
    }
    tercet_server::read_untrusted(&path, &query, &headers);
}
