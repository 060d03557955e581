//! The files below a root: [`scan`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet::core::num::counted;
use tercet::core::source;
use tercet::tatami::collection::MANIFEST;
use tercet::tatami::{Collection, LogicalType, Type};
use tercet::{Container, Format, HEAD_LEN};

use super::opening::{Root, Stamp};
use super::read_options;

/// The maximum number of listed files.
const MAX_FILES: usize = 100_000;
/// The maximum depth of directories.
const MAX_DEPTH: usize = 32;

/// The files as they were found at one time.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// Differs if the list differs.
    pub(crate) generation: String,
    /// By path.
    pub(crate) entries: Vec<Arc<Entry>>,
    by_id: HashMap<String, usize>,
    /// Files that look like ours and are not listed.
    pub(crate) skipped: u64,
}

/// A listed file or collection.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    /// The path below the root, with slashes.
    pub(crate) path: String,
    /// The path below the root without links.
    pub(crate) real: PathBuf,
    pub(crate) kind: EntryKind,
    pub(crate) stamp: Stamp,
    /// The size in bytes; of a collection that of its members.
    pub(crate) size: u64,
    pub(crate) facts: EntryDetails,
    /// The ID of the collection that the file is a member of.
    pub(crate) collection: Option<String>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EntryKind {
    Tet,
    Tgm,
    Tatami,
    Collection,
}

/// The listed information about an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryDetails {
    /// A short phrase.
    pub(crate) summary: Option<String>,
    /// Whether it is a search segment, or a collection of such.
    pub(crate) is_searchable: bool,
    /// The number of documents that are not deleted.
    pub(crate) documents: Option<u64>,
    /// The columns of documents that can be counted and sorted by.
    pub(crate) columns: Vec<DocumentColumn>,
    /// Why it cannot be opened.
    pub(crate) problem: Option<String>,
}

/// A column of documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentColumn {
    pub(crate) name: String,
    kind: Type,
    logical_type: Option<LogicalType>,
}

impl Snapshot {
    /// The names of columns of the searched entries that have the same type wherever they are, in order.
    pub(crate) fn document_columns(&self) -> Vec<&str> {
        let mut types: BTreeMap<&str, Option<&DocumentColumn>> = BTreeMap::new();
        for column in self.searchable().flat_map(|entry| &entry.facts.columns) {
            let known = types.entry(&column.name).or_insert(Some(column));
            if *known != Some(column) {
                *known = None;
            }
        }
        types.into_iter().filter(|(_, column)| column.is_some()).map(|(name, _)| name).collect()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Entry>> {
        self.by_id.get(id).map(|at| &self.entries[*at])
    }

    /// The searched entries: segments and collections of segments, without the members of collections, by path.
    pub(crate) fn searchable(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter().filter(|entry| entry.facts.is_searchable && entry.collection.is_none())
    }
}

/// The files below a root. What is known from `before` about unchanged files is not read again.
pub(super) fn scan(root: &Root, only: Option<&Path>, before: &Snapshot) -> Snapshot {
    let known = before.entries.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let mut scan = Scan { root, known, entries: Vec::new(), collections: Vec::new(), skipped: 0 };
    match only {
        Some(file) => scan.file(file, true),
        None => scan.directory(Path::new(""), 0),
    }
    scan.finish()
}

struct Scan<'a> {
    root: &'a Root,
    known: HashMap<&'a str, &'a Arc<Entry>>,
    entries: Vec<Arc<Entry>>,
    /// Collections: number of the entry, and the paths of its members.
    collections: Vec<(usize, HashSet<String>)>,
    skipped: u64,
}

impl Scan<'_> {
    fn directory(&mut self, relative: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(self.root.path().join(relative)) else {
            self.skipped += 1;
            return;
        };
        let mut names: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
        names.sort();
        if names.iter().any(|name| name == MANIFEST) {
            self.collection(relative);
        }
        for name in names {
            // A temporary file of a writer is hidden and not complete.
            if name.as_encoded_bytes().starts_with(b".") || self.entries.len() >= MAX_FILES {
                continue;
            }
            let path = relative.join(&name);
            let Ok(meta) = fs::symlink_metadata(self.root.path().join(&path)) else { continue };
            // Links to directories are not followed: they may form a loop.
            if meta.is_dir() {
                if depth < MAX_DEPTH {
                    self.directory(&path, depth + 1);
                } else {
                    self.skipped += 1;
                }
            } else if meta.is_file() || meta.is_symlink() {
                self.file(&path, false);
            }
        }
    }

    /// Lists a file, if it is one of ours by its extension or its first bytes.
    fn file(&mut self, path: &Path, is_named: bool) {
        let by_extension = Format::from_extension(path);
        let Some(real) = self.real(path) else {
            self.skipped += u64::from(by_extension.is_some());
            return;
        };
        let full = self.root.path().join(&real);
        let Some(stamp) =
            fs::metadata(&full).ok().filter(fs::Metadata::is_file).map(|meta| Stamp::new(&meta))
        else {
            return;
        };
        let shown = path_text(path);
        if let Some(known) = self.known.get(shown.as_str())
            && known.stamp == stamp
            && known.real == real
        {
            let entry = Entry { collection: None, ..Entry::clone(known) };
            self.entries.push(Arc::new(entry));
            return;
        }
        let Ok((handle, stamp)) = self.root.open_file(&real) else {
            self.skipped += u64::from(by_extension.is_some());
            return;
        };
        let Ok(source) = source::File::from_handle(&shown, handle) else { return };
        let by_bytes = || {
            use tercet::core::{ByteSource as _, Span};
            let head = source.read_at(Span::first(source.len().min(HEAD_LEN))).ok()?;
            tercet::detect(&head)
        };
        let Some(format) = by_extension.or_else(by_bytes).or(is_named.then_some(Format::Tet)) else { return };
        let container = Container::from_source(Arc::new(source), read_options());
        let (format, facts) = match &container {
            Ok(container) => (container.format(), facts(container)),
            Err(error) => {
                (format, EntryDetails { problem: Some(error.to_string()), ..EntryDetails::default() })
            }
        };
        let kind = match format {
            Format::Tet => EntryKind::Tet,
            Format::Tgm => EntryKind::Tgm,
            Format::Tatami => EntryKind::Tatami,
        };
        let size = stamp.len;
        self.entries.push(Arc::new(Entry {
            id: id(&shown),
            path: shown,
            real,
            kind,
            stamp,
            size,
            facts,
            collection: None,
        }));
    }

    /// The path of a file without links, if it is below the root.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let full = self.root.path().join(path);
        if !fs::symlink_metadata(&full).ok()?.is_symlink() {
            return Some(path.to_owned());
        }
        let resolved = full.canonicalize().ok()?;
        Some(resolved.strip_prefix(self.root.path()).ok()?.to_owned())
    }

    fn collection(&mut self, relative: &Path) {
        let full = self.root.path().join(relative);
        let Some(stamp) = fs::symlink_metadata(full.join(MANIFEST))
            .ok()
            .filter(fs::Metadata::is_file)
            .map(|meta| Stamp::new(&meta))
        else {
            self.skipped += 1;
            return;
        };
        let path = path_text(relative);
        // The root itself has no name below itself.
        let shown = if path.is_empty() { ".".to_owned() } else { path.clone() };
        let opened = Collection::open_with(&full, read_options().into())
            .and_then(|collection| collection.check_records().map(|()| collection));
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        let (size, facts, members) = match opened {
            Ok(collection) => {
                let members = collection.members().iter().map(|member| below(&member.path)).collect();
                let known = self.known.get(shown.as_str()).filter(|known| known.stamp == stamp);
                let facts = known.map_or_else(|| collection_facts(&collection), |known| known.facts.clone());
                (collection.bytes(), facts, members)
            }
            Err(error) => (
                0,
                EntryDetails { problem: Some(error.to_string()), ..EntryDetails::default() },
                HashSet::new(),
            ),
        };
        self.collections.push((self.entries.len(), members));
        self.entries.push(Arc::new(Entry {
            id: id(&shown),
            path: shown,
            real: relative.to_owned(),
            kind: EntryKind::Collection,
            stamp,
            size,
            facts,
            collection: None,
        }));
    }

    fn finish(self) -> Snapshot {
        let Self { mut entries, collections, skipped, .. } = self;
        for (number, members) in &collections {
            let id = entries[*number].id.clone();
            for entry in &mut entries {
                if entry.kind == EntryKind::Tatami && members.contains(&entry.path) {
                    Arc::make_mut(entry).collection = Some(id.clone());
                }
            }
        }
        entries.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
        let mut hasher = blake3::Hasher::new();
        let mut by_id = HashMap::new();
        entries.retain(|entry| {
            // Two paths with one ID are practically impossible; one of them is not listed.
            let at = by_id.len();
            let is_new = by_id.insert(entry.id.clone(), at).is_none();
            if is_new {
                hasher.update(entry.path.as_bytes()).update(&[0]).update(entry.stamp.version().as_bytes());
                hasher.update(&[u8::from(entry.collection.is_some())]);
            }
            is_new
        });
        let generation = hasher.finalize().to_hex()[..12].to_owned();
        Snapshot { generation, entries, by_id, skipped }
    }
}

/// The ID of a path.
fn id(path: &str) -> String {
    blake3::hash(path.as_bytes()).to_hex()[..16].to_owned()
}

fn path_text(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

fn facts(container: &Container) -> EntryDetails {
    match container {
        Container::Tet(file) => {
            let summary = Some(counted(file.datasets().len() as u64, "dataset"));
            EntryDetails { summary, ..EntryDetails::default() }
        }
        Container::Tatami(file) => {
            let is_searchable = is_segment(file);
            let documents = is_searchable.then(|| live_rows(file));
            let summary = match documents {
                Some(documents) => counted(documents, "document"),
                None => counted(file.rows(), "row"),
            };
            let columns = if is_searchable { columns(file) } else { Vec::new() };
            EntryDetails { summary: Some(summary), is_searchable, documents, columns, problem: None }
        }
        // Counting messages would read the file.
        _ => EntryDetails::default(),
    }
}

fn collection_facts(collection: &Collection) -> EntryDetails {
    let members = collection.members();
    let mut documents = 0u64;
    let mut is_searchable = !members.is_empty();
    let mut names = Vec::new();
    for member in members {
        match collection.open_member(member) {
            Ok(file) if is_segment(&file) => {
                documents += live_rows(&file);
                names.extend(columns(&file));
            }
            Ok(_) => is_searchable = false,
            Err(error) => {
                return EntryDetails { problem: Some(error.to_string()), ..EntryDetails::default() };
            }
        }
    }
    let rows = if is_searchable { counted(documents, "document") } else { counted(collection.rows(), "row") };
    let summary = Some(format!("{}, {rows}", counted(members.len() as u64, "file")));
    names.sort_by(|one: &DocumentColumn, other| one.name.cmp(&other.name));
    names.dedup();
    EntryDetails {
        summary,
        is_searchable,
        documents: is_searchable.then_some(documents),
        columns: names,
        problem: None,
    }
}

/// The columns of documents besides those of every segment.
fn columns(file: &tercet::tatami::File) -> Vec<DocumentColumn> {
    let is_own = |name: &str| {
        !matches!(name, "doc_id" | "url" | "title" | "body" | "snippet") && !name.starts_with("norm_")
    };
    let fields = file.schema().fields().iter().zip(file.logical_types());
    let plain = fields.filter(|(field, _)| field.element.is_none() && field.kind != Type::BlobRef);
    let column = |(field, logical_type): (&tercet::tatami::Field, Option<LogicalType>)| DocumentColumn {
        name: field.name.to_string(),
        kind: field.kind,
        logical_type,
    };
    plain.filter(|(field, _)| is_own(&field.name)).map(column).collect()
}

/// Whether a file has the role of a search segment.
fn is_segment(file: &tercet::tatami::File) -> bool {
    file.footer().inverted.is_some()
}

/// The number of documents that are not deleted. An unreadable record counts all: the search reports it.
fn live_rows(file: &tercet::tatami::File) -> u64 {
    file.without_deleted_documents().map_or_else(|_| file.rows(), |file| file.live_rows())
}
