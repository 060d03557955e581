//! TREC documents: `<DOC>` … `</DOC>` with an ID in `<DOCNO>`.

use std::io::{BufRead as _, BufReader};

use super::files::{MAX_BYTES, Source, open, read_failure};
use super::{Page, html};
use crate::failure::Failure;
use crate::ui::Bar;
use tercet::core::Progress as _;

/// Reads the documents of a file; returns whether it is valid UTF-8.
pub(super) fn read(
    source: &Source,
    bar: &Bar,
    add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut input = BufReader::with_capacity(1 << 18, open(source)?);
    let mut scanner = Scanner::default();
    let mut is_utf8 = true;
    loop {
        let chunk = input.fill_buf().map_err(|error| read_failure(&source.path, &error))?;
        let len = chunk.len();
        let mut each = |text: &[u8], line: u64| {
            is_utf8 &= simdutf8::basic::from_utf8(text).is_ok();
            let page = page(&String::from_utf8_lossy(text));
            add(&page.ok_or(Stopped::Wrong(line, "document without <DOCNO>"))?).map_err(Stopped::Failed)
        };
        let scanned = if len == 0 { scanner.end() } else { scanner.feed(chunk, &mut each) };
        scanned.map_err(|stopped| stopped.into_failure(source))?;
        if len == 0 {
            return Ok(is_utf8);
        }
        input.consume(len);
        bar.advance(len as u64);
    }
}

enum Stopped {
    /// A line and the reason.
    Wrong(u64, &'static str),
    Failed(Failure),
}

impl Stopped {
    fn into_failure(self, source: &Source) -> Failure {
        match self {
            Self::Wrong(line, reason) => Failure::request(format!(
                "{}: line {line}: {reason}",
                crate::output::display_path(&source.path)
            )),
            Self::Failed(failure) => failure,
        }
    }
}

const NO_END: &str = "unterminated document";
const NO_DOCUMENT: &str = "expected `<DOC>`";

/// Called with a document and its first line.
type Each<'a> = dyn FnMut(&[u8], u64) -> Result<(), Stopped> + 'a;

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
    fn feed(&mut self, chunk: &[u8], each: &mut Each<'_>) -> Result<(), Stopped> {
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
                (None, _) => return Err(Stopped::Wrong(self.line_of(found), NO_DOCUMENT)),
                (Some(line), Seen::Start(_)) => return Err(Stopped::Wrong(line, NO_END)),
                (Some(line), Seen::End(len)) => {
                    each(&self.bytes[from..found], line)?;
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
            return Err(Stopped::Wrong(line, "document exceeds 1 GiB"));
        }
        Ok(())
    }

    /// The position of the next `<`; other text between documents is an error.
    fn next_tag(&mut self) -> Result<Option<usize>, Stopped> {
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
            return Err(Stopped::Wrong(self.line_of(found), NO_DOCUMENT));
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
    fn end(&mut self) -> Result<(), Stopped> {
        if let Some(line) = self.open {
            return Err(Stopped::Wrong(line, NO_END));
        }
        // An empty file is valid; a blank file is not.
        if (self.is_started && self.documents == 0) || !self.bytes.is_empty() {
            return Err(Stopped::Wrong(self.breaks + 1, NO_DOCUMENT));
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

fn page(text: &str) -> Option<Page> {
    let (number, whole) = inside(text, "docno")?;
    let (before, after) = (&text[..whole.start], &text[whole.end..]);
    let id = Some(number.trim()).filter(|id| !id.is_empty())?.to_owned();
    let mut stripped = html::strip(&format!("{before}\n{after}"));
    if stripped.title.is_empty()
        && let Some((title, _)) = ["headline", "head"].iter().find_map(|name| inside(text, name))
    {
        stripped.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    Some(Page {
        id: Some(id),
        url: String::new(),
        title: stripped.title,
        body: stripped.text,
        anchor: String::new(),
    })
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
            page("<DOCNO> 7 </DOCNO>\n<HEADLINE>On\nmemories</HEADLINE><TEXT>one &amp; two</TEXT>").unwrap();
        assert_eq!((found.id.as_deref(), found.title.as_str()), (Some("7"), "On memories"));
        let words: Vec<&str> = found.body.split_whitespace().collect();
        assert_eq!(words, ["On", "memories", "one", "&", "two"]);
        assert_eq!(page("<TEXT>no number</TEXT>"), None);
        assert_eq!(page("<DOCNO> </DOCNO>"), None);
    }

    /// The documents with their lines, or the line of an error, for every chunk size.
    fn found(text: &str) -> Result<Vec<(String, u64)>, (u64, &'static str)> {
        let scan = |piece: usize| {
            let (mut scanner, mut all) = (Scanner::default(), Vec::new());
            let mut each = |text: &[u8], line| {
                all.push((String::from_utf8_lossy(text).into_owned(), line));
                Ok(())
            };
            let fed = text.as_bytes().chunks(piece).try_for_each(|chunk| scanner.feed(chunk, &mut each));
            match fed.and_then(|()| scanner.end()) {
                Ok(()) => Ok(all),
                Err(Stopped::Wrong(line, reason)) => Err((line, reason)),
                Err(Stopped::Failed(_)) => unreachable!(),
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
