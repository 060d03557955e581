//! `tgm tail`: messages as they become whole.

use std::path::PathBuf;
use std::time::Duration;

use super::select::{Filter, Keys};
use crate::address;
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

mod consumed;
mod distant;
mod growing;
mod pipe;
mod teller;
mod watch;

use teller::Teller;

/// How often to look at a file, and at one far away.
const INTERVAL: Duration = Duration::from_millis(20);
const DISTANT_INTERVAL: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  tgm tail run.tgm -p mars.param                a line for each message, as it becomes whole
  tgm tail run.tgm -n 0 -w mars.param=2t        only new ones, and of these only some
  tgm tail run.tgm --json --retry               a JSON object on each line; waits for the file
  producer | tgm tail - --until-count 10        a stream, up to its tenth message

A message is told when its end was seen and every hash it carries was right: half a message never is. One that \
is damaged is told on standard error and passed over. A file that is replaced, as `tgm create --append` does, is \
gone on with behind what was read if it starts with the same bytes, and else read from its start; so is one that \
shrank or was written anew. Catalogues (`tgm index`) are not told.

Exit code 0: nothing was wrong; 1: something was damaged or belongs to no message; 4: the end is inside a message.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file that grows, or its address (`https://`, `s3://`, `gs://`, `az://`); `-` reads standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Show the values of these keys too
    #[arg(short = 'p', long, value_name = "KEYS")]
    keys: Option<Keys>,
    /// Print a JSON object for each message, on one line
    #[arg(short, long)]
    json: bool,
    /// Start with the last N messages that are there, 0: with the next one [default: the first]
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<u64>,
    /// Stop at the end of what is there
    #[arg(long)]
    no_follow: bool,
    /// Wait for a file that is not there, at the start or later
    #[arg(long)]
    retry: bool,
    /// Stop after N messages
    #[arg(long, value_name = "N")]
    until_count: Option<u64>,
    /// Stop when nothing came for so long
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    idle: Option<Duration>,
    /// How often to look at the file [default: 0.02, for addresses 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    interval: Option<Duration>,
}

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    GoOn,
    Enough,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let is_stdin = args.path.as_os_str() == "-";
    if is_stdin && args.last.is_some() {
        let failure = Failure::request("standard input has no last messages before it ends");
        return Err(failure.with_hint("`--last` takes a file"));
    }
    let mut teller = Teller::new(args, out)?;
    if args.until_count != Some(0) {
        if is_stdin {
            pipe::drain(args, &mut teller, out)?;
        } else {
            match address::of(&args.path) {
                Some(address) => watch::watch(args, &*distant::place(address)?, &mut teller, out)?,
                None => watch::watch(args, &growing::Path::new(&args.path), &mut teller, out)?,
            }
        }
    }
    teller.end(out)
}

impl Args {
    /// The name of the file as it is told: without the secrets of an address.
    fn shown(&self) -> String {
        match address::of(&self.path) {
            Some(address) => address::shown(address),
            None => self.path.to_string_lossy().into_owned(),
        }
    }

    /// How often to look.
    fn interval(&self) -> Duration {
        let default = if address::of(&self.path).is_some() { DISTANT_INTERVAL } else { INTERVAL };
        self.interval.unwrap_or(default)
    }
}

/// A length of time in seconds, from a millisecond to a year.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=31_557_600.0).contains(seconds));
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "write it in seconds, like 10 or 0.05; at least 0.001".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds() {
        assert_eq!(seconds("0.02"), Ok(Duration::from_millis(20)));
        assert_eq!(seconds("10"), Ok(Duration::from_secs(10)));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e9", "10ms"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
