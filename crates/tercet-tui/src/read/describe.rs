//! Attributes of the items of the tree.

use serde_json::Value as Json;
use tercet::Container;
use tercet::core::Progress;
use tercet::core::num::grouped;
use tercet::tet::IntegrityStatus;

use super::{Files, OrMessage as _, check, shown, stamp, table};
use crate::text::{safe, shape, size};
use crate::tree::Item;

/// More attributes are not listed.
const MAX_ATTRIBUTES: usize = 1000;

/// Names and values.
type Attributes = Vec<(String, String)>;

impl Files {
    pub(super) fn describe(&self, item: &Item, progress: &dyn Progress) -> Result<Attributes, String> {
        let mut out = Attributes::new();
        match item {
            Item::Directory(path) => push(&mut out, "directory", shown(path)),
            Item::File(path) => {
                push(&mut out, "file", shown(path));
                push(&mut out, "size", size(stamp(path)?.0));
                self.describe_file(item, progress, &mut out)?;
            }
            Item::Table(_) => self.describe_file(item, progress, &mut out)?,
            Item::More { from, .. } => push(&mut out, "next message", grouped(*from)),
            Item::Dataset { name, .. } => self.describe_dataset(item, name, &mut out)?,
            Item::Column { column, .. } => self.describe_column(item, *column, &mut out)?,
            Item::Message { message, .. } => {
                let Container::Tgm(file) = self.container(item.path())? else { return Ok(out) };
                let message = file.message(*message).or_message()?;
                push(&mut out, "bytes", message.span().to_string());
                push(&mut out, "objects", grouped(message.object_count()));
                flatten("", &message.metadata().to_value().to_json(), &mut out);
            }
            Item::Object { message, object, .. } => {
                let Container::Tgm(file) = self.container(item.path())? else { return Ok(out) };
                let message = file.message(*message).or_message()?;
                let found = message.object(*object).or_message()?;
                push(&mut out, "type", found.descriptor().dtype.name());
                push(&mut out, "shape", shape(&found.descriptor().shape));
                push(&mut out, "stored", size(found.stored_len()));
                let entry = usize::try_from(*object).ok().and_then(|at| message.metadata().base.get(at));
                for (key, value) in entry.into_iter().flatten().filter(|(key, _)| *key != "_reserved_") {
                    flatten(key, &value.to_json(), &mut out);
                }
                flatten("descriptor", &found.descriptor().to_value().to_json(), &mut out);
            }
        }
        Ok(out)
    }

    fn describe_file(
        &self,
        item: &Item,
        progress: &dyn Progress,
        out: &mut Attributes,
    ) -> Result<(), String> {
        match self.container(item.path())? {
            Container::Tet(file) => {
                push(out, "format", ".tet: arrays");
                push(out, "datasets", file.datasets().len().to_string());
                push(out, "chunks", grouped(file.chunk_count()));
                let protection = match file.integrity_status() {
                    IntegrityStatus::Checked { .. } => "checksums",
                    IntegrityStatus::Partial { .. } => "checksums of some parts",
                    IntegrityStatus::Absent => "no checksums",
                    IntegrityStatus::Ignored => "checksums not compared",
                    IntegrityStatus::Unknown => "unknown",
                };
                push(out, "protection", protection);
                let metadata = file.metadata();
                for (key, value) in
                    metadata.into_iter().flat_map(|metadata| metadata.file.attrs()).take(MAX_ATTRIBUTES)
                {
                    push(out, key, value.text());
                }
                for row in file.history().iter().take(MAX_ATTRIBUTES) {
                    push(out, "history", format!("{} {} {}", row.at, row.op, row.source));
                }
            }
            Container::Tgm(file) => {
                file.scan_with(progress).or_message()?;
                check(progress)?;
                push(out, "format", ".tgm: messages");
                push(out, "messages", grouped(file.message_count().or_message()?));
                for gap in file.gaps().or_message()?.iter().take(MAX_ATTRIBUTES) {
                    push(out, "gap", gap.to_string());
                }
                if let Some(cut) = file.cut_tail().or_message()? {
                    push(out, "end", cut.to_string());
                }
            }
            Container::Tatami(file) => {
                let summary = file.summary().or_message()?;
                push(out, "format", format!(".tatami: {}", summary.role));
                push(out, "rows", grouped(file.without_deleted_documents().or_message()?.live_rows()));
                push(out, "columns", file.schema().fields().len().to_string());
                push(out, "row groups", file.group_count().to_string());
                if let Some(field) = file.schema().sort_key().and_then(|at| file.schema().fields().get(at)) {
                    push(out, "sorted by", &field.name);
                }
                for [key, value] in summary.metadata.iter().take(MAX_ATTRIBUTES) {
                    push(out, key, value.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn describe_dataset(&self, item: &Item, name: &str, out: &mut Attributes) -> Result<(), String> {
        let Container::Tet(file) = self.container(item.path())? else { return Ok(()) };
        let dataset = file.dataset(name).or_message()?;
        let dtype = dataset
            .dtype()
            .map_or_else(|| format!("unknown ({})", dataset.dtype_tag()), |dtype| dtype.name().to_owned());
        push(out, "type", dtype);
        push(out, "shape", shape(dataset.shape()));
        push(out, "chunks", shape(dataset.chunk_shape()));
        match dataset.grid() {
            Ok(grid) => {
                push(
                    out,
                    "size",
                    format!("{} in {} chunks", size(grid.bytes()), grouped(grid.chunk_count())),
                );
            }
            Err(error) => push(out, "problem", error.to_string()),
        }
        for (axis, &extent) in dataset.shape().iter().enumerate() {
            let name = dataset.axis_name(axis).map_or_else(|| axis.to_string(), str::to_owned);
            let labels = dataset.readable_coordinates(axis).ok().flatten().filter(|found| !found.is_empty());
            let labels = labels.map(|found| {
                let units = found.units.as_deref().map(|units| format!(" {units}")).unwrap_or_default();
                format!(": {} … {}{units}", found.text(0), found.text(found.len() - 1))
            });
            push(out, &format!("axis {name}"), format!("{extent}{}", labels.unwrap_or_default()));
        }
        for (key, value) in dataset.info().into_iter().flat_map(|info| &info.attrs).take(MAX_ATTRIBUTES) {
            push(out, key, value.clone());
        }
        Ok(())
    }

    fn describe_column(&self, item: &Item, column: usize, out: &mut Attributes) -> Result<(), String> {
        let Container::Tatami(file) = self.container(item.path())? else { return Ok(()) };
        let Some(field) = file.schema().fields().get(column) else { return Ok(()) };
        let logical = file.logical_types().get(column).copied().flatten();
        push(out, "column", &field.name);
        push(
            out,
            "stored as",
            field.element.map_or_else(|| field.kind.to_string(), |kind| format!("list<{kind}>")),
        );
        if let Some(logical) = logical {
            push(out, "logical type", logical.to_string());
        }
        push(out, "nulls", if field.nullable { "allowed" } else { "none" });
        let chunks = || file.footer().groups.iter().filter_map(|group| group.chunks.get(column));
        push(out, "values", grouped(chunks().map(|chunk| chunk.values).sum()));
        push(out, "null values", grouped(chunks().map(|chunk| chunk.nulls).sum()));
        push(out, "encoded", size(chunks().map(|chunk| chunk.raw_bytes).sum()));
        push(out, "stored", size(chunks().map(|chunk| chunk.stored_bytes).sum()));
        if let Some((low, high)) = file.column_bounds(column) {
            let kind = field.element.unwrap_or(field.kind);
            push(out, "min", table::scalar(&low, kind, logical));
            push(out, "max", table::scalar(&high, kind, logical));
        }
        if let Some(distinct) = file.dictionary_values(column).or_message()? {
            push(out, "distinct values", grouped(distinct));
        }
        Ok(())
    }
}

fn push(out: &mut Attributes, key: &str, value: impl AsRef<str>) {
    out.push((safe(key), safe(value.as_ref())));
}

/// Nested values as dotted names.
fn flatten(prefix: &str, value: &Json, out: &mut Attributes) {
    if out.len() >= MAX_ATTRIBUTES {
        return;
    }
    let name = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    match value {
        Json::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| flatten(&name(key), value, out));
        }
        Json::Array(list) if list.iter().any(|value| value.is_object() || value.is_array()) => {
            list.iter().enumerate().for_each(|(at, value)| flatten(&name(&at.to_string()), value, out));
        }
        Json::String(text) => push(out, prefix, text),
        other => push(out, prefix, other.to_string()),
    }
}
