//! [`Rewrite`]: changes a file.
//!
//! The index of a file is stored before its payloads, so adding or removing a dataset moves everything. A change is
//! therefore a new file that replaces the old one atomically; a crash leaves the old one. Chunks are copied as
//! they are stored and checked: damage is reported, never copied under a new checksum.

use std::path::Path;
use std::sync::Arc;

use tercet_core::publish::{AtomicFile, Disk, FileLock, RealDisk};
use tercet_core::{ElementType, Progress};

use crate::error::{Error, ErrorKind};
use crate::file::{File, Mode, ReadOptions};
use crate::grid::Grid;
use crate::layout::{Append, Appended, DatasetId, Layout, LayoutError, WriterOptions};
use crate::metadata::HistoryRow;
use crate::stored::{self, NewValues, Origin};
use crate::writer::Writer;

/// A change of a file. The file is locked until the writer is finished or dropped.
///
/// Attributes, names and labels are changed through [`layout`](Self::layout).
///
/// ```
/// use tercet_core::progress::NoProgress;
/// use tercet_tet::{AttrValue, HistoryRow, Rewrite, WriterOptions};
///
/// # use tercet_tet::{File, Layout, Writer};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("a.tet");
/// # let mut layout = Layout::new();
/// # let id = layout.dataset("t2m", tercet_core::DType::U8, [1], [1])?;
/// # let mut writer = Writer::create(&path, layout, WriterOptions::new())?;
/// # writer.array(id, tercet_core::TensorView::from_slice(&[1], &[7u8])?)?;
/// # writer.finish()?;
/// let mut rewrite = Rewrite::open(&path)?;
/// let t2m = rewrite.dataset("t2m")?;
/// rewrite.layout().set_attr(t2m, "level", &AttrValue::from(850))?;
/// rewrite.layout().rename(t2m, "t850")?;
/// rewrite.start(HistoryRow::now("rename", "t2m"), WriterOptions::new(), &NoProgress)?.finish()?;
/// # let file = File::open(&path)?;
/// # assert_eq!(file.dataset("t850")?.info().unwrap().attrs["level"], "850");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rewrite {
    lock: FileLock,
    old: Arc<File>,
    layout: Layout,
}

impl Rewrite {
    /// Locks and opens a file. A file that another process is changing is an error, and so is a damaged catalog.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, ReadOptions::new())
    }

    /// Locks and opens a file with limits, access and threads. Checksums are always compared, so that damage is never
    /// copied.
    pub fn open_with(path: impl AsRef<Path>, options: ReadOptions) -> Result<Self, Error> {
        Self::open_mode(Arc::new(RealDisk), path.as_ref(), options, Mode::Read)
    }

    /// Locks and opens a file on another [`Disk`], for tests.
    pub fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, Error> {
        Self::open_mode(disk, path, ReadOptions::new(), Mode::Read)
    }

    /// Locks a file and opens it for reading or for recovery.
    pub(crate) fn open_mode(
        disk: Arc<dyn Disk>,
        path: &Path,
        options: ReadOptions,
        mode: Mode,
    ) -> Result<Self, Error> {
        let lock = FileLock::acquire_on(disk, path)
            .map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))?;
        let old = File::open_mode(&path.into(), options.with_verify(true), mode)?;
        stored::check_block(&old)?;
        let old = Arc::new(old);
        let mut layout = Layout::new();
        for dataset in old.datasets() {
            // An invalid dataset can be dropped; `start` fails if it is kept.
            let unusable = || Grid::new(ElementType::U8, &[1], &[1]);
            let grid = dataset.grid().cloned().or_else(|_| unusable()).map_err(|reason| {
                old.error(ErrorKind::BadDataset { dataset: dataset.name().into(), reason })
            })?;
            let id = layout.push(dataset.name(), grid);
            let origin = Origin { file: Arc::clone(&old), id: dataset.id(), grown: None, recoded: false };
            layout.datasets[id.0].origin = Some(origin);
        }
        describe(&mut layout, &old);
        Ok(Self { lock, old, layout })
    }

    /// The current file.
    pub fn file(&self) -> &File {
        &self.old
    }

    /// The ID of a dataset in the layout of the new file: the first of this name.
    pub fn dataset(&self, name: &str) -> Result<DatasetId, Error> {
        self.layout.find(name).ok_or_else(|| self.old.error(self.layout.no_such_dataset(name)))
    }

    /// Drops a dataset. IDs of later datasets change.
    pub fn drop_dataset(&mut self, name: &str) -> Result<(), Error> {
        let DatasetId(position) = self.dataset(name)?;
        self.layout.datasets.remove(position);
        let twin = self.layout.datasets.iter().any(|planned| planned.name == name);
        if !twin {
            self.layout.metadata.datasets.remove(name);
        }
        Ok(())
    }

    /// The layout of the new file: adds datasets, changes attributes, names and labels.
    pub fn layout(&mut self) -> &mut Layout {
        &mut self.layout
    }

    /// Makes datasets longer along an axis; [`start_with`](Self::start_with) writes the new values.
    ///
    /// Datasets share an axis if its name and extent are equal. All of them must grow, unless
    /// [`Append::allow_partial`] is set; a dataset with the coordinates of the axis always must. Labels are
    /// required if the axis has labels. The last chunk on the axis must be complete, unless
    /// [`Append::rechunk`] is set. Nothing changes if there is an error.
    pub fn append(&mut self, append: &Append) -> Result<Appended, Error> {
        self.layout.append(append).map_err(|error| self.error(error))
    }

    /// Starts the new file and copies the kept chunks, checked. The caller then writes the added datasets and
    /// finishes the writer. The new file has no zone maps.
    pub fn start(
        self,
        history: HistoryRow,
        options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Writer<AtomicFile>, Error> {
        let mut writer = self.replace(history, options)?;
        writer.copy_stored(progress)?;
        Ok(writer)
    }

    /// Like [`start`](Self::start), for datasets that [grow](Self::append): `values` fills a buffer with a box of the
    /// appended array (row-major, little-endian). It is called from several threads, once for each element.
    pub fn start_with<E: From<Error> + Send>(
        self,
        history: HistoryRow,
        options: WriterOptions,
        values: impl Fn(&NewValues<'_>, &mut [u8]) -> Result<(), E> + Sync,
        progress: &dyn Progress,
    ) -> Result<Writer<AtomicFile>, E> {
        let mut writer = self.replace(history, options)?;
        writer.copy_and_grow(values, progress)?;
        Ok(writer)
    }

    /// The writer of the new file, still without chunks.
    fn replace(self, history: HistoryRow, options: WriterOptions) -> Result<Writer<AtomicFile>, Error> {
        let Self { lock, old, mut layout } = self;
        // Zone maps need the values of the kept chunks, which are copied without decoding.
        let options = options.with_zone_maps(false);
        if options.record_history {
            layout.history.push(history);
            layout.condense_history();
        }
        layout.check(options).map_err(|error| old.error(error.into()))?;
        let missing = stored::prepare(&mut layout)?;
        let name = old.name().to_owned();
        let writer = lock
            .replace()
            .map_err(ErrorKind::from)
            .and_then(|atomic_file| Writer::with_missing(layout, &name, atomic_file, options, &missing));
        writer.map_err(|fault| old.error(fault))
    }

    fn error(&self, error: LayoutError) -> Error {
        self.old.error(error.into())
    }
}

/// Copies everything but the datasets into the layout of a new file: budget, history, metadata, labels.
pub(crate) fn describe(layout: &mut Layout, old: &File) {
    layout.budget = old.memory_budget();
    layout.history = old.history().to_vec();
    layout.metadata = old.metadata().cloned().unwrap_or_default();
    layout.unknown = old.unknown_members();
    layout.put_long_labels(&old.long_labels);
}
