//! Footers that other implementations cannot repair or read.

use std::io::Cursor;

use tercet_core::progress::NoProgress;
use tercet_core::{ElementType, TensorView};
use tercet_tet::{ActionState, File, HistoryRow, Layout, RepairOptions, Writer, WriterOptions, repair};

const VALUES: [u16; 12] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8];

/// A file as the reference writes it, with a footer.
fn reference_file() -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("pi", ElementType::U16, [12], [5]).unwrap();
    layout.attr(id, "units", "1").unwrap();
    layout.history(HistoryRow::at("note", "test", 1)).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::interop()).unwrap();
    writer.array(id, TensorView::from_slice(&[12], &VALUES).unwrap()).unwrap();
    writer.finish().unwrap().output
}

fn payload_end(bytes: &[u8]) -> usize {
    usize::try_from(File::from_bytes("intact", bytes.to_vec()).unwrap().payload_end()).unwrap()
}

/// Ways to break a footer, by name.
fn damages(intact: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let end = intact.len();
    let patched = |at: usize, patch: &[u8]| {
        let mut bytes = intact.to_vec();
        bytes[at..at + patch.len()].copy_from_slice(patch);
        bytes
    };
    vec![
        ("text", patched(payload_end(intact), b"[")),
        ("wrong magic", patched(end - 4, b"XHST")),
        ("cut tail", intact[..end - 5].to_vec()),
        ("absurd length", patched(end - 16, &[0xff; 8])),
        ("unknown version", patched(end - 8, &9u32.to_le_bytes())),
        ("no footer at all", intact[..payload_end(intact)].to_vec()),
    ]
}

#[test]
fn every_broken_footer_can_be_truncated() {
    let intact = reference_file();
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in damages(&intact) {
        let path = directory.path().join("broken.tet");
        std::fs::write(&path, &bytes).unwrap();
        assert!(File::open(&path).is_err(), "{name} opens");
        let plan = repair(&path, &RepairOptions::default(), &NoProgress).unwrap();
        assert_eq!(plan.actions.len(), 1, "{name}");
        assert_eq!(plan.actions[0].state, ActionState::Repairable, "{name}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}: a plan changes nothing");

        let options = RepairOptions::default().with_apply("footer_invalid");
        let report = repair(&path, &options, &NoProgress).unwrap();
        assert!(report.ok(), "{name}: {report:?}");
        let file = File::open(&path).unwrap();
        assert_eq!(
            file.dataset("pi").unwrap().read_all().unwrap().as_slice::<u16>(),
            Some(&VALUES[..]),
            "{name}"
        );
        // Bytes that cannot be distinguished from payloads may stay; payload bytes are never removed.
        assert!(file.len() >= payload_end(&intact) as u64, "{name}");
    }
}

#[test]
fn misplaced_zone_maps_are_ignored() {
    let mut layout = Layout::new();
    let id = layout.dataset("pi", ElementType::U16, [12], [5]).unwrap();
    let options = WriterOptions::interop().with_zone_maps(true);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(id, TensorView::from_slice(&[12], &VALUES).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap().output;
    let key = br#""zone_maps_ref":{"offset":"#;
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    // All digits of the offset become nines; the length of the JSON stays the same.
    let end = at + bytes[at..].iter().position(|&byte| byte == b'}').unwrap();
    bytes[at..end].iter_mut().filter(|byte| byte.is_ascii_digit()).for_each(|byte| *byte = b'9');
    let file = File::from_bytes("zones", bytes.clone()).unwrap();
    assert_eq!(file.dataset("pi").unwrap().read_all().unwrap().as_slice::<u16>(), Some(&VALUES[..]));
    let source = std::sync::Arc::new(tercet_core::source::Memory::new("zones", bytes));
    let report = tercet_tet::verify(source, tercet_tet::VerifyOptions::default(), &NoProgress).unwrap();
    assert!(report.ok);
    assert!(report.findings.iter().any(|finding| finding.code == "zone_maps"), "{report:?}");
}

/// A protected file whose row checksums are unreadable although the footer's checksum is right.
fn with_unusable_column() -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("pi", ElementType::U16, [12], [5]).unwrap();
    let options = WriterOptions::new().with_history(false);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(id, TensorView::from_slice(&[12], &VALUES).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap().output;
    let footer = payload_end(&bytes);
    let find = |bytes: &[u8], key: &[u8]| {
        bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len()
    };
    let column = find(&bytes, br#""row_crc32c":""#);
    bytes[column] = b'*';
    let digits = find(&bytes, br#""footer_crc32c":""#);
    bytes[digits..digits + 8].fill(b'0');
    let crc = tercet_core::checksum::crc32c(&bytes[footer..]);
    bytes[digits..digits + 8].copy_from_slice(format!("{crc:08x}").as_bytes());
    bytes
}

#[test]
fn a_partly_unusable_block_cannot_be_rewritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("doubtful.tet");
    std::fs::write(&path, with_unusable_column()).unwrap();
    let file = File::open(&path).unwrap();
    assert!(matches!(file.integrity_status(), tercet_tet::IntegrityStatus::Partial { .. }));
    assert_eq!(file.dataset("pi").unwrap().read_all().unwrap().as_slice::<u16>(), Some(&VALUES[..]));

    let error = tercet_tet::Rewrite::open(&path).unwrap_err();
    assert_eq!(tercet_core::Diagnostic::class(&error), tercet_core::Class::Corrupt, "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), with_unusable_column());

    let options = RepairOptions::default().with_apply("recompute_checksums");
    let report = repair(&path, &options, &NoProgress).unwrap();
    assert!(report.ok(), "{report:?}");
    let file = File::open(&path).unwrap();
    assert!(matches!(file.integrity_status(), tercet_tet::IntegrityStatus::Checked { .. }));
    assert_eq!(file.history().last().unwrap().op, "recompute_checksums");
}
