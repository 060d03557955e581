//! `tet append`: add datasets, or values along an axis of existing ones.

use std::path::PathBuf;

use serde::Serialize;
use tercet::Format;
use tercet::convert;
use tercet::core::num::{counted, saturating_usize};
use tercet::core::{Diagnostic as _, escape};
use tercet::tet::{self, Append, Appended, HistoryRow, NewValues, Rewrite};

use super::arrays::{self, Arrays, Opened, SCOPES, Whole};
use super::edit::quoted;
use super::written::Written;
use crate::args::{JsonArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{check_format, must_be_changeable};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
#[command(after_long_help = SCOPES)]
pub(crate) struct Args {
    /// File to modify
    #[arg(value_name = "FILE")]
    path: PathBuf,
    #[command(flatten)]
    growth: Growth,
    #[command(flatten)]
    arrays: Arrays,
    #[command(flatten)]
    whole: Whole,
    #[command(flatten)]
    json: JsonArgs,
}

/// Options for values along an axis.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Existing datasets")]
struct Growth {
    /// Append the arrays to the datasets NAME along this axis, by name or number, instead of adding datasets. `--labels` then
    /// has the labels of the new positions, also as a list: `time=a,b`
    #[arg(long, value_name = "AXIS", allow_negative_numbers = true,
          conflicts_with_all = ["chunk", "compression", "raw", "zstd", "max_error", "keep_bits", "dims", "attr"])]
    along: Option<String>,
    /// Re-encode the partial chunks at the old end of the axis
    #[arg(long, requires = "along")]
    rechunk: bool,
    /// Allow other datasets with this axis to keep their length
    #[arg(long, requires = "along")]
    allow_partial: bool,
}

/// The JSON summary of values along an axis.
#[derive(Debug, Serialize)]
struct AlongJson<'a> {
    #[serde(flatten)]
    written: &'a Written,
    along: &'a str,
    positions: u64,
    shorter: &'a [String],
    /// The first new label or coordinate that an earlier position has as well.
    repeated: Option<String>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_changeable(&args.path, "append to")?;
    check_format(&args.path, Format::Tet)?;
    if let Some(axis) = &args.growth.along {
        return run_along(args, axis, out);
    }
    // Before locking: reading standard input may take long.
    let opened = args.arrays.open(out)?;
    let mut rewrite = Rewrite::open_with(&args.path, read_options()).map_err(hint_to_create)?;
    if let Some(name) = opened.iter().map(Opened::name).find(|name| rewrite.layout().find(name).is_some()) {
        let failure = Failure::request(format!("duplicate dataset `{}`", escape::name(name)));
        return Err(failure.with_hint("append to its values with `--along AXIS`, or use another name"));
    }
    let style = args.whole.style();
    let ids = arrays::plan(&opened, style, rewrite.layout())?;
    args.whole.apply(rewrite.layout())?;
    let history = arrays::with_roundings(HistoryRow::now("append", &args.arrays.origin()), &opened);
    let total = rewrite.file().len().saturating_add(arrays::total_bytes(&opened));
    let bar = out.bar("writing", total);
    let mut writer = rewrite.start(history, style.options(), &bar)?;
    let mut storage = arrays::store(&opened, &ids, &mut writer, &bar)?;
    writer.finish_checked(read_options(), |file| arrays::verify(&opened, &mut storage, file, &bar))?;
    drop(bar);
    let names: Vec<&str> = opened.iter().map(Opened::name).collect();
    Written::read(&args.path, &names)?.with_storage(&storage).show(args.json.json, out)?;
    Ok(Outcome::Done)
}

/// Appends the arrays to existing datasets.
fn run_along(args: &Args, axis: &str, out: &mut Ui) -> Result<Outcome, Failure> {
    let arrays = args.arrays.open_values(out)?;
    let mut append =
        Append::along(axis).with_rechunk(args.growth.rechunk).with_allow_partial(args.growth.allow_partial);
    for (name, npy) in &arrays {
        append = append.with_array(name, npy.dtype(), npy.shape());
    }
    if let Some(labels) = args.arrays.new_labels(axis)? {
        append = append.with_labels(labels);
    }
    let mut rewrite = Rewrite::open_with(&args.path, read_options()).map_err(hint_to_create)?;
    args.whole.apply(rewrite.layout())?;
    let appended = rewrite.append(&append)?;
    print_notes(axis, &appended, out)?;
    let history = HistoryRow::now("append", &args.arrays.origin())
        .with_param("along", axis)
        .with_param("positions", appended.count.to_string());
    let bytes = arrays.iter().fold(rewrite.file().len(), |sum, (_, npy)| sum.saturating_add(npy.bytes()));
    let bar = out.bar("writing", bytes);
    let values = |values: &NewValues<'_>, buffer: &mut [u8]| {
        let number = appended.datasets.iter().position(|id| *id == values.dataset);
        let Some((_, npy)) = number.and_then(|number| arrays.get(number)) else {
            unreachable!("every dataset that grows has an array")
        };
        npy.read_box(values.start, values.extents, buffer).map_err(convert::Error::from)
    };
    rewrite.start_with(history, args.whole.style().options(), values, &bar)?.finish()?;
    drop(bar);
    let names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
    let written = Written::read(&args.path, &names)?;
    let repeated = repeated(args, axis, &names, appended.count)?;
    if let Some(label) = &repeated {
        let (axis, label) = (escape::name(axis), escape::name(label));
        out.note(format_args!(
            "warning: axis `{axis}` has `{label}` more than once now; `--sel {axis}={label}` selects all of them if they are \
             adjacent, and fails if they are not"
        ))?;
    }
    if args.json.json {
        let Appended { count: positions, shorter, .. } = &appended;
        out.json(&AlongJson { written: &written, along: axis, positions: *positions, shorter, repeated })?;
        return Ok(Outcome::Done);
    }
    written.show(false, out)?;
    let (path, count) =
        (escape::name(&args.path.to_string_lossy()).into_owned(), counted(appended.count, "position"));
    out.summary(format_args!("{path}: {count} appended along `{}`", escape::name(axis)))?;
    Ok(Outcome::Done)
}

fn print_notes(axis: &str, appended: &Appended, out: &mut Ui) -> Result<(), Failure> {
    let axis = escape::name(axis);
    if !appended.shorter.is_empty() {
        let names = quoted(appended.shorter.iter().map(String::as_str));
        out.note(format_args!("note: axis `{axis}` keeps its length in {names}"))?;
    }
    for (name, rounding) in &appended.rounded {
        let name = escape::name(name);
        out.note(format_args!("note: new values of `{name}` are rounded like the stored ones: {rounding}"))?;
    }
    Ok(())
}

/// The first label or coordinate of the new positions that an earlier position has as well.
fn repeated(args: &Args, axis: &str, names: &[&str], count: u64) -> Result<Option<String>, Failure> {
    let file = tet::File::open_with(&args.path, read_options())?;
    for name in names {
        let dataset = file.dataset(name)?;
        // A coordinate dataset need not name its axis.
        let Ok(axis) = dataset.axis(axis) else { continue };
        let Some(coordinates) = dataset.readable_coordinates(axis)? else { continue };
        let old = dataset.shape()[axis].saturating_sub(count);
        if let Some(repeated) = coordinates.repeated(saturating_usize(old)) {
            return Ok(Some(repeated));
        }
    }
    Ok(None)
}

fn hint_to_create(error: tet::Error) -> Failure {
    let missing = error.is_not_found();
    let failure = Failure::from(error);
    if missing { failure.with_hint("create a new file with `tet create`") } else { failure }
}
