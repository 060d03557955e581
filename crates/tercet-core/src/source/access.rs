//! How the bytes of a file on disk are fetched.

/// How bytes are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Mapped into memory: what is stored plainly is seen without a copy. A program that truncates the file meanwhile
    /// ends this process.
    #[default]
    Mmap,
    /// Read by position: for files that others may change.
    Pread,
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
