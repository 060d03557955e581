//! Column builders.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tercet_core::escape;
use tercet_tatami::logical_type::{is_json, is_number};
use tercet_tatami::{Bitmap, Column, Field, Lists, LogicalType, Scalar, Strings, Type, Values};

use super::cells::{float64, int64};
use super::infer::{EXACT, is_rounded, parse_bool};
use super::json;
use super::moment::{MICROS_OF_DAY, Moment};
use super::stamp::{stamp, unit};
use super::token::Token;

/// How the values of a column are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueParser {
    /// By the type of the column.
    Plain,
    /// As base64, like the output of `cat`.
    Base64,
    /// By logical type: date, time, decimal.
    Logical(LogicalType),
    /// As a timestamp whose unit has this many nanoseconds; stored as microseconds.
    Stamp(LogicalType, i64),
    /// As dates or timestamps inferred from JSON strings: other values are rejected.
    Moment(MomentType),
    /// As the type inferred from a sample: values that would change the type are rejected.
    Inferred,
    /// As the JSON text of any value.
    Json,
    /// Any value is rejected: the type is not known yet.
    Unknown,
}

/// Dates and timestamps in JSON strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MomentType {
    Date,
    Local,
    Utc,
}

impl MomentType {
    /// The stored value of a string.
    #[inline]
    pub(super) fn parse(self, text: &[u8]) -> Option<i64> {
        match (self, Moment::parse(text)?) {
            (Self::Date, Moment::Date(days)) => Some(days.into()),
            (Self::Local, Moment::Date(days)) => Some(i64::from(days) * MICROS_OF_DAY),
            (Self::Local, Moment::Local(micros)) | (Self::Utc, Moment::Utc(micros)) => Some(micros),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Local | Self::Utc => "timestamp",
        }
    }
}

impl ValueParser {
    /// The parser of a column of JSONL whose type was inferred.
    pub(super) fn of_inferred(self) -> Self {
        match self {
            Self::Plain => Self::Inferred,
            Self::Logical(LogicalType::Date32) => Self::Moment(MomentType::Date),
            Self::Logical(LogicalType::LocalTimestamp(_))
            | Self::Stamp(LogicalType::LocalTimestamp(_), _) => Self::Moment(MomentType::Local),
            Self::Logical(LogicalType::Timestamp { .. }) | Self::Stamp(LogicalType::Timestamp { .. }, _) => {
                Self::Moment(MomentType::Utc)
            }
            parser => parser,
        }
    }

    /// The parsers of declared columns.
    pub(super) fn all(fields: &[Field], annotations: &[(String, String)]) -> Vec<Self> {
        let one = |field: &Field| match (
            Self::for_field(field, LogicalType::for_field(field, annotations)),
            unit(field, annotations),
        ) {
            (Self::Logical(logical_type), Some(nanos)) => Self::Stamp(logical_type, nanos),
            (parser, _) => parser,
        };
        fields.iter().map(one).collect()
    }

    fn for_field(field: &Field, logical_type: Option<LogicalType>) -> Self {
        match (field.scalar(), logical_type) {
            (_, Some(LogicalType::Utf8 | LogicalType::Enum)) => Self::Plain,
            (_, Some(LogicalType::Json)) => Self::Json,
            (_, Some(logical_type)) => Self::Logical(logical_type),
            (Type::Bytes | Type::BlobRef, None) => Self::Base64,
            _ => Self::Plain,
        }
    }
}

/// A column builder.
#[derive(Debug)]
pub(super) struct Builder {
    field: Field,
    parser: ValueParser,
    values: Values,
    validity: Option<Bitmap>,
    /// Bytes of strings and list elements.
    bytes: usize,
}

impl Builder {
    pub(super) fn new(field: Field, parser: ValueParser) -> Self {
        let values = Values::empty(&field);
        Self { field, parser, values, validity: None, bytes: 0 }
    }

    pub(super) fn name(&self) -> &str {
        &self.field.name
    }

    /// Adds a row.
    pub(super) fn push(&mut self, token: Token<'_>) -> Result<(), String> {
        let row = self.values.len();
        let before = self.bytes;
        // In a non-nullable column, an empty CSV field is an empty string.
        let token = match token {
            Token::Null if !self.field.nullable => {
                return Err("null in a non-nullable column".into());
            }
            token => token,
        };
        let is_present = token != Token::Null;
        self.bytes = before + push(&mut self.values, self.field.scalar(), self.parser, token)?;
        match &mut self.validity {
            Some(validity) => validity.push(is_present),
            None if is_present => {}
            None => {
                let mut validity = Bitmap::filled(row, true);
                validity.push(false);
                self.validity = Some(validity);
            }
        }
        Ok(())
    }

    /// Adds a null row in place of one that was rejected, if it was not added.
    pub(super) fn pad_to(&mut self, rows: usize) {
        while self.values.len() < rows {
            let row = self.values.len();
            match &mut self.values {
                // Elements of a rejected list belong to the row.
                Values::List(lists) => lists.ends.push(lists.elements.len() as u64),
                values => values.push_zeros(1),
            }
            self.validity.get_or_insert_with(|| Bitmap::filled(row, true)).push(false);
        }
    }

    /// Whether a row may be null.
    pub(super) fn is_nullable(&self) -> bool {
        self.field.nullable
    }

    /// Whether the empty string is a valid value.
    pub(super) fn holds_text(&self) -> bool {
        matches!(self.field.kind, Type::String | Type::Bytes | Type::BlobRef)
    }

    /// Takes the rows built so far.
    pub(super) fn take(&mut self) -> Column {
        self.bytes = 0;
        let values = std::mem::replace(&mut self.values, Values::empty(&self.field));
        Column { values, validity: self.validity.take() }
    }
}

/// Adds a value, zero for null; returns its approximate size.
fn push(values: &mut Values, kind: Type, parser: ValueParser, token: Token<'_>) -> Result<usize, String> {
    match (parser, &mut *values) {
        (ValueParser::Unknown, values) if token == Token::Null => {
            values.push_zeros(1);
            return Ok(8);
        }
        (ValueParser::Unknown, _) => return Err(format!("{} in a column of nulls", display(&token))),
        (ValueParser::Json, Values::Bytes(v)) => return json_text(v, &token),
        (ValueParser::Moment(moment), values) => return push_moment(values, moment, &token),
        (_, Values::List(_)) => {}
        (ValueParser::Logical(logical_type), values) => {
            return push_logical(values, kind, logical_type, &token);
        }
        (ValueParser::Stamp(logical_type, unit), Values::Int64(v)) => {
            v.push(stamp(kind, logical_type, unit, &token)?);
            return Ok(8);
        }
        _ => {}
    }
    // Most numbers of inferred columns.
    if let (ValueParser::Inferred, Token::Number(text)) = (parser, &token) {
        match values {
            Values::Int64(v) if let Some(value) = int64(text.as_bytes()) => {
                v.push(value);
                return Ok(8);
            }
            Values::Float64(v) if let Some(value) = float64(text.as_bytes()) => {
                v.push(value);
                return Ok(8);
            }
            _ => {}
        }
    }
    match values {
        Values::Bool(v) => v.push(match token {
            Token::Bool(value) => value,
            Token::Null => false,
            Token::Loose(text) => parse_bool(text).ok_or_else(|| misfit(&token, kind))?,
            token => return Err(misfit(&token, kind)),
        }),
        Values::Int8(v) => v.push(integer(&token, kind)?),
        Values::Int16(v) => v.push(integer(&token, kind)?),
        Values::Int32(v) => v.push(integer(&token, kind)?),
        Values::Int64(v) if kind == Type::TimestampMicros => v.push(time(&token)?),
        Values::Int64(_) if parser == ValueParser::Inferred && token == Token::Number("-0") => {
            return Err(misfit(&token, kind));
        }
        Values::Int64(v) => v.push(integer(&token, kind)?),
        Values::UInt8(v) => v.push(integer(&token, kind)?),
        Values::UInt16(v) => v.push(integer(&token, kind)?),
        Values::UInt32(v) => v.push(integer(&token, kind)?),
        Values::UInt64(v) => v.push(integer(&token, kind)?),
        Values::Float32(v) => v.push(float(&token, kind, f32::is_finite)?),
        Values::Float64(v) => {
            if parser == ValueParser::Inferred && is_inexact(&token) {
                return Err(misfit(&token, kind));
            }
            v.push(float(&token, kind, f64::is_finite)?);
        }
        Values::Bytes(v) => return text(v, kind, parser, &token),
        Values::List(lists) => return list(lists, kind, parser, token),
    }
    Ok(8)
}

/// Adds a date or timestamp of a JSON string.
fn push_moment(values: &mut Values, moment: MomentType, token: &Token<'_>) -> Result<usize, String> {
    let wrong = || format!("{} is not a valid {}", display(token), moment.name());
    let value = match token {
        Token::Null => 0,
        Token::Text(text) => moment.parse(text.as_bytes()).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    match values {
        Values::Int32(v) => v.push(i32::try_from(value).map_err(|_| wrong())?),
        Values::Int64(v) => v.push(value),
        _ => return Err(wrong()),
    }
    Ok(8)
}

/// Adds a value of a logical type.
fn push_logical(
    values: &mut Values,
    kind: Type,
    logical_type: LogicalType,
    token: &Token<'_>,
) -> Result<usize, String> {
    let text: &str = match token {
        Token::Null => {
            values.push_zeros(1);
            return Ok(8);
        }
        Token::Number(text) | Token::Loose(text) => text,
        Token::Text(text) => text,
        token => return Err(format!("{} is not {logical_type}", display(token))),
    };
    let wrong =
        || format!("{} is not a valid {logical_type}, like {}", display(token), logical_type.example());
    match (values, logical_type.read(kind, text).ok_or_else(wrong)?) {
        (Values::Int32(v), Scalar::Int32(value)) => v.push(value),
        (Values::Int64(v), Scalar::Int64(value)) => v.push(value),
        (Values::Bytes(v), Scalar::Bytes(value)) => {
            v.push(&value);
            return Ok(value.len() + 16);
        }
        _ => return Err(wrong()),
    }
    Ok(8)
}

fn list(lists: &mut Lists, kind: Type, parser: ValueParser, token: Token<'_>) -> Result<usize, String> {
    let mut bytes = 8;
    let elements = match token {
        Token::Null => Vec::new(),
        Token::List(elements, _) => elements,
        // CSV fields hold lists as JSON.
        Token::Loose(text) => json::list(text)
            .map_err(|wrong| format!("{} is not a list: {}", display(&token), wrong.reason))?,
        token => return Err(format!("{} is not a list", display(&token))),
    };
    for token in elements {
        let at = lists.elements.len();
        let is_present = token != Token::Null;
        bytes += push(&mut lists.elements.values, kind, parser, token)?;
        match &mut lists.elements.validity {
            Some(validity) => validity.push(is_present),
            None if is_present => {}
            None => {
                let mut validity = Bitmap::filled(at, true);
                validity.push(false);
                lists.elements.validity = Some(validity);
            }
        }
    }
    lists.ends.push(lists.elements.len() as u64);
    Ok(bytes)
}

fn integer<T: std::str::FromStr + Default>(token: &Token<'_>, kind: Type) -> Result<T, String> {
    match token {
        Token::Null => Ok(T::default()),
        Token::Number(text) => text.parse().map_err(|_| misfit(token, kind)),
        Token::Loose(text) if is_number(text) => text.parse().map_err(|_| misfit(token, kind)),
        token => Err(misfit(token, kind)),
    }
}

fn float<T: std::str::FromStr + Default + Copy>(
    token: &Token<'_>,
    kind: Type,
    is_finite: impl Fn(T) -> bool,
) -> Result<T, String> {
    let text = match token {
        Token::Null => return Ok(T::default()),
        Token::Number(text) => *text,
        Token::Loose(text) if is_number(text) => *text,
        // Spellings of other programs.
        Token::Loose(text @ ("NaN" | "nan" | "inf" | "-inf" | "Inf" | "-Inf" | "Infinity" | "-Infinity")) => {
            return text.parse().map_err(|_| misfit(token, kind));
        }
        token => return Err(misfit(token, kind)),
    };
    let value: T = text.parse().map_err(|_| misfit(token, kind))?;
    if is_finite(value) { Ok(value) } else { Err(misfit(token, kind)) }
}

/// Parses a timestamp: microseconds since 1970, or RFC 3339.
fn time(token: &Token<'_>) -> Result<i64, String> {
    let text: &str = match token {
        Token::Text(text) => text,
        Token::Loose(text) if !is_number(text) => text,
        token => return integer(token, Type::TimestampMicros),
    };
    // A quoted number is not a timestamp.
    let read = (!is_number(text)).then(|| LogicalType::UTC.read(Type::TimestampMicros, text)).flatten();
    match read {
        Some(Scalar::Int64(micros)) => Ok(micros),
        _ => Err(format!(
            "{} is not a timestamp; expected 2024-06-21T12:00:00Z with at most microseconds, or microseconds since 1970",
            display(token)
        )),
    }
}

fn text(strings: &mut Strings, kind: Type, parser: ValueParser, token: &Token<'_>) -> Result<usize, String> {
    let text: &str = match token {
        Token::Null => "",
        Token::Text(text) => text,
        Token::Loose(text) => text,
        token => return Err(misfit(token, kind)),
    };
    if u32::try_from(text.len()).is_err() {
        return Err("value exceeds 4 GiB".into());
    }
    match parser {
        ValueParser::Base64 => {
            let bytes =
                STANDARD.decode(text).map_err(|_| format!("{} is not valid base64", display(token)))?;
            strings.push(&bytes);
        }
        _ => strings.push(text.as_bytes()),
    }
    Ok(text.len() + 16)
}

/// Adds the JSON text of a value.
fn json_text(strings: &mut Strings, token: &Token<'_>) -> Result<usize, String> {
    let text: Cow<'_, str> = match token {
        Token::Null => "".into(),
        Token::Bool(value) => value.to_string().into(),
        // A field of CSV.
        Token::Loose(text) if !is_json(text.as_bytes()) => {
            return Err(format!("{} is not valid JSON", display(token)));
        }
        Token::Number(text) | Token::Loose(text) | Token::List(_, text) | Token::Json(text) => (*text).into(),
        Token::Text(text) => serde_json::Value::from(&**text).to_string().into(),
    };
    if u32::try_from(text.len()).is_err() {
        return Err("value exceeds 4 GiB".into());
    }
    strings.push(text.as_bytes());
    Ok(text.len() + 16)
}

/// Whether float64 does not hold a JSON number exactly.
fn is_inexact(token: &Token<'_>) -> bool {
    match token {
        Token::Number(text) if text.contains(['.', 'e', 'E']) => is_rounded(text),
        Token::Number(text) => {
            text.trim_start_matches('-').parse::<u64>().map_or(true, |number| number > EXACT)
        }
        _ => false,
    }
}

fn misfit(token: &Token<'_>, kind: Type) -> String {
    format!("{} is not a valid {kind}", display(token))
}

/// A value for messages, truncated.
pub(super) fn display(token: &Token<'_>) -> String {
    const CHARS: usize = 40;
    let text: &str = match token {
        Token::Bool(value) => return value.to_string(),
        Token::Number(text) | Token::Loose(text) => text,
        Token::Text(text) => text,
        Token::Null | Token::List(..) | Token::Json(_) => return token.kind().to_owned(),
    };
    let cut: String = text.chars().take(CHARS).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("`{}{dots}`", escape::name(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(field: Field, tokens: Vec<Token<'_>>) -> Result<Column, String> {
        let parser = ValueParser::for_field(&field, None);
        let mut builder = Builder::new(field, parser);
        tokens.into_iter().try_for_each(|token| builder.push(token))?;
        Ok(builder.take())
    }

    #[test]
    fn invalid_values_are_rejected() {
        let one = |kind, token| built(Field::new("x", kind), vec![token]).map(|column| column.values);
        assert_eq!(one(Type::Int8, Token::Number("-128")), Ok(Values::Int8(vec![-128])));
        assert!(one(Type::Int8, Token::Number("128")).is_err());
        assert!(one(Type::Int64, Token::Number("1.0")).is_err());
        assert!(one(Type::Int64, Token::Text("1".into())).is_err());
        assert!(one(Type::UInt64, Token::Number("-1")).is_err());
        assert!(one(Type::Int64, Token::Loose("+1")).is_err());
        assert_eq!(one(Type::Float32, Token::Number("16777217")), Ok(Values::Float32(vec![16_777_216.0])));
        assert!(one(Type::Float32, Token::Number("1e39")).is_err());
        assert!(one(Type::Float64, Token::Number("1e400")).is_err());
        assert_eq!(one(Type::Float64, Token::Loose("-inf")), Ok(Values::Float64(vec![f64::NEG_INFINITY])));
        let time = one(Type::TimestampMicros, Token::Text("1970-01-01T00:00:01.5+00:00".into()));
        assert_eq!(time, Ok(Values::Int64(vec![1_500_000])));
        assert!(one(Type::TimestampMicros, Token::Text("1970-01-01T00:00:00.0000001Z".into())).is_err());
        assert!(one(Type::TimestampMicros, Token::Text("yesterday".into())).is_err());
        assert!(one(Type::TimestampMicros, Token::Text("2016-12-31T12:00:60Z".into())).is_err());
        assert!(one(Type::TimestampMicros, Token::Text("1".into())).is_err());
        let last = one(Type::TimestampMicros, Token::Text("9999-12-31T23:59:59Z".into()));
        assert_eq!(last, Ok(Values::Int64(vec![253_402_300_799_000_000])));
        let bytes = one(Type::Bytes, Token::Text("AAE=".into())).unwrap();
        assert_eq!(bytes, Values::Bytes([[0u8, 1]].iter().collect()));
        assert!(one(Type::Bytes, Token::Text("AAE".into())).is_err());
        assert!(one(Type::Bool, Token::Loose("yes")).is_err());
        assert!(one(Type::Int8, Token::Null).is_err());
    }

    #[test]
    fn nulls_are_recorded_in_rows_and_elements() {
        let field = Field::list("l", Type::Int8).with_nulls();
        let tokens = vec![
            Token::List(vec![Token::Number("1"), Token::Null], ""),
            Token::Null,
            Token::List(vec![Token::Number("2")], ""),
        ];
        let column = built(field, tokens).unwrap();
        assert_eq!((column.nulls(), column.is_present(1)), (1, false));
        let Values::List(lists) = column.values else { panic!("lists were expected") };
        assert_eq!((lists.ends, lists.elements.nulls()), (vec![2, 2, 3], 1));
    }
}
