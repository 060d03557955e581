//! `tet repack`: rewrite datasets with another compression, rounding or chunk shape.

use std::sync::Arc;

use tercet::Format;
use tercet::core::escape;
use tercet::tet::{Compression, File, HistoryRow, Merge, Repack, Rounding, Writer, unix_seconds};

use super::arrays::{Style, check_error, syntax};
use super::edit::history;
use super::merge::file_name;
use super::written::{self, Storage, Written};
use crate::args::{ForceArgs, JsonArgs, OutputArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, must_be};
use crate::output::{Output, Spool, readable_copy, send, stream_file};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet repack run.tet small.tet                              zstd if it shrinks the data, else raw chunks
  tet repack run.tet small.tet --compression zstd:19
  tet repack run.tet small.tet --dataset t2m --max-error 0.01
  tet repack run.tet maps.tet --dataset t2m --chunk 1,721,1440

Attributes, axis names, labels and history are kept. Other datasets are copied as they are stored. `tet \
advise` measures what the options save.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    output: OutputArgs,
    /// Dataset to repack. Repeatable [default: all; for --max-error and --keep-bits: all floats that are not
    /// coordinates]
    #[arg(long, value_name = "NAME")]
    dataset: Vec<String>,
    /// Chunk shape: `1,721,1440`. Requires --dataset if the datasets have different numbers of axes
    #[arg(long = "chunk", alias = "chunks", value_name = "N,N,…")]
    chunks: Option<String>,
    /// Compression: `none`, `zstd`, `zstd:LEVEL` or `auto`
    #[arg(long, value_name = "CODEC[:LEVEL]", default_value = "auto", value_parser = syntax::parse_compression)]
    compression: Compression,
    /// Store raw chunks, which can be memory-mapped: short for `--compression none`
    #[arg(long, conflicts_with_all = ["compression", "zstd"])]
    raw: bool,
    /// Compress with zstd: short for `--compression zstd:LEVEL`
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, default_missing_value = "3", allow_negative_numbers = true,
          conflicts_with = "compression", value_parser = parse_zstd)]
    zstd: Option<Compression>,
    /// Round floats: keep the fewest bits with an absolute error of at most E
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = syntax::parse_max_error)]
    max_error: Option<Rounding>,
    /// Round floats to N mantissa bits
    #[arg(long, value_name = "N", value_parser = syntax::parse_keep_bits, conflicts_with = "max_error")]
    keep_bits: Option<Rounding>,
    #[command(flatten)]
    style: Style,
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
    output.must_not_be(&args.input.path)?;
    let source = must_be(args.input.source()?, Format::Tet)?;
    let file = Arc::new(File::from_source(source, read_options())?);
    let plan = Plan::new(args, &file)?;
    let bar = out.bar("writing", plan.bytes);
    let mut merge = Merge::new();
    merge.add(&file, str::to_owned, &bar)?;
    let layout = merge.layout();
    for (name, repack) in &plan.datasets {
        if let Some(id) = layout.find(name) {
            layout.repack(id, repack)?;
        }
    }
    if args.style.records_origin() {
        layout.file_info("tercet", env!("CARGO_PKG_VERSION"), unix_seconds());
        layout.add_history(args.history(&file));
    }
    let (layout, _) = merge.finish();
    let ids: Vec<_> = plan.datasets.iter().map(|(name, _)| layout.find(name)).collect();
    let options = args.style.options();
    let storage = |choice: &dyn Fn(tercet::tet::DatasetId) -> Option<tercet::tet::CompressionChoice>| {
        let each = ids.iter().zip(&plan.datasets).map(|(id, (_, repack))| Storage {
            choice: id.and_then(choice),
            rounding: repack.rounding.map(|rounding| (rounding, 0.0)),
        });
        each.collect::<Vec<_>>()
    };
    let names: Vec<&str> = plan.datasets.iter().map(|(name, _)| name.as_str()).collect();
    let written = match output {
        Output::Path(path) => {
            let mut writer = Writer::create(&path, layout, options.with_overwrite(args.force.force))?;
            writer.copy_stored(&bar)?;
            let mut storage = storage(&|id| writer.compression_choice(id));
            writer.finish_checked(read_options(), |new| plan.verify(&file, new, &mut storage, &bar))?;
            Written::read(&path, &names)?.with_storage(&storage)
        }
        Output::Stream(stream) => {
            let name = stream.name();
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name(&name);
            writer.copy_stored(&bar)?;
            let mut storage = storage(&|id| writer.compression_choice(id));
            let spool = writer.finish()?.output;
            let new = written::open(readable_copy(&name, &spool)?)?;
            plan.verify(&file, &new, &mut storage, &bar)?;
            stream_file(spool, stream)?;
            Written::from_file(&new, &names)?.with_storage(&storage)
        }
        Output::Stdout => {
            let mut writer = Writer::new(Spool::new()?, layout, options)?.with_name("standard output");
            writer.copy_stored(&bar)?;
            let mut storage = storage(&|id| writer.compression_choice(id));
            let spool = writer.finish()?.output;
            let new = written::open(readable_copy("standard output", &spool)?)?;
            plan.verify(&file, &new, &mut storage, &bar)?;
            drop(bar);
            send(spool, out)?;
            return Ok(Outcome::Done);
        }
    };
    drop(bar);
    written.show(args.json.json, out)?;
    Ok(Outcome::Done)
}

/// The datasets that are written again.
struct Plan {
    datasets: Vec<(String, Repack)>,
    bytes: u64,
}

impl Plan {
    fn new(args: &Args, file: &File) -> Result<Self, Failure> {
        let chunks = args.chunks.as_deref().map(syntax::parse_chunk).transpose().map_err(Failure::request)?;
        let rounding = args.max_error.or(args.keep_bits);
        let all = args.dataset.is_empty();
        let names: Vec<String> = if all {
            file.datasets().map(|dataset| dataset.name().to_owned()).collect()
        } else {
            args.dataset.clone()
        };
        let is_axis = |name: &str| {
            let leaf = name.rsplit('/').next().unwrap_or(name);
            file.datasets()
                .any(|other| (0..other.shape().len()).any(|axis| other.axis_name(axis) == Some(leaf)))
        };
        let mut datasets = Vec::with_capacity(names.len());
        let (mut bytes, mut rounded) = (0u64, 0);
        for name in names {
            let dataset = file.dataset(&name)?;
            let grid = dataset.grid()?;
            bytes = bytes.saturating_add(grid.bytes());
            let is_coordinate = grid.rank() == 1 && is_axis(&name);
            let mut repack = Repack::new().with_compression(args.compression());
            if let Some(chunks) = chunks.as_ref().filter(|_| !(all && is_coordinate)) {
                repack = repack.with_chunk_shape(chunks.clone());
            }
            if let Some(rounding) = rounding
                && (!all || (grid.element().is_float() && !is_coordinate))
            {
                repack = repack.with_rounding(rounding);
                rounded += 1;
            }
            datasets.push((name, repack));
        }
        if rounding.is_some() && rounded == 0 {
            let name = escape::name(file.name()).into_owned();
            return Err(Failure::request(format!("{name}: no dataset can be rounded: there are no floats")));
        }
        Ok(Self { datasets, bytes })
    }

    /// Compares rounded datasets with the input.
    fn verify(
        &self,
        old: &File,
        new: &File,
        storage: &mut [Storage],
        bar: &crate::ui::Bar,
    ) -> Result<(), Failure> {
        for ((name, _), storage) in self.datasets.iter().zip(storage) {
            let Some((rounding, error)) = &mut storage.rounding else { continue };
            *error = old.dataset(name)?.max_abs_error_to(&new.dataset(name)?, bar)?;
            check_error(new, name, *rounding, *error)?;
        }
        Ok(())
    }
}

/// The compression of `--zstd LEVEL`.
fn parse_zstd(level: &str) -> Result<Compression, String> {
    syntax::parse_compression(&format!("zstd:{level}"))
}

impl Args {
    fn compression(&self) -> Compression {
        if self.raw { Compression::None } else { self.zstd.unwrap_or(self.compression) }
    }

    fn history(&self, file: &File) -> HistoryRow {
        let rounding = self.max_error.or(self.keep_bits);
        let params = [
            ("datasets", self.dataset.join(", ")),
            ("chunks", self.chunks.clone().unwrap_or_default()),
            ("rounding", rounding.map(|rounding| rounding.to_string()).unwrap_or_default()),
        ];
        let params = params.map(|(key, value)| (key.to_owned(), value));
        history("repack", &file_name(file.name()), params)
    }
}
