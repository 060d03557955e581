//! What may be secret in an address is never shown.

use tercet_testkit::server::Fault;

use super::*;

#[test]
fn secrets_are_never_shown() {
    let scene = Scene::new();
    let url = |path: &str| scene.server.url(path).replace("http://", "http://me:geheim@") + "?token=geheim";
    let (run, tet) = (url("/run.tgm"), url("/run.tet"));
    let elsewhere = Server::start();
    let there = elsewhere.url("/x?token=geheim").replace("http://", "http://me:geheim@");
    let faults = [
        None,
        Some(Fault::Status(404)),
        Some(Fault::Status(400)),
        Some(Fault::Status(403)),
        Some(Fault::OtherRange),
        Some(Fault::Endless),
        Some(Fault::Redirect(there)),
    ];
    let mut seen = Vec::new();
    for fault in faults {
        scene.server.behave();
        if let Some(fault) = fault {
            scene.server.always(fault);
        }
        for words in [
            format!("tgm info {run}"),
            format!("tgm info --json {run}"),
            format!("tgm ls -j {run}"),
            format!("tgm dump -j {run}"),
            format!("tgm validate --json {run}"),
            format!("tgm validate run.tgm --against {run}"),
            format!("tgm outline --json {run}"),
            format!("tgm extract {run} 9.9 -o x.npy"),
            format!("tgm extract {run} 0 --range 5:5 -o x.npy --force"),
            format!("tgm copy {run} s3://bucket/x.tgm --force"),
            format!("tgm copy run.tgm {run}"),
            format!("tgm copy {run} {run}"),
            format!("tgm create {run} --from t=t.npy"),
            format!("tgm create x.tgm --force --from t={run}"),
            format!("tet info --json {tet}"),
            format!("tet verify --json {tet}"),
            format!("tet append {tet} --from t=t.npy --along 0"),
            format!("tet repair {tet}"),
            format!("tet query -t {tet} {{}}"),
            format!("tercet info {tet}"),
            "tgm ls s3://me:geheim@bucket/x".to_owned(),
            "tgm ls s3://bucket/x?token=geheim".to_owned(),
            "tgm ls https://me:ge/geheim@host/x".to_owned(),
            "tgm ls ftp://me:geheim@host/x".to_owned(),
        ] {
            let result = scene.run(&words);
            seen.push(format!("{}{}", result.out, result.err));
            assert!(
                !result.out.contains("geheim") && !result.err.contains("geheim"),
                "{words}: {}{}",
                result.out,
                result.err
            );
        }
    }
    // They were told something all the same.
    let seen = seen.join("\n");
    assert!(seen.contains(&scene.server.url("/run.tgm?…")), "{seen}");
    assert_eq!(elsewhere.requests(), []);
}

#[test]
fn histories_keep_no_secrets() {
    let scene = Scene::new();
    let history = scene.dir.path("history.jsonl");
    let ask = |address: &str| {
        let mut command =
            scene.command(&format!("tet query -t {address} {{\"dataset\":\"t\",\"mean\":[]}} -x"));
        command.env_remove("TET_NO_QUERY_HISTORY").env("TET_QUERY_HISTORY_FILE", &history);
        run_command(&mut command)
    };
    let plain = scene.server.url("/run.tet");
    let asked = ask(&plain);
    assert_eq!(asked.code, 0, "{}", asked.err);
    let kept = scene.dir.read("history.jsonl");
    assert!(String::from_utf8_lossy(&kept).contains(&plain));
    assert_eq!(ask(&format!("{plain}?token=geheim")).code, 0);
    assert_eq!(scene.dir.read("history.jsonl"), kept);
}
