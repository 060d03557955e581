//! Options shared by the verbs: each is defined once, so that it means the same everywhere.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::ValueEnum;
use tercet::core::{Limits, OutlineOptions, ReadOptions, threads};

use crate::render::parse_size;

/// `-j, --json`.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct JsonArgs {
    /// Print output and errors as JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// `-j, --json` of verbs whose output is not data: errors can be JSON, but the help does not offer it.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct NoJsonArgs {
    /// Print errors as JSON
    #[arg(short, long, hide = true)]
    json: bool,
}

/// `-q, --quiet` of the verbs that report on a file.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct QuietArgs {
    /// Print a one-line summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `-f, --force`.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ForceArgs {
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// The set of format features that a writer may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProfileName {
    #[default]
    #[value(alias = "tercet")]
    Native,
    Interop,
}

impl ProfileName {
    /// The writer options of a `.tatami` file.
    pub(crate) fn writer_options(self) -> tercet::tatami::WriterOptions {
        match self {
            Self::Native => tercet::tatami::WriterOptions::new(),
            Self::Interop => tercet::tatami::WriterOptions::interop(),
        }
    }
}

/// `-n, --limit N`: at most N items, and 0 means all. Verbs state their default in the help.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct LimitArgs {
    /// Print at most N items
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<u64>,
}

impl LimitArgs {
    /// Rows of an outline that are printed by default.
    const OUTLINE_ROWS: u64 = 32;

    /// The options of an outline, without pages.
    pub(crate) fn for_outline(self) -> OutlineOptions {
        let rows = self.limit.unwrap_or(Self::OUTLINE_ROWS);
        OutlineOptions::new().with_max_rows((rows > 0).then_some(rows)).with_pages(false)
    }

    /// The maximum number of items; 0 means all.
    pub(crate) fn or(self, default: u64) -> u64 {
        match self.limit.unwrap_or(default) {
            0 => u64::MAX,
            limit => limit,
        }
    }
}

/// The output of a verb: the last positional argument, or `-o`, which means the same for every verb.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Output file or URL (`s3://`, `gs://`, `az://`); `-` writes to standard output
    #[arg(value_name = "OUT", required_unless_present = "output_option")]
    output: Option<PathBuf>,
    /// Output file; same as the OUT argument
    #[arg(short = 'o', long = "output", value_name = "OUT", id = "output_option", conflicts_with = "output")]
    option: Option<PathBuf>,
}

impl OutputArgs {
    /// The path or URL. Clap ensures that exactly one of the two is given.
    pub(crate) fn path(&self) -> &Path {
        self.output.as_deref().or(self.option.as_deref()).unwrap_or(Path::new("-"))
    }
}

/// The heading of the options that every verb has.
pub(crate) const GLOBAL: &str = "Global options";

/// Global options of every verb.
#[derive(Clone, Copy, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub(crate) struct GlobalArgs {
    /// Hide progress, notes and summaries
    #[arg(short, long, global = true, display_order = 910, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Print output and errors as JSON
    #[arg(short, long, global = true, display_order = 909, help_heading = GLOBAL)]
    json: bool,
    /// Print error class, exit code and byte range of errors
    #[arg(short, long, global = true, display_order = 911, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    /// Color the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 912, help_heading = GLOBAL)]
    color: Color,
    /// Hide the progress bar
    #[arg(long, global = true, display_order = 913, help_heading = GLOBAL)]
    pub(crate) no_progress: bool,
    /// Maximum memory for metadata, and for each decoded chunk, array or column [default: 1GiB, more for large files]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size, display_order = 901, help_heading = GLOBAL)]
    max_memory: Option<u64>,
}

/// The limits set by `--max-memory` and `--max-array`.
static LIMITS: OnceLock<Limits> = OnceLock::new();

/// The limits of this process for the sizes that a file declares.
pub(crate) fn limits() -> Limits {
    LIMITS.get().copied().unwrap_or_default()
}

/// Read options with the limits of this process.
pub(crate) fn read_options() -> ReadOptions {
    ReadOptions::new().with_limits(limits())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl GlobalArgs {
    /// Applies `--max-memory` and `--max-array` to every file that is opened.
    pub(crate) fn set_limits(self, max_array: Option<u64>) {
        let mut limits = self.max_memory.map_or_else(Limits::default, Limits::uniform);
        if let Some(bytes) = max_array {
            limits = limits.with_array_bytes(bytes).with_chunk_bytes(bytes).with_small_file_bytes(bytes);
        }
        // Set once for each process.
        let _ = LIMITS.set(limits);
    }

    /// Applies `--color` to standard output and standard error.
    pub(crate) fn set_color(self) {
        let choice = match self.color {
            Color::Auto => return,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// `--threads N`. The verbs for `.tgm` files have it with an environment variable.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ThreadArgs {
    /// Number of threads, at most 4 per core [default: all cores]
    #[arg(long, global = true, value_name = "N", display_order = 902, help_heading = GLOBAL)]
    pub(crate) threads: Option<usize>,
}

/// Threads per core that are never exceeded: more do not make anything faster.
const MAX_THREADS_PER_CORE: usize = 4;

/// Starts the thread pool with the requested number of threads, or one per core.
pub(crate) fn start_thread_pool(requested: Option<usize>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let variable = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok());
    threads::start_global_pool(pool_size(requested, variable, cores));
}

/// The number of threads: the option, else the environment variable (0 means unset, as in rayon), else one per core.
fn pool_size(requested: Option<usize>, variable: Option<usize>, cores: usize) -> NonZeroUsize {
    let max = cores.saturating_mul(MAX_THREADS_PER_CORE).max(1);
    let threads = requested.or(variable.filter(|threads| *threads > 0)).unwrap_or(cores);
    NonZeroUsize::new(threads.min(max)).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_are_clamped() {
        assert_eq!(pool_size(None, None, 2).get(), 2);
        assert_eq!(pool_size(None, Some(0), 2).get(), 2);
        assert_eq!(pool_size(None, Some(8), 2).get(), 8);
        assert_eq!(pool_size(None, Some(100_000), 2).get(), 8);
        assert_eq!(pool_size(Some(100_000), None, 2).get(), 8);
        assert_eq!(pool_size(Some(0), Some(100_000), 2).get(), 1);
        assert_eq!(pool_size(Some(3), Some(100_000), 2).get(), 3);
    }
}
