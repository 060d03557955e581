//! The summary of stored objects.

use tercet::core::escape;
use tercet::tgm::Message;
use tercet::tgm::precision::{Candidate, PRECISION};

use crate::failure::Failure;
use crate::render::{exact, human_size, ratio};
use crate::ui::Ui;

/// Prints a line per object; `raw` has names and sizes of the input arrays.
pub(super) fn print(message: &Message, raw: &[(String, u64)], out: &mut Ui) -> Result<(), Failure> {
    for (object, (name, raw)) in message.objects().zip(raw) {
        let object = object?;
        let how = Candidate::given(object.descriptor());
        let len = object.payload_span().len().saturating_add(object.masks_span().len());
        let (name, size, ratio) = (escape::name(name), human_size(len), ratio(*raw, len));
        let index = usize::try_from(object.index()).unwrap_or(usize::MAX);
        let precision = message.metadata().base.get(index).and_then(|entry| entry.get(PRECISION));
        let measured = precision.and_then(|precision| precision.get("measured")?.as_f64());
        let error = measured.map(|measured| format!(", max error {}", exact(measured)));
        out.line(format_args!("  {name}: {how}, {size}, ratio {ratio}{}", error.unwrap_or_default()))?;
    }
    Ok(())
}
