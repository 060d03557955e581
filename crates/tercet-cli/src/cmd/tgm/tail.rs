//! `tgm tail`: follow a file or stream.

use std::path::PathBuf;
use std::time::Duration;

use tercet::core::progress::Progress;
use tercet::core::{Diagnostic as _, Location};
use tercet::tgm::{File, Follow, FollowOptions, ReadOptions};

use super::select::{Filter, Keys};
use crate::args::{JsonArgs, LimitArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::is_pipe;
use crate::ui::{Ui, is_interrupted};

mod printer;

use printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tgm tail run.tgm -p mars.param                one line per complete message
  tgm tail run.tgm --last 0 -w mars.param=2t    new matching messages only
  tgm tail run.tgm --json --retry               JSON Lines; wait for the file
  producer | tgm tail - -n 10                   the first 10 messages of a stream

A message is printed when it is complete and all its hashes match. Damaged messages are reported on standard error \
and skipped. If the file is replaced, truncated or rewritten, reading continues after the \
last complete message if the file starts with the same bytes, else from its start. Indexes (`tgm index`) are skipped.

Exit code 0: no damage; 1: damaged messages, or unrecognized bytes; 4: the input ends inside a message.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("limit", |arg| arg.help("Exit after N messages; 0 prints all [default: 0]").alias("until-count")))]
pub(crate) struct Args {
    /// Input file, named pipe or URL (`https://`, `s3://`, `gs://`, `az://`); `-` reads standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Also print these keys
    #[arg(short = 'p', long, value_name = "KEYS")]
    keys: Option<Keys>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    limit: LimitArgs,
    /// Start with the last N messages; 0 starts with the next new message [default: all messages]
    #[arg(long, value_name = "N")]
    last: Option<u64>,
    /// Exit at the end of the file instead of waiting
    #[arg(long)]
    no_follow: bool,
    /// Wait for a missing file
    #[arg(long)]
    retry: bool,
    /// Exit after SECONDS without a new message
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    idle: Option<Duration>,
    /// Poll interval [default: 0.02, for URLs 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    interval: Option<Duration>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut follow = args.follow()?;
    let mut printer = Printer::new(args, out)?;
    loop {
        match follow.next_event(&Interrupts) {
            Ok(Some(event)) => printer.report(event, out)?,
            Ok(None) => break,
            Err(error) => {
                printer.print_cut(out)?;
                out.finish()?;
                let is_missing = error.is_not_found() && !args.retry;
                let failure = Failure::from(error);
                return Err(if is_missing {
                    failure.with_hint("add `--retry` to wait for it")
                } else {
                    failure
                });
            }
        }
        if printer.is_full() {
            break;
        }
    }
    printer.end(out)
}

/// Cancels following at an interrupt.
struct Interrupts;

impl Progress for Interrupts {
    fn advance(&self, _bytes: u64) {}

    fn is_cancelled(&self) -> bool {
        is_interrupted()
    }
}

impl Args {
    /// The name of the file for messages, without URL credentials.
    fn display_name(&self) -> String {
        match crate::remote::url_of(&self.path) {
            Some(url) => crate::remote::redacted(url),
            None => self.path.to_string_lossy().into_owned(),
        }
    }

    /// The messages of the input.
    fn follow(&self) -> Result<Follow, Failure> {
        let options = FollowOptions::new()
            .with_last(self.last)
            .with_wait(!self.no_follow)
            .with_retry(self.retry)
            .with_idle(self.idle)
            .with_interval(self.interval)
            .with_read(ReadOptions::new().with_limits(limits()));
        let is_stdin = self.path.as_os_str() == "-";
        if self.last.is_some() && (is_stdin || is_pipe(&self.path)) {
            let failure = Failure::request("`--last` cannot be used with standard input or a pipe");
            return Err(failure.with_hint("give a file"));
        }
        if is_stdin {
            return Ok(File::follow_stream("standard input", std::io::stdin(), options));
        }
        let location = match crate::remote::url_of(&self.path) {
            Some(url) => {
                #[cfg(feature = "remote")]
                crate::remote::must_be_known(url)?;
                Location::Url(url.into())
            }
            None => Location::Path(self.path.clone()),
        };
        Ok(File::follow(location, options))
    }
}

/// Parses a duration in seconds, from a millisecond to a year.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=31_557_600.0).contains(seconds));
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "expected seconds, like 10 or 0.05; at least 0.001".to_owned())
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
