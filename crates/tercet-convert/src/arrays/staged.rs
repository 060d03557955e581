//! Output that is checked before it appears under its name.

use std::path::{Path, PathBuf};

use tercet_core::CommonError;
use tercet_core::publish::{AtomicFile, Disk as _, PublishError, RealDisk, TempDirectory};

use super::output::OutputFormat;
use crate::formats::zarr;
use crate::{Error, ErrorKind};

/// A complete output in a temporary directory beside its target. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct StagedOutput {
    /// The target as it was given, for errors.
    given: PathBuf,
    target: PathBuf,
    path: PathBuf,
    directory: TempDirectory,
    /// Holds the lock of a file that is replaced. A store is a directory and has none.
    lock: Option<AtomicFile>,
    overwrite: bool,
}

impl StagedOutput {
    /// Checks that the target can be written, and makes a place for the output.
    pub(crate) fn new(given: &Path, format: OutputFormat, overwrite: bool) -> Result<Self, Error> {
        let fail = |kind: ErrorKind| Error::new(given.to_string_lossy().into(), kind);
        let (target, lock) = if format == OutputFormat::Zarr {
            zarr::check_target(given, overwrite)?;
            (given.to_owned(), None)
        } else {
            let lock = if overwrite { AtomicFile::create(given) } else { AtomicFile::create_new(given) };
            let lock = lock.map_err(|error| fail(error.into()))?;
            (lock.path().to_owned(), Some(lock))
        };
        let name = target
            .file_name()
            .ok_or_else(|| fail(PublishError::NoFileName { path: given.to_owned() }.into()))?;
        let parent =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let shown: String = name.to_string_lossy().chars().take(80).collect();
        let directory = TempDirectory::create_in(parent, &shown).map_err(|error| fail(error.into()))?;
        let path = directory.path().join(name);
        Ok(Self { given: given.to_owned(), target, path, directory, lock, overwrite })
    }

    /// The path of the output while it is written and checked.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An error of the output, with the name of the target.
    pub(crate) fn named(&self, error: Error) -> Error {
        // Writers name the file by its absolute path; the name of the temporary directory is unique.
        let directory = self.directory.path().file_name().unwrap_or_default().to_string_lossy();
        if !error.location().contains(&*directory) {
            return error;
        }
        let given = |error: PublishError| error.with_path(self.given.clone());
        let kind = match error.into_kind() {
            ErrorKind::Publish(error)
            | ErrorKind::Tet(tercet_tet::ErrorKind::Common(CommonError::Publish(error)))
            | ErrorKind::Tgm(tercet_tgm::ErrorKind::Common(CommonError::Publish(error))) => {
                ErrorKind::Publish(given(error))
            }
            kind => kind,
        };
        Error::new(self.given.to_string_lossy().into(), kind)
    }

    /// Renames the output to its target.
    pub(crate) fn publish(self) -> Result<(), Error> {
        let published = self.rename();
        published
            .map_err(|error| match error.kind() {
                // A store is a directory, over which a rename fails if it has files.
                std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::DirectoryNotEmpty
                    if !self.overwrite =>
                {
                    PublishError::Exists { path: self.given.clone() }.into()
                }
                _ => ErrorKind::from(error),
            })
            .map_err(|kind| Error::new(self.given.to_string_lossy().into(), kind))?;
        // The output is in place; the empty directory is removed as far as possible.
        drop(self.lock);
        drop(self.directory);
        Ok(())
    }

    fn rename(&self) -> std::io::Result<()> {
        if self.lock.is_none() {
            zarr::replace_store(&self.path, &self.target, self.overwrite)?;
        } else if self.overwrite {
            if let Ok(old) = std::fs::metadata(&self.target) {
                std::fs::set_permissions(&self.path, old.permissions())?;
            }
            RealDisk.rename(&self.path, &self.target)?;
        } else {
            // A link fails if the name exists, also one that appeared since.
            match RealDisk.link(&self.path, &self.target) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(error),
                // File systems without links.
                Err(_) => RealDisk.rename(&self.path, &self.target)?,
            }
        }
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        RealDisk.sync_directory(parent.unwrap_or(Path::new(".")))
    }
}
