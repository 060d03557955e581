//! Where the golden files are.

use std::env;
use std::path::{Path, PathBuf};

/// The folder with the golden files of a format: `$TERCET_GOLDEN/<format>`, or `../shared/golden/<format>` beside
/// the workspace.
///
/// Without it the answer is `None` after a line that says so: the test is skipped.
///
/// # Panics
///
/// With `CI=true`, where nothing may be skipped.
pub fn golden(format: &str) -> Option<PathBuf> {
    // Asked for when the test runs: what was compiled for one checkout may be used by another, at another place.
    let package =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let is_workspace = |folder: &&Path| folder.join("crates/tercet-testkit").is_dir();
    let workspace = package.ancestors().find(is_workspace).unwrap_or(Path::new("."));
    let root = env::var_os("TERCET_GOLDEN").map_or_else(|| "../shared/golden".into(), PathBuf::from);
    // Tests run in the folder of their package.
    let folder = workspace.join(root).join(format);
    if folder.is_dir() {
        return Some(folder);
    }
    let missing = format!("golden folder {} not found", folder.display());
    assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
    skip(&missing);
    None
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
