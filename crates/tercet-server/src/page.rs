//! The page: files that are part of the program.

use axum::http::{HeaderMap, header};

use crate::reply::Reply;

/// Name, media type and bytes.
type Asset = (&'static str, &'static str, &'static [u8]);

/// The files of the page. `/` is the first.
const ASSETS: &[Asset] = &[
    ("index.html", "text/html; charset=utf-8", include_bytes!("../assets/index.html")),
    ("app.js", "text/javascript; charset=utf-8", include_bytes!("../assets/app.js")),
    ("app.css", "text/css; charset=utf-8", include_bytes!("../assets/app.css")),
    ("licenses.txt", "text/plain; charset=utf-8", include_bytes!("../assets/licenses.txt")),
    ("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

/// What the page may do: run its own script, talk to its own server, and nothing else.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; font-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// The file of the page at a path; `None` if there is none.
pub(crate) fn asset(path: &str, headers: &HeaderMap) -> Option<Reply> {
    let path = path.strip_prefix("/assets").unwrap_or(path);
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        "favicon.ico" => "icon.svg",
        name => name,
    };
    let (_, media_type, bytes) = ASSETS.iter().find(|(known, ..)| *known == name)?;
    let tag = format!("\"{}\"", &blake3::hash(bytes).to_hex()[..16]);
    let reply = if crate::api::matches_tag(headers, &tag) {
        Reply::empty(axum::http::StatusCode::NOT_MODIFIED)
    } else {
        Reply::bytes(media_type, *bytes)
    };
    Some(reply.with_header(header::ETAG, &tag).with_header(header::CACHE_CONTROL, "no-cache"))
}

/// Whether a path is part of the page.
pub(crate) fn is_asset(path: &str) -> bool {
    let path = path.strip_prefix("/assets").unwrap_or(path);
    let name = path.strip_prefix('/').unwrap_or(path);
    name.is_empty() || name == "favicon.ico" || ASSETS.iter().any(|(known, ..)| *known == name)
}
