//! JSON output whose strings have no character that a terminal would act on.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use tercet::core::escape;

use crate::failure::Failure;

/// Writes a value with indentation.
pub(super) fn write_pretty(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    write(out, value, PrettyFormatter::new())
}

/// Writes a value on one line.
pub(super) fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    write(out, value, CompactFormatter)
}

fn write(out: &mut impl Write, value: &impl Serialize, layout: impl Formatter) -> Result<(), Failure> {
    let mut serializer = Serializer::with_formatter(out, Escaped(layout));
    value.serialize(&mut serializer).map_err(|error| match error.io_error_kind() {
        Some(_) => Failure::output(&io::Error::from(error)),
        None => Failure::request(format!("cannot be written as JSON: {error}")),
    })
}

/// A layout of JSON with escaped strings.
struct Escaped<F>(F);

/// Passes calls on.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $argument: $type)*) -> io::Result<()> {
            self.0.$name(out $(, $argument)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Escaped<F> {
    pass_on! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        out.write_all(escape::json(fragment).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_and_the_rest_is_unchanged() {
        let value = serde_json::json!({"a\u{9b}b": ["x\n\u{202e}", 1.5, null, {}, []], "é": {"f": true}});
        let mut text = Vec::new();
        write_pretty(&mut text, &value).unwrap();
        let expected = escape::json(&serde_json::to_string_pretty(&value).unwrap()).into_owned();
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        let mut line = Vec::new();
        write_line(&mut line, &value).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line, escape::json(&serde_json::to_string(&value).unwrap()));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }
}
