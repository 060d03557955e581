//! `tgm split`: one file per object.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::core::Progress as _;
use tercet::tgm::{File, Message, edit};

use super::editing::{Sink, WriteArgs, check_each};
use super::open::{DamageArgs, ReadArgs};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, must_be_on_disk};
use crate::output::{Output, is_stdout};
use crate::ui::Ui;

/// The placeholder of the file number.
const INDEX: &str = "[index]";

const EXAMPLES: &str = "\
Examples:
  tgm split run.tgm -o part.tgm               part_0000.tgm, part_0001.tgm, …
  tgm split run.tgm -o 'parts/[index].tgm'    parts/0000.tgm, …

Each object keeps its own metadata and the message metadata. A message with one object is copied \
unchanged. All output names are checked before the first file is written; each file is written atomically.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Output file template: `[index]` is replaced by a number; without it the number precedes the extension
    #[arg(short, long, value_name = "TEMPLATE")]
    output: PathBuf,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct SplitJson {
    messages: u64,
    files: Vec<String>,
}

/// The content of an output file: an object of a message, or a whole message.
#[derive(Clone, Copy, Debug)]
struct Part {
    message: u64,
    object: Option<u64>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if is_stdout(&args.output) {
        let failure = Failure::request("cannot write several files to standard output");
        return Err(failure.with_hint("give a file name template: `-o part.tgm`"));
    }
    must_be_on_disk(&args.output, "split messages into")?;
    let file = ReadArgs::default().open_complete(args.input.source()?, args.damage, out)?;
    let parts = plan(&file, out)?;
    let targets: Vec<PathBuf> = (0..parts.len()).map(|number| numbered(&args.output, number)).collect();
    let outputs: Vec<Output> =
        targets.iter().map(|target| args.write.output(target, [&args.input])).collect::<Result<_, _>>()?;
    let bar = out.bar("writing", file.len());
    let options = args.write.options();
    let mut current: Option<Message> = None;
    for (part, output) in parts.iter().zip(outputs) {
        bar.check().map_err(|_| Failure::Interrupted)?;
        let mut sink = Sink::open(output, args.write.force.force)?;
        match part.object {
            None => sink.copy(&file, file.message_span(part.message)?, &bar, out)?,
            Some(object) => {
                let message = match current.take().filter(|message| message.number() == part.message) {
                    Some(message) => message,
                    None => file.message(part.message)?,
                };
                sink.draft(&edit::split(&message, object, &options)?, &bar, out)?;
                current = Some(message);
            }
        }
        sink.finish()?;
    }
    drop(bar);
    if args.write.json.json {
        let files = targets.iter().map(|target| target.to_string_lossy().into_owned()).collect();
        out.json(&SplitJson { messages: parts.len() as u64, files })?;
    } else {
        out.summary(format_args!("Split into {} message(s)", parts.len()))?;
    }
    Ok(Outcome::Done)
}

/// Verifies every message and plans the output files.
fn plan(file: &File, out: &Ui) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    check_each(file, out, |message| {
        edit::check(message)?;
        let number = message.number();
        match message.object_count() {
            0 | 1 => parts.push(Part { message: number, object: None }),
            count => parts.extend((0..count).map(|object| Part { message: number, object: Some(object) })),
        }
        Ok(())
    })?;
    Ok(parts)
}

/// The name of an output file: at least four digits.
fn numbered(template: &Path, number: usize) -> PathBuf {
    if let Some(text) = template.to_str().filter(|text| text.contains(INDEX)) {
        return text.replace(INDEX, &format!("{number:04}")).into();
    }
    let mut name: OsString = template.file_stem().unwrap_or("split".as_ref()).to_owned();
    name.push(format!("_{number:04}"));
    if let Some(extension) = template.extension() {
        name.push(".");
        name.push(extension);
    }
    template.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        for (template, number, name) in [
            ("out.tgm", 0, "out_0000.tgm"),
            ("dir/out.tgm", 5, "dir/out_0005.tgm"),
            ("out", 12, "out_0012"),
            (".tgm", 1, ".tgm_0001"),
            ("a.b.tgm", 9999, "a.b_9999.tgm"),
            ("a.tgm", 10_000, "a_10000.tgm"),
            ("out/msg_[index].tgm", 3, "out/msg_0003.tgm"),
            ("[index]/[index]", 123_456, "123456/123456"),
        ] {
            assert_eq!(numbered(Path::new(template), number), Path::new(name), "{template}");
        }
    }
}
