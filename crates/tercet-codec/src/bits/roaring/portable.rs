//! Decoder of the portable serialization into packed bits, without allocation.
//!
//! ```text
//! u32 cookie   0x303A, then u32 containers       no runs anywhere
//!              0x303B | (containers − 1) << 16   then one bit per container: is it runs?
//! u16 key, u16 positions − 1                     per container, keys ascending
//! u32 offset                                     per container; with runs only from four containers on
//! list   u16 per position, ascending             up to 4096 positions
//! bits   1024 × u64                              more than 4096
//! runs   u16 count, then u16 start, u16 last − start per run
//! ```

/// Positions covered by one container.
const SPAN: usize = 1 << 16;

/// Maximum positions of an array container.
const MAX_LISTED: usize = 4096;

/// Number of containers from which offsets are written although there are runs.
const OFFSETS_WITH_RUNS: usize = 4;

/// Sets every position of `blob` in `bits`, which are zero and hold `n` bits. The error describes the defect.
pub(super) fn read(mut blob: &[u8], n: usize, bits: &mut [u8]) -> Result<(), String> {
    let rest = &mut blob;
    let [low, high] = [take_u16(rest)?, take_u16(rest)?];
    let (containers, run_flags, has_offsets) = match (low, high) {
        (0x303a, 0) => {
            let containers = usize::from(take_u16(rest)?) | usize::from(take_u16(rest)?) << 16;
            (containers, &[][..], true)
        }
        (0x303b, last) => {
            let containers = usize::from(last) + 1;
            (containers, take(rest, containers.div_ceil(8))?, containers >= OFFSETS_WITH_RUNS)
        }
        _ => return Err("not a portable bitmap".to_owned()),
    };
    if containers > SPAN {
        return Err(format!("{containers} containers"));
    }
    let (headers, _) = take(rest, containers * 4)?.as_chunks::<4>();
    if has_offsets {
        // Containers are contiguous: their offsets are redundant.
        take(rest, containers * 4)?;
    }
    let mut next_key = 0;
    for (at, &[k0, k1, c0, c1]) in headers.iter().enumerate() {
        let key = usize::from(u16::from_le_bytes([k0, k1]));
        if key < next_key {
            return Err(format!("container {key} is out of order"));
        }
        next_key = key + 1;
        let positions = usize::from(u16::from_le_bytes([c0, c1])) + 1;
        let mut container = Container { bits, base: key * SPAN, n };
        if run_flags.get(at / 8).is_some_and(|flags| flags >> (at % 8) & 1 == 1) {
            container.runs(rest)?;
        } else if positions <= MAX_LISTED {
            container.list(take(rest, positions * 2)?)?;
        } else {
            container.plain(take(rest, SPAN / 8)?, positions)?;
        }
    }
    Ok(())
}

/// Destination of the positions of one container.
struct Container<'a> {
    bits: &'a mut [u8],
    base: usize,
    n: usize,
}

impl Container<'_> {
    fn list(&mut self, list: &[u8]) -> Result<(), String> {
        let (list, _) = list.as_chunks();
        if let Some(last) = list.last() {
            self.check(usize::from(u16::from_le_bytes(*last)))?;
        }
        let mut next = 0;
        for position in list {
            let position = usize::from(u16::from_le_bytes(*position));
            // Ascending up to the last one, which is in range: so are all before it.
            if position < next {
                return Err(format!("position {} is out of order", self.base + position));
            }
            next = position + 1;
            let at = self.base + position;
            match self.bits.get_mut(at / 8) {
                Some(byte) => *byte |= 0x80 >> (at % 8),
                None => return Err(self.outside(position)),
            }
        }
        Ok(())
    }

    fn plain(&mut self, container: &[u8], positions: usize) -> Result<(), String> {
        let found: usize = container.iter().map(|byte| byte.count_ones() as usize).sum();
        if found != positions {
            return Err(format!("{found} positions instead of {positions}"));
        }
        if let Some(at) = container.iter().rposition(|&byte| byte != 0) {
            self.check(at * 8 + container[at].ilog2() as usize)?;
        }
        let room = self.bits.get_mut(self.base / 8..).unwrap_or_default();
        for (byte, from) in room.iter_mut().zip(container) {
            *byte = from.reverse_bits();
        }
        Ok(())
    }

    fn runs(&mut self, rest: &mut &[u8]) -> Result<(), String> {
        let count = usize::from(take_u16(rest)?);
        if count == 0 {
            return Err("a container of no runs".to_owned());
        }
        let (runs, _) = take(rest, count * 4)?.as_chunks::<4>();
        let mut next = 0;
        for &[s0, s1, l0, l1] in runs {
            let start = usize::from(u16::from_le_bytes([s0, s1]));
            let last = start + usize::from(u16::from_le_bytes([l0, l1]));
            if start < next || last >= SPAN {
                return Err(format!("run {}..={} is out of order", self.base + start, self.base + last));
            }
            // Adjacent runs would have been one.
            next = last + 2;
            self.check(last)?;
            set_range(self.bits, self.base + start, self.base + last + 1);
        }
        Ok(())
    }

    fn check(&self, position: usize) -> Result<(), String> {
        if self.base + position < self.n { Ok(()) } else { Err(self.outside(position)) }
    }

    fn outside(&self, position: usize) -> String {
        format!("position {} in a set of {} bits", self.base + position, self.n)
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], String> {
    let (part, after) =
        rest.split_at_checked(len).ok_or_else(|| format!("{} bytes left, expected {len}", rest.len()))?;
    *rest = after;
    Ok(part)
}

fn take_u16(rest: &mut &[u8]) -> Result<u16, String> {
    let part = take(rest, 2)?;
    Ok(part.iter().rev().fold(0, |number, byte| number << 8 | u16::from(*byte)))
}

/// Sets the bits `from..to`, which must be inside `bits`.
fn set_range(bits: &mut [u8], from: usize, to: usize) {
    if from >= to {
        return;
    }
    let (first, last) = (from / 8, (to - 1) / 8);
    let head = 0xff_u8 >> (from % 8);
    let tail = 0xff_u8 << (7 - (to - 1) % 8);
    if first == last {
        bits[first] |= head & tail;
    } else {
        bits[first] |= head;
        bits[first + 1..last].fill(0xff);
        bits[last] |= tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_set_bit_by_bit() {
        for from in 0..40 {
            for to in from..=40 {
                let mut bits = [0; 5];
                set_range(&mut bits, from, to);
                for at in 0..40 {
                    let is_set = bits[at / 8] >> (7 - at % 8) & 1 == 1;
                    assert_eq!(is_set, (from..to).contains(&at), "{from}..{to} at {at}");
                }
            }
        }
    }
}
