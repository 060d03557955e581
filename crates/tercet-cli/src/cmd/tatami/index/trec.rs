//! Documents as text collections keep them: between `<DOC>` and `</DOC>`, named in `<DOCNO>`.

use std::io::{BufRead as _, BufReader, Read as _};

use super::files::{MOST_BYTES, Source, open, refused};
use super::{Page, html};
use crate::failure::Failure;
use crate::ui::Bar;
use tercet::core::Progress as _;

/// Reads the documents of a file.
pub(super) fn read(
    source: &Source,
    bar: &Bar,
    add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut lines = BufReader::with_capacity(1 << 18, open(source)?);
    let (mut line, mut text) = (Vec::new(), Vec::new());
    let (mut inside, mut started) = (false, 0);
    for number in 1u64.. {
        line.clear();
        let mut limited = lines.by_ref().take(MOST_BYTES);
        let len = limited.read_until(b'\n', &mut line).map_err(|error| refused(&source.path, &error))?;
        let wrong = |number: u64, why: &str| {
            Failure::request(format!("{}: line {number}: {why}", crate::output::shown(&source.path)))
        };
        if len == 0 {
            return if inside { Err(wrong(started, "the document has no end")) } else { Ok(()) };
        }
        bar.advance(len as u64);
        match line.trim_ascii() {
            b"<DOC>" => {
                (inside, started) = (true, number);
                text.clear();
            }
            b"</DOC>" if inside => {
                inside = false;
                let page = page(&String::from_utf8_lossy(&text));
                add(&page.ok_or_else(|| wrong(started, "the document has no <DOCNO>"))?)?;
            }
            _ if inside => {
                if (text.len() + len) as u64 > MOST_BYTES {
                    return Err(wrong(started, "a document of more than 1 GiB"));
                }
                text.extend_from_slice(&line);
            }
            _ => {}
        }
    }
    Ok(())
}

fn page(text: &str) -> Option<Page> {
    let (before, rest) = text.split_once("<DOCNO>")?;
    let (number, behind) = rest.split_once("</DOCNO>")?;
    let mut stripped = html::strip(&format!("{before}\n{behind}"));
    if stripped.title.is_empty()
        && let Some(title) = ["HEADLINE", "HEAD"].iter().find_map(|name| inside(text, name))
    {
        stripped.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let id = number.trim().to_owned();
    Some(Page {
        id: Some(id),
        url: String::new(),
        title: stripped.title,
        body: stripped.text,
        anchor: String::new(),
    })
}

/// What stands between the tags of a name.
fn inside<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_a_number_and_a_text() {
        let found =
            page("<DOCNO> 7 </DOCNO>\n<HEADLINE>On\nmemories</HEADLINE><TEXT>one &amp; two</TEXT>").unwrap();
        assert_eq!((found.id.as_deref(), found.title.as_str()), (Some("7"), "On memories"));
        let words: Vec<&str> = found.body.split_whitespace().collect();
        assert_eq!(words, ["On", "memories", "one", "&", "two"]);
        assert_eq!(page("<TEXT>no number</TEXT>"), None);
    }
}
