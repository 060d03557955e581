//! The shuffle filter.

use super::error::{Result, TensogramError};

/// Groups the bytes of elements by significance. The length must be a multiple of the size of an element.
pub fn shuffle(bytes: &[u8], element_size: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes.len()];
    tercet_codec::shuffle::shuffle(bytes, element_size, &mut out).map_err(invalid)?;
    Ok(out)
}

/// The inverse of [`shuffle()`].
pub fn unshuffle(bytes: &[u8], element_size: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes.len()];
    tercet_codec::shuffle::unshuffle(bytes, element_size, &mut out).map_err(invalid)?;
    Ok(out)
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn invalid(error: tercet_codec::CodecError) -> TensogramError {
    TensogramError::Encoding(error.to_string())
}
