//! Text extraction from HTML.
//!
//! Tokenizes like a browser, without building a tree. Scripts and styles are skipped, block tags end a word, and the
//! title is returned separately.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Title and text of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HtmlText {
    /// The title, on one line.
    pub title: String,
    /// The visible text. Block elements are on lines of their own.
    pub text: String,
}

/// Extracts title and text of a page.
pub fn html_text(page: &str) -> HtmlText {
    let sink = Sink { state: RefCell::new(State::default()) };
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    // The tokenizer pauses at scripts.
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    let State { mut out, .. } = tokenizer.sink.state.take();
    out.title = out.title.split_whitespace().collect::<Vec<_>>().join(" ");
    out.text.truncate(out.text.trim_end().len());
    out.text.drain(..out.text.len() - out.text.trim_start().len());
    out
}

#[derive(Debug, Default)]
struct State {
    out: HtmlText,
    /// Inside a title.
    title: bool,
    has_title: bool,
    /// Open `svg` elements, whose titles are not the page title.
    pictures: u32,
    /// Inside an element without visible text.
    is_hidden: bool,
}

struct Sink {
    state: RefCell<State>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        self.state.borrow_mut().take(token)
    }
}

/// Inline elements, which do not end a word.
const INLINE: [&str; 30] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "var",
    "wbr",
];

impl State {
    fn take(&mut self, token: Token) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) if !self.is_hidden => {
                let out = if self.title { &mut self.out.title } else { &mut self.out.text };
                out.push_str(&text);
            }
            Token::TagToken(tag) => return self.tag(&tag),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let starts = tag.kind == TagKind::StartTag;
        match &*tag.name {
            "script" | "style" | "noframes" | "iframe" | "noembed" if starts => {
                self.gap();
                self.is_hidden = true;
            }
            "script" | "style" | "noframes" | "iframe" | "noembed" => self.is_hidden = false,
            "svg" => {
                match starts {
                    true if !tag.self_closing => self.pictures += 1,
                    true => {}
                    false => self.pictures = self.pictures.saturating_sub(1),
                }
                self.gap();
            }
            "title" if starts && !self.has_title && self.pictures == 0 => {
                (self.title, self.has_title) = (true, true);
            }
            // Another title, of a picture, has elements like any other.
            "title" if starts => {
                self.gap();
                return TokenSinkResult::Continue;
            }
            "title" => {
                self.title = false;
                self.gap();
            }
            name if INLINE.binary_search(&name).is_err() => self.gap(),
            _ => {}
        }
        match raw_text(tag) {
            Some(raw) if starts => TokenSinkResult::RawData(raw),
            _ => TokenSinkResult::Continue,
        }
    }

    fn gap(&mut self) {
        if !self.title && !self.out.text.is_empty() && !self.out.text.ends_with(char::is_whitespace) {
            self.out.text.push('\n');
        }
    }
}

/// How the content of an element is tokenized, if it has no elements.
pub(super) fn raw_text(tag: &Tag) -> Option<RawKind> {
    match &*tag.name {
        // The tokenizer handles escaped script states itself.
        "script" => Some(RawKind::ScriptData),
        "style" | "noframes" | "iframe" | "noembed" => Some(RawKind::Rawtext),
        "title" | "textarea" => Some(RawKind::Rcdata),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_text_is_extracted() {
        assert!(INLINE.is_sorted());
        let page = "<!doctype html><html><head><title>A &amp; B\n c</title><style>p { x: <b> }</style>\
            <script>if (a < b) { '<p>no</p>' }</script></head><body><h1>Head</h1><p>One<b>two</b> &eacute;&#33;\
            <!-- not this --><ul><li>x<li>y</ul><svg><title>picture</title></svg><br>end</body></html>";
        let found = html_text(page);
        assert_eq!(found.title, "A & B c");
        let words: Vec<&str> = found.text.split_whitespace().collect();
        assert_eq!(words, ["Head", "Onetwo", "é!", "x", "y", "picture", "end"]);
    }

    #[test]
    fn hidden_elements_separate_words() {
        for hidden in ["script", "style", "svg", "textarea", "iframe"] {
            let found = html_text(&format!("one<{hidden}></{hidden}>two"));
            assert_eq!(found.text.split_whitespace().collect::<Vec<_>>(), ["one", "two"], "{hidden}");
        }
    }

    #[test]
    fn svg_titles_are_not_the_page_title() {
        let found = html_text("<svg/><svg><title>picture</title></svg><title>page</title>text");
        assert_eq!(found.title, "page");
        assert_eq!(found.text.split_whitespace().collect::<Vec<_>>(), ["picture", "text"]);
    }

    #[test]
    fn invalid_html_does_not_fail() {
        for page in
            ["", "<", "<p", "<!--", "<script>", "<title>t", "a<b<c>d</", "&#x110000;&nbsp;\0", "</p></p>"]
        {
            html_text(page);
        }
        assert_eq!(html_text("plain text").text, "plain text");
    }
}
