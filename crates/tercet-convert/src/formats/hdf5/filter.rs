//! Filters of chunks that the library does not have.

use std::io::Read as _;

use hdf5_reader::FilterRegistry;
use hdf5_reader::error::Error;

use super::lzf;

const BLOSC: u16 = 32_001;
const ZSTD: u16 = 32_015;

/// Filters of the library: gzip, shuffle, Fletcher-32, szip, n-bit, scale-offset, LZ4.
const BUILT_IN: [u16; 7] = [1, 2, 3, 4, 5, 6, 32_004];

/// Filters that are not supported, by their registered names.
const OTHERS: [(u16, &str); 10] = [
    (305, "LZO"),
    (307, "bzip2"),
    (32_008, "bitshuffle"),
    (32_013, "ZFP"),
    (32_016, "FPZIP"),
    (32_017, "SZ"),
    (32_022, "BitGroom"),
    (32_023, "granular BitRound"),
    (32_024, "SZ3"),
    (32_026, "Blosc2"),
];

/// Whether chunks with a filter can be decoded.
pub(super) fn is_known(id: u16) -> bool {
    BUILT_IN.contains(&id) || [lzf::ID, BLOSC, ZSTD].contains(&id)
}

/// A filter for messages.
pub(super) fn name(id: u16) -> String {
    let name = OTHERS.iter().find(|(found, _)| *found == id);
    name.map_or_else(|| format!("the filter {id}"), |(_, name)| format!("the filter {name} ({id})"))
}

/// All filters that are known, for chunks of up to `most` bytes.
pub(super) fn registry(most: usize) -> FilterRegistry {
    let mut filters = FilterRegistry::new();
    let mut add = |id, decode: fn(&[u8], usize) -> Result<Vec<u8>, String>| {
        let decode = move |_: &_, bytes: &[u8], _: usize| decode(bytes, most).map_err(Error::FilterError);
        filters.register(id, Box::new(decode));
    };
    add(lzf::ID, |bytes, most| lzf::decode(bytes, most).ok_or_else(|| "damaged LZF chunk".to_owned()));
    add(ZSTD, zstd_frames);
    add(BLOSC, blosc);
    filters
}

fn too_large(most: usize) -> String {
    format!("a chunk has more than {most} bytes")
}

fn zstd_frames(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("zstd: {error}");
    let mut out = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(failed)?;
    let read = decoder.take((most as u64).saturating_add(1)).read_to_end(&mut out).map_err(failed)?;
    if read > most { Err(too_large(most)) } else { Ok(out) }
}

fn blosc(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    // Octets 4 to 7 of the header have the length of the values.
    let len = bytes.get(4..8).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes);
    match len.and_then(|len| usize::try_from(len).ok()) {
        Some(len) if len <= most => {
            blosc2_pure_rs::compress::decompress(bytes).map_err(|error| format!("blosc: {error}"))
        }
        Some(_) => Err(too_large(most)),
        None => Err("damaged Blosc chunk".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_chunks_are_limited() {
        let values = [7; 1000];
        let frame = zstd::encode_all(&values[..], 3).unwrap();
        assert_eq!(zstd_frames(&frame, 1000).unwrap(), values);
        assert!(zstd_frames(&frame, 999).is_err() && zstd_frames(&frame[..frame.len() / 2], 1000).is_err());
        assert!(blosc(&[2, 1, 1, 4, 255, 255, 255, 127, 0, 0, 0, 0, 0, 0, 0, 0], 1000).is_err());
        assert!(blosc(&[2, 1], 1000).is_err());
    }

    #[test]
    fn filters_have_names() {
        assert!(is_known(1) && is_known(ZSTD) && !is_known(307));
        assert_eq!(name(307), "the filter bzip2 (307)");
        assert_eq!(name(40_000), "the filter 40000");
    }
}
