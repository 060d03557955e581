//! Stream decoder: whole streams on several threads, or some intervals.

use rayon::prelude::*;

use super::bits::window;
use super::container::Container;
use super::kernel::Kernel;
use super::layout::{Fault, Layout};
use super::unpack::Scratch;
use super::{Szip, WORTH_THREADS, dispatch};
use crate::CodecError;

/// Observations while decoding a whole stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decoded {
    /// Whether all given offsets are correct; `None` if none were given.
    pub offsets_right: Option<bool>,
    /// Whether the stream is not padded although its flags declare it.
    pub padding_missing: bool,
}

/// Decodes `stored` into exactly `raw.len()` bytes; the stream must end right after them.
///
/// `offsets` are the declared bit positions of the intervals. They are verified and enable several threads, but never change
/// the result.
///
/// With [`super::flags::PAD_INTERVALS`] unpadded streams are accepted too, because some writers set the flag and do not pad.
/// The rare stream that is valid both ways is decided by the offsets, or rejected.
pub fn decode(
    stored: &[u8],
    szip: &Szip,
    offsets: Option<&[u64]>,
    raw: &mut [u8],
) -> Result<Decoded, CodecError> {
    if !raw.len().is_multiple_of(szip.sample_bytes()) {
        let detail = format!("{} bytes are not samples of {} bytes", raw.len(), szip.sample_bytes());
        return Err(CodecError::Decode { codec: "szip", detail });
    }
    if szip.promises_padding() {
        return decode_doubtful(stored, szip, offsets, raw);
    }
    let offsets_right = decode_whole(stored, szip, offsets, raw)?;
    Ok(Decoded { offsets_right, padding_missing: false })
}

/// Decodes a stream that is padded or only declares it.
fn decode_doubtful(
    stored: &[u8],
    szip: &Szip,
    offsets: Option<&[u64]>,
    raw: &mut [u8],
) -> Result<Decoded, CodecError> {
    let padded = decode_whole(stored, szip, offsets, raw);
    let mut other = Vec::new();
    let out_of_memory = |_| CodecError::OutOfMemory { codec: "szip", bytes: raw.len() as u64 };
    other.try_reserve_exact(raw.len()).map_err(out_of_memory)?;
    other.resize(raw.len(), 0);
    let unpadded = decode_whole(stored, &szip.without_padding(), offsets, &mut other);
    let (offsets_right, padding_missing) = match (padded, unpadded) {
        (Err(failed), Err(_)) => return Err(failed),
        (Err(_), Ok(right)) | (Ok(Some(false)), Ok(right @ Some(true))) => (right, true),
        (Ok(right), Err(_)) | (Ok(right @ Some(true)), Ok(Some(false))) => (right, false),
        (Ok(right), Ok(_)) if raw == other => (right, false),
        (Ok(_), Ok(_)) => {
            let detail = "ambiguous: the stream is valid with padding and without".to_owned();
            return Err(CodecError::Decode { codec: "szip", detail });
        }
    };
    if padding_missing {
        raw.copy_from_slice(&other);
    }
    Ok(Decoded { offsets_right, padding_missing })
}

/// Decodes a whole stream whose padding is as declared; returns whether the offsets are correct.
fn decode_whole(
    stored: &[u8],
    szip: &Szip,
    offsets: Option<&[u64]>,
    raw: &mut [u8],
) -> Result<Option<bool>, CodecError> {
    let samples = (raw.len() / szip.sample_bytes()) as u64;
    let intervals = szip.intervals(samples);
    let complete = offsets.is_none_or(|offsets| offsets.len() as u64 == intervals);
    let hints = offsets.filter(|_| complete);
    let (end, right) = if rayon::current_num_threads() > 1 && raw.len() >= WORTH_THREADS && intervals > 1 {
        decode_parallel(stored, szip, samples, hints, raw)?
    } else {
        run(stored, szip, samples, Part { first: 0, at: 0, hints }, raw)?
    };
    let spare = (stored.len() as u64 * 8).saturating_sub(end);
    if spare >= 8 {
        return Err(error(Fault::TrailingBytes, intervals, end));
    }
    if spare > 0 && window(stored, end) >> (64 - spare) != 0 {
        return Err(error(Fault::Padding, intervals, end));
    }
    Ok(offsets.map(|_| complete && right))
}

/// Decodes runs of intervals on several threads, each from its hint or, without hints, from its true position. A run whose
/// hint turns out wrong when the run before it is complete is decoded again.
fn decode_parallel(
    stored: &[u8],
    szip: &Szip,
    samples: u64,
    hints: Option<&[u64]>,
    raw: &mut [u8],
) -> Result<(u64, bool), CodecError> {
    let mut found = vec![0];
    if hints.is_none() {
        index(stored, szip, samples, &mut found, u64::MAX)?;
    }
    let starts = hints.unwrap_or(&found);
    let per_run = starts.len().div_ceil(rayon::current_num_threads() * 4);
    let run_bytes = per_run * szip.layout().interval() * szip.sample_bytes();
    let part = |number: usize, at| Part { first: (number * per_run) as u64, at, hints };
    let runs: Vec<_> = raw
        .par_chunks_mut(run_bytes)
        .enumerate()
        .map(|(number, raw)| run(stored, szip, samples, part(number, starts[number * per_run]), raw))
        .collect();
    let (mut at, mut right) = (0, true);
    for (number, (done, raw)) in runs.into_iter().zip(raw.chunks_mut(run_bytes)).enumerate() {
        let (end, as_hinted) = if starts[number * per_run] == at {
            done?
        } else {
            (run(stored, szip, samples, part(number, at), raw)?.0, false)
        };
        (at, right) = (end, right && as_hinted);
    }
    Ok((at, right))
}

/// Start of a run of intervals.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// The first interval.
    first: u64,
    /// Its position.
    at: u64,
    /// The declared positions of all intervals.
    hints: Option<&'a [u64]>,
}

/// Decodes consecutive intervals; returns the bit after them and whether each started at its hint.
fn run(
    stored: &[u8],
    szip: &Szip,
    samples: u64,
    part: Part<'_>,
    raw: &mut [u8],
) -> Result<(u64, bool), CodecError> {
    let layout = &szip.layout();
    dispatch!(szip, C, kernel => run_with::<_, C>(kernel, layout, stored, samples, part, raw))
}

fn run_with<K: Kernel, C: Container>(
    kernel: K,
    layout: &Layout,
    stored: &[u8],
    samples: u64,
    part: Part<'_>,
    raw: &mut [u8],
) -> Result<(u64, bool), CodecError> {
    let mut scratch = Scratch::new(layout);
    let Part { first, mut at, hints } = part;
    if at > stored.len() as u64 * 8 {
        return Err(error(Fault::Ended, first, at));
    }
    let mut right = true;
    let mut done = first * layout.interval() as u64;
    for (number, raw) in (first..).zip(raw.chunks_mut(layout.interval() * C::BYTES)) {
        let hint = hints.and_then(|hints| hints.get(usize::try_from(number).ok()?));
        right &= hint.is_none_or(|&hint| hint == at);
        let failed = |fault| error(fault, number, at);
        let mut end = kernel.unpack::<C>(layout, stored, at, &mut scratch, raw).map_err(failed)?;
        let here = raw.len() / C::BYTES;
        done += here as u64;
        if here == layout.interval() || done == samples {
            end = layout.close(stored, end).map_err(failed)?;
        }
        at = end;
    }
    Ok((at, right))
}

/// Decodes the samples of consecutive intervals; the last one may be incomplete.
///
/// `at` is the bit where interval `first` of a stream of `samples` samples starts, see [`index()`]. Returns the bit after the
/// last block decoded: the start of the next interval if the last one is complete.
pub fn decode_from(
    stored: &[u8],
    szip: &Szip,
    samples: u64,
    first: u64,
    at: u64,
    raw: &mut [u8],
) -> Result<u64, CodecError> {
    let wanted = (raw.len() / szip.sample_bytes()) as u64;
    let left = first.checked_mul(szip.interval_samples()).and_then(|before| samples.checked_sub(before));
    if !raw.len().is_multiple_of(szip.sample_bytes()) || left.is_none_or(|left| left < wanted) {
        let detail = format!("{} bytes from interval {first} are not in {samples} samples", raw.len());
        return Err(CodecError::Decode { codec: "szip", detail });
    }
    Ok(run(stored, szip, samples, Part { first, at, hints: None }, raw)?.0)
}

/// Finds the starts of intervals, up to interval `upto` or the last one, by skipping over the stream.
///
/// `known` are the true starts found so far, from 0 on; an empty list is initialized. `samples` is the number of samples of
/// the whole stream. See [`Szip::promises_padding`] for streams that may be padded.
pub fn index(
    stored: &[u8],
    szip: &Szip,
    samples: u64,
    known: &mut Vec<u64>,
    upto: u64,
) -> Result<(), CodecError> {
    let layout = &szip.layout();
    let intervals = szip.intervals(samples).min(upto.saturating_add(1));
    let missing = intervals.saturating_sub(known.len() as u64);
    let room = usize::try_from(missing).ok().filter(|&room| known.try_reserve(room).is_ok());
    if room.is_none() {
        return Err(CodecError::OutOfMemory { codec: "szip", bytes: missing.saturating_mul(8) });
    }
    if known.is_empty() && intervals > 0 {
        known.push(0);
    }
    let mut at = known.last().copied().unwrap_or_default();
    if at > stored.len() as u64 * 8 {
        return Err(error(Fault::Ended, known.len() as u64 - 1, at));
    }
    dispatch!(@kernel kernel => {
        while (known.len() as u64) < intervals {
            // Another interval follows, so this one is complete.
            let end = kernel.skip(layout, stored, at, layout.rsi);
            let end = end.and_then(|end| layout.close(stored, end));
            at = end.map_err(|fault| error(fault, known.len() as u64 - 1, at))?;
            known.push(at);
        }
    });
    Ok(())
}

/// The error with its position.
#[cold]
fn error(fault: Fault, interval: u64, at: u64) -> CodecError {
    let detail = format!("{} (interval {interval} from bit {at})", fault.message());
    CodecError::Decode { codec: "szip", detail }
}
