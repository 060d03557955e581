//! Changes of metadata values: paths, targets and immutable keys.

use super::error::EditError;
use crate::index::MARK;
use crate::metadata::{EXTRA, RESERVED};
use crate::pipeline::is_pipeline_parameter;
use crate::value::Value;

/// The maximum depth of a path; readers have a limit too.
const MAX_DEPTH: usize = 32;

/// Names that cannot be the last part of a path: keys that describe stored bytes.
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

/// Other keys of a descriptor that are not parameters of the user.
const FIELDS: [&str; 2] = ["byte_order", "masks"];

/// The section in which a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Every entry of `base`; `_extra_` in a message without objects.
    Base,
    /// `_extra_`.
    Extra,
    /// The parameters in the descriptor of one object.
    Object(u64),
}

/// A change of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub(super) path: String,
    pub(super) target: Target,
    /// The keys from the outermost to the innermost; at least one.
    pub(super) keys: Vec<String>,
    pub(super) value: Value,
}

impl Change {
    /// Sets the value at a path: `objects.2.quality` is a parameter of object 2, `extra.centre` a key of `_extra_`,
    /// `mars.step` a key of every object.
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
                    "`base` is a section of the message; omit it to set a key of every object",
                ));
            }
            keys => (Target::Base, keys),
        };
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
            return Err(wrong("names a section of the message, not a key in it"));
        };
        if *first == RESERVED {
            return Err(wrong("`_reserved_` is reserved for the library"));
        }
        if *first == MARK {
            return Err(wrong("`tercet_catalogue` is the mark of an index"));
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

    /// Whether both set the same value, or one of them a value inside that of the other.
    fn meets(&self, other: &Self) -> bool {
        self.target == other.target && self.keys.iter().zip(&other.keys).all(|(a, b)| a == b)
    }
}

/// A set of changes, none of which overlap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes(pub(super) Vec<Change>);

impl Changes {
    /// Checks that no value is set twice.
    pub fn new(changes: Vec<Change>) -> Result<Self, EditError> {
        for (at, second) in changes.iter().enumerate() {
            if let Some(first) = changes[..at].iter().find(|first| first.meets(second)) {
                let (first, second) = (first.path.clone(), second.path.clone());
                return Err(EditError::Overlap { first, second });
            }
        }
        Ok(Self(changes))
    }
}
