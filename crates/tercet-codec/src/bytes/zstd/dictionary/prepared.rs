//! Dictionaries as libzstd wants them: reading the tables and indexing the content costs more than a small page.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ::zstd::zstd_safe::{CDict, DDict};

use crate::CodecError;

/// What was made of a dictionary so far.
#[derive(Default)]
pub(super) struct Prepared {
    /// For each level that was asked for; there are few.
    encoders: Mutex<Vec<(i32, Arc<CDict<'static>>)>>,
    decoder: OnceLock<Option<DDict<'static>>>,
}

impl Prepared {
    pub(super) fn for_encoding(&self, bytes: &[u8], level: i32) -> Result<Arc<CDict<'static>>, CodecError> {
        // Levels beyond the ends are those at the ends.
        let level = level.clamp(*super::super::LEVELS.start(), *super::super::LEVELS.end());
        let mut encoders = self.encoders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, encoder)) = encoders.iter().find(|(of, _)| *of == level) {
            return Ok(Arc::clone(encoder));
        }
        let Some(encoder) = CDict::try_create(bytes, level) else {
            return Err(CodecError::Encode {
                codec: "zstd",
                detail: "the dictionary cannot be made ready".to_owned(),
            });
        };
        let encoder = Arc::new(encoder);
        encoders.push((level, Arc::clone(&encoder)));
        Ok(encoder)
    }

    /// `None` if the bytes begin like a trained dictionary and are none.
    pub(super) fn for_decoding(&self, bytes: &[u8]) -> Option<&DDict<'static>> {
        self.decoder.get_or_init(|| DDict::try_create(bytes)).as_ref()
    }
}
