//! Which rows are meant.

use std::ops::Range;

use tercet::core::Class;
use tercet::tatami::predicate::{BindError, Parsed};
use tercet::tatami::{Expr, File, Schema};

use crate::failure::Failure;

/// A condition on rows as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    text: String,
}

impl std::str::FromStr for Condition {
    type Err = std::convert::Infallible;

    // What is wrong with it is told by the verb, with a mark at the character.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self { text: text.to_owned() })
    }
}

/// The rows that a verb takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Where {
    /// Take only rows for which this is true: `status = 200 and url prefix "https://a"`
    #[arg(short = 'w', long = "where", value_name = "CONDITION")]
    condition: Option<Condition>,
}

impl Where {
    /// The condition, if there is one, checked against the columns of a file.
    pub(super) fn of(&self, file: &File) -> Result<Option<Expr>, Failure> {
        self.condition.as_ref().map(|condition| condition.of(file.name(), file.schema())).transpose()
    }

    /// Whether a condition was given.
    pub(super) fn is_some(&self) -> bool {
        self.condition.is_some()
    }
}

impl Condition {
    /// The condition, checked against the columns of a file.
    pub(super) fn of(&self, name: &str, schema: &Schema) -> Result<Expr, Failure> {
        let text = &self.text;
        let parsed = Parsed::new(text).map_err(|error| {
            let end = text[error.at.min(text.len())..].chars().next().map_or(1, char::len_utf8);
            let failure = Failure::request(error.to_string());
            // At the end of the text the mark stands behind it.
            let shown = if error.at >= text.len() { format!("{text} ") } else { text.clone() };
            failure.with_excerpt(&shown, &(error.at..error.at + end))
        })?;
        match parsed.bind(schema) {
            Ok(_) => Ok(parsed.expr().clone()),
            Err((error, place)) => Err(misfit(name, text, &error, &place)),
        }
    }
}

fn misfit(name: &str, text: &str, error: &BindError, place: &Range<usize>) -> Failure {
    let name = tercet::core::escape::name(name);
    let failure = Failure::new(Class::Request, format!("{name}: {error}")).with_excerpt(text, place);
    match error {
        BindError::NoSuchColumn { available, .. } => failure.with_hint(format!("columns: {available}")),
        _ => failure,
    }
}
