//! A folder of files that are asked as one.

use std::path::Path;

use tercet::core::escape;
use tercet::tatami::collection::CollectionScan;
use tercet::tatami::{Access, Collection, File, ReadOptions};

use super::columns::Columns;
use super::condition::Where;
use crate::failure::Failure;
use crate::input::Input;
use crate::output::shown;
use crate::ui::Ui;

/// The collection that an input names; none if it is a file.
pub(super) fn collection(input: &Input, out: &mut Ui) -> Result<Option<Collection>, Failure> {
    if !input.is_on_disk() || !input.path.is_dir() {
        return Ok(None);
    }
    let options = ReadOptions::new().with_access(Access::Pread).with_invalid_utf8(true);
    let collection = Collection::open_with(&input.path, options)?;
    if collection.manifest_path().exists() {
        super::collection::warn(&input.path, &collection.replay().warnings, out)?;
        return Ok(Some(collection));
    }
    Err(Failure::request(format!("{}: is a folder without a manifest", shown(&input.path)))
        .with_hint("`tatami collection add DIR FILE…` makes it a collection"))
}

/// The first member, which tells the columns of all.
pub(super) fn first_of(collection: &Collection) -> Result<Option<File>, Failure> {
    Ok(collection.members().first().map(|member| collection.open_member(member)).transpose()?)
}

/// A question about some columns and rows of all members, checked against the first of them.
pub(super) fn question<'a>(
    collection: &'a Collection,
    first: &File,
    columns: &Columns,
    condition: &Where,
) -> Result<CollectionScan<'a>, Failure> {
    let mut scan = collection.scan();
    if let Some(names) = columns.names()? {
        columns.of(first)?;
        scan = scan.columns(&names);
    }
    if let Some(condition) = condition.of(first)? {
        scan = scan.filter(&condition);
    }
    Ok(scan)
}

/// Rows of a segment that are documents which were deleted; 0 of other files.
pub(super) fn deleted_rows(file: &File) -> Result<u64, Failure> {
    let is_marked = file.footer().inverted.is_some_and(|inverted| inverted.live_length > 0);
    let segment = if is_marked { file.segment()? } else { None };
    Ok(segment.map_or(0, |segment| segment.document_count() - segment.live_document_count()))
}

/// Says that rows of deleted documents are among those that are told.
pub(super) fn note_deleted(name: &str, count: u64, out: &mut Ui) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let (name, rows) = (escape::name(name), if count == 1 { "row is" } else { "rows are" });
    out.note(format_args!("{name}: {count} {rows} of deleted documents, which `tatami merge` leaves out"))
}

/// Rows of deleted documents in the files that are asked. Where the first is no segment, none is, and none is opened again.
pub(super) fn deleted_in_all(
    scan: &CollectionScan<'_>,
    collection: &Collection,
    first: &File,
) -> Result<u64, Failure> {
    let mut sum = 0;
    let members = if first.footer().inverted.is_some() { scan.members()? } else { Vec::new() };
    for member in members {
        sum += deleted_rows(&collection.open_member(&member)?)?;
    }
    Ok(sum)
}

/// The name of a folder as it is told.
pub(super) fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
