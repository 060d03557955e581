//! Glob patterns: `*`, `?`, `[…]`, and `**` for directories of any depth.

use std::collections::BTreeSet;
use std::fs::{self, FileType};
use std::io;
use std::path::{Component, Path, PathBuf};

/// `*` does not match hidden files, as in a shell.
const OPTIONS: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A glob pattern for paths. Each component is matched on its own.
#[derive(Debug)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    /// Whether the pattern ends with a separator.
    only_directories: bool,
}

#[derive(Debug)]
enum Part {
    /// A component without wildcards.
    Literal(PathBuf),
    Wildcard(glob::Pattern),
    /// `**`
    Recursive,
}

/// The paths that match a pattern, sorted, and the directories that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Matches {
    pub(super) paths: BTreeSet<PathBuf>,
    pub(super) unreadable: Vec<(PathBuf, io::Error)>,
}

impl Pattern {
    /// Parses a path with wildcards. A path without valid ones is not a pattern.
    pub(super) fn parse(path: &Path) -> Option<Self> {
        let text = path.to_str().filter(|text| has_wildcards(text))?;
        let mut parts = path.components().map(Part::parse).collect::<Option<Vec<Part>>>()?;
        // `**/**` is `**`.
        parts.dedup_by(|next, part| matches!((next, part), (Part::Recursive, Part::Recursive)));
        Some(Self { parts, only_directories: text.ends_with(std::path::is_separator) })
    }

    /// Finds the files and directories that match. FIFOs, sockets and devices do not: reading them may block.
    pub(super) fn find(&self) -> Matches {
        let mut matches = Matches::default();
        let mut waiting = vec![(PathBuf::new(), self.parts.as_slice())];
        while let Some((path, parts)) = waiting.pop() {
            let Some((part, rest)) = parts.split_first() else {
                if is_readable(&path, self.only_directories) {
                    matches.paths.insert(path);
                }
                continue;
            };
            match part {
                Part::Literal(name) => {
                    let path = path.join(name);
                    if fs::symlink_metadata(&path).is_ok() {
                        waiting.push((path, rest));
                    }
                }
                Part::Wildcard(pattern) => {
                    for (name, _) in matches.entries(&path) {
                        if pattern.matches_with(&name.to_string_lossy(), OPTIONS) {
                            waiting.push((path.join(name), rest));
                        }
                    }
                }
                Part::Recursive => {
                    // Links to directories are not followed: they may form a loop.
                    for (name, kind) in matches.entries(&path) {
                        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
                        if kind.is_some_and(|kind| kind.is_dir()) && !is_hidden {
                            waiting.push((path.join(name), parts));
                        }
                    }
                    if !(rest.is_empty() && path.as_os_str().is_empty()) {
                        waiting.push((path, rest));
                    }
                }
            }
        }
        matches
    }
}

impl Part {
    fn parse(component: Component<'_>) -> Option<Self> {
        let text = component.as_os_str().to_str()?;
        match component {
            Component::Normal(_) if text == "**" => Some(Self::Recursive),
            Component::Normal(_) if has_wildcards(text) => {
                // `a**` is not a pattern.
                glob::Pattern::new(text).ok().map(Self::Wildcard)
            }
            _ => Some(Self::Literal(PathBuf::from(text))),
        }
    }
}

impl Matches {
    /// The names in a directory, with their types. A path that is not a directory has none.
    fn entries(&mut self, path: &Path) -> Vec<(PathBuf, Option<FileType>)> {
        let directory = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        if !directory.is_dir() {
            return Vec::new();
        }
        match fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(entries) => {
                entries.iter().map(|entry| (entry.file_name().into(), entry.file_type().ok())).collect()
            }
            Err(error) => {
                self.unreadable.push((directory.to_owned(), error));
                Vec::new()
            }
        }
    }
}

fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether a path is a file or directory. A broken link passes: opening it has a better error.
fn is_readable(path: &Path, only_directories: bool) -> bool {
    match fs::metadata(path) {
        Ok(meta) => meta.is_dir() || (meta.is_file() && !only_directories),
        Err(_) => !only_directories,
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of tests need not be atomic")]
mod tests {
    use super::*;

    fn names(top: &Path, pattern: &str) -> Vec<String> {
        let matches = Pattern::parse(&top.join(pattern)).unwrap().find();
        assert!(matches.unreadable.is_empty());
        let short = |path: &PathBuf| path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
        matches.paths.iter().map(short).collect()
    }

    #[test]
    fn components_match_like_in_a_shell() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        for name in ["b.tet", "é.tet", "a/x.tet", "a/b/y.tet", ".h/z.tet", ".i.tet", "c{1}.tet"] {
            fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            fs::write(top.join(name), "").unwrap();
        }
        assert_eq!(names(top, "?.tet"), ["b.tet", "é.tet"]);
        assert_eq!(names(top, "[!b].tet"), ["é.tet"]);
        assert_eq!(names(top, ".*.tet"), [".i.tet"]);
        assert_eq!(names(top, ".h/*"), [".h/z.tet"]);
        assert_eq!(names(top, "*{1}*"), ["c{1}.tet"]);
        assert_eq!(names(top, "*/x.tet"), ["a/x.tet"]);
        assert_eq!(names(top, "*/"), ["a"]);
        assert_eq!(names(top, "a/**"), ["a", "a/b"]);
        assert_eq!(names(top, "**/**/*.tet"), ["a/b/y.tet", "a/x.tet", "b.tet", "c{1}.tet", "é.tet"]);
    }

    #[test]
    fn a_path_without_valid_wildcards_is_no_pattern() {
        for path in ["a.tet", "\u{1b}[31m.tet", "[", "a/b**/c"] {
            assert!(Pattern::parse(Path::new(path)).is_none(), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_to_directories_do_not_loop() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        fs::create_dir(top.join("a")).unwrap();
        fs::write(top.join("a/x.tet"), "").unwrap();
        std::os::unix::fs::symlink("..", top.join("a/loop")).unwrap();
        assert_eq!(names(top, "**/*.tet"), ["a/x.tet"]);
        assert_eq!(names(top, "*/*/a/*.tet"), ["a/loop/a/x.tet"]);
    }

    #[cfg(unix)]
    #[test]
    fn names_need_not_be_utf8() {
        use std::os::unix::ffi::OsStrExt as _;
        let temp = tempfile::tempdir().unwrap();
        let name = temp.path().join(std::ffi::OsStr::from_bytes(b"\xff.tet"));
        fs::write(&name, "").unwrap();
        let matches = Pattern::parse(&temp.path().join("*.tet")).unwrap().find();
        assert_eq!(matches.paths, BTreeSet::from([name]));
    }
}
