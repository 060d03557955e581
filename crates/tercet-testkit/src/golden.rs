//! The location of the golden files.

use std::env;
use std::path::{Path, PathBuf};

/// The directory of the golden files of a format: `$TERCET_GOLDEN/<format>`, or `../shared/golden/<format>` next
/// to the workspace.
///
/// If it does not exist, a line is printed and the result is `None`: the test is skipped.
///
/// # Panics
///
/// With `CI=true`, where nothing may be skipped.
pub fn golden(format: &str) -> Option<PathBuf> {
    // At run time: a test compiled in one checkout may run in another.
    let package =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let is_workspace = |directory: &&Path| directory.join("crates/tercet-testkit").is_dir();
    let workspace = package.ancestors().find(is_workspace).unwrap_or(Path::new("."));
    let root = env::var_os("TERCET_GOLDEN").map_or_else(|| "../shared/golden".into(), PathBuf::from);
    // Tests run in the directory of their package.
    let directory = workspace.join(root).join(format);
    if directory.is_dir() {
        return Some(directory);
    }
    let missing = format!("golden directory {} not found", directory.display());
    assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
    skip(&missing);
    None
}

#[expect(clippy::print_stderr, reason = "a skipped test prints a note")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
