//! `tet merge`: the datasets of several files in one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use tercet::Format;
use tercet::core::escape;
use tercet::tet::{File, HistoryRow, Layout, Merge, MergeReport, Writer, unix_seconds};

use super::arrays::{Style, short_list};
use super::edit::{pair, quoted};
use super::written::Written;
use crate::args::{ForceArgs, JsonArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{Inputs, must_be};
use crate::output::{Output, Spool, readable_copy, send, stream_file};
use crate::remote;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet merge t2m.tet u10.tet -o all.tet
  tet merge a.tet b.tet -o all.tet --rename b.tet:t2m=t2m_b

Datasets that are equal in several files, such as coordinates, are copied once. Other datasets with the same name are an \
error. Attributes of the files are merged; the first value is kept. Chunks are verified and copied as they are stored.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Output file or URL (`s3://`, `gs://`, `az://`); `-` writes to standard output
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    /// Rename a dataset of one input, or of the only one that has it: `b.tet:t2m=t2m_b`. Repeatable
    #[arg(long, value_name = "[FILE:]OLD=NEW")]
    rename: Vec<String>,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct MergeJson<'a> {
    #[serde(flatten)]
    written: &'a Written,
    files: usize,
    /// Datasets that are equal in several files.
    equal: &'a [String],
    /// File attributes with different values.
    conflicts: &'a [String],
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::open(&args.output, args.force.force)?;
    let inputs = args.inputs.each()?;
    inputs.iter().try_for_each(|input| output.must_not_be(&input.path))?;
    output.reserve_stdout(out)?;
    let mut files = Vec::with_capacity(inputs.len());
    for input in &inputs {
        let source = must_be(input.one_of_many()?, Format::Tet)?;
        files.push(Arc::new(File::from_source(source, read_options())?));
    }
    let renames = args.renames(&files)?;
    let names = || files.iter().map(|file| file_name(file.name()));
    let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.len()));
    let mut merge = Merge::new();
    let bar = out.bar("writing", bytes);
    for (file, renames) in files.iter().zip(&renames) {
        let rename = |name: &str| renames.get(name).cloned().unwrap_or_else(|| name.to_owned());
        merge.add(file, rename, &bar)?;
    }
    if args.style.records_origin() {
        let mut row = HistoryRow::now("merge", &short_list(names().collect::<Vec<_>>().into_iter()));
        row.parents = names().filter(|name| name.len() <= 1024).take(16).collect();
        merge.layout().file_info("tercet", env!("CARGO_PKG_VERSION"), unix_seconds());
        merge.layout().add_history(row);
    }
    let (layout, report) = merge.finish();
    let written = write(layout, args.style, output, args.force.force, &bar, out)?;
    drop(bar);
    print_notes(&report, out)?;
    let Some(written) = written else { return Ok(Outcome::Done) };
    if args.json.json {
        let MergeReport { equal, conflicts, .. } = &report;
        out.json(&MergeJson { written: &written, files: files.len(), equal, conflicts })?;
    } else {
        written.show(false, out)?;
    }
    Ok(Outcome::Done)
}

/// Writes a layout of stored datasets; `None` if the file went to standard output.
pub(super) fn write(
    layout: Layout,
    style: Style,
    output: Output,
    force: bool,
    bar: &crate::ui::Bar,
    out: &mut Ui,
) -> Result<Option<Written>, Failure> {
    let options = style.options();
    let names: Vec<String> = layout.names().map(str::to_owned).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match output {
        Output::Path(path) => {
            let mut writer = Writer::create(&path, layout, options.with_overwrite(force))?;
            writer.copy_stored(bar)?;
            writer.finish()?;
            Ok(Some(Written::read(&path, &names)?))
        }
        Output::Stream(stream) => {
            let name = stream.name();
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name(&name);
            writer.copy_stored(bar)?;
            let file = writer.finish()?.output;
            // A pipe cannot be read again: the summary is that of the temporary file.
            let copy = readable_copy(&name, &file)?;
            stream_file(file, stream)?;
            Ok(Some(Written::from_source(copy, &names)?))
        }
        Output::Stdout => {
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name("standard output");
            writer.copy_stored(bar)?;
            let file = writer.finish()?.output;
            send(file, out)?;
            Ok(None)
        }
    }
}

/// The file name of an input, without directories and secrets.
pub(super) fn file_name(name: &str) -> String {
    let plain = remote::url_of(std::path::Path::new(name)).map_or(name.to_owned(), remote::redacted);
    plain
        .rsplit(['/', std::path::MAIN_SEPARATOR])
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or("input")
        .to_owned()
}

fn print_notes(report: &MergeReport, out: &mut Ui) -> Result<(), Failure> {
    if !report.equal.is_empty() {
        let names = quoted(report.equal.iter().map(String::as_str));
        out.note(format_args!("note: {names}: equal in several files, copied once"))?;
    }
    if !report.conflicts.is_empty() {
        let names = quoted(report.conflicts.iter().map(String::as_str));
        out.note(format_args!(
            "note: the files differ in the attributes {names}; the first values are kept"
        ))?;
    }
    for (axis, extents) in &report.axes {
        let each: Vec<String> =
            extents.iter().map(|(extent, name)| format!("{extent} in `{}`", escape::name(name))).collect();
        out.note(format_args!(
            "note: axis `{}` has different lengths: {}",
            escape::name(axis),
            each.join(", ")
        ))?;
    }
    Ok(())
}

impl Args {
    /// The new names of the datasets of each file.
    fn renames(&self, files: &[Arc<File>]) -> Result<Vec<BTreeMap<String, String>>, Failure> {
        let mut renames = vec![BTreeMap::new(); files.len()];
        for text in &self.rename {
            let shown = escape::name(text);
            let after = |file: &Arc<File>| text.strip_prefix(file.name())?.strip_prefix(':');
            let named = files.iter().enumerate().find_map(|(number, file)| Some((number, after(file)?)));
            let (number, rest) = match named {
                Some((number, rest)) => (Some(number), rest),
                None => (None, text.as_str()),
            };
            let (old, new) = pair(rest, "OLD=NEW")?;
            let has = |number: &usize| files[*number].dataset(old).is_ok();
            let owners: Vec<usize> =
                (0..files.len()).filter(|n| number.is_none_or(|number| number == *n)).filter(has).collect();
            let [owner] = owners[..] else {
                let failure = Failure::request(match owners.len() {
                    0 => format!("`--rename {shown}`: no input has a dataset `{}`", escape::name(old)),
                    _ => format!("`--rename {shown}`: several inputs have a dataset `{}`", escape::name(old)),
                });
                return Err(failure.with_hint("name the input: `--rename FILE:OLD=NEW`"));
            };
            renames[owner].insert(old.to_owned(), new.to_owned());
        }
        Ok(renames)
    }
}
