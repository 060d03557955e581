//! CSV dialects: delimiter, quote, header, decimal comma; given or detected from a sample.

use super::csv::{Cell, Marks, Record, Records, unescaped};
use super::infer::{Inference, Loose};
use super::token::Token;

/// Bytes of the sample.
pub(super) const SAMPLE_LEN: usize = 1 << 18;
/// Records of the sample.
const SAMPLE_RECORDS: usize = 1000;
/// Fields of a record of the sample.
const SAMPLE_FIELDS: usize = 4096;

/// What is known about a CSV file; the rest is detected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CsvOptions {
    /// The ASCII character between two fields.
    pub delimiter: Option<u8>,
    /// The ASCII character around a field that contains delimiters or line breaks; `Some(None)` for none.
    pub quote: Option<Option<u8>>,
    /// Whether the first record has the column names.
    pub has_header: Option<bool>,
    /// Unquoted fields that mean null.
    pub nulls: Vec<String>,
    /// Whether numbers have a comma in place of a point.
    pub has_decimal_comma: Option<bool>,
    /// The ASCII character at the start of lines that are comments.
    pub comment: Option<u8>,
    /// The number of lines before the header or the first record.
    pub skip_lines: u64,
}

impl CsvOptions {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the delimiter.
    pub fn with_delimiter(mut self, delimiter: Option<u8>) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Sets the quote; `Some(None)` for none.
    pub fn with_quote(mut self, quote: Option<Option<u8>>) -> Self {
        self.quote = quote;
        self
    }

    /// Sets whether the first record has the column names.
    pub fn with_header(mut self, has_header: Option<bool>) -> Self {
        self.has_header = has_header;
        self
    }

    /// Sets the unquoted fields that mean null.
    pub fn with_nulls(mut self, nulls: Vec<String>) -> Self {
        self.nulls = nulls;
        self
    }

    /// Sets the character at the start of lines that are comments.
    pub fn with_comment(mut self, comment: Option<u8>) -> Self {
        self.comment = comment;
        self
    }

    /// Sets the number of lines before the header or the first record.
    pub fn with_skip_lines(mut self, lines: u64) -> Self {
        self.skip_lines = lines;
        self
    }

    /// Sets whether numbers have a comma in place of a point.
    pub fn with_decimal_comma(mut self, has_decimal_comma: Option<bool>) -> Self {
        self.has_decimal_comma = has_decimal_comma;
        self
    }
}

/// The dialect of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dialect {
    /// The character between two fields.
    pub delimiter: u8,
    /// The character around a field that contains delimiters or line breaks.
    pub quote: Option<u8>,
    /// Whether the first record has the column names.
    pub has_header: bool,
    /// Whether numbers have a comma in place of a point.
    pub has_decimal_comma: bool,
    /// Unquoted fields that mean null.
    pub nulls: Vec<String>,
    /// The character at the start of lines that are comments.
    pub comment: Option<u8>,
}

impl Dialect {
    pub(super) const fn marks(&self) -> Marks {
        Marks { delimiter: self.delimiter, quote: self.quote, comment: self.comment }
    }

    /// Detects the dialect from the first bytes of a file. `by_name` is the delimiter that the file name suggests.
    pub(super) fn detect(sample: &[u8], is_whole: bool, by_name: Option<u8>, options: &CsvOptions) -> Self {
        let sample = sample.strip_prefix(b"\xef\xbb\xbf").unwrap_or(sample);
        let marks = marks(sample, is_whole, by_name, options);
        let table = Sample::read(sample, is_whole, marks, SAMPLE_RECORDS);
        let has_decimal_comma =
            options.has_decimal_comma.unwrap_or_else(|| marks.delimiter != b',' && table.has_decimal_comma());
        Self {
            delimiter: marks.delimiter,
            quote: marks.quote,
            has_header: options.has_header.unwrap_or_else(|| table.has_header(has_decimal_comma)),
            has_decimal_comma,
            nulls: options.nulls.clone(),
            comment: options.comment,
        }
    }
}

/// The delimiter and the quote.
fn marks(sample: &[u8], is_whole: bool, by_name: Option<u8>, options: &CsvOptions) -> Marks {
    let usual = by_name.unwrap_or(b',');
    let quotes = match options.quote {
        Some(quote) => vec![quote],
        None => vec![Some(b'"'), Some(b'\'')],
    };
    let delimiters = match options.delimiter {
        Some(delimiter) => vec![delimiter],
        None => vec![usual, b',', b';', b'\t', b'|'],
    };
    let comment = options.comment;
    let fallback = Marks { delimiter: delimiters[0], quote: quotes[0], comment };
    let mut best: Option<(usize, usize, Marks)> = None;
    for &quote in &quotes {
        for &delimiter in &delimiters {
            let marks = Marks { delimiter, quote, comment };
            let table = Sample::read(sample, is_whole, marks, 200);
            let (share, fields) = table.regularity();
            // Single quotes are also apostrophes: they are quotes only where nothing else makes a table.
            let is_better = best.is_none_or(|(best_share, best_fields, other)| {
                if other.quote == quote {
                    (share, fields) > (best_share, best_fields)
                } else {
                    share > best_share
                }
            });
            let is_used = quote != Some(b'\'') || table.cells.iter().any(|cell| cell.is_quoted());
            if fields > 1 && share > 500 && is_better && is_used {
                best = Some((share, fields, marks));
            }
        }
    }
    best.map_or(fallback, |(_, _, marks)| marks)
}

/// Records of a sample.
struct Sample<'a> {
    bytes: &'a [u8],
    quote: Option<u8>,
    cells: Vec<Cell>,
    /// The end of the cells of each record.
    records: Vec<(usize, Record)>,
}

impl<'a> Sample<'a> {
    fn read(bytes: &'a [u8], is_whole: bool, marks: Marks, most: usize) -> Self {
        let mut reader = Records::new(bytes, marks);
        let (mut cells, mut records) = (Vec::new(), Vec::new());
        while records.len() < most
            && let Some(record) = reader.next(&mut cells, SAMPLE_FIELDS)
        {
            let is_cut = record.end == bytes.len() && !is_whole;
            if is_cut && !records.is_empty() {
                break;
            }
            if !reader.is_blank(&record) {
                records.push((cells.len(), record));
            }
        }
        Self { bytes, quote: marks.quote, cells, records }
    }

    /// The share of valid records with as many fields as the first, in thousandths, and that number.
    fn regularity(&self) -> (usize, usize) {
        let fields = self.records.first().map_or(0, |(_, record)| record.fields);
        let is_regular = |record: &Record| record.fields == fields && record.error.is_none();
        let regular = self.records.iter().filter(|(_, record)| is_regular(record)).count();
        (regular * 1000 / self.records.len().max(1), fields)
    }

    /// The fields of a record, and whether they are quoted.
    fn fields(&self, index: usize) -> impl Iterator<Item = (String, bool)> + '_ {
        let end = self.records.get(index).map_or(0, |(end, _)| *end);
        let start =
            index.checked_sub(1).and_then(|before| self.records.get(before)).map_or(0, |(end, _)| *end);
        self.cells.get(start..end).unwrap_or_default().iter().map(|cell| {
            let bytes = cell.bytes(self.bytes);
            let bytes = match self.quote {
                Some(quote) if cell.is_escaped() => unescaped(bytes, quote),
                _ => bytes.to_vec(),
            };
            (String::from_utf8_lossy(&bytes).into_owned(), cell.is_quoted())
        })
    }

    /// Whether numbers have decimal commas: `1,5`. Three digits after the comma could also be thousands.
    fn has_decimal_comma(&self) -> bool {
        let mut found = false;
        for index in 0..self.records.len() {
            for (text, _) in self.fields(index) {
                let Some((whole, fraction)) = text.split_once(',') else {
                    let is_fraction = text.contains('.') && Loose::classify(&text) == Loose::Number;
                    if is_fraction {
                        return false;
                    }
                    continue;
                };
                let is_number = Loose::classify(&text.replacen(',', ".", 1)) == Loose::Number;
                found |= is_number && (fraction.len() != 3 || matches!(whole, "0" | "-0"));
            }
        }
        found
    }

    /// Whether the first record has names: a string above numbers or dates, or strings above strings.
    fn has_header(&self, has_decimal_comma: bool) -> bool {
        let is_text = |(text, is_quoted): &(String, bool)| {
            let text = point(text, has_decimal_comma);
            (*is_quoted && text.is_empty()) || matches!(Loose::classify(&text), Loose::Text | Loose::Token)
        };
        let first: Vec<bool> = self.fields(0).map(|field| is_text(&field)).collect();
        let mut inference = Inference::default();
        let columns: Vec<usize> =
            (0..first.len()).map(|index| inference.column(&index.to_string())).collect();
        for index in 1..self.records.len() {
            for ((text, is_quoted), column) in self.fields(index).zip(&columns) {
                let text = point(&text, has_decimal_comma);
                let token = if text.is_empty() && !is_quoted { Token::Null } else { Token::Loose(&text) };
                inference.see(*column, &token, 1);
            }
            inference.end_row();
        }
        let Ok(rest) = inference.or_text().finish() else { return true };
        let is_typed = |index: usize| {
            let is_string =
                rest.fields.get(index).is_none_or(|field| field.kind == tercet_tatami::Type::String);
            !is_string && !rest.unknown.get(index).copied().unwrap_or(true)
        };
        if first.iter().enumerate().any(|(index, is_text)| *is_text && is_typed(index)) {
            return true;
        }
        let has_typed = (0..first.len()).any(is_typed);
        !has_typed && first.iter().all(|is_text| *is_text)
    }
}

/// A number with a decimal point in place of its comma.
pub(super) fn point(text: &str, has_decimal_comma: bool) -> std::borrow::Cow<'_, str> {
    let is_number = |text: &str| {
        text.bytes().filter(|byte| *byte == b',').count() == 1
            && !text.contains('.')
            && tercet_tatami::logical_type::is_number(&text.trim_matches(' ').replacen(',', ".", 1))
    };
    if has_decimal_comma && is_number(text) { text.replacen(',', ".", 1).into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(text: &str) -> (char, Option<char>, bool, bool) {
        let found = Dialect::detect(text.as_bytes(), true, None, &CsvOptions::new());
        let quote = found.quote.map(char::from);
        (char::from(found.delimiter), quote, found.has_header, found.has_decimal_comma)
    }

    #[test]
    fn dialects_are_detected() {
        let quote = Some('"');
        for (text, expected) in [
            ("a,b\n1,2\n", (',', quote, true, false)),
            ("a;b\n1;2\n", (';', quote, true, false)),
            ("a\tb\n1\t2\n", ('\t', quote, true, false)),
            ("a|b\n1|2\n", ('|', quote, true, false)),
            ("a;b\n1,5;x\n2,25;y\n", (';', quote, true, true)),
            ("a;b\n1,500;x\n", (';', quote, true, false)),
            ("a;b\n1,5;x\n2.5;y\n", (';', quote, true, false)),
            ("1,2\n3,4\n", (',', quote, false, false)),
            ("2024-01-01,x\n2024-01-02,y\n", (',', quote, false, false)),
            ("name,city\nA,B\n", (',', quote, true, false)),
            ("year,2019,2020\nBonn,1.5,2\n", (',', quote, false, false)),
            ("id,2019,2020\n7,1.5,2\n", (',', quote, true, false)),
            ("a\n1\n", (',', quote, true, false)),
            ("note\nit's; fine\nso, so\n", (',', quote, true, false)),
            ("a,b\n'x,y',1\n'z,w',2\n", (',', Some('\''), true, false)),
            ("a,b\n\"x;y;z\",1\n\"u;v;w\",2\n", (',', quote, true, false)),
            ("", (',', quote, true, false)),
        ] {
            assert_eq!(detect(text), expected, "{text:?}");
        }
    }

    #[test]
    fn options_override_the_detection() {
        let options =
            CsvOptions::new().with_delimiter(Some(b',')).with_header(Some(false)).with_quote(Some(None));
        let found = Dialect::detect(b"a;b\n1;2\n", true, None, &options);
        assert_eq!((found.delimiter, found.quote, found.has_header), (b',', None, false));
        let tabs = Dialect::detect(b"a\n1\n", true, Some(b'\t'), &CsvOptions::new());
        assert_eq!(tabs.delimiter, b'\t');
    }
}
