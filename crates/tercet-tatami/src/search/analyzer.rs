//! Analyzers: how text becomes terms.
//!
//! | analyzer | terms |
//! |---|---|
//! | `plain` | the tokens of the format: runs of letters and decimal digits in lower case |
//! | `standard` | Unicode normalization (NFKC), case and accent folding, combining marks kept in their word, bigrams for scripts without spaces |
//! | a language | as `standard`, with the Snowball stemmer of the language before the accents are folded |
//!
//! The analyzer of a segment is recorded in its metadata (`tercet.analyzer`), and queries are analyzed in the same way. Stop words of
//! a language are indexed; a query skips them next to other terms.

mod fold;
mod language;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

use super::analyze;

/// The metadata key with the analyzer of a segment.
pub(crate) const KEY: &str = "tercet.analyzer";

/// The version of the rules below, recorded with the name.
const VERSION: &str = "1";

/// Maximum number of cached stems.
const MAX_CACHED: usize = 1 << 16;

/// Maximum length in bytes of a stemmed word. Longer ones are indexed as they are.
const MAX_STEMMED: usize = 64;

/// How text becomes terms.
///
/// ```
/// use tercet_tatami::search::Analyzer;
///
/// let english: Analyzer = "english".parse()?;
/// assert_eq!(english.terms("The running CAFÉS".as_bytes()), ["the", "run", "cafe"]);
/// assert_eq!(Analyzer::STANDARD.terms("東京都 ﬁne".as_bytes()), ["東京", "京都", "fine"]);
/// # Ok::<(), tercet_tatami::search::UnknownAnalyzer>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Analyzer(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Plain,
    Standard,
    Language(Algorithm),
}

/// A name that is not that of an analyzer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown analyzer `{}`; known are plain, standard and {}",
    tercet_core::escape::name(name),
    language::names()
)]
pub struct UnknownAnalyzer {
    /// The name.
    pub name: String,
}

impl std::str::FromStr for Analyzer {
    type Err = UnknownAnalyzer;

    fn from_str(name: &str) -> Result<Self, UnknownAnalyzer> {
        let kind = match name.trim().to_ascii_lowercase().as_str() {
            "plain" => Kind::Plain,
            "standard" => Kind::Standard,
            other => {
                let unknown = |_| UnknownAnalyzer { name: name.to_owned() };
                Kind::Language(Algorithm::from_name(other).map_err(unknown)?)
            }
        };
        Ok(Self(kind))
    }
}

impl fmt::Display for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Analyzer {
    /// The tokens of the format.
    pub const PLAIN: Self = Self(Kind::Plain);

    /// Unicode words without stemming.
    pub const STANDARD: Self = Self(Kind::Standard);

    /// The name: `plain`, `standard` or a language.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Kind::Plain => "plain",
            Kind::Standard => "standard",
            Kind::Language(algorithm) => algorithm.name(),
        }
    }

    /// The analyzer for the language of a sample; [`STANDARD`](Self::STANDARD) if it is not recognized with confidence.
    pub fn detect(sample: &str) -> Self {
        language::detect(sample).map_or(Self::STANDARD, |algorithm| Self(Kind::Language(algorithm)))
    }

    /// The terms of a text.
    pub fn terms(&self, text: &[u8]) -> Vec<String> {
        let mut out = Vec::new();
        self.tokenizer().spans(text, |_, term| out.push(term.to_owned()));
        out
    }

    /// Whether the terms of titles, anchor texts and URLs are indexed by field as well.
    pub(super) fn has_fields(self) -> bool {
        self.0 != Kind::Plain
    }

    /// Whether words are reduced to their stems, so that `running` is in the index as `run`.
    pub fn is_stemming(&self) -> bool {
        matches!(self.0, Kind::Language(_))
    }

    /// Whether a term is a single character of a script without spaces, which is in the index as a part of bigrams.
    pub(super) fn is_lone(self, term: &str) -> bool {
        let mut letters = term.chars();
        self.0 != Kind::Plain && letters.next().is_some_and(is_unspaced) && letters.all(extends)
    }

    /// Whether a word of a query is a stop word.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        match self.0 {
            Kind::Plain | Kind::Standard => false,
            Kind::Language(algorithm) => {
                let word: String = word.nfkc().flat_map(char::to_lowercase).collect();
                language::stop_words(algorithm).contains(&word.as_str())
            }
        }
    }

    /// A tokenizer with its buffers.
    pub(super) fn tokenizer(self) -> Tokenizer {
        let stemmer = match self.0 {
            Kind::Language(algorithm) => Some(Stemmer::new(algorithm)),
            Kind::Plain | Kind::Standard => None,
        };
        Tokenizer {
            plain: self.0 == Kind::Plain,
            stemmer,
            stems: HashMap::new(),
            word: String::new(),
            term: String::new(),
            clusters: Vec::new(),
            text: String::new(),
        }
    }

    /// The value of the metadata key; none for the tokens of the format.
    pub(super) fn recorded(self) -> Option<String> {
        (self.0 != Kind::Plain).then(|| format!("{VERSION} {}", self.name()))
    }

    /// The analyzer of a recorded value.
    pub(super) fn from_recorded(value: &str) -> Option<Self> {
        let name = value.strip_prefix(VERSION)?.strip_prefix(' ')?;
        name.parse().ok().filter(|analyzer: &Self| *analyzer != Self::PLAIN && analyzer.name() == name)
    }
}

/// An [`Analyzer`] with its buffers.
pub(super) struct Tokenizer {
    plain: bool,
    stemmer: Option<Stemmer>,
    /// Terms of words that were seen.
    stems: HashMap<Box<str>, Box<str>>,
    word: String,
    term: String,
    /// The clusters of a word: their end in `text` and their range in the original.
    clusters: Vec<(usize, Range<usize>)>,
    text: String,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("plain", &self.plain).finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Calls `each` with every term of a text, and its byte range.
    pub(super) fn spans(&mut self, text: &[u8], mut each: impl FnMut(Range<usize>, &str)) {
        if self.plain {
            analyze::spans(text, each);
            return;
        }
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            self.valid(chunk.valid(), at, &mut each);
            at += chunk.valid().len() + chunk.invalid().len();
        }
    }

    fn valid(&mut self, text: &str, base: usize, each: &mut impl FnMut(Range<usize>, &str)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            while bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
                at += 1;
            }
            if at > start && bytes.get(at).is_none_or(u8::is_ascii) {
                self.word.clear();
                self.word.push_str(&text[start..at]);
                self.word.make_ascii_lowercase();
                self.emit_word(base + start..base + at, each);
                continue;
            }
            at = start;
            if bytes[at].is_ascii() && !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let len = text[at..].char_indices().find(|(_, letter)| !continues(*letter));
            let end = at + len.map_or(text.len() - at, |(len, _)| len);
            if end > at {
                self.unicode(&text[at..end], base + at, each);
                at = end;
            } else {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    /// A run of letters, digits and marks that is not all ASCII.
    fn unicode(&mut self, run: &str, base: usize, each: &mut impl FnMut(Range<usize>, &str)) {
        self.clusters.clear();
        self.text.clear();
        let mut letters = run.char_indices().peekable();
        while let Some((start, first)) = letters.next() {
            let mut end = start + first.len_utf8();
            while let Some((_, next)) = letters.next_if(|(_, next)| extends(*next)) {
                end += next.len_utf8();
            }
            let cluster = run[start..end].nfkc().flat_map(char::to_lowercase);
            for letter in cluster.filter(|letter| continues(*letter) && !is_joiner(*letter)) {
                // Its upper case is SS.
                if letter == 'ß' { self.text.push_str("ss") } else { self.text.push(letter) }
            }
            self.clusters.push((self.text.len(), base + start..base + end));
        }
        let clusters = std::mem::take(&mut self.clusters);
        let text = std::mem::take(&mut self.text);
        let piece = |index: usize| {
            let start = index.checked_sub(1).map_or(0, |before| clusters[before].0);
            &text[start..clusters[index].0]
        };
        let is_dense = |index: usize| piece(index).chars().next().is_some_and(is_unspaced);
        let mut from = 0;
        while from < clusters.len() {
            let dense = is_dense(from);
            let mut to = from + 1;
            while to < clusters.len() && is_dense(to) == dense {
                to += 1;
            }
            let range = |first: usize, last: usize| clusters[first].1.start..clusters[last].1.end;
            if !dense {
                self.word.clear();
                (from..to).for_each(|index| self.word.push_str(piece(index)));
                self.emit_word(range(from, to - 1), each);
            } else if to - from == 1 {
                each(range(from, from), piece(from));
            } else {
                for first in from..to - 1 {
                    self.term.clear();
                    self.term.push_str(piece(first));
                    self.term.push_str(piece(first + 1));
                    each(range(first, first + 1), &self.term);
                }
            }
            from = to;
        }
        (self.clusters, self.text) = (clusters, text);
    }

    /// Emits the term of `self.word`, which is in lower case and normalized.
    fn emit_word(&mut self, range: Range<usize>, each: &mut impl FnMut(Range<usize>, &str)) {
        if self.word.is_empty() {
            return;
        }
        let ascii = self.word.is_ascii();
        let Some(stemmer) = self.stemmer.filter(|_| self.word.len() <= MAX_STEMMED) else {
            if ascii {
                each(range, &self.word);
            } else {
                fold::fold(&self.word, &mut self.term);
                each(range, if self.term.is_empty() { &self.word } else { &self.term });
            }
            return;
        };
        if let Some(known) = self.stems.get(self.word.as_str()) {
            each(range, known);
            return;
        }
        // The stemmers of most languages need the accents; in English they only mark foreign words.
        let stem = if !ascii && is_written_without_accents(stemmer.algorithm()) {
            fold::fold(&self.word, &mut self.term);
            stemmer.stem(&self.term).into_owned()
        } else {
            stemmer.stem(&self.word).into_owned()
        };
        fold::fold(&stem, &mut self.term);
        let term = if self.term.is_empty() { &self.word } else { &self.term };
        each(range, term);
        if self.stems.len() < MAX_CACHED {
            let term = term.as_str().into();
            self.stems.insert(self.word.as_str().into(), term);
        }
    }
}

fn is_written_without_accents(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::English
            | Algorithm::Earlymodernenglish
            | Algorithm::Porter
            | Algorithm::Lovins
            | Algorithm::Indonesian
    )
}

/// Letters, decimal digits, marks and joiners: what words consist of.
fn continues(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric();
    }
    is_joiner(letter)
        || matches!(
            letter.general_category(),
            GeneralCategory::UppercaseLetter
                | GeneralCategory::LowercaseLetter
                | GeneralCategory::TitlecaseLetter
                | GeneralCategory::ModifierLetter
                | GeneralCategory::OtherLetter
                | GeneralCategory::DecimalNumber
                | GeneralCategory::NonspacingMark
                | GeneralCategory::SpacingMark
                | GeneralCategory::EnclosingMark
        )
}

/// Characters that belong to the one before: marks, joiners, vowels and finals of Hangul syllables in parts, half-width voicing marks.
fn extends(letter: char) -> bool {
    matches!(letter, '\u{1160}'..='\u{11ff}' | '\u{ff9e}' | '\u{ff9f}')
        || is_joiner(letter)
        || matches!(
            letter.general_category(),
            GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark
        )
}

fn is_joiner(letter: char) -> bool {
    matches!(letter, '\u{200c}' | '\u{200d}')
}

/// Scripts that are written without spaces, and Hangul, whose words carry particles: Thai, Lao, Myanmar, Khmer, kana and Han.
fn is_unspaced(letter: char) -> bool {
    matches!(
        u32::from(letter),
        0x0e00..=0x0eff
            | 0x1000..=0x109f
            | 0x1100..=0x11ff
            | 0x1780..=0x17ff
            | 0x2e80..=0x2fdf
            | 0x3005..=0x3007
            | 0x3021..=0x3029
            | 0x3031..=0x318f
            | 0x31a0..=0x31ff
            | 0x3400..=0x4dbf
            | 0x4e00..=0x9fff
            | 0xa960..=0xa97f
            | 0xac00..=0xd7ff
            | 0xf900..=0xfaff
            | 0x1b000..=0x1b16f
            | 0x20000..=0x3ffff
    )
}

#[cfg(test)]
mod tests;
