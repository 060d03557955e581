//! Endpoints: a file on a web server, or an object in an object store.

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

use tercet_core::Span;

use crate::error::root_cause;
use crate::http_client::{ContentRange, HttpClient};
use crate::url::{RemoteUrl, Service};
use crate::{RemoteError, RemoteOptions};

/// A file on a web server, or an object in an object store.
#[derive(Clone)]
pub(crate) enum Endpoint {
    Http { url: Url, authorization: Option<HeaderValue>, client: HttpClient },
    Store { store: Arc<dyn ObjectStore>, path: Path },
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The fields hold credentials.
        f.write_str(match self {
            Self::Http { .. } => "Http",
            Self::Store { .. } => "Store",
        })
    }
}

/// The version of a file: entity tag and modification time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    etag: Option<String>,
    modified: Option<String>,
}

/// The response to a range request.
#[derive(Debug)]
pub(crate) struct RangeResponse {
    pub(crate) bytes: Bytes,
    /// The length of the file.
    pub(crate) file_len: u64,
    pub(crate) version: Version,
    /// The server ignored the range and sent the whole file.
    pub(crate) is_whole: bool,
}

impl Endpoint {
    pub(crate) fn new(url: &RemoteUrl, options: &RemoteOptions) -> Result<Self, RemoteError> {
        let RemoteUrl { url, service } = url;
        match service {
            Service::Http => {
                let client = HttpClient::new(options, is_loopback(url), Some(options.whole_bytes))?;
                let authorization = authorization(url)?;
                let mut url = url.clone();
                // Both fail only for URLs without a host.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                Ok(Self::Http { url, authorization, client })
            }
            service => {
                let path = Path::from_url_path(url.path());
                let path =
                    path.map_err(|_| RemoteError::Url { reason: "the name of the object is not valid" })?;
                let store = match service {
                    Service::S3 => s3(url, options)?,
                    Service::Google => google(url, options)?,
                    _ => azure(url, options)?,
                };
                Ok(Self::Store { store, path })
            }
        }
    }

    /// Requests a byte range, cut at the end of the file. With a version, another version is an error.
    pub(crate) async fn get(
        &self,
        span: Span,
        version: Option<&Version>,
    ) -> Result<RangeResponse, RemoteError> {
        let response = match self {
            Self::Http { .. } => self.get_http(span, version).await?,
            Self::Store { store, path } => {
                let if_match = version.and_then(Version::strong_etag).map(str::to_owned);
                let range = Some(GetRange::Bounded(span.start()..span.end()));
                let options = GetOptions { range, if_match, ..GetOptions::default() };
                let result = store.get_opts(path, options).await.map_err(|error| store_error(&error))?;
                let meta = result.meta.clone();
                let modified = Some(meta.last_modified.timestamp_millis().to_string());
                let version = Version { etag: meta.e_tag, modified };
                let bytes = result.bytes().await.map_err(|error| store_error(&error))?;
                RangeResponse { bytes, file_len: meta.size, version, is_whole: false }
            }
        };
        match version {
            Some(version) if !version.matches(&response.version) => Err(RemoteError::Changed),
            _ => Ok(response),
        }
    }

    async fn get_http(&self, span: Span, version: Option<&Version>) -> Result<RangeResponse, RemoteError> {
        let Self::Http { client, .. } = self else { return Err(RemoteError::NotFound) };
        let mut headers = HeaderMap::new();
        let range = format!("bytes={}-{}", span.start(), span.end().saturating_sub(1));
        headers.insert(RANGE, header(&range)?);
        if let Some(etag) = version.and_then(Version::strong_etag) {
            headers.insert(IF_MATCH, header(etag)?);
        }
        let (parts, body) = client.send(self.request(Method::GET, headers)?).await?.into_parts();
        // No other success carries the requested bytes.
        if ![StatusCode::OK, StatusCode::PARTIAL_CONTENT].contains(&parts.status) {
            return Err(RemoteError::from_status(parts.status.as_u16()));
        }
        // The HTTP client has collected it already.
        let bytes = body.bytes().await.map_err(|error| store_error(&error))?;
        let version = Version::from_headers(&parts.headers);
        if parts.status == StatusCode::PARTIAL_CONTENT {
            let file_len = ContentRange::from_headers(&parts.headers)?.total;
            return Ok(RangeResponse { bytes, file_len, version, is_whole: false });
        }
        Ok(RangeResponse { file_len: bytes.len() as u64, bytes, version, is_whole: true })
    }

    /// Requests the length of the file.
    pub(crate) async fn file_len(&self) -> Result<u64, RemoteError> {
        match self {
            Self::Http { client, .. } => {
                let response = client.send(self.request(Method::HEAD, HeaderMap::new())?).await?;
                if !response.status().is_success() {
                    return Err(RemoteError::from_status(response.status().as_u16()));
                }
                let length = response
                    .headers()
                    .get(CONTENT_LENGTH)
                    .and_then(|value| value.to_str().ok()?.parse().ok());
                length.ok_or(RemoteError::NoLength)
            }
            Self::Store { store, path } => {
                Ok(store.head(path).await.map_err(|error| store_error(&error))?.size)
            }
        }
    }

    fn request(&self, method: Method, headers: HeaderMap) -> Result<Request<HttpRequestBody>, RemoteError> {
        let Self::Http { url, authorization, .. } = self else { return Err(RemoteError::NotFound) };
        let request = Request::builder().method(method).uri(url.as_str()).body(HttpRequestBody::empty());
        let mut request =
            request.map_err(|_| RemoteError::Url { reason: "it cannot be sent in a request" })?;
        *request.headers_mut() = headers;
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

impl Version {
    /// The entity tag, or else the modification time.
    pub(crate) fn name(&self) -> Option<&str> {
        self.etag.as_deref().or(self.modified.as_deref())
    }

    fn from_headers(headers: &HeaderMap) -> Self {
        let text =
            |name| headers.get(name).and_then(|value: &HeaderValue| Some(value.to_str().ok()?.to_owned()));
        Self { etag: text(ETAG), modified: text(LAST_MODIFIED) }
    }

    /// The tag for `If-Match`. A weak tag never matches there.
    fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// Whether the two may be the same version.
    fn matches(&self, later: &Self) -> bool {
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
    HeaderValue::from_str(text).map_err(|_| RemoteError::Url { reason: "it cannot be sent in a request" })
}

/// The header for user and password of a URL.
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

/// The client for a store, whose server may be set in the options.
fn store_client(endpoint: Option<String>, options: &RemoteOptions) -> Result<HttpClient, RemoteError> {
    let endpoint = endpoint.and_then(|text| Url::parse(&text).ok());
    HttpClient::new(options, endpoint.as_ref().is_some_and(is_loopback), None)
}

/// Our HTTP client retries; the library does not.
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
    let store = builder.with_http_connector(store_client(endpoint, options)?).build();
    Ok(Arc::new(store.map_err(|error| settings_error(&error))?))
}

fn google(url: &Url, options: &RemoteOptions) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in &options.settings {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder.with_bucket_name(url.host_str().unwrap_or_default()).with_retry(no_retries());
    let store = builder.with_http_connector(store_client(None, options)?).build();
    Ok(Arc::new(store.map_err(|error| settings_error(&error))?))
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
    let store = builder.with_http_connector(store_client(endpoint, options)?).build();
    Ok(Arc::new(store.map_err(|error| settings_error(&error))?))
}

fn settings_error(error: &object_store::Error) -> RemoteError {
    RemoteError::Configuration { detail: root_cause(error) }
}

/// The cause of an error of the store library: ours where it wraps one, or else its kind. Its own message quotes URLs
/// and responses.
pub(crate) fn store_error(error: &(dyn std::error::Error + 'static)) -> RemoteError {
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
        _ => RemoteError::Library { detail: root_cause(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_tags_are_compared_but_not_sent() {
        let version = |etag: Option<&str>, modified: Option<&str>| Version {
            etag: etag.map(str::to_owned),
            modified: modified.map(str::to_owned),
        };
        let weak = version(Some("W/\"1\""), Some("then"));
        assert_eq!(weak.strong_etag(), None);
        assert!(weak.matches(&weak.clone()) && !weak.matches(&version(Some("W/\"2\""), Some("then"))));
        assert_eq!(version(Some("\"1\""), None).strong_etag(), Some("\"1\""));
        assert!(!version(None, Some("then")).matches(&version(None, Some("now"))));
        assert!(version(None, None).matches(&weak));
    }

    #[test]
    fn credentials_move_from_the_url_to_a_header() {
        let url = RemoteUrl::parse("http://me:a%40b@127.0.0.1/x?y=z").unwrap();
        let Ok(Endpoint::Http { url, authorization, .. }) = Endpoint::new(&url, &RemoteOptions::default())
        else {
            panic!("an HTTP endpoint was expected");
        };
        assert_eq!(url.as_str(), "http://127.0.0.1/x?y=z");
        assert_eq!(authorization.unwrap().as_bytes(), b"Basic bWU6YUBi");
    }
}
