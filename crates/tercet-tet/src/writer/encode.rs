//! Encoding of chunks, and the state of their rows.

use tercet_codec::bytes::zstd;
use tercet_core::CommonError;
use tercet_core::checksum;

use crate::error::ErrorKind;
use crate::layout::{Compression, WriterOptions};
use crate::rounding::Rounder;
use crate::stats::Stats;
use crate::wire::ids::Codec;
use crate::zones::{ChunkZone, Scan};

/// The state of each row, in canonical order.
#[derive(Debug, Default)]
pub(crate) struct RowStates {
    pub(crate) offsets: Vec<u64>,
    pub(crate) stored: Vec<u64>,
    /// The number of the codec, [`UNWRITTEN`] or [`MISSING`].
    pub(crate) codecs: Vec<u8>,
    pub(crate) crcs: Vec<u32>,
    pub(crate) stats: Vec<[u8; 48]>,
}

impl RowStates {
    pub(super) fn new(count: usize, options: WriterOptions) -> Result<Self, ErrorKind> {
        let bytes = count.saturating_mul(72);
        let mut rows = Self::default();
        let failed = |_| tercet_core::tensor::OutOfMemory { bytes };
        rows.offsets.try_reserve_exact(count).map_err(failed)?;
        rows.offsets.resize(count, 0);
        rows.stored.try_reserve_exact(count).map_err(failed)?;
        rows.stored.resize(count, 0);
        rows.codecs.try_reserve_exact(count).map_err(failed)?;
        rows.codecs.resize(count, UNWRITTEN);
        if options.has_block() {
            rows.crcs.try_reserve_exact(count).map_err(failed)?;
            rows.crcs.resize(count, 0);
            if options.statistics {
                rows.stats.try_reserve_exact(count).map_err(failed)?;
                rows.stats.resize(count, [0; 48]);
            }
        }
        Ok(rows)
    }
}

/// The codec of a row whose chunk is not written yet.
pub(super) const UNWRITTEN: u8 = 0xff;
/// The codec of a row without a chunk.
pub(crate) const MISSING: u8 = 0xfe;

/// An encoded chunk.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) row: u64,
    pub(crate) codec: Codec,
    pub(crate) stored: Vec<u8>,
    pub(crate) crc: u32,
    pub(crate) stats: [u8; 48],
    pub(super) zone: Option<ChunkZone>,
}

/// Encodes chunks; shared by threads.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) dtype: tercet_core::ElementType,
    pub(super) compression: Compression,
    pub(super) checksums: bool,
    pub(super) statistics: bool,
    pub(super) zones: Option<Scan>,
    pub(super) rounder: Option<Rounder>,
}

impl Encoder {
    pub(crate) fn encode(&self, row: u64, mut raw: Vec<u8>) -> Result<Encoded, ErrorKind> {
        if let Some(rounder) = &self.rounder {
            rounder.apply(&mut raw)?;
        }
        let stats = if self.statistics { Stats::compute(self.dtype, &raw).encode() } else { [0; 48] };
        let zone = self.zones.map(|scan| scan.chunk(&raw));
        let stored = match self.compression {
            Compression::None | Compression::Auto => raw,
            Compression::Zstd { level } => {
                let mut out = Vec::new();
                zstd::encode(&raw, level, &mut out)
                    .map_err(|error| ErrorKind::Common(CommonError::Write(std::io::Error::other(error))))?;
                out
            }
        };
        let crc = if self.checksums { checksum::crc32c(&stored) } else { 0 };
        Ok(Encoded { row, codec: self.compression.codec(), stored, crc, stats, zone })
    }

    /// Whether frames of other files can be stored.
    pub(super) fn carries(&self) -> bool {
        self.rounder.is_none() && matches!(self.compression, Compression::Zstd { .. })
    }

    /// Frames of another file as a chunk; `None` if they are not exactly the frames of `len` bytes.
    pub(super) fn carry(&self, row: u64, stored: Vec<u8>, len: u64) -> Option<Encoded> {
        let mut raw = Vec::new();
        zstd::decode_new(&stored, usize::try_from(len).ok()?, &mut raw).ok()?;
        let stats = if self.statistics { Stats::compute(self.dtype, &raw).encode() } else { [0; 48] };
        let zone = self.zones.map(|scan| scan.chunk(&raw));
        Some(Encoded { zone, ..self.keep(row, Codec::Zstd, stored, stats, None) })
    }

    /// A stored chunk of another file with its statistics. An existing checksum is kept: recomputing it
    /// would accept damage.
    pub(crate) fn keep(
        &self,
        row: u64,
        codec: Codec,
        stored: Vec<u8>,
        stats: [u8; 48],
        crc: Option<u32>,
    ) -> Encoded {
        let computed = || if self.checksums { checksum::crc32c(&stored) } else { 0 };
        let crc = crc.unwrap_or_else(computed);
        Encoded { row, codec, stored, crc, stats, zone: None }
    }

    pub(crate) fn wants_statistics(&self) -> bool {
        self.statistics
    }
}
