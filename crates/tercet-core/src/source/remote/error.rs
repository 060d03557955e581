//! What can go wrong between here and a server.

use crate::{Class, Diagnose, Hint, SourceError};

/// A server that did not do what it was asked.
///
/// No variant holds an address, a credential or the text of an answer: they can be printed anywhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The address cannot be one of a file.
    #[error("the address {reason}")]
    Address {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What the environment or the settings say about a store does not go together.
    #[error("the store is not configured: {detail}")]
    Configuration {
        /// The words of the library, without addresses.
        detail: String,
    },
    /// There is nothing at the address.
    #[error("there is nothing at this address")]
    NotFound,
    /// The server wants other credentials.
    #[error("access is denied (status {status})")]
    Denied {
        /// The status of the answer.
        status: u16,
    },
    /// An answer that is no success.
    #[error("the server answers with status {status}")]
    Status {
        /// The status of the answer.
        status: u16,
    },
    /// An answer that points to another place.
    #[error("the server redirects to `{host}`, which is not followed")]
    Redirected {
        /// The host it points to, with its scheme and port, and nothing else of the address.
        host: String,
    },
    /// Answers that point from one place to the next.
    #[error("the server redirects more than {most} times")]
    RedirectedTooOften {
        /// How often is followed.
        most: usize,
    },
    /// No connection.
    #[error("cannot connect: {detail}")]
    Unreachable {
        /// The words of the system, without addresses.
        detail: String,
    },
    /// No answer, or one that comes too slowly.
    #[error("no answer in time: the limit is {seconds} s, and a second for each 64 KiB")]
    TimedOut {
        /// The limit for a few bytes.
        seconds: u64,
    },
    /// The connection ended in the middle.
    #[error("the connection ended: {detail}")]
    Interrupted {
        /// The words of the system, without addresses.
        detail: String,
    },
    /// Fewer bytes than announced.
    #[error("the server sent {found} of {expected} bytes")]
    Short {
        /// The bytes that came.
        found: u64,
        /// The bytes asked for.
        expected: u64,
    },
    /// More bytes than asked for.
    #[error("the server sent more than the {expected} bytes asked for")]
    Long {
        /// The bytes asked for.
        expected: u64,
    },
    /// Other bytes than asked for.
    #[error("the server sent other bytes than asked for (Content-Range: `{said}`)")]
    OtherBytes {
        /// What it says about its bytes.
        said: String,
    },
    /// The file is not the one that was opened.
    #[error("the file was replaced while it was read")]
    Changed,
    /// A server that sends whole files only, and a file that is too large for that.
    #[error("the server sends whole files only, and this one has more than {limit} bytes")]
    NoRanges {
        /// The most that is held in memory.
        limit: u64,
    },
    /// A whole file whose end is where the connection ends: nobody could tell if it was cut.
    #[error("the server sends whole files only, and does not say how long this one is")]
    NoLength,
    /// There is something at the address already.
    #[error("exists already")]
    Exists,
    /// A place that takes no files.
    #[error("files cannot be written over HTTP")]
    NotWritable,
    /// The object is not what was sent.
    #[error("the object was written, but has {found} bytes instead of {expected}")]
    OtherLength {
        /// The bytes that the store says it has.
        found: u64,
        /// The bytes that were sent.
        expected: u64,
    },
    /// The library of the stores refused.
    #[error("{detail}")]
    Library {
        /// Its words, without addresses.
        detail: String,
    },
}

impl RemoteError {
    /// The remote error in the error of a source.
    pub fn from_source(error: &SourceError) -> Option<&Self> {
        let SourceError::Remote { error, .. } = error else { return None };
        let error: &(dyn std::error::Error + 'static) = &**error;
        error.downcast_ref()
    }

    /// Whether the same request may succeed a moment later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Status { status } => *status >= 500 || matches!(status, 408 | 429),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Interrupted { .. }
            | Self::Short { .. } => true,
            _ => false,
        }
    }

    /// The error of a status that is no success.
    pub(super) fn of_status(status: u16) -> Self {
        match status {
            404 | 410 => Self::NotFound,
            401 | 403 | 407 => Self::Denied { status },
            412 => Self::Changed,
            status => Self::Status { status },
        }
    }
}

impl Diagnose for RemoteError {
    fn class(&self) -> Class {
        match self {
            Self::Address { .. } | Self::Exists | Self::NotWritable => Class::Request,
            Self::NoRanges { .. } => Class::Limit,
            _ => Class::Io,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::Denied { .. } => {
                "credentials of S3, Google Cloud Storage and Azure are taken from `AWS_…`, `GOOGLE_…` and `AZURE_…` variables, those of web servers from the address: `https://user:password@…`"
            }
            Self::Redirected { .. } => "give the address of that place, if it is to be trusted",
            Self::Changed => return Some(Hint::Retry),
            Self::Exists => return Some(Hint::Overwrite),
            Self::NoRanges { .. } | Self::NoLength => "download the file, and read it from disk",
            Self::NotWritable => "write to a file, or to `s3://`, `gs://` or `az://`",
            _ => return None,
        };
        Some(hint.into())
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound)
    }
}

/// The innermost cause of an error of a library, with everything taken out that looks like an address.
///
/// Libraries put the address they were asked for, with its query, into their messages; the innermost cause is what the
/// system said.
pub(super) fn cause_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    without_addresses(&innermost.to_string())
}

/// Text without addresses, on one line and of a bearable length.
pub(super) fn without_addresses(text: &str) -> String {
    const MOST: usize = 200;
    let words = text.split_whitespace().map(|word| if word.contains("://") { "…" } else { word });
    let mut kept = String::new();
    for word in words {
        if kept.len() + word.len() > MOST {
            kept.push('…');
            break;
        }
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_leave_no_trace() {
        let text = "error for url\n(https://a:b@host/c?d=secret) \"http://x\" after 3 s";
        assert_eq!(without_addresses(text), "error for url … … after 3 s");
        assert!(without_addresses(&"x".repeat(1000)).len() < 210);
        assert!(without_addresses(&"x ".repeat(1000)).len() < 210);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for status in [500, 503, 408, 429] {
            assert!(RemoteError::of_status(status).is_passing(), "{status}");
        }
        for status in [400, 401, 403, 404, 410, 412, 416] {
            assert!(!RemoteError::of_status(status).is_passing(), "{status}");
        }
        assert!(!RemoteError::Long { expected: 1 }.is_passing());
    }
}
