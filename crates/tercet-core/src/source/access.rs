//! Positional reads or a memory map.

/// How a file on this machine is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Positional reads (`pread`). If another program truncates the file, reading fails.
    #[default]
    Pread,
    /// A memory map: uncompressed data is used without a copy. If another program truncates the file, the operating
    /// system kills this process.
    Mmap,
}

#[cfg(any(unix, windows))]
impl Access {
    /// Opens a file on disk.
    pub fn open(
        self,
        path: &std::path::Path,
    ) -> Result<std::sync::Arc<dyn super::ByteSource>, super::SourceError> {
        Ok(match self {
            Self::Mmap => std::sync::Arc::new(super::Mmap::open(path)?),
            Self::Pread => std::sync::Arc::new(super::File::open(path)?),
        })
    }
}
