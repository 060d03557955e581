//! CSV records.
//!
//! A custom parser, because `,,` (null) and `,"",` (empty string) are different here.

/// A field: a range of the text of a [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    start: usize,
    end: usize,
    is_quoted: bool,
}

/// A CSV record.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    text: Vec<u8>,
    fields: Vec<Field>,
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether an unquoted field contains a byte.
    pub(super) fn has_bare(&self, byte: u8) -> bool {
        let bare = self.fields.iter().filter(|field| !field.is_quoted);
        bare.into_iter().any(|field| self.text[field.start..field.end].contains(&byte))
    }

    /// A field and whether it is quoted.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], bool)> {
        let field = self.fields.get(index)?;
        Some((&self.text[field.start..field.end], field.is_quoted))
    }
}

/// The parser state at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The record is complete.
    Done,
    /// A quoted field continues in the next line.
    Open,
}

/// Invalid CSV.
pub(super) const STRAY_QUOTE: &str = "quote inside an unquoted field";
/// Invalid CSV.
pub(super) const AFTER_QUOTE: &str = "expected a delimiter after a closing quote";

impl Record {
    /// Starts a new record.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
    }

    /// Parses a line with its line break. `state` is the state after the previous line.
    pub(super) fn add(&mut self, line: &[u8], state: State, delimiter: u8) -> Result<State, &'static str> {
        // Line breaks are part of quoted fields only.
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
        let mut at = 0;
        let mut in_quotes = state == State::Open;
        loop {
            if in_quotes {
                // Everything up to the closing quote.
                let Some(end) = line[at..].iter().position(|byte| *byte == b'"') else {
                    self.text.extend_from_slice(&line[at..]);
                    return Ok(State::Open);
                };
                self.text.extend_from_slice(&line[at..at + end]);
                at += end + 1;
                if line.get(at) == Some(&b'"') {
                    self.text.push(b'"');
                    at += 1;
                    continue;
                }
                in_quotes = false;
                self.end_field();
                match bare.get(at) {
                    None => return Ok(State::Done),
                    Some(byte) if *byte == delimiter => at += 1,
                    Some(_) => return Err(AFTER_QUOTE),
                }
            }
            let start = self.text.len();
            if bare.get(at) == Some(&b'"') {
                self.fields.push(Field { start, end: start, is_quoted: true });
                in_quotes = true;
                at += 1;
                continue;
            }
            let rest = &bare[at.min(bare.len())..];
            let end = rest.iter().position(|byte| *byte == delimiter);
            let field = &rest[..end.unwrap_or(rest.len())];
            if field.contains(&b'"') {
                return Err(STRAY_QUOTE);
            }
            self.text.extend_from_slice(field);
            self.fields.push(Field { start, end: self.text.len(), is_quoted: false });
            match end {
                Some(end) => at += end + 1,
                None => return Ok(State::Done),
            }
        }
    }

    fn end_field(&mut self) {
        let end = self.text.len();
        if let Some(field) = self.fields.last_mut() {
            field.end = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses all records of a text.
    fn read(text: &str) -> Result<Vec<Vec<(String, bool)>>, &'static str> {
        let (mut all, mut record, mut state) = (Vec::new(), Record::default(), State::Done);
        for line in text.split_inclusive('\n') {
            if state == State::Done {
                record.clear();
            }
            state = record.add(line.as_bytes(), state, b',')?;
            if state == State::Done {
                let field = |index| {
                    let (bytes, quoted) = record.get(index).unwrap();
                    (String::from_utf8(bytes.to_vec()).unwrap(), quoted)
                };
                all.push((0..record.len()).map(field).collect());
            }
        }
        Ok(all)
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
        assert_eq!(read("\"a\",\"b\n").unwrap(), Vec::<Vec<_>>::new(), "the last field is not closed");
    }

    /// Round trip of any fields.
    #[test]
    fn fields_round_trip() {
        let pieces = ["", "a", "\"", ",", "\n", "\r\n", "é,\"\"", " "];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let fields = [first, second, third];
                    let written: Vec<String> = fields
                        .iter()
                        .map(|field| {
                            let needs = field.contains(['"', ',', '\n', '\r']);
                            if needs {
                                format!("\"{}\"", field.replace('"', "\"\""))
                            } else {
                                (*field).to_owned()
                            }
                        })
                        .collect();
                    let back = read(&format!("{}\n", written.join(","))).unwrap();
                    let values: Vec<&str> = back[0].iter().map(|(text, _)| text.as_str()).collect();
                    assert_eq!(values, fields);
                    assert_eq!(back.len(), 1);
                }
            }
        }
    }
}
