//! Where a file is: at a web server, or in a store.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, ETAG, HeaderMap, HeaderValue, IF_MATCH, LAST_MODIFIED, RANGE,
};
use http::{Method, Request, StatusCode};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::HttpRequestBody;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, RetryConfig};
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::address::{Address, Kind};
use super::error::cause_of;
use super::guard::{Found, Guard};
use super::{RemoteError, RemoteOptions};
use crate::Span;

/// A file at a web server, or an object in a store.
#[derive(Clone)]
pub(super) enum Place {
    Http { url: Url, authorization: Option<HeaderValue>, guard: Guard },
    Store { store: Arc<dyn ObjectStore>, path: Path },
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is inside knows secrets.
        f.write_str(match self {
            Self::Http { .. } => "Http",
            Self::Store { .. } => "Store",
        })
    }
}

/// What tells one state of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    etag: Option<String>,
    modified: Option<String>,
}

/// Bytes of a file, and what was said about it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) bytes: Bytes,
    /// The length of the file.
    pub(super) total: u64,
    pub(super) version: Version,
    /// All bytes of the file came, though fewer were asked for.
    pub(super) is_whole: bool,
}

impl Place {
    pub(super) fn of(address: &Address, options: &RemoteOptions) -> Result<Self, RemoteError> {
        let url = &address.url;
        match address.kind {
            Kind::Http => {
                let guard = Guard::new(options, is_loopback(url), Some(options.whole_bytes))?;
                let authorization = authorization(url)?;
                let mut url = url.clone();
                // Both only fail for addresses without a host.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                Ok(Self::Http { url, authorization, guard })
            }
            kind => {
                let path = Path::from_url_path(url.path());
                let path = path
                    .map_err(|_| RemoteError::Address { reason: "names an object that no store can have" })?;
                let store = match kind {
                    Kind::S3 => s3(url, options)?,
                    Kind::Google => google(url, options)?,
                    _ => azure(url, options)?,
                };
                Ok(Self::Store { store, path })
            }
        }
    }

    /// Bytes of the file: those of the span that are there, or all of them. With a version, of that version only.
    pub(super) async fn get(&self, span: Span, version: Option<&Version>) -> Result<Answer, RemoteError> {
        let answer = match self {
            Self::Http { .. } => self.get_http(span, version).await?,
            Self::Store { store, path } => {
                let if_match = version.and_then(Version::strong).map(str::to_owned);
                let range = Some(GetRange::Bounded(span.start()..span.end()));
                let options = GetOptions { range, if_match, ..GetOptions::default() };
                let result = store.get_opts(path, options).await.map_err(|error| of_store(&error))?;
                let meta = result.meta.clone();
                let modified = Some(meta.last_modified.timestamp_millis().to_string());
                let version = Version { etag: meta.e_tag, modified };
                let bytes = result.bytes().await.map_err(|error| of_store(&error))?;
                Answer { bytes, total: meta.size, version, is_whole: false }
            }
        };
        match version {
            Some(version) if !version.agrees(&answer.version) => Err(RemoteError::Changed),
            _ => Ok(answer),
        }
    }

    async fn get_http(&self, span: Span, version: Option<&Version>) -> Result<Answer, RemoteError> {
        let Self::Http { guard, .. } = self else { return Err(RemoteError::NotFound) };
        let mut headers = HeaderMap::new();
        let range = format!("bytes={}-{}", span.start(), span.end().saturating_sub(1));
        headers.insert(RANGE, header(&range)?);
        if let Some(etag) = version.and_then(Version::strong) {
            headers.insert(IF_MATCH, header(etag)?);
        }
        let (parts, body) = guard.send(self.request(Method::GET, headers)?).await?.into_parts();
        // Of the others that are no failure none brings the bytes that were asked for.
        if ![StatusCode::OK, StatusCode::PARTIAL_CONTENT].contains(&parts.status) {
            return Err(RemoteError::of_status(parts.status.as_u16()));
        }
        // The guard has it in one piece already.
        let bytes = body.bytes().await.map_err(|error| of_store(&error))?;
        let version = Version::of(&parts.headers);
        if parts.status == StatusCode::PARTIAL_CONTENT {
            let total = Found::of(&parts.headers)?.total;
            return Ok(Answer { bytes, total, version, is_whole: false });
        }
        Ok(Answer { total: bytes.len() as u64, bytes, version, is_whole: true })
    }

    /// The length of the file.
    pub(super) async fn length(&self) -> Result<u64, RemoteError> {
        match self {
            Self::Http { guard, .. } => {
                let answer = guard.send(self.request(Method::HEAD, HeaderMap::new())?).await?;
                if !answer.status().is_success() {
                    return Err(RemoteError::of_status(answer.status().as_u16()));
                }
                let length =
                    answer.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
                length.ok_or(RemoteError::OtherBytes { said: "none".to_owned() })
            }
            Self::Store { store, path } => Ok(store.head(path).await.map_err(|error| of_store(&error))?.size),
        }
    }

    fn request(&self, method: Method, headers: HeaderMap) -> Result<Request<HttpRequestBody>, RemoteError> {
        let Self::Http { url, authorization, .. } = self else { return Err(RemoteError::NotFound) };
        let request = Request::builder().method(method).uri(url.as_str()).body(HttpRequestBody::empty());
        let mut request = request.map_err(|_| RemoteError::Address { reason: "cannot be asked for" })?;
        *request.headers_mut() = headers;
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

impl Version {
    /// Its tag, or else its time.
    pub(super) fn name(&self) -> Option<&str> {
        self.etag.as_deref().or(self.modified.as_deref())
    }

    fn of(headers: &HeaderMap) -> Self {
        let text =
            |name| headers.get(name).and_then(|value: &HeaderValue| Some(value.to_str().ok()?.to_owned()));
        Self { etag: text(ETAG), modified: text(LAST_MODIFIED) }
    }

    /// The tag to ask with. A weak one equals nothing when it is asked with, not even itself.
    fn strong(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// Whether nothing says that the file is another one.
    fn agrees(&self, later: &Self) -> bool {
        match (&self.etag, &later.etag) {
            (Some(was), Some(is)) => was == is,
            _ => match (&self.modified, &later.modified) {
                (Some(was), Some(is)) => was == is,
                _ => true,
            },
        }
    }
}

fn header(text: &str) -> Result<HeaderValue, RemoteError> {
    HeaderValue::from_str(text).map_err(|_| RemoteError::Address { reason: "cannot be asked for" })
}

/// User and password of an address, as they are sent.
fn authorization(url: &Url) -> Result<Option<HeaderValue>, RemoteError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = header(&format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(pair)))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// A guard for a store, whose server may be named in the settings.
fn guard_of(endpoint: Option<String>, options: &RemoteOptions) -> Result<Guard, RemoteError> {
    let endpoint = endpoint.and_then(|text| Url::parse(&text).ok());
    Guard::new(options, endpoint.as_ref().is_some_and(is_loopback), None)
}

/// The guard tries again; nobody else does.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn s3(url: &Url, options: &RemoteOptions) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in &options.settings {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint);
    let endpoint = endpoint.or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    let builder = builder.with_bucket_name(url.host_str().unwrap_or_default()).with_retry(no_retries());
    let store = builder.with_http_connector(guard_of(endpoint, options)?).build();
    Ok(Arc::new(store.map_err(|error| of_settings(&error))?))
}

fn google(url: &Url, options: &RemoteOptions) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in &options.settings {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder.with_bucket_name(url.host_str().unwrap_or_default()).with_retry(no_retries());
    let store = builder.with_http_connector(guard_of(None, options)?).build();
    Ok(Arc::new(store.map_err(|error| of_settings(&error))?))
}

fn azure(url: &Url, options: &RemoteOptions) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (name, value) in &options.settings {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    let builder = builder.with_url(url.as_str()).with_retry(no_retries());
    let store = builder.with_http_connector(guard_of(endpoint, options)?).build();
    Ok(Arc::new(store.map_err(|error| of_settings(&error))?))
}

fn of_settings(error: &object_store::Error) -> RemoteError {
    RemoteError::Configuration { detail: cause_of(error) }
}

/// An error of the library: ours if it only passes one on, or else its kind. Its words quote addresses and answers.
pub(super) fn of_store(error: &(dyn std::error::Error + 'static)) -> RemoteError {
    use object_store::Error;
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(ours) = error.downcast_ref::<RemoteError>() {
            return ours.clone();
        }
        cause = error.source();
    }
    match error.downcast_ref::<Error>() {
        Some(Error::NotFound { .. }) => RemoteError::NotFound,
        Some(Error::PermissionDenied { .. }) => RemoteError::Denied { status: 403 },
        Some(Error::Unauthenticated { .. }) => RemoteError::Denied { status: 401 },
        Some(Error::Precondition { .. } | Error::NotModified { .. }) => RemoteError::Changed,
        Some(Error::AlreadyExists { .. }) => RemoteError::Exists,
        _ => RemoteError::Library { detail: cause_of(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_tags_are_compared_but_not_asked_with() {
        let version = |etag: Option<&str>, modified: Option<&str>| Version {
            etag: etag.map(str::to_owned),
            modified: modified.map(str::to_owned),
        };
        let weak = version(Some("W/\"1\""), Some("then"));
        assert_eq!(weak.strong(), None);
        assert!(weak.agrees(&weak.clone()) && !weak.agrees(&version(Some("W/\"2\""), Some("then"))));
        assert_eq!(version(Some("\"1\""), None).strong(), Some("\"1\""));
        assert!(!version(None, Some("then")).agrees(&version(None, Some("now"))));
        assert!(version(None, None).agrees(&weak));
    }

    #[test]
    fn users_are_sent_and_then_forgotten() {
        let address = Address::parse("http://me:a%40b@127.0.0.1/x?y=z").unwrap();
        let Ok(Place::Http { url, authorization, .. }) = Place::of(&address, &RemoteOptions::default())
        else {
            panic!("an HTTP place was expected");
        };
        assert_eq!(url.as_str(), "http://127.0.0.1/x?y=z");
        assert_eq!(authorization.unwrap().as_bytes(), b"Basic bWU6YUBi");
    }
}
