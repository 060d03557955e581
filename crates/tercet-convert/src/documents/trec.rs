//! TREC documents: `<DOC>` … `</DOC>` with an ID in `<DOCNO>`.

use std::io::{BufRead as _, BufReader};

use super::charset::decode_text;
use super::error::ErrorKind;
use super::html::html_text;
use super::read::{Encoded, Reader};
use super::{Document, MAX_BYTES, Stopped};

/// Reads the documents of a file.
pub(super) fn read<E>(reader: &mut Reader<'_, E>) -> Result<(), Stopped<E>> {
    let mut input = BufReader::with_capacity(1 << 18, reader.open()?);
    let mut scanner = Scanner::default();
    let mut encoded = Encoded::default();
    loop {
        let chunk = input.fill_buf().map_err(|error| reader.error(ErrorKind::Read(error)))?;
        let len = chunk.len();
        let mut each = |text: &[u8], line: u64| {
            let decoded = decode_text(text.to_vec());
            let found = Encoded::from(&decoded);
            encoded.has_errors |= found.has_errors;
            encoded.guessed = encoded.guessed.or(found.guessed);
            if let Some(document) = document(&decoded.text) {
                return reader.add(&document);
            }
            let reason = "document without <DOCNO>".into();
            Ok(reader.problem(ErrorKind::Malformed { line, column: None, reason })?)
        };
        let scanned = if len == 0 { scanner.end() } else { scanner.feed(chunk, &mut each) };
        match scanned {
            Ok(()) => {}
            Err(Invalid::Consumer(stopped)) => return Err(stopped),
            Err(Invalid::TooLarge(line)) => {
                return Err(reader.error(ErrorKind::TooLarge { line: Some(line) }).into());
            }
            Err(Invalid::Structure(line, reason)) => {
                let reason = reason.into();
                return Err(reader.error(ErrorKind::Malformed { line, column: None, reason }).into());
            }
        }
        if len == 0 {
            reader.note_encoding(&encoded);
            return Ok(());
        }
        input.consume(len);
        reader.advance(len as u64)?;
    }
}

/// Why the scan ended.
enum Invalid<S> {
    /// A line and the reason.
    Structure(u64, &'static str),
    /// The line of a document that is too long.
    TooLarge(u64),
    /// The function that takes the documents stopped.
    Consumer(S),
}

const NO_END: &str = "unterminated document";
const NO_DOCUMENT: &str = "expected `<DOC>`";

/// Called with a document and its first line.
type Each<'a, S> = dyn FnMut(&[u8], u64) -> Result<(), S> + 'a;

/// Finds documents in a stream of bytes.
#[derive(Default)]
struct Scanner {
    /// Buffered bytes of the open document or of an incomplete tag.
    bytes: Vec<u8>,
    /// Scan position in the buffer.
    at: usize,
    /// Position and count of the line counter.
    counted: usize,
    breaks: u64,
    /// The first line of the open document.
    open: Option<u64>,
    documents: u64,
    is_started: bool,
}

/// The tag at a `<`.
enum Seen {
    Other,
    /// More bytes are needed.
    Short,
    /// `<DOC>` and its length.
    Start(usize),
    /// `</DOC>` and its length.
    End(usize),
}

impl Scanner {
    fn feed<S>(&mut self, chunk: &[u8], each: &mut Each<'_, S>) -> Result<(), Invalid<S>> {
        self.bytes.extend_from_slice(chunk);
        if !self.is_started {
            if self.bytes.len() < 3 {
                return Ok(());
            }
            self.is_started = true;
            // Byte order mark.
            if self.bytes.starts_with(b"\xef\xbb\xbf") {
                self.bytes.drain(..3);
            }
        }
        // Start of the open document.
        let mut from = 0;
        while let Some(found) = self.next_tag()? {
            match (self.open, seen(&self.bytes[found..])) {
                (_, Seen::Short) => {
                    self.at = found;
                    break;
                }
                (None, Seen::Start(len)) => {
                    self.open = Some(self.line_of(found));
                    (self.at, from) = (found + len, found + len);
                }
                (None, _) => return Err(Invalid::Structure(self.line_of(found), NO_DOCUMENT)),
                (Some(line), Seen::Start(_)) => return Err(Invalid::Structure(line, NO_END)),
                (Some(line), Seen::End(len)) => {
                    each(&self.bytes[from..found], line).map_err(Invalid::Consumer)?;
                    self.open = None;
                    self.documents += 1;
                    self.at = found + len;
                }
                (Some(_), Seen::Other) => self.at = found + 1,
            }
        }
        self.line_of(self.at);
        let done = if self.open.is_some() { from } else { self.at };
        self.bytes.drain(..done);
        (self.at, self.counted) = (self.at - done, self.counted - done);
        if self.bytes.len() as u64 > MAX_BYTES {
            let line = self.open.unwrap_or(self.breaks + 1);
            return Err(Invalid::TooLarge(line));
        }
        Ok(())
    }

    /// The position of the next `<`; other text between documents is an error.
    fn next_tag<S>(&mut self) -> Result<Option<usize>, Invalid<S>> {
        let rest = &self.bytes[self.at..];
        let found = if self.open.is_some() {
            rest.iter().position(|byte| *byte == b'<')
        } else {
            rest.iter().position(|byte| !byte.is_ascii_whitespace())
        };
        let Some(found) = found.map(|found| self.at + found) else {
            self.at = self.bytes.len();
            return Ok(None);
        };
        if self.bytes[found] != b'<' {
            return Err(Invalid::Structure(self.line_of(found), NO_DOCUMENT));
        }
        Ok(Some(found))
    }

    /// The line of a byte, from 1; positions must be ascending.
    fn line_of(&mut self, at: usize) -> u64 {
        if at > self.counted {
            let breaks = self.bytes[self.counted..at].split(|byte| *byte == b'\n').count() - 1;
            self.breaks += breaks as u64;
            self.counted = at;
        }
        self.breaks + 1
    }

    /// Ends the input.
    fn end<S>(&mut self) -> Result<(), Invalid<S>> {
        if let Some(line) = self.open {
            return Err(Invalid::Structure(line, NO_END));
        }
        // An empty file is valid; a blank file is not.
        if (self.is_started && self.documents == 0) || !self.bytes.is_empty() {
            return Err(Invalid::Structure(self.breaks + 1, NO_DOCUMENT));
        }
        Ok(())
    }
}

fn seen(bytes: &[u8]) -> Seen {
    let is_end = bytes.get(1) == Some(&b'/');
    let name = &bytes[1 + usize::from(is_end)..];
    let len = name.len().min(3);
    if !name[..len].eq_ignore_ascii_case(&b"doc"[..len]) {
        return Seen::Other;
    }
    match name.get(3) {
        None => return Seen::Short,
        Some(b'>' | b'/') => {}
        Some(byte) if byte.is_ascii_whitespace() => {}
        Some(_) => return Seen::Other,
    }
    match bytes.iter().position(|byte| *byte == b'>') {
        None => Seen::Short,
        Some(at) if is_end => Seen::End(at + 1),
        Some(at) => Seen::Start(at + 1),
    }
}

fn document(text: &str) -> Option<Document> {
    let (number, whole) = inside(text, "docno")?;
    let (before, after) = (&text[..whole.start], &text[whole.end..]);
    let id = Some(number.trim()).filter(|id| !id.is_empty())?.to_owned();
    let mut stripped = html_text(&format!("{before}\n{after}"));
    if stripped.title.is_empty()
        && let Some((title, _)) = ["headline", "head"].iter().find_map(|name| inside(text, name))
    {
        stripped.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    Some(Document { id: Some(id), title: stripped.title, body: stripped.text, ..Document::default() })
}

/// The text of an element, and its range with tags.
fn inside<'a>(text: &'a str, name: &str) -> Option<(&'a str, std::ops::Range<usize>)> {
    let find = |tag: &str, from: usize| {
        let mut places = text.as_bytes()[from..].windows(tag.len());
        Some(from + places.position(|part| part.eq_ignore_ascii_case(tag.as_bytes()))?)
    };
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let from = find(&start, 0)?;
    let to = find(&end, from + start.len())?;
    Some((&text[from + start.len()..to], from..to + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_id_title_and_text() {
        let found =
            document("<DOCNO> 7 </DOCNO>\n<HEADLINE>On\nmemories</HEADLINE><TEXT>one &amp; two</TEXT>")
                .unwrap();
        assert_eq!((found.id.as_deref(), found.title.as_str()), (Some("7"), "On memories"));
        let words: Vec<&str> = found.body.split_whitespace().collect();
        assert_eq!(words, ["On", "memories", "one", "&", "two"]);
        assert_eq!(document("<TEXT>no number</TEXT>"), None);
        assert_eq!(document("<DOCNO> </DOCNO>"), None);
    }

    /// The documents with their lines, or the line of an error, for every chunk size.
    fn found(text: &str) -> Result<Vec<(String, u64)>, (u64, &'static str)> {
        let scan = |piece: usize| {
            let (mut scanner, mut all) = (Scanner::default(), Vec::new());
            let mut each = |text: &[u8], line| {
                all.push((String::from_utf8_lossy(text).into_owned(), line));
                Ok::<_, ()>(())
            };
            let fed = text.as_bytes().chunks(piece).try_for_each(|chunk| scanner.feed(chunk, &mut each));
            match fed.and_then(|()| scanner.end()) {
                Ok(()) => Ok(all),
                Err(Invalid::Structure(line, reason)) => Err((line, reason)),
                Err(Invalid::TooLarge(_) | Invalid::Consumer(())) => panic!("too large or stopped"),
            }
        };
        let whole = scan(1 << 20);
        for piece in 1..9 {
            assert_eq!(scan(piece), whole, "{text} in chunks of {piece}");
        }
        whole
    }

    #[test]
    fn documents_are_found() {
        let text =
            "\u{feff}\n<DOC>\na\n</DOC><doc id=\"x\n\">b<DOCNO>2</DOCNO></doc >\n\n <DOC>c</TEXT></DOC>";
        let all = [("\na\n", 2), ("b<DOCNO>2</DOCNO>", 4), ("c</TEXT>", 7)];
        assert_eq!(found(text).unwrap(), all.map(|(text, line)| (text.to_owned(), line)));
        assert_eq!(found(""), Ok(Vec::new()));
    }

    #[test]
    fn text_between_documents_is_rejected() {
        assert_eq!(found("\n<DOC>\n<DOC>a</DOC>"), Err((2, NO_END)));
        assert_eq!(found("\n<DOC>\n"), Err((2, NO_END)));
        assert_eq!(found("<DOC>a</DO"), Err((1, NO_END)));
        for (text, line) in [
            ("<DOC>a</DOC>\nb", 2),
            ("text", 1),
            ("\n\n\n", 4),
            ("</DOC>", 1),
            ("<DOC>a</DOC><DO", 1),
            ("a", 1),
            ("<DOCS>", 1),
        ] {
            assert_eq!(found(text), Err((line, NO_DOCUMENT)), "{text}");
        }
    }
}
