//! Filters on messages and objects, and key lists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tercet::MessageFilter;
use tercet::core::escape;
use tercet::tgm::{Column, Field, File, GlobalMetadata, Message, MessageIndex, is_pipeline_parameter};

use crate::failure::Failure;
use crate::persona::is_reference;
use crate::ui::Ui;

mod clause;
mod keys;
mod row;

pub(crate) use clause::Clauses;
pub(crate) use keys::Keys;
pub(super) use row::{Row, VERSION_KEY, printed};

/// A filter on messages.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Filter {
    /// Select by key: `step=6,name=t/z`. A comma means AND, `/` means OR. Repeatable. Operators: = != < <= > >=
    #[arg(short = 'w', value_name = "KEY=VALUE,…")]
    clauses: Vec<Clauses>,
    /// Select by a filter expression: `step >= 6 and name in ("t", "z")`. Repeatable
    #[arg(long = "where", value_name = "EXPR", value_parser = expression)]
    expressions: Vec<MessageFilter>,
    /// The keys of the clauses that were looked up, and whether a message has them.
    #[arg(skip)]
    seen: Arc<Mutex<BTreeMap<String, bool>>>,
}

fn expression(text: &str) -> Result<MessageFilter, String> {
    MessageFilter::parse(text).map_err(|error| error.to_string())
}

impl Filter {
    /// Whether a filter is given.
    pub(super) fn is_active(&self) -> bool {
        !self.clauses.is_empty() || !self.expressions.is_empty()
    }

    /// The keys of the filter.
    fn keys(&self) -> impl Iterator<Item = &str> {
        let clauses = self.clauses.iter().flat_map(Clauses::keys);
        clauses.chain(self.expressions.iter().flat_map(MessageFilter::keys))
    }

    /// The messages that can match, if the message index has all keys.
    pub(super) fn chosen(&self, file: &File) -> Result<Option<Chosen>, Failure> {
        if !self.is_active() {
            return Ok(None);
        }
        let Some(index) = file.index()? else { return Ok(None) };
        let Some(columns) = columns(&index, self.keys()) else { return Ok(None) };
        let mut numbers = Vec::new();
        for number in 0..file.message_count()? {
            let value = |key: &str| {
                let column = columns.iter().find(|(known, _)| known == key);
                Ok::<_, Failure>(column.and_then(|(_, column)| column.value(number).cloned()))
            };
            // A value that is not in the index is read from the message, and so is a field of objects.
            let is_unknown = |(key, column): &(String, Arc<Column>)| {
                !column.is_stored(number) || (is_of_object(key) && column.value(number).is_none())
            };
            if columns.iter().any(is_unknown) || self.holds(&value, &|_| false)? {
                numbers.push(number);
            }
        }
        Ok(Some(Chosen { columns, numbers }))
    }

    /// The objects of a message that match; `None` if none does. A message without objects matches by its own metadata.
    pub(super) fn takes(&self, message: &Message) -> Result<Option<Vec<u64>>, Failure> {
        self.matching(message.metadata(), message.object_count(), Some(message))
    }

    /// Whether a message matches, of which only metadata is known.
    pub(super) fn takes_metadata(&self, metadata: &GlobalMetadata) -> Result<bool, Failure> {
        Ok(self.matching(metadata, metadata.base.len() as u64, None)?.is_some())
    }

    fn matching(
        &self,
        metadata: &GlobalMetadata,
        objects: u64,
        message: Option<&Message>,
    ) -> Result<Option<Vec<u64>>, Failure> {
        let all: Vec<u64> = (0..objects).collect();
        if !self.is_active() {
            return Ok(Some(all));
        }
        let holds = |objects: &[u64]| {
            let row = Row::new(metadata, message, objects);
            let value = |key: &str| Ok::<_, Failure>(row.value(key)?.map(std::borrow::Cow::into_owned));
            self.holds(&value, &|key| metadata.get(key).is_some())
        };
        // The reference implementation compares the first value that the message has.
        if is_reference() || objects == 0 {
            return Ok(holds(&all)?.then_some(all));
        }
        let mut found = Vec::new();
        for object in all {
            if holds(&[object])? {
                found.push(object);
            }
        }
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    fn holds(
        &self,
        value: &dyn Fn(&str) -> Result<Option<tercet::tgm::Value>, Failure>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Result<bool, Failure> {
        let seen_value = |key: &str| {
            let found = value(key)?;
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match seen.get_mut(key) {
                Some(is_found) => *is_found |= found.is_some(),
                None => drop(seen.insert(key.to_owned(), found.is_some())),
            }
            Ok(found)
        };
        for clauses in &self.clauses {
            if !clauses.holds(&seen_value, exists)? {
                return Ok(false);
            }
        }
        for expression in &self.expressions {
            if !expression.matches(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints a note if a filter matched nothing; returns whether it did.
    pub(super) fn note_if_none(&self, matched: u64, out: &mut Ui) -> Result<bool, Failure> {
        if matched > 0 || !self.is_active() || is_reference() {
            return Ok(false);
        }
        let why = self.expressions.iter().find_map(MessageFilter::why_nothing_matched);
        let why = why.or_else(|| {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let (key, _) = seen.iter().find(|(_, is_found)| !**is_found)?;
            Some(format!("no message has the key `{}`", escape::name(key)))
        });
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        out.note(format_args!("no message matches{why}"))?;
        Ok(true)
    }
}

/// Whether a key can be a property of an object that is not metadata.
fn is_of_object(key: &str) -> bool {
    Field::from_name(key).is_some() || is_pipeline_parameter(key)
}

/// The columns of all keys, if the index has them and they are valid.
fn columns<'a>(
    index: &MessageIndex,
    keys: impl Iterator<Item = &'a str>,
) -> Option<Vec<(String, Arc<Column>)>> {
    let mut columns: Vec<(String, Arc<Column>)> = Vec::new();
    for key in keys {
        if key == VERSION_KEY {
            return None;
        }
        if columns.iter().all(|(known, _)| known != key) {
            columns.push((key.to_owned(), index.column(key).ok().flatten()?));
        }
    }
    Some(columns)
}

/// The messages that can match according to the message index.
#[derive(Debug)]
pub(super) struct Chosen {
    columns: Vec<(String, Arc<Column>)>,
    pub(super) numbers: Vec<u64>,
}

impl Chosen {
    /// Whether the values in the index equal those in the message, if the index has them.
    pub(super) fn agrees(&self, message: &Message) -> bool {
        let number = message.number();
        self.columns.iter().all(|(key, column)| {
            !column.is_stored(number)
                || column.value(number).map(printed) == message.metadata().get(key).map(printed)
        })
    }
}
