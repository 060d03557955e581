//! `tet create`.

use tercet::tet::{HistoryRow, Layout, Writer, unix_seconds};

use super::arrays::{self, Arrays, Opened, SCOPES, Whole};
use super::written::{self, Written};
use crate::args::{ForceArgs, JsonArgs, OutputArgs, read_options};
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
    let style = args.whole.style();
    let ids = arrays::plan(&opened, style, &mut layout)?;
    args.whole.apply(&mut layout)?;
    let options = style.options().with_zone_maps(args.zone_maps);
    if style.records_origin() {
        layout.file_info("tercet", env!("CARGO_PKG_VERSION"), unix_seconds());
        let row = HistoryRow::now("create", &args.arrays.origin());
        layout.history(arrays::with_roundings(row, &opened))?;
    }
    let names: Vec<&str> = opened.iter().map(Opened::name).collect();
    let bar = out.bar("writing", arrays::total_bytes(&opened));
    let written = match output {
        Output::Path(path) => {
            let mut writer = Writer::create(&path, layout, options.with_overwrite(args.force.force))?;
            let mut storage = arrays::store(&opened, &ids, &mut writer, &bar)?;
            writer
                .finish_checked(read_options(), |file| arrays::verify(&opened, &mut storage, file, &bar))?;
            Written::read(&path, &names)?.with_storage(&storage)
        }
        Output::Stream(stream) => {
            let name = stream.name();
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name(&name);
            let mut storage = arrays::store(&opened, &ids, &mut writer, &bar)?;
            let spool = writer.finish()?.output;
            // A pipe cannot be read again: the temporary file is.
            let file = written::open(readable_copy(&name, &spool)?)?;
            arrays::verify(&opened, &mut storage, &file, &bar)?;
            stream_file(spool, stream)?;
            Written::from_file(&file, &names)?.with_storage(&storage)
        }
        Output::Stdout => {
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name("standard output");
            let mut storage = arrays::store(&opened, &ids, &mut writer, &bar)?;
            let spool = writer.finish()?.output;
            let file = written::open(readable_copy("standard output", &spool)?)?;
            arrays::verify(&opened, &mut storage, &file, &bar)?;
            drop(bar);
            send(spool, out)?;
            return Ok(Outcome::Done);
        }
    };
    drop(bar);
    written.show(args.json.json, out)?;
    Ok(Outcome::Done)
}
