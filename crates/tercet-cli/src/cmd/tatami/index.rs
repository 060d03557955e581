//! `tatami index`: index documents into a search segment.

use std::path::PathBuf;

use serde::Serialize;
use tercet::core::num::counted;
use tercet::core::{Progress as _, Sink};
use tercet::tatami::WriterOptions;
use tercet::tatami::search::build::Built;
use tercet::tatami::search::{Document, SegmentBuilder, SegmentOptions, StorageMode};

use crate::args::{ForceArgs, JsonArgs, ProfileName};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Spool, deliver};
use crate::render::{human_size, parse_size};
use crate::ui::{Bar, Ui, WARN, is_interrupted, paint};

mod files;
mod html;
mod jsonl;
mod markdown;
#[cfg(feature = "arrow")]
mod parquet;
mod trec;

use files::{Found, Kind, Source};

const EXAMPLES: &str = "\
Examples:
  tatami index docs/ -o docs.tatami
  tatami index notes.md page.html -o few.tatami --url-prefix https://example.org/
  tatami index crawl.jsonl -o crawl.tatami --snippet-only
  tatami index articles.jsonl -o articles.tatami --url-field link --body-field text
  tatami index pages.parquet -o pages.tatami --body-field markdown

The file type follows the extension: .txt, .md, .html, .jsonl, .trec and .parquet, or --format. Directories are searched \
recursively, in the order of file names. Binary and compressed files are not indexed.

The URL of a document is --url-prefix followed by its path in the directory. Its ID is the SHA-256 of the URL, unless \
the JSONL line, Parquet row or TREC document has an ID.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Input directories and files
    #[arg(value_name = "PATH", required = true)]
    inputs: Vec<PathBuf>,
    /// Output file or URL; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Store only the first N characters of each document [default N: 200]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "200")]
    snippet_only: Option<usize>,
    /// File type [default: by extension]
    #[arg(long, value_name = "KIND", value_enum)]
    format: Option<Kind>,
    /// Prefix of document URLs
    #[arg(long, value_name = "TEXT", default_value = "")]
    url_prefix: String,
    /// Output profile; `interop` writes only features that other readers support
    #[arg(long, value_name = "PROFILE", value_enum, default_value_t)]
    profile: ProfileName,
    /// Indexing buffer; spills to temporary files beyond this size
    #[arg(long, alias = "memory", value_name = "SIZE", default_value = "128MiB", value_parser = parse_size)]
    buffer: u64,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    // Last: its heading also applies to the options after it.
    #[command(flatten)]
    names: jsonl::Names,
}

/// Warnings about files of other formats that are printed.
const MAX_BINARY_FILES: usize = 10;

/// An input document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Page {
    id: Option<String>,
    url: String,
    title: String,
    body: String,
    anchor: String,
}

/// The summary of a written segment.
#[derive(Debug, Serialize)]
struct IndexJson {
    path: String,
    documents: u64,
    terms: u64,
    bytes: u64,
    input_bytes: u64,
    /// Skipped files of directories.
    files_skipped: u64,
}

/// Warnings about the input.
#[derive(Debug, Default)]
struct Warnings {
    /// Skipped files of directories that are not text, with their formats.
    binary_files: Vec<(String, String)>,
    /// Files with invalid UTF-8.
    not_utf8: u64,
    /// Files with documents without text, and their number.
    no_text: Vec<(String, u64)>,
}

impl Warnings {
    fn no_text(&mut self, source: &Source, documents: u64) {
        if documents > 0 {
            self.no_text.push((crate::output::display_path(&source.path), documents));
        }
    }

    fn print(&self, out: &mut Ui) -> Result<(), Failure> {
        for (name, format) in self.binary_files.iter().take(MAX_BINARY_FILES) {
            out.note(format_args!("{} skipped {name}: is {format}", paint(WARN, "warning:")))?;
        }
        if let Some(more @ 1..) = self.binary_files.len().checked_sub(MAX_BINARY_FILES) {
            let more = counted(more as u64, "more file");
            out.note(format_args!("{} skipped {more} of binary formats", paint(WARN, "warning:")))?;
        }
        for (name, documents) in &self.no_text {
            let (plural, have) = if *documents == 1 { ("", "has") } else { ("s", "have") };
            out.note(format_args!(
                "{documents} document{plural} of {name} {have} no text: no field `body`, `text` or `contents`; \
                 set the field with `--body-field`"
            ))?;
        }
        match self.not_utf8 {
            0 => Ok(()),
            1 => out.note("1 file has invalid UTF-8, which is not indexed"),
            count => out.note(format_args!("{count} files have invalid UTF-8, which is not indexed")),
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::open(&args.output, args.force.force)?;
    output.reserve_stdout(out)?;
    let Found { sources, skipped, binary_files } = files::all(&args.inputs, args.format, &args.output)?;
    let input_bytes = sources.iter().map(|source| source.bytes).sum();
    let bar = out.bar("indexing", input_bytes);
    let (name, mut warnings) = (output.name(), Warnings { binary_files, ..Warnings::default() });
    let (documents, terms, bytes) = if let Output::Path(path) = &output {
        let builder = SegmentBuilder::create(path, args.options().with_overwrite(args.force.force))?;
        let Built { written, terms, .. } = args.build(builder, &sources, &bar, &mut warnings)?;
        (written.rows, terms, written.bytes)
    } else {
        let builder = SegmentBuilder::new(Spool::new()?, args.options())?;
        let Built { written, terms, .. } = args.build(builder, &sources, &bar, &mut warnings)?;
        (written.rows, terms, deliver(written.output, output, out)?)
    };
    drop(bar);
    let files_skipped = skipped + warnings.binary_files.len() as u64;
    let summary = IndexJson { path: name, documents, terms, bytes, input_bytes, files_skipped };
    show(&summary, skipped, args.json.json, out)?;
    warnings.print(out)?;
    Ok(Outcome::Done)
}

impl Args {
    /// Indexes all files.
    fn build<S: Sink + Send>(
        &self,
        mut builder: SegmentBuilder<S>,
        sources: &[Source],
        bar: &Bar,
        warnings: &mut Warnings,
    ) -> Result<Built<S::Output>, Failure> {
        let mut add = |page: &Page| -> Result<(), Failure> {
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            let mut document = Document::new(&page.url, &page.title)
                .with_body(page.body.as_bytes())
                .with_anchor(page.anchor.as_bytes());
            document.doc_id = page.id.as_deref();
            Ok(builder.add(&document)?)
        };
        for wave in files::waves(sources) {
            self.read(wave, bar, &mut add, warnings)?;
        }
        Ok(builder.finish()?)
    }

    fn options(&self) -> SegmentOptions {
        let writer = match self.profile {
            ProfileName::Native => WriterOptions::new(),
            ProfileName::Interop => WriterOptions::interop(),
        };
        let mode = self.snippet_only.map_or(StorageMode::Full, StorageMode::Snippet);
        SegmentOptions::new().with_mode(mode).with_writer(writer).with_memory_bytes(self.buffer)
    }

    /// Reads files: those with one document in parallel, others sequentially.
    fn read(
        &self,
        wave: &[Source],
        bar: &Bar,
        add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
        warnings: &mut Warnings,
    ) -> Result<(), Failure> {
        use rayon::prelude::*;

        match wave {
            [source] if source.kind == Kind::Jsonl => {
                warnings.no_text(source, jsonl::read(source, &self.names, bar, add)?);
            }
            [source] if source.kind == Kind::Trec => {
                warnings.not_utf8 += u64::from(!trec::read(source, bar, add)?);
            }
            #[cfg(feature = "arrow")]
            [source] if source.kind == Kind::Parquet => {
                warnings.no_text(source, parquet::read(source, &self.names, bar, add)?);
            }
            wave => {
                let pages: Vec<(Page, bool)> = wave
                    .par_iter()
                    .map(|source| files::page(source, &self.url_prefix))
                    .collect::<Result<_, _>>()?;
                for ((page, is_utf8), source) in pages.iter().zip(wave) {
                    warnings.not_utf8 += u64::from(!is_utf8);
                    add(page)?;
                    bar.advance(source.bytes);
                }
            }
        }
        Ok(())
    }
}

fn show(summary: &IndexJson, skipped: u64, json: bool, out: &mut Ui) -> Result<(), Failure> {
    if json {
        return out.json(summary);
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    out.summary(format_args!(
        "{}: {} document{}, {} term{}, {} (from {})",
        summary.path,
        summary.documents,
        plural(summary.documents),
        summary.terms,
        plural(summary.terms),
        human_size(summary.bytes),
        human_size(summary.input_bytes),
    ))?;
    match skipped {
        0 => Ok(()),
        1 => out.side_summary("skipped 1 file with an unsupported extension"),
        count => out.side_summary(format_args!("skipped {count} files with unsupported extensions")),
    }
}
