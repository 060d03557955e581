//! `.tatami` files compared with Parquet: the same rows, written and read by both.
//!
//! | module | content |
//! |---|---|
//! | [`data`] | the measured rows |
//! | [`filter`] | Parquet: rows in a range |
//! | [`tercet`] | `.tatami`: writing, scanning, lookup |
//! | [`peer`] | Parquet: the same |
//! | [`compare`] | comparison of the values of both |

pub mod compare;
pub mod data;
pub mod filter;
pub mod peer;
pub mod tercet;

/// Rows per row group, on both sides.
pub const GROUP_ROWS: usize = 131_072;

/// Zstandard level, on both sides.
pub const LEVEL: i32 = 3;

/// A key to look up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Number(i64),
    Text(Vec<u8>),
}

/// Pseudo-random numbers, the same in every run.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Different numbers below `end`, in random order.
    pub fn rows(&mut self, count: usize, end: u64) -> Vec<u64> {
        let mut rows = Vec::new();
        while rows.len() < count.min(end as usize) {
            let row = self.draw() % end;
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }
}
