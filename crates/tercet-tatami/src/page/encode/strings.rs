//! Strings and bytes: plain, as dictionary codes, or as symbol codes (FSST).
//!
//! DICTIONARY is chosen by encoded size. FSST makes strings shorter but harder to compress, so the compressed size
//! decides. Bytes of columns in pages of the default size with Zstandard level 3 (columns of the FSST paper; comments
//! generated from the TPC-H vocabulary):
//!
//! | column | PLAIN | FSST | PLAIN, compressed | FSST, compressed | |
//! |---|---|---|---|---|---|
//! | 30,000 URLs | 1,671,598 | 813,876 | 653,461 | 620,319 | −5.1 % |
//! | 131,072 comments | 3,601,550 | 1,736,886 | 1,167,554 | 1,088,190 | −6.8 % |
//! | 100,000 hexadecimal numbers | 893,322 | 454,145 | 475,375 | 442,882 | −6.8 % |
//! | 100,000 UUIDs | 3,700,000 | 1,583,952 | 1,469,240 | 1,448,213 | −1.4 % |
//! | 12,829 distinct cities | 133,839 | 68,948 | 68,344 | 64,709 | −5.3 % |
//! | 100,000 wiki titles | 2,342,244 | 1,497,783 | 1,208,638 | 1,216,602 | +0.7 % |
//! | 2,301 Japanese strings | 208,425 | 105,950 | 73,217 | 75,435 | +3.0 % |
//!
//! One page in [`MEASURED_PAGES`] of a column is measured: a sample of it is compressed in both encodings, and where the
//! samples differ little ([`CLEARLY_BETTER_PERCENT`]) the entire page is. The shorter encoding is used until the next measured
//! page, and so is a dictionary whose payload is less than half as long. Without a codec the shorter payload wins. In both cases FSST must make the payload shorter, including the symbol
//! table for the first page that uses it.

use bytes::Bytes;
use tercet_codec::strings::fsst::Symbols;
use tercet_codec::varint;

use super::{Bounds, Stream, Tools, put_lengths};
use crate::dictionary::symbols_payload;
use crate::error::ErrorKind;
use crate::schema::Type;
use crate::wire::footer::Zone;
use crate::wire::ids::{Codec, Encoding};
use crate::writer::{Choice, Compressor, WriterOptions};

/// A sample that is shorter by this with FSST decides alone, and so does one that is longer by [`CLEARLY_WORSE_PERCENT`].
/// Otherwise the page decides: a sample is too short for distant repeats, which compress better without FSST, and for the
/// statistics of symbols, which compress better with it.
const CLEARLY_BETTER_PERCENT: usize = 4;
const CLEARLY_WORSE_PERCENT: usize = 4;

/// Larger pages are decided by the sample.
const MAX_COMPARED_BYTES: u64 = 4 << 20;

/// Larger pages are PLAIN: FSST codes can be twice as long as the values.
const MAX_PAGE_BYTES: u64 = 1 << 30;

/// One page in this many is measured.
const MEASURED_PAGES: u32 = 16;

/// The sample is this fraction of a page …
const SAMPLED_PART: u64 = 8;
/// … at least this many bytes …
const MIN_SAMPLE_BYTES: u64 = 16 << 10;
/// … at most this many …
const MAX_SAMPLE_BYTES: u64 = 64 << 10;
/// … in this many pieces.
const SAMPLE_PIECES: usize = 4;

/// The FSST symbol table of a string column, and whether to use it.
#[derive(Debug)]
pub(crate) struct StringEncoder {
    /// `None` if FSST cannot be used.
    compressor: Option<Compressor>,
    symbols: Option<Symbols>,
    /// Whether FSST won the last measurement.
    is_worthwhile: bool,
    /// Whether any page uses it.
    used: bool,
    /// Pages since the last measurement.
    since: u32,
}

impl StringEncoder {
    pub(super) fn new(kind: Type, options: &WriterOptions) -> Self {
        let may = options.is_native() && kind.is_bytes();
        Self {
            compressor: may.then(|| Compressor::new(options)),
            symbols: None,
            is_worthwhile: true,
            used: false,
            since: 0,
        }
    }

    /// The payload of the symbol table, if a page uses it.
    pub(crate) fn payload(&self) -> Option<Vec<u8>> {
        self.symbols.as_ref().filter(|_| self.used).map(symbols_payload)
    }

    /// FSST-encoded values, if they are shorter than `plain_len` and may compress better.
    fn encode(&mut self, values: &[&[u8]], plain_len: u64) -> Result<Option<Coded>, ErrorKind> {
        let Some(compressor) = self.compressor.as_ref().filter(|_| plain_len <= MAX_PAGE_BYTES) else {
            return Ok(None);
        };
        let is_due = self.since.is_multiple_of(MEASURED_PAGES);
        let measured = is_due && compressor.codec != Codec::None;
        self.since = self.since.wrapping_add(1);
        if !is_due && !self.is_worthwhile {
            return Ok(None);
        }
        let symbols = self.symbols.get_or_insert_with(|| Symbols::train(values.iter().copied()));
        let mut is_close = false;
        if measured {
            let gain = sampled_gain(*compressor, symbols, values, plain_len)?;
            is_close = gain == Gain::Close && plain_len <= MAX_COMPARED_BYTES;
            self.is_worthwhile = is_close || gain == Gain::Clear;
            if !self.is_worthwhile {
                return Ok(None);
            }
        } else if is_due {
            self.is_worthwhile = true;
        }
        let bytes = with_fsst(symbols, values)?;
        // The first page that uses the table also stores it.
        let table = if self.used { 0 } else { symbols_payload(symbols).len() as u64 };
        let is_shorter = bytes.len() as u64 + table < plain_len;
        if is_close && !is_shorter {
            self.is_worthwhile = false;
        }
        Ok(is_shorter.then_some(Coded { bytes, is_close }))
    }

    /// Whether the page that ends with these values is shorter with FSST when both are compressed, and its compressed form.
    fn compare(&mut self, plain: &[u8], coded: &[u8]) -> Result<(bool, Option<Choice>), ErrorKind> {
        let (Some(compressor), Some(symbols)) = (self.compressor, &self.symbols) else {
            return Ok((false, None));
        };
        let table = if self.used { 0 } else { compressor.record(&symbols_payload(symbols))?.1.len() };
        let (with, without) =
            rayon::join(|| compressor.payload(coded, None), || compressor.payload(plain, None));
        let (with, without) = (with?, without?);
        self.is_worthwhile = with.stored_len(coded) + table < without.stored_len(plain);
        Ok((self.is_worthwhile, Some(if self.is_worthwhile { with } else { without })))
    }
}

/// FSST-encoded values.
#[derive(Debug)]
struct Coded {
    bytes: Vec<u8>,
    /// Whether the entire page must be compared.
    is_close: bool,
}

/// The gain of FSST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gain {
    None,
    Close,
    Clear,
}

/// The gain of FSST for a sample of a page, compressed.
fn sampled_gain(
    compressor: Compressor,
    symbols: &Symbols,
    values: &[&[u8]],
    plain_len: u64,
) -> Result<Gain, ErrorKind> {
    let sample = sample(values, plain_len);
    let mut plain = Vec::new();
    put_plain(&sample, self::plain_len(&sample), &mut plain);
    let coded = with_fsst(symbols, &sample)?;
    if coded.len() >= plain.len() {
        return Ok(Gain::None);
    }
    let stored = |payload: &[u8]| Ok::<_, ErrorKind>(compressor.payload(payload, None)?.stored_len(payload));
    let (with, without) = (stored(&coded)?, stored(&plain)?);
    Ok(if with <= without - without / 100 * CLEARLY_BETTER_PERCENT {
        Gain::Clear
    } else if with <= without + without / 100 * CLEARLY_WORSE_PERCENT {
        Gain::Close
    } else {
        Gain::None
    })
}

/// Consecutive values from a few positions of a page.
fn sample<'a>(values: &[&'a [u8]], plain_len: u64) -> Vec<&'a [u8]> {
    let most = (plain_len / SAMPLED_PART).clamp(MIN_SAMPLE_BYTES, MAX_SAMPLE_BYTES);
    if plain_len <= 2 * most {
        return values.to_vec();
    }
    let mut out = Vec::new();
    for piece in 0..SAMPLE_PIECES {
        let mut left = most / SAMPLE_PIECES as u64;
        for value in &values[values.len() * piece / SAMPLE_PIECES..] {
            let len = value.len() as u64;
            if len > left {
                break;
            }
            left -= len;
            out.push(*value);
        }
    }
    if out.is_empty() { values.to_vec() } else { out }
}

/// Appends values in the shortest encoding.
pub(super) fn encode(values: &[&[u8]], tools: &mut Tools, out: &mut Vec<u8>) -> Result<Stream, ErrorKind> {
    let bounds = bounds(values);
    if values.is_empty() {
        return Ok(Stream::new(Encoding::Plain, bounds));
    }
    let plain_len = plain_len(values);
    let trial = tools.values.as_mut().and_then(|dictionary| dictionary.try_strings(values, plain_len));
    // A symbol has at most eight bytes: FSST cannot be shorter than this.
    let raw_bytes: u64 = values.iter().map(|value| value.len() as u64).sum();
    let unbeaten = trial.as_ref().is_some_and(|trial| trial.bytes <= raw_bytes / 8);
    let coded = if unbeaten { None } else { tools.text.encode(values, plain_len)? };
    if let (Some(dictionary), Some(trial)) = (&mut tools.values, trial) {
        // Ties: PLAIN, then DICTIONARY, then FSST.
        if coded.as_ref().is_none_or(|coded| trial.bytes <= coded.bytes.len() as u64) {
            // Far behind the dictionary: not tried until the next measurement.
            let is_far = |coded: &Coded| coded.bytes.len() as u64 > trial.bytes.saturating_mul(2);
            if coded.as_ref().is_some_and(is_far) {
                tools.text.is_worthwhile = false;
            }
            dictionary.keep(&trial, out)?;
            return Ok(Stream::new(Encoding::Dictionary, bounds));
        }
        dictionary.roll_back(&trial);
    }
    let Some(coded) = coded else {
        put_plain(values, plain_len, out);
        return Ok(Stream::new(Encoding::Plain, bounds));
    };
    let (mut is_fsst, mut compressed) = (true, None);
    if coded.is_close {
        // The values are the end of the payload, so that the compressed form of the page can be kept.
        let mut plain = out.clone();
        put_plain(values, plain_len, &mut plain);
        out.extend_from_slice(&coded.bytes);
        (is_fsst, compressed) = tools.text.compare(&plain, out)?;
        if !is_fsst {
            *out = plain;
        }
    } else {
        out.extend_from_slice(&coded.bytes);
    }
    tools.text.used |= is_fsst;
    let encoding = if is_fsst { Encoding::Fsst } else { Encoding::Plain };
    Ok(Stream { compressed, ..Stream::new(encoding, bounds) })
}

/// `uvarint raw_total`, the lengths, and the codes.
fn with_fsst(symbols: &Symbols, values: &[&[u8]]) -> Result<Vec<u8>, ErrorKind> {
    let raw_total: usize = values.iter().map(|value| value.len()).sum();
    let (mut lengths, mut coded) = (Vec::with_capacity(values.len()), Vec::with_capacity(raw_total));
    symbols.encode_all(values.iter().copied(), &mut lengths, &mut coded)?;
    let mut out = Vec::with_capacity(coded.len() + lengths.len() + 16);
    varint::put(raw_total as u64, &mut out);
    put_lengths(&lengths, &mut out)?;
    out.extend_from_slice(&coded);
    Ok(out)
}

fn plain_len(values: &[&[u8]]) -> u64 {
    values.iter().map(|value| value.len() as u64 + varint::len(value.len() as u64) as u64).sum()
}

fn put_plain(values: &[&[u8]], len: u64, out: &mut Vec<u8>) {
    out.reserve(usize::try_from(len).unwrap_or(0));
    for value in values {
        varint::put(value.len() as u64, out);
        out.extend_from_slice(value);
    }
}

fn bounds(values: &[&[u8]]) -> Bounds {
    let Some(&first) = values.first() else { return Bounds::default() };
    let (mut min, mut max) = ((prefix(first), first), (prefix(first), first));
    for &value in values {
        // Prefixes differ for nearly all values; few are compared byte by byte.
        let prefix = prefix(value);
        if prefix < min.0 || prefix == min.0 && value < min.1 {
            min = (prefix, value);
        }
        if prefix > max.0 || prefix == max.0 && value > max.1 {
            max = (prefix, value);
        }
    }
    let zone = Zone { min: Bytes::copy_from_slice(min.1), max: Bytes::copy_from_slice(max.1) };
    Bounds { zone: Some(zone), has_nan: false }
}

/// The first eight bytes as a number that sorts like the strings; zero-padded.
fn prefix(value: &[u8]) -> u64 {
    if let Some(bytes) = value.first_chunk() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..value.len()].copy_from_slice(value);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_equal_min_and_max() {
        let strings: [&[u8]; 9] = [
            b"b",
            b"b\0",
            b"bbbbbbbbb",
            b"bbbbbbbba",
            b"",
            b"\0",
            b"\xff",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\0",
            b"a",
        ];
        for from in 0..strings.len() {
            for to in from + 1..=strings.len() {
                let zone = bounds(&strings[from..to]).zone.unwrap();
                assert_eq!(Some(&zone.min[..]), strings[from..to].iter().copied().min());
                assert_eq!(Some(&zone.max[..]), strings[from..to].iter().copied().max());
            }
        }
        assert!(bounds(&[]).zone.is_none());
    }

    #[test]
    fn fsst_pages_have_the_expected_bytes() {
        let symbols = Symbols::new(&[&b"http://"[..], b"a", b"ab"]).unwrap();
        let page = with_fsst(&symbols, &[b"http://ab", b"x"]).unwrap();
        assert_eq!(page, [0x0a, 0x03, 0x03, 0x01, 0x02, 0x00, 0x00, 0x02, 0xff, 0x78]);
        let record = symbols_payload(&symbols);
        assert_eq!(
            record,
            [0x01, 0x03, 0x46, 0x00, 0x68, 0x74, 0x74, 0x70, 0x3a, 0x2f, 0x2f, 0x61, 0x61, 0x62]
        );
    }
}
