//! `MSG.OBJ`: which object is meant.

use tercet::core::escape;
use tercet::tgm::{Message, Object};

use crate::failure::Failure;

/// Which object is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) message: u64,
    object: Option<u64>,
}

/// Reads `3` or `3.1`.
pub(super) fn place(text: &str) -> Result<Place, String> {
    let number = |part: &str| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| digits).ok_or_else(|| {
            format!(
                "`{part}` is not a number; write a message like `3`, or a message and an object like `3.1`"
            )
        })
    };
    let (message, object) =
        text.split_once('.').map_or((text, None), |(message, object)| (message, Some(object)));
    Ok(Place { message: number(message)?, object: object.map(number).transpose()? })
}

impl Place {
    /// The first message; its object must be the only one.
    pub(super) const FIRST: Self = Self { message: 0, object: None };

    /// The number of the object in its message.
    pub(super) fn object_of(self, message: &Message) -> Result<u64, Failure> {
        match (self.object, message.object_count()) {
            (Some(object), _) => Ok(object),
            (None, 1) => Ok(0),
            (None, count) => {
                let (name, number) = (message.name(), self.message);
                if count == 0 {
                    return Err(Failure::request(format!("{name}: message {number} holds no object")));
                }
                let said = format!("{name}: message {number} holds {count} objects");
                Err(Failure::request(said)
                    .with_hint(format!("say which: `{number}.0` to `{number}.{}`", count - 1)))
            }
        }
    }
}

/// The name of an object, if its metadata has one.
pub(super) fn name_of<'a>(message: &'a Message, object: &Object<'_>) -> Option<&'a str> {
    let index = usize::try_from(object.index()).ok()?;
    message.metadata().base.get(index)?.get("name")?.as_text()
}

/// The numbers of an object, and its name if it has one.
pub(super) fn told(message: &Message, object: &Object<'_>) -> String {
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
    fn places_are_numbers() {
        assert_eq!(place("3"), Ok(Place { message: 3, object: None }));
        assert_eq!(place("0.12"), Ok(Place { message: 0, object: Some(12) }));
        for text in ["", ".", "3.", ".1", "+3", "-1", "1.2.3", "a", "3,1", "18446744073709551616"] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
