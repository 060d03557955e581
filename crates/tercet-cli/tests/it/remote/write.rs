//! Verbs that write.

use tercet_testkit::server::Fault;

use super::*;

#[test]
fn messages_are_copied_into_a_store() {
    let scene = Scene::new();
    let result = scene.ok("tgm copy run.tgm s3://bucket/run.tgm");
    assert_eq!(result.out, "s3://bucket/run.tgm: 3 messages, 2.3 MiB\n");
    assert!(scene.server.file("/bucket/run.tgm").unwrap() == scene.dir.read("run.tgm"));
    let before = scene.server.file("/bucket/run.tgm");
    let result =
        scene.refused("tgm copy run.tgm s3://bucket/run.tgm", 8, "s3://bucket/run.tgm: exists already");
    assert!(result.err.contains("hint: `--force` replaces it"), "{}", result.err);
    assert!(scene.server.file("/bucket/run.tgm") == before);
    scene.ok("tgm copy --force -w step=6 s3://bucket/run.tgm s3://bucket/run6.tgm");
    assert_eq!(scene.ok("tgm ls -p step s3://bucket/run6.tgm").out, "step\n6\n");
    scene.refused(
        "tgm copy --force s3://bucket/run.tgm s3://bucket/run.tgm",
        8,
        "input and output are the same file",
    );
    scene.refused("tgm copy run.tgm s3://bucket/[step].tgm", 8, "placeholders are not supported in URLs");
    // There and back again.
    scene.ok("tgm copy s3://bucket/run.tgm back.tgm");
    assert!(scene.dir.read("back.tgm") == scene.dir.read("run.tgm"));
}

#[test]
fn web_servers_take_no_files() {
    let scene = Scene::new();
    let result = scene.refused(&format!("tgm copy run.tgm {}", scene.server.url("/x.tgm")), 8, "over HTTP");
    assert!(result.err.contains("hint: write to a file, or to `s3://`"), "{}", result.err);
}

#[test]
fn every_verb_that_writes_a_file_writes_an_object() {
    let scene = Scene::new();
    for (verb, is_same) in [
        ("tgm create OUT --from t=t.npy --reproducible", true),
        ("tgm create OUT --from t=t.npy --reproducible --compression zstd", true),
        // Where nothing can be changed any more the length of a message stays unknown.
        ("tgm create OUT --from t=t.npy --reproducible --stream", false),
        // A message that is recoded gets a number of its own.
        ("tgm recode run.tgm OUT --compression lz4", false),
        ("tgm copy run.tgm OUT --filter shuffle --compression zstd", false),
        ("tgm extract run.tgm 0 --range 3:5 -o OUT", true),
        ("tgm extract run.tgm 0 --as npy -o OUT", true),
        ("tet extract run.tet t --as npy -o OUT", true),
        ("tet extract run.tet t -s ::2 -o OUT", true),
        ("tet create OUT --from t=t.npy", true),
    ] {
        let here = scene.ok(&format!("{} --force", verb.replace("OUT", "here")));
        let there = scene.ok(&format!("{} --force", verb.replace("OUT", "s3://bucket/there")));
        let object = scene.server.file("/bucket/there").unwrap();
        if is_same {
            assert!(object == scene.dir.read("here"), "{verb}");
            assert_eq!(there.out.replace("s3://bucket/there", "here"), here.out, "{verb}");
        } else {
            assert_eq!(scene.ok("tgm ls s3://bucket/there").out, scene.ok("tgm ls here").out, "{verb}");
            let values = |file: &str| scene.ok(&format!("tgm extract {file} 0 -o -")).bytes;
            assert!(values("s3://bucket/there") == values("here"), "{verb}");
            scene.ok("tgm validate --full s3://bucket/there");
        }
        assert_eq!(scene.server.open_uploads(), 0, "{verb}");
        scene.refused(&verb.replace("OUT", "s3://bucket/there"), 8, "exists already");
    }
}

#[test]
fn objects_are_not_changed_in_their_place() {
    let scene = Scene::new();
    scene.ok("tgm copy run.tgm s3://bucket/run.tgm");
    scene.refused(
        "tgm create --append s3://bucket/run.tgm --from t=t.npy",
        8,
        "cannot append to a remote object",
    );
    scene.refused(&format!("tet repair {}", scene.server.url("/run.tet")), 8, "cannot repair a remote file");
    scene.refused("tet repair run.tet --salvage s3://bucket/x.tet", 8, "can only be written to a local path");
}

#[test]
fn a_store_that_fails_leaves_nothing() {
    let scene = Scene::new();
    scene.dir.write("big.npy", npy(2_000_000));
    // It asks whether it is there, starts, and then a part fails for good.
    scene.server.next([None, None, Some(Fault::Status(400))]);
    scene.refused(
        "tgm create s3://bucket/big.tgm --from t=big.npy",
        3,
        "s3://bucket/big.tgm: the server returned",
    );
    assert_eq!((scene.server.file("/bucket/big.tgm"), scene.server.open_uploads()), (None, 0));
    scene.ok("tgm create s3://bucket/big.tgm --from t=big.npy");
    assert!(scene.server.file("/bucket/big.tgm").unwrap().len() > 16_000_000);
    scene.ok("tgm validate s3://bucket/big.tgm");
}
