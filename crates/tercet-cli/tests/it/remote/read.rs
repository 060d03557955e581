//! Verbs that read.

use tercet_testkit::server::Fault;

use super::*;

#[test]
fn every_verb_says_of_an_address_what_it_says_of_a_path() {
    let scene = Scene::new();
    let run = scene.dir.read("run.tgm");
    scene.server.put("/bucket/run.tgm", &run);
    for address in [scene.server.url("/run.tgm"), "s3://bucket/run.tgm".to_owned()] {
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
            let here = scene.ok(&verb.replace("FILE", "run.tgm"));
            let there = scene.ok(&verb.replace("FILE", &address));
            assert!(there.bytes.len() > 2, "{verb}");
            assert_eq!(there.out.replace(&address, "run.tgm"), here.out, "{verb}");
            assert_eq!(there.err, here.err, "{verb}");
        }
    }
}

#[test]
fn files_of_the_other_format_too() {
    let scene = Scene::new();
    let address = scene.server.url("/run.tet");
    for verb in [
        "tet info -q FILE",
        "tet info --json FILE",
        "tet verify --deep FILE",
        "tet outline FILE",
        "tet extract FILE t -o -",
        "tercet info -q FILE",
        "tet query -t FILE {\"dataset\":\"t\",\"mean\":[]} -x",
    ] {
        let (here, there) =
            (scene.run(&verb.replace("FILE", "run.tet")), scene.run(&verb.replace("FILE", &address)));
        assert_eq!(there.code, here.code, "{verb}: {}", there.err);
        assert_eq!(there.out.replace(&address, "run.tet"), here.out, "{verb}");
    }
    let there = scene.ok(&format!("tet extract {address} t -s 5:8 -o -"));
    assert_eq!(there.bytes, [5.0f64, 6.0, 7.0].map(f64::to_le_bytes).concat());
}

#[test]
fn arrays_come_from_addresses_as_well() {
    let scene = Scene::new();
    let address = scene.server.url("/t.npy?geheim");
    scene.ok(&format!("tgm create new.tgm --from t={address} --reproducible"));
    scene.ok("tgm create old.tgm --from t=t.npy --reproducible");
    assert!(scene.dir.read("new.tgm") == scene.dir.read("old.tgm"));
    scene.ok(&format!("tgm validate new.tgm --against {address}"));
    scene.ok(&format!("tet create new.tet --from t={address}"));
    let bytes = scene.dir.read("new.tet");
    assert!(!bytes.windows(6).any(|six| six == b"geheim"), "the history of a file must not hold secrets");
}

#[test]
fn ranges_fetch_little_and_say_that_they_are_not_verified() {
    let scene = Scene::new();
    let address = scene.server.url("/run.tgm");
    scene.server.forget();
    let result = scene.ok(&format!("tgm extract {address} 1.0 --range 70000:10 -o -"));
    let values: Vec<u8> = (70_000..70_010).flat_map(|value| f64::from(value).to_le_bytes()).collect();
    assert_eq!(result.bytes, values);
    assert!(result.err.contains("note: hash not verified"), "{}", result.err);
    let (requests, sent) = scene.traffic();
    assert!(requests < 20 && sent < 800_000, "{requests} requests, {sent} bytes");

    let result = scene.ok(&format!("tgm extract {address} 1.0 --range 70000:10 --verify -o -"));
    assert_eq!((result.bytes, result.err), (values.clone(), String::new()));
    assert!(scene.traffic().1 > 800_000, "the whole object was fetched");
    // On disk it costs nothing to look.
    assert_eq!(scene.ok("tgm extract run.tgm 1.0 --range 70000:10 -o -").err, "");
}

#[test]
fn what_verify_fetches_it_compares() {
    let scene = Scene::new();
    let mut bytes = scene.dir.read("run.tgm");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    scene.server.put("/bad.tgm", &bytes);
    let address = scene.server.url("/bad.tgm");
    scene.ok(&format!("tgm extract {address} 1.0 --range 0:10 -o -"));
    scene.refused(
        &format!("tgm extract {address} 1.0 --range 0:10 --verify -o -"),
        5,
        "is damaged or was changed",
    );
    let result = scene.run(&format!("tgm validate {address}"));
    assert_eq!(result.code, 1, "{}", result.err);
}

#[test]
fn failures_have_the_exit_codes_of_files() {
    let scene = Scene::new();
    scene.refused(&format!("tgm ls {}", scene.server.url("/none.tgm")), 3, "not found (HTTP 404)");
    scene.refused("tgm ls s3://bucket/none.tgm", 3, "s3://bucket/none.tgm: cannot open: not found");
    scene.refused("tgm ls s3://bucket", 8, "invalid URL: it names no object");
    scene.refused("tgm ls ftp://host/a.tgm", 8, "unsupported URL scheme");
    scene.server.put("/text", b"no message");
    scene.refused(&format!("tgm ls {}", scene.server.url("/text")), 4, "");
    scene.server.always(Fault::Status(403));
    let result = scene.refused("tgm ls s3://bucket/a.tgm", 3, "access denied (HTTP 403)");
    assert!(result.err.contains("hint: set the credentials"), "{}", result.err);
}

#[test]
fn a_server_without_ranges_is_read_whole() {
    let scene = Scene::new();
    scene.server.always(Fault::NoRanges);
    scene.server.forget();
    let result = scene.ok(&format!("tgm ls -p step {}", scene.server.url("/run.tgm")));
    assert_eq!(result.out, scene.ok("tgm ls -p step run.tgm").out);
    assert_eq!(scene.traffic().0, 1);
}

#[test]
fn doctor_knows() {
    let scene = Scene::new();
    let result = scene.ok("tgm doctor");
    assert!(
        result.out.lines().any(|line| line.contains("remote") && line.contains("object_store")),
        "{}",
        result.out
    );
}
