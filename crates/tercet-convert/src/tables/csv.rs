//! CSV records of a chunk.
//!
//! A custom tokenizer: `,,` (null) and `,"",` (empty string) are different here, and fields are ranges of the chunk, so that
//! columns are parsed one by one without copies.

use memchr::memchr;

/// A field of CSV, or a value of JSON: a range of the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    start: u32,
    /// With the flags.
    end: u32,
}

const QUOTED: u32 = 1 << 31;
const ESCAPED: u32 = 1 << 30;
const FLAGS: u32 = QUOTED | ESCAPED;

impl Cell {
    pub(super) const fn is_quoted(self) -> bool {
        self.end & QUOTED != 0
    }

    /// The bytes in the chunk, with doubled quotes if [`is_escaped`](Self::is_escaped).
    #[inline]
    pub(super) fn bytes(self, chunk: &[u8]) -> &[u8] {
        chunk.get(self.range()).unwrap_or_default()
    }

    /// The range in the chunk.
    #[inline]
    pub(super) const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.end & !FLAGS) as usize
    }

    /// Whether quotes in the field are doubled.
    pub(super) const fn is_escaped(self) -> bool {
        self.end & ESCAPED != 0
    }

    /// A value without quotes.
    pub(super) fn plain(start: usize, end: usize) -> Self {
        Self::new(start, end, 0)
    }

    /// A value between quotes.
    pub(super) fn quoted(start: usize, end: usize, is_escaped: bool) -> Self {
        Self::new(start, end, if is_escaped { QUOTED | ESCAPED } else { QUOTED })
    }

    fn new(start: usize, end: usize, flags: u32) -> Self {
        // Chunks are shorter than 1 GiB.
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: number(start), end: number(end) & !FLAGS | flags }
    }
}

/// Invalid CSV.
pub(super) const STRAY_QUOTE: &str = "quote inside an unquoted field";
/// Invalid CSV.
pub(super) const AFTER_QUOTE: &str = "expected a delimiter after a closing quote";
/// Invalid CSV.
pub(super) const UNTERMINATED: &str = "unterminated quoted field";

/// Characters of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    /// The start of a line without records.
    pub(super) comment: Option<u8>,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The number of fields, including those beyond the maximum.
    pub(super) fields: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Line breaks before the record.
    pub(super) line: u64,
    pub(super) error: Option<&'static str>,
}

/// Reads the records of a chunk.
pub(super) struct Records<'a> {
    chunk: &'a [u8],
    marks: Marks,
    specials: Specials<'a>,
    at: usize,
    line: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(chunk: &'a [u8], marks: Marks) -> Self {
        Self { chunk, marks, specials: Specials::new(chunk, marks), at: 0, line: 0 }
    }

    /// Appends the fields of the next record to `cells`, at most `max` of them.
    #[inline]
    pub(super) fn next(&mut self, cells: &mut Vec<Cell>, max: usize) -> Option<Record> {
        let chunk = self.chunk;
        if self.marks.comment.is_some() {
            self.skip_comments();
        }
        if self.at >= chunk.len() {
            return None;
        }
        let mut record = Record { fields: 0, start: self.at, end: self.at, line: self.line, error: None };
        let mut start = self.at;
        loop {
            if self.marks.quote.is_some() && chunk.get(start).copied() == self.marks.quote {
                let (cell, end, lines) = match self.quoted(start) {
                    Ok(found) => found,
                    Err(reason) => {
                        record.error.get_or_insert(reason);
                        (Cell::default(), chunk.len(), 0)
                    }
                };
                self.line += lines;
                record.fields += 1;
                if record.fields <= max {
                    cells.push(cell);
                }
                self.specials.seek(end);
                match chunk.get(end..).unwrap_or_default() {
                    [] => return Some(self.finish(record, end)),
                    [b'\n', ..] => {
                        self.line += 1;
                        return Some(self.finish(record, end + 1));
                    }
                    [b'\r', b'\n', ..] => {
                        self.line += 1;
                        return Some(self.finish(record, end + 2));
                    }
                    [b'\r'] => return Some(self.finish(record, end + 1)),
                    [byte, ..] if *byte == self.marks.delimiter => {
                        self.specials.seek(end + 1);
                        start = end + 1;
                        continue;
                    }
                    _ => {
                        record.error.get_or_insert(AFTER_QUOTE);
                        start = end;
                    }
                }
            }
            let mut end = self.specials.next();
            // A quote in an unquoted field.
            while end < chunk.len() && chunk[end] != self.marks.delimiter && chunk[end] != b'\n' {
                record.error.get_or_insert(STRAY_QUOTE);
                end = self.specials.next();
            }
            record.fields += 1;
            let is_end = end >= chunk.len() || chunk[end] == b'\n';
            if record.fields <= max {
                let is_return = is_end && end > start && chunk[end - 1] == b'\r';
                cells.push(Cell::new(start, end - usize::from(is_return), 0));
            }
            if is_end {
                self.line += u64::from(end < chunk.len());
                return Some(self.finish(record, (end + 1).min(chunk.len())));
            }
            start = end + 1;
        }
    }

    /// Skips lines of comments before a record.
    #[cold]
    fn skip_comments(&mut self) {
        let before = self.at;
        while let Some(rest) = self.chunk.get(self.at..)
            && rest.first().is_some_and(|byte| Some(*byte) == self.marks.comment)
        {
            let end = memchr(b'\n', rest);
            self.line += u64::from(end.is_some());
            self.at += end.map_or(rest.len(), |end| end + 1);
        }
        if self.at > before {
            self.specials.seek(self.at);
        }
    }

    fn finish(&mut self, mut record: Record, end: usize) -> Record {
        self.at = end;
        self.specials.seek(end);
        record.end = end;
        record
    }

    /// A quoted field, the offset after it and the line breaks in it.
    fn quoted(&self, start: usize) -> Result<(Cell, usize, u64), &'static str> {
        let chunk = self.chunk;
        let quote = self.marks.quote.unwrap_or(b'"');
        let (mut at, mut flags) = (start + 1, QUOTED);
        loop {
            let found = chunk.get(at..).and_then(|rest| memchr(quote, rest)).ok_or(UNTERMINATED)?;
            let end = at + found;
            if chunk.get(end + 1) == Some(&quote) {
                flags |= ESCAPED;
                at = end + 2;
                continue;
            }
            let lines = memchr::memchr_iter(b'\n', &chunk[start..end]).count() as u64;
            return Ok((Cell::new(start + 1, end, flags), end + 1, lines));
        }
    }

    /// Whether a record is an empty line.
    pub(super) fn is_blank(&self, record: &Record) -> bool {
        record.fields == 1
            && matches!(self.chunk[record.start..record.end], [] | [b'\n' | b'\r'] | [b'\r', b'\n'])
    }
}

/// The delimiters, quotes and line breaks of a chunk, found eight bytes at a time.
struct Specials<'a> {
    bytes: &'a [u8],
    /// Repeated in every byte.
    delimiter: u64,
    quote: u64,
    /// The offset of the word after the current one.
    next: usize,
    /// The high bits of the special bytes of the current word.
    mask: u64,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// The high bit of every byte of `word` that equals the byte of `pattern`.
const fn equal(word: u64, pattern: u64) -> u64 {
    let x = word ^ pattern;
    !(((x & LOW) + LOW) | x | LOW)
}

impl<'a> Specials<'a> {
    fn new(bytes: &'a [u8], marks: Marks) -> Self {
        let delimiter = ONES * u64::from(marks.delimiter);
        let quote = ONES * u64::from(marks.quote.unwrap_or(marks.delimiter));
        Self { bytes, delimiter, quote, next: 0, mask: 0 }
    }

    /// Continues at an offset.
    #[inline]
    fn seek(&mut self, at: usize) {
        if let Some(before @ 0..8) = (at + 8).checked_sub(self.next) {
            // In the current word, whose special bytes before the offset are dropped.
            self.mask &= u64::MAX << (before * 8);
        } else {
            self.next = at;
            self.mask = 0;
        }
    }

    /// The next special byte; the length at the end.
    #[inline]
    fn next(&mut self) -> usize {
        while self.mask == 0 {
            let Some(rest) = self.bytes.get(self.next..).filter(|rest| !rest.is_empty()) else {
                return self.bytes.len();
            };
            let word = if let Some(word) = rest.first_chunk::<8>() {
                u64::from_le_bytes(*word)
            } else {
                // Bytes after the end are equal to no special byte.
                let mut word = [u8::from(self.delimiter == 0); 8];
                word[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(word)
            };
            let breaks = equal(word, ONES * u64::from(b'\n'));
            self.mask = breaks | equal(word, self.delimiter) | equal(word, self.quote);
            self.next += 8;
        }
        let at = self.next - 8 + (self.mask.trailing_zeros() / 8) as usize;
        self.mask &= self.mask - 1;
        at
    }
}

/// A field with its doubled quotes halved.
pub(super) fn unescaped(bytes: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr(quote, rest) {
        out.extend_from_slice(&rest[..=at]);
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Marks = Marks { delimiter: b',', quote: Some(b'"'), comment: None };

    type Fields = Vec<(String, bool)>;

    /// Parses all records of a text.
    fn read(text: &str) -> Result<Vec<Fields>, &'static str> {
        let chunk = text.as_bytes();
        let mut records = Records::new(chunk, MARKS);
        let (mut all, mut cells) = (Vec::new(), Vec::new());
        while let Some(record) = records.next(&mut cells, 100) {
            if let Some(reason) = record.error {
                return Err(reason);
            }
            assert_eq!(record.fields, cells.len());
            let field = |cell: Cell| {
                let bytes = cell.bytes(chunk);
                let bytes = if cell.is_escaped() { unescaped(bytes, b'"') } else { bytes.to_vec() };
                (String::from_utf8(bytes).unwrap(), cell.is_quoted())
            };
            all.push(cells.drain(..).map(field).collect());
        }
        Ok(all)
    }

    /// The slow, obvious version, for valid records.
    fn oracle(text: &str) -> Vec<Fields> {
        let (mut all, mut record, mut field) = (Vec::new(), Fields::new(), String::new());
        let mut characters = text.chars().peekable();
        let (mut quoted, mut in_quotes, mut any) = (false, false, false);
        while let Some(character) = characters.next() {
            any = true;
            match character {
                '"' if in_quotes && characters.peek() == Some(&'"') => {
                    characters.next();
                    field.push('"');
                }
                '"' => {
                    in_quotes = !in_quotes;
                    quoted = true;
                }
                ',' if !in_quotes => record.push((std::mem::take(&mut field), std::mem::take(&mut quoted))),
                '\n' if !in_quotes => {
                    if !quoted && field.ends_with('\r') {
                        field.pop();
                    }
                    record.push((std::mem::take(&mut field), std::mem::take(&mut quoted)));
                    all.push(std::mem::take(&mut record));
                    any = false;
                }
                '\r' if quoted && !in_quotes => {}
                character => field.push(character),
            }
        }
        if any {
            if !quoted && field.ends_with('\r') {
                field.pop();
            }
            record.push((field, quoted));
            all.push(record);
        }
        all
    }

    fn plain(text: &str) -> (String, bool) {
        (text.to_owned(), false)
    }

    fn quoted(text: &str) -> (String, bool) {
        (text.to_owned(), true)
    }

    #[test]
    fn null_and_empty_strings_are_distinguished() {
        assert_eq!(read("a,,\"\"\r\n").unwrap(), [[plain("a"), plain(""), quoted("")]]);
        assert_eq!(read(",").unwrap(), [[plain(""), plain("")]]);
        assert_eq!(read("\n").unwrap(), [[plain("")]]);
        assert_eq!(read("\"\"").unwrap(), [[quoted("")]]);
    }

    #[test]
    fn quotes_hold_delimiters_quotes_and_breaks() {
        assert_eq!(
            read("\"a,\"\"b\"\"\r\nc\",d\ne,f\n").unwrap(),
            [[quoted("a,\"b\"\r\nc"), plain("d")], [plain("e"), plain("f")],]
        );
        assert_eq!(read("x,\"\n\n\"").unwrap(), [[plain("x"), quoted("\n\n")]]);
        assert_eq!(read("a\"b").unwrap_err(), STRAY_QUOTE);
        assert_eq!(read("\"a\"b").unwrap_err(), AFTER_QUOTE);
        assert_eq!(read("\"a\",\"b\n").unwrap_err(), UNTERMINATED);
    }

    #[test]
    fn errors_end_with_their_record() {
        let text = b"a\"b,c\n\"x\"y,\"z\nz\"\n1,2\n";
        let mut records = Records::new(text, MARKS);
        let mut cells = Vec::new();
        let found: Vec<(u64, usize, Option<&str>)> = std::iter::from_fn(|| {
            let record = records.next(&mut cells, 9)?;
            Some((record.line, record.fields, record.error))
        })
        .collect();
        assert_eq!(found[0], (0, 2, Some(STRAY_QUOTE)));
        assert_eq!(found[1], (1, 3, Some(AFTER_QUOTE)));
        assert_eq!(found[2], (3, 2, None));
    }

    #[test]
    fn more_fields_than_the_maximum_are_counted() {
        let text = ",".repeat(1000);
        let mut cells = Vec::new();
        let record = Records::new(text.as_bytes(), MARKS).next(&mut cells, 10).unwrap();
        assert_eq!((record.fields, cells.len()), (1001, 10));
    }

    /// All texts of up to four pieces equal the oracle, at every offset of a word.
    #[test]
    fn fields_equal_the_oracle() {
        let pieces = ["", "a", "\"b\"", "\"\"", "\"c,\"\"\"", "\"\n\"", "longer than a word", "é", " "];
        let ends = [",", "\n", "\r\n"];
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            let mut longer = Vec::new();
            for text in &texts {
                for piece in pieces {
                    longer.extend(ends.map(|end| format!("{text}{piece}{end}")));
                }
            }
            texts = longer;
            for text in texts.iter().step_by(7) {
                for prefix in ["", "x,", "12345,", "1234567\n"] {
                    let text = format!("{prefix}{text}");
                    assert_eq!(read(&text).unwrap(), oracle(&text), "{text:?}");
                }
            }
            texts.truncate(2000);
        }
    }
}
