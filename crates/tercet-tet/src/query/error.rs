//! [`QueryError`]: the error of a query and its position in the document.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use tercet_core::{Class, Diagnostic, Hint, escape};

use crate::error::ErrorKind;

/// The error of a query document.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryError(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    reason: QueryErrorKind,
    /// The path of the key, such as `selection[0].step`; empty for the document.
    key: String,
    at: Range<usize>,
    line: usize,
    column: usize,
}

/// The kind of a [`QueryError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum QueryErrorKind {
    TooLong {
        found: usize,
        allowed: usize,
    },
    TooDeep {
        allowed: usize,
    },
    Syntax {
        detail: String,
    },
    UnknownKey {
        key: String,
        nearest: Option<String>,
    },
    MissingKey {
        key: String,
    },
    DuplicateKey {
        key: String,
    },
    WrongType {
        found: String,
        expected: String,
    },
    Null,
    NotFound {
        /// The start of the message, such as `no dataset`.
        what: Cow<'static, str>,
        name: String,
        /// The nearest known name, or the first known ones.
        available: String,
        is_nearest: bool,
    },
    Invalid {
        detail: String,
    },
    /// Not allowed, with the alternative.
    Refused {
        detail: String,
        hint: String,
    },
}

/// Characters of the document that a message quotes.
const EXCERPT_CHARS: usize = 64;
/// Names that a hint lists.
const LISTED: usize = 8;
/// The minimum number of characters of an abbreviation.
const ABBREVIATION_CHARS: usize = 3;
/// Names compared with an unknown one.
const COMPARED: usize = 10_000;

/// A string of the document for a message, shortened to one line.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The known name that is most similar to an unknown one, if any is.
pub(crate) fn closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    // Of a name of one character, every other one is as similar.
    let known = known.into_iter().take(COMPARED).filter(|other| name.chars().any(|c| other.contains(c)));
    nearest(name, known).map(|near| excerpt(&near))
}

impl QueryErrorKind {
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::Invalid { detail: detail.into() }
    }

    pub(crate) fn refused(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { detail: detail.into(), hint: hint.into() }
    }

    /// An unknown name; `known` lists the known ones.
    pub(crate) fn not_found<'k>(
        what: impl Into<Cow<'static, str>>,
        name: &str,
        known: impl IntoIterator<Item = &'k str, IntoIter: Clone>,
    ) -> Self {
        let known = known.into_iter();
        let near = nearest(name, known.clone().take(COMPARED));
        let is_nearest = near.is_some();
        let available = near.map_or_else(
            || {
                let mut names: Vec<String> = known.clone().take(LISTED).map(excerpt).collect();
                if known.clone().nth(LISTED).is_some() {
                    names.push("…".to_owned());
                }
                names.join(", ")
            },
            |near| excerpt(&near),
        );
        Self::NotFound { what: what.into(), name: excerpt(name), available, is_nearest }
    }
}

impl QueryError {
    pub(crate) fn new(reason: QueryErrorKind, key: String, at: Range<usize>, text: &str) -> Self {
        let before = text.get(..at.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        Self(Box::new(Inner { reason, key, at, line, column }))
    }

    /// The kind of the error.
    pub fn reason(&self) -> &QueryErrorKind {
        &self.0.reason
    }

    /// The path of the key, such as `selection[0].step`; empty for the document.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The byte range in the document.
    pub fn at(&self) -> Range<usize> {
        self.0.at.clone()
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.0.column
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { reason, key, line, column, .. } = &*self.0;
        write!(f, "query")?;
        if !key.is_empty() {
            write!(f, " › {}", escape::name(key))?;
        }
        write!(f, " (line {line}, column {column}): {reason}")
    }
}

impl fmt::Display for QueryErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { found, allowed } => write!(f, "has {found} bytes, at most {allowed} are allowed"),
            Self::TooDeep { allowed } => write!(f, "is nested deeper than {allowed} levels"),
            Self::Syntax { detail } => write!(f, "does not parse: {}", escape::name(detail)),
            Self::UnknownKey { key, .. } => write!(f, "unknown key `{}`", escape::name(key)),
            Self::DuplicateKey { key } => write!(f, "duplicate key `{}`", escape::name(key)),
            Self::MissingKey { key } => write!(f, "needs the key `{key}`"),
            Self::WrongType { found, expected } => {
                write!(f, "is {}, but must be {expected}", escape::name(found))
            }
            Self::Null => write!(f, "must not be null"),
            Self::NotFound { what, name, .. } => write!(f, "{what} `{}`", escape::name(name)),
            Self::Invalid { detail } | Self::Refused { detail, .. } => f.write_str(&escape::name(detail)),
        }
    }
}

impl std::error::Error for QueryError {}

impl Diagnostic for QueryError {
    fn class(&self) -> Class {
        Class::Request
    }

    fn hint(&self) -> Option<Hint> {
        match self.reason() {
            QueryErrorKind::UnknownKey { .. } if self.key() == "operation" => {
                Some("an operation is a key of its own: `\"mean\": []`".into())
            }
            QueryErrorKind::UnknownKey { .. } if self.key() == "output" => {
                Some("use `spill` for a selection, `write` for the result of a transform".into())
            }
            QueryErrorKind::UnknownKey { nearest: Some(nearest), .. } => {
                Some(Hint::DidYouMean(nearest.as_str().into()))
            }
            QueryErrorKind::NotFound { available, is_nearest, .. } if !available.is_empty() => {
                let names = escape::name(available).into();
                Some(if *is_nearest {
                    Hint::DidYouMean(names)
                } else {
                    Hint::Available { what: "available", names }
                })
            }
            QueryErrorKind::Refused { hint, .. } => Some(hint.clone().into()),
            _ => None,
        }
    }
}

/// The known name nearest to an unknown one, or the only one that it abbreviates; `None` if none is near.
pub(crate) fn nearest<'w>(name: &str, known: impl IntoIterator<Item = &'w str>) -> Option<String> {
    let length = name.chars().count();
    // Quadratic in the length; names are short.
    if length > EXCERPT_CHARS {
        return None;
    }
    let most = (length / 3).max(1);
    // `lat` is short for `latitude`, if it is short for nothing else.
    let mut abbreviated = Vec::new();
    let mut best: Option<(usize, &str)> = None;
    for other in known {
        if length >= ABBREVIATION_CHARS && other.len() > name.len() && other.starts_with(name) {
            abbreviated.push(other);
        }
        if other.chars().count().abs_diff(length) <= most {
            let found = (distance(name, other), other);
            best = if found.0 <= most && best.is_none_or(|best| found < best) { Some(found) } else { best };
        }
    }
    match (best, &abbreviated[..]) {
        (Some((_, name)), _) => Some(name.to_owned()),
        (None, [name]) => Some((*name).to_owned()),
        _ => None,
    }
}

/// The Damerau-Levenshtein distance: insertions, deletions, substitutions and transpositions.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

impl From<QueryError> for ErrorKind {
    fn from(error: QueryError) -> Self {
        Self::Query(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let known = ["mean", "median", "selection", "dataset"];
        assert_eq!(nearest("maen", known), Some("mean".to_owned()));
        assert_eq!(nearest("datasett", known), Some("dataset".to_owned()));
        assert_eq!(nearest("selction", known), Some("selection".to_owned()));
        assert_eq!(nearest("fancy", known), None);
        assert_eq!(nearest("lat", ["longitude", "latitude"]), Some("latitude".to_owned()));
        assert_eq!(nearest("lat", ["latitude", "lateral"]), None);
        assert_eq!(nearest("la", ["longitude", "latitude"]), None);
    }

    #[test]
    fn positions_are_lines_and_columns() {
        let text = "{\n  \"é\": 1,\n  \"x\": 2\n}";
        let at = text.find("\"x\"").unwrap();
        let error = QueryError::new(QueryErrorKind::Null, "x".to_owned(), at..at + 3, text);
        assert_eq!((error.line(), error.column()), (3, 3));
        assert_eq!(error.to_string(), "query › x (line 3, column 3): must not be null");
    }
}
