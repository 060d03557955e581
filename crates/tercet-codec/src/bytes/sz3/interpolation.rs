//! Interpolation of one-dimensional data: every level halves the distance of the known values.

use super::cursor::Cursor;
use super::failed;
use super::quantizer::Quantizer;
use crate::CodecError;

/// The parameters of an interpolation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interpolation {
    /// The number of values of a block at stride 1.
    block: u32,
    is_cubic: bool,
    /// The distance of the values that are stored as they are; 0 is none.
    anchors: u64,
    /// The ratio of the bounds of two levels, and the largest ratio.
    alpha: f64,
    beta: f64,
}

impl Interpolation {
    /// What the reference uses without tuning.
    pub(super) const fn new(is_cubic: bool) -> Self {
        Self { block: 32, is_cubic, anchors: 4096, alpha: 1.25, beta: 2.0 }
    }

    /// Reads the parameters for `n` values.
    pub(super) fn read(cursor: &mut Cursor<'_>, n: usize) -> Result<Self, CodecError> {
        let found = cursor.u64()?;
        let block = cursor.u32()?;
        let kind = cursor.i32()?;
        cursor.i32()?;
        let anchors = cursor.u64()?;
        let (alpha, beta) = (cursor.f64()?, cursor.f64()?);
        if found != n as u64
            || block == 0
            || !(0..=1).contains(&kind)
            || !(anchors == 0 || anchors.is_power_of_two())
        {
            return Err(failed("invalid parameters of the interpolation"));
        }
        Ok(Self { block, is_cubic: kind == 1, anchors, alpha, beta })
    }

    pub(super) fn write(&self, n: usize, out: &mut Vec<u8>) {
        out.extend((n as u64).to_le_bytes());
        out.extend(self.block.to_le_bytes());
        out.extend(i32::from(self.is_cubic).to_le_bytes());
        out.extend(0_i32.to_le_bytes());
        out.extend(self.anchors_for(n).to_le_bytes());
        out.extend(self.alpha.to_le_bytes());
        out.extend(self.beta.to_le_bytes());
    }

    /// No anchors if there would be only one.
    fn anchors_for(&self, n: usize) -> u64 {
        if n as u64 > self.anchors { self.anchors } else { 0 }
    }

    /// The bound of a level, if it differs from the previous one.
    fn bound(&self, level: u32, bound: f64) -> Option<f64> {
        if self.alpha < 0.0 {
            return Some(if level >= 3 { bound * 0.5 } else { bound });
        }
        (self.alpha >= 1.0).then(|| {
            let ratio = self.alpha.powf(f64::from(level - 1));
            bound / if ratio > self.beta { self.beta } else { ratio }
        })
    }

    /// Calls `point` for every value in the order of the stream: position, prediction, whether it is stored as it is.
    fn visit(
        &self,
        values: &mut [f64],
        quantizer: &mut Quantizer,
        mut point: impl FnMut(&mut Quantizer, &mut f64, Option<f64>) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        let n = values.len();
        let bound = quantizer.bound;
        // The smallest number of levels that reaches all values.
        let mut levels = usize::BITS - n.saturating_sub(1).leading_zeros();
        let anchors = usize::try_from(self.anchors_for(n)).unwrap_or(0);
        if anchors == 0 {
            if let Some(first) = values.first_mut() {
                point(quantizer, first, Some(0.0))?;
            }
        } else {
            levels = levels.min(anchors.ilog2() + 1);
            for anchor in values.iter_mut().step_by(anchors) {
                point(quantizer, anchor, None)?;
            }
            levels -= 1;
        }
        for level in (1..=levels).rev() {
            if let Some(bound) = self.bound(level, bound) {
                quantizer.bound = bound;
            }
            let stride = 1_usize << (level - 1);
            let block = (self.block as usize).saturating_mul(stride);
            for begin in (0..n).step_by(block) {
                let end = begin.saturating_add(block).min(n - 1);
                let count = (end - begin) / stride + 1;
                self.line(values, begin, stride, count, |value, prediction| {
                    point(quantizer, value, Some(prediction))
                })?;
            }
        }
        quantizer.bound = bound;
        Ok(())
    }

    /// The odd ones of `count` values.
    fn line(
        &self,
        values: &mut [f64],
        begin: usize,
        stride: usize,
        count: usize,
        mut point: impl FnMut(&mut f64, f64) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        if count <= 1 {
            return Ok(());
        }
        let mut predict = |values: &mut [f64], at: usize, formula: fn(&dyn Fn(isize) -> f64) -> f64| {
            let center = begin + at * stride;
            let near = |distance: isize| {
                let at = center.wrapping_add_signed(distance.wrapping_mul(stride.cast_signed()));
                values.get(at).copied().unwrap_or(0.0)
            };
            let prediction = formula(&near);
            match values.get_mut(center) {
                Some(value) => point(value, prediction),
                None => Ok(()),
            }
        };
        if !self.is_cubic || count < 5 {
            for at in (1..count - 1).step_by(2) {
                predict(values, at, |v| (v(-1) + v(1)) * 0.5)?;
            }
            if count.is_multiple_of(2) {
                let formula: fn(&dyn Fn(isize) -> f64) -> f64 =
                    if count < 4 { |v| v(-1) } else { |v| -0.5 * v(-3) + 1.5 * v(-1) };
                predict(values, count - 1, formula)?;
            }
            return Ok(());
        }
        let mut at = 3;
        while at + 3 < count {
            predict(values, at, |v| (-v(-3) + 9.0 * v(-1) + 9.0 * v(1) - v(3)) / 16.0)?;
            at += 2;
        }
        predict(values, 1, |v| (3.0 * v(-1) + 6.0 * v(1) - v(3)) / 8.0)?;
        predict(values, at, |v| (-v(-3) + 6.0 * v(-1) + 3.0 * v(1)) / 8.0)?;
        if count.is_multiple_of(2) {
            predict(values, count - 1, |v| (3.0 * v(-5) - 10.0 * v(-3) + 15.0 * v(-1)) / 8.0)?;
        }
        Ok(())
    }

    pub(super) fn decode(
        &self,
        quantizer: &mut Quantizer,
        symbols: &[i32],
        values: &mut [f64],
    ) -> Result<(), CodecError> {
        let mut symbols = symbols.iter().copied();
        self.visit(values, quantizer, |quantizer, value, prediction| {
            let symbol = symbols.next().ok_or_else(|| failed("a symbol is missing"))?;
            *value = match prediction {
                Some(prediction) => quantizer.value(prediction, symbol)?,
                None => quantizer.stored_value()?,
            };
            Ok(())
        })
    }

    /// The symbols of values, which are replaced by the decoded ones.
    pub(super) fn encode(&self, quantizer: &mut Quantizer, values: &mut [f64]) -> Vec<i32> {
        let mut symbols = Vec::with_capacity(values.len());
        let done = self.visit(values, quantizer, |quantizer, value, prediction| {
            let symbol = match prediction {
                Some(prediction) => {
                    let (symbol, decoded) = quantizer.symbol(*value, prediction);
                    *value = decoded;
                    symbol
                }
                None => quantizer.store(*value),
            };
            symbols.push(symbol);
            Ok(())
        });
        debug_assert!(done.is_ok(), "encoding cannot fail");
        symbols
    }
}
