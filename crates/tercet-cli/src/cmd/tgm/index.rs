//! `tgm index`: a message index at the end of a file.

use std::path::PathBuf;

use serde::Serialize;
use tercet::Format;
use tercet::core::escape;
use tercet::tgm::{ErrorKind, IndexKeys, Provenance, ReindexOptions, Writer};

use super::select::Keys;
use crate::args::{JsonArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::{check_format, must_be_changeable};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm index run.tgm                              index the first 64 keys
  tgm index run.tgm --keys mars.param,mars.step  index these keys
  tgm ls -w mars.param=2t run.tgm                read matching messages only
  tgm index run.tgm --index-file                 write the index to run.tgm.idx
  tgm index run.tgm --remove                     remove the index";

const GAP_HINT: &str = "recover what is left with `tgm repair FILE -o NEW`, or index the messages around the gap with `--allow-gaps`";
const TAIL_HINT: &str = "copy the complete messages with `tgm repair FILE -o NEW`; `tgm create --append` removes an incomplete one";

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// File to index; the index is written after its last message
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Index these keys: KEY1,KEY2, with dots for nested keys [default: the keys of the existing index, or the first
    /// 64 keys]
    #[arg(short, long, value_name = "KEYS")]
    keys: Option<Keys>,
    /// Index all keys
    #[arg(long, conflicts_with = "keys")]
    all_keys: bool,
    /// Rebuild the index from scratch
    #[arg(long)]
    rebuild: bool,
    /// Write the index to FILE.idx; FILE does not change
    #[arg(long)]
    index_file: bool,
    /// Index a file with gaps between messages; messages may be lost in them
    #[arg(long)]
    allow_gaps: bool,
    /// Remove the index, also FILE.idx
    #[arg(long, conflicts_with_all = ["keys", "all_keys", "rebuild", "reproducible", "index_file"])]
    remove: bool,
    /// Omit timestamp, UUID and producer, for reproducible output
    #[arg(long)]
    reproducible: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON summary.
#[derive(Serialize)]
struct IndexJson<'a> {
    file: String,
    messages: u64,
    /// Messages that were read.
    entered: u64,
    keys: &'a [String],
    changed: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_changeable(&args.path, "index")?;
    check_format(&args.path, Format::Tgm)?;
    let path = escape::name(&args.path.to_string_lossy()).into_owned();
    let bar = out.bar("indexing", std::fs::metadata(&args.path).map_or(0, |meta| meta.len()));
    if args.remove {
        let had_one = Writer::remove_index(&args.path, &ReindexOptions::new().with_limits(limits()), &bar)?;
        drop(bar);
        if args.json.json {
            out.json(&serde_json::json!({ "file": args.path.to_string_lossy(), "changed": had_one }))?;
        } else {
            let done = if had_one { "index removed" } else { "no index" };
            out.summary(format_args!("{path}: {done}"))?;
        }
        return Ok(Outcome::Done);
    }
    let keys = args.keys.as_ref().map(|keys| IndexKeys::Only(keys.iter().map(str::to_owned).collect()));
    let keys = keys.or_else(|| args.all_keys.then_some(IndexKeys::All));
    let provenance = if args.reproducible { Provenance::Off } else { Provenance::default() };
    let how = ReindexOptions::new().with_keys(keys).with_rebuild(args.rebuild).with_provenance(provenance);
    let how = how.with_limits(limits()).with_index_file(args.index_file).with_allow_gaps(args.allow_gaps);
    let done = Writer::reindex(&args.path, &how, &bar).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::IndexedGap { .. } => Some(GAP_HINT),
            ErrorKind::IndexedTail { .. } => Some(TAIL_HINT),
            _ => None,
        };
        let failure = Failure::from(error);
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    })?;
    drop(bar);
    if args.json.json {
        let file = args.path.to_string_lossy().into_owned();
        let (messages, entered, changed) = (done.messages, done.entered, !done.is_unchanged);
        out.json(&IndexJson { file, messages, entered, keys: &done.keys, changed })?;
        return Ok(Outcome::Done);
    }
    let keys: Vec<_> = done.keys.iter().map(|key| escape::name(key)).collect();
    let keys = if keys.is_empty() { "no keys".to_owned() } else { format!("keys {}", keys.join(", ")) };
    let (messages, entered) = (done.messages, done.entered);
    let plural = if messages == 1 { "" } else { "s" };
    if done.is_unchanged {
        out.summary(format_args!("{path}: index is up to date: {messages} message{plural}, {keys}"))?;
    } else {
        let added = if entered < messages { format!(" ({entered} new)") } else { String::new() };
        out.summary(format_args!("{path}: indexed {messages} message{plural}{added}, {keys}"))?;
    }
    Ok(Outcome::Done)
}
