//! Addresses, and how they are shown.

use std::fmt;

use url::Url;

use super::RemoteError;

/// The schemes that are understood, and what they lead to.
const SCHEMES: [(&str, Kind); 9] = [
    ("http", Kind::Http),
    ("https", Kind::Http),
    ("s3", Kind::S3),
    ("s3a", Kind::S3),
    ("gs", Kind::Google),
    ("az", Kind::Azure),
    ("azure", Kind::Azure),
    ("abfs", Kind::Azure),
    ("abfss", Kind::Azure),
];

/// What an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Http,
    S3,
    Google,
    Azure,
}

/// The address of a file. It is shown without what may be secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) url: Url,
    pub(super) kind: Kind,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.url))
    }
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, RemoteError> {
        let wrong = |reason| RemoteError::Address { reason };
        let kind = kind_of(text).ok_or(wrong("has none of the schemes http, https, s3, gs, az"))?;
        let mut url = Url::parse(text).map_err(|_| wrong("does not parse"))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong(if kind == Kind::Http { "names no host" } else { "names no bucket" }));
        }
        if kind == Kind::Http {
            // Servers never see it.
            url.set_fragment(None);
            return Ok(Self { url, kind });
        }
        if url.query().is_some() {
            return Err(wrong(
                "has a query, which objects of a store have not; tokens are given in the environment",
            ));
        }
        if url.fragment().is_some() {
            return Err(wrong("has a `#`, which is written `%23` in the names of objects"));
        }
        if url.password().is_some() || (kind != Kind::Azure && !url.username().is_empty()) {
            return Err(wrong("names a user; credentials are given in the environment"));
        }
        if url.path().trim_matches('/').is_empty() || url.path().ends_with('/') {
            return Err(wrong("names no object"));
        }
        Ok(Self { url, kind })
    }
}

/// Whether a text is an address of a scheme that is understood.
pub fn is_address(text: &str) -> bool {
    kind_of(text).is_some()
}

fn kind_of(text: &str) -> Option<Kind> {
    let (scheme, _) = text.split_once("://")?;
    SCHEMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme)).map(|&(_, kind)| kind)
}

/// An address without what may be secret: user, password, query. What does not parse is not shown at all.
///
/// ```
/// use tercet_core::source::remote::redacted;
///
/// assert_eq!(redacted("https://me:secret@host/a.tgm?token=secret"), "https://host/a.tgm?…");
/// ```
pub fn redacted(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.has_host() => shown(&url),
        _ => match text.split_once("://") {
            Some((scheme, _)) if is_address(text) => format!("{}://…", scheme.to_ascii_lowercase()),
            _ => "…".to_owned(),
        },
    }
}

fn shown(url: &Url) -> String {
    let container = match url.scheme() {
        // There the name in front of the host is no user.
        "az" | "abfs" | "abfss" if !url.username().is_empty() => format!("{}@", url.username()),
        _ => String::new(),
    };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let query = if url.query().is_some() { "?…" } else { "" };
    format!("{}://{container}{}{port}{}{query}", url.scheme(), url.host_str().unwrap_or("…"), url.path())
}

/// The place that a redirect points to: scheme, host and port.
pub(super) fn place(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or("…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let cases = [
            ("https://u:secret@h:8443/a/b.tgm?x=secret#secret", "https://h:8443/a/b.tgm?…"),
            ("http://secret@127.0.0.1/a", "http://127.0.0.1/a"),
            ("s3://bucket/a%20b.tgm", "s3://bucket/a%20b.tgm"),
            ("abfss://files@account.dfs.core.windows.net/a", "abfss://files@account.dfs.core.windows.net/a"),
            (
                "abfss://files:secret@account.dfs.core.windows.net/a",
                "abfss://files@account.dfs.core.windows.net/a",
            ),
            ("https://u:sec/ret@h/a", "https://…"),
            ("https://", "https://…"),
            ("secret", "…"),
        ];
        for (text, expected) in cases {
            assert_eq!(redacted(text), expected);
            if let Ok(address) = Address::parse(text) {
                assert!(!format!("{address:?}").contains("secret"), "{text}");
            }
        }
    }

    #[test]
    fn paths_are_no_addresses() {
        for text in ["a.tgm", "./s3://b/c", "ftp://h/a", "C:\\a", "s3:/b/c", "-", "://", "dir/http://x"] {
            assert!(!is_address(text), "{text}");
        }
        assert!(is_address("HTTPS://h/a") && is_address("s3a://b/c"));
    }

    #[test]
    fn addresses_of_stores_name_an_object_and_nothing_else() {
        let reason = |text: &str| match Address::parse(text) {
            Err(RemoteError::Address { reason }) => reason,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(reason("s3://bucket"), "names no object");
        assert_eq!(reason("s3://bucket/folder/"), "names no object");
        assert_eq!(reason("s3:///a"), "names no bucket");
        assert!(reason("s3://bucket/a?versionId=3").starts_with("has a query"));
        assert!(reason("gs://user@bucket/a").starts_with("names a user"));
        assert!(reason("s3://bucket/a#b").starts_with("has a `#`"));
        assert_eq!(reason("https://u:p/w@h/a"), "does not parse");
        assert_eq!(Address::parse("https://h/a?b#c").unwrap().url.as_str(), "https://h/a?b");
    }
}
