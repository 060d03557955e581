//! Row filters: `--where`.

use std::ops::Range;

use tercet::core::Class;
use tercet::tatami::predicate::{BindError, ParsedFilter, Predicate};
use tercet::tatami::{Expr, File, LogicalType, Schema};

use crate::failure::Failure;

/// The text of a filter.
#[derive(Clone, Debug)]
pub(crate) struct FilterText {
    text: String,
}

impl std::str::FromStr for FilterText {
    type Err = std::convert::Infallible;

    // The verb reports errors, with an excerpt.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self { text: text.to_owned() })
    }
}

/// The row filter of a verb.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Where {
    /// Filter rows: `status = 200 and url like "https://a%"`
    #[arg(short = 'w', long = "where", value_name = "FILTER")]
    filter: Option<FilterText>,
}

impl Where {
    /// The filter, if given, bound to the columns of a file.
    pub(crate) fn bind_to(&self, file: &File) -> Result<Option<Expr>, Failure> {
        self.filter.as_ref().map(|filter| filter.bind_to(file)).transpose()
    }

    /// The text of the filter, if given.
    pub(super) fn text(&self) -> Option<&FilterText> {
        self.filter.as_ref()
    }
}

impl FilterText {
    /// The filter as given.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The filter, bound to the columns of a file.
    pub(super) fn bind_to(&self, file: &File) -> Result<Expr, Failure> {
        let parsed = self.parsed()?;
        self.bound(&parsed, file.name(), file.schema(), &file.logical_types())?;
        Ok(parsed.expr().clone())
    }

    /// Parses the filter.
    pub(super) fn parsed(&self) -> Result<ParsedFilter, Failure> {
        let text = &self.text;
        ParsedFilter::new(text).map_err(|error| {
            let end = text[error.at.min(text.len())..].chars().next().map_or(1, char::len_utf8);
            Failure::request(error.to_string()).with_excerpt_to_end(text, &(error.at..error.at + end))
        })
    }

    /// The filter, bound to typed columns.
    pub(super) fn bound(
        &self,
        parsed: &ParsedFilter,
        name: &str,
        schema: &Schema,
        logical_types: &[Option<LogicalType>],
    ) -> Result<Predicate, Failure> {
        let bound = parsed.bind(schema, logical_types);
        bound.map_err(|(error, span)| bind_failure(name, &self.text, &error, &span))
    }
}

pub(super) fn bind_failure(name: &str, text: &str, error: &BindError, span: &Range<usize>) -> Failure {
    let name = tercet::core::escape::name(name);
    let failure = Failure::new(Class::Request, format!("{name}: {error}")).with_excerpt(text, span);
    match error {
        BindError::NoSuchColumn { nearest: Some(name), .. } => {
            failure.with_hint(format!("did you mean `{}`?", tercet::core::escape::name(name)))
        }
        BindError::NoSuchColumn { column, as_value: true, .. } => {
            failure.with_hint(format!("quote strings: {column:?}"))
        }
        BindError::NoSuchColumn { available, .. } => failure.with_hint(format!("columns: {available}")),
        _ => failure,
    }
}
