//! Which objects are extracted.

use std::fmt;

use tercet::core::escape;
use tercet::tgm::{File, Message};

use crate::cmd::tgm::open::for_each_message;
use crate::cmd::tgm::select::{Filter, Row, printed};
use crate::failure::Failure;

/// An object of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `MSG` or `MSG.OBJ`; negative numbers count from the end.
    Number {
        message: i64,
        object: Option<i64>,
    },
    Name(String),
}

impl Target {
    /// The number of the message, unless it counts from the end.
    pub(super) fn message(&self) -> Option<u64> {
        match self {
            Self::Number { message, .. } => u64::try_from(*message).ok(),
            Self::Name(_) => None,
        }
    }
}

/// The number of an object in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectNumber {
    pub(super) message: u64,
    pub(super) object: u64,
}

impl fmt::Display for ObjectNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.message, self.object)
    }
}

/// Parses `3`, `3.1`, `-1`, `-1.-2` or a name.
pub(super) fn parse(text: &str) -> Result<Target, String> {
    let number = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_number)
    };
    let (message, object) =
        text.split_once('.').map_or((text, None), |(message, object)| (message, Some(object)));
    match (number(message), object.map(number)) {
        (Some(message), None) => Ok(Target::Number { message, object: None }),
        (Some(message), Some(Some(object))) => Ok(Target::Number { message, object: Some(object) }),
        _ if text.is_empty() => Err("expected MSG, MSG.OBJ or a name".to_owned()),
        // A misspelt number is not a name.
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b".,+-".contains(&byte)) => {
            Err(format!("invalid number `{text}`; expected MSG or MSG.OBJ, like `3`, `3.1` or `-1`"))
        }
        _ => Ok(Target::Name(text.to_owned())),
    }
}

/// The objects that are selected, and the number of messages that match the filter. Numbers are restricted by the filter.
pub(super) fn find(
    target: Option<&Target>,
    filter: &Filter,
    file: &File,
) -> Result<(Vec<ObjectNumber>, u64), Failure> {
    if let Some(target @ Target::Number { message, object }) = target {
        let number = if let Some(number) = target.message() {
            // The messages after it need not be found.
            number
        } else {
            let count = file.message_count()?;
            from_end(*message, count).ok_or_else(|| {
                let name = escape::name(file.name());
                Failure::request(format!("{name}: has no message {message}: it holds {count}"))
            })?
        };
        let message = file.message(number)?;
        let object = object_of(*object, &message)?;
        let taken = filter.takes(&message)?.unwrap_or_default();
        let is_taken = taken.contains(&object) || !filter.is_active();
        let found = is_taken.then_some(ObjectNumber { message: message.number(), object });
        let is_matched = !taken.is_empty() || !filter.is_active();
        return Ok((found.into_iter().collect(), u64::from(is_matched)));
    }
    let mut found = Vec::new();
    let matched = for_each_message(file, filter, &mut { u64::MAX }, |message, objects| {
        for &object in objects {
            let is_named = match target {
                Some(Target::Name(name)) => {
                    let objects = [object];
                    let row = Row::new(message.metadata(), Some(message), &objects);
                    row.value("name")?.is_some_and(|found| printed(&found) == *name)
                }
                _ => true,
            };
            if is_named {
                found.push(ObjectNumber { message: message.number(), object });
            }
        }
        Ok(())
    })?;
    Ok((found, matched))
}

/// A number that may count from the end; `None` before the first.
fn from_end(number: i64, count: u64) -> Option<u64> {
    match u64::try_from(number) {
        Ok(number) => Some(number),
        Err(_) => count.checked_sub(number.unsigned_abs()),
    }
}

/// The number of the object in its message.
fn object_of(object: Option<i64>, message: &Message) -> Result<u64, Failure> {
    let (name, number, count) = (escape::name(message.name()), message.number(), message.object_count());
    match (object, count) {
        (Some(object), _) => match from_end(object, count) {
            // The library reports a number that is too large.
            Some(object) => message.object(object).map(|_| object).map_err(Failure::from),
            None => Err(Failure::request(format!(
                "{name}: message {number} has no object {object}: it holds {count}"
            ))),
        },
        (None, 1) => Ok(0),
        (None, 0) => Err(Failure::request(format!("{name}: message {number} has no objects"))),
        (None, count) => {
            let message = format!("{name}: message {number} has {count} objects");
            Err(Failure::request(message)
                .with_hint(format!("select one: `{number}.0` to `{number}.{}`, or by its name", count - 1)))
        }
    }
}

/// The error of a selection without objects.
pub(super) fn nothing(target: Option<&Target>, file: &File) -> Failure {
    let file = escape::name(file.name());
    match target {
        Some(Target::Name(name)) => {
            let failure = Failure::request(format!("{file}: no object is named `{}`", escape::name(name)));
            failure.with_hint("`tgm ls` lists all names")
        }
        Some(Target::Number { .. }) => {
            Failure::request(format!("{file}: the object does not match the filter"))
        }
        None => Failure::request(format!("{file}: has no objects")),
    }
}

/// Opens a message that was selected.
pub(super) fn open(file: &File, number: u64) -> Result<Message, Failure> {
    // It was found by its keys, or its number was checked.
    let file = file.clone().with_options(file.options().with_allow_gaps(true));
    Ok(file.message(number)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_numbers_or_names() {
        assert_eq!(parse("3"), Ok(Target::Number { message: 3, object: None }));
        assert_eq!(parse("0.12"), Ok(Target::Number { message: 0, object: Some(12) }));
        assert_eq!(parse("-1.-2"), Ok(Target::Number { message: -1, object: Some(-2) }));
        assert_eq!(parse("t2m"), Ok(Target::Name("t2m".to_owned())));
        assert_eq!(parse("2t"), Ok(Target::Name("2t".to_owned())));
        for text in ["", ".", "3.", ".1", "+3", "1.2.3", "3,1", "18446744073709551616"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
