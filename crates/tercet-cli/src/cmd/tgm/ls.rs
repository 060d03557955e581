//! `tgm ls`: list messages with metadata values.

use serde_json::{Map, Value as Json};
use tercet::core::escape;
use tercet::tgm::GlobalMetadata;

use super::open::{ReadArgs, for_each_message};
use super::select::{Filter, Keys, look_up};
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::ui::Ui;

/// The text of a missing value.
pub(super) const MISSING: &str = "N/A";

const EXAMPLES: &str = "\
Examples:
  tgm ls run.tgm -p mars.param,mars.step        one tab-separated row per message
  tgm ls run.tgm -w mars.param=2t/msl -p mars   matching messages
  tgm ls run.tgm -w 'mars.step!=0' -j           one JSON object per message

KEY is a path like mars.param, looked up in the objects first, then in the metadata of the
message; extra.KEY looks in the latter only. `version` is the format version.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N messages; 0 prints all [default: 0]")))]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    filter: Filter,
    /// Print these keys [default: version]
    #[arg(short = 'p', long, value_name = "KEYS")]
    keys: Option<Keys>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let keys = args.keys.clone().unwrap_or_default();
    let mut has_heads = args.json.json;
    let mut left = args.limit.or(0);
    for input in args.inputs.each()? {
        let file = args.read.open(input.source()?, out)?;
        if !has_heads {
            out.line(keys.iter().map(escape::name).collect::<Vec<_>>().join("\t"))?;
            has_heads = true;
        }
        for_each_message(&file, &args.filter, &mut left, |message| {
            if args.json.json {
                return out.json(&projection(message.metadata(), &keys));
            }
            let value = |key| look_up(message.metadata(), key).unwrap_or(MISSING.into());
            let row: Vec<String> = keys.iter().map(|key| escape::name(&value(key)).into_owned()).collect();
            out.line(row.join("\t"))
        })?;
    }
    Ok(Outcome::Done)
}

/// The values of the given keys of a message, sorted by key.
pub(super) fn projection(metadata: &GlobalMetadata, keys: &Keys) -> Json {
    let value = |key: &str| Some((key.to_owned(), look_up(metadata, key)?.into_owned().into()));
    let mut found: Vec<(String, Json)> = keys.iter().filter_map(value).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Json::Object(found.into_iter().collect::<Map<_, _>>())
}
