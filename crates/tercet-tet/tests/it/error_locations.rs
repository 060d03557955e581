//! Errors name the region, the field and the bytes.

use tercet_core::{Class, CommonError, Diagnostic, Span};
use tercet_testkit::damage::{patched, spliced, zeroed};
use tercet_tet::{ChunkError, DatasetError, Error, ErrorKind, File, Region, StaleBlockError};

use crate::samples;

/// The offsets of the parts of a sample.
struct Regions {
    index: usize,
    first_row: usize,
    footer: usize,
    end: usize,
}

impl Regions {
    fn parse(bytes: &[u8]) -> Self {
        let file = File::from_bytes("good", bytes.to_vec()).unwrap();
        let index = file.superblock().chunk_index_offset as usize;
        Self { index, first_row: index + 32, footer: file.payload_end() as usize, end: bytes.len() }
    }
}

/// The error of opening the bytes and reading everything.
fn failure(bytes: Vec<u8>) -> Error {
    let read = || {
        let file = File::from_bytes("bad", bytes)?;
        file.datasets().try_for_each(|dataset| dataset.read_all().map(drop))
    };
    read().expect_err("the bytes are damaged")
}

fn assert_site(bytes: Vec<u8>, region: Region, field: &str, span: std::ops::Range<usize>) {
    let error = failure(bytes);
    let span = Span::between(span.start as u64, span.end as u64).unwrap();
    match error.kind() {
        ErrorKind::Common(CommonError::Malformed(malformed)) => {
            let site = malformed.site;
            assert_eq!((site.region, site.field, site.span), (region, field, span), "{error}");
        }
        other => panic!("{field}: {other:?}"),
    }
    // Another version may be valid for another reader; other numbers are invalid for all.
    let class = if field.ends_with("version") { Class::Unsupported } else { Class::Malformed };
    assert_eq!((error.class(), Diagnostic::span(&error)), (class, Some(span)));
    let text = error.to_string();
    assert!(text.starts_with("bad: ") && text.contains(field), "{text}");
    assert!(text.contains(&region.to_string()) && text.contains(&span.to_string()), "{text}");
}

#[test]
fn superblock_and_directory() {
    let good = samples::interop().bytes;
    let at = Regions::parse(&good);
    let superblock = Region::Superblock;
    assert_site(Vec::new(), superblock, "magic", 0..4);
    assert_site(good[..31].to_vec(), superblock, "chunk_index_length", 24..32);
    assert_site(patched(&good, 0, b"X"), superblock, "magic", 0..4);
    assert_site(patched(&good, 4, &[2]), superblock, "layout_version", 4..8);
    assert_site(patched(&good, 8, &[255; 4]), superblock, "dataset_count", 8..12);
    assert_site(good[..at.first_row + 50].to_vec(), superblock, "chunk_index_length", 16..32);
    assert_site(patched(&good, 16, &[1]), superblock, "chunk_index_offset", 16..24);

    let directory = Region::Directory;
    assert_site(zeroed(&good, 16..32)[..36].to_vec(), directory, "dataset_blob_len", 32..40);
    assert_site(patched(&good, 32, &[255; 8]), directory, "dataset_blob_len", 32..40);
    let record = Region::Dataset { index: 0 };
    assert_site(patched(&good, 48, &[9]), record, "ndim", 48..52);
    assert_site(patched(&good, 48, &[0]), record, "ndim", 48..52);
    assert_site(patched(&good, 56, &[0xff]), record, "name", 56..57);
}

#[test]
fn chunk_index() {
    let good = samples::interop().bytes;
    let at = Regions::parse(&good);
    let header = Region::IndexHeader;
    assert_site(patched(&good, at.index, b"X"), header, "magic", at.index..at.index + 4);
    assert_site(patched(&good, at.index + 4, &[3]), header, "index_version", at.index + 4..at.index + 8);
    assert_site(patched(&good, at.index + 8, &[3]), header, "entry_count", at.index + 8..at.index + 16);

    // The second row: its number is in the error.
    let row = at.first_row + 104;
    let region = Region::IndexRow { row: 1 };
    let field = |from: usize, to: usize| row + from..row + to;
    assert_site(patched(&good, row + 72, &[255; 7]), region, "payload_offset", field(72, 80));
    assert_site(patched(&good, row + 80, &[1]), region, "stored_byte_len", field(88, 96));
    assert_site(patched(&good, row + 96, &[7]), region, "codec", field(96, 100));
    let long = patched(&patched(&good, row + 80, &[255; 4]), row + 88, &[255; 4]);
    assert_site(long, region, "stored_byte_len", field(88, 96));
}

#[test]
fn footer() {
    let good = samples::interop().bytes;
    let at = Regions::parse(&good);
    let (tail, json) = (Region::FooterTail, Region::FooterJson);
    assert_site(patched(&good, at.end - 4, b"X"), tail, "magic", at.end - 4..at.end);
    assert_site(patched(&good, at.end - 8, &[3]), tail, "history_version", at.end - 8..at.end - 4);
    assert_site(patched(&good, at.end - 16, &[255; 8]), tail, "history_json_len", at.end - 16..at.end - 8);
    let text = at.footer..at.end - 16;
    assert_site(patched(&good, at.footer, b"X"), json, "history_json", text.clone());

    // Other footers.
    let with_text = |text: &str| {
        let footer = [text.as_bytes(), &(text.len() as u64).to_le_bytes(), &[1, 0, 0, 0], b"THST"].concat();
        spliced(&good, at.footer..at.end, &footer)
    };
    for wrong in ["[]", r#"{"history":null}"#, r#"{"history":[{"op":"x"}]}"#, r#"{"metadata":{"file":1}}"#] {
        assert_site(with_text(wrong), json, "history_json", at.footer..at.footer + wrong.len());
    }
    for outside in [r#"{"metadata_ref":{"offset":0,"len":4}}"#, r#"{"metadata_ref":{"offset":4096,"len":1}}"#]
    {
        assert_site(with_text(outside), json, "metadata_ref", at.footer..at.footer + outside.len());
    }
}

#[test]
fn invalid_datasets() {
    let good = samples::interop().bytes;
    let reason = |bytes| match failure(bytes).into_kind() {
        ErrorKind::BadDataset { dataset, reason } => (dataset.into_string(), reason),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(patched(&good, 44, &[77])), ("t".to_owned(), DatasetError::UnknownDType { tag: 77 }));
    assert_eq!(reason(zeroed(&good, 64..72)), ("t".to_owned(), DatasetError::ZeroShape { axis: 0 }));
    assert_eq!(reason(zeroed(&good, 88..96)), ("t".to_owned(), DatasetError::ZeroChunk { axis: 1 }));
    assert_eq!(reason(patched(&good, 64, &[255; 16])), ("t".to_owned(), DatasetError::TooLarge));
    // The other dataset is still readable.
    let file = File::from_bytes("half", patched(&good, 44, &[77])).unwrap();
    assert!(file.dataset("t").unwrap().read_all().is_err());
    assert!(file.dataset("z").unwrap().read_all().is_ok());
}

#[test]
fn missing_and_damaged_chunks() {
    let good = samples::interop().bytes;
    let at = Regions::parse(&good);
    let error = failure(patched(&good, at.first_row + 8, &[7]));
    assert!(
        matches!(error.kind(), ErrorKind::MissingChunk { dataset, coords } if &**dataset == "t" && **coords == [0, 0]),
        "{error}"
    );

    // The second chunk of the compressed dataset does not decode.
    let row = File::from_bytes("good", good.clone()).unwrap().row(5).unwrap();
    let start = row.payload_offset as usize;
    let error = failure(zeroed(&good, start..start + 4));
    match error.kind() {
        ErrorKind::Chunk { dataset, coords, row: 5, span, reason: ChunkError::Codec(_) } => {
            assert_eq!((&**dataset, &**coords), ("z", &[1][..]));
            assert_eq!((span.start(), span.len()), (row.payload_offset, row.stored_byte_len));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(error.class(), Class::Corrupt);
    assert_eq!(error.hint(), Some(tercet_core::Hint::Salvage));
}

#[test]
fn checksums() {
    let good = samples::raw_inline().bytes;
    let at = Regions::parse(&good);
    let file = File::from_bytes("good", good.clone()).unwrap();
    let payload = file.row(2).unwrap().payload_offset as usize;
    match failure(patched(&good, payload, &[0xee])).kind() {
        ErrorKind::Chunk { coords, row: 2, reason: ChunkError::Checksum(_), .. } => {
            assert_eq!(**coords, [1, 0]);
        }
        other => panic!("{other:?}"),
    }
    match failure(patched(&good, at.first_row + 100, &[1])).kind() {
        ErrorKind::Common(CommonError::Checksum {
            region: Region::IndexRun { first: 0, end: 4 },
            span,
            ..
        }) => {
            assert_eq!((span.start(), span.len()), (at.first_row as u64, 4 * 104));
        }
        other => panic!("{other:?}"),
    }
    match failure(patched(&good, 52, &[1])).kind() {
        ErrorKind::Common(CommonError::Checksum { region: Region::Catalog, span, .. }) => {
            assert_eq!((span.start(), span.end()), (0, at.first_row as u64));
        }
        other => panic!("{other:?}"),
    }
    // A letter of the attribute: the footer still parses.
    let units = good.windows(7).position(|window| window == br#""units""#).unwrap();
    match failure(patched(&good, units + 1, b"U")).kind() {
        ErrorKind::Common(CommonError::Checksum { region: Region::Footer, span, .. }) => {
            assert_eq!((span.start(), span.end()), (at.footer as u64, at.end as u64));
        }
        other => panic!("{other:?}"),
    }
    // White space does not change the JSON, but moves the digits.
    let marker = good.windows(9).position(|window| window == br#""tercet":"#).unwrap();
    let mut moved = spliced(&good, marker + 9..marker + 9, b" ");
    let len = at.end - at.footer - 16 + 1;
    let tail = moved.len() - 16;
    moved[tail..tail + 8].copy_from_slice(&(len as u64).to_le_bytes());
    let error = failure(moved);
    assert!(
        matches!(
            error.kind(),
            ErrorKind::StaleIntegrityBlock { region: Region::Footer, reason: StaleBlockError::NoDigits, .. }
        ),
        "{error}"
    );
    assert_eq!(error.class(), Class::Corrupt);
}

#[test]
fn the_file_is_named_in_every_error() {
    let good = samples::raw_inline().bytes;
    let error = File::from_bytes("odd\u{1b}[31m.tet", good[..20].to_vec()).unwrap_err();
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
    assert!(error.to_string().starts_with("odd"), "{error}");
}
