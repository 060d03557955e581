//! FSST: a table of up to 255 symbols of one to eight bytes, and strings as the codes of symbols.
//!
//! Code `i` stands for symbol `i`; code 255 says that the next byte stands for itself. A string never shares a code with
//! its neighbours, so any of them can be decoded without the others, and a string in which nothing is known takes twice
//! its bytes.
//!
//! ```
//! use tercet_codec::strings::fsst::Symbols;
//!
//! let symbols = Symbols::new(&["http://", "a", "ab"])?;
//! let (mut lengths, mut coded) = (Vec::new(), Vec::new());
//! symbols.encode_all(["http://ab", "x"].iter().map(|string| string.as_bytes()), &mut lengths, &mut coded)?;
//! assert_eq!(coded, [0, 2, 255, b'x']);
//!
//! let (mut ends, mut raw) = (Vec::new(), Vec::new());
//! symbols.decode_all(&coded, &lengths, 10, &mut ends, &mut raw)?;
//! assert_eq!((raw.as_slice(), ends.as_slice()), (b"http://abx".as_slice(), [9, 10].as_slice()));
//! # Ok::<(), tercet_codec::CodecError>(())
//! ```

mod matcher;
#[cfg(test)]
mod tests;
mod train;

use std::sync::OnceLock;

use matcher::Matcher;

use crate::CodecError;

/// The most symbols of a table: one code is the escape.
pub const MAX_SYMBOLS: usize = 255;

/// The most bytes of a symbol.
pub const MAX_SYMBOL_BYTES: usize = 8;

/// The code that says that the next byte stands for itself.
pub const ESCAPE: u8 = 255;

const CODEC: &str = "fsst";

/// The bytes of a symbol, the first in the lowest place; the others are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Symbol {
    word: [u8; MAX_SYMBOL_BYTES],
    len: u8,
}

impl Symbol {
    /// `None` unless there are one to eight bytes.
    fn new(bytes: &[u8]) -> Option<Self> {
        let mut word = [0; MAX_SYMBOL_BYTES];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let len = u8::try_from(bytes.len()).ok().filter(|len| *len > 0)?;
        Some(Self { word, len })
    }

    fn bytes(&self) -> &[u8] {
        &self.word[..usize::from(self.len)]
    }
}

/// A symbol table.
#[derive(Debug)]
pub struct Symbols {
    count: usize,
    /// A place for each code; those of unknown codes and of the escape are empty.
    by_code: Box<[Symbol; 256]>,
    /// Made when something is encoded.
    matcher: OnceLock<Matcher>,
}

impl Symbols {
    /// The table of `symbols`: at most [`MAX_SYMBOLS`], each of 1 to [`MAX_SYMBOL_BYTES`] bytes.
    pub fn new<S: AsRef<[u8]>>(symbols: &[S]) -> Result<Self, CodecError> {
        if symbols.len() > MAX_SYMBOLS {
            return Err(CodecError::Parameter {
                codec: CODEC,
                name: "a table of",
                found: format!("{} symbols", symbols.len()),
                allowed: "there are at most 255",
            });
        }
        let mut by_code = Box::new([Symbol::default(); 256]);
        for (code, (place, symbol)) in by_code.iter_mut().zip(symbols).enumerate() {
            *place = Symbol::new(symbol.as_ref()).ok_or_else(|| CodecError::Parameter {
                codec: CODEC,
                name: "a symbol of",
                found: format!("{} bytes for code {code}", symbol.as_ref().len()),
                allowed: "it has 1 to 8",
            })?;
        }
        Ok(Self { count: symbols.len(), by_code, matcher: OnceLock::new() })
    }

    /// A table for strings like these, found in a sample of them. The same strings give the same table; strings without
    /// anything in common may give an empty one.
    pub fn train<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Self {
        let found = train::symbols(strings);
        let mut by_code = Box::new([Symbol::default(); 256]);
        let count = found.len().min(MAX_SYMBOLS);
        by_code[..count].copy_from_slice(&found[..count]);
        Self { count, by_code, matcher: OnceLock::new() }
    }

    /// The symbols in the order of their codes.
    pub fn symbols(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.by_code[..self.count].iter().map(Symbol::bytes)
    }

    /// Appends the codes of `strings` to `coded`, and how many there are of each to `lengths`.
    pub fn encode_all<'a>(
        &self,
        strings: impl Iterator<Item = &'a [u8]>,
        lengths: &mut Vec<u32>,
        coded: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let mut end = coded.len();
        for string in strings {
            let start = end;
            end = self.encode_at(string, start, coded);
            let Ok(len) = u32::try_from(end - start) else {
                let detail = format!("a string of {} bytes takes {} codes", string.len(), end - start);
                return Err(CodecError::Encode { codec: CODEC, detail });
            };
            lengths.push(len);
        }
        coded.truncate(end);
        Ok(())
    }

    /// Appends the codes of `string` to `coded`.
    pub fn encode_one(&self, string: &[u8], coded: &mut Vec<u8>) {
        let end = self.encode_at(string, coded.len(), coded);
        coded.truncate(end);
    }

    /// Writes the codes of `string` from place `at` on, and returns where they end. What is behind them is room for others.
    fn encode_at(&self, string: &[u8], mut at: usize, coded: &mut Vec<u8>) -> usize {
        let matcher = self.matcher.get_or_init(|| Matcher::new(&self.by_code[..self.count]));
        // Two codes for each byte at the most.
        let most = at + 2 * string.len();
        if coded.len() < most {
            coded.resize(most.max(coded.capacity()), 0);
        }
        let places = &mut coded[..most];
        matcher.cut(string, |found| {
            if let Some(place) = places.get_mut(at..at + 2) {
                // A code that no escape stands before is written over by the next one.
                place[0] = if found.escaped { ESCAPE } else { found.code };
                place[1] = found.code;
            } else if let Some(place) = places.get_mut(at) {
                *place = found.code;
            }
            at += 1 + usize::from(found.escaped);
        });
        at
    }

    /// Appends the strings of `lengths` codes each, which are all of `coded`, to `raw`: `raw_total` bytes in all. `ends`
    /// gets the length of `raw` after each of them. After an error both are what they were.
    pub fn decode_all(
        &self,
        coded: &[u8],
        lengths: &[u32],
        raw_total: usize,
        ends: &mut Vec<u64>,
        raw: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let sum = lengths.iter().fold(0u64, |sum, len| sum.saturating_add(u64::from(*len)));
        if sum != coded.len() as u64 {
            let detail = format!("{} strings take {sum} codes, but there are {}", lengths.len(), coded.len());
            return Err(failed(detail));
        }
        if raw_total > coded.len().saturating_mul(MAX_SYMBOL_BYTES) {
            return Err(failed(format!("{} codes cannot be {raw_total} bytes", coded.len())));
        }
        reserve(raw, raw_total + MAX_SYMBOL_BYTES)?;
        reserve(ends, lengths.len())?;
        let (start, first_end) = (raw.len(), ends.len());
        raw.resize(start + raw_total + MAX_SYMBOL_BYTES, 0);
        let mut at = 0;
        let mut rest = coded;
        let mut decode = || {
            for (index, &len) in lengths.iter().enumerate() {
                let (string, behind) = rest.split_at(len as usize);
                rest = behind;
                at = self.decode_at(string, &mut raw[start..], at).map_err(|wrong| wrong.explain(index))?;
                ends.push((start + at) as u64);
            }
            if at == raw_total {
                return Ok(());
            }
            let (expected, found) = (raw_total as u64, at as u64);
            Err(CodecError::WrongLength { codec: CODEC, expected, found })
        };
        let result = decode();
        if result.is_ok() {
            raw.truncate(start + raw_total);
        } else {
            raw.truncate(start);
            ends.truncate(first_end);
        }
        result
    }

    /// Appends the string of all of `coded` to `raw`; nothing after an error.
    pub fn decode_one(&self, coded: &[u8], raw: &mut Vec<u8>) -> Result<(), CodecError> {
        let most = coded.len().saturating_mul(MAX_SYMBOL_BYTES).saturating_add(MAX_SYMBOL_BYTES);
        reserve(raw, most)?;
        let start = raw.len();
        raw.resize(start + most, 0);
        let end = self.decode_at(coded, &mut raw[start..], 0);
        raw.truncate(start + end.as_ref().copied().unwrap_or(0));
        end.map(drop).map_err(|wrong| wrong.explain(0))
    }

    /// Writes a string from place `at` on, and returns where it ends. Eight bytes are written whatever the symbol has, so
    /// `raw` is that much longer than what belongs there.
    fn decode_at(&self, coded: &[u8], raw: &mut [u8], mut at: usize) -> Result<usize, Wrong> {
        let mut rest = coded;
        // Several symbols at once: there is one look at the room for all of them.
        while let Some((four, behind)) = rest.split_first_chunk::<4>() {
            let symbols = four.map(|code| &self.by_code[usize::from(code)]);
            let Some(places) = raw.get_mut(at..at + 5 * MAX_SYMBOL_BYTES) else { break };
            if symbols.iter().any(|symbol| symbol.len == 0) {
                break;
            }
            let mut end = 0;
            for symbol in symbols {
                places[end..end + MAX_SYMBOL_BYTES].copy_from_slice(&symbol.word);
                end += usize::from(symbol.len);
            }
            at += end;
            rest = behind;
        }
        let mut codes = rest.iter();
        while let Some(&code) = codes.next() {
            let Some(place) = raw.get_mut(at..at + MAX_SYMBOL_BYTES) else { return Err(Wrong::TooLong) };
            let symbol = self.by_code[usize::from(code)];
            place.copy_from_slice(&symbol.word);
            at += usize::from(symbol.len);
            if symbol.len == 0 {
                if code != ESCAPE {
                    return Err(Wrong::Unknown(code));
                }
                place[0] = *codes.next().ok_or(Wrong::LoneEscape)?;
                at += 1;
            }
        }
        Ok(at)
    }
}

/// What is wrong with a coded string.
enum Wrong {
    Unknown(u8),
    LoneEscape,
    TooLong,
}

impl Wrong {
    #[cold]
    fn explain(self, string: usize) -> CodecError {
        failed(match self {
            Self::Unknown(code) => format!("string {string} has code {code}, which no symbol has"),
            Self::LoneEscape => format!("string {string} ends with an escape and nothing behind it"),
            Self::TooLong => format!("string {string} and those before it are longer than all should be"),
        })
    }
}

fn reserve<T>(of: &mut Vec<T>, more: usize) -> Result<(), CodecError> {
    let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
    of.try_reserve(more).map_err(|_| CodecError::OutOfMemory { codec: CODEC, bytes })
}

fn failed(detail: String) -> CodecError {
    CodecError::Decode { codec: CODEC, detail }
}
