//! The query document: command line, file or standard input.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use tercet::Format;
use tercet::core::{Class, escape};
use tercet::tet::{Query, QueryError, QueryErrorKind, Syntax};

use crate::failure::Failure;
use crate::input::argument;
use crate::persona::command_for;
use crate::ui::{DIM, Ui, exit_at_once_if_interrupted, paint};

/// Maximum size of a query document.
const MAX_BYTES: u64 = 1 << 20;

/// The text of a query and its origin.
pub(in crate::cmd::tet) struct Document {
    text: String,
    syntax: Syntax,
    /// The file name, unless the text is a command-line argument.
    name: Option<String>,
}

impl Document {
    /// A JSON document from the history.
    pub(in crate::cmd::tet) fn json(name: String, text: String) -> Self {
        Self { text, syntax: Syntax::Json, name: Some(name) }
    }

    /// Reads a file or standard input, or uses the argument itself.
    pub(super) fn read(arg: Option<&OsStr>, out: &mut Ui) -> Result<Self, Failure> {
        let Some(arg) = arg.filter(|arg| *arg != "-") else {
            if io::stdin().is_terminal() {
                out.note(paint(DIM, "reading the query from the terminal; Ctrl-D ends it"))?;
            }
            return Self::from_reader("standard input", Path::new(""), io::stdin().lock());
        };
        let path = Path::new(arg);
        if is_path(path) {
            let name = path.to_string_lossy();
            // A pipe, as in `tet query <(…)`, does not support positional reads.
            #[expect(clippy::disallowed_methods, reason = "pipes are allowed")]
            let opened = exit_at_once_if_interrupted(|| std::fs::File::open(path));
            let message = |error| Failure::io(&format!("{}: cannot open", escape::name(&name)), &error);
            return Self::from_reader(&name, path, opened.map_err(message)?);
        }
        match arg.to_str() {
            Some(text) => Ok(Self { text: text.to_owned(), syntax: Syntax::guess(text), name: None }),
            None => Err(Failure::request("the query is neither a file name nor UTF-8 text")),
        }
    }

    fn from_reader(name: &str, path: &Path, reader: impl Read) -> Result<Self, Failure> {
        let shown = escape::name(name);
        let mut bytes = Vec::new();
        let read = exit_at_once_if_interrupted(|| reader.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|error| Failure::io(&format!("{shown}: cannot read"), &error))?;
        if let Some(format) = tercet::detect(&bytes) {
            let failure = Failure::request(format!("{shown}: is a {format} file, not a query"));
            return Err(match format {
                Format::Tet => failure.with_hint(format!(
                    "give it with `-t`: `tet query '{{\"dataset\": \"NAME\", \"mean\": []}}' -t {} -x`",
                    argument(name)
                )),
                _ => failure.with_hint(format!("use `{}`", command_for(format, name))),
            });
        }
        if bytes.len() as u64 > MAX_BYTES {
            let message = format!("{shown}: exceeds the limit of {MAX_BYTES} bytes for a query");
            return Err(Failure::new(Class::Request, message));
        }
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::request(format!("{shown}: invalid UTF-8 at byte {at}"))
        })?;
        // Byte order mark.
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let syntax = syntax_of(path).unwrap_or_else(|| Syntax::guess(&text));
        Ok(Self { text, syntax, name: Some(name.to_owned()) })
    }

    /// Parses the query.
    pub(super) fn parse(&self) -> Result<Query, Failure> {
        Query::parse(&self.text, self.syntax).map_err(|wrong| {
            let mut failure = Failure::from_error(&wrong);
            if let (Failure::Error(report), Some(name)) = (&mut failure, &self.name) {
                report.message.insert_str(0, &format!("{}: ", escape::name(name)));
            }
            self.point_at(&wrong, failure)
        })
    }

    /// Adds the excerpt that an error is about.
    pub(super) fn point_at(&self, wrong: &QueryError, failure: Failure) -> Failure {
        // A text that is too long was not parsed.
        match wrong.reason() {
            QueryErrorKind::TooLong { .. } => failure,
            _ => failure.with_excerpt(&self.text, &wrong.at()),
        }
    }
}

/// Whether an argument is a path: the file exists, or the argument cannot be a document.
fn is_path(path: &Path) -> bool {
    let is_text = |text: &str| text.contains(['{', '=', '\n', '"']);
    std::fs::metadata(path).is_ok() || (syntax_of(path).is_some() && !path.to_str().is_some_and(is_text))
}

fn syntax_of(path: &Path) -> Option<Syntax> {
    let extension = path.extension()?;
    if extension.eq_ignore_ascii_case("json") {
        return Some(Syntax::Json);
    }
    extension.eq_ignore_ascii_case("toml").then_some(Syntax::Toml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_documents_are_distinguished() {
        for path in ["missing.json", "missing/query.TOML", "."] {
            assert!(is_path(Path::new(path)), "{path}");
        }
        for text in
            ["", "{}", "{\"dataset\":\"a.json", "dataset=\"x\"\nspill=\"y.toml", "dataset", "a\0b.json="]
        {
            assert!(!is_path(Path::new(text)), "{text}");
        }
    }

    #[test]
    fn long_documents_are_rejected_early() {
        let read = |text: &[u8], name: &str| Document::from_reader(name, Path::new(name), text);
        let long = vec![b' '; 1 << 20];
        assert!(read(&long, "a").is_ok());
        assert!(Document::from_reader("a", Path::new("a"), io::repeat(b' ')).is_err());
        assert!(read(b"\xff", "a").is_err());
        assert_eq!(read(b"", "a.json").unwrap().syntax, Syntax::Json);
        assert_eq!(read(b"{}", "a.toml").unwrap().syntax, Syntax::Toml);
        assert_eq!(read(b" {}", "a").unwrap().syntax, Syntax::Json);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_query() {
        let text = "\u{feff}{\"dataset\": \"x\"}";
        let read = Document::from_reader("a", Path::new("a"), text.as_bytes()).unwrap();
        assert_eq!((read.syntax, read.text.as_str()), (Syntax::Json, &text[3..]));
        assert!(read.parse().is_ok());
    }
}
