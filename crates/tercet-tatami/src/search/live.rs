//! Live documents.

use tercet_core::{FieldReader, Malformed, Reason};

use crate::predicate::Mask;
use crate::region::Region;
use crate::scan::RowSelection;
use crate::wire::cursor::Varints as _;

/// One bit per document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    words: Vec<u64>,
    documents: u64,
}

impl Live {
    /// Parses the record; missing 64-bit words are zero.
    pub(crate) fn parse(start: u64, payload: &[u8], documents: u64) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(Region::Inverted { part: "live documents" }, start, payload);
        let count = fields.uvarint("document_count")?;
        if count != documents {
            let because = "the documents of the segment";
            let reason = Reason::Mismatch { found: count, expected: documents, because };
            return Err(fields.fault("document_count", 1, reason));
        }
        let mut words = Vec::new();
        while fields.remaining() >= 8 && (words.len() as u64) < documents.div_ceil(64) {
            words.push(fields.u64_le("bits")?);
        }
        Ok(Self { words, documents })
    }

    /// The live documents among some rows.
    pub(crate) fn restricted(mut self, rows: &RowSelection) -> Self {
        for gap in rows.complement(self.documents).ranges() {
            gap.clone().filter_map(|row| u32::try_from(row).ok()).for_each(|document| self.delete(document));
        }
        self
    }

    /// All documents.
    pub(crate) fn all(documents: u64) -> Self {
        let words = vec![u64::MAX; usize::try_from(documents.div_ceil(64)).unwrap_or(0)];
        let mut out = Self { words, documents };
        if !documents.is_multiple_of(64)
            && let Some(last) = out.words.last_mut()
        {
            *last &= (1 << (documents % 64)) - 1;
        }
        out
    }

    /// Deletes a document.
    pub(crate) fn delete(&mut self, document: u32) {
        if let Some(word) = self.words.get_mut(document as usize / 64) {
            *word &= !(1 << (document % 64));
        }
    }

    pub(crate) fn contains(&self, document: u32) -> bool {
        self.words.get(document as usize / 64).is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    /// One bit per document.
    pub(crate) fn mask(&self) -> Mask {
        let rows = usize::try_from(self.documents).unwrap_or(0);
        Mask::from_fn(rows, |row| u32::try_from(row).is_ok_and(|document| self.contains(document)))
    }

    /// The number of live documents.
    pub(crate) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The payload of the record.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        crate::wire::cursor::put(self.documents, &mut out);
        for word in &self.words {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_the_expected_bytes() {
        let mut live = Live::all(70);
        live.delete(0);
        live.delete(65);
        let bytes = [0x46, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3d, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(live.to_bytes(), bytes);
        assert_eq!(Live::parse(0, &bytes, 70).unwrap(), live);
        assert_eq!(live.count(), 68);
        assert!(!live.contains(0) && live.contains(1) && !live.contains(70));
        assert!(Live::parse(0, &bytes, 71).is_err());
    }
}
