//! Validation of Parquet pages before they are decoded: the decoder panics or over-allocates on some damaged pages.

use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use super::thrift::{Stop, varint};

/// Largest number of groups in a bit-packed run; the decoder multiplies it without overflow check.
const MAX_GROUPS: u64 = 1 << 32;

/// Validates the pages of one column chunk, in order.
pub(super) struct PageCheck {
    physical: Physical,
    /// Maximum repetition and definition levels.
    max_levels: [i16; 2],
    /// Number of values of the column chunk.
    chunk_values: i64,
    /// Number of values of the dictionary page.
    dictionary: Option<u32>,
}

impl PageCheck {
    pub(super) fn new(column: &ColumnDescriptor, chunk_values: i64) -> Self {
        let max_levels = [column.max_rep_level(), column.max_def_level()];
        Self { physical: column.physical_type(), max_levels, chunk_values, dictionary: None }
    }

    /// Checks counts, levels, dictionary indices and delta-encoded lengths of a page against its bytes.
    pub(super) fn check(&mut self, page: &Page) -> Result<(), String> {
        let (bytes, count) = (page.buffer(), page.num_values());
        if page.is_dictionary_page() {
            // A value takes at least one bit.
            if u64::from(count) > bytes.len() as u64 * 8 {
                return Err(format!("dictionary page declares {count} values in {} bytes", bytes.len()));
            }
            self.dictionary = Some(count);
            return Ok(());
        }
        if i64::from(count) > self.chunk_values {
            let chunk = self.chunk_values;
            return Err(format!("page declares {count} values, but its column chunk has {chunk}"));
        }
        let parts = split(page, self.max_levels).ok_or_else(|| "truncated page: no values".to_owned())?;
        for (levels, max_level) in parts.levels.into_iter().zip(self.max_levels) {
            if let Some(levels) = levels {
                runs(levels, bit_width(max_level.unsigned_abs().into()), count.into(), None)?;
            }
        }
        match page.encoding() {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => self.check_indices(&parts, count),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                let (rest, _, total) = delta_lengths(parts.values, count)?;
                fits(total, rest)
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let (rest, prefixes, _) = delta_lengths(parts.values, count)?;
                let (rest, suffixes, total) = delta_lengths(rest, count)?;
                if prefixes != suffixes {
                    return Err(format!("{prefixes} prefix lengths for {suffixes} suffix lengths"));
                }
                fits(total, rest)
            }
            _ => Ok(()),
        }
    }

    fn check_indices(&self, parts: &Parts<'_>, count: u32) -> Result<(), String> {
        let Some(dictionary) = self.dictionary else {
            return Err("dictionary-encoded page without dictionary page".to_owned());
        };
        let Some((width, indices)) = parts.values.split_first() else {
            return Err("truncated page: no dictionary indices".to_owned());
        };
        if *width > 32 {
            return Err(format!("dictionary indices of {width} bits"));
        }
        // The decoders of other types check the indices.
        if self.physical != Physical::FIXED_LEN_BYTE_ARRAY || dictionary == 0 {
            return Ok(());
        }
        let present = self.present_values(parts, count)?;
        runs(
            indices,
            u32::from(*width),
            present,
            Some(&mut |index, _| {
                if index < u64::from(dictionary) {
                    return Ok(());
                }
                Err(format!("dictionary index {index} in a dictionary of {dictionary} values"))
            }),
        )
    }

    /// The number of values that are not null: those whose definition level is the maximum.
    fn present_values(&self, parts: &Parts<'_>, count: u32) -> Result<u64, String> {
        let max_level = u64::from(self.max_levels[1].unsigned_abs());
        if max_level == 0 {
            return Ok(count.into());
        }
        // Bit-packed levels are deprecated; their values cannot be counted here.
        let Some(levels) = parts.levels[1] else { return Ok(0) };
        let mut present = 0;
        let mut each = |level, repeat: u64| {
            present += if level == max_level { repeat } else { 0 };
            Ok(())
        };
        runs(levels, bit_width(max_level), count.into(), Some(&mut each))?;
        Ok(present)
    }
}

fn fits(total: u64, bytes: &[u8]) -> Result<(), String> {
    if total <= bytes.len() as u64 {
        return Ok(());
    }
    Err(format!("strings of {total} bytes in {} bytes", bytes.len()))
}

/// The parts of a data page.
struct Parts<'a> {
    /// RLE-encoded repetition and definition levels, where the column has them.
    levels: [Option<&'a [u8]>; 2],
    values: &'a [u8],
}

fn bit_width(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
}

/// Splits a data page into levels and values; `None` if it is too short.
fn split(page: &Page, max_levels: [i16; 2]) -> Option<Parts<'_>> {
    match page {
        Page::DataPage { buf, num_values, rep_level_encoding, def_level_encoding, .. } => {
            let (mut values, mut levels): (&[u8], _) = (buf, [None; 2]);
            let encodings = [rep_level_encoding, def_level_encoding];
            for (index, (max_level, encoding)) in max_levels.into_iter().zip(encodings).enumerate() {
                if max_level <= 0 {
                    continue;
                }
                let is_rle = *encoding == Encoding::RLE;
                let len = if is_rle {
                    let (len, rest) = values.split_first_chunk::<4>()?;
                    values = rest;
                    u64::from(u32::from_le_bytes(*len))
                } else {
                    let bits = u64::from(bit_width(max_level.unsigned_abs().into()));
                    (u64::from(*num_values) * bits).div_ceil(8)
                };
                let (level_bytes, rest) = values.split_at_checked(usize::try_from(len).ok()?)?;
                (levels[index], values) = (is_rle.then_some(level_bytes), rest);
            }
            Some(Parts { levels, values })
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let (rep, rest) = buf.split_at_checked(usize::try_from(*rep_levels_byte_len).ok()?)?;
            let (def, values) = rest.split_at_checked(usize::try_from(*def_levels_byte_len).ok()?)?;
            let [max_rep, max_def] = max_levels.map(|level| level > 0);
            Some(Parts { levels: [max_rep.then_some(rep), max_def.then_some(def)], values })
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// Visitor of a value and its number of repetitions.
type Visitor<'v> = &'v mut dyn FnMut(u64, u64) -> Result<(), String>;

/// Walks over the runs of RLE/bit-packed hybrid data until `count` values. Ends early where the data does; the decoder reports
/// that. Bit-packed runs must have the bytes of their values.
fn runs(mut bytes: &[u8], width: u32, count: u64, mut each: Option<Visitor<'_>>) -> Result<(), String> {
    let mut missing = count;
    while missing > 0 && !bytes.is_empty() {
        let (header, rest) = varint(bytes).map_err(message)?;
        if header & 1 == 0 {
            let len = usize::try_from(width.div_ceil(8)).unwrap_or(0);
            let Some((value, rest)) = rest.split_at_checked(len) else { return Ok(()) };
            let value = value.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
            let repeat = (header >> 1).min(missing);
            if let Some(each) = each.as_mut().filter(|_| repeat > 0) {
                each(value, repeat)?;
            }
            (missing, bytes) = (missing - repeat, rest);
            continue;
        }
        let groups = header >> 1;
        if groups > MAX_GROUPS {
            return Err(format!("bit-packed run of {groups} groups"));
        }
        let values = (groups * 8).min(missing);
        // Some writers truncate the last group.
        if (rest.len() as u64).saturating_mul(8) < values.saturating_mul(width.into()) {
            return Err(format!("bit-packed run of {values} values in {} bytes", rest.len()));
        }
        if let Some(each) = &mut each {
            (0..values).try_for_each(|index| each(packed(rest, index, width), 1))?;
        }
        let len = usize::try_from(groups * u64::from(width)).unwrap_or(usize::MAX);
        (missing, bytes) = (missing - values, rest.get(len..).unwrap_or_default());
    }
    Ok(())
}

/// A bit-packed value of at most 32 bits, least significant bit first.
fn packed(bytes: &[u8], index: u64, width: u32) -> u64 {
    let bit = index * u64::from(width);
    let start = usize::try_from(bit / 8).unwrap_or(usize::MAX);
    let mut word = [0; 8];
    let bytes = bytes.get(start..).unwrap_or_default();
    let len = bytes.len().min(word.len());
    word[..len].copy_from_slice(&bytes[..len]);
    let value = u64::from_le_bytes(word) >> (bit % 8);
    value & ((1 << width.min(32)) - 1)
}

fn message(stop: Stop) -> String {
    match stop {
        Stop::Short => "truncated string lengths".to_owned(),
        Stop::Wrong(message) => message,
    }
}

/// Decodes delta-encoded lengths, for which the decoder allocates at once. Returns the bytes after them, their number and their
/// sum.
fn delta_lengths(bytes: &[u8], max_count: u32) -> Result<(&[u8], u64, u64), String> {
    let truncated = || message(Stop::Short);
    let (block, left) = varint(bytes).map_err(message)?;
    let (parts, left) = varint(left).map_err(message)?;
    let (count, left) = varint(left).map_err(message)?;
    let (first, mut left) = varint(left).map_err(message)?;
    if count > u64::from(max_count) {
        return Err(format!("declares {count} string lengths, but the page has {max_count} values"));
    }
    let per_part = block.checked_div(parts).filter(|per_part| *per_part > 0 && *per_part <= 1 << 31);
    let per_part =
        per_part.ok_or_else(|| format!("invalid delta block: {block} values in {parts} miniblocks"))?;
    // The decoder computes in 32 bits with wraparound.
    let (mut last, mut total) = (low32(zigzag(first)), 0_u64);
    let mut add = |length: i32| {
        let length = u64::try_from(length).map_err(|_| format!("negative string length {length}"))?;
        total = total.saturating_add(length);
        Ok::<_, String>(())
    };
    if count > 0 {
        add(last)?;
    }
    let mut missing = count.saturating_sub(1);
    while missing > 0 {
        let (min_delta, rest) = varint(left).map_err(message)?;
        let min_delta = low32(zigzag(min_delta));
        let widths = usize::try_from(parts).ok().and_then(|parts| rest.split_at_checked(parts));
        let (widths, mut rest) = widths.ok_or_else(truncated)?;
        for width in widths {
            if missing == 0 {
                break;
            }
            if *width > 32 {
                return Err(format!("delta miniblock of {width} bits"));
            }
            let len = usize::try_from(u64::from(*width) * per_part / 8).map_err(|_| truncated())?;
            let (values, after) = rest.split_at_checked(len).ok_or_else(truncated)?;
            for index in 0..per_part.min(missing) {
                let delta = u32::try_from(packed(values, index, u32::from(*width))).unwrap_or(0);
                last = last.wrapping_add(min_delta).wrapping_add(delta.cast_signed());
                add(last)?;
            }
            missing = missing.saturating_sub(per_part);
            rest = after;
        }
        left = rest;
    }
    Ok((left, count, total))
}

fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// The low 32 bits, as two's complement.
fn low32(number: i64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_lengths_are_validated_before_allocation() {
        // Blocks of 128 in four miniblocks, three lengths: 5, 6 and 9, with two bits for each difference.
        let good = [0x80, 1, 4, 3, 10, 2, 2, 0, 0, 0, 0b1000, 0, 0, 0, 0, 0, 0, 0, 99];
        assert_eq!(delta_lengths(&good, 3), Ok((&[99][..], 3, 5 + 6 + 9)));
        assert!(delta_lengths(&good, 2).unwrap_err().contains("3 string lengths"));
        for len in 0..good.len() - 1 {
            assert!(delta_lengths(&good[..len], 3).is_err(), "{len}");
        }
        assert!(delta_lengths(&[0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 10], 3).is_err());
        assert!(delta_lengths(&[0x80, 1, 0, 3, 10, 2, 2, 0, 0, 0], 3).is_err());
        // The first length is -1.
        assert!(delta_lengths(&[0x80, 1, 4, 1, 1], 3).unwrap_err().contains("negative"));
    }

    #[test]
    fn runs_have_the_bytes_of_their_values() {
        let all = |bytes: &[u8], width: u32, count: u64| {
            let mut out = Vec::new();
            let mut each = |value, repeat| {
                out.push((value, repeat));
                Ok(())
            };
            runs(bytes, width, count, Some(&mut each)).map(|()| out)
        };
        // A run of four times 1, then a group of eight bits.
        assert_eq!(all(&[8, 1, 3, 0b101], 1, 7).unwrap(), [(1, 4), (1, 1), (0, 1), (1, 1)]);
        assert_eq!(all(&[5, 0x34, 0x12, 0x56], 12, 2).unwrap(), [(0x234, 1), (0x561, 1)]);
        assert!(all(&[3], 1, 1).is_err());
        assert!(all(&[9, 0xff], 1, 9).is_err());
        assert_eq!(all(&[], 1, 9).unwrap(), []);
    }
}
