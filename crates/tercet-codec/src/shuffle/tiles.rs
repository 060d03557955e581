//! Elements of any size: tiles of eight by eight bytes, in an order that reads every cache line once.

use super::Planes;

/// Elements processed for all their bytes before the next ones.
const TILE: usize = 64;

/// The side of a tile.
const SIDE: usize = 8;

/// Transposes: byte `c` of word `r` becomes byte `r` of word `c`.
#[inline]
fn transpose(mut rows: [u64; SIDE]) -> [u64; SIDE] {
    // Blocks of 4, 2 and 1 bytes are swapped across the diagonal.
    for (distance, keep) in
        [(4, 0x0000_0000_ffff_ffff_u64), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)]
    {
        let shift = distance * 8;
        for row in (0..SIDE).filter(|row| row & distance == 0) {
            let (upper, lower) = (rows[row], rows[row + distance]);
            rows[row] = upper & keep | (lower & keep) << shift;
            rows[row + distance] = upper >> shift & keep | lower & !keep;
        }
    }
    rows
}

/// Start positions of the tiles of `width` bytes: the last one may overlap the one before. `None` if it is too narrow.
fn columns(width: usize) -> impl Iterator<Item = usize> + Clone {
    let last = width.checked_sub(SIDE);
    last.into_iter().flat_map(|last| (0..last).step_by(SIDE).chain([last]))
}

/// Shuffles the bytes from number `first` of every element on to `planes`, one each.
pub(super) fn split(raw: &[u8], size: usize, first: usize, planes: &mut [&mut [u8]]) {
    let count = raw.len() / size;
    let squares = if planes.len() < SIDE { 0 } else { count / SIDE * SIDE };
    for tile in (0..squares).step_by(TILE) {
        for column in columns(planes.len()) {
            for start in (tile..squares.min(tile + TILE)).step_by(SIDE) {
                let mut rows = [0; SIDE];
                for (row, element) in rows.iter_mut().zip(start..) {
                    *row = word(raw, element * size + first + column);
                }
                for (plane, bytes) in planes[column..].iter_mut().zip(transpose(rows)) {
                    plane[start..start + SIDE].copy_from_slice(&bytes.to_le_bytes());
                }
            }
        }
    }
    for (byte, plane) in planes.iter_mut().enumerate() {
        for (to, element) in plane[squares..].iter_mut().zip(squares..) {
            *to = raw[element * size + first + byte];
        }
    }
}

/// Unshuffles elements from planes.
pub(super) fn join(planes: &Planes<'_>, size: usize, out: &mut [u8]) {
    let count = out.len() / size;
    let squares = if size < SIDE { 0 } else { count / SIDE * SIDE };
    for tile in (0..squares).step_by(TILE) {
        for column in columns(size) {
            for start in (tile..squares.min(tile + TILE)).step_by(SIDE) {
                let mut rows = [0; SIDE];
                for (row, byte) in rows.iter_mut().zip(column..) {
                    *row = word(planes.plane(byte, start + SIDE), start);
                }
                for (bytes, element) in transpose(rows).into_iter().zip(start..) {
                    out[element * size + column..][..SIDE].copy_from_slice(&bytes.to_le_bytes());
                }
            }
        }
    }
    for byte in 0..size {
        let plane = planes.plane(byte, count);
        for (element, &from) in plane.iter().enumerate().skip(squares) {
            out[element * size + byte] = from;
        }
    }
}

/// The eight bytes from number `at` on.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; SIDE];
    word.copy_from_slice(&bytes[at..at + SIDE]);
    u64::from_le_bytes(word)
}
