//! Digested dictionaries: digesting costs more than compressing a small page.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ::zstd::zstd_safe::{CDict, DDict};

use crate::CodecError;

/// The digested forms of a dictionary.
#[derive(Default)]
pub(super) struct Prepared {
    /// One per level in use.
    encoders: Mutex<Vec<(i32, Arc<CDict<'static>>)>>,
    decoder: OnceLock<Option<DDict<'static>>>,
}

impl Prepared {
    pub(super) fn for_encoding(&self, bytes: &[u8], level: i32) -> Result<Arc<CDict<'static>>, CodecError> {
        // Levels are clamped.
        let level = level.clamp(*super::super::LEVELS.start(), *super::super::LEVELS.end());
        let mut encoders = self.encoders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, encoder)) = encoders.iter().find(|(of, _)| *of == level) {
            return Ok(Arc::clone(encoder));
        }
        let Some(encoder) = CDict::try_create(bytes, level) else {
            return Err(CodecError::Encode { codec: "zstd", detail: "invalid dictionary".to_owned() });
        };
        let encoder = Arc::new(encoder);
        encoders.push((level, Arc::clone(&encoder)));
        Ok(encoder)
    }

    /// `None` if the bytes start like a trained dictionary but are invalid.
    pub(super) fn for_decoding(&self, bytes: &[u8]) -> Option<&DDict<'static>> {
        self.decoder.get_or_init(|| DDict::try_create(bytes)).as_ref()
    }
}
