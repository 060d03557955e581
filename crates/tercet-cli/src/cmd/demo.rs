//! `tercet demo`: create, read, damage and repair generated files.

use std::path::{Path, PathBuf};

use tercet::core::escape;
use tercet::tet;

use crate::args::NoJsonArgs;
use crate::failure::{Failure, Outcome};
use crate::render::human_size;
use crate::ui::Ui;

mod directory;
mod forecast;
mod messages;
mod records;
mod stage;
mod weather;

use stage::Stage;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output directory, new or empty [default: tercet-demo]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Create the files and print nothing
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    json: NoJsonArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    out.must_not_be_json("demo")?;
    let dir = directory::make(args.dir.as_deref())?;
    let mut hidden = out.capture();
    let mut stage = Stage::new(&dir, if args.quiet { &mut hidden } else { out });
    stage.text("A .tet file holds named N-dimensional arrays in chunks. This demo creates one, reads it,")?;
    stage.text("damages copies of it, and shows that every damage is detected. Then it writes a part of")?;
    stage.text(
        "the data as .tgm messages and a table as a .tatami file, and damages those too. At last a forecast",
    )?;
    stage.text("goes from messages to a cube to a catalog.")?;
    stage
        .text(&format!("Its files are kept in the directory `{}`.", escape::name(&dir.to_string_lossy())))?;

    create(&mut stage)?;
    inspect(&mut stage)?;
    read(&mut stage)?;
    damage_a_chunk(&mut stage)?;
    salvage(&mut stage)?;
    damage_the_footer(&mut stage)?;
    send_messages(&mut stage)?;
    keep_records(&mut stage)?;
    follow_a_forecast(&mut stage)?;
    find_data(&mut stage)?;
    next_steps(&mut stage)?;
    Ok(Outcome::Done)
}

fn create(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("create")?;
    let path = stage.path("weather.tet");
    weather::write(&path)?;
    let file = tet::File::open(&path)?;
    let values: u64 = file.dataset_summaries().iter().filter_map(|dataset| dataset.raw_bytes).sum();
    stage.text("One day of synthetic temperatures, hourly on a 5-degree grid, compressed with zstd,")?;
    stage.text("and an uncompressed land mask. Written with the Rust library: a layout, then the values.")?;
    let (values, stored) = (human_size(values), human_size(file.len()));
    stage.text(&format!("`weather.tet`: {values} of values in a file of {stored}."))
}

fn inspect(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("inspect")?;
    stage.tet(&["info", "weather.tet"], 0)
}

fn read(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("read a part")?;
    stage.text(
        "Noon (hour 12) at the equator (row 18), every 60 degrees east. Only overlapping chunks are read.",
    )?;
    stage.tet(&["extract", "weather.tet", "t2m", "-s", "12,18,::12", "-o", "noon.npy"], 0)?;
    let file = tet::File::open(stage.path("weather.tet"))?;
    let t2m = file.dataset("t2m")?;
    let part = t2m.select().slices("12,18,::12")?.read()?;
    let found = part.to_vec::<f32>().unwrap_or_default();
    let written: Vec<f32> = (0..72).step_by(12).map(|lon| weather::temperature(12, 18, lon)).collect();
    if found != written {
        return Err(Failure::new(tercet::core::Class::Corrupt, "the values read differ from those written"));
    }
    let shown: Vec<String> = found.iter().map(|kelvin| format!("{kelvin:.2}")).collect();
    stage.text(&format!(
        "The library reads the same selection: {} K, exactly as written.",
        shown.join(", ")
    ))?;
    stage.text("Verify the whole file:")?;
    stage.tet(&["verify", "weather.tet", "-q"], 0)
}

fn damage_a_chunk(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("damage: one flipped bit")?;
    let file = tet::File::open(stage.path("weather.tet"))?;
    let chunk = file.dataset("t2m")?.chunk_ref(&[1, 0, 1])?.span;
    let at = chunk.start() + chunk.len() / 2;
    directory::damaged_copy(&stage.path("weather.tet"), &stage.path("damaged.tet"), at, |byte| byte ^ 1)?;
    stage.text(&format!(
        "`damaged.tet` is a copy with a single bit flipped, in byte {at}. Reading the damaged chunk fails:"
    ))?;
    let all = ["extract", "damaged.tet", "t2m", "-o", "all.npy"];
    stage.tet(&all, 5)?;
    stage.text("No output file is written. Selections in intact chunks can still be read:")?;
    stage.tet(&["extract", "damaged.tet", "t2m", "-s", "0:6", "-o", "morning.npy"], 0)?;
    stage.text("Find the damaged chunks:")?;
    stage.tet(&["verify", "damaged.tet"], 1)
}

fn salvage(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("salvage the intact chunks")?;
    stage.text(
        "A lost chunk cannot be restored, but all others can be copied; the missing values become NaN:",
    )?;
    stage.tet(&["repair", "damaged.tet", "-o", "salvaged.tet", "--fill", "nan"], 1)?;
    stage.tet(&["verify", "salvaged.tet", "--deep", "-q"], 0)
}

fn damage_the_footer(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("damage: a truncated file, repaired")?;
    let whole = tet::File::open(stage.path("weather.tet"))?.len();
    directory::cut_copy(&stage.path("weather.tet"), &stage.path("cut.tet"), whole - 9)?;
    stage.text("`cut.tet` is a copy without its last 9 bytes, as after an incomplete download:")?;
    stage.tet(&["info", "cut.tet"], 4)?;
    stage.text(
        "The footer holds axis names, attributes, history and checksums; the values are stored before it.",
    )?;
    stage.tet(&["repair", "cut.tet"], 1)?;
    stage.tet(&["repair", "cut.tet", "--apply", "footer_invalid"], 0)?;
    stage.text("All values can be read again, but attributes and checksums are lost:")?;
    stage.tet(&["info", "cut.tet", "-q"], 0)?;
    stage.tet(&["extract", "cut.tet", "t2m", "-s", "12,18,::12", "-o", "noon-again.npy"], 0)?;
    let (first, again) = (stage.path("noon.npy"), stage.path("noon-again.npy"));
    if !directory::same_bytes(&first, &again)? {
        return Err(Failure::new(tercet::core::Class::Corrupt, "the repaired file returns other values"));
    }
    stage.text("`noon-again.npy` equals `noon.npy`, byte for byte.")
}

fn send_messages(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("messages")?;
    stage.text(
        "A .tgm file holds messages: tensors with metadata, for streaming. Here are two, each with the",
    )?;
    stage.text("temperatures of one hour. One is written at once, the other as a stream.")?;
    let path = stage.path("hours.tgm");
    let payload = messages::write(&path)?;
    stage.tgm(&["ls", "hours.tgm", "-p", "name,hour,units"], 0)?;
    stage.tgm(&["validate", "hours.tgm"], 0)?;
    let at = payload.start() + payload.len() / 2;
    directory::damaged_copy(&path, &stage.path("bad-hours.tgm"), at, |byte| byte ^ 1)?;
    stage.text(&format!(
        "`bad-hours.tgm` is a copy with one bit flipped, in byte {at}. Metadata can still be read;"
    ))?;
    stage.text("the damaged values cannot:")?;
    stage.tgm(&["get", "-p", "hour", "bad-hours.tgm"], 0)?;
    stage.tgm(&["dump", "bad-hours.tgm"], 5)?;
    stage.tgm(&["validate", "bad-hours.tgm"], 1)?;
    stage.text("The message that is intact can be saved:")?;
    stage.tgm(&["repair", "bad-hours.tgm", "-o", "saved-hours.tgm"], 1)
}

fn keep_records(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("records")?;
    stage.text(
        "A .tatami file holds a table in columns. Here are twelve cities, sorted by name, four rows per page.",
    )?;
    let path = stage.path("cities.tatami");
    records::write_text(&stage.path("cities.jsonl"))?;
    let create =
        ["create", "cities.tatami", "--from", "cities.jsonl", "--sort-key", "name", "--page-rows", "4"];
    stage.tatami(&create, 0)?;
    stage.tatami(&["inspect", "cities.tatami"], 0)?;
    stage.text("Look up one city by its sort key. Only the pages with this row are read:")?;
    stage.tatami(&["lookup", "cities.tatami", "Lima"], 0)?;
    stage.tatami(&["verify", "cities.tatami", "--deep", "-q"], 0)?;
    let page = records::second_page(&path)?;
    let at = page.end() - 2;
    directory::damaged_copy(&path, &stage.path("bad-cities.tatami"), at, |byte| byte ^ 1)?;
    stage.text(&format!(
        "`bad-cities.tatami` is a copy with one bit flipped, in byte {at}: a name in the second page."
    ))?;
    stage.text("Rows in other pages can still be read, and a repair keeps them:")?;
    stage.tatami(&["lookup", "bad-cities.tatami", "Lima"], 5)?;
    stage.tatami(&["lookup", "bad-cities.tatami", "Tunis", "--columns", "name,people"], 0)?;
    stage.tatami(&["repair", "bad-cities.tatami", "-o", "saved-cities.tatami"], 1)
}

fn follow_a_forecast(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("from messages to a cube")?;
    stage.text("`forecast.tgm` is a stream of messages: one temperature field per step and level.")?;
    forecast::write(&stage.path("forecast.tgm"))?;
    stage.text("Stack them into a cube: the metadata keys that vary become dimensions with coordinates.")?;
    stage.tercet(&["convert", "forecast.tgm", "forecast.tet"], 0)?;
    stage.text("Compute with names and coordinates, and draw:")?;
    stage.tet(&["mean", "forecast.tet", "t", "--over", "y,x", "--sel", "level=500"], 0)?;
    let plot = [
        "plot",
        "forecast.tet",
        "t",
        "--sel",
        "step=24",
        "--sel",
        "level=850",
        "--width",
        "72",
        "--height",
        "12",
    ];
    stage.tet(&plot, 0)?;
    stage.text("Export to NetCDF, read it back, and compare with the messages that it came from:")?;
    stage.tercet(&["convert", "forecast.tet", "forecast.nc"], 0)?;
    stage.tercet(&["convert", "forecast.nc", "again.tgm"], 0)?;
    stage.tercet(&["diff", "forecast.tgm", "again.tgm"], 0)?;
    stage.text("The hash of the contents is the same in every container:")?;
    stage.tercet(&["hash", "forecast.tgm", "forecast.tet"], 0)
}

fn find_data(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("catalog")?;
    stage.text("A catalog is a .tatami table: one row per dataset, message object and table.")?;
    let files = ["catalog", "forecast.tgm", "weather.tet", "cities.tatami", "-o", "catalog.tatami"];
    stage.tercet(&files, 0)?;
    stage.text("Find a field by its words and its metadata, and read it by its pointer:")?;
    stage.tercet(&["find", "catalog.tatami", "temperature", "--where", "step = 24 and level >= 500"], 0)?;
    stage.tercet(&["get", "--catalog", "catalog.tatami", "forecast.tgm#9.0"], 0)?;
    stage.text("Damaged files are noticed here as well:")?;
    stage.tercet(&["catalog", "bad-hours.tgm", "damaged.tet", "-o", "bad-catalog.tatami"], 1)
}

fn next_steps(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("done")?;
    let name = |path: &Path| escape::name(&path.to_string_lossy()).into_owned();
    let dir = name(stage.dir());
    stage.text(&format!("The files are in `{dir}`. More commands to try:"))?;
    for line in [
        "tet info FILE --all",
        "tet outline FILE",
        "tet create OUT.tet --from NAME=FILE.npy",
        "tgm dump FILE",
        "tatami cat FILE",
        "tet --help",
        "tgm --help",
        "tatami --help",
    ] {
        stage.text(&format!("  {line}"))?;
    }
    stage.text("In a source checkout, `cargo build --release` builds them: `target/release/tet --help`.")
}
