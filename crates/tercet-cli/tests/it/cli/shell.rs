//! Help, versions, completions, manual pages.

use insta::assert_snapshot;

use super::support::Folder;

#[test]
fn help_of_every_program() {
    let folder = Folder::new();
    assert_snapshot!("help_tet", folder.tet("--help").shot());
    assert_snapshot!("help_tercet", folder.tercet("--help").shot());
    assert_snapshot!("help_info", folder.tet("info --help").shot());
    assert_snapshot!("help_verify", folder.tet("verify --help").shot());
    assert_snapshot!("help_repair", folder.tet("repair --help").shot());
    assert_snapshot!("help_query", folder.tet("query --help").shot());
    assert_snapshot!("help_qhist", folder.tet("qhist --help").shot());
    assert_snapshot!("help_tgm", folder.tgm("--help").shot());
    for verb in [
        "ls",
        "dump",
        "tail",
        "copy",
        "validate",
        "create",
        "recode",
        "advise",
        "extract",
        "index",
        "set",
        "merge",
        "split",
        "reshuffle",
        "repair",
    ] {
        assert_snapshot!(format!("help_tgm_{verb}"), folder.tgm(&format!("{verb} --help")).shot());
    }
    assert_snapshot!("help_tatami", folder.tatami("--help").shot());
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
        assert_snapshot!(format!("help_tatami_{verb}"), folder.tatami(&format!("{verb} --help")).shot());
    }
}

#[test]
fn versions_are_those_of_the_package() {
    let folder = Folder::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(folder.tet("--version").stdout, format!("tet {version}\n"));
    assert_eq!(folder.tercet("-V").stdout, format!("tercet {version}\n"));
    assert_eq!(folder.tgm("-V").stdout, format!("tgm {version}\n"));
    assert_eq!(folder.tatami("-V").stdout, format!("tatami {version}\n"));
    assert_eq!(folder.tatami("version").stdout, format!("tatami {version}\n"));
}

#[test]
fn completions_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        for ran in
            [folder.tet(&format!("completions {shell}")), folder.tercet(&format!("completions {shell}"))]
        {
            assert_eq!(ran.code, Some(0), "{shell}: {}", ran.stderr);
            assert!(ran.stdout.contains("outline") && ran.stdout.contains("qhist"), "{shell}");
        }
        let ran = folder.tgm(&format!("completions {shell}"));
        assert_eq!(ran.code, Some(0), "{shell}: {}", ran.stderr);
        assert!(ran.stdout.contains("validate") && !ran.stdout.contains("qhist"), "{shell}");
        assert!(ran.stdout.contains("recode") && !ran.stdout.contains("__sz3"), "{shell}");
        let ran = folder.tatami(&format!("completions {shell}"));
        assert_eq!(ran.code, Some(0), "{shell}: {}", ran.stderr);
        assert!(ran.stdout.contains("lookup") && !ran.stdout.contains("qhist"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let folder = Folder::new();
    let page = folder.tet("man");
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(page.stdout.contains(".TH tet 1") && page.stdout.contains("Exit codes"), "{}", page.stdout);
    let page = folder.tgm("man");
    assert!(page.stdout.contains(".TH tgm 1") && page.stdout.contains("validate"), "{}", page.stdout);
    let page = folder.tatami("man");
    assert!(page.stdout.contains(".TH tatami 1") && page.stdout.contains("lookup"), "{}", page.stdout);
    let all = folder.tercet("man --dir pages");
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
        assert!(folder.path("pages").join(name).exists(), "{name}");
    }
}
