//! [`Failure`]: an error of a request, with its status.

use std::ops::Range;

use axum::http::StatusCode;
use serde::Serialize;
use tercet::core::{Class, Diagnostic};

/// An error of a request.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) at: Option<At>,
}

/// The part of a parameter that an error is about, in UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct At {
    parameter: &'static str,
    start: usize,
    end: usize,
}

/// The body of an error.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody<'a> {
    /// The error, as a sentence.
    error: &'a str,
    /// Its kind.
    code: &'a str,
    /// What to do about it.
    hint: Option<&'a str>,
    /// The part of the parameter that it is about.
    at: Option<&'a At>,
    /// The ID of the request, as in the log.
    request_id: &'a str,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: None, at: None }
    }

    /// An invalid request.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The file is of another format than the endpoint.
    pub(crate) fn wrong_format(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "wrong_format", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// Too many requests at a time.
    pub(crate) fn overloaded() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "server at capacity, retry shortly")
    }

    pub(crate) fn shutting_down() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "the server is shutting down")
    }

    pub(crate) fn deadline() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "deadline", "query exceeded the deadline")
    }

    /// The client closed the request; no one reads this.
    pub(crate) fn cancelled() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "cancelled", "client closed the request")
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the bytes of a parameter that the error is about.
    pub(crate) fn with_at(mut self, parameter: &'static str, text: &str, bytes: &Range<usize>) -> Self {
        let units = |end: usize| text.get(..end).unwrap_or(text).encode_utf16().count();
        self.at = Some(At { parameter, start: units(bytes.start), end: units(bytes.end) });
        self
    }

    /// An error of a library.
    pub(crate) fn from_error(error: &dyn Diagnostic) -> Self {
        let (status, code) = if error.is_cancelled() {
            (StatusCode::GATEWAY_TIMEOUT, "deadline")
        } else if error.is_not_found() {
            (StatusCode::NOT_FOUND, "not_found")
        } else {
            match error.class() {
                Class::Io => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
                Class::Malformed | Class::Corrupt => (StatusCode::UNPROCESSABLE_ENTITY, "corrupt"),
                Class::Limit => (StatusCode::UNPROCESSABLE_ENTITY, "limit"),
                Class::Unsupported => (StatusCode::UNPROCESSABLE_ENTITY, "unsupported"),
                Class::Request => (StatusCode::BAD_REQUEST, "invalid_request"),
            }
        };
        if error.is_cancelled() {
            return Self::deadline();
        }
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = error.source();
        }
        let hint = error.hint().map(|hint| hint.to_string());
        Self { status, code, message, hint, at: None }
    }

    /// The body, without the path of the served directory.
    pub(crate) fn body(&self, request_id: &str) -> Vec<u8> {
        let body = ErrorBody {
            error: &self.message,
            code: self.code,
            hint: self.hint.as_deref(),
            at: self.at.as_ref(),
            request_id,
        };
        crate::reply::json(&body)
    }
}

macro_rules! from_library {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::from_error(&error)
            }
        }
    )*};
}

from_library!(tercet::Error, tercet::tet::Error, tercet::tgm::Error, tercet::tatami::Error);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_javascript_counts() {
        let failure = Failure::request("x").with_at("where", "é𝄞 = 1", &(2..6));
        assert_eq!(failure.at, Some(At { parameter: "where", start: 1, end: 3 }));
        let body = String::from_utf8(failure.body("id")).unwrap();
        assert_eq!(
            body,
            "{\"error\":\"x\",\"code\":\"invalid_request\",\"hint\":null,\
             \"at\":{\"parameter\":\"where\",\"start\":1,\"end\":3},\"request_id\":\"id\"}\n"
        );
    }
}
