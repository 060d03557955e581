//! Changes to a collection.

use std::io::{self, Write as _};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tercet_core::publish::{AtomicFile, FileLock, Operation, PublishError};
use tercet_core::{CommonError, SourceError};

use super::log::{self, ManifestWarning, Record, Replay};
use super::member::is_inside;
use super::rows::check_same_schema;
use super::{Collection, Member};
use crate::error::{Error, ErrorKind};
use crate::file::File;

/// Maximum wait for the lock of another writer. An edit takes as long as an fsync.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// Whether a file has logical type annotations.
fn has_logical_types(file: &File) -> bool {
    file.logical_types().iter().any(Option::is_some)
}

/// The result of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Members in the new log.
    pub live: u64,
    /// Records of the old log, including those of unknown kinds.
    pub records: u64,
    /// Skipped problems; they are not in the new log.
    pub warnings: Vec<ManifestWarning>,
}

impl Collection {
    /// Adds files, all or none. Adding a member again replaces its entry.
    ///
    /// The files must be in the directory of the collection; their paths are stored relative to it.
    pub fn add<P: AsRef<Path>>(&mut self, files: &[P]) -> Result<Vec<Member>, Error> {
        let mut members = Vec::with_capacity(files.len());
        for path in files {
            let relative = self.relative(path.as_ref())?;
            let file = File::open_with(path.as_ref(), self.options)?;
            members.push((Member::describe(&relative, &file), file));
        }
        let options = self.options;
        self.edit(|replay, root| {
            let mut records = Vec::new();
            // The manifest, which is used for pruning, has no logical types: they must be the same in all members.
            let others =
                replay.members.iter().filter(|old| members.iter().all(|(new, _)| new.path != old.path));
            let mut paths =
                others.filter_map(|old| old.location(root)).filter(|path| super::resolves_inside(root, path));
            let first = paths.find_map(|path| File::open_with(path, options).ok());
            for (_, file) in &members {
                let first = first.as_ref().or(members.first().map(|(_, file)| file));
                if let Some(first) = first.filter(|first| has_logical_types(first) || has_logical_types(file))
                {
                    let names: Vec<&str> = file.schema().fields().iter().map(|field| &*field.name).collect();
                    check_same_schema(first, file, &names)?;
                }
            }
            for (index, (member, file)) in members.iter().enumerate() {
                let mut before = members[..index].iter();
                if let Some((other, _)) =
                    before.find(|(other, _)| other.id == member.id && other.path != member.path)
                {
                    return Err(file.error(ErrorKind::DuplicateId { other: other.path.as_str().into() }));
                }
                for old in &replay.members {
                    if old.id == member.id && old.path != member.path {
                        let there = old.location(root).is_some_and(|path| path.exists());
                        if there {
                            let other = old.path.as_str().into();
                            return Err(file.error(ErrorKind::DuplicateId { other }));
                        }
                    }
                    if old.path == member.path && old.id != member.id {
                        records.push(Record::Remove(old.id));
                    }
                }
                records.push(Record::Add(Box::new(member.clone())));
            }
            Ok(records)
        })?;
        Ok(members.into_iter().map(|(member, _)| member).collect())
    }

    /// Removes members from the manifest, all or none. The files are not deleted.
    pub fn remove<P: AsRef<Path>>(&mut self, files: &[P]) -> Result<Vec<Member>, Error> {
        let paths: Vec<String> =
            files.iter().map(|path| self.named(path.as_ref())).collect::<Result<_, Error>>()?;
        let mut removed = Vec::new();
        let name = self.error_name();
        self.edit(|replay, _| {
            removed = paths.iter().map(|path| find(replay, path, &name)).collect::<Result<_, Error>>()?;
            Ok(removed.iter().map(|member| Record::Remove(member.id)).collect())
        })?;
        Ok(removed)
    }

    /// Sets the tier of a member.
    pub fn set_tier(&mut self, file: impl AsRef<Path>, tier: u8) -> Result<Member, Error> {
        let path = self.named(file.as_ref())?;
        let mut changed = None;
        let name = self.error_name();
        self.edit(|replay, _| {
            let member = find(replay, &path, &name)?;
            let record = Record::SetTier(member.id, tier);
            changed = Some(Member { tier, ..member });
            Ok(vec![record])
        })?;
        changed.ok_or_else(|| self.error(ErrorKind::NoSuchMember { path: path.as_str().into() }))
    }

    /// Adds one file and removes others in one atomic change; fails if one of them is no longer a member.
    pub(super) fn exchange(&mut self, output: &Path, inputs: &[Member]) -> Result<Member, Error> {
        let relative = self.relative(output)?;
        let file = File::open_with(output, self.options)?;
        let member = Member::describe(&relative, &file);
        let name = self.error_name();
        self.edit(|replay, _| {
            let mut records = vec![Record::Add(Box::new(member.clone()))];
            for input in inputs {
                let live = find(replay, &input.path, &name)?;
                if !live.is_same_file(input) || live.deleted != input.deleted {
                    let rows = |member: &Member| format!("{} rows", member.live_rows()).into();
                    let (was, now) = (rows(input), rows(&live));
                    return Err(Error::new(Arc::clone(&name), ErrorKind::MemberChanged { was, now }));
                }
                if live.id != member.id {
                    records.push(Record::Remove(live.id));
                }
            }
            Ok(records)
        })?;
        Ok(member)
    }

    /// Rewrites the log with only the live members. With `salvage`, intact records after damaged ones are kept too.
    pub fn compact(&mut self, salvage: bool) -> Result<Compacted, Error> {
        let Some(lock) = self.lock()? else {
            self.replay = Replay::default();
            return Ok(Compacted { live: 0, records: 0, warnings: Vec::new() });
        };
        let bytes = self.read_existing()?.unwrap_or_default();
        let replay = if salvage { log::salvage(&bytes) } else { log::replay_file(&bytes) };
        let replay = replay.map_err(|fault| self.error(fault))?;
        let mut members = Vec::new();
        replay.put_members(&mut members);
        let compacted = log::sealed(&members);
        self.replace(lock, &compacted)?;
        self.take(&compacted)?;
        let live = self.replay.members.len() as u64;
        Ok(Compacted { live, records: replay.records, warnings: replay.warnings })
    }

    /// Replaces the manifest, which is locked.
    fn replace(&self, lock: FileLock, bytes: &[u8]) -> Result<(), Error> {
        let write = || {
            let mut atomic_file = lock.replace()?;
            atomic_file.write_all(bytes)?;
            atomic_file.publish()?;
            Ok(())
        };
        write().map_err(|fault| self.error(fault))
    }

    /// Reads the log under its lock, builds records and adds them as one atomic change.
    ///
    /// The log is replaced, not appended to: its length is in its first record, and readers see the old or the new log.
    pub(super) fn edit(
        &mut self,
        mut make: impl FnMut(&Replay, &Path) -> Result<Vec<Record>, Error>,
    ) -> Result<(), Error> {
        loop {
            let Some(lock) = self.lock()? else {
                let records = make(&Replay::default(), &self.root)?;
                if records.is_empty() {
                    return Ok(());
                }
                let bytes = log::sealed(&encoded(&records));
                match self.create(&bytes) {
                    // Another writer created it first: change that one.
                    Err(ErrorKind::Common(CommonError::Publish(PublishError::Exists { .. }))) => continue,
                    Err(fault) => return Err(self.error(fault)),
                    Ok(()) => return self.take(&bytes),
                }
            };
            let bytes = self.read_existing()?.unwrap_or_default();
            let replay = log::replay_file(&bytes).map_err(|fault| self.error(fault))?;
            let records = make(&replay, &self.root)?;
            if records.is_empty() {
                self.replay = replay;
                return Ok(());
            }
            return self.rewrite(lock, &records);
        }
    }

    /// Replaces the locked log by one with more records.
    pub(super) fn rewrite(&mut self, lock: FileLock, records: &[Record]) -> Result<(), Error> {
        let bytes = self.read_existing()?.unwrap_or_default();
        let replay = log::replay_file(&bytes).map_err(|fault| self.error(fault))?;
        let position = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let kept = bytes.get(position(replay.start)..position(replay.end)).unwrap_or_default();
        let new = log::sealed(&[kept, &encoded(records)].concat());
        self.replace(lock, &new)?;
        self.take(&new)
    }

    /// Acquires the lock of the manifest; `None` if there is no manifest. Waits for other writers.
    pub(super) fn lock(&self) -> Result<Option<FileLock>, Error> {
        let path = self.manifest_path();
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match FileLock::acquire_on(Arc::clone(&self.disk), &path) {
                Ok(lock) => return Ok(Some(lock)),
                Err(PublishError::Io { operation: Operation::Open, source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    return Ok(None);
                }
                Err(PublishError::Busy { .. }) if Instant::now() < deadline => std::thread::sleep(LOCK_POLL),
                Err(error) => return Err(self.error(error.into())),
            }
        }
    }

    fn create(&self, bytes: &[u8]) -> Result<(), ErrorKind> {
        let mut atomic_file = AtomicFile::create_new_on(Arc::clone(&self.disk), &self.manifest_path())?;
        atomic_file.write_all(bytes)?;
        atomic_file.publish()?;
        Ok(())
    }

    /// Replaces the state by that of the new manifest.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.replay = log::replay(bytes).map_err(|fault| self.error(fault))?;
        Ok(())
    }

    /// The path of a file as it is stored in the manifest.
    pub fn relative(&self, file: &Path) -> Result<String, Error> {
        let display = || file.display().to_string();
        let opened = |error| Error::new(display().into(), SourceError::Open(error).into());
        let outside = || Error::new(display().into(), ErrorKind::Outside { path: display().into() });
        let root = self.root.canonicalize().map_err(|error| self.error(SourceError::Open(error).into()))?;
        let name = file.file_name().ok_or_else(outside)?;
        let directory = match file.parent() {
            Some(directory) if directory != Path::new("") => directory,
            _ => Path::new("."),
        };
        let full = directory.canonicalize().map_err(opened)?.join(name);
        // A link that leads out of the directory would not be followed by readers.
        if !super::resolves_inside(&root, &full) {
            return Err(outside());
        }
        let relative = full.strip_prefix(&root).map_err(|_| outside())?;
        let names = relative.components().map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        let path = names.collect::<Option<Vec<&str>>>().ok_or_else(outside)?.join("/");
        if is_inside(&path) { Ok(path) } else { Err(outside()) }
    }

    /// Finds a member by its path in the collection or by its file path.
    fn named(&self, file: &Path) -> Result<String, Error> {
        match file.to_str() {
            Some(path) if self.member(path).is_some() => Ok(path.to_owned()),
            given => self.relative(file).or_else(|error| given.map(str::to_owned).ok_or(error)),
        }
    }

    fn error_name(&self) -> Arc<str> {
        self.manifest_path().display().to_string().into()
    }
}

fn encoded(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        record.put(&mut out);
    }
    out
}

fn find(replay: &Replay, path: &str, name: &Arc<str>) -> Result<Member, Error> {
    let found = replay.members.iter().find(|member| member.path == path);
    found.cloned().ok_or_else(|| Error::new(Arc::clone(name), ErrorKind::NoSuchMember { path: path.into() }))
}
