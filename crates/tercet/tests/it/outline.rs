//! Outlines of golden files of every format cover every byte exactly once.

use std::path::{Path, PathBuf};

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
    for path in &all {
        let outline = tercet::outline(path, OutlineOptions::new()).unwrap();
        let len = std::fs::metadata(path).unwrap().len();
        leaves_partition(&outline, len).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
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
