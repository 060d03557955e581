//! Commands that read.

use std::fmt::Write as _;

use tercet_testkit::server::Fault;

use super::*;

#[test]
fn urls_and_paths_give_the_same_output() {
    let fixture = Fixture::new();
    let run = fixture.dir.read("run.tgm");
    fixture.server.put("/bucket/run.tgm", &run);
    for url in [fixture.server.url("/run.tgm"), "s3://bucket/run.tgm".to_owned()] {
        for verb in [
            "tgm ls -p step FILE",
            "tgm ls -j FILE",
            "tgm get -p step FILE",
            "tgm dump FILE",
            "tgm info FILE",
            "tgm info -j FILE",
            "tgm validate FILE",
            "tgm validate --full --json FILE",
            "tgm outline FILE",
            "tgm extract FILE 1.0 -o -",
            "tgm copy -w step=6 FILE -",
            "tercet info FILE",
            "tercet verify FILE",
        ] {
            let local = fixture.ok(&verb.replace("FILE", "run.tgm"));
            let remote = fixture.ok(&verb.replace("FILE", &url));
            assert!(remote.bytes.len() > 2, "{verb}");
            assert_eq!(remote.out.replace(&url, "run.tgm"), local.out, "{verb}");
            assert_eq!(remote.err, local.err, "{verb}");
        }
    }
}

#[test]
fn tet_urls_and_paths_give_the_same_output() {
    let fixture = Fixture::new();
    let url = fixture.server.url("/run.tet");
    for verb in [
        "tet info -q FILE",
        "tet info --json FILE",
        "tet verify --deep FILE",
        "tet outline FILE",
        "tet extract FILE t -o -",
        "tercet info -q FILE",
        "tet query -t FILE {\"dataset\":\"t\",\"mean\":[]} -x",
    ] {
        let (local, remote) =
            (fixture.run(&verb.replace("FILE", "run.tet")), fixture.run(&verb.replace("FILE", &url)));
        assert_eq!(remote.code, local.code, "{verb}: {}", remote.err);
        assert_eq!(remote.out.replace(&url, "run.tet"), local.out, "{verb}");
    }
    let remote = fixture.ok(&format!("tet extract {url} t -s 5:8 -o -"));
    assert_eq!(remote.bytes, [5.0f64, 6.0, 7.0].map(f64::to_le_bytes).concat());
}

#[test]
fn arrays_are_read_from_urls() {
    let fixture = Fixture::new();
    let url = fixture.server.url("/t.npy?geheim");
    fixture.ok(&format!("tgm create new.tgm --from t={url} --reproducible"));
    fixture.ok("tgm create old.tgm --from t=t.npy --reproducible");
    assert!(fixture.dir.read("new.tgm") == fixture.dir.read("old.tgm"));
    fixture.ok(&format!("tgm validate new.tgm --against {url}"));
    fixture.ok(&format!("tet create new.tet --from t={url}"));
    let bytes = fixture.dir.read("new.tet");
    assert!(!bytes.windows(6).any(|six| six == b"geheim"), "the history of a file must not hold secrets");
}

#[test]
fn ranges_fetch_few_bytes_and_warn_that_they_are_unverified() {
    let fixture = Fixture::new();
    let url = fixture.server.url("/run.tgm");
    fixture.server.clear_requests();
    let result = fixture.ok(&format!("tgm extract {url} 1.0 --range 70000:10 -o -"));
    let values: Vec<u8> = (70_000..70_010).flat_map(|value| f64::from(value).to_le_bytes()).collect();
    assert_eq!(result.bytes, values);
    assert!(result.err.contains("note: hash not verified"), "{}", result.err);
    let (requests, sent) = fixture.traffic();
    assert!(requests < 20 && sent < 800_000, "{requests} requests, {sent} bytes");

    let result = fixture.ok(&format!("tgm extract {url} 1.0 --range 70000:10 --verify -o -"));
    assert_eq!((result.bytes, result.err), (values.clone(), String::new()));
    assert!(fixture.traffic().1 > 800_000, "the whole object was fetched");
    // Local ranges are verified.
    assert_eq!(fixture.ok("tgm extract run.tgm 1.0 --range 70000:10 -o -").err, "");
}

#[test]
fn verify_checks_all_remote_bytes() {
    let fixture = Fixture::new();
    let mut bytes = fixture.dir.read("run.tgm");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fixture.server.put("/bad.tgm", &bytes);
    let url = fixture.server.url("/bad.tgm");
    fixture.ok(&format!("tgm extract {url} 1.0 --range 0:10 -o -"));
    fixture.refused(
        &format!("tgm extract {url} 1.0 --range 0:10 --verify -o -"),
        5,
        "is damaged or was changed",
    );
    let result = fixture.run(&format!("tgm validate {url}"));
    assert_eq!(result.code, 1, "{}", result.err);
}

#[test]
fn remote_errors_have_the_exit_codes_of_local_errors() {
    let fixture = Fixture::new();
    fixture.refused(&format!("tgm ls {}", fixture.server.url("/none.tgm")), 3, "not found (HTTP 404)");
    fixture.refused("tgm ls s3://bucket/none.tgm", 3, "s3://bucket/none.tgm: cannot open: not found");
    fixture.refused("tgm ls s3://bucket", 8, "invalid URL: it names no object");
    fixture.refused("tgm ls ftp://host/a.tgm", 8, "unsupported URL scheme");
    fixture.server.put("/text", b"no message");
    fixture.refused(&format!("tgm ls {}", fixture.server.url("/text")), 4, "");
    fixture.server.always(Fault::Status(403));
    let result = fixture.refused("tgm ls s3://bucket/a.tgm", 3, "access denied (HTTP 403)");
    assert!(result.err.contains("hint: set the credentials"), "{}", result.err);
}

#[test]
fn a_server_without_ranges_is_downloaded_whole() {
    let fixture = Fixture::new();
    fixture.server.always(Fault::NoRanges);
    fixture.server.clear_requests();
    let result = fixture.ok(&format!("tgm ls -p step {}", fixture.server.url("/run.tgm")));
    assert_eq!(result.out, fixture.ok("tgm ls -p step run.tgm").out);
    assert_eq!(fixture.traffic().0, 1);
}

#[test]
fn doctor_reports_remote_support() {
    let fixture = Fixture::new();
    let result = fixture.ok("tgm doctor");
    assert!(
        result.out.lines().any(|line| line.contains("remote") && line.contains("object_store")),
        "{}",
        result.out
    );
}

/// Corrections would transfer the dictionary of a remote segment.
#[test]
fn missing_words_of_remote_segments_are_not_corrected() {
    let fixture = Fixture::new();
    let mut documents = String::new();
    for number in 0..3000u32 {
        let word = |at: u32| format!("{:x}", (number * 4 + at).wrapping_mul(2_654_435_761));
        let text = [word(0), word(1), word(2), word(3)].join(" ");
        let _ = writeln!(documents, "{{\"id\":\"{number}\",\"text\":\"lantern {text}\"}}");
    }
    fixture.dir.write("d.jsonl", documents);
    fixture.ok("tatami index d.jsonl -o d.tatami --analyzer standard");
    fixture.server.put("/d.tatami", &fixture.dir.read("d.tatami"));
    let local = fixture.refused("tatami search d.tatami lanterm", 1, "no document contains `lanterm`");
    assert!(local.err.contains("did you mean `lantern`?"), "{}", local.err);
    let url = fixture.server.url("/d.tatami");
    fixture.server.clear_requests();
    let remote =
        fixture.refused(&format!("tatami search {url} lanterm"), 1, "no document contains `lanterm`");
    assert!(!remote.err.contains("did you mean"), "{}", remote.err);
    let (requests, bytes) = fixture.traffic();
    assert!(requests <= 6 && bytes <= 256 << 10, "{requests} requests, {bytes} bytes");
}
