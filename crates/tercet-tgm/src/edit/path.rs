//! Which values are set, and which cannot be.

use super::error::EditError;
use crate::index::MARK;
use crate::metadata::{EXTRA, RESERVED};
use crate::pipeline::is_pipeline_parameter;
use crate::value::Value;

/// Deeper keys are a mistake, and readers have a limit too.
const MAX_DEPTH: usize = 32;

/// Last parts of paths that cannot be set, whatever they are in: they are the names of what describes stored bytes.
const IMMUTABLE: [&str; 18] = [
    "shape",
    "strides",
    "dtype",
    "ndim",
    "type",
    "encoding",
    "filter",
    "compression",
    "hash",
    "szip_rsi",
    "szip_block_size",
    "szip_flags",
    "szip_block_offsets",
    "sp_reference_value",
    "sp_binary_scale_factor",
    "sp_decimal_scale_factor",
    "sp_bits_per_value",
    "shuffle_element_size",
];

/// Further keys of a descriptor that are no parameters of the user.
const FIELDS: [&str; 2] = ["byte_order", "masks"];

/// Where a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// In every entry of `base`; in `_extra_` of a message without objects.
    Base,
    /// In `_extra_`.
    Extra,
    /// Among the parameters of the descriptor of one object.
    Object(u64),
}

/// A value that is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub(super) path: String,
    pub(super) target: Target,
    /// The keys from the outermost to the innermost. There is one at least.
    pub(super) keys: Vec<String>,
    pub(super) value: Value,
}

impl Change {
    /// Sets the value at a path: `objects.2.quality` is a parameter of object 2, `extra.centre` a key of `_extra_`, and
    /// `mars.step` one of every object.
    pub fn new(path: &str, value: impl Into<Value>) -> Result<Self, EditError> {
        let wrong = |reason| EditError::Path { path: path.to_owned(), reason };
        let immutable = |key: &str| EditError::Immutable { path: path.to_owned(), key: key.to_owned() };
        let parts: Vec<&str> = path.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(wrong("a key, or a part of it between dots, is empty"));
        }
        if parts.len() > MAX_DEPTH {
            return Err(wrong("has more than 32 parts"));
        }
        let (target, keys) = match parts.as_slice() {
            ["objects", number, keys @ ..] => {
                let digits = number.bytes().all(|byte| byte.is_ascii_digit());
                let number = number.parse().ok().filter(|_| digits);
                let number =
                    number.ok_or_else(|| wrong("expected the number of an object, like `objects.0.key`"))?;
                (Target::Object(number), keys)
            }
            ["objects"] => (Target::Object(0), &[][..]),
            ["extra" | EXTRA, keys @ ..] => (Target::Extra, keys),
            ["base", ..] => {
                return Err(wrong(
                    "`base` is a section of the message; leave it out to set a key of every object",
                ));
            }
            keys => (Target::Base, keys),
        };
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
            return Err(wrong("names a section of the message, not a key in it"));
        };
        if *first == RESERVED {
            return Err(wrong("`_reserved_` belongs to the library"));
        }
        if *first == MARK {
            return Err(wrong("`tercet_catalogue` makes a message an index of others"));
        }
        if IMMUTABLE.contains(last) {
            return Err(immutable(last));
        }
        let describes =
            |key: &str| IMMUTABLE.contains(&key) || FIELDS.contains(&key) || is_pipeline_parameter(key);
        if matches!(target, Target::Object(_)) && describes(first) {
            return Err(immutable(first));
        }
        let keys = keys.iter().map(|&key| key.to_owned()).collect();
        Ok(Self { path: path.to_owned(), target, keys, value: value.into() })
    }

    /// Whether both set the same value, or one of them a value in that of the other.
    fn meets(&self, other: &Self) -> bool {
        self.target == other.target && self.keys.iter().zip(&other.keys).all(|(a, b)| a == b)
    }
}

/// Values that are set together. No two of them meet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes(pub(super) Vec<Change>);

impl Changes {
    /// Checks that every value is set once.
    pub fn new(changes: Vec<Change>) -> Result<Self, EditError> {
        for (at, second) in changes.iter().enumerate() {
            if let Some(first) = changes[..at].iter().find(|first| first.meets(second)) {
                let (first, second) = (first.path.clone(), second.path.clone());
                return Err(EditError::Twice { first, second });
            }
        }
        Ok(Self(changes))
    }
}
