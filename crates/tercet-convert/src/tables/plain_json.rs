//! Columns from chunks of plain JSON objects: scalars only, keys without escapes.
//!
//! Like a CSV chunk, it is read in two steps: the values of all rows are located, then each column is parsed in one loop for its
//! type. Anything else, errors included, is left to the parser of [`lines`](super::lines), which reads row by row: a chunk that
//! is parsed here gives the same columns there.

use std::collections::HashMap;

use tercet_tatami::{Bitmap, Column, Field, Strings, Type, Values};

use super::build::{Builder, ValueParser};
use super::cells::{float64, int64};
use super::chunks::Chunk;
use super::csv::Cell;
use super::json;
use super::lines::{JsonlReader, is_wanted};
use super::token::Token;

/// A key as it is written, with quotes.
pub(super) type QuotedKey = Box<[u8]>;

/// The columns of a table, as a chunk is searched for them.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The key of each column; `None` if it is written with escapes.
    quoted: Vec<Option<QuotedKey>>,
}

impl Keys {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let quoted = |name: &str| {
            let is_plain = !name.bytes().any(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\'));
            is_plain.then(|| format!("\"{name}\"").into_bytes().into_boxed_slice())
        };
        Self { quoted: names.map(quoted).collect() }
    }
}

/// Parses a chunk; `None` if it is not plain. The lines are those of the rows.
pub(super) fn parse(reader: &JsonlReader<'_>, chunk: &Chunk) -> Option<(Vec<Column>, Vec<u64>)> {
    // Cells have 30 bits.
    if chunk.bytes.len() >= 1 << 30 || reader.fields.is_empty() {
        return None;
    }
    let text = simdutf8::basic::from_utf8(&chunk.bytes).ok()?;
    let located = Located::new(reader, chunk, text)?;
    let columns = reader.fields.iter().enumerate();
    let columns: Option<Vec<Column>> =
        columns.map(|(index, (field, parser))| located.column(index, field, *parser)).collect();
    Some((columns?, located.lines))
}

/// The located values of a chunk.
struct Located<'a> {
    text: &'a str,
    /// The values, row by row; empty and unquoted for null and for missing ones.
    cells: Vec<Cell>,
    width: usize,
    lines: Vec<u64>,
}

/// A key of an object.
enum Key {
    /// That of a column.
    Column(usize),
    /// Of a column that is not read.
    Unwanted,
}

/// Finds the values of the rows.
struct Locator<'a> {
    bytes: &'a [u8],
    at: usize,
    keys: &'a Keys,
    by_name: &'a HashMap<String, usize>,
    only: Option<&'a [String]>,
    /// For each column the number of the last row with a value, from 1: duplicate keys are errors.
    last: Vec<u64>,
}

impl<'a> Located<'a> {
    fn new(reader: &JsonlReader<'a>, chunk: &'a Chunk, text: &'a str) -> Option<Self> {
        let width = reader.fields.len();
        let mut locator = Locator {
            bytes: &chunk.bytes,
            at: 0,
            keys: reader.keys,
            by_name: reader.by_name,
            only: reader.only,
            last: vec![0; width],
        };
        // A key and a value take some bytes.
        let (mut cells, mut lines) = (Vec::with_capacity(chunk.bytes.len() / 16), Vec::new());
        for line in chunk.line.. {
            locator.space();
            match locator.peek() {
                None => break,
                Some(b'\n') => locator.at += 1,
                Some(b'{') => {
                    let start = cells.len();
                    cells.resize(start + width, Cell::default());
                    lines.push(line);
                    locator.object(&mut cells[start..], lines.len() as u64)?;
                    locator.space();
                    match locator.peek() {
                        None => break,
                        Some(b'\n') => locator.at += 1,
                        Some(_) => return None,
                    }
                }
                Some(_) => return None,
            }
        }
        Some(Self { text, cells, width, lines })
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = Cell> {
        self.cells.iter().skip(column).step_by(self.width).copied()
    }

    /// The values of a column; `None` if one does not fit.
    fn column(&self, index: usize, field: &Field, parser: ValueParser) -> Option<Column> {
        let is_typed = matches!(parser, ValueParser::Plain | ValueParser::Inferred);
        let typed = match field.kind {
            Type::Int32 if let ValueParser::Moment(moment) = parser => {
                let days = |text: &[u8]| moment.parse(text).and_then(|days| i32::try_from(days).ok());
                self.fixed(index, field, true, days).map(|(values, nulls)| (Values::Int32(values), nulls))
            }
            Type::TimestampMicros if let ValueParser::Moment(moment) = parser => {
                let micros = |text: &[u8]| moment.parse(text);
                self.fixed(index, field, true, micros).map(|(values, nulls)| (Values::Int64(values), nulls))
            }
            Type::Int64 if is_typed => {
                self.fixed(index, field, false, int64).map(|(values, nulls)| (Values::Int64(values), nulls))
            }
            Type::Float64 if is_typed => self
                .fixed(index, field, false, float64)
                .map(|(values, nulls)| (Values::Float64(values), nulls)),
            Type::String if is_typed => return self.strings(index, field),
            _ => None,
        };
        match typed {
            Some((values, validity)) => Some(Column { values, validity }),
            None => self.any(index, field, parser),
        }
    }

    /// Values of fixed width, of numbers or of strings; `None` if one needs conversion, or does not fit.
    #[inline]
    fn fixed<T: Copy + Default>(
        &self,
        index: usize,
        field: &Field,
        is_quoted: bool,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Option<(Vec<T>, Option<Bitmap>)> {
        let mut nulls = Nulls::new(field, self.lines.len());
        let mut values = Vec::with_capacity(self.lines.len());
        for (row, cell) in self.cells(index).enumerate() {
            let bytes = cell.bytes(self.text.as_bytes());
            if is_null(cell, bytes) {
                nulls.add(row)?;
                values.push(T::default());
            } else if cell.is_quoted() != is_quoted || cell.is_escaped() {
                return None;
            } else {
                values.push(parse(bytes)?);
            }
        }
        Some((values, nulls.validity))
    }

    fn strings(&self, index: usize, field: &Field) -> Option<Column> {
        let mut nulls = Nulls::new(field, self.lines.len());
        let mut strings = Strings::new();
        for (row, cell) in self.cells(index).enumerate() {
            let bytes = cell.bytes(self.text.as_bytes());
            if is_null(cell, bytes) {
                nulls.add(row)?;
                strings.push_empty(1);
            } else if !cell.is_quoted() {
                return None;
            } else if cell.is_escaped() {
                strings.push(json::unescaped(self.text.get(cell.range())?).ok()?.as_bytes());
            } else {
                strings.push(bytes);
            }
        }
        Some(Column { values: Values::Bytes(strings), validity: nulls.validity })
    }

    /// Values of any type.
    fn any(&self, index: usize, field: &Field, parser: ValueParser) -> Option<Column> {
        let mut builder = Builder::new(field.clone(), parser);
        for cell in self.cells(index) {
            builder.push(self.token(cell)?).ok()?;
        }
        Some(builder.take())
    }

    fn token(&self, cell: Cell) -> Option<Token<'_>> {
        let text = self.text.get(cell.range())?;
        if is_null(cell, text.as_bytes()) {
            return Some(Token::Null);
        }
        if cell.is_escaped() {
            return Some(Token::Text(json::unescaped(text).ok()?));
        }
        if cell.is_quoted() {
            return Some(Token::Text(text.into()));
        }
        literal(text)
    }
}

/// `text.starts_with(start)`, without a call: keys are short.
#[inline]
fn starts_with(text: &[u8], start: &[u8]) -> bool {
    let Some(text) = text.get(..start.len()) else { return false };
    let (words, _) = text.as_chunks::<8>();
    let (others, _) = start.as_chunks::<8>();
    match (text.last_chunk::<8>(), start.last_chunk::<8>()) {
        // The last words overlap the others.
        (Some(last), Some(other)) => {
            last == other && words.iter().zip(others).all(|(one, other)| one == other)
        }
        _ => text.iter().zip(start).all(|(one, other)| one == other),
    }
}

/// A bool or a number.
fn literal(text: &str) -> Option<Token<'_>> {
    match text {
        "true" => Some(Token::Bool(true)),
        "false" => Some(Token::Bool(false)),
        number => json::number(number),
    }
}

fn is_null(cell: Cell, bytes: &[u8]) -> bool {
    bytes.is_empty() && !cell.is_quoted()
}

/// The rows without a value.
struct Nulls {
    is_nullable: bool,
    rows: usize,
    validity: Option<Bitmap>,
}

impl Nulls {
    fn new(field: &Field, rows: usize) -> Self {
        Self { is_nullable: field.nullable, rows, validity: None }
    }

    /// `None` if the column is not nullable.
    #[cold]
    fn add(&mut self, row: usize) -> Option<()> {
        let Self { is_nullable, rows, validity } = self;
        is_nullable.then(|| validity.get_or_insert_with(|| Bitmap::filled(*rows, true)).set(row, false))
    }
}

impl Locator<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips spaces, but no line break, which ends a row.
    #[inline]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Locates the values of an object, from its `{`; `None` if it is not plain.
    fn object(&mut self, cells: &mut [Cell], row: u64) -> Option<()> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        let mut expected = 0;
        loop {
            self.space();
            let key = self.key(expected)?;
            self.space();
            if self.peek() != Some(b':') {
                return None;
            }
            self.at += 1;
            self.space();
            let cell = self.value()?;
            match key {
                Key::Column(column) => {
                    if std::mem::replace(self.last.get_mut(column)?, row) == row {
                        return None;
                    }
                    *cells.get_mut(column)? = cell;
                    expected = column + 1;
                }
                Key::Unwanted => self.check(cell)?,
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// The key here. Keys are usually in the same order in every row.
    #[inline]
    fn key(&mut self, expected: usize) -> Option<Key> {
        let rest = self.bytes.get(self.at..)?;
        if let Some(Some(quoted)) = self.keys.quoted.get(expected)
            && starts_with(rest, quoted)
        {
            self.at += quoted.len();
            return Some(Key::Column(expected));
        }
        self.other_key()
    }

    fn other_key(&mut self) -> Option<Key> {
        let start = self.at + 1;
        let cell = match self.peek() {
            Some(b'"') => self.string()?,
            _ => return None,
        };
        let key = self.bytes.get(start..self.at - 1).filter(|_| !cell.is_escaped())?;
        let key = std::str::from_utf8(key).ok()?;
        match self.by_name.get(key) {
            Some(column) => Some(Key::Column(*column)),
            None => (!is_wanted(self.only, key)).then_some(Key::Unwanted),
        }
    }

    #[inline]
    fn value(&mut self) -> Option<Cell> {
        let start = self.at;
        match self.peek()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => {
                while matches!(self.peek(), Some(b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E')) {
                    self.at += 1;
                }
                Some(Cell::plain(start, self.at))
            }
            b'n' => self.keyword(b"null").then(Cell::default),
            b't' => self.keyword(b"true").then(|| Cell::plain(start, start + 4)),
            b'f' => self.keyword(b"false").then(|| Cell::plain(start, start + 5)),
            _ => None,
        }
    }

    /// The value of a column that is not wanted must be valid, too.
    fn check(&self, cell: Cell) -> Option<()> {
        let bytes = cell.bytes(self.bytes);
        if is_null(cell, bytes) {
            return Some(());
        }
        let text = std::str::from_utf8(bytes).ok()?;
        match cell.is_quoted() {
            true if cell.is_escaped() => json::unescaped(text).ok().map(drop),
            true => Some(()),
            false => literal(text).map(drop),
        }
    }

    fn keyword(&mut self, keyword: &[u8]) -> bool {
        let is_here = self.bytes[self.at..].starts_with(keyword);
        self.at += if is_here { keyword.len() } else { 0 };
        is_here
    }

    /// The string here, from its quote.
    #[inline]
    fn string(&mut self) -> Option<Cell> {
        let start = self.at + 1;
        let mut end = start;
        let mut is_escaped = false;
        loop {
            end += json::plain_len(self.bytes.get(end..)?);
            match self.bytes.get(end)? {
                b'"' => {
                    self.at = end + 1;
                    return Some(Cell::quoted(start, end, is_escaped));
                }
                b'\\' => {
                    is_escaped = true;
                    end += 2;
                }
                0..=0x1f => return None,
                _ => end += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::super::json::Nested;
    use super::super::reject::OnError;
    use super::*;

    #[test]
    fn starts_are_compared_like_slices() {
        let text = b"\"abcdefghijklmnopqrst\"";
        for len in 0..=text.len() {
            assert!(starts_with(text, &text[..len]));
            for at in 0..len {
                let mut other = text[..len].to_vec();
                other[at] ^= 1;
                assert!(!starts_with(text, &other), "{len} {at}");
            }
        }
        assert!(!starts_with(b"ab", b"abc"));
    }

    const NAMES: [&str; 6] = ["id", "price", "name", "ok", "small", "day"];

    fn fields() -> Vec<(Field, ValueParser)> {
        let kinds = [Type::Int64, Type::Float64, Type::String, Type::Bool, Type::Int8, Type::String];
        let field = |(name, kind): (&str, Type)| (Field::new(name, kind).with_nulls(), ValueParser::Inferred);
        let mut fields: Vec<_> = NAMES.into_iter().zip(kinds).map(field).collect();
        fields[0].0.nullable = false;
        fields[4].1 = ValueParser::Plain;
        fields
    }

    type Columns = Option<(Vec<Column>, Vec<u64>)>;

    /// The columns of a chunk by both parsers; `None` if the fast one left it to the other, or it has an error.
    fn both(text: &str, only: Option<&[String]>) -> (Columns, Columns) {
        let (input, fields) = (Arc::from("t.jsonl"), fields());
        let by_name = NAMES.iter().zip(0..).map(|(name, index)| ((*name).to_owned(), index)).collect();
        let (objects, keys) = (HashSet::new(), Keys::new(NAMES.into_iter()));
        let reader = JsonlReader {
            input: &input,
            nested: Nested::Flatten,
            only,
            fields: &fields,
            by_name: &by_name,
            keys: &keys,
            objects: &objects,
            on_error: OnError::Stop,
        };
        let chunk = Chunk { bytes: text.as_bytes().to_vec(), line: 7, read: 0 };
        let slow = reader.parse_lines(&chunk);
        let slow = slow.problem.is_none().then_some((slow.batch.columns, slow.batch.lines));
        (parse(&reader, &chunk), slow)
    }

    #[test]
    fn plain_rows_are_read_without_the_other_parser() {
        for text in [
            "{\"id\":1,\"price\":2.5,\"name\":\"x\",\"ok\":true,\"small\":-3,\"day\":\"2024-01-02\"}\n",
            "{\"id\":1}\n\n  \r\n{\"name\":\"a\\n\\u00e9\",\"id\":2}\r\n{ \"id\" : 3 , \"price\" : null }",
            "{\"day\":\"日本\",\"ok\":false,\"id\":9223372036854775807,\"price\":0.1234567890123456}\n",
            "",
            "\n",
        ] {
            let (fast, slow) = both(text, None);
            assert!(fast.is_some(), "{text}");
            assert_eq!(fast, slow, "{text}");
        }
        let only = [NAMES[0].to_owned()];
        let (fast, slow) = both("{\"other\":\"x\\n\",\"id\":4,\"more\":null,\"n\":-1.5}\n", Some(&only));
        assert!(fast.is_some() && fast == slow);
    }

    /// Whatever the fast parser accepts, the other one reads equally; errors are left to it.
    #[test]
    fn changed_rows_are_read_equally() {
        let text = "{\"id\":10,\"price\":-2.5e3,\"name\":\"x\\u0041\",\"ok\":true,\"small\":7}\n{\"id\":2,\"day\":\"d\"}\n";
        let other = b"{}[]\",:\\ 0-.eaun\x01\xff\n";
        let (mut accepted, mut errors) = (0, 0);
        for at in 0..text.len() {
            for byte in other {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = *byte;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                let (fast, slow) = both(&changed, None);
                if fast.is_some() {
                    accepted += 1;
                    assert_eq!(fast, slow, "{changed}");
                }
                errors += usize::from(slow.is_none());
            }
        }
        assert!(accepted > 100 && errors > 1000, "{accepted} accepted, {errors} errors");
        for text in [
            "{\"id\":1,\"id\":2}\n",
            "{\"id\":null}\n",
            "{\"price\":1}\n",
            "{\"id\":1} {\"id\":2}\n",
            "{\"id\":\n1}\n",
        ] {
            assert_eq!(both(text, None), (None, None), "{text}");
        }
    }
}
