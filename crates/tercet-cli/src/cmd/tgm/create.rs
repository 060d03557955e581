//! `tgm create`: create a message from arrays.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tercet::core::limits::check_limit;
use tercet::core::publish::PublishError;
use tercet::core::{Class, CommonError, Diagnostic as _, Progress as _, Sink as _, Span, escape};
use tercet::tgm::{
    self, EncodeError, EncodeOptions, ErrorKind, GlobalMetadata, ObjectValues, Provenance, StreamingEncoder,
    Writer, WriterOptions,
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
use crate::render::{exact, human_size, parse_size};
use crate::ui::{Bar, Ui, WARN, paint};

pub(super) mod arrays;
pub(super) mod meta;
mod stored;

use arrays::{Object, Payload, total_bytes};
use meta::{Pair, SplitAxis};
use stored::StoredObject;

const STDOUT: &str = "standard output";

const EXAMPLES: &str = "\
Examples:
  tgm create run.tgm --from t2m=t2m.npy --from land=land.npy --meta step=6
  tgm create run.tgm --append --from t2m=next.npy --meta mars.step=12
  tgm create run.tgm --append --max-file-size 2GiB --from t2m=next.npy
  tgm create run.tgm --from t2m=hours.npy --split-axis step=0,6,12,18
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
    /// Start a new file once FILE has SIZE bytes: FILE is renamed to FILE-000000, FILE-000001, … before its extension
    #[arg(long, value_name = "SIZE", requires = "append", value_parser = parse_size)]
    max_file_size: Option<u64>,
    /// Write or extend a message index in FILE.idx
    #[arg(long)]
    index_file: bool,
    /// Write one message for each position on the first axis of all arrays, with metadata KEY: its position, or the value at it
    #[arg(long, value_name = "KEY[=VALUE,…]", value_parser = meta::split_axis, conflicts_with = "stream")]
    split_axis: Option<SplitAxis>,
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

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
    args.pipeline.check()?;
    let output = Output::open(args.output.path(), args.force.force || args.append)?;
    args.from.iter().try_for_each(|from| output.must_not_be(&from.path))?;
    let metadata = args.metadata(None)?;
    meta::notes(&args.meta).try_for_each(|note| out.note(note))?;
    let objects = arrays::open(&args.from, &args.pipeline, out)?;
    let options = args.options(globals);
    if let Some(axis) = &args.split_axis {
        return args.split(&output, axis, &objects, &options, out);
    }
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
    /// The metadata of a message; `position` is that on the split axis.
    fn metadata(&self, position: Option<Pair>) -> Result<GlobalMetadata, Failure> {
        let mut pairs = [&self.meta[..], &self.meta_str[..]].concat();
        pairs.extend(position);
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
        let (mut writer, before) = self.writer(path, &options, out)?;
        let start = writer.offset()?;
        let bar = out.bar("writing", total_bytes(objects));
        let raw: Vec<(String, u64)> =
            objects.iter().map(|object| (object.name().to_owned(), object.bytes())).collect();
        if self.style.stream {
            writer.stream(metadata, options, |encoder| write_each(encoder, objects, &bar, &Failure::from))?;
        } else {
            write_message(&mut writer, metadata, objects, &options)?;
        }
        bar.check().map_err(|_| Failure::Interrupted)?;
        let span = Span::between(start, writer.offset()?).unwrap_or(Span::empty(start));
        if !self.finish(writer, out)? {
            return Ok(false);
        }
        drop(bar);
        // The file is not scanned again: other commands may have appended more messages since.
        let message = || Ok(tgm::Message::open(open(path)?, before, span, ReadArgs::default().options())?);
        self.show(&Added { number: before, bytes: span.len(), raw }, message, out)?;
        Ok(true)
    }

    /// Opens the output file; returns the number of its messages.
    fn writer(&self, path: &Path, options: &EncodeOptions, out: &mut Ui) -> Result<(Writer, u64), Failure> {
        let writing = WriterOptions::new()
            .with_limits(limits())
            .with_overwrite(self.force.force)
            .with_lock_wait(self.lock_timeout)
            .with_index_file(self.index_file)
            .with_max_file_size(self.max_file_size);
        let (writer, before) =
            if self.append { extend(path, writing, out)? } else { (Writer::create(path, writing)?, 0) };
        // An updated index is as reproducible as the message.
        Ok((writer.with_provenance(options.provenance.clone()), before))
    }

    /// Completes the file; returns whether it is done. It is not if another command created the file meanwhile.
    fn finish(&self, writer: Writer, out: &mut Ui) -> Result<bool, Failure> {
        let written = match writer.finish() {
            Err(error) if self.append && is_created_by_another(&error) => return Ok(false),
            written => written?,
        };
        if let Some(reason) = written.index_file_error {
            out.note(format_args!("{} the index file is not written: {reason}", paint(WARN, "warning:")))?;
        }
        Ok(true)
    }

    /// Writes one message for each position on the first axis.
    fn split(
        &self,
        output: &Output,
        axis: &SplitAxis,
        objects: &[Object],
        options: &EncodeOptions,
        out: &mut Ui,
    ) -> Result<Outcome, Failure> {
        let Output::Path(path) = output else {
            return Err(Failure::request("`--split-axis` requires a file as output"));
        };
        let count = arrays::split_count(objects)?;
        let positions = axis.pairs(count)?;
        let descriptors: Vec<_> =
            objects.iter().map(|object| object.row_descriptor(&self.pipeline)).collect::<Result<_, _>>()?;
        let metadata: Vec<GlobalMetadata> =
            positions.into_iter().map(|pair| self.metadata(Some(pair))).collect::<Result<_, _>>()?;
        let payloads = read_all(objects)?;
        let before = loop {
            let (mut writer, before) = self.writer(path, options, out)?;
            let bar = out.bar("writing", total_bytes(objects));
            for (row, metadata) in metadata.iter().enumerate() {
                bar.check().map_err(|_| Failure::Interrupted)?;
                let rows = payloads.iter().map(|payload| {
                    let len = payload.len() / usize::try_from(count).unwrap_or(usize::MAX);
                    payload.get(row * len..(row + 1) * len).unwrap_or_default()
                });
                let rows: Vec<_> = descriptors.iter().zip(rows).collect();
                writer.message(metadata, &rows, options).map_err(|error| explained(error, objects))?;
                bar.advance(total_bytes(objects) / count.max(1));
            }
            drop(bar);
            if self.finish(writer, out)? {
                break before;
            }
        };
        let (path, last) = (display_path(self.output.path()), before + count - 1);
        if out.is_json() {
            let file = json_path(self.output.path());
            out.json(&SplitJson { file, first: before, messages: count })?;
        } else {
            out.summary(format_args!("{path}: messages {before} to {last} along `{}`", axis.key()))?;
        }
        Ok(Outcome::Done)
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
            let to_failure = |error: tgm::Error| match error.kind() {
                // An input cannot be read.
                ErrorKind::Common(CommonError::Source(_)) => error.into(),
                _ => to_failure(error.into_kind()),
            };
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

/// The JSON summary of an array that is split.
#[derive(Debug, Serialize)]
struct SplitJson {
    file: String,
    /// The number of the first message.
    first: u64,
    messages: u64,
}

/// Opens a file for appending, or creates it; returns the number of its messages.
fn extend(path: &Path, options: WriterOptions, out: &mut Ui) -> Result<(Writer, u64), Failure> {
    let len = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let bar = out.bar("scanning", len);
    let writer = Writer::append_or_create(path, options, &bar)?;
    drop(bar);
    if let Some(full) = writer.rotated() {
        // As it was given, unless the path is a symbolic link.
        let given = full.file_name().map(|name| path.with_file_name(name)).filter(|given| given.exists());
        let full = given.as_deref().unwrap_or(full);
        out.note(format_args!("note: {} is full: renamed to {}", display_path(path), display_path(full)))?;
    }
    if writer.is_new() {
        return Ok((writer, 0));
    }
    // Scanned under the lock of the writer, so that nothing is appended in between.
    let cut_tail = writer.cut_tail();
    if let Some(cut) = cut_tail {
        let (warning, name) = (paint(WARN, "warning:"), display_path(path));
        out.note(format_args!("{warning} {name}: {cut}; removed"))?;
    }
    let file = match cut_tail {
        Some(_) => tgm::File::from_source(open(path)?, ReadArgs::default().options())?,
        None => ReadArgs::default().open_or_empty(open(path)?, out)?,
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

/// Writes a message. Values that are stored unchanged are not read into memory.
fn write_message(
    writer: &mut Writer,
    metadata: &GlobalMetadata,
    objects: &[Object],
    options: &EncodeOptions,
) -> Result<(), Failure> {
    let is_streamed = |object: &Object| options.max_error.is_none() && object.in_file().is_some();
    if !objects.iter().any(is_streamed) {
        let payloads = read_all(objects)?;
        let made = writer.message(metadata, &paired(objects, &payloads), options);
        return made.map_err(|error| explained(error, objects));
    }
    let payloads = objects
        .iter()
        .map(|object| if is_streamed(object) { Ok(None) } else { object.read().map(Some) })
        .collect::<Result<Vec<_>, _>>()?;
    let values = objects.iter().zip(&payloads).map(|(object, payload)| {
        let values = match (payload, object.in_file()) {
            (None, Some((source, span))) => ObjectValues::Source(source, span),
            (payload, _) => ObjectValues::Bytes(payload.as_deref().unwrap_or_default()),
        };
        (object.descriptor(), values)
    });
    let made = writer.message_from(metadata, &values.collect::<Vec<_>>(), options);
    made.map_err(|error| explained(error, objects))
}

/// Writes objects one by one, with one in memory at a time. Values that are stored unchanged are not read into memory.
fn write_each<W: std::io::Write>(
    encoder: &mut StreamingEncoder<W>,
    objects: &[Object],
    bar: &Bar,
    to_failure: &dyn Fn(tgm::Error) -> Failure,
) -> Result<(), Failure> {
    for object in objects {
        bar.check().map_err(|_| Failure::Interrupted)?;
        let written = match object.in_file() {
            Some((source, span)) => encoder.write_object_from(object.descriptor(), source, span),
            None => encoder.write_object(object.descriptor(), &object.read()?),
        };
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
