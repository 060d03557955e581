//! Where a file is: a path or a URL.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The URL schemes of remote files.
const SCHEMES: [&str; 10] = ["http", "https", "s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss"];

/// The location of a file: a path on this machine or a URL of a remote file.
///
/// Strings that start with the scheme of a web server or an object store are URLs; every other string is a path.
/// [`Display`](fmt::Display) omits credentials: user, password and query.
///
/// ```
/// use tercet_core::Location;
///
/// assert!(matches!(Location::from("s3://bucket/run.tgm"), Location::Url(_)));
/// assert!(matches!(Location::from("data/run.tgm"), Location::Path(_)));
/// let secret = Location::from("https://me:secret@host/run.tgm?token=secret");
/// assert_eq!(secret.to_string(), "https://host/run.tgm?…");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// A file on this machine.
    Path(PathBuf),
    /// A remote file.
    Url(Box<str>),
}

impl Location {
    /// Whether `text` starts with the scheme of a web server or an object store.
    pub fn is_url(text: &str) -> bool {
        text.split_once("://")
            .is_some_and(|(scheme, _)| SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)))
    }

    /// The path, if it is one.
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Url(_) => None,
        }
    }

    /// The URL, if it is one. It may hold credentials; print the location itself instead.
    pub fn as_url(&self) -> Option<&str> {
        match self {
            Self::Path(_) => None,
            Self::Url(url) => Some(url),
        }
    }
}

impl From<&str> for Location {
    fn from(text: &str) -> Self {
        if Self::is_url(text) { Self::Url(text.into()) } else { Self::Path(text.into()) }
    }
}

impl From<String> for Location {
    fn from(text: String) -> Self {
        if Self::is_url(&text) { Self::Url(text.into()) } else { Self::Path(text.into()) }
    }
}

impl From<&String> for Location {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned())
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        Self::Path(path.clone())
    }
}

impl From<&OsStr> for Location {
    fn from(text: &OsStr) -> Self {
        text.to_str().map_or_else(|| Self::Path(text.into()), Self::from)
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(&path.to_string_lossy()),
            Self::Url(url) => f.write_str(&redact_url(url)),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

/// A URL of any scheme without user, password, query and fragment. A URL in which they cannot be separated is reduced to
/// its scheme; a text that is not a URL is hidden.
pub fn redact_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let scheme = scheme.to_ascii_lowercase();
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme {
        return "…".to_owned();
    }
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?…"));
    let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let has_no_host = host.is_empty() && (path.is_empty() || path.contains('@'));
    if has_no_host || path.contains('@') && host.contains(':') {
        return format!("{scheme}://…");
    }
    // In these URLs the name before the host is a container.
    let container = match user.split(':').next() {
        Some(name) if !name.is_empty() && matches!(&*scheme, "az" | "abfs" | "abfss") => format!("{name}@"),
        _ => String::new(),
    };
    format!("{scheme}://{container}{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_schemes_are_urls() {
        for text in ["a.tgm", "./s3://b/c", "ftp://h/a", "C:\\a", "s3:/b/c", "-", "://", "dir/http://x"] {
            assert!(matches!(Location::from(text), Location::Path(_)), "{text}");
        }
        assert!(Location::is_url("HTTPS://h/a") && Location::is_url("s3a://b/c"));
        assert!(matches!(Location::from(Path::new("s3://b/c")), Location::Path(_)));
    }

    #[test]
    fn secrets_are_not_displayed() {
        let cases = [
            ("https://u:secret@h:8443/a/b.tgm?x=secret#secret", "https://h:8443/a/b.tgm?…"),
            ("http://secret@127.0.0.1/a", "http://127.0.0.1/a"),
            ("s3://bucket/a%20b.tgm", "s3://bucket/a%20b.tgm"),
            ("abfss://files@account.dfs.core.windows.net/a", "abfss://files@account.dfs.core.windows.net/a"),
            ("abfss://files:secret@account.net/a", "abfss://files@account.net/a"),
            ("https://u:sec/ret@h/a", "https://…"),
            ("https://u:sec\\ret@h/a", "https://…"),
            ("https://", "https://…"),
            ("ftp://u:secret@h/a.tet?secret", "ftp://h/a.tet?…"),
            ("file:///a/b.tet", "file:///a/b.tet"),
            ("secret", "…"),
            ("sec ret://h/a", "…"),
        ];
        for (text, expected) in cases {
            assert_eq!(redact_url(text), expected);
        }
        assert_eq!(format!("{:?}", Location::from("http://secret@h/a")), "Location(http://h/a)");
    }
}
