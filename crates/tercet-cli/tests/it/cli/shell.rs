//! Help, versions, completions, manual pages.

use insta::assert_snapshot;

use super::support::TestDir;

#[test]
fn every_program_has_help() {
    let dir = TestDir::new();
    assert_snapshot!("help_tet", dir.tet("--help").snapshot());
    assert_snapshot!("help_tercet", dir.tercet("--help").snapshot());
    assert_snapshot!("help_info", dir.tet("info --help").snapshot());
    assert_snapshot!("help_verify", dir.tet("verify --help").snapshot());
    assert_snapshot!("help_repair", dir.tet("repair --help").snapshot());
    assert_snapshot!("help_query", dir.tet("query --help").snapshot());
    assert_snapshot!("help_qhist", dir.tet("qhist --help").snapshot());
    for verb in [
        "append",
        "set",
        "unset",
        "rename",
        "copy",
        "merge",
        "extract",
        "mean",
        "quantile",
        "histogram",
        "transform",
        "covariance",
    ] {
        assert_snapshot!(format!("help_tet_{verb}"), dir.tet(&format!("{verb} --help")).snapshot());
    }
    assert_snapshot!("help_tgm", dir.tgm("--help").snapshot());
    for verb in [
        "ls",
        "dump",
        "tail",
        "copy",
        "validate",
        "create",
        "repack",
        "advise",
        "extract",
        "index",
        "set",
        "merge",
        "split",
        "reshuffle",
        "repair",
    ] {
        assert_snapshot!(format!("help_tgm_{verb}"), dir.tgm(&format!("{verb} --help")).snapshot());
    }
    assert_snapshot!("help_tatami", dir.tatami("--help").snapshot());
    for verb in [
        "inspect",
        "cat",
        "head",
        "lookup",
        "stats",
        "create",
        "delete",
        "merge",
        "collection",
        "verify",
        "outline",
        "repair",
    ] {
        assert_snapshot!(format!("help_tatami_{verb}"), dir.tatami(&format!("{verb} --help")).snapshot());
    }
}

#[test]
fn versions_are_those_of_the_package() {
    let dir = TestDir::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(dir.tet("--version").stdout, format!("tet {version}\n"));
    assert_eq!(dir.tercet("-V").stdout, format!("tercet {version}\n"));
    assert_eq!(dir.tgm("-V").stdout, format!("tgm {version}\n"));
    assert_eq!(dir.tatami("-V").stdout, format!("tatami {version}\n"));
    assert_eq!(dir.tatami("version").stdout, format!("tatami {version}\n"));
}

#[test]
fn completions_for_every_shell() {
    let dir = TestDir::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        for output in [dir.tet(&format!("completions {shell}")), dir.tercet(&format!("completions {shell}"))]
        {
            assert_eq!(output.code, Some(0), "{shell}: {}", output.stderr);
            assert!(output.stdout.contains("outline") && output.stdout.contains("qhist"), "{shell}");
        }
        let output = dir.tgm(&format!("completions {shell}"));
        assert_eq!(output.code, Some(0), "{shell}: {}", output.stderr);
        assert!(output.stdout.contains("validate") && !output.stdout.contains("qhist"), "{shell}");
        assert!(output.stdout.contains("repack") && !output.stdout.contains("__sz3"), "{shell}");
        let output = dir.tatami(&format!("completions {shell}"));
        assert_eq!(output.code, Some(0), "{shell}: {}", output.stderr);
        assert!(output.stdout.contains("lookup") && !output.stdout.contains("qhist"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let dir = TestDir::new();
    let page = dir.tet("man");
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(page.stdout.contains(".TH tet 1") && page.stdout.contains("Exit codes"), "{}", page.stdout);
    let page = dir.tgm("man");
    assert!(page.stdout.contains(".TH tgm 1") && page.stdout.contains("validate"), "{}", page.stdout);
    let page = dir.tatami("man");
    assert!(page.stdout.contains(".TH tatami 1") && page.stdout.contains("lookup"), "{}", page.stdout);
    let all = dir.tercet("man --dir pages");
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    for name in [
        "tercet.1",
        "tercet-info.1",
        "tercet-query.1",
        "tercet-tet.1",
        "tercet-tet-verify.1",
        "tercet-tet-qhist-run.1",
        "tercet-tgm.1",
        "tercet-tgm-copy.1",
        "tercet-tatami.1",
        "tercet-tatami-create.1",
    ] {
        assert!(dir.path("pages").join(name).exists(), "{name}");
    }
}
