//! Sidecar: the `.tet` file that a transform is written to, with its provenance.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::{ErrorKind, TargetError};
use crate::exec::job::Job;
use crate::exec::target::Outputs;
use crate::grid::Grid;
use crate::layout::{DatasetId, Layout, LayoutError, WriterOptions};
use crate::metadata::{Coord, DatasetInfo, HistoryRow, Metadata, unix_seconds};
use crate::metadata_limits;
use crate::query::operation::Method;
use crate::results::ENCODING;

/// Default path of a sidecar: next to the source, `{stem}.{method}[.{time}].tet`.
///
/// A name with a time is always new: a file that another query wrote in the same second is kept, and a number is
/// appended.
pub(super) fn path(outputs: &Outputs, method: Method, timestamp: bool) -> Result<PathBuf, ErrorKind> {
    if !timestamp {
        return named(outputs, method, "");
    }
    let time = basic_time(unix_seconds());
    let mut path = named(outputs, method, &format!(".{time}"))?;
    for number in 2.. {
        if !outputs.spot(&path)?.is_taken() {
            break;
        }
        path = named(outputs, method, &format!(".{time}-{number}"))?;
    }
    Ok(path)
}

fn named(outputs: &Outputs, method: Method, time: &str) -> Result<PathBuf, ErrorKind> {
    let no_base = || ErrorKind::Target { path: "sidecar".into(), reason: TargetError::NoBase };
    let stem = outputs.file().and_then(|file| file.file_stem()).ok_or_else(no_base)?;
    let mut name = OsString::from(stem);
    name.push(format!(".{}{time}.tet", method.name()));
    Ok(PathBuf::from(name))
}

/// Layout of the sidecar, validated.
pub(super) fn layout(
    job: &Job<'_>,
    method: Method,
    axes: &[usize],
) -> Result<(Layout, DatasetId), ErrorKind> {
    let source = job.dataset.name();
    let name = format!("{source}-{}", method.name());
    let shape = job.plan.selection.shape();
    let dtype = job.transformed();
    let mut layout = Layout::new();
    // One chunk, unless readers would reject a chunk of that size.
    let most = job.dataset.file.options.limits.chunk_bytes;
    let whole = Grid::new(dtype, &shape, &shape)
        .map_err(|reason| LayoutError::Dataset { dataset: name.clone(), reason })?;
    let id = layout.dataset(&name, dtype, &shape, whole.blocks_of_rows(most))?;
    let mut metadata = Metadata::default();
    metadata.datasets.insert(name.clone(), info(job));
    layout.metadata(metadata)?;
    layout.file_info("tet query transform", env!("CARGO_PKG_VERSION"), unix_seconds());
    layout.history(history(job, method, axes, &name))?;
    layout.check(WriterOptions::new())?;
    Ok((layout, id))
}

/// Metadata of the source, for the selected positions.
fn info(job: &Job<'_>) -> DatasetInfo {
    let dataset = &job.dataset;
    let mut info = dataset.info().cloned().unwrap_or_default();
    if job.resolved.values.decode.is_some() {
        info.attrs.retain(|name, _| !ENCODING.contains(&name.as_str()));
    }
    info.attrs.insert("derived_from".to_owned(), dataset.name().to_owned());
    let slices = job.plan.selection.axes();
    let whole = job.plan.selection.is_full(dataset.shape());
    if !whole {
        // Labels of unselected positions would be assigned to other positions.
        info.coords.clear();
    }
    for (axis, slice) in slices.iter().enumerate() {
        let Some(labels) = dataset.labels(axis) else { continue };
        let key = dataset.axis_name(axis).map_or_else(|| axis.to_string(), str::to_owned);
        if whole && info.labels(axis, slices.len(), slice.count()).is_some() {
            continue;
        }
        let position = |n: u64| usize::try_from(slice.start + n * slice.step).unwrap_or(usize::MAX);
        let selected = (0..slice.count()).filter_map(|n| labels.get(position(n)).cloned()).collect();
        info.coords.insert(key, Coord::new(selected));
    }
    info
}

fn history(job: &Job<'_>, method: Method, axes: &[usize], output: &str) -> HistoryRow {
    let slices = job.plan.selection.axes();
    let numbers = |of: &dyn Fn(usize) -> u64| {
        (0..slices.len()).map(|axis| of(axis).to_string()).collect::<Vec<_>>().join("x")
    };
    let file = source_name(job.dataset.file.name());
    let mut row = HistoryRow::now("transform", &file)
        .with_param("method", method.name())
        .with_param("dataset", job.dataset.name())
        .with_param("output_dataset", output)
        .with_param("logical_selection_shape", numbers(&|axis| slices[axis].count()));
    row.parents = vec![file];
    if !axes.is_empty() {
        let axes: Vec<String> = axes.iter().map(usize::to_string).collect();
        row = row.with_param("axes", axes.join(","));
    }
    if !job.plan.selection.is_full(job.dataset.shape()) {
        row = row
            .with_param("selection_box_start", numbers(&|axis| slices[axis].start))
            .with_param("selection_box_stop_exclusive", numbers(&|axis| slices[axis].stop))
            .with_param("selection_step", numbers(&|axis| slices[axis].step));
    }
    row
}

/// Name of the source, truncated to what a footer can hold.
fn source_name(name: &str) -> String {
    if name.len() <= metadata_limits::STRING_BYTES {
        return name.to_owned();
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    last[last.ceil_char_boundary(last.len().saturating_sub(metadata_limits::STRING_BYTES))..].to_owned()
}

/// Formats a time as `20240229T235959Z`.
fn basic_time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    // Years that start in March end with the leap day: 146097 days are 400 such years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    format!("{:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z", era * 400 + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_709_251_199, "20240229T235959Z"),
            (1_735_689_599, "20241231T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(basic_time(seconds), expected);
        }
        assert!(basic_time(u64::MAX).ends_with('Z'));
    }

    #[test]
    fn long_paths_are_shortened_to_their_last_component() {
        assert_eq!(source_name("a/b.tet"), "a/b.tet");
        assert_eq!(source_name(&format!("{}/b.tet", "x".repeat(1030))), "b.tet");
        let long = source_name(&"é".repeat(600));
        assert!(long.len() <= metadata_limits::STRING_BYTES, "{}", long.len());
    }
}
