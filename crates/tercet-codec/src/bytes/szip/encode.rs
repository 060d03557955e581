//! Stream encoder, on several threads for large inputs.

use rayon::prelude::*;

use super::bits::{Writer, window};
use super::container::Container;
use super::kernel::Kernel;
use super::layout::Layout;
use super::pack::Packer;
use super::{Szip, WORTH_THREADS, dispatch};
use crate::CodecError;

/// Appends the stream of the samples in `raw` to `out`; returns the start bit of every interval.
///
/// Samples with fewer bits than their bytes must fit them; signed ones must be sign-extended.
pub fn encode(raw: &[u8], szip: &Szip, out: &mut Vec<u8>) -> Result<Vec<u64>, CodecError> {
    szip.check_for_writing()?;
    if !raw.len().is_multiple_of(szip.sample_bytes()) {
        let detail = format!("{} bytes are not samples of {} bytes", raw.len(), szip.sample_bytes());
        return Err(CodecError::Encode { codec: "szip", detail });
    }
    let layout = &szip.layout();
    let interval_bytes = layout.interval() * szip.sample_bytes();
    let threads = rayon::current_num_threads();
    if threads == 1 || raw.len() < WORTH_THREADS || raw.len() <= interval_bytes {
        let before = out.len();
        let run = dispatch!(szip, C, kernel => pack_run::<_, C>(kernel, layout, raw, 0, out));
        return run.map(|(starts, _)| starts).inspect_err(|_| out.truncate(before));
    }
    let run_bytes = raw.len().div_ceil(interval_bytes).div_ceil(threads * 4) * interval_bytes;
    let runs = dispatch!(szip, C, kernel => pack_runs::<_, C>(kernel, layout, raw, run_bytes))?;
    join(&runs, out)
}

/// The bits of consecutive intervals, encoded independently.
struct Run {
    bytes: Vec<u8>,
    bits: u64,
    starts: Vec<u64>,
}

/// Encodes runs of `run_bytes` in parallel.
fn pack_runs<K: Kernel, C: Container>(
    kernel: K,
    layout: &Layout,
    raw: &[u8],
    run_bytes: usize,
) -> Result<Vec<Run>, CodecError> {
    // Final split of a run by its initial split; the last one does not matter.
    let carried: Vec<_> = raw.par_chunks(run_bytes).map(|run| carry::<K, C>(kernel, layout, run)).collect();
    let mut split = 0;
    let mut splits = Vec::with_capacity(carried.len());
    for (low, high) in carried {
        splits.push(split);
        split = split.clamp(low, high);
    }
    raw.par_chunks(run_bytes)
        .zip(splits)
        .map(|(run, split)| {
            let mut bytes = Vec::new();
            // Unused room costs nothing; growing copies.
            bytes.try_reserve_exact(run.len()).map_err(|_| out_of_memory(run.len() as u64))?;
            let (starts, bits) = pack_run::<K, C>(kernel, layout, run, split, &mut bytes)?;
            Ok(Run { bytes, bits, starts })
        })
        .collect()
}

/// Encodes consecutive intervals with an initial `split`; returns the start of each and the end of the last one.
fn pack_run<K: Kernel, C: Container>(
    kernel: K,
    layout: &Layout,
    raw: &[u8],
    split: u32,
    out: &mut Vec<u8>,
) -> Result<(Vec<u64>, u64), CodecError> {
    let mut packer = Packer::new(layout, split);
    let mut writer = Writer::default();
    let total = raw.len() / C::BYTES;
    let mut starts = Vec::new();
    let intervals = total.div_ceil(layout.interval());
    starts.try_reserve_exact(intervals).map_err(|_| out_of_memory(intervals as u64 * 8))?;
    for first in (0..total).step_by(layout.interval()) {
        let samples = layout.interval().min(total - first);
        starts.push(writer.position());
        writer.reserve(Packer::max_bytes(layout, samples)).map_err(out_of_memory)?;
        kernel.pack::<C>(&mut packer, &raw[first * C::BYTES..], samples, &mut writer);
        if packer.misfit() {
            let detail = format!("a sample has more than {} bits", layout.bits);
            return Err(CodecError::Encode { codec: "szip", detail });
        }
        writer.flush(out).map_err(out_of_memory)?;
    }
    let bits = writer.position();
    writer.finish(out).map_err(out_of_memory)?;
    Ok((starts, bits))
}

/// The range of final splits of a run.
///
/// A block moves the split into the range of its equally short splits, which is mostly a single one: the last block decides,
/// and the ones before it are examined only as far as needed.
fn carry<K: Kernel, C: Container>(kernel: K, layout: &Layout, run: &[u8]) -> (u32, u32) {
    let mut packer = Packer::new(layout, 0);
    let block_bytes = layout.block * C::BYTES;
    let mut range = (0, layout.max_split().unwrap_or_default());
    for index in (0..run.len().div_ceil(block_bytes)).rev() {
        if range.0 == range.1 {
            break;
        }
        let (before, block) = run.split_at(index * block_bytes);
        let last = (index % layout.rsi != 0).then(|| &before[before.len() - C::BYTES..]);
        if let Some((low, high)) = packer.splits::<K, C>(kernel, last, block) {
            range = (low.clamp(range.0, range.1), high.clamp(range.0, range.1));
        }
    }
    range
}

/// Appends the bits of all runs without gaps; returns the starts of their intervals.
fn join(runs: &[Run], out: &mut Vec<u8>) -> Result<Vec<u64>, CodecError> {
    let total: u64 = runs.iter().map(|run| run.bits).sum();
    let before = out.len();
    let bytes = total.div_ceil(8) as usize;
    out.try_reserve_exact(bytes).map_err(|_| out_of_memory(bytes as u64))?;
    out.resize(before + bytes, 0);
    let mut starts = Vec::new();
    let intervals = runs.iter().map(|run| run.starts.len()).sum();
    starts.try_reserve_exact(intervals).map_err(|_| out_of_memory(intervals as u64 * 8))?;
    let mut slots = Vec::with_capacity(runs.len());
    let (mut at, mut rest) = (0, &mut out[before..]);
    for run in runs {
        starts.extend(run.starts.iter().map(|start| at + start));
        // A run fills the bytes that start within it; the byte before belongs to the previous run.
        let end = at + run.bits;
        let own = (end.div_ceil(8) - at.div_ceil(8)) as usize;
        let (slot, tail) = rest.split_at_mut(own);
        slots.push((run, at, slot));
        (at, rest) = (end, tail);
    }
    slots.into_par_iter().for_each(|(run, at, slot)| shift((8 - at % 8) % 8, &run.bytes, slot));
    let mut at = 0;
    for run in runs {
        if at % 8 != 0 {
            out[before + (at / 8) as usize] |= run.bytes.first().copied().unwrap_or_default() >> (at % 8);
        }
        at += run.bits;
    }
    Ok(starts)
}

/// Copies the bits from bit `from` on.
fn shift(from: u64, bytes: &[u8], out: &mut [u8]) {
    let mut at = from;
    for chunk in out.chunks_mut(7) {
        chunk.copy_from_slice(&window(bytes, at).to_be_bytes()[..chunk.len()]);
        at += 56;
    }
}

fn out_of_memory(bytes: u64) -> CodecError {
    CodecError::OutOfMemory { codec: "szip", bytes }
}
