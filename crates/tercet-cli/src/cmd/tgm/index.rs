//! `tgm index`: a catalogue at the end of a file.

use std::path::PathBuf;

use serde::Serialize;
use tercet::core::escape;
use tercet::tgm::{IndexKeys, Provenance, ReindexOptions, Writer};

use super::select::Keys;
use crate::failure::{Failure, Outcome};
use crate::input::must_be_on_disk;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm index run.tgm                              all keys
  tgm index run.tgm --keys mars.param,mars.step  these keys
  tgm ls -w mars.param=2t run.tgm                looks at no other messages now
  tgm index run.tgm --remove                     the file as it was";

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file, on a disk; it is written anew, and replaced when that is complete
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// The keys whose values it holds: KEY1,KEY2 with dots inside nested keys. Without it those of the catalogue that is
    /// there, or the first 64 keys that messages have
    #[arg(short, long, value_name = "KEYS")]
    keys: Option<Keys>,
    /// Hold all keys, whatever the catalogue that is there holds
    #[arg(long, conflicts_with = "keys")]
    all_keys: bool,
    /// Look at every message, even at those that the catalogue that is there tells of
    #[arg(long)]
    anew: bool,
    /// Take the catalogue away
    #[arg(long, conflicts_with_all = ["keys", "all_keys", "anew", "reproducible"])]
    remove: bool,
    /// Leave out when and by what the catalogue was written, so that equal messages make equal bytes
    #[arg(long)]
    reproducible: bool,
    /// Print what was done as JSON
    #[arg(short, long)]
    json: bool,
}

/// What was done.
#[derive(Serialize)]
struct Told<'a> {
    file: String,
    messages: u64,
    /// Messages that were looked at.
    entered: u64,
    keys: &'a [String],
    changed: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_on_disk(&args.path, "index")?;
    let shown = escape::name(&args.path.to_string_lossy()).into_owned();
    let bar = out.bar("indexing", std::fs::metadata(&args.path).map_or(0, |meta| meta.len()));
    if args.remove {
        let had_one = Writer::remove_index(&args.path, &bar)?;
        drop(bar);
        if args.json {
            out.json(&serde_json::json!({ "file": args.path.to_string_lossy(), "changed": had_one }))?;
        } else {
            let done = if had_one { "the catalogue is gone" } else { "there is no catalogue" };
            out.line(format_args!("{shown}: {done}"))?;
        }
        return Ok(Outcome::Done);
    }
    let keys = args.keys.as_ref().map(|keys| IndexKeys::Only(keys.iter().map(str::to_owned).collect()));
    let keys = keys.or_else(|| args.all_keys.then_some(IndexKeys::All));
    let provenance = if args.reproducible { Provenance::Off } else { Provenance::default() };
    let how = ReindexOptions::new().with_keys(keys).with_rebuild(args.anew).with_provenance(provenance);
    let done = Writer::reindex(&args.path, &how, &bar)?;
    drop(bar);
    if args.json {
        let file = args.path.to_string_lossy().into_owned();
        let (messages, entered, changed) = (done.messages, done.entered, !done.is_unchanged);
        out.json(&Told { file, messages, entered, keys: &done.keys, changed })?;
        return Ok(Outcome::Done);
    }
    let keys: Vec<_> = done.keys.iter().map(|key| escape::name(key)).collect();
    let keys = if keys.is_empty() { "no keys".to_owned() } else { format!("keys {}", keys.join(", ")) };
    let (messages, entered) = (done.messages, done.entered);
    let plural = if messages == 1 { "" } else { "s" };
    if done.is_unchanged {
        out.line(format_args!("{shown}: the catalogue is up to date: {messages} message{plural}, {keys}"))?;
    } else {
        let looked = if entered < messages { format!(" ({entered} new)") } else { String::new() };
        out.line(format_args!("{shown}: catalogue of {messages} message{plural}{looked}, {keys}"))?;
    }
    Ok(Outcome::Done)
}
