//! The summary of stored objects.

use serde::Serialize;
use tercet::core::escape;
use tercet::tgm::Message;
use tercet::tgm::precision::{Candidate, PRECISION};

use crate::failure::Failure;
use crate::render::{exact, human_size, ratio};
use crate::ui::Ui;

/// A stored object: pipeline, sizes and error.
#[derive(Debug, Serialize)]
pub(super) struct StoredObject {
    name: String,
    pipeline: String,
    raw_bytes: u64,
    stored_bytes: u64,
    /// The measured error of a lossy pipeline with a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_error: Option<f64>,
}

/// The objects of a message; `raw` has names and sizes of the input arrays.
pub(super) fn read(message: &Message, raw: &[(String, u64)]) -> Result<Vec<StoredObject>, Failure> {
    let mut stored = Vec::new();
    for (object, (name, raw)) in message.objects().zip(raw) {
        let object = object?;
        let index = usize::try_from(object.index()).unwrap_or(usize::MAX);
        let precision = message.metadata().base.get(index).and_then(|entry| entry.get(PRECISION));
        stored.push(StoredObject {
            name: name.clone(),
            pipeline: Candidate::given(object.descriptor()).to_string(),
            raw_bytes: *raw,
            stored_bytes: object.payload_span().len().saturating_add(object.masks_span().len()),
            max_error: precision.and_then(|precision| precision.get("measured")?.as_f64()),
        });
    }
    Ok(stored)
}

/// Prints a line per object; `raw` has names and sizes of the input arrays.
pub(super) fn print(message: &Message, raw: &[(String, u64)], out: &mut Ui) -> Result<(), Failure> {
    for object in read(message, raw)? {
        let StoredObject { name, pipeline, raw_bytes, stored_bytes, max_error } = object;
        let (name, size, ratio) =
            (escape::name(&name), human_size(stored_bytes), ratio(raw_bytes, stored_bytes));
        let error = max_error.map(|error| format!(", max error {}", exact(error)));
        out.line(format_args!("  {name}: {pipeline}, {size}, ratio {ratio}{}", error.unwrap_or_default()))?;
    }
    Ok(())
}
