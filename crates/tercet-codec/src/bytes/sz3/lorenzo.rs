//! Prediction of one-dimensional data by the one or two previous values.

use super::cursor::Cursor;
use super::failed;
use super::huffman::Tree;
use super::quantizer::Quantizer;
use crate::CodecError;

/// The predictors of a stream.
pub(super) struct Lorenzo {
    /// The number of previous values of each predictor.
    orders: Vec<u8>,
    block: usize,
    /// The predictor of each block, if there is a choice.
    choices: Vec<i32>,
}

impl Lorenzo {
    /// Reads the choices. `switches` are the predictors that the stream may use.
    pub(super) fn read(cursor: &mut Cursor<'_>, switches: u8, block: u32) -> Result<Self, CodecError> {
        if switches & 0x30 != 0 {
            return Err(failed("the regression predictor is not supported"));
        }
        let orders: Vec<u8> = [(0x80, 1), (0x40, 2)]
            .into_iter()
            .filter(|(switch, _)| switches & switch != 0)
            .map(|(_, order)| order)
            .collect();
        if orders.is_empty() || block == 0 {
            return Err(failed("no predictor, or no blocks"));
        }
        let mut choices = Vec::new();
        if orders.len() > 1 {
            let count = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
            if count > 0 {
                let tree = Tree::read(cursor)?;
                if count as u64 > super::MAX_VALUES {
                    return Err(failed("too many blocks"));
                }
                choices = tree.decode(cursor, count)?;
            }
        }
        Ok(Self { orders, block: block as usize, choices })
    }

    pub(super) fn decode(
        &self,
        quantizer: &mut Quantizer,
        symbols: &[i32],
        values: &mut [f64],
    ) -> Result<(), CodecError> {
        if symbols.len() < values.len() {
            return Err(failed("a symbol is missing"));
        }
        let (mut last, mut before) = (0.0, 0.0);
        let blocks = values.chunks_mut(self.block).zip(symbols.chunks(self.block));
        for (number, (values, symbols)) in blocks.enumerate() {
            let choice = match &*self.orders {
                [_] => Some(0),
                _ => self.choices.get(number).and_then(|choice| usize::try_from(*choice).ok()),
            };
            let order = choice.and_then(|choice| self.orders.get(choice));
            let order = *order.ok_or_else(|| failed("the predictor of a block is missing"))?;
            for (value, symbol) in values.iter_mut().zip(symbols) {
                let prediction = if order == 1 { last } else { 2.0 * last - before };
                *value = quantizer.value(prediction, *symbol)?;
                (before, last) = (last, *value);
            }
        }
        Ok(())
    }
}
