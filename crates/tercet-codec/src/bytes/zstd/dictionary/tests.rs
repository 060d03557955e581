use proptest::prelude::*;

use super::super::{decode, encode_frame};
use super::*;

/// Similar records, like those of a log.
fn records(n: u32) -> Vec<Vec<u8>> {
    let hosts = ["alpha", "beta", "gamma", "delta"];
    (0..n)
        .map(|i| {
            let mixed = i.wrapping_mul(2_654_435_761);
            let host = hosts[(mixed >> 9) as usize % hosts.len()];
            let status = [200, 404, 500][(mixed >> 20) as usize % 3];
            let text = format!(
                r#"{{"host":"{host}.example.org","path":"/item/{}","status":{status},"micros":{}}}"#,
                mixed >> 17,
                mixed >> 22,
            );
            text.into_bytes()
        })
        .collect()
}

fn trained() -> Dictionary {
    let records = records(2000);
    let samples: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    Dictionary::trained(train(&samples, 4096).unwrap().unwrap()).unwrap()
}

fn encoded(dictionary: &Dictionary, raw: &[u8]) -> Vec<u8> {
    let mut out = vec![7];
    dictionary.encode(raw, 3, &mut out).unwrap();
    assert_eq!(out.remove(0), 7);
    out
}

fn decoded(dictionary: &Dictionary, stored: &[u8], len: usize) -> Result<Vec<u8>, CodecError> {
    let mut raw = vec![0; len];
    let done = dictionary.decode(stored, &mut raw);
    let mut new = b"before".to_vec();
    assert_eq!(dictionary.decode_new(stored, raw.len(), &mut new), done);
    assert!(if done.is_ok() { new == raw } else { new.is_empty() });
    done.map(|()| raw)
}

fn plain(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(raw, 3, &mut out).unwrap();
    out
}

#[test]
fn frames_of_raw_content_have_its_id() {
    let content = records(100).concat();
    let raw = &content[500..1200];
    // The second looks like a trained dictionary and is not; the third is shorter than libzstd examines.
    for content in [content.clone(), [&MAGIC[..], &content].concat(), b"abc".to_vec(), Vec::new()] {
        let dictionary = Dictionary::raw(content.clone());
        assert_eq!((dictionary.id(), dictionary.is_trained()), (1, false));
        let stored = encoded(&dictionary, raw);
        // Size of two bytes (or one) and single segment, checksum, one byte of ID.
        assert_eq!(stored[..6], [0x28, 0xb5, 0x2f, 0xfd, 0x65, 0x01]);
        assert_eq!(decoded(&dictionary, &stored, raw.len()).unwrap(), raw);
        if content.len() > 1000 {
            assert!(stored.len() < 100, "{} bytes: the content was used", stored.len());
            assert!(decode(&stored, &mut vec![0; raw.len()]).is_err(), "not readable without it");
        }
    }
}

#[test]
fn frames_with_a_window_byte_are_read() {
    // As written by others: the ID after the window byte, here in one, two and four bytes.
    let content = b"the dictionary is content only".to_vec();
    let dictionary = Dictionary::raw(content);
    let streamed = {
        let mut out = Vec::new();
        super::super::encode(b"some payload", 3, &mut out).unwrap();
        out
    };
    assert_eq!(streamed[4] & 0x23, 0, "a window byte and no name");
    for (flag, name) in [(1u8, &[1u8][..]), (2, &[1, 0]), (3, &[1, 0, 0, 0])] {
        let mut stored = streamed.clone();
        stored[4] |= flag;
        stored.splice(6..6, name.iter().copied());
        assert_eq!(decoded(&dictionary, &stored, 12).unwrap(), b"some payload");
        stored[6] = 2;
        let error = decoded(&dictionary, &stored, 12).unwrap_err();
        assert!(error.to_string().contains("has dictionary 2 instead of dictionary 1"), "{error}");
    }
    assert_eq!(decoded(&dictionary, &streamed, 12).unwrap(), b"some payload", "a missing ID is accepted");
}

#[test]
fn the_id_is_inserted_and_removed_after_the_window_byte() {
    let mut streamed = Vec::new();
    super::super::encode(b"some payload", 3, &mut streamed).unwrap();
    let mut named = [&[9, 9][..], &streamed].concat();
    header::insert_raw_id(&mut named, 2).unwrap();
    assert_eq!(named[2..9], [&streamed[..4], &[streamed[4] | 1, streamed[5], 1]].concat());
    let mut back = Vec::new();
    header::remove_raw_id(&named[2..], &mut back).unwrap();
    assert_eq!(back, streamed);
}

#[test]
fn known_frames_are_read() {
    let empty = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];
    let zero = [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x09, 0x00, 0x00, 0x00, 0x68, 0x27, 0x05, 0xdb];
    decode(&empty, &mut []).unwrap();
    let mut raw = [7];
    decode(&zero, &mut raw).unwrap();
    assert_eq!(raw, [0]);
    let page = [0x28, 0xb5, 0x2f, 0xfd, 4, 0, 0x19, 0, 0, 2, 7, 0x24, 0x97, 0x0a, 0x0a, 0x56];
    let mut raw = [0; 3];
    decode(&page, &mut raw).unwrap();
    assert_eq!(raw, [2, 7, 0x24]);
    let dictionary = Dictionary::raw(b"whatever it is".to_vec());
    assert_eq!(decoded(&dictionary, &zero, 1).unwrap(), [0]);
    assert_eq!(decoded(&dictionary, &empty, 0).unwrap(), []);
}

#[test]
fn trained_dictionaries_make_small_payloads_smaller() {
    let dictionary = trained();
    assert!(TRAINED_IDS.contains(&dictionary.id()) && dictionary.is_trained());
    assert!(dictionary.bytes().len() <= 4096);
    let (mut with, mut without) = (0, 0);
    for record in records(50) {
        let stored = encoded(&dictionary, &record);
        assert_eq!(decoded(&dictionary, &stored, record.len()).unwrap(), record);
        with += stored.len();
        without += plain(&record).len();
    }
    assert!(with * 2 < without, "{with} of {without}");
}

/// Samples of which the first three quarters are almost empty: the trainer would read past them.
#[test]
fn empty_samples_before_long_ones_are_no_danger() {
    let long = b"something to learn from, at last".repeat(8);
    for count in 1..40_usize {
        for short in [0, 1, 3, 7, 8] {
            let mut samples: Vec<&[u8]> = vec![b""; count];
            samples[0] = &long[..short];
            samples[count - 1] = &long;
            if let Some(bytes) = train(&samples, 4096).unwrap() {
                Dictionary::trained(bytes).unwrap();
            }
        }
    }
}

#[test]
fn training_is_deterministic_and_may_find_nothing() {
    assert_eq!(trained().bytes(), trained().bytes());
    assert_eq!(train(&[], 4096), Ok(None));
    assert_eq!(train(&[&[]], 4096), Ok(None));
    assert_eq!(train(&[b"abc", b"abd"], 4096), Ok(None));
    let many: Vec<&[u8]> = vec![b"x"; 1000];
    if let Some(bytes) = train(&many, 4096).unwrap() {
        Dictionary::trained(bytes).unwrap();
    }
    let records = records(500);
    let samples: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    assert!(train(&samples, 10).is_err(), "no dictionary is that small");
}

#[test]
fn invalid_trained_dictionaries_are_rejected() {
    let good = trained().bytes().to_vec();
    let refused = |bytes: Vec<u8>| Dictionary::trained(bytes).unwrap_err().to_string();
    for len in 0..8 {
        assert!(refused(good[..len].to_vec()).contains("no magic"));
    }
    assert!(refused(records(10).concat()).contains("no magic"));
    for id in [0, 1, 32_767, 1 << 31, u32::MAX] {
        let mut bytes = good.clone();
        bytes[4..8].copy_from_slice(&id.to_le_bytes());
        assert!(refused(bytes).contains(&format!("number {id}")));
    }
    assert!(refused(good[..40].to_vec()).contains("tables"));
    for id in [32_768u32, (1 << 31) - 1] {
        let mut bytes = good.clone();
        bytes[4..8].copy_from_slice(&id.to_le_bytes());
        let dictionary = Dictionary::trained(bytes).unwrap();
        let stored = encoded(&dictionary, b"a payload of some length");
        assert_eq!(decoded(&dictionary, &stored, 24).unwrap(), b"a payload of some length");
        assert_eq!(dictionary.id(), id);
    }
}

#[test]
fn another_dictionary_is_rejected() {
    let dictionary = trained();
    let raw = records(3).concat();
    let stored = encoded(&dictionary, &raw);
    let mut other = dictionary.bytes().to_vec();
    other[4] ^= 1;
    let other = Dictionary::trained(other).unwrap();
    let error = decoded(&other, &stored, raw.len()).unwrap_err().to_string();
    assert!(error.contains(&format!("has dictionary {}", dictionary.id())), "{error}");
    let error = decoded(&dictionary, &plain(&raw), raw.len()).unwrap_err().to_string();
    assert!(error.contains("has no dictionary instead of dictionary"), "{error}");
    let both = [stored.clone(), plain(b"x")].concat();
    assert!(decoded(&dictionary, &both, raw.len() + 1).is_err(), "the second frame counts, too");
    let raw_content = Dictionary::raw(dictionary.bytes().to_vec());
    assert!(decoded(&raw_content, &stored, raw.len()).is_err());
    let twice = [stored.clone(), stored].concat();
    assert_eq!(decoded(&dictionary, &twice, raw.len() * 2).unwrap(), [raw.clone(), raw].concat());
}

#[test]
fn invalid_streams_are_rejected() {
    let raw = records(5).concat();
    let content = records(20).concat();
    for dictionary in
        [trained(), Dictionary::raw(content.clone()), Dictionary::raw([&MAGIC[..], &content].concat())]
    {
        let stored = encoded(&dictionary, &raw);
        for cut in 0..stored.len() {
            assert!(decoded(&dictionary, &stored[..cut], raw.len()).is_err(), "cut at {cut}");
        }
        assert!(decoded(&dictionary, &[&stored[..], b"x"].concat(), raw.len()).is_err(), "trailing bytes");
        assert!(decoded(&dictionary, &stored, raw.len() - 1).is_err(), "too long");
        let found = raw.len() as u64;
        let error = decoded(&dictionary, &stored, raw.len() + 1).unwrap_err();
        assert_eq!(error, CodecError::WrongLength { codec: "zstd", expected: found + 1, found });
        let mut damaged = stored.clone();
        for at in 0..stored.len() {
            for flip in [1, 0x20, 0x80, 0xff] {
                damaged[at] ^= flip;
                if let Ok(other) = decoded(&dictionary, &damaged, raw.len()) {
                    assert!(other == raw, "the checksum holds, or a header bit without meaning was flipped");
                }
                damaged[at] ^= flip;
            }
        }
        assert_eq!(decoded(&dictionary, &stored, raw.len()).unwrap(), raw);
    }
}

#[test]
fn a_dictionary_serves_many_threads_and_levels() {
    let dictionary = trained();
    std::thread::scope(|scope| {
        for level in [-3, 1, 3, 9] {
            let dictionary = &dictionary;
            scope.spawn(move || {
                for record in records(30) {
                    let mut out = Vec::new();
                    dictionary.encode(&record, level, &mut out).unwrap();
                    assert_eq!(decoded(dictionary, &out, record.len()).unwrap(), record);
                    // A frame without dictionary in between is not affected.
                    decode(&plain(&record), &mut vec![0; record.len()]).unwrap();
                }
            });
        }
    });
}

proptest! {
    #[test]
    fn round_trips(
        content in prop::collection::vec(0u8..20, 0..600),
        raw in prop::collection::vec(0u8..20, 0..600),
        level in -3i32..12,
        looks_trained in any::<bool>(),
    ) {
        let content = if looks_trained { [&MAGIC[..], &content].concat() } else { content };
        let dictionary = Dictionary::raw(content);
        let mut out = Vec::new();
        dictionary.encode(&raw, level, &mut out).unwrap();
        prop_assert_eq!(decoded(&dictionary, &out, raw.len()).unwrap(), raw);
    }
}

#[test]
fn useless_samples_are_ignored() {
    // The trainer of libzstd learns from the first three quarters and reads past them when they are almost empty.
    let long = [7u8; 4000];
    for short in [0, 1, 7] {
        let mut samples: Vec<&[u8]> = vec![&long[..short]; 30];
        samples.extend([&long[..]; 10]);
        _ = train(&samples, 16 << 10).unwrap();
        samples.truncate(31);
        assert_eq!(train(&samples, 16 << 10).unwrap(), None);
    }
    for len in [8, 9, 15, 16, 17] {
        _ = train(&[&long[..len]; 8], 16 << 10).unwrap();
    }
}
