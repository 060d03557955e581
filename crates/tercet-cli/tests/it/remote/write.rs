//! Commands that write.

use tercet_testkit::server::Fault;

use super::*;

#[test]
fn messages_are_copied_into_a_store() {
    let fixture = Fixture::new();
    let result = fixture.ok("tgm copy run.tgm s3://bucket/run.tgm");
    assert_eq!(result.out, "s3://bucket/run.tgm: 3 messages, 2.3 MiB\n");
    assert!(fixture.server.file("/bucket/run.tgm").unwrap() == fixture.dir.read("run.tgm"));
    let before = fixture.server.file("/bucket/run.tgm");
    let result =
        fixture.refused("tgm copy run.tgm s3://bucket/run.tgm", 8, "s3://bucket/run.tgm: file exists");
    assert!(result.err.contains("hint: `--force` replaces it"), "{}", result.err);
    assert!(fixture.server.file("/bucket/run.tgm") == before);
    fixture.ok("tgm copy --force -w step=6 s3://bucket/run.tgm s3://bucket/run6.tgm");
    assert_eq!(fixture.ok("tgm ls -p step s3://bucket/run6.tgm").out, "step\n6\n");
    fixture.refused(
        "tgm copy --force s3://bucket/run.tgm s3://bucket/run.tgm",
        8,
        "input and output are the same file",
    );
    fixture.refused("tgm copy run.tgm s3://bucket/[step].tgm", 8, "placeholders are not supported in URLs");
    // Upload and download.
    fixture.ok("tgm copy s3://bucket/run.tgm back.tgm");
    assert!(fixture.dir.read("back.tgm") == fixture.dir.read("run.tgm"));
}

#[test]
fn uploads_to_web_servers_are_rejected() {
    let fixture = Fixture::new();
    let result =
        fixture.refused(&format!("tgm copy run.tgm {}", fixture.server.url("/x.tgm")), 8, "over HTTP");
    assert!(result.err.contains("hint: write to a file, or to `s3://`"), "{}", result.err);
}

#[test]
fn every_writing_command_writes_objects() {
    let fixture = Fixture::new();
    for (verb, is_same) in [
        ("tgm create OUT --from t=t.npy --reproducible", true),
        ("tgm create OUT --from t=t.npy --reproducible --compression zstd", true),
        // Objects cannot be patched, so the length of a streamed message stays unknown.
        ("tgm create OUT --from t=t.npy --reproducible --stream", false),
        // A repacked message gets a new UUID.
        ("tgm repack run.tgm OUT --compression lz4", false),
        ("tgm copy run.tgm OUT --filter shuffle --compression zstd", false),
        ("tgm extract run.tgm 0 --range 3:5 -o OUT", true),
        ("tgm extract run.tgm 0 --as npy -o OUT", true),
        ("tet extract run.tet t --as npy -o OUT", true),
        ("tet extract run.tet t -s ::2 --as raw -o OUT", true),
        ("tet create OUT --from t=t.npy", true),
    ] {
        let local = fixture.ok(&format!("{} --force", verb.replace("OUT", "here")));
        let remote = fixture.ok(&format!("{} --force", verb.replace("OUT", "s3://bucket/there")));
        let object = fixture.server.file("/bucket/there").unwrap();
        if is_same {
            assert!(object == fixture.dir.read("here"), "{verb}");
            assert_eq!(remote.out.replace("s3://bucket/there", "here"), local.out, "{verb}");
        } else {
            assert_eq!(fixture.ok("tgm ls s3://bucket/there").out, fixture.ok("tgm ls here").out, "{verb}");
            let values = |file: &str| fixture.ok(&format!("tgm extract {file} 0 -o -")).bytes;
            assert!(values("s3://bucket/there") == values("here"), "{verb}");
            fixture.ok("tgm validate --full s3://bucket/there");
        }
        assert_eq!(fixture.server.open_uploads(), 0, "{verb}");
        fixture.refused(&verb.replace("OUT", "s3://bucket/there"), 8, "file exists");
    }
}

#[test]
fn objects_are_not_edited_in_place() {
    let fixture = Fixture::new();
    fixture.ok("tgm copy run.tgm s3://bucket/run.tgm");
    fixture.refused(
        "tgm create --append s3://bucket/run.tgm --from t=t.npy",
        8,
        "cannot append to a remote object",
    );
    fixture.refused(
        &format!("tet repair {} --apply footer_invalid", fixture.server.url("/run.tet")),
        8,
        "cannot repair a remote file",
    );
    // A plan changes nothing.
    fixture.ok(&format!("tet repair --plan {}", fixture.server.url("/run.tet")));
    // A salvage writes a new object.
    fixture.ok("tet repair run.tet --salvage s3://bucket/x.tet");
    fixture.ok("tet verify s3://bucket/x.tet");
}

#[test]
fn a_failing_store_leaves_no_object() {
    let fixture = Fixture::new();
    fixture.dir.write("big.npy", npy(2_000_000));
    // The command checks for the object, starts the upload, and then a part fails permanently.
    fixture.server.next([None, None, Some(Fault::Status(400))]);
    fixture.refused(
        "tgm create s3://bucket/big.tgm --from t=big.npy",
        3,
        "s3://bucket/big.tgm: the server returned",
    );
    assert_eq!((fixture.server.file("/bucket/big.tgm"), fixture.server.open_uploads()), (None, 0));
    fixture.ok("tgm create s3://bucket/big.tgm --from t=big.npy");
    assert!(fixture.server.file("/bucket/big.tgm").unwrap().len() > 16_000_000);
    fixture.ok("tgm validate s3://bucket/big.tgm");
}
