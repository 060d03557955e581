//! Schema inference from values.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use tercet_core::escape;
use tercet_tatami::logical_type::is_number;
use tercet_tatami::{Field, LogicalType, Type};

use super::moment::Moment;
use super::token::Token;

/// Integers up to this are exact as float64.
pub(super) const EXACT: u64 = 1 << 53;

/// Spellings of null in columns of numbers, bools, dates and times. In columns of strings they are strings.
pub(super) const NULL_TOKENS: [&str; 6] = ["NULL", "null", "NA", "N/A", "\\N", "None"];

/// Maximum columns of an inferred table. Each column of a file takes memory while it is written.
pub(super) const MAX_COLUMNS: usize = 16_384;

/// Maximum bytes of all column names.
const MAX_NAME_BYTES: usize = 16 << 20;

/// The inference state of all columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Inference {
    columns: Vec<(String, Seen)>,
    by_name: HashMap<String, usize>,
    name_bytes: usize,
    rows: u64,
}

/// Inferred columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Inferred {
    pub(super) fields: Vec<Field>,
    /// Logical type annotations, as pairs of footer metadata.
    pub(super) annotations: Vec<(String, String)>,
    /// Columns without a value so far, of unknown type.
    pub(super) unknown: Vec<bool>,
    /// Columns of JSON strings.
    pub(super) json: Vec<bool>,
}

/// The inference state of a column: for each kind of value the line of the first one.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Rows with a value.
    rows: u64,
    nulls: bool,
    bool_at: Option<u64>,
    int_at: Option<u64>,
    float_at: Option<u64>,
    text_at: Option<u64>,
    list_at: Option<u64>,
    /// A nested value.
    json_at: Option<u64>,
    date_at: Option<u64>,
    time_at: Option<u64>,
    local_at: Option<u64>,
    utc_at: Option<u64>,
    /// A date or timestamp in a JSON string.
    quoted_at: Option<u64>,
    /// A spelling of null.
    token_at: Option<u64>,
    negative_at: Option<u64>,
    /// Above the range of int64.
    above_at: Option<u64>,
    /// An integer that is not exact as float64.
    inexact_at: Option<u64>,
    /// A decimal number that is not exact as float64.
    rounded_at: Option<u64>,
    /// An integer out of range of all types.
    huge_at: Option<u64>,
    element: Option<Box<Seen>>,
}

/// A CSV field, classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loose {
    Bool,
    Number,
    /// NaN or an infinity.
    Special,
    /// A spelling of null.
    Token,
    Moment(Moment),
    Text,
}

impl Loose {
    /// Blanks around a value are ignored, as databases do. In columns of strings they are kept.
    pub(super) fn classify(text: &str) -> Self {
        let is_empty = text.is_empty();
        let text = text.trim_matches(' ');
        if text.is_empty() && !is_empty {
            return Self::Token;
        }
        match text.as_bytes().first() {
            Some(b'0'..=b'9' | b'-') => {
                if is_number(text) {
                    return Self::Number;
                }
                if let Some(moment) = Moment::parse(text.as_bytes()) {
                    return Self::Moment(moment);
                }
            }
            Some(b't' | b'f' | b'T' | b'F') if parse_bool(text).is_some() => return Self::Bool,
            _ => {}
        }
        if is_special(text) {
            Self::Special
        } else if NULL_TOKENS.contains(&text) {
            Self::Token
        } else {
            Self::Text
        }
    }
}

/// The spellings of bools.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Whether a text is NaN or an infinity in the spelling of a program.
pub(super) fn is_special(text: &str) -> bool {
    matches!(text, "NaN" | "nan" | "inf" | "-inf" | "Inf" | "-Inf" | "Infinity" | "-Infinity")
}

/// Records the line of the first value of a kind.
fn record_line(slot: &mut Option<u64>, line: u64) {
    slot.get_or_insert(line);
}

/// Whether float64 would change the digits of a number.
pub(super) fn is_rounded(text: &str) -> bool {
    // Up to fifteen digits round-trip, except for tiny numbers.
    const SHORT: usize = 16;
    if text.len() <= SHORT && !text.contains(['e', 'E']) {
        return false;
    }
    let Ok(value) = text.parse::<f64>() else { return true };
    if !value.is_finite() {
        return true;
    }
    let wanted = digits(text);
    if wanted.is_none() || digits(ryu::Buffer::new().format_finite(value)) == wanted {
        return wanted.is_none();
    }
    // Programs that print more digits than needed (`%.17g`) print the exact digits of the float.
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let written = mantissa.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count();
    written > MAX_DIGITS || digits(&format!("{value:.*e}", written.saturating_sub(1))) != wanted
}

/// Maximum digits compared.
const MAX_DIGITS: usize = 64;

/// The significant digits of a number and the exponent of the last one.
fn digits(text: &str) -> Option<(String, i64)> {
    let (mantissa, power) = match text.split_once(['e', 'E']) {
        Some((mantissa, power)) => (mantissa, Some(power)),
        None => (text, None),
    };
    let (integer_part, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", integer_part.trim_start_matches('-'));
    let kept = all.trim_end_matches('0');
    let bare = kept.trim_start_matches('0');
    if bare.is_empty() {
        return Some((String::new(), 0));
    }
    let power: i64 = power.map_or(Some(0), |power| power.parse().ok())?;
    let (trailing_zeros, fraction) =
        (i64::try_from(all.len() - kept.len()).ok()?, i64::try_from(fraction.len()).ok()?);
    Some((bare.to_owned(), power.checked_add(trailing_zeros)?.checked_sub(fraction)?))
}

/// Fails if there are too many columns, or their names are too long.
pub(super) fn check_names(columns: usize, bytes: usize) -> Result<(), String> {
    if columns > MAX_COLUMNS {
        return Err(format!("more than {MAX_COLUMNS} columns"));
    }
    if bytes > MAX_NAME_BYTES {
        return Err(format!("the column names exceed {} MiB", MAX_NAME_BYTES >> 20));
    }
    Ok(())
}

impl Inference {
    /// Adds a column.
    pub(super) fn column(&mut self, name: &str) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        self.columns.push((name.to_owned(), Seen::default()));
        self.name_bytes += name.len();
        self.by_name.insert(name.to_owned(), self.columns.len() - 1);
        self.columns.len() - 1
    }

    /// Records a value and its line.
    pub(super) fn see(&mut self, column: usize, token: &Token<'_>, line: u64) {
        if let Some((_, seen)) = self.columns.get_mut(column) {
            seen.rows += 1;
            seen.see(token, line, false);
        }
    }

    /// Ends a row.
    pub(super) fn end_row(&mut self) {
        self.rows += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Fails if there are too many columns, or their names are too long.
    pub(super) fn check_limits(&self) -> Result<(), String> {
        check_names(self.columns.len(), self.name_bytes)
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds what was seen in later lines.
    pub(super) fn merge(&mut self, later: Self) {
        for (name, theirs) in later.columns {
            let column = self.column(&name);
            self.columns[column].1.merge(theirs);
        }
        self.rows += later.rows;
    }

    /// The inferred columns in order of appearance.
    pub(super) fn finish(&self) -> Result<Inferred, String> {
        let mut out = Inferred::default();
        let names: BTreeSet<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let has_members = |name: &str| {
            let path = format!("{name}.");
            names.range(path.as_str()..).next().is_some_and(|other| other.starts_with(&path))
        };
        for (name, seen) in &self.columns {
            let seen = seen.settled();
            // A null in place of an object.
            if seen.is_unknown() && has_members(name) {
                continue;
            }
            let (field, annotation) =
                seen.field(name).map_err(|reason| format!("column `{}`: {reason}", escape::name(name)))?;
            let has_nulls = seen.nulls || seen.rows < self.rows || seen.has_null_tokens();
            if let Some(annotation) = annotation {
                out.annotations.push((LogicalType::key(name), annotation.to_owned()));
            }
            out.fields.push(if has_nulls { field.with_nulls() } else { field });
            out.unknown.push(seen.is_unknown());
            out.json.push(seen.json_at.is_some());
        }
        Ok(out)
    }
}

impl Seen {
    fn see(&mut self, token: &Token<'_>, line: u64, is_element: bool) {
        match token {
            Token::Null => self.nulls = true,
            Token::Bool(_) => record_line(&mut self.bool_at, line),
            Token::Number(text) => self.number(text, line),
            Token::Text(text) => match Moment::parse(text.as_bytes()).filter(|_| !is_element) {
                Some(moment @ (Moment::Date(_) | Moment::Local(_) | Moment::Utc(_))) => {
                    record_line(&mut self.quoted_at, line);
                    record_line(self.moment(moment), line);
                }
                _ => record_line(&mut self.text_at, line),
            },
            Token::Json(_) => record_line(&mut self.json_at, line),
            Token::List(elements, _) => {
                record_line(&mut self.list_at, line);
                let element = self.element.get_or_insert_default();
                for token in elements {
                    element.see(token, line, true);
                }
            }
            Token::Loose(text) => self.loose(text, line),
        }
    }

    /// Records a JSON number.
    fn number(&mut self, text: &str, line: u64) {
        if text.contains(['.', 'e', 'E']) || text == "-0" {
            if is_rounded(text) {
                record_line(&mut self.rounded_at, line);
            }
            return record_line(&mut self.float_at, line);
        }
        record_line(&mut self.int_at, line);
        if text.starts_with('-') {
            record_line(&mut self.negative_at, line);
        }
        let size = text.trim_start_matches('-').parse::<u64>();
        if size.as_ref().map_or(true, |size| *size > EXACT) {
            record_line(&mut self.inexact_at, line);
        }
        if text.parse::<i64>().is_err() {
            record_line(
                if text.parse::<u64>().is_ok() { &mut self.above_at } else { &mut self.huge_at },
                line,
            );
        }
    }

    /// Records a CSV field. Leading zeros and signs make it a string, so that nothing is lost.
    fn loose(&mut self, text: &str, line: u64) {
        let slot = match Loose::classify(text) {
            Loose::Bool => &mut self.bool_at,
            Loose::Number => return self.number(text.trim_matches(' '), line),
            Loose::Special => &mut self.float_at,
            Loose::Token => &mut self.token_at,
            Loose::Moment(moment) => self.moment(moment),
            Loose::Text => &mut self.text_at,
        };
        record_line(slot, line);
    }

    fn moment(&mut self, moment: Moment) -> &mut Option<u64> {
        match moment {
            Moment::Date(_) => &mut self.date_at,
            Moment::Time(_) => &mut self.time_at,
            Moment::Local(_) => &mut self.local_at,
            Moment::Utc(_) => &mut self.utc_at,
        }
    }

    /// JSON strings of dates and times together with others are strings.
    fn settled(&self) -> Cow<'_, Self> {
        let kinds = [self.date_at.or(self.local_at), self.utc_at, self.text_at];
        if self.quoted_at.is_none() || kinds.iter().flatten().count() < 2 {
            return Cow::Borrowed(self);
        }
        let text_at = [self.text_at, self.quoted_at].into_iter().flatten().min();
        let (date_at, local_at, utc_at) = (None, None, None);
        Cow::Owned(Self { text_at, date_at, local_at, utc_at, ..self.clone() })
    }

    /// Adds what was seen in later lines.
    fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.nulls |= later.nulls;
        for (mine, theirs) in [
            (&mut self.bool_at, later.bool_at),
            (&mut self.int_at, later.int_at),
            (&mut self.float_at, later.float_at),
            (&mut self.text_at, later.text_at),
            (&mut self.quoted_at, later.quoted_at),
            (&mut self.list_at, later.list_at),
            (&mut self.json_at, later.json_at),
            (&mut self.date_at, later.date_at),
            (&mut self.time_at, later.time_at),
            (&mut self.local_at, later.local_at),
            (&mut self.utc_at, later.utc_at),
            (&mut self.token_at, later.token_at),
            (&mut self.negative_at, later.negative_at),
            (&mut self.above_at, later.above_at),
            (&mut self.inexact_at, later.inexact_at),
            (&mut self.rounded_at, later.rounded_at),
            (&mut self.huge_at, later.huge_at),
        ] {
            *mine = mine.or(theirs);
        }
        if let Some(theirs) = later.element {
            self.element.get_or_insert_default().merge(*theirs);
        }
    }

    /// The lines of the first value of each kind. Dates are also timestamps at midnight.
    fn kinds(&self) -> [(&'static str, Option<u64>); 7] {
        let first = |lines: [Option<u64>; 2]| lines.into_iter().flatten().min();
        [
            ("bools", self.bool_at),
            ("numbers", first([self.int_at, self.float_at])),
            ("dates", first([self.date_at, self.local_at])),
            ("timestamps", self.utc_at),
            ("times", self.time_at),
            ("strings", self.text_at),
            ("lists", self.list_at),
        ]
    }

    /// Whether no value decides the type.
    fn is_unknown(&self) -> bool {
        self.json_at.is_none() && self.kinds().iter().all(|(_, line)| line.is_none())
    }

    /// Whether spellings of null mean null.
    fn has_null_tokens(&self) -> bool {
        self.token_at.is_some() && self.text_at.is_none() && !self.is_unknown()
    }

    /// The column and its logical type.
    fn field(&self, name: &str) -> Result<(Field, Option<&'static str>), String> {
        if self.json_at.is_some() {
            return Ok((Field::new(name, Type::String), Some("json")));
        }
        if self.list_at.is_some() {
            self.one_kind()?;
            let element = self.element.as_ref().map_or(Ok((Type::String, None)), |element| element.scalar());
            let (element, _) = element.map_err(|reason| format!("list elements: {reason}"))?;
            return Ok((Field::list(name, element), None));
        }
        let (kind, annotation) = self.scalar()?;
        Ok((Field::new(name, kind), annotation))
    }

    /// Rejects values of different kinds.
    fn one_kind(&self) -> Result<(), String> {
        let mut seen = self.kinds().into_iter().filter_map(|(kind, at)| Some((kind, at?)));
        match (seen.next(), seen.next()) {
            (Some((one, at)), Some((other, then))) => {
                Err(format!("has {one} (line {at}) and {other} (line {then})"))
            }
            _ => Ok(()),
        }
    }

    /// The type and its annotation.
    fn scalar(&self) -> Result<(Type, Option<&'static str>), String> {
        self.one_kind()?;
        if self.bool_at.is_some() {
            return Ok((Type::Bool, None));
        }
        if self.local_at.is_some() {
            return Ok((Type::TimestampMicros, Some("timestamp[us]")));
        }
        if self.utc_at.is_some() {
            return Ok((Type::TimestampMicros, Some("timestamp[us, UTC]")));
        }
        if self.date_at.is_some() {
            return Ok((Type::Int32, Some("date32")));
        }
        if self.time_at.is_some() {
            return Ok((Type::Int64, Some("time[us]")));
        }
        if let Some(line) = self.huge_at {
            return Err(format!("line {line}: integer out of range"));
        }
        if let Some(line) = self.rounded_at {
            return Err(format!("line {line}: number is not exact as float64"));
        }
        if self.float_at.is_some() {
            return match self.inexact_at {
                None => Ok((Type::Float64, None)),
                Some(line) => {
                    Err(format!("line {line}: integer is not exact as float64, the type of the column"))
                }
            };
        }
        match (self.int_at, self.above_at, self.negative_at) {
            (None, _, _) => Ok((Type::String, None)),
            (Some(_), None, _) => Ok((Type::Int64, None)),
            (Some(_), Some(_), None) => Ok((Type::UInt64, None)),
            (Some(_), Some(above), Some(negative)) => {
                Err(format!("no integer type has the range of line {negative} and line {above}"))
            }
        }
    }
}

impl Inference {
    /// Falls back to strings for columns that fit no other type: for CSV.
    pub(super) fn or_text(mut self) -> Self {
        for (_, seen) in &mut self.columns {
            if seen.scalar().is_err() {
                *seen = Seen { rows: seen.rows, nulls: seen.nulls, text_at: Some(1), ..Seen::default() };
            }
        }
        self
    }

    /// Falls back to the type of the first value for columns that fit no type, for JSONL whose other values are rejected:
    /// `is_null` if null is stored in their place.
    pub(super) fn or_first(mut self, is_null: bool) -> Self {
        for (name, seen) in &mut self.columns {
            *seen = seen.settled().into_owned();
            if seen.field(name).is_err() {
                seen.keep_first();
                seen.nulls |= is_null;
            }
        }
        self
    }
}

impl Seen {
    /// Forgets the values that the type of the first one does not hold.
    fn keep_first(&mut self) {
        let kinds = self.kinds();
        let first =
            kinds.iter().filter_map(|(kind, at)| Some((at.as_ref()?, *kind))).min_by_key(|(at, _)| **at);
        let Some((_, kind)) = first else { return };
        let before = std::mem::take(self);
        (self.rows, self.nulls, self.token_at) = (before.rows, before.nulls, before.token_at);
        match kind {
            "bools" => self.bool_at = before.bool_at,
            "numbers" => self.keep_first_number(&before),
            "dates" => {
                (self.date_at, self.local_at) = (before.date_at, before.local_at);
                self.quoted_at = before.quoted_at;
            }
            "timestamps" => (self.utc_at, self.quoted_at) = (before.utc_at, before.quoted_at),
            "times" => self.time_at = before.time_at,
            "strings" => self.text_at = before.text_at,
            _ => {
                (self.list_at, self.element) = (before.list_at, before.element);
                if let Some(element) = self.element.as_mut().filter(|element| element.scalar().is_err()) {
                    element.keep_first();
                }
            }
        }
    }

    /// Keeps the numbers that fit the type of the first one. Without a float that is exact, they are integers.
    fn keep_first_number(&mut self, all: &Self) {
        let is_before = |one: Option<u64>, other: Option<u64>| {
            other.is_none_or(|other| one.is_some_and(|one| one < other))
        };
        if all.int_at.is_none() || all.float_at.is_some() && is_before(all.float_at, all.inexact_at) {
            (self.int_at, self.float_at) = (all.int_at, all.float_at);
            return;
        }
        self.int_at = all.int_at;
        if all.above_at.is_some() && is_before(all.above_at, all.negative_at) {
            self.above_at = all.above_at;
        } else {
            self.negative_at = all.negative_at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(tokens: &[Token<'_>]) -> Result<Field, String> {
        let mut inference = Inference::default();
        let column = inference.column("x");
        for (token, line) in tokens.iter().zip(1..) {
            inference.see(column, token, line);
            inference.end_row();
        }
        Ok(inference.finish()?.fields.remove(0))
    }

    fn number(text: &str) -> Token<'_> {
        Token::Number(text)
    }

    #[test]
    fn lossless_types_are_inferred() {
        let kind = |tokens: &[Token<'_>]| infer(tokens).map(|field| field.kind);
        assert_eq!(kind(&[number("1"), number("-9223372036854775808")]), Ok(Type::Int64));
        assert_eq!(kind(&[number("1"), number("18446744073709551615")]), Ok(Type::UInt64));
        assert_eq!(kind(&[number("1"), number("0.5")]), Ok(Type::Float64));
        assert_eq!(kind(&[number("-0")]), Ok(Type::Float64));
        assert_eq!(kind(&[Token::Bool(true), Token::Null]), Ok(Type::Bool));
        assert_eq!(kind(&[Token::Null]), Ok(Type::String));
        for invalid in [
            &[number("-1"), number("18446744073709551615")][..],
            &[number("18446744073709551616")],
            &[number("-9223372036854775809")],
            &[number("9007199254740993"), number("0.5")],
            &[number("12345678901234567.89")],
            &[number("1"), number("1e400")],
            &[number("1"), Token::Text("1".into())],
            &[Token::Bool(true), number("1")],
        ] {
            assert!(kind(invalid).is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn json_strings_of_dates_are_dates_unless_others_are_not() {
        let kind = |texts: &[&'static str]| {
            let tokens: Vec<Token<'_>> = texts.iter().map(|text| Token::Text((*text).into())).collect();
            infer(&tokens).unwrap().kind
        };
        assert_eq!(kind(&["2024-06-21", "1999-12-31"]), Type::Int32);
        assert_eq!(kind(&["2024-06-21", "2024-06-21 12:00:00"]), Type::TimestampMicros);
        assert_eq!(kind(&["2024-06-21T12:00:00Z"]), Type::TimestampMicros);
        for mixed in [
            &["2024-06-21", "x"][..],
            &["x", "2024-06-21"],
            &["2024-06-21", "2024-06-21T12:00:00Z"],
            &["2024-06-21", "2024-13-01"],
            &["12:00:00"],
            &["2024-06-21", ""],
        ] {
            assert_eq!(kind(mixed), Type::String, "{mixed:?}");
        }
        assert!(infer(&[Token::Text("2024-06-21".into()), number("1")]).is_err());
        let list = Token::List(vec![Token::Text("2024-06-21".into())], "[]");
        assert_eq!(infer(&[list]).unwrap().element, Some(Type::String));
    }

    #[test]
    fn missing_and_null_values_make_a_column_nullable() {
        assert!(!infer(&[number("1")]).unwrap().nullable);
        assert!(infer(&[number("1"), Token::Null]).unwrap().nullable);
        let mut inference = Inference::default();
        inference.end_row();
        let column = inference.column("late");
        inference.see(column, &number("1"), 2);
        inference.end_row();
        assert!(inference.finish().unwrap().fields[0].nullable);
    }

    #[test]
    fn lists_have_elements_of_one_type() {
        let list = |tokens: &[Token<'static>]| Token::List(tokens.to_vec(), "[]");
        let field = infer(&[list(&[]), list(&[number("1"), Token::Null])]).unwrap();
        assert_eq!((field.kind, field.element, field.nullable), (Type::List, Some(Type::Int64), false));
        assert_eq!(infer(&[list(&[])]).unwrap().element, Some(Type::String));
        assert!(infer(&[list(&[number("1"), Token::Bool(true)])]).is_err());
        assert!(infer(&[list(&[]), number("1")]).is_err());
    }

    #[test]
    fn csv_falls_back_to_strings() {
        let kind = |values: &[&'static str]| {
            let mut inference = Inference::default();
            let column = inference.column("x");
            for text in values {
                inference.see(column, &Token::Loose(text), 1);
                inference.end_row();
            }
            inference.or_text().finish().unwrap().fields[0].kind
        };
        assert_eq!(kind(&["1", "-2"]), Type::Int64);
        assert_eq!(kind(&["1", "2.5"]), Type::Float64);
        assert_eq!(kind(&["true", "false"]), Type::Bool);
        assert_eq!(kind(&["007"]), Type::String);
        assert_eq!(kind(&["+1"]), Type::String);
        assert_eq!(kind(&["1", "true"]), Type::String);
        assert_eq!(kind(&["18446744073709551616"]), Type::String);
        assert_eq!(kind(&["9007199254740993", "0.5"]), Type::String);
        assert_eq!(kind(&["1.5", "1.000000000000000000001"]), Type::String);
        assert_eq!(kind(&["1", "NaN"]), Type::Float64);
        assert_eq!(kind(&["1", "NA"]), Type::Int64);
        assert_eq!(kind(&["x", "NA"]), Type::String);
        assert_eq!(kind(&["NA"]), Type::String);
        assert_eq!(kind(&["2024-06-21", "NULL"]), Type::Int32);
        assert_eq!(kind(&["2024-06-21", "2024-06-21 12:00:00"]), Type::TimestampMicros);
        assert_eq!(kind(&["2024-06-21", "2024-06-21T12:00:00Z"]), Type::String);
        assert_eq!(kind(&["12:00:00"]), Type::Int64);
        assert_eq!(kind(&["12:00:00", "1"]), Type::String);
        assert_eq!(kind(&["TRUE", "False"]), Type::Bool);
    }

    #[test]
    fn floats_keep_all_digits() {
        for exact in [
            "0.1",
            "-0.30000000000000004",
            "100000000000000000000.0",
            "1e22",
            "1E+5",
            "1.50e-7",
            "5e-324",
            "1.7976931348623157e308",
            "0e99999999999999999999",
            "-0.00000000000000000000",
            "0.000000000000000000001",
            "123456789012345.6",
            "0.10000000000000001",
            "1.000000000000000055511151231257827e-01",
            "2.99792458000000000e+08",
        ] {
            assert!(!is_rounded(exact), "{exact}");
        }
        for rounded in [
            "12345678901234567.89",
            "1.000000000000000000001",
            "1e-400",
            "1e400",
            "-1e400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "9007199254740993.0",
            "1.23e-323",
        ] {
            assert!(is_rounded(rounded), "{rounded}");
        }
    }
}
