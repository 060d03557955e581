//! Verbs over many files: directories, glob patterns, parallel work, a summary and one exit code.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tercet::core::{Class, Progress as _, escape};
use tercet::{Format, HEAD_LEN, OtherFormat};

use crate::failure::{Failure, Outcome};
use crate::input::{self, Input, argument, convert_array};
use crate::output::display_path;
use crate::render::{human_size, parse_size};
use crate::run::{error_message, error_value, exit_code};
use crate::ui::{Piece, Ui, is_interrupted};

mod pattern;

use pattern::Pattern;

/// The input files of a verb that takes many.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Files {
    /// Input files, directories, glob patterns or URLs (`https://`, `s3://`, `gs://`, `az://`); `-` reads standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Search directories recursively
    #[arg(short, long, display_order = 899)]
    recursive: bool,
    /// Maximum size of standard input or of a pipe, which is buffered in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    max_stdin: u64,
}

/// How several JSON documents are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonList {
    /// The document itself for one file, an array for several.
    ForMany,
    /// Always an array: the output of the reference implementation.
    Always,
}

impl Files {
    /// The only input, if the command line names exactly one file.
    pub(crate) fn single(&self) -> Option<Input> {
        match self.paths.as_slice() {
            [path] if !is_directory(path) && pattern(path).is_none() => Some(self.input(path)),
            _ => None,
        }
    }

    /// The only input, if it is a collection of `.tatami` files.
    pub(crate) fn collection(&self) -> Option<&Path> {
        match self.paths.as_slice() {
            [path] if path.join(tercet::tatami::collection::MANIFEST).is_file() => Some(path),
            _ => None,
        }
    }

    /// Rejects several files where the verb writes one.
    pub(crate) fn only_one_if(&self, writes: bool, verb: &str) -> Result<(), Failure> {
        if writes && self.single().is_none() {
            let failure = Failure::request(format!("`{verb}` writes one file at a time"));
            return Err(failure.with_hint("list possible repairs of several files with `--plan`"));
        }
        Ok(())
    }

    fn input(&self, path: &Path) -> Input {
        Input { path: path.to_owned(), max_stdin: self.max_stdin }
    }

    /// Runs `work` on each file, and on the files of this format in directories.
    ///
    /// A single file is worked on directly. Several run in parallel; their output is printed in order. A file that fails
    /// does not stop the others: its error is reported, and the exit code is the highest of all files.
    pub(crate) fn each(
        &self,
        format: Option<Format>,
        list: JsonList,
        out: &mut Ui,
        work: impl Fn(&Input, &mut Ui) -> Result<Outcome, Failure> + Sync,
    ) -> Result<Outcome, Failure> {
        if self.paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(Failure::request("standard input (`-`) is given more than once"));
        }
        if let Some(input) = self.single() {
            if list == JsonList::ForMany {
                return work(&input, out);
            }
            let mut one = out.capture();
            let result = work(&input, &mut one);
            let mut documents = Documents::default();
            documents.print(one.into_pieces(), out)?;
            if result.is_ok() {
                documents.finish(out)?;
            }
            return result;
        }
        let found = self.find(format);
        if let [ResolvedInput::Problem { failure, .. }] = found.as_slice() {
            return Err(failure());
        }
        let (mut tally, mut documents) = (Tally::default(), Documents::default());
        let bar = out.bar("files", found.iter().map(ResolvedInput::len).sum());
        // As many as fit the threads, so that little output waits in memory.
        for some in found.chunks(4 * rayon::current_num_threads()) {
            let done: Vec<_> = some
                .par_iter()
                .map(|found| {
                    let mut out = out.capture();
                    let result = match found {
                        _ if is_interrupted() => Err(Failure::Interrupted),
                        ResolvedInput::File { path, .. } => work(&self.input(path), &mut out),
                        ResolvedInput::Problem { failure, .. } => Err(failure()),
                    };
                    bar.advance(found.len());
                    (result, out.into_pieces())
                })
                .collect();
            for (found, (result, pieces)) in some.iter().zip(done) {
                if let Err(failure @ (Failure::Interrupted | Failure::BrokenPipe)) = result {
                    return Err(failure);
                }
                // A blank line between files, unless each is one line or the output is that of another program.
                let is_block = |piece: &Piece| matches!(piece, Piece::Text(text) if text.lines().count() > 1);
                if list == JsonList::ForMany && tally.files > 0 && pieces.iter().any(is_block) {
                    out.line("")?;
                }
                tally.add(found, &result);
                documents.print(pieces, out)?;
                if let Err(failure) = &result {
                    documents.error(failure, &found.name(), out)?;
                }
            }
        }
        drop(bar);
        documents.finish(out)?;
        tally.print(&documents, out)?;
        Ok(tally.outcome())
    }

    /// The files that the arguments name, in order.
    fn find(&self, format: Option<Format>) -> Vec<ResolvedInput> {
        let mut found = Vec::new();
        for path in &self.paths {
            if is_directory(path) {
                self.find_in(path, format, &mut found);
            } else if let Some(pattern) = pattern(path) {
                self.matching(path, &pattern, format, &mut found);
            } else {
                found.push(ResolvedInput::file(path.clone()));
            }
        }
        found
    }

    /// The files that match a glob pattern. Directories that match count as directories.
    fn matching(
        &self,
        path: &Path,
        pattern: &Pattern,
        format: Option<Format>,
        found: &mut Vec<ResolvedInput>,
    ) {
        let before = found.len();
        let matches = pattern.find();
        for path in matches.paths {
            if is_directory(&path) {
                self.find_in(&path, format, found);
            } else {
                found.push(ResolvedInput::file(path));
            }
        }
        for (path, error) in matches.unreadable {
            found.push(ResolvedInput::unreadable(&path, &error));
        }
        if found.len() == before {
            let message = format!("{}: no file matches this pattern", display_path(path));
            found.push(ResolvedInput::problem(path, Class::Io, message, None));
        }
    }

    /// The container files in a directory, sorted by name; with `--recursive`, of its subdirectories too.
    fn find_in(&self, top: &Path, format: Option<Format>, found: &mut Vec<ResolvedInput>) {
        let before = found.len();
        let mut has_subdirectories = false;
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            if let Some(format) = OtherFormat::detect_directory(&directory) {
                // Below, other formats are skipped, files and directories alike.
                if directory != top {
                    continue;
                }
                let message = format!("{}: is {format}, not a Tercet container", display_path(&directory));
                found.push(ResolvedInput::problem(
                    &directory,
                    Class::Unsupported,
                    message,
                    Some(convert_array(&argument(&directory.to_string_lossy()))),
                ));
                continue;
            }
            let entries = match fs::read_dir(&directory).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
                Ok(entries) => entries,
                Err(error) => {
                    found.push(ResolvedInput::unreadable(&directory, &error));
                    continue;
                }
            };
            let path = |entry: &fs::DirEntry| match directory.to_str() {
                // Without `./`.
                Some(".") => PathBuf::from(entry.file_name()),
                _ => entry.path(),
            };
            let mut paths: Vec<PathBuf> = entries.iter().map(path).collect();
            paths.sort();
            let mut below = Vec::new();
            for path in paths {
                // Links to directories are not followed: they may form a loop.
                match fs::symlink_metadata(&path).map(|meta| meta.file_type()) {
                    Ok(kind) if kind.is_dir() => below.push(path),
                    Ok(_) if is_container(&path, format) => found.push(ResolvedInput::file(path)),
                    _ => {}
                }
            }
            has_subdirectories |= !below.is_empty();
            if self.recursive {
                waiting.extend(below.into_iter().rev());
            }
        }
        if found.len() == before {
            let what = match format {
                Some(format) => format!("{format} files"),
                None => ".tet, .tgm or .tatami files".to_owned(),
            };
            let message = format!("{}: is a directory without {what}", display_path(top));
            let hint = (has_subdirectories && !self.recursive)
                .then(|| "search its subdirectories with `--recursive`".to_owned());
            found.push(ResolvedInput::problem(top, Class::Request, message, hint));
        }
    }
}

/// The files that an argument names: itself, the matches of a glob pattern, or the tables in a directory, in order.
pub(crate) fn table_files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_table = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_known = tercet::convert::tables::TableFormat::for_name(&name).is_some();
        is_known && !name.starts_with('.') && path.is_file()
    };
    let in_directory = |directory: &Path| {
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.map_err(|error| Failure::io(&display_path(directory), &error))?;
        let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(is_table).collect();
        paths.sort();
        Ok::<_, Failure>(paths)
    };
    let (paths, reason) = if is_directory(path) {
        (in_directory(path)?, "is a directory without tables")
    } else if let Some(pattern) = pattern(path) {
        let matches = pattern.find();
        if let Some((path, error)) = matches.unreadable.first() {
            return Err(Failure::io(&display_path(path), error));
        }
        (matches.paths.into_iter().collect(), "no file matches this pattern")
    } else {
        return Ok(vec![path.to_owned()]);
    };
    if paths.is_empty() {
        return Err(Failure::request(format!("{}: {reason}", display_path(path))));
    }
    Ok(paths)
}

fn is_directory(path: &Path) -> bool {
    input::is_local(path) && path.is_dir()
}

/// The glob pattern of a path that does not exist.
fn pattern(path: &Path) -> Option<Pattern> {
    let is_missing = input::is_local(path) && fs::symlink_metadata(path).is_err();
    if is_missing { Pattern::parse(path) } else { None }
}

/// Whether a file in a directory is a container: by its first bytes or its extension, so that damaged files are found.
fn is_container(path: &Path, format: Option<Format>) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
    // A temporary file of a writer is hidden and is not complete.
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    if !is_file || is_hidden {
        return false;
    }
    let detected = input::head(path, HEAD_LEN).and_then(|head| tercet::detect(&head));
    match detected.or_else(|| Format::from_extension(path)) {
        Some(detected) => format.is_none_or(|format| format == detected),
        None => false,
    }
}

/// A file that an argument names, or the reason why there is none.
enum ResolvedInput {
    File { path: PathBuf, len: u64 },
    Problem { path: PathBuf, failure: Box<dyn Fn() -> Failure + Sync> },
}

impl ResolvedInput {
    fn file(path: PathBuf) -> Self {
        let len = if input::is_local(&path) { fs::metadata(&path).map_or(0, |meta| meta.len()) } else { 0 };
        Self::File { path, len }
    }

    fn problem(path: &Path, class: Class, message: String, hint: Option<String>) -> Self {
        let failure = move || {
            let failure = Failure::new(class, message.clone());
            match &hint {
                Some(hint) => failure.with_hint(hint.clone()),
                None => failure,
            }
        };
        Self::Problem { path: path.to_owned(), failure: Box::new(failure) }
    }

    fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        Self::problem(path, Class::Io, format!("{}: cannot be read: {error}", display_path(path)), None)
    }

    fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Problem { .. } => 0,
        }
    }

    fn name(&self) -> String {
        let (Self::File { path, .. } | Self::Problem { path, .. }) = self;
        display_path(path)
    }
}

/// The JSON documents of several files, printed as one array while they arrive.
#[derive(Debug, Default)]
struct Documents {
    printed: usize,
}

impl Documents {
    /// Prints the output of one file.
    fn print(&mut self, pieces: Vec<Piece>, out: &mut Ui) -> Result<(), Failure> {
        for piece in pieces {
            match &piece {
                Piece::Json(document) => self.element(document, out)?,
                _ => out.replay(&piece)?,
            }
        }
        Ok(())
    }

    /// Reports a file that failed: in the array if there is one.
    fn error(&mut self, failure: &Failure, name: &str, out: &mut Ui) -> Result<(), Failure> {
        if out.is_json() {
            let Some(value) = error_value(failure, name) else { return Ok(()) };
            let text = serde_json::to_string_pretty(&value).unwrap_or_default();
            return self.element(&escape::json(&text), out);
        }
        match error_message(failure, out.is_verbose()) {
            Some(message) => out.note(message),
            None => Ok(()),
        }
    }

    fn element(&mut self, document: &str, out: &mut Ui) -> Result<(), Failure> {
        // As `serde_json` prints an array.
        let start = if self.printed == 0 { "[\n" } else { ",\n" };
        let indented = document.replace('\n', "\n  ");
        self.printed += 1;
        out.raw(&format!("{start}  {indented}"))
    }

    fn finish(&self, out: &mut Ui) -> Result<(), Failure> {
        match self.printed {
            0 => Ok(()),
            _ => out.raw("\n]\n"),
        }
    }
}

/// Counts of files by result.
#[derive(Debug, Default)]
struct Tally {
    files: usize,
    bytes: u64,
    ok: usize,
    failed: usize,
    errors: usize,
    worst: u8,
}

impl Tally {
    fn add(&mut self, found: &ResolvedInput, result: &Result<Outcome, Failure>) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(found.len());
        match result {
            Ok(Outcome::Done) => self.ok += 1,
            Ok(_) => self.failed += 1,
            Err(_) => self.errors += 1,
        }
        self.worst = self.worst.max(exit_code(result));
    }

    /// Prints the summary on standard error, except after JSON and with `--quiet`.
    fn print(&self, documents: &Documents, out: &mut Ui) -> Result<(), Failure> {
        if documents.printed > 0 || out.is_quiet() {
            return Ok(());
        }
        let mut parts = vec![format!("{} ok", self.ok)];
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        match self.errors {
            0 => {}
            1 => parts.push("1 error".to_owned()),
            errors => parts.push(format!("{errors} errors")),
        }
        let noun = if self.files == 1 { "file" } else { "files" };
        let (files, size, parts) = (self.files, human_size(self.bytes), parts.join(", "));
        out.note(format_args!("{files} {noun}, {size}: {parts}"))
    }

    fn outcome(&self) -> Outcome {
        match self.worst {
            0 => Outcome::Done,
            code => Outcome::Exit(code),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of tests need not be atomic")]
mod tests {
    use super::*;

    fn files(paths: &[&Path], recursive: bool) -> Files {
        Files { paths: paths.iter().map(|path| (*path).to_owned()).collect(), recursive, max_stdin: 1 }
    }

    fn names(found: &[ResolvedInput], top: &Path) -> Vec<String> {
        let short = |found: &ResolvedInput| match found {
            ResolvedInput::File { path, .. } => {
                path.strip_prefix(top).unwrap().to_string_lossy().into_owned()
            }
            ResolvedInput::Problem { failure, .. } => format!("exit code {}", failure().exit_code()),
        };
        found.iter().map(short).collect()
    }

    #[test]
    fn directories_and_patterns_name_the_containers_in_them() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        for name in
            ["b.tet", "a.tgm", "c.txt", "deep/d.tatami", "deep/e.tet", "zarr/zarr.json", ".hidden.tet"]
        {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "no magic bytes").unwrap();
        }
        fs::write(top.join("magic"), b"TETR and more").unwrap();
        let find = |path: &str, recursive: bool, format| {
            names(&files(&[&top.join(path)], recursive).find(format), top)
        };
        assert_eq!(find("", false, None), ["a.tgm", "b.tet", "magic"]);
        assert_eq!(find("", false, Some(Format::Tet)), ["b.tet", "magic"]);
        let all = ["a.tgm", "b.tet", "magic", "deep/d.tatami", "deep/e.tet"];
        assert_eq!(find("", true, None), all);
        assert_eq!(find("zarr", true, None), ["exit code 7"]);
        assert_eq!(find("deep", false, Some(Format::Tgm)), ["exit code 8"]);
        assert_eq!(find("*.t*", false, None), ["a.tgm", "b.tet", "c.txt"]);
        assert_eq!(find("**/*.tet", false, None), ["b.tet", "deep/e.tet"]);
        assert_eq!(find("nothing-*", false, None), ["exit code 3"]);
        assert_eq!(find("[", false, None), ["["]);
        assert_eq!(find("missing.tet", false, None), ["missing.tet"]);
    }

    #[test]
    fn a_file_whose_name_looks_like_a_pattern_is_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a[1].tet");
        fs::write(&path, "").unwrap();
        assert!(files(&[&path], false).single().is_some());
        assert!(files(&[&temp.path().join("b[1].tet")], false).single().is_none());
        assert!(files(&[temp.path()], false).single().is_none());
        assert!(files(&[Path::new("https://host/a?b=[1]")], false).single().is_some());
    }
}
