//! Output on a platform without files.

use crate::error::ErrorKind;

/// Output options.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    /// Number of result elements in the preview.
    pub(crate) preview: u64,
}

impl Outputs {
    /// Results stay in memory.
    #[expect(clippy::unnecessary_wraps, reason = "the signature of the other platforms")]
    pub(crate) fn new(
        _file: Option<&std::path::Path>,
        _allowed: &[std::path::PathBuf],
        preview: u64,
    ) -> Result<Self, ErrorKind> {
        Ok(Self { preview })
    }

    /// There are no files to replace.
    pub(crate) fn with_overwrite(self, _overwrite: bool) -> Self {
        self
    }
}
