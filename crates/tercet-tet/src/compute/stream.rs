//! Writes the values of a selection in row-major order, in bounded memory.

use std::io::Write;

use tercet_core::{ElementType, Progress};

use super::Select;
use crate::error::{Error, ErrorKind};

/// Bytes of a block of decoded values. A block is one row of the last axis at least.
const BLOCK_BYTES: u64 = 64 << 20;

impl Select<'_> {
    /// The element type of the values, stored or decoded by the CF conventions.
    pub fn value_type(&self, decode: bool) -> Result<ElementType, Error> {
        let stored = self.dataset.grid()?.element();
        Ok(if decode { self.dataset.cf_encoding()?.decoded_type(stored) } else { stored })
    }

    /// Writes the values: row-major, little-endian, stored or decoded by the CF conventions. Blocks of the selection are
    /// read one after another, so it may be larger than memory.
    pub fn write_values(
        &self,
        decode: bool,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let size = self.value_type(decode)?.size() as u64;
        self.write_blocks(0, (decode, size, BLOCK_BYTES), out, progress)
    }

    /// Writes blocks along an axis; all axes before it have one position.
    fn write_blocks(
        &self,
        axis: usize,
        (decode, size, block_bytes): (bool, u64, u64),
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let counts = || self.axes[axis..].iter().map(|slice| slice.count());
        let bytes = counts().fold(size, u64::saturating_mul);
        if bytes <= block_bytes || axis + 1 >= self.axes.len() {
            let tensor = if decode { self.read_decoded()? } else { self.read()? };
            let mut write = || -> Result<(), ErrorKind> {
                progress.check()?;
                out.write_all(tensor.bytes())?;
                progress.advance(tensor.bytes().len() as u64);
                Ok(())
            };
            return write().map_err(|kind| self.dataset.file.error(kind));
        }
        let count = self.axes[axis].count();
        let row_bytes = bytes / count;
        if row_bytes > block_bytes {
            for position in 0..count {
                let row = self.clone().isel(axis, position..position + 1)?;
                row.write_blocks(axis + 1, (decode, size, block_bytes), out, progress)?;
            }
            return Ok(());
        }
        // Whole chunks, so that none is read twice.
        let chunk = (self.dataset.chunk_shape()[axis] / self.axes[axis].step).max(1);
        let rows = block_bytes / row_bytes;
        let rows = if rows > chunk { rows / chunk * chunk } else { rows.max(1) };
        let mut start = 0;
        while start < count {
            let stop = start.saturating_add(rows).min(count);
            let part = self.clone().isel(axis, start..stop)?;
            // The part fits in a block.
            part.write_blocks(axis, (decode, size, u64::MAX), out, progress)?;
            start = stop;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tercet_core::progress::NoProgress;
    use tercet_core::tensor::IndexSlice;
    use tercet_core::{ElementType, TensorView};

    use crate::{File, Layout, Writer, WriterOptions};

    #[test]
    fn blocks_of_any_size_make_the_same_array() {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::I16, [5, 7, 6], [2, 3, 6]).unwrap();
        layout.attr(id, "scale_factor", "0.5").unwrap();
        let values: Vec<i16> = (0..210).collect();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&[5, 7, 6], &values).unwrap()).unwrap();
        let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
        let select = file.dataset("a").unwrap().select();
        let select = select.isel(1, IndexSlice::parse("5::-2").unwrap()).unwrap().isel(0, 1..).unwrap();
        for decode in [false, true] {
            let expected = if decode { select.read_decoded() } else { select.read() }.unwrap();
            let size = select.value_type(decode).unwrap().size() as u64;
            for block_bytes in [1, 12, 40, 100, 1000, 10_000] {
                let mut out = Vec::new();
                select.write_blocks(0, (decode, size, block_bytes), &mut out, &NoProgress).unwrap();
                assert!(out == expected.bytes(), "{decode} {block_bytes}");
            }
        }
    }
}
