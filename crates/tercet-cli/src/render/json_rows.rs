//! Rows as JSON Lines, written from columns to bytes.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tercet::core::escape;
use tercet::tatami::logical_type::is_json;
use tercet::tatami::{Column, Field, LogicalType, Values};

use super::rows::{LossCounts, RowColumns, Rows, ValueFormat};

/// Writes rows as JSON objects and counts values that JSON cannot represent.
#[derive(Clone, Debug)]
pub(crate) struct RowWriter {
    columns: RowColumns,
    /// The bytes before each value: comma, quoted name, colon.
    heads: Vec<Vec<u8>>,
}

impl RowWriter {
    /// A writer for these columns with their logical types.
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = (&'a Field, Option<LogicalType>)>) -> Self {
        let columns = RowColumns::new(columns);
        let head = |(index, name): (usize, &str)| {
            let mut head = Vec::new();
            if index > 0 {
                head.push(b',');
            }
            text(name.as_bytes(), &mut head);
            head.push(b':');
            head
        };
        let names = columns.columns.iter().map(|column| column.name.as_str());
        let heads = names.enumerate().map(head).collect();
        Self { columns, heads }
    }

    /// Appends one row, without a line break.
    pub(crate) fn row(&mut self, batch: &[Column], row: usize, out: &mut Vec<u8>) {
        out.push(b'{');
        for ((settings, head), column) in self.columns.columns.iter_mut().zip(&self.heads).zip(batch) {
            out.extend_from_slice(head);
            cell(column, row, settings.format, &mut settings.losses, out);
        }
        out.push(b'}');
    }
}

impl Rows for RowWriter {
    fn rows(&mut self, batch: &[Column], from: usize, to: usize, out: &mut Vec<u8>) {
        for row in from..to {
            self.row(batch, row, out);
            out.push(b'\n');
        }
    }

    fn columns(&self) -> &RowColumns {
        &self.columns
    }

    fn columns_mut(&mut self) -> &mut RowColumns {
        &mut self.columns
    }
}

/// Appends a value by its logical type, quoted unless it is a number; returns false if the stored value must be written
/// instead.
fn write_logical(column: &Column, row: usize, format: ValueFormat, out: &mut Vec<u8>) -> bool {
    if format.logical_type.is_none_or(LogicalType::is_number) {
        return format.write_logical(column, row, out);
    }
    // Dates and times have no characters that JSON escapes.
    out.push(b'"');
    if format.write_logical(column, row, out) {
        out.push(b'"');
        return true;
    }
    out.pop();
    false
}

pub(super) fn cell(
    column: &Column,
    row: usize,
    format: ValueFormat,
    losses: &mut LossCounts,
    out: &mut Vec<u8>,
) {
    if !column.is_present(row) {
        out.extend_from_slice(b"null");
        return;
    }
    if write_logical(column, row, format, out) {
        return;
    }
    match &column.values {
        Values::Bool(v) => out.extend_from_slice(if v[row] { b"true" } else { b"false" }),
        Values::Int8(v) => integer(v[row], out),
        Values::Int16(v) => integer(v[row], out),
        Values::Int32(v) => integer(v[row], out),
        Values::Int64(v) => integer(v[row], out),
        Values::UInt8(v) => integer(v[row], out),
        Values::UInt16(v) => integer(v[row], out),
        Values::UInt32(v) => integer(v[row], out),
        Values::UInt64(v) => integer(v[row], out),
        Values::Float32(v) => float(v[row], losses, out),
        Values::Float64(v) => float(v[row], losses, out),
        Values::Bytes(v) if format.is_json && json(v.get(row), out) => {}
        Values::Bytes(v) if format.is_text => losses.not_utf8 += u64::from(!text(v.get(row), out)),
        Values::Bytes(v) => bytes(v.get(row), out),
        Values::List(lists) => {
            out.push(b'[');
            for (index, element) in lists.range(row).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                cell(&lists.elements, element, format, losses, out);
            }
            out.push(b']');
        }
    }
}

/// Appends JSON text as it is, on one line; false if it is invalid. Characters that [`text`] escapes are in strings only.
fn json(value: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(value) = std::str::from_utf8(value).ok().filter(|value| is_json(value.as_bytes())) else {
        return false;
    };
    for character in value.chars() {
        let mut buffer = [0; 4];
        let bytes = character.encode_utf8(&mut buffer);
        match character {
            '\n' | '\r' => out.push(b' '),
            '<' | '>' | '&' | '\u{7f}'.. => {
                let start = out.len();
                text(bytes.as_bytes(), out);
                // Without quotes.
                out.pop();
                out.remove(start);
            }
            _ => out.extend_from_slice(bytes.as_bytes()),
        }
    }
    true
}

fn integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Standard base64 with padding.
fn bytes(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + value.len().div_ceil(3) * 4, 0);
    // The buffer has the exact size: this cannot fail.
    let _ = STANDARD.encode_slice(value, &mut out[start..]);
    out.push(b'"');
}

/// The common operations of f32 and f64.
trait Real: Copy + ryu::Float + std::fmt::LowerExp + std::fmt::Display {
    fn is_number(self) -> bool;
    /// Whether it is written with an exponent: outside 1e-6 to 1e21, and not zero.
    fn is_far(self) -> bool;
}

impl Real for f32 {
    fn is_number(self) -> bool {
        self.is_finite()
    }
    fn is_far(self) -> bool {
        self != 0.0 && !(1e-6..1e21).contains(&self.abs())
    }
}

impl Real for f64 {
    fn is_number(self) -> bool {
        self.is_finite()
    }
    fn is_far(self) -> bool {
        self != 0.0 && !(1e-6..1e21).contains(&self.abs())
    }
}

/// The shortest digits that parse to the same number.
fn float<F: Real>(value: F, losses: &mut LossCounts, out: &mut Vec<u8>) {
    if !value.is_number() {
        losses.not_finite += 1;
        out.extend_from_slice(b"null");
        return;
    }
    if value.is_far() {
        // `1e21` is written as `1e+21`.
        let written = format!("{value:e}");
        match written.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                out.extend_from_slice(digits.as_bytes());
                out.extend_from_slice(b"e+");
                out.extend_from_slice(exponent.as_bytes());
            }
            _ => out.extend_from_slice(written.as_bytes()),
        }
        return;
    }
    let mut buffer = ryu::Buffer::new();
    let written = buffer.format_finite(value).as_bytes();
    if written.contains(&b'e') {
        // ryu uses exponents for more numbers. Writing to a String cannot fail.
        let mut plain = String::new();
        let _ = write!(plain, "{value}");
        out.extend_from_slice(plain.as_bytes());
    } else {
        out.extend_from_slice(written.strip_suffix(b".0").unwrap_or(written));
    }
}

/// Bytes of a string that may need an escape: 1 always, 2 if they start one of the characters that [`escape::json`]
/// escapes (C1 controls, bidirectional and invisible marks).
const SPECIAL: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = 1;
        byte += 1;
    }
    table[0x7f] = 1;
    table[b'"' as usize] = 1;
    table[b'\\' as usize] = 1;
    table[b'<' as usize] = 1;
    table[b'>' as usize] = 1;
    table[b'&' as usize] = 1;
    // U+0080 to U+00BF.
    table[0xc2] = 2;
    // U+2000 to U+2FFF.
    table[0xe2] = 2;
    // U+F000 to U+FFFF.
    table[0xef] = 2;
    // U+C0000 to U+FFFFF.
    table[0xf3] = 2;
    // Scripts with few invisible characters, found by their second byte.
    table[0xcd] = 3;
    table[0xd8] = 3;
    table[0xe1] = 3;
    table[0xe3] = 3;
    table[0xf0] = 3;
    table
};

/// Appends a quoted string; returns whether it is valid UTF-8.
fn text(value: &[u8], out: &mut Vec<u8>) -> bool {
    out.push(b'"');
    let is_utf8 = simdutf8::basic::from_utf8(value).is_ok();
    if is_utf8 {
        escaped(value, out);
    } else {
        // Every invalid byte becomes one replacement character.
        let mut rest = value;
        while !rest.is_empty() {
            let good = std::str::from_utf8(rest).map_or_else(|error| error.valid_up_to(), str::len);
            escaped(&rest[..good], out);
            if good < rest.len() {
                out.extend_from_slice(b"\\ufffd");
            }
            rest = rest.get(good + 1..).unwrap_or_default();
        }
    }
    out.push(b'"');
    is_utf8
}

/// Writes a string without quotes. `value` is valid UTF-8.
fn escaped(value: &[u8], out: &mut Vec<u8>) {
    let mut from = 0;
    let mut at = 0;
    while at < value.len() {
        let kind = SPECIAL[usize::from(value[at])];
        if kind == 0 {
            at += 1;
            continue;
        }
        if kind == 1 {
            out.extend_from_slice(&value[from..at]);
            escape_byte(value[at], out);
            at += 1;
            from = at;
            continue;
        }
        let len = match value[at] {
            0xc2 | 0xcd | 0xd8 => 2,
            0xf0 | 0xf3 => 4,
            _ => 3,
        };
        if kind == 3 && !may_be_invisible(value[at], value.get(at + 1).copied().unwrap_or(0)) {
            at += len;
            continue;
        }
        let character = value.get(at..at + len).and_then(|bytes| std::str::from_utf8(bytes).ok());
        if let Some(Cow::Owned(escape)) = character.map(escape::json) {
            out.extend_from_slice(&value[from..at]);
            out.extend_from_slice(escape.as_bytes());
            from = at + len;
        }
        at += len;
    }
    out.extend_from_slice(&value[from..]);
}

/// Whether a character that starts with these bytes may be one that [`escape`] escapes.
fn may_be_invisible(first: u8, second: u8) -> bool {
    match first {
        0xcd => second == 0x8f,
        0xd8 => second == 0x9c,
        0xe1 => matches!(second, 0x85 | 0x9e | 0xa0),
        0xe3 => second == 0x85,
        _ => matches!(second, 0x9b | 0x9d),
    }
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            return;
        }
    };
    out.extend([b'\\', short]);
}

#[cfg(test)]
mod tests {
    use tercet::tatami::{Strings, Type};

    use super::*;

    fn written(value: impl FnOnce(&mut LossCounts, &mut Vec<u8>)) -> (String, LossCounts) {
        let (mut losses, mut out) = (LossCounts::default(), Vec::new());
        value(&mut losses, &mut out);
        (String::from_utf8(out).unwrap(), losses)
    }

    #[test]
    fn floats_are_short_and_exact() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-2.5e300, "-2.5e+300"),
            (1e-6, "0.000001"),
            (9.5e-7, "9.5e-7"),
            (123_456_789_012_345_680.0, "123456789012345680"),
            (0.1 + 0.2, "0.30000000000000004"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(written(|losses, out| float(value, losses, out)).0, expected);
        }
        assert_eq!(written(|losses, out| float(68.112_946_f32, losses, out)).0, "68.112946");
        assert_eq!(written(|losses, out| float(1e21_f32, losses, out)).0, "1e+21");
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (text, losses) = written(|losses, out| float(value, losses, out));
            assert_eq!((text.as_str(), losses.not_finite), ("null", 1));
        }
    }

    #[test]
    fn any_float_is_read_back_the_same() {
        let mut bits = 0x1234_5678_9abc_def0_u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let wide = f64::from_bits(bits);
            let narrow = f32::from_bits((bits >> 32) as u32);
            if wide.is_finite() {
                let text = written(|losses, out| float(wide, losses, out)).0;
                assert_eq!(text.parse::<f64>().unwrap().to_bits(), wide.to_bits(), "{text}");
            }
            if narrow.is_finite() {
                let text = written(|losses, out| float(narrow, losses, out)).0;
                assert_eq!(text.parse::<f32>().unwrap().to_bits(), narrow.to_bits(), "{text}");
            }
        }
    }

    #[test]
    fn rows_escape_what_other_output_escapes() {
        for character in (0x20..=0x0010_ffff).filter_map(char::from_u32) {
            let (text, mut out) = (character.to_string(), Vec::new());
            super::text(text.as_bytes(), &mut out);
            let is_escaped = out.iter().skip(1).any(|byte| *byte == b'\\');
            let must_be = matches!(escape::json(&text), Cow::Owned(_));
            assert!(is_escaped || !must_be, "U+{:04X}", u32::from(character));
        }
    }

    #[test]
    fn strings_are_escaped_and_invalid_bytes_replaced() {
        let written = |value: &[u8]| {
            let mut out = Vec::new();
            let is_utf8 = text(value, &mut out);
            (String::from_utf8(out).unwrap(), is_utf8)
        };
        assert_eq!(
            written("a\"\\\n\r\t\u{8}\u{c}\u{1}<&>\u{2028}\u{2029}".as_bytes()).0,
            r#""a\"\\\n\r\t\b\f\u0001\u003c\u0026\u003e\u2028\u2029""#
        );
        assert_eq!(written("日本 “é”\u{7f}".as_bytes()), ("\"日本 “é”\\u007f\"".to_owned(), true));
        assert_eq!(written(b"\xffa\xe2\x80"), (r#""\ufffda\ufffd\ufffd""#.to_owned(), false));
        assert_eq!(
            written("\u{9b}31m\u{a9}\u{200b}\u{202e}\u{2066}\u{feff}\u{ff01}\u{e0001}".as_bytes()).0,
            r#""\u009b31m©\u200b\u202e\u2066\ufeff！\udb40\udc01""#
        );
        let tricky: Vec<char> =
            "\"\\<x\u{2027}\u{2028}é日\u{1f600}\n\u{0}\u{85}\u{200f}\u{fffa}\u{e007f}\u{c0000}"
                .chars()
                .collect();
        for start in 0..tricky.len() {
            let value: String = tricky[start..].iter().chain(&tricky[..start]).collect();
            let back: String = serde_json::from_str(&written(value.as_bytes()).0).unwrap();
            assert_eq!(back, value);
        }
    }

    #[test]
    fn bytes_are_base64_and_lists_are_arrays() {
        let field = Field::list("l", Type::Bytes);
        let elements = Column::new(Values::Bytes([&b""[..], b"a", b"abcd"].iter().collect::<Strings>()));
        let lists = tercet::tatami::Lists { ends: vec![0, 3], elements };
        let batch = [Column::new(Values::List(Box::new(lists)))];
        let mut out = Vec::new();
        RowWriter::new([(&field, None)]).rows(&batch, 0, 2, &mut out);
        let expected = "{\"l\":[]}\n{\"l\":[\"\",\"YQ==\",\"YWJjZA==\"]}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_are_written_by_logical_type() {
        let decimal = LogicalType::Decimal { precision: 38, scale: 2, width: 16 };
        let fields = [
            (Field::new("d", Type::Bytes), Some(decimal)),
            (Field::list("l", Type::Int32), Some(LogicalType::Date32)),
            (Field::new("t", Type::BlobRef), Some(LogicalType::Utf8)),
            (Field::new("i", Type::TimestampMicros), Some(LogicalType::UTC)),
            (Field::new("j", Type::String), Some(LogicalType::Json)),
            (Field::new("u", Type::Bytes), Some(LogicalType::Uuid)),
        ];
        let digits: Strings = [(-1250_i128).to_be_bytes(), [0xff; 16]].iter().collect();
        let elements = Column::new(Values::Int32(vec![18_262, i32::MAX]));
        let batch = [
            Column::new(Values::Bytes(digits)),
            Column::new(Values::List(Box::new(tercet::tatami::Lists { ends: vec![2, 2], elements }))),
            Column::new(Values::Bytes(["a\"", ""].iter().collect())),
            Column::new(Values::Int64(vec![0, i64::MAX])),
            Column::new(Values::Bytes(["{\"a\":\n[1e400, \"<\u{202e}\"]}", "{"].iter().collect())),
            Column::new(Values::Bytes([&[0xab_u8; 16][..], b"a"].iter().collect())),
        ];
        let mut out = Vec::new();
        let mut writer = RowWriter::new(fields.iter().map(|(field, logical_type)| (field, *logical_type)));
        writer.rows(&batch, 0, 2, &mut out);
        let expected = concat!(
            "{\"d\":-12.50,\"l\":[\"2020-01-01\",2147483647],\"t\":\"a\\\"\",\"i\":\"1970-01-01T00:00:00Z\",",
            "\"j\":{\"a\": [1e400, \"\\u003c\\u202e\"]},\"u\":\"abababab-abab-abab-abab-abababababab\"}\n",
            "{\"d\":-0.01,\"l\":[],\"t\":\"\",\"i\":9223372036854775807,",
            "\"j\":\"{\",\"u\":\"YQ==\"}\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
