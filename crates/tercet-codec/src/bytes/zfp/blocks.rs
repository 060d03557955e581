//! Blocks of four values in a stream of 64-bit words.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use zfp_rs::codec::block::decode_block;
use zfp_rs::{
    ZfpBitStream, ZfpBitStreamRef, ZfpConfig, ZfpDimensionality, ZfpExecution, ZfpField, ZfpMode,
    ZfpScalarType, ZfpStreamAlignment,
};

use super::{CODEC, Zfp};
use crate::CodecError;

const VALUE_BYTES: usize = 8;
const WORD_BYTES: usize = 8;

/// Values of one block.
const BLOCK: usize = 4;

/// Values per task, in whole blocks.
const PIECE: usize = 1 << 16;

pub(super) fn config(mode: &Zfp) -> Result<ZfpConfig, CodecError> {
    mode.check()?;
    match *mode {
        Zfp::FixedRate(rate) => {
            let unaligned = ZfpStreamAlignment::Unaligned;
            ZfpConfig::fixed_rate(rate, ZfpScalarType::F64, ZfpDimensionality::D1, unaligned).map_err(
                |error| {
                    let found = format!("{rate} ({error})");
                    CodecError::Parameter {
                        codec: CODEC,
                        name: "rate",
                        found,
                        allowed: "a rate that zfp supports",
                    }
                },
            )
        }
        Zfp::FixedPrecision(planes) => Ok(ZfpConfig::fixed_precision(planes)),
        Zfp::FixedAccuracy(tolerance) => Ok(ZfpConfig::fixed_accuracy(tolerance)),
    }
}

/// The number of values in `bytes` bytes.
pub(super) fn count(bytes: usize) -> Result<usize, CodecError> {
    if bytes.is_multiple_of(VALUE_BYTES) {
        return Ok(bytes / VALUE_BYTES);
    }
    let found = format!("{bytes} bytes");
    Err(CodecError::Parameter { codec: CODEC, name: "values of", found, allowed: "whole float64 values" })
}

/// The values; copied only if memory is misaligned.
pub(super) fn doubles(bytes: &[u8]) -> Result<Cow<'_, [f64]>, CodecError> {
    count(bytes.len())?;
    #[cfg(target_endian = "little")]
    if let Ok(values) = bytemuck::try_cast_slice(bytes) {
        return Ok(Cow::Borrowed(values));
    }
    let mut values = reserved(bytes.len() / VALUE_BYTES)?;
    values.extend(bytes.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value)));
    Ok(Cow::Owned(values))
}

/// The words of a stream; an incomplete last word is padded with zeros.
fn words(stored: &[u8]) -> Result<Cow<'_, [u64]>, CodecError> {
    #[cfg(target_endian = "little")]
    if let Ok(words) = bytemuck::try_cast_slice(stored) {
        return Ok(Cow::Borrowed(words));
    }
    let (whole, rest) = stored.as_chunks::<WORD_BYTES>();
    let mut words = reserved(whole.len() + 1)?;
    words.extend(whole.iter().map(|word| u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [0; WORD_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        words.push(u64::from_le_bytes(last));
    }
    Ok(Cow::Owned(words))
}

fn reserved<T>(len: usize) -> Result<Vec<T>, CodecError> {
    let mut memory = Vec::new();
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    memory.try_reserve_exact(len).map_err(|_| CodecError::OutOfMemory { codec: CODEC, bytes })?;
    Ok(memory)
}

/// The index of the first value that zfp cannot represent.
pub(super) fn first_not_finite(values: &[f64]) -> Option<usize> {
    // A whole range is checked at once, without a branch per value, so that the check costs a read of memory.
    let piece = 1024;
    let at = values
        .chunks(piece)
        .position(|some| some.iter().fold(false, |bad, value| bad | !value.is_finite()))?;
    let start = at * piece;
    values[start..].iter().position(|value| !value.is_finite()).map(|within| start + within)
}

/// Appends the stream of `values`, which are not empty.
pub(super) fn append(config: &ZfpConfig, values: &[f64], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let failed = |detail: String| CodecError::Encode { codec: CODEC, detail };
    let field = ZfpField::new(values, [values.len()]).map_err(|error| failed(error.to_string()))?;
    let room = config
        .maximum_size(ZfpScalarType::F64, field.dims())
        .ok_or_else(|| failed("more values than memory can hold".to_owned()))?;
    let mut stream =
        ZfpBitStream::new(room).map_err(|_| CodecError::OutOfMemory { codec: CODEC, bytes: room as u64 })?;
    let pieces = if values.len() < 2 * PIECE || rayon::current_num_threads() == 1 {
        ZfpExecution::Serial
    } else {
        // The library joins the pieces bit by bit: the stream is that of one thread.
        ZfpExecution::Rayon { threads: 0, chunk_size: 0 }
    };
    stream.compress_with_execution(config, &field, pieces).map_err(|error| failed(error.to_string()))?;
    let words = stream.as_words();
    out.reserve(words.len() * WORD_BYTES);
    if cfg!(target_endian = "little") {
        out.extend_from_slice(bytemuck::cast_slice(words));
    } else {
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    Ok(())
}

/// Rejects a stream that decodes to a value outside the tolerance or to a non-finite value.
pub(super) fn prove(
    config: &ZfpConfig,
    stored: &[u8],
    values: &[f64],
    tolerance: Option<f64>,
) -> Result<(), CodecError> {
    let mut back = reserved(values.len() * VALUE_BYTES)?;
    back.resize(values.len() * VALUE_BYTES, 0);
    read(config, stored, 0..values.len() as u64, &mut back)?;
    let found = back.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value));
    let is_lost = |(found, value): &(f64, f64)| {
        !found.is_finite() || tolerance.is_some_and(|tolerance| (found - value).abs() > tolerance)
    };
    let lost = found.zip(values.iter().copied()).enumerate().find(|(_, pair)| is_lost(pair));
    let Some((index, (found, value))) = lost else { return Ok(()) };
    let detail =
        format!("value {index} is {value}, but would decode to {found}: neighbouring values are too large");
    Err(CodecError::Encode { codec: CODEC, detail })
}

/// Rejects a stream whose length does not fit `total` values.
pub(super) fn check_length(config: &ZfpConfig, total: u64, stored: usize) -> Result<(), CodecError> {
    let failed = |detail: String| CodecError::Decode { codec: CODEC, detail };
    let longest = |block_bits: u64| {
        let bits = total.div_ceil(BLOCK as u64).checked_mul(block_bits)?;
        Some(bits.div_ceil(64) * WORD_BYTES as u64)
    };
    let too_many = || failed(format!("{total} values are more than a stream can hold"));
    let stored = stored as u64;
    if config.mode() == ZfpMode::FixedRate {
        let exact = longest(u64::from(config.max_bits())).ok_or_else(too_many)?;
        if stored == exact {
            return Ok(());
        }
        return Err(failed(format!("{total} values take {exact} bytes at this rate, not {stored}")));
    }
    // A block of zeros takes one bit, so that a few bytes cannot declare endless blocks.
    let least = total.div_ceil(BLOCK as u64).div_ceil(8);
    // The size that the library itself would reserve for the values, including a header that these streams do not have.
    let values = usize::try_from(total).map_err(|_| too_many())?;
    let most = if values == 0 { Some(0) } else { config.maximum_size(ZfpScalarType::F64, [values]) };
    let most = most.ok_or_else(too_many)? as u64;
    if (least..=most).contains(&stored) {
        return Ok(());
    }
    Err(failed(format!("{total} values take {least} to {most} bytes, not {stored}")))
}

/// Decodes the values of a range that is not empty and inside the stream.
pub(super) fn read(
    config: &ZfpConfig,
    stored: &[u8],
    range: Range<u64>,
    values: &mut [u8],
) -> Result<(), CodecError> {
    if config.mode() == ZfpMode::FixedRate {
        return read_fixed(config, stored, range, values);
    }
    let words = words(stored)?;
    let mut stream = ZfpBitStreamRef::from_words(&words);
    let mut block = [0.0; BLOCK];
    let first_block = range.start / BLOCK as u64;
    for _ in 0..first_block {
        next(config, &mut stream, &mut block)?;
    }
    let skip = offset_in_block(range.start);
    read_on(config, &mut stream, skip, values)?;
    let (used, have) = (stream.read_pos(), stored.len() as u64 * 8);
    if used <= have {
        return Ok(());
    }
    let detail = format!("the values need {used} bits, but the stream has {have}");
    Err(CodecError::Decode { codec: CODEC, detail })
}

/// Fixed rate: each piece finds its own blocks.
fn read_fixed(
    config: &ZfpConfig,
    stored: &[u8],
    range: Range<u64>,
    values: &mut [u8],
) -> Result<(), CodecError> {
    let block_bits = u64::from(config.max_bits());
    let first_block = range.start / BLOCK as u64;
    // Only the words of the range, in case they are copied; the length has been checked.
    let start_word = first_block * block_bits / 64;
    let end_word = (range.end.div_ceil(BLOCK as u64) * block_bits).div_ceil(64);
    let bytes = |word: u64| usize::try_from(word * WORD_BYTES as u64).unwrap_or(usize::MAX);
    let within = stored.get(bytes(start_word)..bytes(end_word)).unwrap_or_default();
    let words = words(within)?;
    let start_bit = first_block * block_bits - start_word * 64;

    // The first piece ends at a block boundary.
    let skip = offset_in_block(range.start);
    let head_values = (PIECE - skip).min(values.len() / VALUE_BYTES);
    let (head, rest) = values.split_at_mut(head_values * VALUE_BYTES);
    let read_piece = |at: u64, skip: usize, piece: &mut [u8]| {
        let mut stream = ZfpBitStreamRef::from_words(&words);
        stream.seek_read(start_bit + at * (PIECE / BLOCK) as u64 * block_bits);
        read_on(config, &mut stream, skip, piece)
    };
    if rest.is_empty() {
        return read_piece(0, skip, head);
    }
    let pieces = rest.par_chunks_mut(PIECE * VALUE_BYTES).enumerate();
    let (head, rest) = rayon::join(
        || read_piece(0, skip, head),
        || pieces.try_for_each(|(at, piece)| read_piece(at as u64 + 1, 0, piece)),
    );
    head.and(rest)
}

fn offset_in_block(value: u64) -> usize {
    usize::try_from(value % BLOCK as u64).unwrap_or(0)
}

/// Fills `values` from the blocks at the cursor, without the first `skip` values of the first block.
fn read_on(
    config: &ZfpConfig,
    stream: &mut ZfpBitStreamRef<'_>,
    skip: usize,
    values: &mut [u8],
) -> Result<(), CodecError> {
    let mut block = [0.0; BLOCK];
    let (head, rest) = values.split_at_mut(values.len().min((BLOCK - skip) % BLOCK * VALUE_BYTES));
    if !head.is_empty() {
        next(config, stream, &mut block)?;
        put(&block[skip..], head);
    }
    for some in rest.chunks_mut(BLOCK * VALUE_BYTES) {
        next(config, stream, &mut block)?;
        put(&block, some);
    }
    Ok(())
}

fn next(
    config: &ZfpConfig,
    stream: &mut ZfpBitStreamRef<'_>,
    block: &mut [f64; BLOCK],
) -> Result<(), CodecError> {
    decode_block(stream, config, block, ZfpDimensionality::D1)
        .map(|_bits| ())
        .map_err(|error| CodecError::Decode { codec: CODEC, detail: error.to_string() })
}

fn put(block: &[f64], bytes: &mut [u8]) {
    for (slot, value) in bytes.as_chunks_mut().0.iter_mut().zip(block) {
        *slot = value.to_le_bytes();
    }
}
