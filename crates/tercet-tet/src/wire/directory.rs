//! Dataset records (`docs/spec/tet.md`, directory).

use tercet_core::{FieldReader, Malformed, Reason, Site, Span};

use super::ids::{MAX_RANK, RECORD_MIN_LEN, RECORDS_AT, align8};
use crate::Region;

/// A dataset record. Only the rank is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) dtype_tag: u32,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk_shape: Vec<u64>,
}

impl Record {
    /// The bytes of the record in the directory.
    pub(crate) fn encoded_len(&self) -> u64 {
        let size = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let head = align8(size(self.name.len()).saturating_add(16)).unwrap_or(u64::MAX);
        head.saturating_add(size(self.shape.len()).saturating_mul(16))
    }
}

/// Parses `count` records that fill `blob` exactly.
pub(crate) fn parse(blob: &[u8], count: u32) -> Result<Vec<Record>, Malformed<Region>> {
    let len = u64::try_from(blob.len()).unwrap_or(u64::MAX);
    if u64::from(count) > len.checked_div(RECORD_MIN_LEN).unwrap_or(0) {
        let reason = Reason::OutOfRange {
            found: count.into(),
            allowed: "at most one for every 32 bytes of directory",
        };
        let span = Span::between(8, 12).unwrap_or(Span::empty(8));
        return Err(Malformed {
            site: Site { region: Region::Superblock, field: "dataset_count", span },
            reason,
        });
    }
    let mut records = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    let (mut rest, mut start) = (blob, RECORDS_AT);
    for index in 0..count {
        let mut fields = FieldReader::new(Region::Dataset { index }, start, rest);
        records.push(parse_record(&mut fields)?);
        start = fields.position();
        rest = fields.take("dataset_records", u64::try_from(fields.remaining()).unwrap_or(u64::MAX))?;
    }
    FieldReader::new(Region::Directory, start, rest).finish()?;
    Ok(records)
}

fn parse_record(fields: &mut FieldReader<'_, Region>) -> Result<Record, Malformed<Region>> {
    let start = fields.position();
    let name_len = fields.u32_le("name_len")?;
    let dtype_tag = fields.u32_le("dtype")?;
    let ndim = fields.u32_le("ndim")?;
    let rank = usize::try_from(ndim).ok().filter(|rank| (1..=MAX_RANK).contains(rank));
    let Some(rank) = rank else {
        return Err(fields.fault("ndim", 4, Reason::OutOfRange { found: ndim.into(), allowed: "1 to 8" }));
    };
    fields.skip("reserved", 4)?;
    let name = fields.utf8("name", name_len.into())?.to_owned();
    // The pad makes the head a multiple of 8, counted from the start of this record.
    let head = fields.position().saturating_sub(start);
    fields.skip("padding", head.wrapping_neg() & 7)?;
    let mut extents =
        |field| -> Result<Vec<u64>, Malformed<Region>> { (0..rank).map(|_| fields.u64_le(field)).collect() };
    let shape = extents("shape")?;
    let chunk_shape = extents("chunk_shape")?;
    Ok(Record { name, dtype_tag, shape, chunk_shape })
}

/// Encodes all records; `None` if a name is too long for its field.
pub(crate) fn encode(records: &[Record]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for record in records {
        let name_len = u32::try_from(record.name.len()).ok()?;
        let ndim = u32::try_from(record.shape.len()).ok()?;
        for number in [name_len, record.dtype_tag, ndim, 0] {
            out.extend(number.to_le_bytes());
        }
        out.extend(record.name.as_bytes());
        // Records are multiples of 8 long, so padding the whole to 8 pads each record from its own start.
        while !out.len().is_multiple_of(8) {
            out.push(0);
        }
        for extent in record.shape.iter().chain(&record.chunk_shape) {
            out.extend(extent.to_le_bytes());
        }
    }
    Some(out)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "tests may panic")]
mod tests {
    use super::*;

    fn record(name: &str) -> Record {
        Record { name: name.to_owned(), dtype_tag: 1, shape: vec![3, 5], chunk_shape: vec![8, 16] }
    }

    #[test]
    fn names_of_every_length_round_trip() {
        let records: Vec<Record> = (0..20).map(|len| record(&"n".repeat(len))).collect();
        let blob = encode(&records).unwrap();
        assert_eq!(blob.len() % 8, 0);
        assert_eq!(parse(&blob, 20).unwrap(), records);
        let error = parse(&blob, 19).unwrap_err();
        assert!(matches!(error.reason, Reason::Leftover { .. }), "{error}");
    }

    #[test]
    fn a_huge_count_is_refused_before_allocating() {
        let error = parse(&encode(&[record("a")]).unwrap(), u32::MAX).unwrap_err();
        assert_eq!(error.site.field, "dataset_count");
    }

    #[test]
    fn the_faulty_record_is_named() {
        let mut blob = encode(&[record("a"), record("b")]).unwrap();
        let second = blob.len() / 2;
        blob[second + 8] = 9;
        let error = parse(&blob, 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "malformed dataset record 1 › ndim (bytes 104..108)\n  is 9, but must be 1 to 8"
        );
    }
}
