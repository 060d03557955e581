//! Rows as CSV: null is an empty field, an empty string is quoted.

use tercet::core::escape;
use tercet::tatami::{Column, Field, LogicalType, Values};

use super::json_rows;
use super::rows::{RowColumn, RowColumns, Rows};

/// Writes rows as CSV records. Counts NaN whose payload bits are lost, and NaN and infinities in lists, which become null.
#[derive(Clone, Debug)]
pub(crate) struct RecordWriter {
    syntax: Syntax,
    columns: RowColumns,
    /// A value before it is quoted.
    cell: Vec<u8>,
}

/// How strings are written.
#[derive(Clone, Copy, Debug)]
struct Syntax {
    delimiter: u8,
    /// Escape what could control a terminal. The values of such output cannot be parsed back.
    is_escaped: bool,
}

/// The bits that `NaN` is parsed as.
const NAN_32: u32 = f32::NAN.to_bits();
const NAN_64: u64 = f64::NAN.to_bits();

impl RecordWriter {
    /// A writer for these columns with their logical types.
    pub(crate) fn new<'a>(
        delimiter: u8,
        columns: impl IntoIterator<Item = (&'a Field, Option<LogicalType>)>,
    ) -> Self {
        let syntax = Syntax { delimiter, is_escaped: false };
        Self { syntax, columns: RowColumns::new(columns), cell: Vec::new() }
    }

    /// Escapes control characters and invisible characters of names and strings: for output on a terminal.
    pub(crate) fn with_escapes(mut self, is_escaped: bool) -> Self {
        self.syntax.is_escaped = is_escaped;
        self
    }

    /// Appends the header record.
    pub(crate) fn header(&self, out: &mut Vec<u8>) {
        for (index, column) in self.columns.columns.iter().enumerate() {
            if index > 0 {
                out.push(self.syntax.delimiter);
            }
            self.syntax.field(column.name.as_bytes(), out);
        }
        out.push(b'\n');
    }
}

impl Rows for RecordWriter {
    fn rows(&mut self, batch: &[Column], from: usize, to: usize, out: &mut Vec<u8>) {
        for row in from..to {
            for (index, (settings, column)) in self.columns.columns.iter_mut().zip(batch).enumerate() {
                if index > 0 {
                    out.push(self.syntax.delimiter);
                }
                if column.is_present(row) {
                    cell(settings, column, row, self.syntax, &mut self.cell, out);
                }
            }
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

fn cell(
    settings: &mut RowColumn,
    column: &Column,
    row: usize,
    syntax: Syntax,
    kept: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let infinite = |negative: bool| if negative { &b"-inf"[..] } else { b"inf" };
    let format = settings.format;
    if format.write_logical(column, row, out) {
        return;
    }
    match &column.values {
        Values::Float32(v) if v[row].is_nan() => {
            settings.losses.not_finite += u64::from(v[row].to_bits() != NAN_32);
            out.extend_from_slice(b"NaN");
        }
        Values::Float64(v) if v[row].is_nan() => {
            settings.losses.not_finite += u64::from(v[row].to_bits() != NAN_64);
            out.extend_from_slice(b"NaN");
        }
        Values::Float32(v) if v[row].is_infinite() => out.extend_from_slice(infinite(v[row] < 0.0)),
        Values::Float64(v) if v[row].is_infinite() => out.extend_from_slice(infinite(v[row] < 0.0)),
        Values::Bytes(v) if format.is_text => syntax.field(v.get(row), out),
        Values::Bytes(v) if v.get(row).is_empty() => out.extend_from_slice(b"\"\""),
        Values::Bytes(_) => {
            kept.clear();
            json_rows::cell(column, row, format, &mut settings.losses, kept);
            // Base64 needs no quotes.
            out.extend_from_slice(kept.trim_ascii().strip_prefix(b"\"").unwrap_or(kept));
            out.pop();
        }
        Values::List(_) => {
            kept.clear();
            json_rows::cell(column, row, format, &mut settings.losses, kept);
            syntax.field(kept, out);
        }
        _ => json_rows::cell(column, row, format, &mut settings.losses, out),
    }
}

impl Syntax {
    /// A string, quoted if necessary.
    fn field(self, text: &[u8], out: &mut Vec<u8>) {
        if self.is_escaped {
            self.quoted(escape::name(&String::from_utf8_lossy(text)).as_bytes(), out);
        } else {
            self.quoted(text, out);
        }
    }

    fn quoted(self, text: &[u8], out: &mut Vec<u8>) {
        let is_special = |byte: &u8| *byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r');
        if !text.is_empty() && !text.iter().any(is_special) {
            out.extend_from_slice(text);
            return;
        }
        out.push(b'"');
        for byte in text {
            if *byte == b'"' {
                out.push(b'"');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use tercet::tatami::{Bitmap, Lists, Strings, Type};

    use super::*;

    #[test]
    fn null_and_empty_strings_differ() {
        let fields = [
            Field::new("t,x", Type::String).with_nulls(),
            Field::new("f", Type::Float64),
            Field::new("b", Type::Bytes),
            Field::list("l", Type::String),
        ];
        let strings: Strings = ["", "", "a,\"b\"\n"].into_iter().collect();
        let validity: Bitmap = [true, false, true].into_iter().collect();
        let elements = Column::new(Values::Bytes(["x", "y\""].iter().collect()));
        let batch = [
            Column::new(Values::Bytes(strings)).with_validity(validity),
            Column::new(Values::Float64(vec![f64::NAN, f64::NEG_INFINITY, -0.0])),
            Column::new(Values::Bytes([&b""[..], b"a", b"\xff\xfe"].into_iter().collect())),
            Column::new(Values::List(Box::new(Lists { ends: vec![0, 0, 2], elements }))),
        ];
        let mut writer = RecordWriter::new(b',', fields.iter().map(|field| (field, None)));
        let mut out = Vec::new();
        writer.header(&mut out);
        writer.rows(&batch, 0, 3, &mut out);
        let expected = "\"t,x\",f,b,l\n\"\",NaN,\"\",[]\n,-inf,YQ==,[]\n\"a,\"\"b\"\"\n\",-0,//4=,\"[\"\"x\"\",\"\"y\\\"\"\"\"]\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(writer.losses().count(), 0);
    }

    #[test]
    fn nan_with_bits_of_its_own_is_counted() {
        let fields = [Field::new("f", Type::Float64)];
        let losses = f64::from_bits(0x7ff0_0000_0000_0001);
        let mut writer = RecordWriter::new(b',', fields.iter().map(|field| (field, None)));
        writer.rows(&[Column::new(Values::Float64(vec![losses, f64::NAN]))], 0, 2, &mut Vec::new());
        assert_eq!(writer.losses().map(|(_, losses)| losses.not_finite).collect::<Vec<_>>(), [1]);
    }
}
