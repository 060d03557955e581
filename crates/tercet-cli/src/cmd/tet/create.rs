//! `tet create`.

use tercet::tet::{HistoryRow, Layout, Writer, unix_seconds};

use super::arrays::{self, Arrays, Opened, SCOPES, Whole};
use super::written::Written;
use crate::args::{ForceArgs, JsonArgs, OutputArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Spool, readable_copy, send, stream_file};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
#[command(after_long_help = SCOPES)]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    arrays: Arrays,
    #[command(flatten)]
    whole: Whole,
    /// Write zone maps, which the reference implementation uses to skip chunks
    #[arg(long, help_heading = "File")]
    zone_maps: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::open(args.output.path(), args.force.force)?;
    if matches!(output, Output::Stdout) && args.json.json {
        return Err(Failure::request("cannot write both the file and JSON to standard output"));
    }
    args.arrays.files().try_for_each(|input| output.must_not_be(input))?;
    let opened = args.arrays.open(out)?;
    let mut layout = Layout::new();
    let ids = arrays::plan(&opened, &mut layout)?;
    args.whole.apply(&mut layout)?;
    let style = args.whole.style();
    let options = style.options().with_zone_maps(args.zone_maps);
    if style.records_origin() {
        layout.file_info("tercet", env!("CARGO_PKG_VERSION"), unix_seconds());
        layout.history(HistoryRow::now("create", &args.arrays.origin()))?;
    }
    let bar = out.bar("writing", arrays::total_bytes(&opened));
    match output {
        Output::Path(path) => {
            let mut writer = Writer::create(&path, layout, options.with_overwrite(args.force.force))?;
            arrays::store(&opened, &ids, &mut writer, &bar)?;
            writer.finish()?;
            drop(bar);
            let names: Vec<&str> = opened.iter().map(Opened::name).collect();
            Written::read(&path, &names)?.show(args.json.json, out)?;
        }
        Output::Stream(stream) => {
            let name = stream.name();
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name(&name);
            arrays::store(&opened, &ids, &mut writer, &bar)?;
            let file = writer.finish()?.output;
            drop(bar);
            // A pipe cannot be read again: the summary is that of the temporary file.
            let copy = readable_copy(&name, &file)?;
            stream_file(file, stream)?;
            let names: Vec<&str> = opened.iter().map(Opened::name).collect();
            Written::from_source(copy, &names)?.show(args.json.json, out)?;
        }
        Output::Stdout => {
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name("standard output");
            arrays::store(&opened, &ids, &mut writer, &bar)?;
            let file = writer.finish()?.output;
            drop(bar);
            send(file, out)?;
        }
    }
    Ok(Outcome::Done)
}
