//! Many messages into one.

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

/// Which value a key of `_extra_` gets when messages disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// That of the first message that has it.
    #[default]
    First,
    /// That of the last message that has it.
    Last,
    /// None: different values are an error.
    Error,
}

impl Strategy {
    /// Every one, in the order of help texts.
    pub const ALL: [Self; 3] = [Self::First, Self::Last, Self::Error];

    /// What users call it.
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

/// Many messages on their way into one: objects and entries of `base` one after the other, `_extra_` key by key.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    strategy: Strategy,
    metadata: GlobalMetadata,
    objects: Vec<RawObject>,
    /// Which message each key of `_extra_` came from.
    origins: BTreeMap<String, Origin>,
}

impl Merge {
    /// Nothing yet.
    pub fn new(strategy: Strategy) -> Self {
        Self { strategy, ..Self::default() }
    }

    /// Adds a message: all its objects are checked. An index, which lists a file that was, is left out.
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
                // As they would be written: the order of keys in a map makes no difference, and NaN is NaN.
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
        // One for each object: the reader saw to that.
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
