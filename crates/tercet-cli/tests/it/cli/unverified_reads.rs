use tercet::core::checksum::crc32c;
use tercet::tet::{File, IntegrityStatus};

use super::support::TestDir;

const WARNING: &str =
    "warning: partial.tet: partly protected: row_stats and stats_crc32c: one is there without the other\n";

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
