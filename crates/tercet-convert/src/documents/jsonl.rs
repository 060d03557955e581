//! JSONL documents.

use std::io::{BufRead as _, BufReader, Read as _};

use serde_json::{Map, Value};
use tercet_core::escape;

use super::error::ErrorKind;
use super::read::Reader;
use super::{MAX_BYTES, Stopped};

/// Reads the documents of a file.
pub(super) fn read<E>(reader: &mut Reader<'_, E>) -> Result<(), Stopped<E>> {
    let mut lines = BufReader::with_capacity(1 << 18, reader.open()?);
    let mut line = Vec::new();
    let (names, columns) = (reader.fields(), reader.columns());
    let mut missing = names.given();
    let (mut documents, mut has_body) = (0, false);
    for number in 1u64.. {
        line.clear();
        let mut limited = lines.by_ref().take(MAX_BYTES);
        let len =
            limited.read_until(b'\n', &mut line).map_err(|error| reader.error(ErrorKind::Read(error)))?;
        if len == 0 {
            break;
        }
        if len as u64 == MAX_BYTES && !line.ends_with(b"\n") {
            return Err(reader.error(ErrorKind::TooLarge { line: Some(number) }).into());
        }
        reader.advance(len as u64)?;
        // Byte order mark.
        let bare = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
        if bare.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object: Map<String, Value> = match serde_json::from_slice(bare) {
            Ok(object) => object,
            Err(error) => {
                reader.problem(syntax_error(number, &error))?;
                continue;
            }
        };
        missing.retain(|name| !object.contains_key(*name));
        has_body |= names.has_body(|name| object.contains_key(name));
        match names.document(|name| text_of(object.get(name), name)) {
            Ok(mut document) => {
                documents += 1;
                document.values = columns.of_object(&object, names);
                reader.add(&document)?;
            }
            Err(reason) => {
                reader.problem(ErrorKind::Document { unit: "line", number, reason: reason.into() })?;
            }
        }
    }
    if let Some(name) = missing.first().filter(|_| documents > 0) {
        let reason = format!("no line has field `{}`", escape::name(name));
        return Err(reader.error(ErrorKind::Fields(reason.into())).into());
    }
    reader.no_text(if has_body { 0 } else { documents });
    Ok(())
}

fn syntax_error(line: u64, error: &serde_json::Error) -> ErrorKind {
    let (at, column, message) = (error.line(), error.column(), error.to_string());
    let reason = message.strip_suffix(&format!(" at line {at} column {column}")).unwrap_or(&message);
    let reason = format!("invalid JSON object: {reason}").into();
    ErrorKind::Malformed { line, column: Some(column as u64), reason }
}

/// A field as text, if present.
fn text_of(value: Option<&Value>, name: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) if is_rounded(number) => {
            Err(format!("field `{}`: number is not exact as float64; quote it", escape::name(name)))
        }
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(format!("field `{}`: expected a string", escape::name(name))),
    }
}

/// Whether a number may have lost digits: two IDs could collide.
fn is_rounded(number: &serde_json::Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.is_f64() && number.as_f64().is_none_or(|value| value.abs() >= EXACT)
}
