use tercet::core::checksum::crc32c;
use tercet::tet::{File, IntegrityStatus};

use super::support::TestDir;

const WARNING: &str =
    "warning: partial.tet: partly protected: row_stats and stats_crc32c: one is present without the other\n";

/// A directory with `weather.tet` and `partial.tet`, a copy without one column of the integrity block.
fn with_partial() -> TestDir {
    let dir = TestDir::with_weather();
    let footer = File::open(dir.path("weather.tet")).unwrap().payload_end();
    dir.damaged("weather.tet", "partial.tet", |bytes| {
        let footer = &mut bytes[usize::try_from(footer).unwrap()..];
        let column = find(footer, b"\"row_stats\"");
        footer[column..column + 11].copy_from_slice(b"\"row_other\"");
        // The checksum of the changed footer is recomputed.
        let marker = b"\"footer_crc32c\":\"";
        let digits = find(footer, marker) + marker.len();
        footer[digits..digits + 8].fill(b'0');
        let sum = format!("{:08x}", crc32c(footer));
        footer[digits..digits + 8].copy_from_slice(sum.as_bytes());
    });
    let file = File::open(dir.path("partial.tet")).unwrap();
    assert!(
        matches!(file.integrity_status(), IntegrityStatus::Partial { .. }),
        "{:?}",
        file.integrity_status()
    );
    dir
}

fn find(bytes: &[u8], pattern: &[u8]) -> usize {
    bytes.windows(pattern.len()).position(|found| found == pattern).unwrap()
}

#[test]
fn reads_of_unverified_bytes_warn() {
    let dir = with_partial();
    for args in [
        "extract FILE t2m -o FILE.npy",
        "extract FILE t2m --access pread -o FILE.raw",
        "info FILE",
        "info FILE --json",
        "info FILE -q",
        "outline FILE",
    ] {
        let output = dir.tet(&args.replace("FILE", "partial.tet"));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), WARNING), "{args}");
        assert!(!output.stdout.contains("warning:"), "{args}: {}", output.stdout);
        let output = dir.tet(&args.replace("FILE", "weather.tet"));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{args}");
    }
    assert!(dir.read("partial.tet.npy") == dir.read("weather.tet.npy"));
}

#[test]
fn reads_without_verification_do_not_warn() {
    let dir = with_partial();
    let output = dir.tet("extract partial.tet t2m --ignore-checksums -o out.npy");
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

/// Single flipped bits that hide the integrity block of `weather.tet`.
fn hidden_blocks(dir: &TestDir) -> Vec<(&'static str, usize, u8)> {
    let bytes = dir.read("weather.tet");
    let last = |text: &[u8]| bytes.windows(text.len()).rposition(|window| window == text).unwrap();
    let version = last(b"\"version\":1");
    vec![
        ("footer flag", 12, 1),
        ("metadata", last(b"\"metadata\"") + 2, 1),
        ("tercet", last(b"\"tercet\"") + 6, 1),
        ("version", version + 3, 1),
        ("version digit", version + 10, 2),
    ]
}

#[test]
fn one_flipped_bit_does_not_switch_protection_off() {
    let dir = TestDir::with_weather();
    assert_eq!(dir.tet("extract weather.tet t2m -o good.npy").code, Some(0));
    let labels = dir.tet("info weather.tet --metadata").stdout;
    for (place, offset, mask) in hidden_blocks(&dir) {
        dir.damaged("weather.tet", "bad.tet", |bytes| bytes[offset] ^= mask);
        let bytes = dir.read("bad.tet");
        for args in [
            "info bad.tet",
            "info bad.tet --json",
            "info bad.tet -q",
            "outline bad.tet",
            r#"query {"dataset":"t2m","mean":[]} -t bad.tet -x"#,
            "extract bad.tet t2m -o out.npy",
            "append bad.tet --from n=good.npy",
            "drop bad.tet t2m",
        ] {
            let ran = dir.tet(args);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{place}: {args}: {}", ran.stderr);
            assert!(ran.stderr.contains("integrity block"), "{place}: {args}: {}", ran.stderr);
        }
        assert!(!dir.path("out.npy").exists(), "{place}");
        assert!(dir.read("bad.tet") == bytes, "{place}: the file is unchanged");

        let verified = dir.tet("verify bad.tet");
        assert_eq!(verified.code, Some(1), "{place}");
        assert!(verified.stdout.contains("tercet_block           FAIL"), "{place}: {}", verified.stdout);
        let ran = dir.tet("extract bad.tet t2m --ignore-checksums --force -o unchecked.npy");
        assert_eq!(ran.code, Some(0), "{place}: {}", ran.stderr);
        assert!(dir.read("unchecked.npy") == dir.read("good.npy"), "{place}");

        let ran = dir.tet("repair bad.tet --apply recompute_checksums");
        assert_eq!(ran.code, Some(0), "{place}: {}", ran.stdout);
        assert_eq!(dir.tet("verify bad.tet --deep -q").code, Some(0), "{place}");
        let repaired = dir.tet("info bad.tet --metadata").stdout;
        let metadata = |text: &str| text.split_once("file metadata:").unwrap().1.to_owned();
        assert_eq!(metadata(&repaired), metadata(&labels), "{place}");
    }
}

/// Long strings in the footer: the time of `info` grows with their length, not with its square.
#[test]
fn info_of_a_long_footer_is_quick() {
    let dir = TestDir::new();
    let name = "n".repeat(400_000);
    let names: Vec<String> = (0..60_000).map(|n| n.to_string()).collect();
    let text = serde_json::json!({"history": [], "metadata": {"datasets": {
        "a": {"dim_names": [name, "y"]}, "b": {"dim_names": names},
    }}})
    .to_string();
    let mut layout = tercet::tet::Layout::new();
    let ids = ["a", "b"].map(|name| layout.dataset(name, tercet::core::DType::U8, [1, 1], [1, 1]).unwrap());
    let options = tercet::tet::WriterOptions::interop();
    let mut writer = tercet::tet::Writer::new(std::io::Cursor::new(Vec::new()), layout, options).unwrap();
    for id in ids {
        writer.array(id, tercet::core::TensorView::from_slice(&[1, 1], &[1u8]).unwrap()).unwrap();
    }
    let mut bytes = writer.finish().unwrap().output;
    bytes[12] = 1;
    bytes.extend(text.as_bytes());
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(b"THST");
    assert!(bytes.len() > 800_000);
    dir.write("long.tet", &bytes);
    let start = std::time::Instant::now();
    let ran = dir.tet("info long.tet --all");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // Quadratic work took half a minute, in an optimized build.
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
