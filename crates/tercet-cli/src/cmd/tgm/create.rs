//! `tgm create`: create a message from arrays.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tercet::core::limits::check_limit;
use tercet::core::publish::PublishError;
use tercet::core::{Class, CommonError, Diagnostic as _, Progress as _, Sink as _, Span, escape};
use tercet::tgm::{
    self, EncodeError, EncodeOptions, ErrorKind, GlobalMetadata, Provenance, StreamingEncoder, Writer,
    WriterOptions,
};

use super::Globals;
use super::open::ReadArgs;
use super::pipeline::Pipeline;
use super::tail::seconds;
use crate::args::{ForceArgs, OutputArgs, limits};
use crate::failure::{Failure, Outcome, hint_text};
use crate::input::open;
use crate::named_file::{NamedFile, named_file};
use crate::output::{
    Output, Spool, Stream, display_path, json_path, readable_copy, stream_failure, stream_file,
};
use crate::render::{exact, human_size};
use crate::ui::{Bar, Ui, WARN, paint};

pub(super) mod arrays;
mod meta;
mod stored;

use arrays::{Object, Payload, total_bytes};
use meta::Pair;
use stored::StoredObject;

/// Interval of attempts to append to a file that another command creates.
const CREATED_INTERVAL: Duration = Duration::from_millis(5);

const STDOUT: &str = "standard output";

const EXAMPLES: &str = "\
Examples:
  tgm create run.tgm --from t2m=t2m.npy --from land=land.npy --meta step=6
  tgm create run.tgm --append --from t2m=next.npy --meta mars.step=12
  tgm create - --stream --from t2m=t2m.npy | ssh host 'cat > run.tgm'
  tgm create run.tgm --from t2m=t2m.npy --filter shuffle --compression zstd
  tgm create run.tgm --from t2m=t2m.npy --encoding simple_packing --bits 24 --compression szip
  tgm create run.tgm --from t2m=t2m.npy --max-error 0.01 --widen --allow-nan

A value of `--meta` is parsed as JSON if possible: numbers, `true`, `false`, `null`, `[…]`, `{…}` and quoted strings. \
Anything else is a string, and so is a decimal number that would lose digits, like 130.10. Dots in a key nest maps: `mars.step=6` sets `step` in `mars`.

The pipeline options apply to every array.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
    /// Add the array in FILE as object NAME: `t2m=t2m.npy`. Repeatable
    #[arg(long, value_name = "NAME=FILE", required = true, value_parser = named_file())]
    from: Vec<NamedFile>,
    /// Set metadata of the message, or of an object by its name: `step=6`, `mars.class=od`, `t2m:units=K`. Repeatable
    #[arg(long, value_name = "[NAME:]KEY=VALUE", value_parser = meta::pair)]
    meta: Vec<Pair>,
    /// Like --meta, but the value is always a string: `id=007`. Repeatable
    #[arg(long, value_name = "[NAME:]KEY=VALUE", value_parser = meta::string_pair)]
    meta_str: Vec<Pair>,
    /// Read metadata from a JSON file: keys of the message, and in `base` those of objects by name
    #[arg(long, value_name = "FILE")]
    meta_json: Option<PathBuf>,
    /// Append the message to an existing file
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Wait at most SECONDS for another process that changes the file
    #[arg(long, value_name = "SECONDS", requires = "append", default_value = "600", value_parser = seconds)]
    lock_timeout: Duration,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    pipeline: Pipeline,
}

/// Writer options of a message.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Style {
    /// Write a streamed message: one object in memory at a time; index and hashes follow the objects
    #[arg(long)]
    stream: bool,
    /// Omit hashes; damage cannot be detected
    #[arg(long)]
    no_hash: bool,
    /// Omit timestamp, UUID and producer, for reproducible output
    #[arg(long)]
    reproducible: bool,
}

/// Parses a value as JSON, or else as a string.
pub(super) fn json_or_text(text: &str) -> Result<tgm::Value, String> {
    meta::parse(text)
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
    args.pipeline.check()?;
    let output = Output::open(args.output.path(), args.force.force || args.append)?;
    args.from.iter().try_for_each(|from| output.must_not_be(&from.path))?;
    let metadata = args.metadata()?;
    meta::notes(&args.meta).try_for_each(|note| out.note(note))?;
    let objects = arrays::open(&args.from, &args.pipeline, out)?;
    let options = args.options(globals);
    match output {
        Output::Stdout if args.append => {
            return Err(Failure::request("`--append` requires a file"));
        }
        Output::Stream(stream) if args.append => return Err(stream.cannot_append()),
        Output::Stdout => {
            let bar = out.bar("writing", total_bytes(&objects));
            args.send(&metadata, &objects, options, out.bytes()?, &bar, &of_stdout)?;
        }
        Output::Stream(stream) => args.stream(stream, &metadata, &objects, options, out)?,
        Output::Path(path) => {
            let mut done = args.write(&path, &metadata, &objects, options.clone(), out)?;
            // Another command created the file: append to it.
            while !done {
                done = args.write(&path, &metadata, &objects, options.clone(), out)?;
            }
        }
    }
    Ok(Outcome::Done)
}

impl Args {
    fn metadata(&self) -> Result<GlobalMetadata, Failure> {
        let pairs = [&self.meta[..], &self.meta_str[..]].concat();
        let names = || self.from.iter().map(|from| from.name.as_str());
        meta::check_objects(&pairs, names())?;
        let (mut extra, mut objects) = match &self.meta_json {
            Some(path) => read_json(path)?,
            None => (tgm::Entry::new(), BTreeMap::new()),
        };
        if let Some(name) = objects.keys().find(|name| !names().any(|known| known == name.as_str())) {
            let path = self.meta_json.as_deref().map(display_path).unwrap_or_default();
            return Err(Failure::request(format!(
                "{path}: `base`: no object is named `{}`",
                escape::name(name)
            )));
        }
        // Options replace values of the file.
        extra.extend(meta::section(&pairs, None)?);
        let mut entry = |name: &str| {
            let mut entry = objects.remove(name).unwrap_or_default();
            entry.extend(meta::section(&pairs, Some(name))?);
            entry.insert("name".to_owned(), name.into());
            Ok::<_, Failure>(entry)
        };
        let base = names().map(&mut entry).collect::<Result<_, _>>()?;
        Ok(GlobalMetadata { base, extra, ..GlobalMetadata::default() })
    }

    fn options(&self, globals: &Globals) -> EncodeOptions {
        let options = globals.encode_options(false).with_hash(!self.style.no_hash);
        let options = options.with_max_error(self.pipeline.max_error());
        if self.style.reproducible { options.with_provenance(Provenance::Off) } else { options }
    }

    /// Writes the message to a file; returns whether it is done. It is not if another command created the file that
    /// `--append` would create.
    fn write(
        &self,
        path: &Path,
        metadata: &GlobalMetadata,
        objects: &[Object],
        options: EncodeOptions,
        out: &mut Ui,
    ) -> Result<bool, Failure> {
        let (mut writer, before) = match (self.append, self.force.force) {
            (true, _) => extend(path, self.lock_timeout, out)?,
            (false, overwrite) => (Writer::create(path, WriterOptions::new().with_overwrite(overwrite))?, 0),
        };
        // An updated index is as reproducible as the message.
        writer = writer.with_provenance(options.provenance.clone());
        let bar = out.bar("writing", total_bytes(objects));
        let raw: Vec<(String, u64)> =
            objects.iter().map(|object| (object.name().to_owned(), object.bytes())).collect();
        if self.style.stream {
            writer.stream(metadata, options, |encoder| write_each(encoder, objects, &bar, &Failure::from))?;
        } else {
            let payloads = read_all(objects)?;
            let made = writer.message(metadata, &paired(objects, &payloads), &options);
            made.map_err(|error| explained(error, objects))?;
        }
        bar.check().map_err(|_| Failure::Interrupted)?;
        match writer.finish() {
            Err(error) if self.append && is_created_by_another(&error) => return Ok(false),
            finished => finished?,
        };
        drop(bar);
        let file = tgm::File::open_with(path, tgm::ReadOptions::new().with_allow_gaps(true))?;
        // Other commands may have appended more messages since.
        let added = file.message_span(before)?.len();
        let message = || Ok(file.message(before)?);
        self.show(&Added { number: before, bytes: added, raw }, message, out)?;
        Ok(true)
    }

    /// Writes the message to an object, or through a temporary file to a pipe or device, which cannot be read again.
    fn stream(
        &self,
        mut stream: Stream,
        metadata: &GlobalMetadata,
        objects: &[Object],
        options: EncodeOptions,
        out: &mut Ui,
    ) -> Result<(), Failure> {
        let bar = out.bar("writing", total_bytes(objects));
        let raw: Vec<(String, u64)> =
            objects.iter().map(|object| (object.name().to_owned(), object.bytes())).collect();
        let name = stream.name();
        let to_failure = |fault: ErrorKind| match fault {
            ErrorKind::Common(CommonError::Write(cause)) => stream_failure(&cause),
            fault => tgm::Error::new(Arc::clone(&name), fault).into(),
        };
        let (bytes, copy) = match stream {
            Stream::Object(_) => {
                self.send(metadata, objects, options, &mut stream, &bar, &to_failure)?;
                bar.check().map_err(|_| Failure::Interrupted)?;
                (stream.finish()?, None)
            }
            Stream::Device(_) => {
                let mut spool = Spool::new()?;
                self.send(metadata, objects, options, &mut spool, &bar, &to_failure)?;
                bar.check().map_err(|_| Failure::Interrupted)?;
                let file = spool.finish().map_err(|error| to_failure(error.into()))?;
                let copy = readable_copy(&name, &file)?;
                (stream_file(file, stream)?, Some(copy))
            }
        };
        drop(bar);
        let options = ReadArgs::default().options();
        let message = || {
            let source = copy.map_or_else(|| open(self.output.path()), Ok)?;
            Ok(tgm::File::from_source(source, options)?.message(0)?)
        };
        self.show(&Added { number: 0, bytes, raw }, message, out)
    }

    /// Prints the summary of the written message, which is read again for the pipelines of its objects.
    fn show(
        &self,
        added: &Added,
        message: impl FnOnce() -> Result<tgm::Message, Failure>,
        out: &mut Ui,
    ) -> Result<(), Failure> {
        let Added { number, bytes, raw } = added;
        if out.is_json() {
            let (file, objects) = (json_path(self.output.path()), stored::read(&message()?, raw)?);
            return out.json(&CreateJson { file, message: *number, bytes: *bytes, objects });
        }
        if out.is_quiet() {
            return Ok(());
        }
        let (path, count, size) = (display_path(self.output.path()), raw.len(), human_size(*bytes));
        let plural = if count == 1 { "" } else { "s" };
        out.line(format_args!("{path}: message {number} with {count} object{plural}, {size}"))?;
        if self.pipeline.is_given() { stored::print(&message()?, raw, out) } else { Ok(()) }
    }

    /// Writes a message to a sink that cannot seek.
    fn send(
        &self,
        metadata: &GlobalMetadata,
        objects: &[Object],
        options: EncodeOptions,
        sink: &mut dyn Write,
        bar: &Bar,
        to_failure: &dyn Fn(ErrorKind) -> Failure,
    ) -> Result<(), Failure> {
        if self.style.stream {
            let encoder = StreamingEncoder::new(sink, metadata, options);
            let to_failure = |error: tgm::Error| to_failure(error.into_kind());
            let mut encoder = encoder.map_err(to_failure)?;
            write_each(&mut encoder, objects, bar, &to_failure)?;
            // The sink cannot seek: the length field of the preamble stays 0.
            encoder.finish().map_err(to_failure)?;
        } else {
            let payloads = read_all(objects)?;
            let message = tgm::encode_message(metadata, &paired(objects, &payloads), &options);
            let message = message.map_err(|error| explained(error, objects))?;
            sink.write_all(&message).map_err(|error| to_failure(error.into()))?;
        }
        Ok(())
    }
}

/// The metadata of `--meta-json`.
fn read_json(path: &Path) -> Result<(tgm::Entry, BTreeMap<String, tgm::Entry>), Failure> {
    let source = open(path)?;
    let fail =
        |reason: String| Failure::request(format!("{}: {reason}", display_path(path))).with_location(path);
    check_limit("metadata", source.len(), limits().metadata_bytes)
        .map_err(|error| fail(error.to_string()))?;
    let bytes =
        source.read_at(Span::first(source.len())).map_err(|error| Failure::source(source.name(), error))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| fail("is not UTF-8".to_owned()))?;
    meta::from_json_file(text).map_err(fail)
}

/// A written message.
struct Added {
    number: u64,
    bytes: u64,
    /// Names and sizes of the input arrays.
    raw: Vec<(String, u64)>,
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct CreateJson {
    file: String,
    message: u64,
    bytes: u64,
    objects: Vec<StoredObject>,
}

/// Opens a file for appending, or creates it; returns the number of its messages.
fn extend(path: &Path, wait: Duration, out: &mut Ui) -> Result<(Writer, u64), Failure> {
    let len = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let bar = out.bar("scanning", len);
    let options = WriterOptions::new().with_limits(limits()).with_lock_wait(wait);
    let until = Instant::now() + wait;
    let writer = loop {
        match Writer::append_with(path, options.clone(), &bar) {
            Ok(writer) => break writer,
            Err(error) if is_missing(&error) => match Writer::create(path, WriterOptions::new()) {
                Ok(writer) => return Ok((writer, 0)),
                // Another command creates the file: wait for it.
                Err(error) if is_created_by_another(&error) && Instant::now() < until => {
                    bar.check().map_err(|_| Failure::Interrupted)?;
                    std::thread::sleep(CREATED_INTERVAL);
                }
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    };
    drop(bar);
    // Scanned under the lock of the writer, so that nothing is appended in between.
    let cut_tail = writer.cut_tail();
    if let Some(cut) = cut_tail {
        let (warning, name) = (paint(WARN, "warning:"), display_path(path));
        out.note(format_args!("{warning} {name}: {cut}; removed"))?;
    }
    let file = match cut_tail {
        Some(_) => tgm::File::from_source(open(path)?, ReadArgs::default().options())?,
        None => ReadArgs::default().open(open(path)?, out)?,
    };
    let scan = file.scan()?;
    let last = file.index()?.map_or(file.len(), |index| index.span().start());
    let unrecognized = scan.unrecognized.last().filter(|span| span.end() == last && cut_tail.is_none());
    if let Some(end) = unrecognized {
        let message = format!("{}: unrecognized bytes {end} after the last message", file.name());
        let failure = Failure::new(Class::Malformed, message);
        return Err(failure.with_hint("copy the messages with `tgm copy` and append to the copy"));
    }
    Ok((writer, scan.messages.len() as u64))
}

/// Whether the file that a command creates was created by another one meanwhile.
fn is_created_by_another(error: &tgm::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Common(CommonError::Publish(PublishError::Exists { .. } | PublishError::Busy { .. }))
    )
}

fn is_missing(error: &tgm::Error) -> bool {
    error.is_not_found()
}

/// Writes objects one by one, with one in memory at a time.
fn write_each<W: std::io::Write>(
    encoder: &mut StreamingEncoder<W>,
    objects: &[Object],
    bar: &Bar,
    to_failure: &dyn Fn(tgm::Error) -> Failure,
) -> Result<(), Failure> {
    for object in objects {
        bar.check().map_err(|_| Failure::Interrupted)?;
        let written = encoder.write_object(object.descriptor(), &object.read()?);
        written.map_err(|error| refused(error.kind(), object).unwrap_or_else(|| to_failure(error)))?;
        bar.advance(object.bytes());
    }
    Ok(())
}

fn read_all(objects: &[Object]) -> Result<Vec<Payload<'_>>, Failure> {
    objects.iter().map(Object::read).collect()
}

fn paired<'a>(
    objects: &'a [Object],
    payloads: &'a [Payload<'_>],
) -> Vec<(&'a tgm::DataObjectDescriptor, &'a [u8])> {
    objects.iter().map(Object::descriptor).zip(payloads.iter().map(|payload| &**payload)).collect()
}

/// Adds the array name to an encoding error.
fn explained(error: tgm::Error, objects: &[Object]) -> Failure {
    let number = match error.kind() {
        ErrorKind::Encode(EncodeError::Pipeline { object, .. } | EncodeError::Inexact { object, .. }) => {
            *object
        }
        _ => return error.into(),
    };
    let object = usize::try_from(number).ok().and_then(|number| objects.get(number));
    object.and_then(|object| refused(error.kind(), object)).unwrap_or_else(|| error.into())
}

/// The error of an array that the pipeline cannot store.
fn refused(fault: &ErrorKind, object: &Object) -> Option<Failure> {
    let ErrorKind::Encode(error) = fault else { return None };
    let (reason, hint) = match error {
        EncodeError::Pipeline { error, .. } => {
            (error.to_string(), fault.hint().map(|hint| hint_text(&hint, "tgm")))
        }
        EncodeError::Inexact { found, bound, .. } => (
            format!(
                "the pipeline changes a value by {}; the maximum error is {}",
                exact(*found),
                exact(*bound)
            ),
            Some("omit the pipeline options to let `--max-error` choose a pipeline".to_owned()),
        ),
        _ => return None,
    };
    let failure = Failure::new(fault.class(), format!("{}: {reason}", object.label()));
    Some(match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    })
}

/// An error of writing to standard output.
fn of_stdout(fault: ErrorKind) -> Failure {
    match fault {
        ErrorKind::Common(CommonError::Write(cause)) => Failure::output(&cause),
        fault => tgm::Error::new(STDOUT.into(), fault).into(),
    }
}
