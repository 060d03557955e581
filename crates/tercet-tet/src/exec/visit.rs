//! Visitor: loads the chunks of a task, verifies their checksums and passes their values to a consumer.
//!
//! A visitor moves bytes and geometry only. Folds, reads and transforms are consumers: they take slabs that stay in the
//! cache, each with the positions of its values, through one dynamic call.

use std::slice::from_ref;

use super::chunks::{Check, ChunkBytes, Chunks, Shifts};
use super::job::Scope;
use super::task::{Block, Geometry, Region, Task};
use super::walk::{AxisRun, Piece, SlotStep};
use crate::error::ErrorKind;
use crate::plan::PlannedChunk;
use crate::query::resolved::Role;

/// Takes the values of a task. `'b` is the lifetime of the loaded chunks.
pub(crate) trait Consumer<'b> {
    /// Maximum bytes of a slab.
    fn slab_bytes(&self) -> u64;
    /// Takes a piece of a slab that begins at the start of `bytes`.
    fn piece(&mut self, bytes: &'b [u8], piece: Piece<'_>) -> Result<(), ErrorKind>;
    /// Memory for consecutive slots, if values are taken as they are stored: complete chunks are decoded in place.
    fn target(&mut self, _slot: usize, _count: usize) -> Option<&mut [u8]> {
        None
    }
}

/// A consumer that keeps no reference to loaded chunks.
pub(crate) type AnyConsumer<'o> = dyn for<'b> Consumer<'b> + Send + 'o;

/// Visitor of the chunks of a scope.
pub(crate) struct Visitor<'a> {
    pub(crate) geometry: Geometry<'a>,
    pub(crate) chunks: Chunks<'a>,
}

/// Chunks loaded for regions, with their remaining checks.
pub(crate) type Loaded = (Vec<ChunkBytes>, Vec<Check>);

impl<'a> Visitor<'a> {
    pub(crate) fn new(scope: Scope<'a>, roles: &'a [Role]) -> Self {
        Self { geometry: Geometry::new(scope, roles), chunks: Chunks::new(scope) }
    }

    /// Loads the chunk of a region and passes its values to a consumer.
    pub(crate) fn visit(
        &self,
        (task, block): (&Task, &Block),
        region: &Region,
        consumer: &mut AnyConsumer<'_>,
        shifts: &mut Shifts,
    ) -> Result<(), ErrorKind> {
        self.geometry.scope.progress.check()?;
        if region.is_whole
            && !self.chunks.is_mapped(&region.stored)
            && let Some((slot, count)) = self.geometry.single_run(task, block, region)
            && let Some(out) = consumer.target(slot, count)
        {
            return self.chunks.load_into(region, out);
        }
        if self.chunks.streams(region) {
            return self.stream((task, block), region, consumer);
        }
        let (held, check) = self.chunks.load(region, false)?;
        let (held, mut checks) = ([held], [check]);
        self.pass((task, block), from_ref(region), (&held, &mut checks), consumer)?;
        let ([held], [check]) = (held, checks);
        self.chunks.end(region, held, check, shifts)
    }

    /// Reads a complete chunk slab by slab and passes its values to a consumer. The slabs use the same memory, which stays
    /// in the cache.
    pub(crate) fn stream(
        &self,
        (task, block): (&Task, &Block),
        region: &Region,
        consumer: &mut AnyConsumer<'_>,
    ) -> Result<(), ErrorKind> {
        let (mut buffer, mut check) = self.chunks.open_stream(region, consumer.slab_bytes())?;
        self.geometry.slabs(region, consumer.slab_bytes(), true, |slab| {
            let bytes = self.chunks.next_slab(region, (slab.start, slab.end), &mut buffer)?;
            check.look(slab.start, bytes);
            match self.geometry.piece(task, block, region, slab) {
                Some(piece) => consumer.piece(bytes, piece),
                None => Ok(()),
            }
        })?;
        self.chunks.end(region, ChunkBytes::Read(buffer), check, &mut Shifts::default())
    }

    /// Passes the values of chunks that are stored one after the other, in the order of the file and as values of one slot.
    pub(crate) fn span(
        &self,
        chunks: &[PlannedChunk],
        consumer: &mut AnyConsumer<'_>,
    ) -> Result<(), ErrorKind> {
        self.geometry.scope.progress.check()?;
        let size = self.geometry.scope.grid.element().size();
        self.chunks.span(chunks, consumer.slab_bytes(), |bytes| {
            let (count, slots) = (bytes.len() / size, SlotStep::Same);
            let run = AxisRun { first: 0, count, stride: 1, slots, index: 1, keep: None };
            consumer.piece(bytes, Piece { axes: vec![run], offset: 0, slot: 0, index: 0, cold: false })
        })
    }

    /// Loads the chunks of regions.
    pub(crate) fn load(&self, regions: &[Region]) -> Result<Loaded, ErrorKind> {
        let (mut held, mut checks) = (Vec::with_capacity(regions.len()), Vec::with_capacity(regions.len()));
        for region in regions {
            let (bytes, check) = self.chunks.load(region, false)?;
            held.push(bytes);
            checks.push(check);
        }
        Ok((held, checks))
    }

    /// Passes the values of loaded regions to a consumer, slab by slab. The regions are the same part of their chunks:
    /// a slab of each is passed before the next slab.
    pub(crate) fn pass<'b>(
        &self,
        (task, block): (&Task, &Block),
        regions: &[Region],
        (held, checks): (&'b [ChunkBytes], &mut [Check]),
        consumer: &mut dyn Consumer<'b>,
    ) -> Result<(), ErrorKind> {
        let Some(first) = regions.first() else { return Ok(()) };
        let contiguous = checks.iter().any(Check::is_some);
        self.geometry.slabs(first, consumer.slab_bytes(), contiguous, |slab| {
            for ((region, held), check) in regions.iter().zip(held).zip(&mut *checks) {
                let bytes = held.slab(slab.start, slab.end);
                check.look(slab.start, bytes);
                if let Some(mut piece) = self.geometry.piece(task, block, region, slab) {
                    piece.cold =
                        region.is_selected && matches!(held, ChunkBytes::Mapped(_)) && !check.is_some();
                    consumer.piece(bytes, piece)?;
                }
            }
            Ok(())
        })
    }

    /// Compares the checksums of visited regions.
    pub(crate) fn end(
        &self,
        regions: &[Region],
        (held, checks): Loaded,
        shifts: &mut Shifts,
    ) -> Result<(), ErrorKind> {
        for ((region, held), check) in regions.iter().zip(held).zip(checks) {
            self.chunks.end(region, held, check, shifts)?;
        }
        Ok(())
    }
}
