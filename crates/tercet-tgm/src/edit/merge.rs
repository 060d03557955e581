//! Merging of messages.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::builder::MessageBuilder;
use super::error::{EditError, Origin};
use super::raw_object::RawObject;
use super::{error, raw};
use crate::cbor;
use crate::encode::EncodeOptions;
use crate::error::{Error, ErrorKind};
use crate::message::Message;
use crate::metadata::GlobalMetadata;

/// The conflict resolution for keys of `_extra_`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Keep the value of the first message.
    #[default]
    First,
    /// Keep the value of the last message.
    Last,
    /// Fail if values differ.
    Error,
}

impl Strategy {
    /// All strategies, in the order of the help.
    pub const ALL: [Self; 3] = [Self::First, Self::Last, Self::Error];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Error => "error",
        }
    }
}

impl FromStr for Strategy {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or("expected first, last or error")
    }
}

/// Merges messages: objects and entries of `base` are concatenated, `_extra_` is merged key by key.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    strategy: Strategy,
    metadata: GlobalMetadata,
    objects: Vec<RawObject>,
    /// The origin of each key of `_extra_`.
    origins: BTreeMap<String, Origin>,
}

impl Merge {
    /// An empty merge.
    pub fn new(strategy: Strategy) -> Self {
        Self { strategy, ..Self::default() }
    }

    /// Adds a message; all its objects are verified. An index, which describes another file, is skipped.
    pub fn add(&mut self, message: &Message) -> Result<(), Error> {
        if message.metadata().is_message_index() {
            return Ok(());
        }
        let metadata = message.metadata().without_reserved();
        let origin = Origin { file: message.name().clone(), message: message.number() };
        for (key, value) in metadata.extra {
            let Some(there) = self.metadata.extra.get(&key) else {
                self.origins.insert(key.clone(), origin.clone());
                self.metadata.extra.insert(key, value);
                continue;
            };
            match self.strategy {
                Strategy::First => {}
                Strategy::Last => {
                    self.origins.insert(key.clone(), origin.clone());
                    self.metadata.extra.insert(key, value);
                }
                // Compared in encoded form: the order of map keys is irrelevant, and NaN equals NaN.
                Strategy::Error if cbor::encode(there) == cbor::encode(&value) => {}
                Strategy::Error => {
                    let first = self.origins.get(&key).unwrap_or(&origin).clone();
                    let (first_value, second_value) = (there.printed(), value.printed());
                    let conflict =
                        EditError::Conflict { key, first, first_value, second: origin, second_value };
                    return Err(error(message, ErrorKind::from(conflict)));
                }
            }
        }
        self.objects.extend(raw(message)?);
        // There is one entry for each object: the reader guarantees it.
        self.metadata.base.extend(metadata.base);
        Ok(())
    }

    /// The number of objects so far.
    pub fn object_count(&self) -> u64 {
        self.objects.len() as u64
    }

    /// The message.
    pub fn finish(self, options: &EncodeOptions) -> Result<MessageBuilder, Error> {
        MessageBuilder::new(&"new message".into(), self.metadata, self.objects, options)
    }
}
