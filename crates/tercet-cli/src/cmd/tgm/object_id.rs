//! `MSG[.OBJ]`: the ID of an object.

use tercet::core::escape;
use tercet::tgm::{Message, Object};

use crate::failure::Failure;

/// A message number and an optional object number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectId {
    pub(super) message: u64,
    object: Option<u64>,
}

/// Parses `3` or `3.1`.
pub(super) fn parse_object_id(text: &str) -> Result<ObjectId, String> {
    let number = |part: &str| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| format!("invalid number `{part}`; expected MSG or MSG.OBJ, like `3` or `3.1`"))
    };
    let (message, object) =
        text.split_once('.').map_or((text, None), |(message, object)| (message, Some(object)));
    Ok(ObjectId { message: number(message)?, object: object.map(number).transpose()? })
}

impl ObjectId {
    /// The only object of the first message.
    pub(super) const FIRST: Self = Self { message: 0, object: None };

    /// The number of the object in its message.
    pub(super) fn object_of(self, message: &Message) -> Result<u64, Failure> {
        match (self.object, message.object_count()) {
            (Some(object), _) => Ok(object),
            (None, 1) => Ok(0),
            (None, count) => {
                let (name, number) = (message.name(), self.message);
                if count == 0 {
                    return Err(Failure::request(format!("{name}: message {number} has no objects")));
                }
                let message = format!("{name}: message {number} has {count} objects");
                Err(Failure::request(message)
                    .with_hint(format!("select one: `{number}.0` to `{number}.{}`", count - 1)))
            }
        }
    }
}

/// The `name` in the metadata of an object.
pub(super) fn name_of<'a>(message: &'a Message, object: &Object<'_>) -> Option<&'a str> {
    let index = usize::try_from(object.index()).ok()?;
    message.metadata().base.get(index)?.get("name")?.as_text()
}

/// Message, object and name, for messages.
pub(super) fn describe(message: &Message, object: &Object<'_>) -> String {
    let (number, index) = (message.number(), object.index());
    match name_of(message, object) {
        Some(name) => format!("message {number}, object {index} (`{}`)", escape::name(name)),
        None => format!("message {number}, object {index}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_ids_are_numbers() {
        assert_eq!(parse_object_id("3"), Ok(ObjectId { message: 3, object: None }));
        assert_eq!(parse_object_id("0.12"), Ok(ObjectId { message: 0, object: Some(12) }));
        for text in ["", ".", "3.", ".1", "+3", "-1", "1.2.3", "a", "3,1", "18446744073709551616"] {
            assert!(parse_object_id(text).is_err(), "{text}");
        }
    }
}
