//! Columns from CSV chunks.
//!
//! The fields of a chunk are located first; then each column is parsed in one loop for its type.

use std::sync::Arc;

use tercet_tatami::{Bitmap, Column, Field, LogicalType, Strings, Type, Values};

use super::build::{Builder, ValueParser};
use super::chunks::Chunk;
use super::csv::{Cell, Records, unescaped};
use super::dialect::{Dialect, point};
use super::infer::{
    EXACT, Inference, MAX_COLUMNS, NULL_TOKENS, check_names, is_rounded, is_special, parse_bool,
};
use super::moment::{Moment, date};
use super::parsed::{Batch, ParsedChunk, Problem, in_column};
use super::reject::{OnError, Reject};
use super::token::Token;

/// How the fields of a column are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellParser {
    Text,
    Int64,
    UInt64,
    Float64,
    Bool,
    Date,
    Time,
    Local,
    Utc,
    /// No value is known yet: every value is one.
    Unknown,
    /// By declared type.
    Declared(ValueParser),
}

impl CellParser {
    /// The parser of an inferred column.
    pub(super) fn inferred(field: &Field, annotations: &[(String, String)], is_unknown: bool) -> Self {
        match (field.kind, LogicalType::for_field(field, annotations)) {
            _ if is_unknown => Self::Unknown,
            (Type::Int64, None) => Self::Int64,
            (Type::UInt64, _) => Self::UInt64,
            (Type::Float64, _) => Self::Float64,
            (Type::Bool, _) => Self::Bool,
            (Type::Int32, Some(LogicalType::Date32)) => Self::Date,
            (Type::Int64, Some(LogicalType::Time(_))) => Self::Time,
            (Type::TimestampMicros, Some(LogicalType::LocalTimestamp(_))) => Self::Local,
            (Type::TimestampMicros, _) => Self::Utc,
            _ => Self::Text,
        }
    }

    /// The parser of a declared column.
    pub(super) fn declared(field: &Field, parser: ValueParser) -> Self {
        match (field.kind, parser) {
            (Type::String | Type::BlobRef | Type::Bytes, ValueParser::Plain) => Self::Text,
            _ => Self::Declared(parser),
        }
    }
}

/// A column to read.
#[derive(Clone, Debug)]
pub(super) struct CsvColumn {
    pub(super) field: Field,
    pub(super) parser: CellParser,
    /// The position in the records; `None` if the file does not have it.
    pub(super) position: Option<usize>,
}

/// How the chunks of a file are parsed.
#[derive(Debug)]
pub(super) struct CsvReader<'a> {
    pub(super) input: &'a Arc<str>,
    pub(super) dialect: &'a Dialect,
    /// The number of fields per record.
    pub(super) width: usize,
    pub(super) columns: Vec<CsvColumn>,
    pub(super) on_error: OnError,
}

/// The located fields of a chunk.
struct Table<'a> {
    chunk: &'a [u8],
    dialect: &'a Dialect,
    cells: Vec<Cell>,
    width: usize,
    rows: usize,
    is_utf8: bool,
}

/// The values of a column and the rejected rows.
struct Loop<'a> {
    table: &'a Table<'a>,
    position: usize,
    /// Whether empty fields are null.
    nullable: bool,
    accepts_tokens: bool,
    validity: Option<Bitmap>,
    rejects: Vec<(usize, String)>,
}

impl Loop<'_> {
    fn null(&mut self, row: usize) {
        self.validity.get_or_insert_with(|| Bitmap::filled(self.table.rows, true)).set(row, false);
    }

    /// Whether a field that is no value is null.
    fn is_null(&self, cell: Cell, text: &str) -> bool {
        !cell.is_quoted()
            && (text.is_empty()
                || self.table.dialect.nulls.iter().any(|null| null == text)
                || self.accepts_tokens && is_null_token(text.trim_matches(' ')))
    }

    fn cell(&self, row: usize) -> Cell {
        self.table.cells[row * self.table.width + self.position]
    }

    /// Parses the fields to values of fixed width.
    #[inline]
    fn fixed<T: Copy + Default>(&mut self, kind: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Vec<T> {
        let mut values = Vec::with_capacity(self.table.rows);
        for row in 0..self.table.rows {
            let cell = self.cell(row);
            let value = match parse(cell.bytes(self.table.chunk)) {
                Some(value) => value,
                None => self.other(row, cell, kind, &parse),
            };
            values.push(value);
        }
        values
    }

    /// A field that needs conversion: null, with a decimal comma, or wrong.
    #[cold]
    fn other<T: Copy + Default>(
        &mut self,
        row: usize,
        cell: Cell,
        kind: &str,
        parse: &impl Fn(&[u8]) -> Option<T>,
    ) -> T {
        let text = String::from_utf8_lossy(cell.bytes(self.table.chunk));
        if self.is_null(cell, &text) {
            if self.nullable {
                self.null(row);
            } else {
                self.rejects.push((row, "empty value in a non-nullable column".to_owned()));
            }
            return T::default();
        }
        let trimmed = text.trim_matches(' ');
        if trimmed.len() < text.len()
            && let Some(value) = parse(trimmed.as_bytes())
        {
            return value;
        }
        if self.table.dialect.has_decimal_comma
            && let Some(value) = parse(point(trimmed, true).as_bytes())
        {
            return value;
        }
        self.null(row);
        let shown = super::build::display(&Token::Loose(&text));
        self.rejects.push((row, format!("{shown} is not a valid {kind}")));
        T::default()
    }

    fn text(&mut self) -> Strings {
        let mut strings = Strings::new();
        for row in 0..self.table.rows {
            let cell = self.cell(row);
            let bytes = cell.bytes(self.table.chunk);
            if !cell.is_quoted()
                && (bytes.is_empty() || self.table.dialect.nulls.iter().any(|null| null.as_bytes() == bytes))
            {
                strings.push_empty(1);
                if self.nullable {
                    self.null(row);
                } else if !bytes.is_empty() {
                    self.rejects.push((row, "empty value in a non-nullable column".to_owned()));
                }
                continue;
            }
            if !self.table.is_utf8 && simdutf8::basic::from_utf8(bytes).is_err() {
                strings.push_empty(1);
                self.null(row);
                self.rejects.push((row, "invalid UTF-8".to_owned()));
            } else if cell.is_escaped() {
                strings.push(&unescaped(bytes, self.table.dialect.quote.unwrap_or(b'"')));
            } else {
                strings.push(bytes);
            }
        }
        strings
    }

    /// Values of a declared type.
    fn declared(&mut self, field: &Field, parser: ValueParser) -> Column {
        let mut builder = Builder::new(field.clone(), parser);
        for row in 0..self.table.rows {
            let cell = self.cell(row);
            let bytes = cell.bytes(self.table.chunk);
            let quote = self.table.dialect.quote.unwrap_or(b'"');
            let owned = cell.is_escaped().then(|| unescaped(bytes, quote));
            let pushed = match simdutf8::basic::from_utf8(owned.as_deref().unwrap_or(bytes)) {
                Err(_) => Err("invalid UTF-8".to_owned()),
                Ok(text) if !self.is_null(cell, text) => {
                    let text = if builder.holds_text() { text } else { text.trim_matches(' ') };
                    builder.push(Token::Loose(&point(text, self.table.dialect.has_decimal_comma)))
                }
                Ok(_) if builder.is_nullable() => builder.push(Token::Null),
                Ok("") if builder.holds_text() => builder.push(Token::Loose("")),
                Ok(_) => Err("empty value in a non-nullable column".to_owned()),
            };
            if let Err(reason) = pushed {
                builder.pad_to(row + 1);
                self.rejects.push((row, reason));
            }
        }
        builder.take()
    }
}

impl CsvReader<'_> {
    /// Parses a chunk. `is_first` if it starts the file.
    pub(super) fn parse(&self, chunk: &Chunk, is_first: bool) -> ParsedChunk {
        let mut parsed = ParsedChunk::default();
        let mut spans = Vec::new();
        let table = self.locate(chunk, is_first, &mut parsed, &mut spans);
        let mut rejects: Vec<(usize, usize, String)> = Vec::new();
        for (number, column) in self.columns.iter().enumerate() {
            let (column, found) = Self::column(&table, column);
            parsed.batch.columns.push(column);
            rejects.extend(found.into_iter().map(|(row, reason)| (row, number, reason)));
        }
        if rejects.is_empty() {
            return parsed;
        }
        rejects.sort_by_key(|(row, column, _)| (*row, *column));
        let explained = |column: usize, reason: &str| in_column(&self.columns[column].field.name, reason);
        if self.on_error == OnError::Stop {
            let (row, column, reason) = &rejects[0];
            let line = parsed.batch.lines[*row];
            if parsed.problem.as_ref().is_none_or(|(other, _)| line < *other) {
                parsed.problem = Some((line, Problem::Value(explained(*column, reason))));
            }
            return parsed;
        }
        let mut is_bad = vec![false; table.rows];
        let mut last = None;
        for (row, column, reason) in &rejects {
            let is_kept = self.on_error == OnError::Null && self.columns[*column].field.nullable;
            is_bad[*row] |= !is_kept;
            // One report per rejected row.
            if is_kept || last != Some(*row) {
                let (line, reason) = (parsed.batch.lines[*row], explained(*column, reason));
                let record = &chunk.bytes[spans[*row]..];
                let record = &record[..memchr::memchr(b'\n', record).map_or(record.len(), |end| end + 1)];
                parsed.rejects.push(Reject::new(self.input, line, &reason, record, is_kept));
            }
            last = Some(*row);
        }
        if is_bad.contains(&true) {
            parsed.batch = std::mem::take(&mut parsed.batch).without(&is_bad);
        }
        parsed.rejects.sort_by_key(|reject| reject.line);
        parsed
    }

    /// Locates the fields of all records.
    fn locate<'t>(
        &'t self,
        chunk: &'t Chunk,
        is_first: bool,
        parsed: &mut ParsedChunk,
        spans: &mut Vec<usize>,
    ) -> Table<'t> {
        let bytes = &chunk.bytes[..];
        let mut records = Records::new(bytes, self.dialect.marks());
        // A field takes at least one byte.
        let mut cells = Vec::with_capacity(bytes.len() / 8);
        let mut skips_header = is_first && self.dialect.has_header;
        let lines = &mut parsed.batch.lines;
        loop {
            let start = cells.len();
            let Some(record) = records.next(&mut cells, self.width) else { break };
            let line = chunk.line + record.line;
            let is_blank = records.is_blank(&record) && (self.width != 1 || skips_header);
            if is_blank || std::mem::take(&mut skips_header) {
                // The header is checked when the file is opened.
                skips_header &= is_blank;
                cells.truncate(start);
                continue;
            }
            if record.error.is_none() && record.fields == self.width {
                lines.push(line);
                spans.push(record.start);
                continue;
            }
            cells.truncate(start);
            let reason = record.error.map_or_else(|| ragged(record.fields, self.width), str::to_owned);
            if self.on_error == OnError::Stop {
                // The line of the error within a long record.
                let is_limit = record.fields > MAX_COLUMNS;
                let problem = if is_limit { Problem::TooLarge(reason) } else { Problem::Malformed(reason) };
                parsed.problem = Some((line, problem));
                break;
            }
            let text = &bytes[record.start..record.end];
            parsed.rejects.push(Reject::new(self.input, line, &reason, text, false));
        }
        let is_utf8 = simdutf8::basic::from_utf8(bytes).is_ok();
        Table { chunk: bytes, dialect: self.dialect, cells, width: self.width, rows: lines.len(), is_utf8 }
    }

    fn column(table: &Table<'_>, column: &CsvColumn) -> (Column, Vec<(usize, String)>) {
        let CsvColumn { field, parser, position } = column;
        let Some(position) = *position else {
            let mut out = Column::empty(field);
            out.values.push_zeros(table.rows);
            return (out.with_validity(Bitmap::filled(table.rows, false)), Vec::new());
        };
        let mut each = Loop {
            table,
            position,
            nullable: field.nullable,
            accepts_tokens: !matches!(
                parser,
                CellParser::Text | CellParser::Unknown | CellParser::Declared(_)
            ),
            validity: None,
            rejects: Vec::new(),
        };
        let kind = field.kind.name();
        let values = match *parser {
            CellParser::Text => Values::Bytes(each.text()),
            CellParser::Int64 => Values::Int64(each.fixed(kind, int64)),
            CellParser::UInt64 => Values::UInt64(each.fixed(kind, uint64)),
            CellParser::Float64 => Values::Float64(each.fixed(kind, float64)),
            CellParser::Bool => {
                Values::Bool(each.fixed(kind, |bytes| parse_bool(std::str::from_utf8(bytes).ok()?)))
            }
            CellParser::Date => Values::Int32(each.fixed("date", date)),
            CellParser::Time => Values::Int64(each.fixed("time", |bytes| match Moment::parse(bytes) {
                Some(Moment::Time(micros)) => Some(micros),
                _ => None,
            })),
            CellParser::Local => Values::Int64(each.fixed("timestamp", |bytes| match Moment::parse(bytes) {
                Some(Moment::Local(micros)) => Some(micros),
                Some(Moment::Date(days)) => Some(i64::from(days) * 86_400_000_000),
                _ => None,
            })),
            CellParser::Utc => Values::Int64(each.fixed("timestamp", |bytes| match Moment::parse(bytes) {
                Some(Moment::Utc(micros)) => Some(micros),
                _ => None,
            })),
            CellParser::Unknown => {
                each.fixed("null", |_| None::<u8>);
                let mut strings = Strings::new();
                strings.push_empty(table.rows);
                Values::Bytes(strings)
            }
            CellParser::Declared(parser) => {
                let column = each.declared(field, parser);
                return (column, each.rejects);
            }
        };
        (Column { values, validity: each.validity }, each.rejects)
    }

    /// Records the values of a chunk for inference. The columns are those of the file, in order.
    pub(super) fn infer(
        &self,
        chunk: &Chunk,
        is_first: bool,
        most: u64,
    ) -> Result<Inference, (u64, Problem)> {
        let mut parsed = ParsedChunk::default();
        let table = self.locate(chunk, is_first, &mut parsed, &mut Vec::new());
        if let Some(problem) = parsed.problem {
            return Err(problem);
        }
        let mut inference = Inference::default();
        let columns = self.columns.iter().map(|column| inference.column(&column.field.name));
        let columns: Vec<usize> = columns.collect();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        for (row, line) in parsed.batch.lines.iter().enumerate().take(most) {
            for (column, spec) in columns.iter().zip(&self.columns) {
                let Some(position) = spec.position else { continue };
                let cell = table.cells[row * table.width + position];
                let bytes = cell.bytes(table.chunk);
                let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
                    if self.on_error == OnError::Stop {
                        let problem = Problem::in_column(&spec.field.name, "invalid UTF-8");
                        return Err((*line, problem));
                    }
                    continue;
                };
                let is_null = !cell.is_quoted()
                    && (text.is_empty() || self.dialect.nulls.iter().any(|null| null == text));
                let is_text = cell.is_quoted() && is_null_token(text.trim_matches(' '));
                let text = point(text, self.dialect.has_decimal_comma);
                let token = match &*text {
                    _ if is_null => Token::Null,
                    text if is_text => Token::Text(text.into()),
                    text => Token::Loose(text),
                };
                inference.see(*column, &token, *line);
            }
            inference.end_row();
        }
        Ok(inference)
    }
}

fn is_null_token(text: &str) -> bool {
    text.is_empty() || NULL_TOKENS.contains(&text)
}

/// The reason a record of another length is rejected.
fn ragged(fields: usize, columns: usize) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!("{fields} field{}, expected {columns} column{}", plural(fields), plural(columns))
}

/// An unsigned integer of up to 19 digits without leading zeros.
#[inline]
fn digits(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 19 || bytes[0] == b'0' && bytes.len() > 1 {
        return None;
    }
    let mut value = 0_u64;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

#[inline]
pub(super) fn int64(bytes: &[u8]) -> Option<i64> {
    match bytes {
        // Negative zero is a float.
        [b'-', b'0'] => None,
        [b'-', rest @ ..] => {
            let value = digits(rest)?;
            (value <= 1 << 63).then(|| value.wrapping_neg().cast_signed())
        }
        bytes => i64::try_from(digits(bytes)?).ok(),
    }
}

fn uint64(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        0..20 => digits(bytes),
        _ if bytes[0].is_ascii_digit() && bytes[0] != b'0' => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}

/// A number that float64 holds exactly, or whose digits it keeps.
#[inline]
pub(super) fn float64(bytes: &[u8]) -> Option<f64> {
    /// Powers of ten that are exact.
    const POWERS: [f64; 16] =
        [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (is_negative, rest) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    // Up to fifteen digits: the integer and the power are exact, so that the quotient is correctly rounded.
    if rest.len() <= 16 {
        let (mut value, mut point, mut is_plain) = (0_u64, None, !rest.is_empty());
        for (index, byte) in rest.iter().enumerate() {
            match byte.wrapping_sub(b'0') {
                digit @ 0..=9 => value = value * 10 + u64::from(digit),
                _ if *byte == b'.' && point.is_none() => point = Some(index),
                _ => {
                    is_plain = false;
                    break;
                }
            }
        }
        let whole = point.unwrap_or(rest.len());
        let is_canonical = whole > 0 && (whole == 1 || rest[0] != b'0');
        let fraction = point.map_or(0, |point| rest.len() - point - 1);
        if is_plain
            && is_canonical
            && (point.is_none() || fraction > 0)
            && value <= EXACT
            && fraction < POWERS.len()
        {
            #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
            let value = value as f64 / POWERS[fraction];
            return Some(if is_negative { -value } else { value });
        }
    }
    other_float(bytes)
}

#[cold]
fn other_float(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok()?;
    if is_special(text) {
        return text.parse().ok();
    }
    if !tercet_tatami::logical_type::is_number(text) {
        return None;
    }
    let is_integer = !text.contains(['.', 'e', 'E']);
    if is_integer && text.trim_start_matches('-').parse::<u64>().map_or(true, |number| number > EXACT) {
        return None;
    }
    if is_rounded(text) {
        return None;
    }
    text.parse().ok()
}

/// The column names of a header.
pub(super) fn header_names(chunk: &Chunk, dialect: &Dialect) -> Result<Option<Vec<String>>, (u64, Problem)> {
    let mut records = Records::new(&chunk.bytes, dialect.marks());
    let mut cells = Vec::new();
    while let Some(record) = records.next(&mut cells, MAX_COLUMNS) {
        let line = chunk.line + record.line;
        if records.is_blank(&record) {
            cells.clear();
            continue;
        }
        if let Some(reason) = record.error {
            return Err((line, Problem::Malformed(reason.to_owned())));
        }
        if record.fields > MAX_COLUMNS {
            let reason = format!("{} columns exceed the maximum of {MAX_COLUMNS}", record.fields);
            return Err((line, Problem::TooLarge(reason)));
        }
        check_names(cells.len(), record.end - record.start)
            .map_err(|reason| (line, Problem::TooLarge(reason)))?;
        let is_bare = |cell: &&Cell| !cell.is_quoted();
        if cells.iter().filter(is_bare).any(|cell| cell.bytes(&chunk.bytes).contains(&b'\r')) {
            let reason = "lines end with CR only; expected LF or CR LF";
            return Err((line, Problem::Malformed(reason.to_owned())));
        }
        let mut names: Vec<String> = Vec::with_capacity(cells.len());
        let mut seen = std::collections::HashSet::with_capacity(cells.len());
        for (index, cell) in cells.iter().enumerate() {
            let bytes = cell.bytes(&chunk.bytes);
            let bytes = if cell.is_escaped() {
                unescaped(bytes, dialect.quote.unwrap_or(b'"'))
            } else {
                bytes.to_vec()
            };
            let name = String::from_utf8(bytes).map_err(|_| {
                (line, Problem::Value(format!("invalid UTF-8 in the name of column {}", index + 1)))
            })?;
            // The index column of pandas has no name.
            let name = if !dialect.has_header || name.is_empty() { format!("column{index}") } else { name };
            if !seen.insert(name.clone()) {
                return Err((line, Problem::in_column(&name, "duplicate column name")));
            }
            names.push(name);
        }
        return Ok(Some(names));
    }
    Ok(None)
}

impl Batch {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_equal_the_library() {
        for text in [
            "0",
            "7",
            "-1",
            "9223372036854775807",
            "-9223372036854775808",
            "123456789012345678",
            "9999999999999999999",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775809",
            "",
            "-",
            "+1",
            "01",
            "1a",
            "a",
            "1.0",
            "99999999999999999999",
        ] {
            let is_plain = !text.starts_with('+') && text != "01";
            assert_eq!(int64(text.as_bytes()), text.parse().ok().filter(|_| is_plain), "{text}");
            assert_eq!(uint64(text.as_bytes()), text.parse().ok().filter(|_| is_plain), "{text}");
        }
        assert_eq!(int64(b"-0"), None);
    }

    #[test]
    fn floats_equal_the_library() {
        let mut random = 0x1234_5678_9abc_def1_u64;
        for _ in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (digits, scale) = (random % 10_u64.pow((random >> 60) as u32 + 1), (random >> 8) % 16);
            let all = format!("{digits:0width$}", width = scale as usize + 1);
            let (whole, fraction) = all.split_at(all.len() - scale as usize);
            let text = if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") };
            for text in [text.clone(), format!("-{text}")] {
                let expected: f64 = text.parse().unwrap();
                if let Some(value) = float64(text.as_bytes()) {
                    assert_eq!(value.to_bits(), expected.to_bits(), "{text}");
                } else {
                    assert!(text.len() > 15, "{text}");
                }
            }
        }
        for wrong in [
            "",
            "-",
            ".5",
            "1.",
            "01",
            "00.5",
            "+1",
            "1e",
            "x",
            "1.2.3",
            "1,5",
            "12345678901234567.89",
            "9007199254740993",
        ] {
            assert_eq!(float64(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(float64(b"-0").map(f64::to_bits), Some((-0.0_f64).to_bits()));
        assert_eq!(float64(b"1e22"), Some(1e22));
        assert!(float64(b"NaN").is_some_and(f64::is_nan));
    }
}
