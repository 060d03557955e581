//! `tatami index`: documents made a search segment.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::core::Progress as _;
use tercet::tatami::search::build::Built;
use tercet::tatami::search::{Document, SegmentBuilder, SegmentOptions, StorageMode};
use tercet::tatami::{Error, Profile, WriterOptions};

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::render::{human_size, parse_size};
use crate::ui::{Bar, Ui, is_interrupted};

mod files;
mod html;
mod jsonl;
mod markdown;
#[cfg(feature = "arrow")]
mod parquet;
mod trec;

use files::{Kind, Source};

const EXAMPLES: &str = "\
Examples:
  tatami index docs/ -o docs.tatami
  tatami index notes.md page.html -o few.tatami --url-prefix https://example.org/
  tatami index crawl.jsonl -o crawl.tatami --snippet-only
  tatami index articles.jsonl -o articles.tatami --url-field link --body-field text
  tatami index pages.parquet -o pages.tatami --body-field markdown

The kind of a file is known by its name: .txt, .md, .html, .jsonl, .trec and .parquet, or is told with --format. Of a folder \
all such files are taken, in the order of their names.

The address of a document is the path of its file within the folder, behind --url-prefix. Its identity is the \
SHA-256 of the address, unless a line of JSONL, a row of Parquet or a document of TREC has its own.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folders and files with documents
    #[arg(value_name = "PATH", required = true)]
    inputs: Vec<PathBuf>,
    /// The file to make
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Keep only the beginnings of the documents: N characters, 200 if it is not said
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "200")]
    snippet_only: Option<usize>,
    /// What the files are, whatever their names
    #[arg(long, value_name = "KIND", value_enum)]
    format: Option<Kind>,
    /// What stands before the path in the address of a document
    #[arg(long, value_name = "TEXT", default_value = "")]
    url_prefix: String,
    #[command(flatten)]
    names: jsonl::Names,
    /// Whom the file is for: `interop` for all readers of the format
    #[arg(long, value_name = "PROFILE", default_value = "native", value_parser = ["native", "interop"])]
    profile: String,
    /// Bytes of sorted words that wait in memory; more wait in temporary files
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = parse_size)]
    memory: u64,
    /// Work on at most N threads; without it, on all that there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    /// Tell the result as JSON
    #[arg(long)]
    json: bool,
}

/// A document that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Page {
    id: Option<String>,
    url: String,
    title: String,
    body: String,
    anchor: String,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Told {
    path: String,
    documents: u64,
    terms: u64,
    bytes: u64,
    input_bytes: u64,
    /// Files of folders that are no documents.
    files_skipped: u64,
}

/// What is not as one would expect it, but keeps nothing from being read.
#[derive(Debug, Default)]
struct Odd {
    /// Files with bytes that are not UTF-8.
    not_utf8: u64,
    /// Files whose documents have no text, and how many they are.
    no_text: Vec<(String, u64)>,
}

impl Odd {
    fn no_text(&mut self, source: &Source, documents: u64) {
        if documents > 0 {
            self.no_text.push((crate::output::shown(&source.path), documents));
        }
    }

    fn tell(&self, out: &mut Ui) -> Result<(), Failure> {
        for (name, documents) in &self.no_text {
            let (plural, have) = if *documents == 1 { ("", "has") } else { ("s", "have") };
            out.note(format_args!(
                "{documents} document{plural} of {name} {have} no text: no field is called body, text or contents \
                 (`--body-field` names it)"
            ))?;
        }
        match self.not_utf8 {
            0 => Ok(()),
            1 => out.note("1 file has bytes that are not UTF-8: they are not searched"),
            count => {
                out.note(format_args!("{count} files have bytes that are not UTF-8: they are not searched"))
            }
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(threads) = args.threads {
        // Only the first pool counts; in tests, which share a process, that is the one of the first test.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global();
    }
    let Output::Path(path) = Output::of(&args.output, args.force)? else {
        return Err(Failure::request("a search segment is written to a file of this machine"));
    };
    let (sources, files_skipped) = files::all(&args.inputs, args.format, &args.output)?;
    let input_bytes = sources.iter().map(|source| source.bytes).sum();
    let bar = out.bar("indexing", input_bytes);
    let start = if args.force { SegmentBuilder::create_path } else { SegmentBuilder::create_new };
    let mut builder = start(&path, args.options())?;
    let mut add = |page: &Page| -> Result<(), Failure> {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let mut document = Document::new(&page.url, &page.title)
            .with_body(page.body.as_bytes())
            .with_anchor(page.anchor.as_bytes());
        document.doc_id = page.id.as_deref();
        builder.add(&document).map_err(|fault| named(&path, fault))
    };
    let mut odd = Odd::default();
    for wave in files::waves(&sources) {
        args.read(wave, &bar, &mut add, &mut odd)?;
    }
    let Built { written, terms, .. } = builder.finish().map_err(|fault| named(&path, fault))?;
    drop(bar);
    let told = Told {
        path: crate::output::shown(&path),
        documents: written.rows,
        terms,
        bytes: written.bytes,
        input_bytes,
        files_skipped,
    };
    show(&told, args.json, out)?;
    odd.tell(out)?;
    Ok(Outcome::Done)
}

fn named(path: &Path, fault: tercet::tatami::ErrorKind) -> Failure {
    Error::new(path.to_string_lossy().into(), fault).into()
}

impl Args {
    fn options(&self) -> SegmentOptions {
        let writer = if self.profile == "interop" { WriterOptions::interop() } else { WriterOptions::new() };
        debug_assert!(self.profile == "interop" || writer.profile == Profile::Native);
        let mode = self.snippet_only.map_or(StorageMode::Full, StorageMode::Snippet);
        SegmentOptions::new().with_mode(mode).with_writer(writer).with_memory_bytes(self.memory)
    }

    /// Reads some files: those of one document each on all threads, others as they come.
    fn read(
        &self,
        wave: &[Source],
        bar: &Bar,
        add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
        odd: &mut Odd,
    ) -> Result<(), Failure> {
        use rayon::prelude::*;

        match wave {
            [source] if source.kind == Kind::Jsonl => {
                odd.no_text(source, jsonl::read(source, &self.names, bar, add)?);
            }
            [source] if source.kind == Kind::Trec => {
                odd.not_utf8 += u64::from(!trec::read(source, bar, add)?);
            }
            #[cfg(feature = "arrow")]
            [source] if source.kind == Kind::Parquet => {
                odd.no_text(source, parquet::read(source, &self.names, bar, add)?);
            }
            wave => {
                let pages: Vec<(Page, bool)> = wave
                    .par_iter()
                    .map(|source| files::page(source, &self.url_prefix))
                    .collect::<Result<_, _>>()?;
                for ((page, is_utf8), source) in pages.iter().zip(wave) {
                    odd.not_utf8 += u64::from(!is_utf8);
                    add(page)?;
                    bar.advance(source.bytes);
                }
            }
        }
        Ok(())
    }
}

fn show(told: &Told, json: bool, out: &mut Ui) -> Result<(), Failure> {
    if json {
        return out.json(told);
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    out.line(format_args!(
        "{}: {} document{}, {} word{}, {} (from {})",
        told.path,
        told.documents,
        plural(told.documents),
        told.terms,
        plural(told.terms),
        human_size(told.bytes),
        human_size(told.input_bytes),
    ))?;
    match told.files_skipped {
        0 => Ok(()),
        1 => out.note("1 file was left out: its name tells of no documents"),
        count => out.note(format_args!("{count} files were left out: their names tell of no documents")),
    }
}
