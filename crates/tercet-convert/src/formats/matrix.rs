//! Matrices in text files: rows of numbers, separated by commas, semicolons, tabs or spaces.
//!
//! A first row of names is kept as the attribute `column_names`. Empty fields are missing: NaN.

use std::path::Path;
use std::sync::Arc;

use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, DType, Limits, Span};

use crate::arrays::dims::DimTable;
use crate::arrays::source::{check_box, malformed};
use crate::arrays::{ArraySource, Attr, AttrData, Header, Kind, Numbers, Variable};
use crate::{Error, ErrorKind};

/// A matrix in memory.
#[derive(Debug)]
pub(crate) struct Matrix {
    name: Arc<str>,
    header: Header,
    bytes: Vec<u8>,
}

/// How the fields of a line are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Byte(char),
    Spaces,
}

const SEPARATORS: [Separator; 4] =
    [Separator::Byte('\t'), Separator::Byte(';'), Separator::Byte(','), Separator::Spaces];

impl Separator {
    fn fields(self, line: &str) -> impl Iterator<Item = &str> {
        let (byte, spaces) = match self {
            Self::Byte(byte) => (Some(line.split(byte)), None),
            Self::Spaces => (None, Some(line.split_whitespace())),
        };
        byte.into_iter()
            .flatten()
            .chain(spaces.into_iter().flatten())
            .map(|field| field.trim().trim_matches('"'))
    }
}

fn is_missing(field: &str) -> bool {
    matches!(field, "" | "NA" | "N/A" | "null" | "-")
}

/// A number, with a decimal comma where fields are not separated by commas.
fn number(field: &str, separator: Separator) -> Option<f64> {
    if is_missing(field) {
        return Some(f64::NAN);
    }
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let is_named =
        matches!(field.to_ascii_lowercase().trim_start_matches(['+', '-']), "nan" | "inf" | "infinity");
    if is_plain(field) || is_named {
        return field.parse().ok();
    }
    let with_point = field.replacen(',', ".", 1);
    (separator != Separator::Byte(',') && is_plain(&with_point)).then(|| with_point.parse().ok()).flatten()
}

/// The separator with which a line is numbers only, the one with the most fields first.
fn separator(line: &str) -> Option<Separator> {
    let fits = |separator: &Separator| {
        let mut fields = separator.fields(line).peekable();
        fields.peek().is_some() && fields.all(|field| number(field, *separator).is_some())
    };
    SEPARATORS.into_iter().filter(fits).max_by_key(|separator| separator.fields(line).count())
}

/// Lines with content; comments are lines that start with `#`.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim_end_matches('\r')));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Whether a file starts with a line of numbers, after one of names at most.
pub(crate) fn is_matrix(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let is_text = !text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r'));
    let has_numbers =
        |line: &str| line.bytes().any(|byte| byte.is_ascii_digit()) && separator(line).is_some();
    let mut first = lines(text).map(|(_, line)| line).take(2);
    match (first.next(), first.next()) {
        (Some(first), _) if is_text && has_numbers(first) => true,
        // A line of names has as many fields.
        (Some(names), Some(line))
            if is_text && has_numbers(line) && text.ends_with('\n') | (head.len() >= 1024) =>
        {
            separator(line).is_some_and(|found| found.fields(names).count() == found.fields(line).count())
        }
        _ => false,
    }
}

impl Matrix {
    /// Reads a file.
    pub(crate) fn open(source: &dyn ByteSource, limits: Limits) -> Result<Self, Error> {
        let name = source.name().clone();
        let error = |kind: ErrorKind| Error::new(name.clone(), kind);
        check_limit("a text file", source.len().saturating_mul(8), limits.chunk_bytes)
            .map_err(|limit| error(limit.into()))?;
        let bytes = source.read_at(Span::first(source.len())).map_err(|failure| error(failure.into()))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed(&name, "the file is not UTF-8 text"))?;
        let mut rows = lines(text).peekable();
        let (_, first) = rows.peek().copied().ok_or_else(|| malformed(&name, "the file has no line"))?;
        let mut names = None;
        let found = if let Some(found) = separator(first) {
            found
        } else {
            rows.next();
            let (_, line) =
                rows.peek().copied().ok_or_else(|| malformed(&name, "the file has no line of numbers"))?;
            let found = separator(line).ok_or_else(|| malformed(&name, "the file has no line of numbers"))?;
            names = Some(found.fields(first).map(str::to_owned).collect::<Vec<_>>());
            found
        };
        let (mut values, mut height, mut width) = (Vec::new(), 0u64, names.as_ref().map(Vec::len));
        // Integers stay integers; those that do not fit, fractions and missing values make floats.
        let mut integers: Option<Vec<i64>> = Some(Vec::new());
        for (line, row) in rows {
            let before = values.len();
            for (column, field) in found.fields(row).enumerate() {
                let value = number(field, found).ok_or_else(|| {
                    malformed(&name, format!("line {line}, column {}: `{field}` is not a number", column + 1))
                })?;
                values.push(value);
                match (&mut integers, field.parse::<i64>()) {
                    (Some(list), Ok(integer)) => list.push(integer),
                    _ => integers = None,
                }
            }
            let count = values.len() - before;
            let expected = *width.get_or_insert(count);
            if count != expected {
                return Err(malformed(
                    &name,
                    format!("line {line} has {count} fields instead of {expected}"),
                ));
            }
            height += 1;
        }
        let stem = Path::new(&*name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let variable_name = stem.filter(|stem| !stem.is_empty()).unwrap_or_else(|| "data".to_owned());
        // One column is a list of numbers, as for NumPy.
        let shape = match width {
            Some(1) => vec![height],
            width => vec![height, width.unwrap_or(0) as u64],
        };
        let mut dims = DimTable::new();
        let dim_names = dims.resolve(&variable_name, &[Some("row"), Some("column")], &shape);
        let has_missing = values.iter().any(|value| value.is_nan());
        let (dtype, bytes) = match integers {
            Some(list) => (DType::I64, list.iter().flat_map(|value| value.to_le_bytes()).collect()),
            None => (DType::F64, values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        };
        let mut attrs: Vec<Attr> =
            names.into_iter().map(|names| Attr::new("column_names", AttrData::Strings(names))).collect();
        if has_missing {
            let nan = Numbers::scalar(DType::F64, f64::NAN.to_le_bytes().to_vec());
            attrs.push(Attr::new("_FillValue", AttrData::Numbers(nan)));
        }
        let variable = Variable {
            name: variable_name,
            kind: Kind::Number(dtype),
            dims: dim_names,
            shape,
            chunks: None,
            attrs,
        };
        let header = Header {
            format: "text matrix".to_owned(),
            dims: dims.into_dims(|_| false),
            variables: vec![variable],
            ..Header::default()
        };
        Ok(Self { name, header, bytes })
    }
}

impl ArraySource for Matrix {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, _: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[0];
        check_box(&self.name, &item.shape, 8, (start, extents), out.len())?;
        let fit = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let column = |list: &[u64], whole: u64| fit(list.get(1).copied().unwrap_or(whole)) * 8;
        let (width, from, len) = (column(&item.shape, 1), column(start, 0), column(extents, 1));
        if len == 0 {
            return Ok(());
        }
        for (row, slot) in (fit(start[0])..).zip(out.chunks_exact_mut(len)) {
            let from = row * width + from;
            slot.copy_from_slice(&self.bytes[from..from + len]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;

    use super::*;

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn open(text: &str) -> Result<(Kind, Vec<u64>, Vec<f64>), String> {
        assert!(is_matrix(text.as_bytes()), "{text}");
        let matrix = Matrix::open(&Memory::new("m.csv", text.as_bytes().to_vec()), Limits::default())
            .map_err(|error| error.to_string())?;
        let item = &matrix.header.variables[0];
        let values = matrix.bytes.as_chunks::<8>().0.iter();
        let values = match item.dtype() {
            Some(DType::I64) => values.map(|eight| i64::from_le_bytes(*eight) as f64).collect(),
            _ => values.map(|eight| f64::from_le_bytes(*eight)).collect(),
        };
        Ok((item.kind, item.shape.clone(), values))
    }

    #[test]
    fn separators_and_types_are_detected() {
        let integers = Kind::Number(DType::I64);
        assert_eq!(open("1,2\n3,4\n"), Ok((integers, vec![2, 2], vec![1.0, 2.0, 3.0, 4.0])));
        assert_eq!(
            open("# a\n1 2 3\r\n\r\n4   5 6"),
            Ok((integers, vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
        );
        assert_eq!(open("7\n8\n9\n"), Ok((integers, vec![3], vec![7.0, 8.0, 9.0])));
        let floats = Kind::Number(DType::F64);
        assert_eq!(open("a;b\n1,5;2\n"), Ok((floats, vec![1, 2], vec![1.5, 2.0])));
        assert_eq!(
            open("1.5\t-2e3\n\"3\"\tinf\n"),
            Ok((floats, vec![2, 2], vec![1.5, -2000.0, 3.0, f64::INFINITY]))
        );
        let (_, shape, values) = open("1,,3\n4,5,6\n").unwrap();
        assert!(shape == [2, 3] && values[1].is_nan());
        assert!(open("1,2\n3\n").unwrap_err().contains("line 2 has 1 fields instead of 2"));
        assert!(open("1,2\n3,x\n").unwrap_err().contains("line 2, column 2: `x` is not a number"));
        for text in ["", "\n", "a,b\nc,d\n", "{\"a\": 1}\n", "hello\n1\n2,3", "\u{1}1,2\n"] {
            assert!(!is_matrix(text.as_bytes()), "{text:?}");
        }
    }
}
