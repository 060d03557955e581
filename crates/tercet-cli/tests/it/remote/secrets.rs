//! Secrets in URLs are never printed.

use tercet_testkit::server::Fault;

use super::*;

#[test]
fn secrets_are_never_printed() {
    let fixture = Fixture::new();
    let url = |path: &str| fixture.server.url(path).replace("http://", "http://me:geheim@") + "?token=geheim";
    let (run, tet) = (url("/run.tgm"), url("/run.tet"));
    let elsewhere = Server::start();
    let remote = elsewhere.url("/x?token=geheim").replace("http://", "http://me:geheim@");
    let faults = [
        None,
        Some(Fault::Status(404)),
        Some(Fault::Status(400)),
        Some(Fault::Status(403)),
        Some(Fault::OtherRange),
        Some(Fault::Endless),
        Some(Fault::Redirect(remote)),
    ];
    let mut seen = Vec::new();
    for fault in faults {
        fixture.server.clear_faults();
        if let Some(fault) = fault {
            fixture.server.always(fault);
        }
        for args in [
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
            let result = fixture.run(&args);
            seen.push(format!("{}{}", result.out, result.err));
            assert!(
                !result.out.contains("geheim") && !result.err.contains("geheim"),
                "{args}: {}{}",
                result.out,
                result.err
            );
        }
    }
    // The servers did receive them.
    let seen = seen.join("\n");
    assert!(seen.contains(&fixture.server.url("/run.tgm?…")), "{seen}");
    assert_eq!(elsewhere.requests(), []);
}

#[test]
fn histories_keep_no_secrets() {
    let fixture = Fixture::new();
    let history = fixture.dir.path("history.jsonl");
    let query = |url: &str| {
        let mut command =
            fixture.command(&format!("tet query -t {url} {{\"dataset\":\"t\",\"mean\":[]}} -x"));
        command.env_remove("TET_NO_QUERY_HISTORY").env("TET_QUERY_HISTORY_FILE", &history);
        run_command(&mut command)
    };
    let plain = fixture.server.url("/run.tet");
    let output = query(&plain);
    assert_eq!(output.code, 0, "{}", output.err);
    let kept = fixture.dir.read("history.jsonl");
    assert!(String::from_utf8_lossy(&kept).contains(&plain));
    assert_eq!(query(&format!("{plain}?token=geheim")).code, 0);
    assert_eq!(fixture.dir.read("history.jsonl"), kept);
}
