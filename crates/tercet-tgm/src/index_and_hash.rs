//! Index and hash frames: positions and hashes of the objects of a message.

use crate::cbor;
use crate::metadata::{Keys, MetadataError, MetadataErrorKind, entry_of, items_of, string_of, u64s_of};
use crate::value::Value;

/// The major type of arrays.
const ARRAY: u8 = 4;
/// The major type of maps.
const MAP: u8 = 5;

/// The positions of the objects of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexFrame {
    /// The offset of each object frame from the start of the message.
    pub offsets: Vec<u64>,
    /// The length of each object frame, without padding.
    pub lengths: Vec<u64>,
}

impl IndexFrame {
    /// Reads the body of an index frame. A missing list is empty; unknown keys are ignored.
    pub fn from_value(value: Value) -> Result<Self, MetadataError> {
        let mut entry = entry_of(value, Keys::Body)?;
        let mut list = |key| entry.remove(key).map_or(Ok(Vec::new()), |value| u64s_of(&value, key));
        let (offsets, lengths) = (list("offsets")?, list("lengths")?);
        if offsets.len() != lengths.len() {
            let (found, expected) = (lengths.len() as u64, offsets.len() as u64);
            let reason = MetadataErrorKind::Mismatch { found, expected, because: "as many as `offsets` has" };
            return Err(MetadataError::new("lengths", reason));
        }
        Ok(Self { offsets, lengths })
    }

    /// The body of an index frame as canonical CBOR.
    pub fn to_cbor(&self) -> Vec<u8> {
        // Encoded without intermediate values, because the writer encodes the list several times.
        let mut out = Vec::with_capacity(32 + 12 * self.offsets.len());
        cbor::head(MAP, 2, &mut out);
        for (key, numbers) in [("lengths", &self.lengths), ("offsets", &self.offsets)] {
            cbor::text(key, &mut out);
            cbor::head(ARRAY, numbers.len() as u64, &mut out);
            for &number in numbers {
                cbor::head(0, number, &mut out);
            }
        }
        out
    }
}

/// The hashes of the objects of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HashFrame {
    /// The algorithm, `xxh3`. Empty if not stored.
    pub algorithm: String,
    /// The hash of the frame of each object, in hexadecimal.
    pub hashes: Vec<String>,
}

impl HashFrame {
    /// Reads the body of a hash frame. Both keys may be missing; unknown keys are ignored.
    pub fn from_value(value: Value) -> Result<Self, MetadataError> {
        let mut entry = entry_of(value, Keys::Body)?;
        let algorithm =
            entry.remove("algorithm").map_or(Ok(String::new()), |value| string_of(value, "algorithm"))?;
        let hashes = entry.remove("hashes").map_or(Ok(Vec::new()), |value| items_of(value, "hashes"))?;
        let hash = |(at, value)| match string_of(value, "") {
            Ok(hash) => Ok(hash),
            Err(error) => Err(MetadataError::new(format!("hashes[{at}]"), error.reason)),
        };
        Ok(Self { algorithm, hashes: hashes.into_iter().enumerate().map(hash).collect::<Result<_, _>>()? })
    }

    /// The body of a hash frame as canonical CBOR.
    pub fn to_cbor(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + 17 * self.hashes.len());
        cbor::head(MAP, 2, &mut out);
        cbor::text("hashes", &mut out);
        cbor::head(ARRAY, self.hashes.len() as u64, &mut out);
        for hash in &self.hashes {
            cbor::text(hash, &mut out);
        }
        cbor::text("algorithm", &mut out);
        cbor::text(&self.algorithm, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;
    use tercet_core::Budget;

    use super::*;

    fn decode(bytes: &[u8]) -> Value {
        cbor::verify_canonical_cbor(bytes).unwrap();
        cbor::decode(bytes, &Budget::new("test", u64::MAX)).unwrap().0
    }

    fn index(json: &serde_json::Value) -> Result<IndexFrame, String> {
        IndexFrame::from_value(Value::from_json(json)).map_err(|error| error.to_string())
    }

    fn hashes(json: &serde_json::Value) -> Result<HashFrame, String> {
        HashFrame::from_value(Value::from_json(json)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_index_is_read_leniently() {
        assert_eq!(index(&json!({})), Ok(IndexFrame::default()));
        assert_eq!(
            index(&json!({ "future": 1, "offsets": [7], "lengths": [8] })),
            Ok(IndexFrame { offsets: vec![7], lengths: vec![8] })
        );
        for (json, error) in [
            (json!({ "offsets": [7] }), "key `lengths` is 0, but must be 1 (as many as `offsets` has)"),
            (json!({ "offsets": [-7], "lengths": [8] }), "key `offsets[0]` is -7, but must be 0 to 2^64 - 1"),
            (json!({ "offsets": null }), "key `offsets` is null, but must be an array"),
            (json!({ "$map": [[1, 2]] }), "the map has an integer as a key, but all keys must be strings"),
            (json!({ "$tag": 9, "value": {} }), "the map is a tagged item, but must be a map"),
        ] {
            assert_eq!(index(&json), Err(error.to_owned()));
        }
    }

    #[test]
    fn hashes_are_read_leniently() {
        assert_eq!(hashes(&json!({})), Ok(HashFrame::default()));
        let json = json!({ "hashes": ["00"], "future": 1, "algorithm": "other" });
        assert_eq!(
            hashes(&json),
            Ok(HashFrame { algorithm: "other".to_owned(), hashes: vec!["00".to_owned()] })
        );
        for (json, error) in [
            (json!({ "hashes": ["00", 1] }), "key `hashes[1]` is an integer, but must be a string"),
            (json!({ "algorithm": 1 }), "key `algorithm` is an integer, but must be a string"),
            (json!({ "$map": [[1, 2]] }), "the map has an integer as a key, but all keys must be strings"),
        ] {
            assert_eq!(hashes(&json), Err(error.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn an_index_reads_back(message_table in vec(any::<(u64, u64)>(), 0..40)) {
            let (offsets, lengths) = message_table.into_iter().unzip();
            let index = IndexFrame { offsets, lengths };
            prop_assert_eq!(IndexFrame::from_value(decode(&index.to_cbor())).unwrap(), index);
        }

        #[test]
        fn hashes_read_back(hashes in vec("[0-9a-f]{16}", 0..40), algorithm in "[a-z0-9]{0,30}") {
            let frame = HashFrame { algorithm, hashes };
            prop_assert_eq!(HashFrame::from_value(decode(&frame.to_cbor())).unwrap(), frame);
        }
    }
}
