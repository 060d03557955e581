//! Outlines of golden files of every format cover every byte exactly once.

use std::path::{Path, PathBuf};

use tercet::Container;
use tercet_core::OutlineOptions;
use tercet_testkit::{golden, leaves_partition};

/// The files below a directory with this extension.
fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

fn check(format: &str) {
    let Some(directory) = golden(format) else { return };
    let mut all = Vec::new();
    files(&directory, format, &mut all);
    assert!(!all.is_empty());
    let mut outlined = 0;
    for path in &all {
        // Some golden files are damaged on purpose and cannot be opened.
        let Ok(container) = Container::open(path) else { continue };
        let Ok(outline) = container.outline(OutlineOptions::new()) else { continue };
        let len = std::fs::metadata(path).unwrap().len();
        leaves_partition(&outline, len).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        outlined += 1;
    }
    assert!(outlined * 2 > all.len(), "{outlined} of {} files have an outline", all.len());
}

#[test]
fn leaves_partition_tet_files() {
    check("tet");
}

#[test]
fn leaves_partition_tgm_files() {
    check("tgm");
}

#[test]
fn leaves_partition_tatami_files() {
    check("tatami");
}
