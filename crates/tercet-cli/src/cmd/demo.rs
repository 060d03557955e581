//! `tercet demo`: the main job from creation to repair, on data made on the spot.

use std::path::{Path, PathBuf};

use tercet::core::escape;
use tercet::tet;

use crate::failure::{Failure, Outcome};
use crate::render::human_size;
use crate::ui::Ui;

mod folder;
mod messages;
mod records;
mod stage;
mod weather;

use stage::Stage;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to leave the files: a new or empty folder [default: a new folder `tercet-demo` here]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let folder = folder::make(args.dir.as_deref())?;
    let mut stage = Stage::new(&folder, out);
    stage
        .say("A .tet file holds named arrays of numbers, cut into chunks. This demo makes one, reads it,")?;
    stage.say(
        "breaks copies of it on purpose, and shows that no damage goes unnoticed. Then it sends a part of",
    )?;
    stage.say("it as .tgm messages, and keeps records in a .tatami file, and breaks those too.")?;
    stage.say(&format!("Its files stay in the folder `{}`.", escape::name(&folder.to_string_lossy())))?;

    create(&mut stage)?;
    inspect(&mut stage)?;
    read(&mut stage)?;
    damage_a_chunk(&mut stage)?;
    salvage(&mut stage)?;
    damage_the_footer(&mut stage)?;
    send_messages(&mut stage)?;
    keep_records(&mut stage)?;
    farewell(&mut stage)?;
    Ok(Outcome::Done)
}

fn create(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("create")?;
    let path = stage.path("weather.tet");
    weather::write(&path)?;
    let file = tet::File::open(&path)?;
    let values: u64 = file.dataset_summaries().iter().filter_map(|dataset| dataset.raw_bytes).sum();
    stage
        .say("One made-up day of temperatures, hour by hour on a grid of 5 degrees, compressed with zstd,")?;
    stage
        .say("and a land mask, stored as it is. Written with the Rust library: a layout, then the values.")?;
    let (values, stored) = (human_size(values), human_size(file.len()));
    stage.say(&format!("`weather.tet` is complete: {values} of values in a file of {stored}."))
}

fn inspect(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("inspect")?;
    stage.tet(&["info", "weather.tet"], 0)
}

fn read(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("read a part")?;
    stage.say(
        "Noon (hour 12) at the equator (row 18), every 60 degrees east. Only the chunks it touches are read.",
    )?;
    stage.tet(&["extract", "weather.tet", "t2m", "-s", "12,18,::12", "-o", "noon.npy"], 0)?;
    let file = tet::File::open(stage.path("weather.tet"))?;
    let t2m = file.dataset("t2m")?;
    let part = t2m.read(&t2m.select("12,18,::12")?)?;
    let found = part.to_vec::<f32>().unwrap_or_default();
    let written: Vec<f32> = (0..72).step_by(12).map(|lon| weather::temperature(12, 18, lon)).collect();
    if found != written {
        return Err(Failure::new(tercet::core::Class::Corrupt, "the values read are not those written"));
    }
    let shown: Vec<String> = found.iter().map(|kelvin| format!("{kelvin:.2}")).collect();
    stage.say(&format!("The library reads the same part: {} K, exactly as written.", shown.join(", ")))?;
    stage.say("Is all of it well?")?;
    stage.tet(&["verify", "weather.tet", "-q"], 0)
}

fn damage_a_chunk(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("damage: one flipped bit")?;
    let file = tet::File::open(stage.path("weather.tet"))?;
    let chunk = file.dataset("t2m")?.chunk_ref(&[1, 0, 1])?.span;
    let at = chunk.start() + chunk.len() / 2;
    folder::damaged_copy(&stage.path("weather.tet"), &stage.path("damaged.tet"), at, |byte| byte ^ 1)?;
    stage.say(&format!(
        "`damaged.tet` is a copy with a single bit flipped, in byte {at}. Reading across it is refused:"
    ))?;
    let all = ["extract", "damaged.tet", "t2m", "-o", "all.npy"];
    stage.tet(&all, 5)?;
    stage.say(
        "No file is left behind, and nothing was guessed. Parts that do not touch the damage still read:",
    )?;
    stage.tet(&["extract", "damaged.tet", "t2m", "-s", "0:6", "-o", "morning.npy"], 0)?;
    stage.say("Which parts are damaged?")?;
    stage.tet(&["verify", "damaged.tet"], 1)
}

fn salvage(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("salvage what is good")?;
    stage.say("A lost chunk cannot be invented, but all others can be saved, with the hole marked:")?;
    stage.tet(&["repair", "damaged.tet", "--salvage", "salvaged.tet", "--fill", "nan"], 0)?;
    stage.tet(&["verify", "salvaged.tet", "--deep", "-q"], 0)
}

fn damage_the_footer(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("damage: a cut file, repaired")?;
    let whole = tet::File::open(stage.path("weather.tet"))?.len();
    folder::cut_copy(&stage.path("weather.tet"), &stage.path("cut.tet"), whole - 9)?;
    stage.say("`cut.tet` is a copy whose last 9 bytes are missing, as after a broken download:")?;
    stage.tet(&["info", "cut.tet"], 4)?;
    stage.say(
        "The end of a file holds names of axes, attributes, history and checksums; the values are elsewhere.",
    )?;
    stage.tet(&["repair", "cut.tet"], 0)?;
    stage.tet(&["repair", "cut.tet", "--apply", "footer_invalid"], 0)?;
    stage.say("All values are there again, but attributes and checksums are lost:")?;
    stage.tet(&["info", "cut.tet", "-q"], 0)?;
    stage.tet(&["extract", "cut.tet", "t2m", "-s", "12,18,::12", "-o", "noon-again.npy"], 0)?;
    let (first, again) = (stage.path("noon.npy"), stage.path("noon-again.npy"));
    if !folder::same_bytes(&first, &again)? {
        return Err(Failure::new(tercet::core::Class::Corrupt, "the repaired file gives other values"));
    }
    stage.say("`noon-again.npy` equals `noon.npy`, byte for byte.")
}

fn send_messages(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("messages")?;
    stage
        .say("A .tgm file holds messages: tensors with metadata, for streams. Here are two, each with the")?;
    stage
        .say("temperatures of one hour. One is written in one piece, the other while its values are made.")?;
    let path = stage.path("hours.tgm");
    let payload = messages::write(&path)?;
    stage.tgm(&["ls", "hours.tgm", "-p", "name,hour,units"], 0)?;
    stage.tgm(&["validate", "hours.tgm"], 0)?;
    let at = payload.start() + payload.len() / 2;
    folder::damaged_copy(&path, &stage.path("bad-hours.tgm"), at, |byte| byte ^ 1)?;
    stage.say(&format!(
        "`bad-hours.tgm` is a copy with one bit flipped, in byte {at}. Metadata can still be read,"
    ))?;
    stage.say("values that are damaged can not:")?;
    stage.tgm(&["get", "-p", "hour", "bad-hours.tgm"], 0)?;
    stage.tgm(&["dump", "bad-hours.tgm"], 5)?;
    stage.tgm(&["validate", "bad-hours.tgm"], 1)
}

fn keep_records(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("records")?;
    stage.say(
        "A .tatami file holds records in columns. Here are twelve cities, sorted by name, four on a page.",
    )?;
    let path = stage.path("cities.tatami");
    records::write_text(&stage.path("cities.jsonl"))?;
    let create =
        ["create", "cities.tatami", "--from", "cities.jsonl", "--sort-key", "name", "--page-rows", "4"];
    stage.tatami(&create, 0)?;
    stage.tatami(&["inspect", "cities.tatami"], 0)?;
    stage.say("One city is found by its name. Only the pages that hold it are read:")?;
    stage.tatami(&["lookup", "cities.tatami", "Lima"], 0)?;
    stage.tatami(&["verify", "cities.tatami", "--deep", "-q"], 0)?;
    let page = records::second_page(&path)?;
    let at = page.end() - 2;
    folder::damaged_copy(&path, &stage.path("bad-cities.tatami"), at, |byte| byte ^ 1)?;
    stage.say(&format!(
        "`bad-cities.tatami` is a copy with one bit flipped, in byte {at}: a name of the second page."
    ))?;
    stage.say("Rows of other pages are still found, and a repair keeps them:")?;
    stage.tatami(&["lookup", "bad-cities.tatami", "Lima"], 5)?;
    stage.tatami(&["lookup", "bad-cities.tatami", "Tunis", "--columns", "name,people"], 0)?;
    stage.tatami(&["repair", "bad-cities.tatami", "-o", "saved-cities.tatami"], 1)
}

fn farewell(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.title("done")?;
    let name = |path: &Path| escape::name(&path.to_string_lossy()).into_owned();
    let folder = name(stage.folder());
    stage
        .say(&format!("The files are in `{folder}`. Look at them again, or try the commands on your own:"))?;
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
        stage.say(&format!("  {line}"))?;
    }
    stage.say(
        "From a source checkout `tet` is `cargo run --release --bin tet --`, `tgm` and `tatami` likewise.",
    )
}
