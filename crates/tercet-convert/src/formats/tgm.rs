//! `.tgm` files as a source and a sink of variables.
//!
//! Reading stacks the objects of one name, type and shape into a cube: metadata keys that vary are its outer dimensions, with
//! their values as coordinates. Writing is the inverse: an object for each position of the outer dimensions.
//!
//! ```text
//! t, step 0, level 850  [lat, lon] ┐
//! t, step 0, level 500  [lat, lon] ├─▶ t [step, level, lat, lon], step [2], level [2]
//! t, step 6, level 850  [lat, lon] ┘   the field of step 6 and level 500 is missing: NaN, or the fill value
//! ```
//!
//! What a variable cannot show (nested keys, the order of messages, keys that vary without being a dimension) is recorded, so that the
//! messages can be written again:
//!
//! | record | contents |
//! |---|---|
//! | attribute `tgm` of a variable | constant metadata, the keys of the dimensions, the order of the fields, the pipeline |
//! | variable `NAME_order` | the number of each field in the file, -1 for missing ones; only if the order is not regular |
//! | variable `NAME_keys` | other keys that vary, as JSON |
//! | attribute `tgm` of the file | the number of objects of each message |
//!
//! Variables of other formats have no record. Their types and dimensions are stored in the key `tercet` of an object ([`Special`]);
//! fields of GRIB files have the key `mars` for selections.

mod keys;
mod mars;
mod object_source;
mod read;
mod special;
mod stack;
#[cfg(test)]
mod tests;
mod write;

pub use object_source::ObjectSource;
pub(crate) use read::TgmSource;
pub use write::Split;
pub(crate) use write::TgmSink;

/// The attribute with the record of a variable or of the file.
pub(crate) const RECORD: &str = "tgm";
/// The suffix of the variable with the order of the fields.
const ORDER: &str = "_order";
/// The suffix of the variable with other keys.
const KEYS: &str = "_keys";
/// The prefix of keys of the message.
const EXTRA: &str = "extra.";

/// The metadata of an object as flat keys, without those of the message that it overrides.
pub(crate) fn object_keys(
    metadata: &tercet_tgm::GlobalMetadata,
    object: u64,
) -> Vec<(String, tercet_tgm::Value)> {
    let mut found = keys::Keys::new();
    let mut entry =
        usize::try_from(object).ok().and_then(|at| metadata.base.get(at)).cloned().unwrap_or_default();
    let mut extra = metadata.extra.clone();
    entry.remove(special::KEY);
    extra.remove(special::KEY);
    keys::flatten(&extra, "", &mut found);
    keys::flatten(&entry, "", &mut found);
    found.into_iter().collect()
}

/// The name of the variable of an object.
pub(crate) fn object_name(metadata: &tercet_tgm::GlobalMetadata, object: u64) -> String {
    stack::name_of(&object_keys(metadata, object).into_iter().collect())
}

/// The last component of a key.
pub(crate) fn last_component(key: &str) -> String {
    keys::last(key)
}
