//! Setting of metadata values.

use super::builder::MessageBuilder;
use super::error::EditError;
use super::path::{Change, Changes, Target};
use super::{error, raw};
use crate::encode::{EncodeOptions, check_values};
use crate::error::{Error, ErrorKind};
use crate::message::Message;
use crate::metadata::Entry;
use crate::value::Value;

/// The message with values set. Missing keys and maps on the path are added; a value on the path that is not a map
/// is an error.
pub fn set(message: &Message, changes: &Changes, options: &EncodeOptions) -> Result<MessageBuilder, Error> {
    let mut metadata = message.metadata().without_reserved();
    let mut objects = raw(message)?;
    let mut apply = |change: &Change| -> Result<(), ErrorKind> {
        match change.target {
            Target::Object(index) => {
                let count = objects.len() as u64;
                let object = usize::try_from(index).ok().and_then(|at| objects.get_mut(at));
                let object =
                    object.ok_or(ErrorKind::NoSuchObject { message: message.number(), index, count })?;
                let mut descriptor = object.descriptor().clone();
                put(&mut descriptor.params, change, &|| format!("objects.{index}."))?;
                check_values(&descriptor.params, 1, |key| format!("object {index}: {key}"))?;
                object.change(descriptor);
            }
            Target::Base if !objects.is_empty() => {
                for (at, entry) in metadata.base.iter_mut().enumerate() {
                    put(entry, change, &|| format!("base[{at}]."))?;
                }
            }
            Target::Base | Target::Extra => put(&mut metadata.extra, change, &|| "_extra_.".to_owned())?,
        }
        Ok(())
    };
    changes.0.iter().try_for_each(&mut apply).map_err(|fault| error(message, fault))?;
    MessageBuilder::new(message.name(), metadata, objects, options)
}

/// Sets a value in a section; `section` is the prefix of its path in errors.
fn put(entry: &mut Entry, change: &Change, section: &dyn Fn() -> String) -> Result<(), EditError> {
    let Some((first, inner)) = change.keys.split_first() else { return Ok(()) };
    if inner.is_empty() {
        entry.insert(first.clone(), change.value.clone());
        return Ok(());
    }
    let mut here = entry.entry(first.clone()).or_insert_with(|| Value::Map(Vec::new()));
    for (depth, key) in inner.iter().enumerate() {
        let kind = here.kind();
        let Value::Map(pairs) = here else {
            let at = section() + &change.keys[..=depth].join(".");
            return Err(EditError::NotAMap { path: change.path.clone(), at, found: kind });
        };
        let there = pairs.iter().rposition(|(found, _)| found.as_text() == Some(key));
        let at = there.unwrap_or_else(|| {
            pairs.push((Value::from(key.as_str()), Value::Map(Vec::new())));
            pairs.len() - 1
        });
        here = &mut pairs[at].1;
    }
    *here = change.value.clone();
    Ok(())
}
