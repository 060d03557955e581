//! Reference implementation of the schemes, bit by bit.

use super::*;
use crate::varint;

pub(super) fn encode<T: Integer>(scheme: Scheme, values: &[T]) -> Vec<u8> {
    match scheme {
        Scheme::Plain => {
            values.iter().flat_map(|value| value.widen().to_le_bytes()[..size_of::<T>()].to_vec()).collect()
        }
        Scheme::Rle => rle(values),
        Scheme::BitpackFor => match values.iter().min() {
            Some(base) => frame(&wide(values), base.widen()),
            None => vec![1],
        },
        Scheme::Delta => delta(&wide(values)),
        Scheme::GroupVarint => group_varint(&wide(values)),
        Scheme::Pfor => pfor(&wide(values)),
    }
}

fn wide<T: Integer>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.widen()).collect()
}

fn bits(mut value: u64) -> usize {
    let mut bits = 1;
    while value > 1 {
        value /= 2;
        bits += 1;
    }
    bits
}

/// The low `width` bits of each value.
fn packed(values: &[u64], width: usize) -> Vec<u8> {
    let mut out = vec![0; (values.len() * width).div_ceil(8)];
    for (index, value) in values.iter().enumerate() {
        for bit in 0..width {
            let at = index * width + bit;
            out[at / 8] |= u8::narrow(value >> bit & 1) << (at % 8);
        }
    }
    out
}

fn frame(values: &[u64], base: u64) -> Vec<u8> {
    let residuals: Vec<u64> = values.iter().map(|value| value.wrapping_sub(base)).collect();
    let width = bits(*residuals.iter().max().unwrap());
    let mut out = vec![u8::try_from(width).unwrap()];
    varint::put(base, &mut out);
    [out, packed(&residuals, width)].concat()
}

fn delta(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(&first) = values.first() else { return out };
    varint::put(first, &mut out);
    let zigzags: Vec<u64> = values
        .windows(2)
        .map(|pair| {
            let difference = pair[1].wrapping_sub(pair[0]).cast_signed();
            ((difference << 1) ^ (difference >> 63)).cast_unsigned()
        })
        .collect();
    match zigzags.iter().min() {
        Some(&base) => [out, frame(&zigzags, base)].concat(),
        None => [out, vec![1]].concat(),
    }
}

pub(super) fn rle<T: Integer>(values: &[T]) -> Vec<u8> {
    let values = wide(values);
    let width = bits(values.iter().copied().max().unwrap_or(0));
    let mut out = vec![u8::try_from(width).unwrap()];
    let run = |at: usize| values[at..].iter().take_while(|value| **value == values[at]).count();
    let mut at = 0;
    while at < values.len() {
        let mut end = at + run(at);
        if end - at >= 8 {
            varint::put((end - at) as u64 * 2 + 1, &mut out);
            out.extend(packed(&values[at..=at], width));
        } else {
            end = at;
            while end < values.len() && run(end) < 8 {
                end += 1;
            }
            varint::put((end - at) as u64 * 2, &mut out);
            out.extend(packed(&values[at..end], width));
        }
        at = end;
    }
    out
}

fn group_varint(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for group in values.chunks(4) {
        let lengths: Vec<usize> = group.iter().map(|value| bits(*value).div_ceil(8)).collect();
        out.push(lengths.iter().enumerate().map(|(j, len)| u8::try_from(len - 1).unwrap() << (2 * j)).sum());
        for (value, len) in group.iter().zip(lengths) {
            out.extend_from_slice(&value.to_le_bytes()[..len]);
        }
    }
    out
}

fn pfor(values: &[u64]) -> Vec<u8> {
    let stream = |width: usize| {
        let exceptions: Vec<(usize, u64)> =
            values.iter().copied().enumerate().filter(|(_, value)| *value >= 1 << width).collect();
        let mut out = vec![u8::try_from(width).unwrap(), u8::try_from(exceptions.len()).ok()?];
        for (position, value) in exceptions {
            out.push(u8::try_from(position).unwrap());
            varint::put(value, &mut out);
        }
        out.extend(packed(values, width));
        Some(out)
    };
    // On a tie the first scheme wins.
    (1..=32).filter_map(stream).min_by_key(Vec::len).unwrap()
}
