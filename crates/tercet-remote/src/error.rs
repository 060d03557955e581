//! Errors of remote files.

use tercet_core::{Class, Diagnostic, Hint, SourceError};

/// A request that failed.
///
/// No variant holds a URL, a credential or the body of a response: every error can be printed anywhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL is not one of a remote file.
    #[error("invalid URL: {reason}")]
    Url {
        /// The problem.
        reason: &'static str,
    },
    /// The settings of the object store contradict each other or are incomplete.
    #[error("the object store is not configured: {detail}")]
    Configuration {
        /// The message of the library, without URLs.
        detail: String,
    },
    /// The file does not exist.
    #[error("not found (HTTP 404)")]
    NotFound,
    /// Authentication failed.
    #[error("access denied (HTTP {status})")]
    Denied {
        /// The HTTP status.
        status: u16,
    },
    /// Another HTTP status that is not a success.
    #[error("the server returned HTTP {status}")]
    Status {
        /// The HTTP status.
        status: u16,
    },
    /// A redirect to another server.
    #[error("the server redirects to `{host}`, which is not followed")]
    Redirected {
        /// Scheme, host and port of the target.
        host: String,
    },
    /// A chain of redirects.
    #[error("more than {max} redirects")]
    TooManyRedirects {
        /// The largest number that is followed.
        max: usize,
    },
    /// The connection failed.
    #[error("cannot connect: {detail}")]
    Unreachable {
        /// The message of the operating system, without URLs.
        detail: String,
    },
    /// No response in time.
    #[error("timed out after {seconds} s (plus 1 s per 64 KiB)")]
    TimedOut {
        /// The timeout of a small request.
        seconds: u64,
    },
    /// The connection broke during the response.
    #[error("the connection broke: {detail}")]
    Interrupted {
        /// The message of the operating system, without URLs.
        detail: String,
    },
    /// The body is shorter than announced.
    #[error("the server sent {found} of {expected} bytes")]
    Short {
        /// Bytes received.
        found: u64,
        /// Bytes requested.
        expected: u64,
    },
    /// The body is longer than requested.
    #[error("the server sent more than the requested {expected} bytes")]
    Long {
        /// Bytes requested.
        expected: u64,
    },
    /// The response covers another byte range.
    #[error("the server sent another byte range than requested (Content-Range: `{content_range}`)")]
    WrongRange {
        /// The header of the response.
        content_range: String,
    },
    /// The file changed after it was opened.
    #[error("the file changed while it was read")]
    Changed,
    /// The server does not support range requests, and the file is too large to be downloaded as a whole.
    #[error("the server does not support range requests, and the file has more than {limit} bytes")]
    NoRanges {
        /// The largest file that is held in memory.
        limit: u64,
    },
    /// The server does not support range requests and announces no length: a broken connection would look like the end.
    #[error("the server supports neither range requests nor Content-Length")]
    NoLength,
    /// The object exists.
    #[error("file exists")]
    Exists,
    /// The URL is not in an object store.
    #[error("cannot write over HTTP")]
    NotWritable,
    /// The length of the uploaded object differs from the bytes sent.
    #[error("the uploaded object has {found} bytes instead of {expected}")]
    WrongLength {
        /// The length that the store reports.
        found: u64,
        /// The bytes sent.
        expected: u64,
    },
    /// Another error of the HTTP or object store library.
    #[error("{detail}")]
    Library {
        /// The message, without URLs.
        detail: String,
    },
}

impl RemoteError {
    /// The remote error inside the error of a source.
    pub fn from_source(error: &SourceError) -> Option<&Self> {
        let SourceError::Remote { error, .. } = error else { return None };
        let error: &(dyn std::error::Error + 'static) = &**error;
        error.downcast_ref()
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Status { status } => *status >= 500 || matches!(status, 408 | 429),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Interrupted { .. }
            | Self::Short { .. } => true,
            _ => false,
        }
    }

    /// The error of a status that is not a success.
    pub(crate) fn from_status(status: u16) -> Self {
        match status {
            404 | 410 => Self::NotFound,
            401 | 403 | 407 => Self::Denied { status },
            412 => Self::Changed,
            status => Self::Status { status },
        }
    }
}

impl Diagnostic for RemoteError {
    fn class(&self) -> Class {
        match self {
            Self::Url { .. } | Self::Exists | Self::NotWritable => Class::Request,
            Self::NoRanges { .. } => Class::Limit,
            _ => Class::Io,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::Denied { .. } => {
                "set the credentials of S3, Google Cloud Storage or Azure in `AWS_…`, `GOOGLE_…` or `AZURE_…` variables; those of a web server in the URL: `https://user:password@…`"
            }
            Self::Redirected { .. } => "use the URL of that server, if it is trusted",
            Self::NoRanges { .. } | Self::NoLength => "download the file and open the copy",
            Self::NotWritable => "write to a file, or to `s3://`, `gs://` or `az://`",
            Self::Changed => return Some(Hint::Retry),
            Self::Exists => return Some(Hint::Overwrite),
            _ => return None,
        };
        Some(hint.into())
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound)
    }
}

/// The message of the innermost cause of a library's error, without URLs.
///
/// Libraries put the requested URL, with its query, into their messages; the innermost cause is the message of the
/// operating system.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    without_urls(&innermost.to_string())
}

/// Text without URLs, on one line, cut to a readable length.
fn without_urls(text: &str) -> String {
    const MAX_LEN: usize = 200;
    let words = text.split_whitespace().map(|word| if word.contains("://") { "…" } else { word });
    let mut out = String::new();
    for word in words {
        if out.len() + word.len() > MAX_LEN {
            out.push('…');
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_removed_from_messages() {
        let text = "error for url\n(https://a:b@host/c?d=secret) \"http://x\" after 3 s";
        assert_eq!(without_urls(text), "error for url … … after 3 s");
        assert!(without_urls(&"x".repeat(1000)).len() < 210);
        assert!(without_urls(&"x ".repeat(1000)).len() < 210);
    }

    #[test]
    fn only_transient_statuses_are_retried() {
        for status in [500, 503, 408, 429] {
            assert!(RemoteError::from_status(status).is_transient(), "{status}");
        }
        for status in [400, 401, 403, 404, 410, 412, 416] {
            assert!(!RemoteError::from_status(status).is_transient(), "{status}");
        }
        assert!(!RemoteError::Long { expected: 1 }.is_transient());
    }
}
