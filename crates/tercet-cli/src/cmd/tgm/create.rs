//! `tgm create`: a message of arrays.

use std::path::{Path, PathBuf};

use tercet::core::{Class, Progress as _};
use tercet::tgm::{self, EncodeOptions, Fault, GlobalMetadata, Provenance, StreamingEncoder, Writer};

use super::open::Reading;
use crate::failure::{Failure, Outcome};
use crate::input::open;
use crate::named_file::{NamedFile, named_file};
use crate::output::{Output, shown};
use crate::render::human_size;
use crate::ui::{Bar, Ui};

mod arrays;
mod meta;

use arrays::{Object, Payload, total_bytes};
use meta::Pair;

const STDOUT: &str = "standard output";

const EXAMPLES: &str = "\
Examples:
  tgm create run.tgm --from t2m=t2m.npy --from land=land.npy --meta step=6
  tgm create run.tgm --append --from t2m=next.npy --meta mars.step=12
  tgm create - --stream --from t2m=t2m.npy | ssh host 'cat > run.tgm'

Values of `--meta` that are JSON are taken as such: numbers, `true`, `false`, `null`, `[…]`, `{…}` and text in double \
quotes. Everything else is text. A dot in a key makes a map: `mars.step=6` is the `step` in `mars`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to make; `-` writes the message to standard output
    #[arg(value_name = "OUT")]
    path: PathBuf,
    /// An array and the name it gets: `t2m=t2m.npy`. Can be repeated; each becomes an object of the message
    #[arg(long, value_name = "NAME=FILE", required = true, value_parser = named_file())]
    from: Vec<NamedFile>,
    /// Metadata of the whole message: `step=6`, `mars.class=od`. Can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = meta::pair)]
    meta: Vec<Pair>,
    /// Add the message to the file if it is there already
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    style: Style,
}

/// How a message is written.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Style {
    /// Write one object after the other, with memory for one of them; index and hashes then stand behind them
    #[arg(long)]
    stream: bool,
    /// Leave out the hashes: damage will go unnoticed
    #[arg(long)]
    no_hash: bool,
    /// Leave out when and by what the message was written, so that equal arrays make equal bytes
    #[arg(long)]
    reproducible: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::of(&args.path, args.force || args.append)?;
    args.from.iter().try_for_each(|from| output.must_not_be(&from.path))?;
    let metadata = args.metadata()?;
    let objects = arrays::open(&args.from, out)?;
    match output {
        Output::Stdout if args.append => {
            return Err(Failure::request("`--append` needs a file, not standard output"));
        }
        Output::Stdout => args.send(&metadata, objects, out)?,
        Output::Path(path) => args.write(&path, &metadata, objects, out)?,
    }
    Ok(Outcome::Done)
}

impl Args {
    fn metadata(&self) -> Result<GlobalMetadata, Failure> {
        let name = |from: &NamedFile| [("name".to_owned(), from.name.as_str().into())].into();
        let base = self.from.iter().map(name).collect();
        Ok(GlobalMetadata { base, extra: meta::section(&self.meta)?, ..GlobalMetadata::default() })
    }

    fn write(
        &self,
        path: &Path,
        metadata: &GlobalMetadata,
        objects: Vec<Object>,
        out: &mut Ui,
    ) -> Result<(), Failure> {
        let (mut writer, before) =
            if self.append { extend(path, out)? } else { (Writer::create(path)?, Before::default()) };
        let bar = out.bar("writing", total_bytes(&objects));
        let count = objects.len();
        if self.style.stream {
            let of_path = |fault| Failure::from(tgm::Error::new(path.to_string_lossy().into(), fault));
            writer.stream(metadata, self.style.options(), |encoder| {
                write_each(encoder, objects, &bar, &of_path)
            })?;
        } else {
            let payloads = read_all(&objects)?;
            writer.message(metadata, &paired(&objects, &payloads), &self.style.options())?;
        }
        bar.check().map_err(|_| Failure::Interrupted)?;
        writer.finish()?;
        drop(bar);
        let added = tgm::File::open(path)?.len().saturating_sub(before.bytes);
        let (path, number, size) = (shown(path), before.messages, human_size(added));
        let plural = if count == 1 { "" } else { "s" };
        out.line(format_args!("{path}: message {number} with {count} object{plural}, {size}"))
    }

    fn send(&self, metadata: &GlobalMetadata, objects: Vec<Object>, out: &mut Ui) -> Result<(), Failure> {
        let bar = out.bar("writing", total_bytes(&objects));
        let sink = out.bytes()?;
        if self.style.stream {
            let encoder = StreamingEncoder::new(sink, metadata, self.style.options());
            let mut encoder = encoder.map_err(of_stdout)?;
            write_each(&mut encoder, objects, &bar, &of_stdout)?;
            // What was sent cannot be changed any more: the length stays unknown.
            encoder.finish().map_err(of_stdout)?;
        } else {
            let payloads = read_all(&objects)?;
            let message = tgm::encode_message(metadata, &paired(&objects, &payloads), &self.style.options())?;
            sink.write_all(&message).map_err(|error| Failure::output(&error))?;
        }
        Ok(())
    }
}

impl Style {
    fn options(self) -> EncodeOptions {
        let options = EncodeOptions::new().with_hash(!self.no_hash);
        if self.reproducible { options.with_provenance(Provenance::Off) } else { options }
    }
}

/// What was in a file before a message was added.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    messages: u64,
    bytes: u64,
}

/// Starts the successor of a file, or the file itself if there is none.
fn extend(path: &Path, out: &mut Ui) -> Result<(Writer, Before), Failure> {
    let len = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let bar = out.bar("copying", len);
    let writer = match Writer::append(path, &bar) {
        Ok(writer) => writer,
        Err(error) if is_missing(&error) => return Ok((Writer::create(path)?, Before::default())),
        Err(error) => return Err(error.into()),
    };
    drop(bar);
    // Looked at under the lock that the writer holds: nobody adds to it in between.
    let file = Reading::default().open(open(path)?, out)?;
    let scan = file.scan()?;
    if let Some(end) = scan.junk.last().filter(|junk| junk.end() == file.len()) {
        let said = format!("{}: ends with bytes that belong to no message ({end})", file.name());
        let failure = Failure::new(Class::Malformed, said);
        return Err(failure.with_hint("`tgm copy` makes a file without them, which can be added to"));
    }
    Ok((writer, Before { messages: scan.messages.len() as u64, bytes: file.len() }))
}

fn is_missing(error: &tgm::Error) -> bool {
    matches!(error.fault(), Fault::Publish(cause) if cause.kind() == std::io::ErrorKind::NotFound)
}

/// Writes objects and closes the file of each, so that only one of them is in memory.
fn write_each<W: std::io::Write>(
    encoder: &mut StreamingEncoder<W>,
    objects: Vec<Object>,
    bar: &Bar,
    told: &dyn Fn(Fault) -> Failure,
) -> Result<(), Failure> {
    for object in objects {
        bar.check().map_err(|_| Failure::Interrupted)?;
        encoder.write_object(object.descriptor(), &object.read()?).map_err(told)?;
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

/// A fault of a stream to standard output.
fn of_stdout(fault: Fault) -> Failure {
    match fault {
        Fault::Write(cause) => Failure::output(&cause),
        fault => tgm::Error::new(STDOUT.into(), fault).into(),
    }
}
