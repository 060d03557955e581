//! URLs of remote files.

use std::fmt;

use tercet_core::redact_url;
use url::Url;

use crate::RemoteError;

/// The supported schemes.
const SCHEMES: [(&str, Service); 10] = [
    ("http", Service::Http),
    ("https", Service::Http),
    ("s3", Service::S3),
    ("s3a", Service::S3),
    ("gs", Service::Google),
    ("gcs", Service::Google),
    ("az", Service::Azure),
    ("azure", Service::Azure),
    ("abfs", Service::Azure),
    ("abfss", Service::Azure),
];

/// The service that a URL belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Http,
    S3,
    Google,
    Azure,
}

/// The URL of a remote file. `Debug` omits credentials.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RemoteUrl {
    pub(crate) url: Url,
    pub(crate) service: Service,
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_url(self.url.as_str()))
    }
}

impl RemoteUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, RemoteError> {
        let invalid = |reason| RemoteError::Url { reason };
        let service = service_of(text).ok_or(invalid("the scheme is not http, https, s3, gs or az"))?;
        let mut url = Url::parse(text).map_err(|_| invalid("it does not parse"))?;
        if url.host_str().is_none_or(str::is_empty) {
            let is_http = service == Service::Http;
            return Err(invalid(if is_http { "it has no host" } else { "it has no bucket" }));
        }
        if service == Service::Http {
            // Fragments are not sent to servers.
            url.set_fragment(None);
            return Ok(Self { url, service });
        }
        if url.query().is_some() {
            return Err(invalid("objects of a store have no query; set tokens in the environment"));
        }
        if url.fragment().is_some() {
            return Err(invalid("`#` in the name of an object is written `%23`"));
        }
        if url.password().is_some() || (service != Service::Azure && !url.username().is_empty()) {
            return Err(invalid("objects of a store have no user; set credentials in the environment"));
        }
        if url.path().trim_matches('/').is_empty() || url.path().ends_with('/') {
            return Err(invalid("it names no object"));
        }
        Ok(Self { url, service })
    }
}

fn service_of(text: &str) -> Option<Service> {
    let (scheme, _) = text.split_once("://")?;
    SCHEMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme)).map(|&(_, service)| service)
}

/// Scheme, host and port.
pub(crate) fn origin(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or("…"))
}

#[cfg(test)]
mod tests {
    use tercet_core::Location;

    use super::*;

    #[test]
    fn every_scheme_is_a_url_location() {
        for (scheme, _) in SCHEMES {
            assert!(Location::is_url(&format!("{scheme}://host/a")), "{scheme}");
        }
    }

    #[test]
    fn credentials_are_not_in_debug_output() {
        for text in [
            "https://u:secret@h:8443/a/b.tgm?x=secret#secret",
            "http://secret@127.0.0.1/a",
            "https://h/a?secret",
        ] {
            let url = RemoteUrl::parse(text).unwrap();
            assert!(!format!("{url:?}").contains("secret"), "{text}");
        }
    }

    #[test]
    fn urls_of_stores_name_an_object_only() {
        let reason = |text: &str| match RemoteUrl::parse(text) {
            Err(RemoteError::Url { reason }) => reason,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(reason("s3://bucket"), "it names no object");
        assert_eq!(reason("s3://bucket/directory/"), "it names no object");
        assert_eq!(reason("s3:///a"), "it has no bucket");
        assert!(reason("s3://bucket/a?versionId=3").contains("no query"));
        assert!(reason("gs://user@bucket/a").contains("no user"));
        assert!(reason("s3://bucket/a#b").contains("`%23`"));
        assert_eq!(reason("https://u:p/w@h/a"), "it does not parse");
        assert_eq!(RemoteUrl::parse("https://h/a?b#c").unwrap().url.as_str(), "https://h/a?b");
    }
}
