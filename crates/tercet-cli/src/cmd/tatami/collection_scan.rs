//! Scans of a collection directory.

use std::path::Path;

use tercet::core::escape;
use tercet::tatami::collection::CollectionScan;
use tercet::tatami::{Access, Collection, File, ReadOptions};

use super::columns::Columns;
use super::filter::Where;
use crate::args::limits;
use crate::failure::Failure;
use crate::input::Input;
use crate::output::display_path;
use crate::ui::Ui;

/// Opens the collection at the input path; `None` if it is a file.
pub(super) fn collection(input: &Input, out: &mut Ui) -> Result<Option<Collection>, Failure> {
    if !input.is_on_disk() || !input.path.is_dir() {
        return Ok(None);
    }
    let options =
        ReadOptions::new().with_access(Access::Pread).with_limits(limits()).with_allow_invalid_utf8(true);
    let collection = Collection::open_with(&input.path, options)?;
    if collection.manifest_path().exists() {
        collection.check_records()?;
        super::collection::warn(&input.path, &collection.replay().warnings, out)?;
        return Ok(Some(collection));
    }
    Err(Failure::request(format!("{}: directory without a manifest", display_path(&input.path)))
        .with_hint("create a collection with `tatami collection add DIR FILE…`"))
}

/// The first member, which has the columns of all members.
pub(super) fn first_of(collection: &Collection) -> Result<Option<File>, Failure> {
    Ok(collection.members().first().map(|member| collection.open_member(member)).transpose()?)
}

/// A scan of all members, with columns and filter checked against the first member.
pub(super) fn scan<'a>(
    collection: &'a Collection,
    first: &File,
    columns: &Columns,
    filter: &Where,
) -> Result<CollectionScan<'a>, Failure> {
    let mut scan = collection.scan();
    if let Some(names) = columns.names()? {
        columns.positions_in(first)?;
        scan = scan.columns(&names)?;
    }
    if let Some(predicate) = filter.bind_to(first)? {
        scan = scan.filter(&predicate)?;
    }
    Ok(scan)
}

/// The number of deleted documents of a segment; 0 for other files.
pub(super) fn deleted_rows(file: &File) -> Result<u64, Failure> {
    let is_marked = file.footer().inverted.is_some_and(|inverted| inverted.live_length > 0);
    let segment = if is_marked { file.segment()? } else { None };
    Ok(segment.map_or(0, |segment| segment.document_count() - segment.live_document_count()))
}

/// Prints a note about rows of deleted documents.
pub(super) fn note_deleted(name: &str, count: u64, out: &mut Ui) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let (name, rows) = (escape::name(name), if count == 1 { "row" } else { "rows" });
    out.note(format_args!(
        "{name}: includes {count} {rows} of deleted documents; remove them with `tatami merge`"
    ))
}

/// The number of deleted documents in all scanned members. If the first member is not a segment, none is.
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

/// The name of a directory.
pub(super) fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
