//! FSST: a table of up to 255 symbols of one to eight bytes; strings are sequences of symbol codes.
//!
//! Code `i` is symbol `i`; code 255 is the escape: the next byte is a literal. Strings are encoded separately, so that each
//! can be decoded without the others. A string without symbols takes twice its bytes.
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

/// Maximum number of symbols: one code is the escape.
pub const MAX_SYMBOLS: usize = 255;

/// Maximum bytes of a symbol.
pub const MAX_SYMBOL_BYTES: usize = 8;

/// The escape code: the next byte is a literal.
pub const ESCAPE: u8 = 255;

const CODEC: &str = "fsst";

/// The bytes of a symbol, the first as lowest byte; the others are zero.
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
    /// One entry per code; unknown codes and the escape are empty.
    by_code: Box<[Symbol; 256]>,
    /// Built on the first encoding.
    matcher: OnceLock<Matcher>,
}

impl Symbols {
    /// Builds the table of `symbols`: at most [`MAX_SYMBOLS`], each of 1 to [`MAX_SYMBOL_BYTES`] bytes.
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
        for (code, (slot, symbol)) in by_code.iter_mut().zip(symbols).enumerate() {
            *slot = Symbol::new(symbol.as_ref()).ok_or_else(|| CodecError::Parameter {
                codec: CODEC,
                name: "a symbol of",
                found: format!("{} bytes for code {code}", symbol.as_ref().len()),
                allowed: "it has 1 to 8",
            })?;
        }
        Ok(Self { count: symbols.len(), by_code, matcher: OnceLock::new() })
    }

    /// Trains a table on a sample of strings. Deterministic; strings without anything in common may give an empty table.
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

    /// Encodes `strings`: appends their codes to `coded`, and the number of codes of each to `lengths`.
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

    /// Writes the codes of `string` from position `at` on, and returns their end. Later bytes are scratch space.
    fn encode_at(&self, string: &[u8], mut at: usize, coded: &mut Vec<u8>) -> usize {
        let matcher = self.matcher.get_or_init(|| Matcher::new(&self.by_code[..self.count]));
        // At most two codes per byte.
        let most = at + 2 * string.len();
        if coded.len() < most {
            coded.resize(most.max(coded.capacity()), 0);
        }
        let slots = &mut coded[..most];
        matcher.cut(string, |found| {
            if let Some(slot) = slots.get_mut(at..at + 2) {
                // A code without escape is overwritten by the next one.
                slot[0] = if found.escaped { ESCAPE } else { found.code };
                slot[1] = found.code;
            } else if let Some(slot) = slots.get_mut(at) {
                *slot = found.code;
            }
            at += 1 + usize::from(found.escaped);
        });
        at
    }

    /// Decodes strings of `lengths` codes each, together all of `coded`, and appends them to `raw`: `raw_total` bytes in total.
    /// `ends` gets the length of `raw` after each string. After an error both are unchanged.
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
                let (string, tail) = rest.split_at(len as usize);
                rest = tail;
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

    /// Decodes all of `coded` as one string and appends it to `raw`; nothing after an error.
    pub fn decode_one(&self, coded: &[u8], raw: &mut Vec<u8>) -> Result<(), CodecError> {
        let most = coded.len().saturating_mul(MAX_SYMBOL_BYTES).saturating_add(MAX_SYMBOL_BYTES);
        reserve(raw, most)?;
        let start = raw.len();
        raw.resize(start + most, 0);
        let end = self.decode_at(coded, &mut raw[start..], 0);
        raw.truncate(start + end.as_ref().copied().unwrap_or(0));
        end.map(drop).map_err(|wrong| wrong.explain(0))
    }

    /// Writes a string from position `at` on, and returns its end. Eight bytes are written for every symbol, so `raw` must be
    /// that much longer.
    fn decode_at(&self, coded: &[u8], raw: &mut [u8], mut at: usize) -> Result<usize, FsstError> {
        let mut rest = coded;
        // Several symbols at once: one bounds check for all of them.
        while let Some((four, tail)) = rest.split_first_chunk::<4>() {
            let symbols = four.map(|code| &self.by_code[usize::from(code)]);
            let Some(slots) = raw.get_mut(at..at + 5 * MAX_SYMBOL_BYTES) else { break };
            if symbols.iter().any(|symbol| symbol.len == 0) {
                break;
            }
            let mut end = 0;
            for symbol in symbols {
                slots[end..end + MAX_SYMBOL_BYTES].copy_from_slice(&symbol.word);
                end += usize::from(symbol.len);
            }
            at += end;
            rest = tail;
        }
        let mut codes = rest.iter();
        while let Some(&code) = codes.next() {
            let Some(slot) = raw.get_mut(at..at + MAX_SYMBOL_BYTES) else { return Err(FsstError::TooLong) };
            let symbol = self.by_code[usize::from(code)];
            slot.copy_from_slice(&symbol.word);
            at += usize::from(symbol.len);
            if symbol.len == 0 {
                if code != ESCAPE {
                    return Err(FsstError::Unknown(code));
                }
                slot[0] = *codes.next().ok_or(FsstError::LoneEscape)?;
                at += 1;
            }
        }
        Ok(at)
    }
}

/// Error of an encoded string.
enum FsstError {
    Unknown(u8),
    LoneEscape,
    TooLong,
}

impl FsstError {
    #[cold]
    fn explain(self, string: usize) -> CodecError {
        failed(match self {
            Self::Unknown(code) => format!("string {string}: unknown code {code}"),
            Self::LoneEscape => format!("string {string} ends with an incomplete escape"),
            Self::TooLong => format!("string {string}: the strings exceed the declared total"),
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
