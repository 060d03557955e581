//! [`ChunkEncoder`]: encodes chunks on other threads, or in other processes, than the writer of the file.

use std::sync::Arc;

use tercet_core::{Shape, Sink, TensorView, checksum};

use super::Writer;
use super::encode::{Encoded, Encoder};
use crate::error::{Error, ErrorKind};
use crate::grid::Grid;
use crate::layout::{Compression, DatasetId, LayoutError};
use crate::wire::ids::Codec;

/// Encodes the chunks of one dataset for a [`Writer`]: rounding, compression, checksum, statistics.
///
/// Writers of equal layouts have equal encoders, so that another process can encode chunks for this one.
///
/// ```
/// use std::io::Cursor;
/// use tercet_core::{DType, TensorView};
/// use tercet_tet::{EncodedChunk, Layout, Writer, WriterOptions};
///
/// let mut layout = Layout::new();
/// let t2m = layout.dataset("t2m", DType::F32, [2, 3], [1, 3])?;
/// let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new())?;
/// let encoder = writer.chunk_encoder(t2m, None)?;
/// let chunks = std::thread::scope(|scope| {
///     let encode = |row: u64| encoder.encode(&[row, 0], TensorView::from_slice(&[1, 3], &[row as f32; 3]).unwrap());
///     [0, 1].map(|row| scope.spawn(move || encode(row))).map(|thread| thread.join().unwrap())
/// });
/// for chunk in chunks {
///     let sent = chunk?.to_bytes();
///     writer.put_chunk(&EncodedChunk::from_bytes(&sent).unwrap())?;
/// }
/// writer.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChunkEncoder {
    /// The name of the output, for errors.
    file: Arc<str>,
    dataset: DatasetId,
    name: String,
    grid: Grid,
    /// The first row of the dataset.
    base: u64,
    encoder: Encoder,
}

/// A chunk as it is stored, for [`Writer::put_chunk`].
#[derive(Debug)]
pub struct EncodedChunk {
    dataset: DatasetId,
    encoded: Encoded,
}

impl ChunkEncoder {
    /// Encodes a chunk. The view has the extents of the chunk, clipped at the edge of the array.
    pub fn encode(&self, coords: &[u64], view: TensorView<'_>) -> Result<EncodedChunk, Error> {
        let encoded = self.try_encode(coords, view);
        encoded
            .map(|encoded| EncodedChunk { dataset: self.dataset, encoded })
            .map_err(|kind| Error::new(self.file.clone(), kind))
    }

    fn try_encode(&self, coords: &[u64], view: TensorView<'_>) -> Result<Encoded, ErrorKind> {
        let dataset = || self.name.clone();
        let Some(linear) = self.grid.linear(coords) else {
            return Err(LayoutError::NoSuchChunk { dataset: dataset(), coords: coords.to_vec() }.into());
        };
        let shape = self.grid.chunk_shape_at(coords);
        if view.dtype() != self.grid.element() || view.shape() != shape {
            let expected = Box::new((self.grid.dtype(), Shape::new(shape)));
            let found = Box::new((view.dtype(), Shape::from(view.shape())));
            return Err(LayoutError::ChunkShape { dataset: dataset(), expected, found }.into());
        }
        self.encoder.encode(self.base + linear, view.bytes().to_vec())
    }
}

/// The length of the fields before the payload in the bytes of an [`EncodedChunk`].
const HEAD: usize = 8 + 8 + 4 + 4 + 48;

impl EncodedChunk {
    /// The chunk as bytes with a checksum, for another process. The entries of zone maps are not part of it: a file
    /// with such a chunk has none.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Encoded { row, codec, stored, crc, stats, zone: _ } = &self.encoded;
        let mut bytes = Vec::with_capacity(HEAD + stored.len() + 4);
        bytes.extend((self.dataset.0 as u64).to_le_bytes());
        bytes.extend(row.to_le_bytes());
        bytes.extend(codec.id().to_le_bytes());
        bytes.extend(crc.to_le_bytes());
        bytes.extend(stats);
        bytes.extend(stored);
        bytes.extend(checksum::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// A chunk from [`to_bytes`](Self::to_bytes); `None` if the bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if u32::from_le_bytes(*sum) != checksum::crc32c(body) {
            return None;
        }
        let (dataset, rest) = body.split_first_chunk::<8>()?;
        let (row, rest) = rest.split_first_chunk::<8>()?;
        let (codec, rest) = rest.split_first_chunk::<4>()?;
        let (crc, rest) = rest.split_first_chunk::<4>()?;
        let (stats, stored) = rest.split_first_chunk::<48>()?;
        let encoded = Encoded {
            row: u64::from_le_bytes(*row),
            codec: Codec::from_id(u32::from_le_bytes(*codec))?,
            stored: stored.to_vec(),
            crc: u32::from_le_bytes(*crc),
            stats: *stats,
            zone: None,
        };
        Some(Self { dataset: DatasetId(usize::try_from(u64::from_le_bytes(*dataset)).ok()?), encoded })
    }
}

impl<S: Sink> Writer<S> {
    /// The encoder of a dataset. [`Compression::Auto`] is decided now, from the sample if there is one; without it the
    /// chunks are stored raw.
    pub fn chunk_encoder(
        &mut self,
        dataset: DatasetId,
        sample: Option<TensorView<'_>>,
    ) -> Result<ChunkEncoder, Error> {
        if self.layout.datasets[dataset.0].compression == Compression::Auto {
            match sample {
                Some(view) => self.choose(dataset, &[0], |_| Ok::<_, Error>(view.bytes().to_vec()))?,
                None => self.layout.datasets[dataset.0].compression = Compression::None,
            }
        }
        let planned = &self.layout.datasets[dataset.0];
        Ok(ChunkEncoder {
            file: self.name.clone(),
            dataset,
            name: planned.name.clone(),
            grid: planned.grid.clone(),
            base: self.base(dataset),
            encoder: self.encoder(dataset),
        })
    }

    /// Writes an encoded chunk.
    pub fn put_chunk(&mut self, chunk: &EncodedChunk) -> Result<(), Error> {
        let row = chunk.encoded.row;
        let base = self.bases.get(chunk.dataset.0);
        let known = base.is_some_and(|&base| {
            let count = self.grid(chunk.dataset).chunk_count();
            (base..base + count).contains(&row)
        });
        if !known {
            let coords = vec![row.saturating_sub(base.copied().unwrap_or(0))];
            let dataset = format!("{}", chunk.dataset.0);
            return Err(self.error(LayoutError::NoSuchChunk { dataset, coords }.into()));
        }
        self.put(chunk.dataset, &chunk.encoded).map_err(|kind| self.error(kind))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tercet_core::DType;
    use tercet_core::progress::NoProgress;

    use super::*;
    use crate::{File, Layout, WriterOptions};

    fn writer(compression: Compression) -> (Writer<Cursor<Vec<u8>>>, DatasetId) {
        let mut layout = Layout::new();
        layout.dataset("other", DType::I16, [3], [2]).unwrap();
        let id = layout.dataset("t2m", DType::F32, [4, 3], [2, 3]).unwrap();
        layout.compress(id, compression).unwrap();
        (Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap(), id)
    }

    #[test]
    fn chunks_of_another_process_make_the_same_file() {
        for compression in [Compression::None, Compression::Zstd { level: 3 }] {
            let values: Vec<f32> = (0u8..12).map(f32::from).collect();
            let (mut writer, id) = writer(compression);
            let other = DatasetId(0);
            writer.array(other, TensorView::from_slice(&[3], &[1i16, 2, 3]).unwrap()).unwrap();
            let (mut remote, _) = super::tests::writer(compression);
            let encoder = remote.chunk_encoder(id, None).unwrap();
            for row in [1, 0] {
                let part = &values[row * 6..][..6];
                let chunk = encoder.encode(&[row as u64, 0], TensorView::from_slice(&[2, 3], part).unwrap());
                let bytes = chunk.unwrap().to_bytes();
                writer.put_chunk(&EncodedChunk::from_bytes(&bytes).unwrap()).unwrap();
            }
            let file = File::from_bytes("made", writer.finish().unwrap().output).unwrap();
            let t2m = file.dataset("t2m").unwrap();
            assert_eq!(t2m.select().read().unwrap().as_slice::<f32>(), Some(&values[..]));
            assert_eq!(t2m.chunk_ref(&[1, 0]).unwrap().codec, compression.codec());
        }
    }

    /// Frames are stored as they are; those of other lengths, and of rounded or raw datasets, are encoded again.
    #[test]
    fn frames_are_carried() {
        let values: Vec<f32> = (0u8..12).map(f32::from).collect();
        let bytes = |from: usize, to: usize| bytemuck::cast_slice::<f32, u8>(&values[from..to]).to_vec();
        let frame = |bytes: &[u8]| {
            let mut out = Vec::new();
            tercet_codec::bytes::zstd::encode_frame(bytes, 19, &mut out).unwrap();
            out
        };
        let (first, short) = (frame(&bytes(0, 6)), frame(&bytes(6, 11)));
        for compression in [Compression::None, Compression::Zstd { level: 3 }] {
            let (mut writer, id) = writer(compression);
            writer.array(DatasetId(0), TensorView::from_slice(&[3], &[1i16, 2, 3]).unwrap()).unwrap();
            let stored = |coords: &[u64]| {
                let frame = if coords[0] == 0 { &first } else { &short };
                Ok::<_, crate::Error>(Some(frame.clone()))
            };
            let fill = |coords: &[u64], out: &mut [u8]| {
                let start = usize::try_from(coords[0]).unwrap() * 6;
                out.copy_from_slice(&bytes(start, start + 6));
                Ok(())
            };
            // The last row first.
            for number in [1, 0] {
                writer.fill_chunks(id, [number].into_iter(), stored, fill, &NoProgress).unwrap();
            }
            let source = Arc::new(tercet_core::source::Memory::new("made", writer.finish().unwrap().output));
            let options = crate::VerifyOptions::new().with_deep(true);
            let report = crate::verify(source.clone(), options, &NoProgress).unwrap();
            assert!(report.findings.iter().all(|finding| finding.ok), "{:?}", report.findings);
            let file = File::from_source(source, crate::ReadOptions::new()).unwrap();
            let t2m = file.dataset("t2m").unwrap();
            assert_eq!(t2m.select().read().unwrap().as_slice::<f32>(), Some(&values[..]));
            let found = t2m.stored_zstd(&[0, 0]).unwrap();
            if compression == Compression::None {
                assert_eq!(found, None);
            } else {
                assert_eq!(found.as_deref(), Some(&first[..]));
                assert_ne!(t2m.stored_zstd(&[1, 0]).unwrap().as_deref(), Some(&short[..]));
            }
        }
    }

    #[test]
    fn damaged_and_unexpected_chunks_are_refused() {
        let (mut writer, id) = writer(Compression::None);
        let encoder = writer.chunk_encoder(id, None).unwrap();
        let chunk = encoder.encode(&[0, 0], TensorView::from_slice(&[2, 3], &[0f32; 6]).unwrap()).unwrap();
        let bytes = chunk.to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(EncodedChunk::from_bytes(&damaged).is_none());
            assert!(EncodedChunk::from_bytes(&bytes[..at]).is_none());
        }
        writer.put_chunk(&chunk).unwrap();
        assert!(writer.put_chunk(&chunk).is_err(), "written twice");
        for (dataset, row) in [(id, 0), (id, 4), (DatasetId(9), 0)] {
            let mut wrong = EncodedChunk::from_bytes(&bytes).unwrap();
            wrong.dataset = dataset;
            wrong.encoded.row = row;
            assert!(writer.put_chunk(&wrong).is_err());
        }
        let view = TensorView::from_slice(&[2, 3], &[0f64; 6]).unwrap();
        assert!(encoder.encode(&[0, 0], view).is_err(), "another element type");
        let view = TensorView::from_slice(&[2, 3], &[0f32; 6]).unwrap();
        assert!(encoder.encode(&[2, 0], view).is_err(), "no such chunk");
    }
}
