use insta::assert_snapshot;
use serde_json::Value;

use super::support::{TestDir, run, write_many_chunks};

fn with_cut_footer() -> TestDir {
    let dir = TestDir::with_weather();
    dir.damaged("weather.tet", "bad.tet", |bytes| {
        let end = bytes.len();
        bytes.truncate(end - 4);
    });
    dir
}

#[test]
fn planning_changes_nothing() {
    let dir = with_cut_footer();
    let before = dir.read("bad.tet");
    assert_snapshot!("plan_repairable", dir.tet("repair bad.tet").snapshot());
    assert_snapshot!("dry_run", dir.tet("repair bad.tet --apply footer_invalid --dry-run").snapshot());
    assert_eq!(dir.read("bad.tet"), before);
}

#[test]
fn a_broken_footer_is_truncated() {
    let dir = with_cut_footer();
    assert_snapshot!(dir.tercet("repair bad.tet --apply footer_invalid").snapshot());
    assert_eq!(dir.tet("verify -q bad.tet").code, Some(0));
}

#[test]
fn a_valid_file_is_not_changed() {
    let dir = TestDir::with_weather();
    let before = dir.read("weather.tet");
    assert_snapshot!("plan_of_a_healthy_file", dir.tet("repair weather.tet").snapshot());
    assert_snapshot!(
        "skipped",
        dir.tet("repair weather.tet --apply footer_invalid --apply recompute_checksums").snapshot()
    );
    assert_eq!(dir.read("weather.tet"), before);
}

#[test]
fn a_repair_that_does_not_help_exits_1() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    let before = dir.read("bad.tet");
    let output = dir.tet("repair bad.tet --apply footer_invalid");
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), "verification still fails\n"));
    assert!(
        output.stdout.contains("skipped") && output.stdout.contains("verify_after: failed"),
        "{}",
        output.stdout
    );
    assert_eq!(dir.read("bad.tet"), before);
}

#[test]
fn json_reports() {
    let dir = with_cut_footer();
    let json: Value = serde_json::from_str(&dir.tet("repair bad.tet --json").stdout).unwrap();
    assert_eq!((&json["mode"], &json["actions"][0]["state"]), (&"plan".into(), &"repairable".into()));
    let json: Value =
        serde_json::from_str(&dir.tet("repair bad.tet --json --apply footer_invalid").stdout).unwrap();
    assert_eq!((&json["mode"], &json["after"]["ok"]), (&"apply".into(), &true.into()));
}

#[test]
fn intact_chunks_are_salvaged() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    assert_snapshot!("salvage", dir.tet("repair bad.tet --salvage good.tet --fill nan").snapshot());
    assert_eq!(dir.tet("verify -q --deep good.tet").code, Some(0));
    assert_snapshot!("salvage_exists", dir.tet("repair bad.tet --salvage good.tet").snapshot());
    let output = dir.tet("repair bad.tet --salvage good.tet --force");
    assert_eq!(output.code, Some(1), "a chunk is lost: {}", output.stderr);
    assert!(output.stdout.contains("missing chunks (reading them is an error)"), "{}", output.stdout);
    let json: Value =
        serde_json::from_str(&dir.tet("repair bad.tet --salvage more.tet --json").stdout).unwrap();
    assert_eq!((&json["kept"], &json["holes"][0]["dataset"]), (&4.into(), &"t2m".into()));
}

/// The reason names the dataset, so it is printed once.
#[test]
fn lost_chunks_are_reported_once() {
    let dir = TestDir::new();
    write_many_chunks(&dir.path("good.tet"), 3);
    // More tiles than the file has rows: the extent of the only dataset follows its name.
    dir.damaged("good.tet", "bad.tet", |bytes| {
        let name = bytes.windows(4).position(|window| window == b"many").unwrap();
        let extent = (name..bytes.len()).find(|&at| bytes[at..].starts_with(&3u64.to_le_bytes())).unwrap();
        bytes[extent..extent + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    });
    let output = dir.tet("repair bad.tet --salvage out.tet --ignore-checksums");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(1), "no chunk could be kept\n"),
        "{}",
        output.stdout
    );
    let lost: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("lost:")).collect();
    let [lost] = lost[..] else { panic!("one line expected: {}", output.stdout) };
    assert!(lost.starts_with("lost: dataset `many` "), "{lost}");
    assert_eq!(lost.matches("dataset `").count(), 1, "{lost}");
}

#[test]
fn a_file_is_not_salvaged_onto_itself() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    let before = dir.read("bad.tet");
    for args in ["repair bad.tet --salvage bad.tet", "repair bad.tet --salvage ./bad.tet --force"] {
        assert_eq!(dir.tet(args).code, Some(8), "{args}");
    }
    assert_eq!(dir.read("bad.tet"), before);
}

#[test]
fn the_fill_value_must_fit_the_damaged_dtype() {
    let dir = TestDir::with_weather();
    // The mask is an array of bytes; its only chunk is the last payload.
    let file = tercet::tet::File::open(dir.path("weather.tet")).unwrap();
    let at = file.dataset("mask").unwrap().chunk_ref(&[0]).unwrap().span.start();
    dir.damaged("weather.tet", "bad.tet", |bytes| bytes[usize::try_from(at).unwrap()] ^= 1);
    let output = dir.tet("repair bad.tet --salvage good.tet --fill nan");
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    assert!(!dir.path("good.tet").exists());
    assert_eq!(dir.tet("repair bad.tet --salvage good.tet --fill 255").code, Some(1));
    assert_eq!(dir.tet("verify -q --deep good.tet").code, Some(0));
}

/// A plan and a copy of the intact parts have the same exit code: 1 if something is lost.
#[test]
fn losses_exit_1() {
    let dir = with_cut_footer();
    dir.with_damaged_chunk("chunk.tet");
    for (file, code, line) in [
        ("weather.tet", 0, "path=weather.tet status=ok repairable=0 manual=0 applied=0\n"),
        ("bad.tet", 1, "path=bad.tet status=failed repairable=1 manual=0 applied=0\n"),
        ("chunk.tet", 1, "path=chunk.tet status=failed repairable=0 manual=1 applied=0\n"),
    ] {
        for program in ["tet", "tercet"] {
            let command = |args: &str| run(dir.command(program).args(args.split(' ')));
            let plan = command(&format!("repair --plan {file}"));
            assert_eq!(plan.code, Some(code), "{file}: {}", plan.snapshot());
            let quiet = command(&format!("repair --plan -q {file}"));
            assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(code), line, ""));
            let copy = command(&format!("repair {file} -o copy.tet --force"));
            assert_eq!(copy.code, Some(code), "{file}: {}", copy.snapshot());
        }
    }
    let quiet = dir.tet("repair chunk.tet -o copy.tet --force -q");
    assert_eq!(quiet.stdout, "path=chunk.tet status=failed kept=4 missing=1 lost_datasets=0\n");
}

/// A copy without the lost chunks is not repaired by copying it again.
#[test]
fn missing_chunks_are_filled_or_stay_missing() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    assert_eq!(dir.tet("repair bad.tet -o copy.tet").code, Some(1));
    for args in ["verify copy.tet", "repair copy.tet"] {
        let output = dir.tet(args);
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        let advice = "→ tet repair copy.tet -o OUT.tet --fill VALUE\n";
        assert!(output.stdout.contains(advice), "{}", output.stdout);
        assert!(output.stdout.contains("the missing chunks are lost"), "{}", output.stdout);
        assert_eq!(output.stdout.matches("→ tet repair").count(), 1, "{}", output.stdout);
    }
    assert_eq!(dir.tet("repair copy.tet -o full.tet --fill nan").code, Some(1));
    let verified = dir.tet("verify --deep full.tet");
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    assert!(!verified.stdout.contains("recommendations"), "{}", verified.stdout);
}

/// No repair gives bytes valid checksums that their old ones contradict, unless it is asked for by name.
#[test]
fn a_damaged_catalog_is_not_accepted() {
    let dir = with_cut_footer();
    let mut bytes = std::fs::read(dir.path("weather.tet")).unwrap();
    // The element type of the first dataset.
    bytes[44] ^= 1;
    std::fs::write(dir.path("type.tet"), &bytes).unwrap();
    let repair = dir.tet("verify type.tet --repair");
    assert_eq!(repair.code, Some(1), "{}", repair.snapshot());
    assert!(repair.stderr.contains("`recompute_checksums` would accept bytes"), "{}", repair.stderr);
    assert_eq!(std::fs::read(dir.path("type.tet")).unwrap(), bytes);
    let copy = dir.tet("repair type.tet -o copy.tet");
    assert_eq!(copy.code, Some(5), "{}", copy.snapshot());
    assert!(!dir.path("copy.tet").exists());
    let accepted = dir.tet("repair type.tet -o copy.tet --ignore-checksums");
    assert_eq!(accepted.code, Some(1), "{}", accepted.snapshot());
    assert!(accepted.stdout.contains("damaged beyond its chunks"), "{}", accepted.stdout);
    let unknown = dir.tet("repair weather.tet --apply bogus");
    assert_eq!(unknown.code, Some(2), "{}", unknown.snapshot());
}
