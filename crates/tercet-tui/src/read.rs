//! What the jobs read. Texts are escaped here; errors are sentences.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tercet::core::{Progress, Tensor};
use tercet::tatami::File as TableFile;
use tercet::tatami::search::Searcher;
use tercet::{Container, Format, OutlineOptions, VerifyOptions};

use crate::text::{counted, message, safe, shape, size};
use crate::tree::{Item, Node};
use crate::views::{ArrayInfo, Found, Picture, RegionLine, TableColumn, Verified};

mod array;
mod describe;
mod search;
mod table;

/// Open files that are kept.
const MAX_OPEN: usize = 16;
/// Messages and files that are listed at once.
const PAGE: u64 = 1000;
/// Regions of a byte layout, rows of its tables, findings of a verification.
const MAX_LINES: usize = 100_000;
const MAX_ROWS: u64 = 500;

/// Something to read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Job {
    /// The items below an item.
    Children(Item),
    /// The attributes of an item.
    Describe(Item),
    /// The axes of an array.
    Axes(Item),
    /// A slice of an array: the fixed axes with their positions, the shown axes, the maximum of values on each.
    Slice {
        item: Item,
        fixed: Vec<(usize, u64)>,
        plane: Vec<usize>,
        most: u64,
    },
    /// The columns of a table.
    Columns(Item),
    Rows {
        item: Item,
        filter: String,
        offset: u64,
        limit: u64,
    },
    Count {
        item: Item,
        filter: String,
    },
    Search {
        item: Item,
        query: String,
    },
    Document {
        item: Item,
        segment: usize,
        document: u32,
        query: String,
    },
    Bytes(PathBuf),
    Verify(PathBuf),
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Reply {
    Children(Item, Result<Vec<Node>, String>),
    Attributes(Vec<(String, String)>),
    Axes(ArrayInfo),
    Slice(Picture),
    Columns { columns: Vec<TableColumn>, rows: u64 },
    Rows { filter: String, offset: u64, rows: Vec<Vec<String>> },
    Count { filter: String, rows: u64 },
    Found(Found),
    Document(Vec<Vec<crate::text::Piece>>),
    Bytes { regions: Vec<RegionLine>, file_len: u64 },
    Verified(Verified),
}

/// The message of cancelled work. It is not shown.
pub(crate) const CANCELLED: &str = "cancelled";

/// Makes errors sentences.
pub(crate) trait OrMessage<T> {
    fn or_message(self) -> Result<T, String>;
}

impl<T, E: Display> OrMessage<T> for Result<T, E> {
    fn or_message(self) -> Result<T, String> {
        self.map_err(|error| message(&error))
    }
}

/// Fails if the work is cancelled.
fn check(progress: &dyn Progress) -> Result<(), String> {
    if progress.is_cancelled() { Err(CANCELLED.to_owned()) } else { Ok(()) }
}

/// A version of a file.
type Stamp = (u64, Option<SystemTime>);

/// Files that are open, and what was read of them last.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// The last used one is the last one.
    open: Mutex<Vec<(PathBuf, Stamp, Container)>>,
    tensor: Mutex<Option<(Item, Stamp, Arc<Tensor>)>>,
    searcher: Mutex<Option<(PathBuf, Stamp, Arc<Searcher>)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    /// Does a job.
    pub(crate) fn run(&self, job: &Job, progress: &dyn Progress) -> Result<Reply, String> {
        check(progress)?;
        match job {
            Job::Children(item) => Ok(Reply::Children(item.clone(), self.children(item))),
            Job::Describe(item) => Ok(Reply::Attributes(self.describe(item, progress)?)),
            Job::Axes(item) => Ok(Reply::Axes(self.axes(item)?)),
            Job::Slice { item, fixed, plane, most } => {
                Ok(Reply::Slice(self.slice(item, fixed, plane, *most, progress)?))
            }
            Job::Columns(item) => {
                let file = self.table(item)?;
                Ok(Reply::Columns { columns: table::columns(&file), rows: file.live_rows() })
            }
            Job::Rows { item, filter, offset, limit } => {
                let rows = table::rows(&self.table(item)?, filter, (*offset, *limit), progress)?;
                Ok(Reply::Rows { filter: filter.clone(), offset: *offset, rows })
            }
            Job::Count { item, filter } => {
                let rows = table::count(&self.table(item)?, filter, progress)?;
                Ok(Reply::Count { filter: filter.clone(), rows })
            }
            Job::Search { item, query } => Ok(Reply::Found(self.search(item, query, progress)?)),
            Job::Document { item, segment, document, query } => {
                Ok(Reply::Document(self.document(item, *segment, *document, query)?))
            }
            Job::Bytes(path) => self.bytes(path),
            Job::Verify(path) => verify(path, progress),
        }
    }

    /// Opens a file, or returns it if it is open and unchanged.
    fn container(&self, path: &Path) -> Result<Container, String> {
        let stamp = stamp(path)?;
        let mut open = lock(&self.open);
        if let Some(at) = open.iter().position(|(other, ..)| other == path) {
            let found = open.remove(at);
            if found.1 == stamp {
                let container = found.2.clone();
                open.push(found);
                return Ok(container);
            }
        }
        drop(open);
        let container = Container::open(path).or_message()?;
        let mut open = lock(&self.open);
        open.push((path.to_owned(), stamp, container.clone()));
        if open.len() > MAX_OPEN {
            open.remove(0);
        }
        Ok(container)
    }

    /// The `.tatami` file of an item, without deleted rows.
    fn table(&self, item: &Item) -> Result<TableFile, String> {
        match self.container(item.path())? {
            Container::Tatami(file) => file.without_deleted_documents().or_message(),
            _ => Err("not a .tatami file".to_owned()),
        }
    }

    fn children(&self, item: &Item) -> Result<Vec<Node>, String> {
        match item {
            Item::Directory(path) => entries(path),
            Item::File(path) => match self.container(path)? {
                Container::Tet(file) => {
                    let node = |dataset: tercet::tet::Dataset<'_>| {
                        let dtype = dataset.dtype().map_or("?", tercet::core::DType::name);
                        let note = format!("{dtype} {}", shape(dataset.shape()));
                        let name = dataset.name().to_owned();
                        Node::new(safe(&name), note, Item::Dataset { path: path.clone(), name })
                    };
                    Ok(file.datasets().map(node).collect())
                }
                Container::Tgm(file) => messages(&file, path, 0),
                Container::Tatami(file) => {
                    let rows = file.without_deleted_documents().or_message()?.live_rows();
                    let table = Node::new("table", counted(rows, "row"), Item::Table(path.clone()));
                    let columns = table::columns(&file).into_iter().enumerate().map(|(column, found)| {
                        Node::new(found.name, found.kind, Item::Column { path: path.clone(), column })
                    });
                    Ok(std::iter::once(table).chain(columns).collect())
                }
                _ => Err("unknown file format".to_owned()),
            },
            Item::More { path, from } => match self.container(path)? {
                Container::Tgm(file) => messages(&file, path, *from),
                _ => Err("not a .tgm file".to_owned()),
            },
            Item::Message { path, message } => match self.container(path)? {
                Container::Tgm(file) => objects(&file, path, *message),
                _ => Err("not a .tgm file".to_owned()),
            },
            _ => Ok(Vec::new()),
        }
    }

    fn bytes(&self, path: &Path) -> Result<Reply, String> {
        let options = OutlineOptions::new().with_max_rows(Some(MAX_ROWS));
        let outline = self.container(path)?.outline(options).or_message()?;
        let mut regions = Vec::new();
        outline.walk(&mut |depth, region| {
            if regions.len() < MAX_LINES {
                regions.push(RegionLine {
                    depth,
                    name: safe(&region.name),
                    start: region.span.start(),
                    end: region.span.end(),
                    value: region.value.as_deref().map(safe).unwrap_or_default(),
                });
            }
        });
        Ok(Reply::Bytes { file_len: outline.span.end(), regions })
    }
}

fn stamp(path: &Path) -> Result<Stamp, String> {
    let meta = std::fs::metadata(path).map_err(|error| format!("{}: {error}", shown(path)))?;
    Ok((meta.len(), meta.modified().ok()))
}

/// A path for people.
pub(crate) fn shown(path: &Path) -> String {
    safe(&path.to_string_lossy())
}

/// The last part of a path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| shown(path), |name| safe(&name.to_string_lossy()))
}

/// The directories and the containers in a directory. Hidden ones are not listed.
fn entries(path: &Path) -> Result<Vec<Node>, String> {
    let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", shown(path)))?;
    let mut found: Vec<(bool, PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", shown(path)))?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_directory = path.is_dir();
        if !is_hidden && (is_directory || Format::from_extension(&path).is_some()) {
            found.push((!is_directory, path));
        }
        if found.len() >= MAX_LINES {
            break;
        }
    }
    found.sort();
    let node = |(is_file, path): (bool, PathBuf)| {
        if is_file {
            let note = stamp(&path).map(|(len, _)| size(len)).unwrap_or_default();
            Node::new(file_name(&path), note, Item::File(path))
        } else {
            Node::new(format!("{}/", file_name(&path)), "", Item::Directory(path))
        }
    };
    Ok(found.into_iter().map(node).collect())
}

fn messages(file: &tercet::tgm::File, path: &Path, from: u64) -> Result<Vec<Node>, String> {
    let count = file.message_count().or_message()?;
    let end = count.min(from.saturating_add(PAGE));
    let mut nodes = Vec::new();
    for message in from..end {
        let note = file.message_span(message).map(|span| size(span.len())).unwrap_or_default();
        let item = Item::Message { path: path.to_owned(), message };
        nodes.push(Node::new(format!("message {message}"), note, item));
    }
    if end < count {
        let note = counted(count - end, "message");
        nodes.push(Node::new("more", note, Item::More { path: path.to_owned(), from: end }));
    }
    Ok(nodes)
}

fn objects(file: &tercet::tgm::File, path: &Path, message: u64) -> Result<Vec<Node>, String> {
    let opened = file.message(message).or_message()?;
    let node = |object: tercet::tgm::Object<'_>| {
        let (descriptor, index) = (object.descriptor(), object.index());
        let label = array::object_name(&opened, index).unwrap_or_else(|| format!("object {index}"));
        let note = format!("{} {}", descriptor.dtype.name(), shape(&descriptor.shape));
        Node::new(label, note, Item::Object { path: path.to_owned(), message, object: index })
    };
    opened.objects().take(MAX_LINES).map(|object| object.map(&node).or_message()).collect()
}

fn verify(path: &Path, progress: &dyn Progress) -> Result<Reply, String> {
    let report = tercet::verify(path, VerifyOptions::new(), progress).or_message();
    check(progress)?;
    let report = report?;
    let line = |finding: &tercet::core::Finding| {
        let site = finding.site.as_ref().map(|site| format!(" {}", site.region)).unwrap_or_default();
        let span = finding.site.as_ref().and_then(|site| site.span);
        let span = span.map(|span| format!(" (bytes {span})")).unwrap_or_default();
        let detail = finding.message.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        (finding.ok, message(&format!("{}{site}{span}{detail}", finding.code)))
    };
    // Problems first.
    let mut findings: Vec<_> = report.findings().iter().take(MAX_LINES).map(line).collect();
    findings.sort_by_key(|(is_ok, _)| *is_ok);
    Ok(Reply::Verified(Verified { is_ok: report.is_ok(), findings }))
}
