//! The footer: spills, JSON and a 16-byte tail (`docs/spec/tet.md`, footer).

use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use tercet_core::{FieldReader, Malformed, Reason, Site, Span};

use super::ids::{FOOTER_MAGIC, TAIL_LEN};
use crate::Region;
use crate::metadata::{HistoryRow, Metadata};
use crate::metadata_limits::SPILL_BYTES;

/// The last 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) history_json_len: u64,
    pub(crate) history_version: u32,
}

impl Tail {
    /// Parses the tail of a file of `file_len` bytes; returns the span of the JSON, too.
    pub(crate) fn parse(bytes: &[u8], file_len: u64) -> Result<(Self, Span), Malformed<Region>> {
        let start = file_len.saturating_sub(TAIL_LEN);
        let mut fields = FieldReader::new(Region::FooterTail, start, bytes);
        let history_json_len = fields.u64_le("history_json_len")?;
        let history_version = fields.u32_le("history_version")?;
        fields.magic("magic", FOOTER_MAGIC)?;
        let fault = |field, at: u64, len, reason| {
            let span = Span::at(start.saturating_add(at), len).unwrap_or(Span::empty(start));
            Malformed { site: Site { region: Region::FooterTail, field, span }, reason }
        };
        if !matches!(history_version, 1 | 2) {
            let reason = Reason::UnknownVersion { found: history_version.into(), known: "1 and 2" };
            return Err(fault("history_version", 8, 4, reason));
        }
        let json = start.checked_sub(history_json_len).and_then(|json| Span::between(json, start));
        let Some(json) = json else {
            let reason =
                Reason::OutOfRange { found: history_json_len, allowed: "at most the bytes before the tail" };
            return Err(fault("history_json_len", 0, 8, reason));
        };
        if history_json_len > limit() {
            let reason = Reason::OutOfRange { found: history_json_len, allowed: "at most 16777216" };
            return Err(fault("history_json_len", 0, 8, reason));
        }
        Ok((Self { history_json_len, history_version }, json))
    }

    /// Encodes the 16 bytes.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        out.extend(self.history_json_len.to_le_bytes());
        out.extend(self.history_version.to_le_bytes());
        out.extend(FOOTER_MAGIC);
        out
    }
}

fn limit() -> u64 {
    u64::try_from(SPILL_BYTES).unwrap_or(u64::MAX)
}

/// The JSON of the footer, in writing order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Json {
    #[serde(default)]
    pub(crate) history: Vec<HistoryRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "span_ref", skip_serializing_if = "Option::is_none")]
    pub(crate) metadata_ref: Option<SpanRef>,
    /// Version 2, any value: these spills only prune chunks, so a broken one is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone_maps_ref: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secondary_index_ref: Option<Value>,
    /// Unknown members.
    #[serde(flatten)]
    pub(crate) unknown: Map<String, Value>,
}

/// A span of the file in JSON, not validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpanRef {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl SpanRef {
    /// A span in a JSON value; `None` if the value is something else.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        // The derived deserializer would accept an array of two numbers.
        value.is_object().then(|| serde_json::from_value(value.clone()).ok())?
    }

    pub(crate) fn to_span(self) -> Option<Span> {
        Span::at(self.offset, self.len)
    }
}

impl Json {
    /// Parses the JSON at `span`.
    pub(crate) fn parse(text: &[u8], span: Span) -> Result<Self, Malformed<Region>> {
        parse_json(text, Region::FooterJson, "history_json", span)
    }

    /// The spills of version 2 by name; `None` unless the span is between `index_end` and the JSON.
    pub(crate) fn zone_spills(&self, index_end: u64, json: Span) -> Vec<(&'static str, Option<Span>)> {
        let refs = [("zone_maps", &self.zone_maps_ref), ("secondary_indexes", &self.secondary_index_ref)];
        let mut spans: Vec<(&'static str, Option<Span>)> = Vec::with_capacity(refs.len());
        for (name, value) in refs {
            let Some(value) = value else { continue };
            let span = SpanRef::from_value(value).and_then(SpanRef::to_span);
            let inside = |span: &Span| index_end <= span.start() && span.end() <= json.start();
            spans.push((name, span.filter(inside)));
        }
        // Spills that do not fit together are ignored.
        let lens = spans.iter().filter_map(|(_, span)| *span).map(Span::len);
        let total = lens.chain(self.metadata_ref.map(|span| span.len)).try_fold(0u64, u64::checked_add);
        if total.is_none_or(|total| total > json.start().saturating_sub(index_end)) {
            for (_, span) in &mut spans {
                *span = None;
            }
        }
        spans
    }

    /// The total length of all spills, between the payloads and the JSON.
    pub(crate) fn spilled(&self, version: u32, index_end: u64, json: Span) -> Option<u64> {
        let zones = if version == 2 { self.zone_spills(index_end, json) } else { Vec::new() };
        let zones = zones.into_iter().filter_map(|(_, span)| span).map(Span::len);
        zones.chain(self.metadata_ref.map(|span| span.len)).try_fold(0u64, u64::checked_add)
    }
}

/// Parses the metadata spill at `span`.
pub(crate) fn parse_spill(text: &[u8], span: Span) -> Result<Metadata, Malformed<Region>> {
    parse_json(text, Region::MetadataSpill, "metadata", span)
}

/// The span of the metadata spill: between the end of the index and the JSON.
///
/// Not bounded by the end of the payloads: unused bytes between spill and JSON are legal, and that end is computed
/// from the lengths.
pub(crate) fn spill_span(spill: SpanRef, index_end: u64, json: Span) -> Result<Span, Malformed<Region>> {
    let inside =
        |span: &Span| index_end <= span.start() && span.end() <= json.start() && span.len() <= limit();
    if let Some(span) = spill.to_span().filter(inside) {
        return Ok(span);
    }
    let (offset, len) = (spill.offset, spill.len);
    let reason =
        Reason::OutOfBounds { offset, len, end: json.start(), what: "spills of at most 16777216 bytes" };
    Err(Malformed { site: Site { region: Region::FooterJson, field: "metadata_ref", span: json }, reason })
}

fn parse_json<T: for<'de> Deserialize<'de>>(
    text: &[u8],
    region: Region,
    field: &'static str,
    span: Span,
) -> Result<T, Malformed<Region>> {
    serde_json::from_slice(text).map_err(|error| {
        let reason = Reason::Unparsable { detail: error.to_string() };
        Malformed { site: Site { region, field, span }, reason }
    })
}

/// `{"offset":…,"len":…}` or `null`. The derived deserializer would accept an array of two numbers.
fn span_ref<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SpanRef>, D::Error> {
    struct Optional;
    impl<'de> Visitor<'de> for Optional {
        type Value = Option<SpanRef>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object with `offset` and `len`")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            SpanRef::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
    deserializer.deserialize_any(Optional)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Json, Malformed<Region>> {
        Json::parse(text.as_bytes(), Span::first(0))
    }

    #[test]
    fn only_metadata_may_be_null() {
        parse(r#"{"metadata":null,"metadata_ref":null}"#).unwrap();
        for wrong in [
            "[]",
            "{",
            r#"{"history":null}"#,
            r#"{"history":[],"history":[]}"#,
            r#"{"metadata":[]}"#,
            r#"{"metadata_ref":[1,2]}"#,
            r#"{"metadata_ref":{"offset":1,"len":2,"x":3}}"#,
            r#"{"metadata_ref":{"offset":-1,"len":2}}"#,
            r#"{"history":[]} x"#,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_tail_locates_the_json() {
        let tail = Tail { history_json_len: 63, history_version: 1 };
        let (parsed, json) = Tail::parse(&tail.encode(), 111).unwrap();
        assert_eq!((parsed, json), (tail, Span::between(32, 95).unwrap()));
        assert!(Tail::parse(&tail.encode(), 70).is_err());
        let strange = Tail { history_version: 3, ..tail };
        assert_eq!(Tail::parse(&strange.encode(), 111).unwrap_err().site.field, "history_version");
    }
}
