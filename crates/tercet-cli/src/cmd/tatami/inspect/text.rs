//! The text output of `inspect`, in the format of the reference implementation.

use tercet::core::escape;
use tercet::tatami::File;
use tercet::tatami::format::Chunk;
use tercet::tatami::format::{Codec, Encoding, file_flags, requires};

use crate::cmd::tatami::open::total;
use crate::failure::Failure;
use crate::ui::Ui;

pub(super) fn print(file: &File, out: &mut Ui) -> Result<(), Failure> {
    let (header, footer) = (file.header(), file.footer());
    out.line(format_args!("file:    {}", escape::name(file.name())))?;
    out.line(format_args!("version: {}.{}", header.major, header.minor))?;
    out.line(format_args!("rows:    {}", header.rows))?;
    out.line(format_args!("groups:  {}", footer.groups.len()))?;
    out.line(format_args!("role:    {}", role(file)))?;
    if let Some(features) = required_features(file) {
        out.line(format_args!("required features: {features}"))?;
    }
    let statistics = footer.statistics;
    out.line(format_args!(
        "size:    {} compressed / {} uncompressed ({:.2}x)",
        statistics.stored_bytes,
        statistics.raw_bytes,
        ratio(statistics.raw_bytes, statistics.stored_bytes),
    ))?;
    out.line("columns:")?;
    for column in 0..footer.schema.len() {
        print_column(file, column, out)?;
    }
    if let Some(key) = footer.schema.sort_key() {
        let name = escape::name(&footer.schema.fields()[key].name);
        out.line(format_args!("sorted:  by {name} (sparse primary-key index)"))?;
    }
    if !footer.indexes.is_empty() {
        out.line(format_args!("blooms:  {} membership filters", footer.indexes.len()))?;
    }
    if !footer.dictionaries.is_empty() {
        let bytes = total(footer.dictionaries.iter().map(|entry| entry.raw_bytes));
        out.line(format_args!("dicts:   {} ({bytes} uncompressed bytes)", footer.dictionaries.len()))?;
    }
    if !footer.pairs.is_empty() {
        out.line("metadata:")?;
        for (key, value) in &footer.pairs {
            out.line(format_args!("  {} = {}", escape::name(key), escape::name(value)))?;
        }
    }
    Ok(())
}

/// The role of a file in a collection.
fn role(file: &File) -> &'static str {
    if file.header().has(file_flags::ROLE_SEARCH_SEG) { "search-segment" } else { "document-store" }
}

/// The features required to read the file, if recorded.
fn required_features(file: &File) -> Option<String> {
    match file.required_features() {
        0 => file.footer().features.is_some().then(|| "reference".to_owned()),
        bits => Some(format!("tercet ({})", requires::names(bits).join(", "))),
    }
}

/// The compression ratio; 1 without payloads.
#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn ratio(raw: u64, stored: u64) -> f64 {
    if stored == 0 { 1.0 } else { raw as f64 / stored as f64 }
}

fn print_column(file: &File, column: usize, out: &mut Ui) -> Result<(), Failure> {
    let footer = file.footer();
    let field = &footer.schema.fields()[column];
    let chunks = || footer.groups.iter().filter_map(|group| group.chunks.get(column));
    let last = chunks().last();
    let sum = |number: fn(&Chunk) -> u64| total(chunks().map(number));
    out.line(format_args!(
        "  {:<20} {:<16} enc={} codec={} values={} nulls={} pages={} {}->{} bytes",
        escape::name(&field.name),
        field.kind,
        last.map_or(Encoding::Plain, |chunk| chunk.encoding),
        last.map_or(Codec::None, |chunk| chunk.codec),
        sum(|chunk| chunk.values),
        sum(|chunk| chunk.nulls),
        sum(|chunk| chunk.pages),
        sum(|chunk| chunk.raw_bytes),
        sum(|chunk| chunk.stored_bytes),
    ))?;
    let blob = footer.blobs.iter().find(|blob| blob.column == column as u64);
    if let Some(blob) = blob.filter(|blob| !blob.runs.is_empty()) {
        let raw = total(blob.runs.iter().map(|run| run.raw_bytes));
        let stored = total(blob.runs.iter().map(|run| run.stored_bytes));
        let shared = if blob.dictionary > 0 { ", shared dict" } else { "" };
        let runs = blob.runs.len();
        out.line(format_args!("{:20}     blob region: {raw}->{stored} bytes in {runs} runs{shared}", ""))?;
    }
    let tags = [
        ("zone-map", chunks().any(|chunk| chunk.zone.is_some())),
        ("page-index", chunks().any(|chunk| chunk.page_index.is_some())),
        ("bloom", chunks().any(|chunk| chunk.bloom.is_some())),
        ("sort-key", field.sort_key),
    ];
    let tags: Vec<&str> = tags.into_iter().filter_map(|(tag, applies)| applies.then_some(tag)).collect();
    if tags.is_empty() {
        return Ok(());
    }
    out.line(format_args!("{:20}     index: {}", "", tags.join(", ")))
}

/// The one-line summary.
pub(super) fn one_line(file: &File) -> String {
    let header = file.header();
    format!(
        "path={} file_len={} version={}.{} rows={} groups={} columns={} role={}",
        escape::name(file.name()),
        file.len(),
        header.major,
        header.minor,
        header.rows,
        file.group_count(),
        file.schema().len(),
        role(file),
    )
}
