//! `tet info` as text.

use tercet::core::escape;
use tercet::tet::{self, CfEncoding, Codec, CoordinateSource, Dataset, File, IntegrityStatus, Row};

use super::Args;
use super::filter::{Filter, Kept};
use crate::failure::Failure;
use crate::render::{Table, exact, human_size, size_and_bytes, utc};
use crate::ui::{DIM, GOOD, HEADING, Ui, WARN, paint};

/// Labels printed per axis.
const LABELS_SHOWN: usize = 12;

pub(super) fn print(file: &File, args: &Args, filter: &Filter<'_>, out: &mut Ui) -> Result<(), Failure> {
    let sections = [args.layout, args.execution, args.datasets, args.chunks, args.history, args.metadata];
    let default = !sections.contains(&true);
    let wants = |flag: bool| flag || args.all;
    let kept = filter.apply(file);

    print_file(file, filter, out)?;
    if wants(args.layout) {
        print_layout(file, out)?;
    }
    if wants(args.execution) {
        print_execution(file, out)?;
    }
    if default || wants(args.datasets) || wants(args.metadata) {
        print_provenance(file, out)?;
        print_datasets(file, &kept.datasets, out)?;
        for dataset in &kept.datasets {
            print_metadata(dataset, wants(args.metadata), out)?;
        }
    }
    if wants(args.chunks) {
        print_chunks(file, &kept, filter.is_active(), args.limit.limit.unwrap_or(super::LIMIT), out)?;
    }
    if wants(args.history) {
        print_history(file, out)?;
    }
    Ok(())
}

fn heading(text: &str, out: &mut Ui) -> Result<(), Failure> {
    out.line("")?;
    out.line(paint(HEADING, text))
}

fn print_file(file: &File, filter: &Filter<'_>, out: &mut Ui) -> Result<(), Failure> {
    let mut table = Table::new(&["field", "value"]);
    let mut row = |field: &str, value: String| table.row([field.to_owned(), value]);
    row("file", escape::name(file.name()).into_owned());
    row("size", size_and_bytes(file.len()));
    row("layout_version", file.superblock().layout_version.to_string());
    row("datasets", file.datasets().len().to_string());
    row("chunks", file.chunk_count().to_string());
    row("history", file.history().len().to_string());
    if let Some(filter) = filter.to_text() {
        row("filter", escape::name(&filter).into_owned());
    }
    out.line(paint(HEADING, "file:"))?;
    out.line(table)?;
    print_protection(file.integrity_status(), out)
}

fn print_protection(protection: &IntegrityStatus, out: &mut Ui) -> Result<(), Failure> {
    let (style, word, text) = match protection {
        IntegrityStatus::Checked { statistics: true } => {
            (GOOD, "protected", "checksums and chunk statistics present; every read is verified".to_owned())
        }
        IntegrityStatus::Checked { statistics: false } => {
            (GOOD, "protected", "checksums present; every read is verified".to_owned())
        }
        IntegrityStatus::Partial { problems } => {
            (WARN, "partly protected", format!("some checksums are unusable: {}", problems.join("; ")))
        }
        IntegrityStatus::Absent => {
            (WARN, "unprotected", "no checksums; damage cannot be detected".to_owned())
        }
        IntegrityStatus::Unknown => (
            WARN,
            "unprotected",
            "unknown version of the integrity block; checksums are not verified".to_owned(),
        ),
        IntegrityStatus::Ignored => (WARN, "unchecked", "checksum verification is disabled".to_owned()),
    };
    out.line(format_args!("{} {}", paint(style, format_args!("{word}:")), escape::name(&text)))
}

fn print_layout(file: &File, out: &mut Ui) -> Result<(), Failure> {
    let superblock = file.superblock();
    heading("layout:", out)?;
    out.line(format_args!("  layout_version:     {}", superblock.layout_version))?;
    out.line(format_args!("  dataset_count:      {}", superblock.dataset_count))?;
    let footer = file.footer_version();
    out.line(format_args!(
        "  flags:              {} (history_footer={})",
        superblock.flags,
        footer.is_some()
    ))?;
    out.line(format_args!("  chunk_index_offset: {}", superblock.chunk_index_offset))?;
    out.line(format_args!("  chunk_index_length: {}", superblock.chunk_index_length))?;
    out.line(format_args!("  payload_end:        {}", file.payload_end()))?;
    if let Some(version) = footer {
        out.line(format_args!("  footer_version:     {version}"))?;
    }
    Ok(())
}

fn print_execution(file: &File, out: &mut Ui) -> Result<(), Failure> {
    let budget = file.memory_budget();
    heading("execution hints:", out)?;
    if budget.percent_bps == 0 && budget.bytes == 0 {
        return out.line("  (none; queries use up to 25 % of memory)");
    }
    if budget.percent_bps > 0 {
        let (whole, part) = (budget.percent_bps / 100, budget.percent_bps % 100);
        let percent = if part == 0 { whole.to_string() } else { format!("{whole}.{part:02}") };
        out.line(format_args!("  memory_budget_percent: {percent} %"))?;
    }
    if budget.bytes > 0 {
        out.line(format_args!("  memory_budget_bytes:   {}", size_and_bytes(budget.bytes.into())))?;
    }
    Ok(())
}

fn print_provenance(file: &File, out: &mut Ui) -> Result<(), Failure> {
    let Some(info) = file.metadata().map(|metadata| &metadata.file) else { return Ok(()) };
    let created = utc(&info.created_at);
    let fields = [("tool", &info.tool), ("library_version", &info.library_version), ("created_at", &created)];
    if fields.iter().all(|(_, value)| value.is_empty()) && info.attrs().next().is_none() {
        return Ok(());
    }
    heading("file metadata:", out)?;
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        out.line(format_args!("  {:<16} {}", format!("{name}:"), escape::name(value)))?;
    }
    for (name, value) in info.attrs() {
        out.line(format_args!(
            "  {:<16} {}",
            format!("{}:", escape::name(name)),
            escape::name(value.text())
        ))?;
    }
    Ok(())
}

fn print_datasets(file: &File, kept: &[Dataset<'_>], out: &mut Ui) -> Result<(), Failure> {
    if kept.is_empty() {
        let reason =
            if file.datasets().len() == 0 { "the file is empty" } else { "no dataset matches the filter" };
        return heading(&format!("datasets: ({reason})"), out);
    }
    heading("datasets:", out)?;
    let mut table = Table::new(&[">id", "name", "dtype", "shape", "chunk_shape", ">chunks", ">size"]);
    for dataset in kept {
        let grid = dataset.grid().ok();
        let dtype = dataset.dtype();
        table.row([
            dataset.id().to_string(),
            escape::name(dataset.name()).into_owned(),
            dtype.map_or_else(
                || format!("unknown ({})", dataset.dtype_tag()),
                |dtype| dtype.short_name().to_owned(),
            ),
            extents(dataset.shape()),
            extents(dataset.chunk_shape()),
            grid.map_or_else(|| "?".to_owned(), |grid| grid.chunk_count().to_string()),
            grid.map_or_else(|| "?".to_owned(), |grid| human_size(grid.bytes())),
        ]);
    }
    out.line(table)
}

fn extents(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("×")
}

fn print_metadata(dataset: &Dataset<'_>, in_full: bool, out: &mut Ui) -> Result<(), Failure> {
    let mut table = Table::new(&["field", "value"]);
    let mut rows = 0;
    let mut row = |field: &str, value: &str| {
        rows += 1;
        table.row([escape::name(field).into_owned(), escape::name(value).into_owned()]);
    };
    let info = dataset.info();
    if let Some(info) = info.filter(|info| !info.dim_names.is_empty()) {
        row("dim_names", &info.dim_names.join(", "));
    }
    let labelled = labels(dataset);
    if in_full {
        for (axis, labels) in &labelled {
            let shown: Vec<&str> = labels.iter().take(LABELS_SHOWN).map(String::as_str).collect();
            let more = labels.len() - shown.len();
            let rest = if more > 0 { format!(", … ({more} more)") } else { String::new() };
            row("labels", &format!("{axis}: {}{rest}", shown.join(", ")));
        }
    } else if !labelled.is_empty() {
        let counts: Vec<String> =
            labelled.iter().map(|(axis, labels)| format!("{axis} ({})", labels.len())).collect();
        row("labels", &counts.join(", "));
    }
    let sources = dataset.coordinate_sources();
    let in_datasets: Vec<&str> = (0..dataset.shape().len())
        .filter_map(|axis| dataset.axis_name(axis))
        .filter(|name| sources.get(*name) == Some(&CoordinateSource::Dataset))
        .collect();
    if !in_datasets.is_empty() {
        row("coordinates", &format!("{} (datasets of these names)", in_datasets.join(", ")));
    }
    if let Ok(encoding) = dataset.cf_encoding() {
        for (name, text) in [("packing", packing(&encoding)), ("missing values", missing(&encoding))] {
            if let Some(text) = text {
                row(name, &text);
            }
        }
    }
    for (key, value) in info.iter().flat_map(|info| &info.attrs) {
        row(key, value);
    }
    if rows == 0 {
        return Ok(());
    }
    heading(&format!("{} metadata:", escape::name(dataset.name())), out)?;
    out.line(table)
}

/// How packed values are decoded: `stored × 0.5 + 10`.
fn packing(encoding: &CfEncoding) -> Option<String> {
    let factor = encoding.scale_factor.map(|factor| format!(" × {}", exact(factor))).unwrap_or_default();
    let offset = encoding.add_offset.map(|offset| {
        let sign = if offset < 0.0 { '-' } else { '+' };
        format!(" {sign} {}", exact(offset.abs()))
    });
    let offset = offset.unwrap_or_default();
    encoding.is_packed().then(|| format!("value = stored{factor}{offset}"))
}

/// Which stored values are missing: `-999, below 0, above 100`.
fn missing(encoding: &CfEncoding) -> Option<String> {
    let number = |number: &tet::Scalar| match number {
        tet::Scalar::Whole(number) => number.to_string(),
        tet::Scalar::Float(number) => exact(*number),
    };
    let mut parts: Vec<String> = encoding.missing_values.iter().map(number).collect();
    parts.dedup();
    parts.extend(encoding.valid_min.iter().map(|min| format!("below {}", number(min))));
    parts.extend(encoding.valid_max.iter().map(|max| format!("above {}", number(max))));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The labels of each axis, then labels without a matching axis.
fn labels<'f>(dataset: &Dataset<'f>) -> Vec<(String, &'f [String])> {
    let axis_name = |axis| dataset.axis_name(axis).map_or_else(|| format!("axis {axis}"), str::to_owned);
    let mut found: Vec<(String, &[String])> = (0..dataset.shape().len())
        .filter_map(|axis| Some((axis_name(axis), dataset.labels(axis)?)))
        .collect();
    for (axis, coord) in dataset.info().iter().flat_map(|info| &info.coords) {
        if !found.iter().any(|(_, labels)| std::ptr::eq(*labels, &raw const *coord.labels)) {
            found.push((format!("{axis} (no such axis)"), &coord.labels));
        }
    }
    found
}

fn print_chunks(
    file: &File,
    kept: &Kept<'_>,
    filtered: bool,
    limit: u64,
    out: &mut Ui,
) -> Result<(), Failure> {
    let limit = if limit == 0 { u64::MAX } else { limit };
    let (mut shown, mut total) = (Vec::new(), file.chunk_count());
    if filtered {
        total = 0;
        file.for_each_row(|number, row| {
            if kept.position(row.dataset_id).is_some() {
                total += 1;
                if total <= limit {
                    shown.push((number, *row));
                }
            }
        })?;
    } else {
        for number in 0..total.min(limit) {
            shown.push((number, file.row(number)?));
        }
    }
    if total == 0 {
        return heading("chunks: (none)", out);
    }
    heading("chunks:", out)?;
    if (shown.len() as u64) < total {
        let note = format!("(showing {} of {total}; use -n 0 for all)", shown.len());
        out.line(paint(DIM, note))?;
    }
    let mut table = Table::new(&[">#", "dataset", "coords", ">raw", ">stored", "codec", ">offset"]);
    for (number, row) in &shown {
        table.row(chunk_cells(file, *number, row));
    }
    out.line(table)
}

fn chunk_cells(file: &File, number: u64, row: &Row) -> [String; 7] {
    let id = usize::try_from(row.dataset_id).ok();
    let dataset = id.and_then(|id| file.datasets().nth(id));
    let rank = dataset.as_ref().map_or(row.chunk_index.len(), |dataset| dataset.shape().len());
    let coords: Vec<String> = row.chunk_index.iter().take(rank).map(u64::to_string).collect();
    let codec = match Codec::from_id(row.codec) {
        Some(Codec::Raw) => "raw".to_owned(),
        Some(Codec::Zstd) => "zstd".to_owned(),
        None => format!("unknown ({})", row.codec),
    };
    let name = dataset.map_or_else(
        || format!("unknown ({})", row.dataset_id),
        |dataset| escape::name(dataset.name()).into_owned(),
    );
    [
        number.to_string(),
        name,
        coords.join(","),
        human_size(row.raw_byte_len),
        human_size(row.stored_byte_len),
        codec,
        row.payload_offset.to_string(),
    ]
}

fn print_history(file: &File, out: &mut Ui) -> Result<(), Failure> {
    if file.history().is_empty() {
        return heading("history: (none)", out);
    }
    heading("history:", out)?;
    let mut table = Table::new(&[">#", "op", "source", "at"]);
    let safe = |text: &str| escape::name(text).into_owned();
    for (number, row) in file.history().iter().enumerate() {
        table.row([(number + 1).to_string(), safe(&row.op), safe(&row.source), safe(&utc(&row.at))]);
    }
    out.line(table)?;
    for (number, row) in file.history().iter().enumerate() {
        let mut table = Table::new(&["field", "value"]);
        let mut fields: Vec<(&str, String)> = Vec::new();
        if !row.parents.is_empty() {
            fields.push(("parents", row.parents.join(", ")));
        }
        for (name, value) in [("agent", &row.agent), ("activity", &row.activity), ("entity", &row.entity)] {
            fields.extend(value.clone().map(|value| (name, value)));
        }
        fields.extend(row.params.iter().map(|(key, value)| (key.as_str(), value.clone())));
        if fields.is_empty() {
            continue;
        }
        for (field, value) in &fields {
            table.row([safe(field), safe(value)]);
        }
        heading(&format!("history row {}:", number + 1), out)?;
        out.line(table)?;
    }
    Ok(())
}
