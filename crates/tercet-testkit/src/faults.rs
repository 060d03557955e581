//! A disk with injected faults.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tercet_core::num::saturating_usize;
use tercet_core::publish::{Disk, DiskFile, Entry, Permissions, RealDisk};

mod trials;

pub use trials::{Trial, for_each_fault};

/// The operations of a [`Disk`] and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// [`Disk::entry`] and [`DiskFile::entry`].
    Entry,
    /// [`Disk::read_link`].
    ReadLink,
    /// [`Disk::create_new`].
    Create,
    /// [`Disk::open_existing`].
    Open,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove`].
    Remove,
    /// [`Disk::sync_directory`].
    SyncDirectory,
    /// [`Disk::list`].
    List,
    /// [`Write::write`].
    Write,
    /// [`Seek::seek`].
    Seek,
    /// [`DiskFile::sync_all`].
    SyncFile,
    /// [`DiskFile::set_len`].
    SetLen,
    /// [`DiskFile::try_lock`].
    Lock,
    /// [`DiskFile::set_permissions`].
    SetPermissions,
}

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails and has no effect.
    Refuse(ErrorKind),
    /// The operation takes effect but reports an error, like a network file system.
    Late(ErrorKind),
    /// A write of one byte only. No effect on other operations.
    Short,
    /// The lock is held by another process. No effect on other operations.
    Held,
}

/// A disk that forwards every operation to another one, except the ones with injected faults.
///
/// Clones share one history. Operations are counted from 0, over the disk and all its files, in the order in
/// which they begin.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    done: Vec<Op>,
    rules: Vec<Rule>,
    longest_write: Option<usize>,
    interrupt_next_write: Option<bool>,
    free_bytes: Option<u64>,
    skip_syncs: bool,
    written_bytes: u64,
    concurrent: Option<ConcurrentAction>,
}

/// An action of another process after the first operation of a kind.
struct ConcurrentAction {
    after: Op,
    act: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for ConcurrentAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meanwhile").field("after", &self.after).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    when: When,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum When {
    At(usize),
    From(usize),
    On(Op),
}

impl FaultyDisk {
    /// Wraps a disk, without faults.
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// Wraps the disk of this machine.
    pub fn real() -> Self {
        Self::new(Arc::new(RealDisk))
    }

    /// Fails the operation with this number, once.
    pub fn at(self, number: usize, fault: Fault) -> Self {
        self.rule(When::At(number), fault)
    }

    /// Fails every operation from this number on, like a disconnected disk.
    pub fn from(self, number: usize, fault: Fault) -> Self {
        self.rule(When::From(number), fault)
    }

    /// Fails every operation of one kind.
    pub fn on(self, op: Op, fault: Fault) -> Self {
        self.rule(When::On(op), fault)
    }

    /// Limits each write to `max` bytes.
    ///
    /// # Panics
    ///
    /// When `max` is 0.
    pub fn with_short_writes(self, max: usize) -> Self {
        assert!(max > 0, "a disk that takes no byte at all is a full disk");
        self.state().longest_write = Some(max);
        self
    }

    /// Interrupts every other write before its first byte.
    pub fn with_interrupted_writes(self) -> Self {
        self.state().interrupt_next_write = Some(true);
        self
    }

    /// Limits the free space to `bytes`: the write that exceeds it is cut short, the next one fails.
    pub fn with_free_bytes(self, bytes: u64) -> Self {
        self.state().free_bytes = Some(bytes);
        self
    }

    /// Skips syncs, for tests with thousands of files and no power cut.
    pub fn without_syncs(self) -> Self {
        self.state().skip_syncs = true;
        self
    }

    /// Runs an action right after the first operation of one kind, before its caller continues.
    pub fn concurrently(self, after: Op, act: impl FnOnce() + Send + 'static) -> Self {
        self.state().concurrent = Some(ConcurrentAction { after, act: Box::new(act) });
        self
    }

    /// The operations so far, failed ones included.
    pub fn operations(&self) -> Vec<Op> {
        self.state().done.clone()
    }

    /// The bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.state().written_bytes
    }

    fn rule(self, when: When, fault: Fault) -> Self {
        self.state().rules.push(Rule { when, fault });
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one operation and performs it unless a fault applies.
    fn pass<T>(&self, op: Op, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let (number, fault) = self.state().begin(op);
        let result = match fault {
            Some(Fault::Refuse(kind)) => Err(injected(kind, op, number)),
            Some(Fault::Late(kind)) => act().and_then(|_| Err(injected(kind, op, number))),
            Some(Fault::Short | Fault::Held) | None => act(),
        };
        self.run_concurrent_action(op);
        result
    }

    fn run_concurrent_action(&self, after: Op) {
        let concurrent = self.state().concurrent.take_if(|concurrent| concurrent.after == after);
        // The state is unlocked: the action may use this disk.
        if let Some(concurrent) = concurrent {
            (concurrent.act)();
        }
    }

    fn file(&self, inner: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile { inner, disk: self.clone() })
    }
}

impl State {
    fn begin(&mut self, op: Op) -> (usize, Option<Fault>) {
        let number = self.done.len();
        self.done.push(op);
        let rule = self.rules.iter().find(|rule| match rule.when {
            When::At(at) => at == number,
            When::From(from) => from <= number,
            When::On(on) => on == op,
        });
        (number, rule.map(|rule| rule.fault))
    }

    /// The number of bytes of a write that take effect.
    fn admit(&mut self, len: usize) -> io::Result<usize> {
        if let Some(interrupt) = &mut self.interrupt_next_write {
            *interrupt = !*interrupt;
            if !*interrupt {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        let mut admitted = len.min(self.longest_write.unwrap_or(usize::MAX));
        if let Some(free) = self.free_bytes {
            if free == 0 && len > 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            admitted = admitted.min(saturating_usize(free));
        }
        Ok(admitted)
    }
}

fn injected(kind: ErrorKind, op: Op, number: usize) -> io::Error {
    io::Error::new(kind, format!("injected fault in operation {number} ({op:?})"))
}

impl Disk for FaultyDisk {
    fn entry(&self, path: &Path) -> io::Result<Entry> {
        self.pass(Op::Entry, || self.inner.entry(path))
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.pass(Op::ReadLink, || self.inner.read_link(path))
    }

    fn create_new(&self, path: &Path, like: Option<&Permissions>) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.pass(Op::Create, || self.inner.create_new(path, like))?))
    }

    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.pass(Op::Open, || self.inner.open_existing(path))?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Op::Rename, || self.inner.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass(Op::Remove, || self.inner.remove(path))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let skip = self.state().skip_syncs;
        self.pass(Op::SyncDirectory, || if skip { Ok(()) } else { self.inner.sync_directory(directory) })
    }

    fn list(&self, directory: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>> {
        self.pass(Op::List, || self.inner.list(directory, wanted))
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn DiskFile>,
    disk: FaultyDisk,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (number, fault) = self.disk.state().begin(Op::Write);
        let mut len = match fault {
            Some(Fault::Refuse(kind)) => return Err(injected(kind, Op::Write, number)),
            Some(Fault::Short) => bytes.len().min(1),
            Some(Fault::Late(_) | Fault::Held) | None => bytes.len(),
        };
        len = self.disk.state().admit(len)?;
        let written = self.inner.write(&bytes[..len])?;
        let mut state = self.disk.state();
        state.written_bytes += written as u64;
        state.free_bytes = state.free_bytes.map(|free| free.saturating_sub(written as u64));
        drop(state);
        self.disk.run_concurrent_action(Op::Write);
        match fault {
            Some(Fault::Late(kind)) => Err(injected(kind, Op::Write, number)),
            _ => Ok(written),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for FaultyFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.disk.pass(Op::Seek, || self.inner.seek(to))
    }
}

impl DiskFile for FaultyFile {
    fn entry(&self) -> io::Result<Entry> {
        self.disk.pass(Op::Entry, || self.inner.entry())
    }

    fn sync_all(&mut self) -> io::Result<()> {
        let skip = self.disk.state().skip_syncs;
        self.disk.pass(Op::SyncFile, || if skip { Ok(()) } else { self.inner.sync_all() })
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.disk.pass(Op::SetLen, || self.inner.set_len(len))
    }

    fn try_lock(&mut self) -> io::Result<bool> {
        let (number, fault) = self.disk.state().begin(Op::Lock);
        let result = match fault {
            Some(Fault::Held) => Ok(false),
            Some(Fault::Refuse(kind) | Fault::Late(kind)) => Err(injected(kind, Op::Lock, number)),
            Some(Fault::Short) | None => self.inner.try_lock(),
        };
        self.disk.run_concurrent_action(Op::Lock);
        result
    }

    fn set_permissions(&mut self, permissions: &Permissions) -> io::Result<()> {
        self.disk.pass(Op::SetPermissions, || self.inner.set_permissions(permissions))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse(kind) => write!(f, "refused ({kind})"),
            Self::Late(kind) => write!(f, "done, but reported as failed ({kind})"),
            Self::Short => f.write_str("takes one byte"),
            Self::Held => f.write_str("is held by another process"),
        }
    }
}
