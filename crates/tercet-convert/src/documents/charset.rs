//! Text of any encoding as UTF-8.
//!
//! In this order: a byte order mark, the encoding that a page declares, UTF-8 if the bytes are valid, UTF-16 by its zero
//! bytes, a guess from the frequencies of bytes (`chardetng`).

use std::borrow::Cow;
use std::cell::RefCell;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Decoded text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decoded {
    /// The text, without a byte order mark.
    pub text: String,
    /// The name of the encoding, as the WHATWG spells it.
    pub encoding: &'static str,
    /// Whether the encoding is a guess.
    pub is_guessed: bool,
    /// Whether some bytes are invalid in the encoding; they are replaced by U+FFFD.
    pub has_errors: bool,
}

/// Bytes in which a page must declare its encoding. Browsers look at 1024.
const DECLARATION_LEN: usize = 4096;

/// Decodes plain text or Markdown.
pub fn decode_text(bytes: Vec<u8>) -> Decoded {
    decode(bytes, |_| None)
}

/// Decodes a page, which may declare its encoding.
pub fn decode_html(bytes: Vec<u8>) -> Decoded {
    decode(bytes, declared)
}

fn decode(bytes: Vec<u8>, declared: impl Fn(&[u8]) -> Option<&'static Encoding>) -> Decoded {
    if let Some((encoding, _)) = Encoding::for_bom(&bytes) {
        return with(bytes, encoding, false);
    }
    if let Some(encoding) = declared(&bytes) {
        // A page that declares an encoding in which it is invalid is often UTF-8.
        let is_wrong = encoding != UTF_8 && simdutf8::basic::from_utf8(&bytes).is_ok() && {
            encoding.decode_without_bom_handling_and_without_replacement(&bytes).is_none()
        };
        return with(bytes, if is_wrong { UTF_8 } else { encoding }, false);
    }
    // UTF-16 of ASCII characters is also valid UTF-8.
    if let Some(encoding) = utf16(&bytes) {
        return with(bytes, encoding, true);
    }
    if simdutf8::basic::from_utf8(&bytes).is_ok() {
        return with(bytes, UTF_8, false);
    }
    // Damaged UTF-8 has far more valid characters than invalid bytes.
    let (valid, invalid) = characters(&bytes);
    if valid > invalid.saturating_mul(4) {
        return with(bytes, UTF_8, false);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes, true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    with(bytes, encoding, true)
}

fn with(bytes: Vec<u8>, encoding: &'static Encoding, is_guessed: bool) -> Decoded {
    let name = encoding.name();
    if encoding == UTF_8 {
        let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let (mut text, has_errors) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        text.drain(..start);
        return Decoded { text, encoding: name, is_guessed, has_errors };
    }
    let (text, _, has_errors) = encoding.decode(&bytes);
    let text = match text {
        Cow::Owned(text) => text,
        Cow::Borrowed(text) => text.to_owned(),
    };
    Decoded { text, encoding: name, is_guessed, has_errors }
}

/// UTF-16 without a mark: most high bytes of Latin text are zero, no low byte is.
fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(DECLARATION_LEN) & !1];
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    match head.len() / 2 {
        units if odd * 2 > units && even == 0 => Some(UTF_16LE),
        units if even * 2 > units && odd == 0 => Some(UTF_16BE),
        _ => None,
    }
}

/// The numbers of valid characters beyond ASCII and of invalid sequences of UTF-8.
fn characters(bytes: &[u8]) -> (usize, usize) {
    let (mut valid, mut invalid) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        // Every character beyond ASCII has one leading byte.
        valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    (valid, invalid)
}

/// The encoding that a page declares: in `<meta>` or an XML declaration.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(DECLARATION_LEN)];
    // Declarations are ASCII; a wide encoding has a byte order mark.
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(head);
    let label = xml_label(&text).or_else(|| meta_label(&text))?;
    match Encoding::for_label(label.trim().as_bytes())? {
        // The declaration itself was read as ASCII.
        encoding if encoding == UTF_16LE || encoding == UTF_16BE => Some(UTF_8),
        encoding if encoding.name() == "x-user-defined" => Some(WINDOWS_1252),
        encoding if encoding == encoding_rs::REPLACEMENT => None,
        encoding => Some(encoding),
    }
}

/// The encoding of `<?xml version="1.0" encoding="…"?>`.
fn xml_label(text: &str) -> Option<String> {
    let declaration = text.trim_start().strip_prefix("<?xml")?.split_once("?>")?.0;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some(value[1..].split_once(quote)?.0.to_owned())
}

/// The encoding of the first `<meta>` that declares one.
fn meta_label(text: &str) -> Option<String> {
    let sink = MetaSink { label: RefCell::new(None) };
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(text));
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    tokenizer.sink.label.take()
}

struct MetaSink {
    label: RefCell<Option<String>>,
}

impl TokenSink for MetaSink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        if tag.kind == TagKind::StartTag {
            if &*tag.name == "meta" && self.label.borrow().is_none() {
                *self.label.borrow_mut() = label(&tag);
            }
            if let Some(raw) = super::html::raw_text(&tag) {
                return TokenSinkResult::RawData(raw);
            }
        }
        TokenSinkResult::Continue
    }
}

/// The encoding of `<meta charset=…>` or `<meta http-equiv=content-type content="…; charset=…">`.
fn label(tag: &Tag) -> Option<String> {
    let value = |name: &str| {
        let attribute = tag.attrs.iter().find(|attribute| &*attribute.name.local == name)?;
        Some(attribute.value.to_string())
    };
    if let Some(charset) = value("charset") {
        return Some(charset);
    }
    if !value("http-equiv")?.eq_ignore_ascii_case("content-type") {
        return None;
    }
    let content = value("content")?;
    let at = content.to_ascii_lowercase().find("charset")?;
    let rest = content[at + "charset".len()..].trim_start().strip_prefix('=')?.trim_start();
    let rest = rest.trim_start_matches(['"', '\'']);
    Some(rest.split(['"', '\'', ';', ' ', '\t']).next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use encoding_rs::{EUC_JP, EUC_KR, GB18030, GBK, KOI8_R, SHIFT_JIS, WINDOWS_1251};

    use super::*;

    fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
        let (bytes, _, has_errors) = encoding.encode(text);
        assert!(!has_errors, "{text} in {}", encoding.name());
        bytes.into_owned()
    }

    const JAPANESE: &str = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。";
    const CHINESE: &str = "北京是中华人民共和国的首都，是全国的政治中心和文化中心。";
    const RUSSIAN: &str =
        "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.";
    const FRENCH: &str = "Longtemps, je me suis couché de bonne heure. Parfois, à peine ma bougie éteinte…";

    #[test]
    fn declared_encodings_are_used() {
        for (text, encoding) in [
            (FRENCH, WINDOWS_1252),
            (JAPANESE, SHIFT_JIS),
            (JAPANESE, EUC_JP),
            (CHINESE, GBK),
            (CHINESE, GB18030),
            (RUSSIAN, WINDOWS_1251),
            (RUSSIAN, KOI8_R),
            ("안녕하세요", EUC_KR),
            (JAPANESE, UTF_8),
        ] {
            let name = encoding.name();
            for head in [
                format!("<meta charset={name}>"),
                format!("<!-- <meta charset=utf-8> --><META CHARSET = '{name}' />"),
                format!("<meta http-equiv=Content-Type content='text/html; charset={name}'>"),
                format!("<script>'<meta charset=utf-8>'</script><meta charset=\"{name}\">"),
                format!("<?xml version='1.0' encoding='{name}'?><p>"),
            ] {
                let page = format!("{head}<p>{text}");
                let found = decode_html(encoded(&page, encoding));
                assert_eq!(found.text, page, "{name}");
                assert_eq!((found.encoding, found.is_guessed, found.has_errors), (name, false, false));
            }
        }
    }

    #[test]
    fn undeclared_encodings_are_guessed() {
        for (text, encoding) in [
            (FRENCH, WINDOWS_1252),
            (JAPANESE, SHIFT_JIS),
            (CHINESE, GBK),
            (RUSSIAN, WINDOWS_1251),
            (RUSSIAN, KOI8_R),
        ] {
            for decode in [decode_text, decode_html] {
                let found = decode(encoded(text, encoding));
                assert_eq!(found.text, text, "{}", encoding.name());
                assert!(found.is_guessed && !found.has_errors, "{}", found.encoding);
            }
        }
    }

    #[test]
    fn utf8_and_utf16_are_recognized() {
        for text in ["caf\u{e9}", "", "plain", "日本"] {
            let found = decode_text(text.as_bytes().to_vec());
            assert_eq!((&*found.text, found.encoding, found.is_guessed), (text, "UTF-8", false));
            let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
            assert_eq!(decode_html(marked).text, text);
            let units = || text.encode_utf16();
            let little: Vec<u8> =
                [0xff, 0xfe].into_iter().chain(units().flat_map(u16::to_le_bytes)).collect();
            let big: Vec<u8> = [0xfe, 0xff].into_iter().chain(units().flat_map(u16::to_be_bytes)).collect();
            // A byte order mark is stronger than a declaration.
            assert_eq!(decode_text(little).text, text);
            assert_eq!(decode_html(big).text, text);
        }
        let bare: Vec<u8> = "<p>text</p>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode_html(bare).text, "<p>text</p>");
        let page = "<meta charset=utf-16><p>é";
        assert_eq!(decode_html(page.as_bytes().to_vec()).text, page);
    }

    #[test]
    fn damage_is_reported() {
        let found = decode_text([JAPANESE.as_bytes(), b"\xff", JAPANESE.as_bytes()].concat());
        assert_eq!((found.encoding, found.has_errors), ("UTF-8", true));
        assert_eq!(found.text, format!("{JAPANESE}\u{fffd}{JAPANESE}"));
        let wrong = "<meta charset=euc-jp><p>日本語".as_bytes().to_vec();
        let found = decode_html(wrong);
        assert!(found.text.ends_with("日本語") && !found.has_errors, "{}", found.text);
        let unknown = decode_html(b"<meta charset=nonsense><p>plain".to_vec());
        assert_eq!((unknown.encoding, unknown.has_errors), ("UTF-8", false));
    }
}
