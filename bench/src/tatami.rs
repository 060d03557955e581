//! `.tatami` files beside Parquet: the same rows, written and read by both.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | the rows that are measured |
//! | [`filter`] | Parquet: rows in a range |
//! | [`ours`] | `.tatami`: writing, scanning, finding |
//! | [`peer`] | Parquet: the same |
//! | [`same`] | whether both gave the same values |

pub mod data;
pub mod filter;
pub mod ours;
pub mod peer;
pub mod same;

/// Rows of a row group, on both sides.
pub const GROUP_ROWS: usize = 131_072;

/// The level of Zstandard, on both sides.
pub const LEVEL: i32 = 3;

/// A value to find.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Number(i64),
    Text(Vec<u8>),
}

/// Numbers that look random and are the same in every run.
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

    /// Different numbers below `end`, in no order.
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
