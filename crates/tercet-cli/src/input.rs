//! Inputs: a path, a URL, or `-` for standard input.

use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet::core::{ByteSource, Class, Diagnostic as _, Hint, SourceError, Span, escape, source};
use tercet::{Format, HEAD_LEN, OtherFormat, detect, detect_source, is_plain_text, tet};

use crate::failure::Failure;
use crate::output::display_path;
use crate::render::{human_size, parse_size, shell_quoted};
use crate::ui::exit_at_once_if_interrupted;
use crate::{persona, remote};

/// The name of standard input in messages.
pub(crate) const STDIN: &str = "standard input";
/// The default of `--max-stdin`.
const MAX_PIPE: u64 = 64 << 30;

/// The input file of a verb.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Input {
    /// Input file or URL (`https://`, `s3://`, `gs://`, `az://`); `-` reads standard input
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Maximum size of standard input or of a pipe, which is buffered in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    pub(crate) max_stdin: u64,
}

impl Input {
    /// An input with the default limit for pipes.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), max_stdin: MAX_PIPE }
    }

    /// Whether the input is standard input.
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Whether the input is a local file.
    pub(crate) fn is_on_disk(&self) -> bool {
        !self.is_stdin() && remote::url_of(&self.path).is_none() && !is_pipe(&self.path)
    }

    /// Opens the input for positional reads. It is not mapped: another program may truncate the file meanwhile.
    pub(crate) fn source(&self) -> Result<Arc<dyn ByteSource>, Failure> {
        if self.is_stdin() {
            return exit_at_once_if_interrupted(|| spool(STDIN, io::stdin().lock(), self.max_stdin));
        }
        open_at_most(&self.path, self.max_stdin)
    }

    /// Opens a file of this format for positional reads.
    pub(crate) fn source_of(&self, format: Format) -> Result<Arc<dyn ByteSource>, Failure> {
        must_be(self.source()?, format)
    }

    /// Opens one of many inputs, which is open only while it is read.
    pub(crate) fn one_of_many(&self) -> Result<Arc<dyn ByteSource>, Failure> {
        if !self.is_on_disk() {
            return self.source();
        }
        let opened = source::LazyFile::open(&self.path);
        let opened = opened.map_err(|error| Failure::source(&self.path.to_string_lossy(), error))?;
        Ok(Arc::new(opened))
    }

    /// Opens the input as a `.tet` file.
    pub(crate) fn open_tet(&self, options: tet::ReadOptions) -> Result<tet::File, Failure> {
        Ok(tet::File::from_source(self.source_of(Format::Tet)?, options)?)
    }
}

/// The input files of a verb.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Inputs {
    /// Input files or URLs (`https://`, `s3://`, `gs://`, `az://`); `-` reads standard input
    #[arg(value_name = "FILES", required = true)]
    paths: Vec<PathBuf>,
    /// Maximum size of standard input or of a pipe, which is buffered in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    max_stdin: u64,
}

impl Inputs {
    /// The inputs. Standard input may be given once.
    pub(crate) fn each(&self) -> Result<Vec<Input>, Failure> {
        let each = self.paths.iter().map(|path| Input { path: path.clone(), max_stdin: self.max_stdin });
        let each: Vec<Input> = each.collect();
        if each.iter().filter(|input| input.is_stdin()).count() > 1 {
            return Err(Failure::request("standard input (`-`) is given more than once"));
        }
        Ok(each)
    }
}

/// Whether a path is neither standard input nor a URL.
pub(crate) fn is_local(path: &Path) -> bool {
    path.as_os_str() != "-" && remote::url_of(path).is_none()
}

/// Up to `len` first bytes of a local file, if it can be read.
pub(crate) fn head(path: &Path, len: u64) -> Option<Vec<u8>> {
    let file = source::File::open(path).ok()?;
    Some(file.read_at(Span::first(file.len().min(len))).ok()?.to_vec())
}

/// Rejects a file of another format, with the command that reads it.
///
/// A file of unknown content passes: the parser of the format knows best what is wrong with it.
pub(crate) fn must_be(source: Arc<dyn ByteSource>, format: Format) -> Result<Arc<dyn ByteSource>, Failure> {
    let name = escape::name(source.name()).into_owned();
    match detect_source(&source) {
        Ok(found) if found == format => Ok(source),
        Ok(found) => Err(wrong_format(source.name(), found, format)),
        Err(error) if is_other_format(&error) && !(format == Format::Tgm && has_message(&*source)) => {
            Err(not_a_container(&error, source.name()))
        }
        Err(error) if matches!(error.kind(), tercet::ErrorKind::Source(_)) => Err(Failure::from(error)),
        Err(_) => {
            let head = source.read_at(Span::first(source.len().min(HEAD_LEN)));
            let head = head.map_err(|error| Failure::source(source.name(), error))?;
            if is_plain_text(&head) && !(format == Format::Tgm && has_message(&*source)) {
                let message = format!("{name}: is text, not a {format} file");
                return Err(Failure::new(Class::Malformed, message).with_location(&**source.name()));
            }
            Ok(source)
        }
    }
}

/// The failure of a container of another format, with the command that reads it.
pub(crate) fn wrong_format(name: &str, found: Format, expected: Format) -> Failure {
    let message = format!("{}: is a {found} file, not a {expected} file", escape::name(name));
    let failure = Failure::new(Class::Malformed, message).with_location(name);
    failure.with_hint(format!("use `{}`", persona::command_for(found, name)))
}

/// A file name as the argument of a command in a hint.
pub(crate) fn argument(name: &str) -> String {
    match name {
        STDIN => "-".to_owned(),
        name => shell_quoted(name),
    }
}

/// Rejects a file of another known format where a NumPy array file is expected.
pub(crate) fn must_be_npy(source: Arc<dyn ByteSource>) -> Result<Arc<dyn ByteSource>, Failure> {
    let head = source.read_at(Span::first(source.len().min(HEAD_LEN)));
    let head = head.map_err(|error| Failure::source(source.name(), error))?;
    let name = escape::name(source.name()).into_owned();
    let other =
        |what: &str| Failure::new(Class::Unsupported, format!("{name}: is {what}, not a NumPy array file"));
    if let Some(format) = detect(&head) {
        let failure = other(&format!("a {format} file"));
        return Err(match format {
            Format::Tatami => failure,
            _ => failure.with_hint(format!("extract an array with `{} extract`", format.extension())),
        });
    }
    match OtherFormat::detect(&head) {
        Some(format) if format != OtherFormat::Npy => Err(other(format.description())),
        _ => Ok(source),
    }
}

/// The format of a file that is not text, by its first bytes.
pub(crate) fn binary_format(head: &[u8]) -> Option<String> {
    if let Some(format) = detect(head) {
        return Some(format!("a {format} file"));
    }
    let format = OtherFormat::detect(head).filter(|format| !format.is_text())?;
    Some(format.description().to_owned())
}

/// Rejects a file that is not text, with the command that reads it. `expected` completes the error message.
pub(crate) fn must_be_text(name: &str, head: &[u8], expected: &str) -> Result<(), Failure> {
    let Some(format) = binary_format(head) else { return Ok(()) };
    let (name, file) = (escape::name(name), argument(name));
    let failure = Failure::new(Class::Unsupported, format!("{name}: is {format}, not {expected}"));
    let other = OtherFormat::detect(head);
    Err(match (detect(head), other, other.and_then(decompressor)) {
        (Some(Format::Tatami), ..)
        | (None, Some(OtherFormat::Parquet | OtherFormat::ArrowFile | OtherFormat::ArrowStream), _) => {
            failure.with_hint(format!("convert it: `tatami convert {file} OUT.tatami`"))
        }
        (Some(_), ..) => failure.with_hint(format!("show its content: `tercet info {file}`")),
        (None, _, Some(program)) => failure.with_hint(format!("decompress it with `{program}`")),
        (None, _, None) => failure,
    })
}

/// Rejects a local file of another format. A file that cannot be opened passes: opening it has a better error.
pub(crate) fn check_format(path: &Path, format: Format) -> Result<(), Failure> {
    match source::File::open(path) {
        Ok(file) => must_be(Arc::new(file), format).map(drop),
        Err(_) => Ok(()),
    }
}

fn is_other_format(error: &tercet::Error) -> bool {
    matches!(error.kind(), tercet::ErrorKind::UnknownFormat(_)) && error.class() == Class::Unsupported
}

/// The failure of a file that is not a container, with the command that reads it.
pub(crate) fn not_a_container(error: &tercet::Error, name: &str) -> Failure {
    let failure = Failure::from_error(error).with_location(name);
    let file = argument(name);
    match error.hint() {
        Some(Hint::ImportTable) => {
            failure.with_hint(format!("convert it: `tatami convert {file} OUT.tatami`"))
        }
        Some(Hint::ImportArray) if other_format(error) != Some(OtherFormat::Npy) => {
            failure.with_hint(convert_array(&file))
        }
        Some(Hint::ImportArray) => {
            failure.with_hint(format!("import it: `tet create OUT.tet --from NAME={file}`, or `tgm create`"))
        }
        _ => match other_format(error) {
            Some(OtherFormat::TatamiManifest) => {
                let parent = Path::new(name).parent().filter(|parent| !parent.as_os_str().is_empty());
                let directory = shell_quoted(&parent.unwrap_or(Path::new(".")).to_string_lossy());
                failure.with_hint(format!("list the collection: `tatami collection list {directory}`"))
            }
            Some(OtherFormat::Tar) => failure.with_hint(format!("extract its files with `tar -xf {file}`")),
            format => match format.and_then(decompressor) {
                Some(program) => failure.with_hint(format!("decompress it with `{program}`")),
                None => failure,
            },
        },
    }
}

/// The hint for a file with arrays of another format.
pub(crate) fn convert_array(file: &str) -> String {
    format!("convert it: `tercet convert {file} OUT.tet`")
}

fn other_format(error: &tercet::Error) -> Option<OtherFormat> {
    let tercet::ErrorKind::UnknownFormat(error) = error.kind() else { return None };
    error.format
}

/// The program that decompresses a file.
fn decompressor(format: OtherFormat) -> Option<&'static str> {
    match format {
        OtherFormat::Gzip => Some("gunzip"),
        OtherFormat::Zstd => Some("unzstd"),
        OtherFormat::Bzip2 => Some("bunzip2"),
        OtherFormat::Xz => Some("unxz"),
        OtherFormat::Zip => Some("unzip"),
        _ => None,
    }
}

/// Whether a message starts somewhere in the first bytes: a stream may have other bytes before it.
fn has_message(source: &dyn ByteSource) -> bool {
    const SEARCHED: u64 = 1 << 20;
    let magic = Format::Tgm.magic();
    let head = source.read_at(Span::first(source.len().min(SEARCHED)));
    head.is_ok_and(|head| head.windows(magic.len()).any(|bytes| bytes == magic))
}

/// Opens a local file, a URL, or a named pipe (also of a process substitution, `<(…)`).
pub(crate) fn open(path: &Path) -> Result<Arc<dyn ByteSource>, Failure> {
    open_at_most(path, MAX_PIPE)
}

/// Opens a local file, a URL, or a named pipe with at most `max_pipe` bytes.
fn open_at_most(path: &Path, max_pipe: u64) -> Result<Arc<dyn ByteSource>, Failure> {
    if let Some(url) = remote::url_of(path) {
        return remote::open(url);
    }
    let name = path.to_string_lossy();
    if is_pipe(path) {
        // Opening waits for a writer.
        return exit_at_once_if_interrupted(|| {
            #[expect(clippy::disallowed_methods, reason = "a pipe is read once, from start to end")]
            let pipe = std::fs::File::open(path);
            let pipe = pipe.map_err(|error| Failure::source(&name, SourceError::Open(error)))?;
            spool(&name, pipe, max_pipe)
        });
    }
    if let Some(other) = path.is_dir().then(|| OtherFormat::detect_directory(path)).flatten() {
        let message = format!("{}: is {other}, not a Tercet container", escape::name(&name));
        let failure = Failure::new(Class::Unsupported, message).with_location(path);
        return Err(failure.with_hint(convert_array(&argument(&name))));
    }
    let opened = source::File::open(path).map_err(|error| Failure::source(&name, error))?;
    Ok(Arc::new(opened))
}

/// Whether a path is a named pipe, also of a process substitution (`<(…)`).
#[cfg(unix)]
pub(crate) fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

#[cfg(not(unix))]
pub(crate) fn is_pipe(_path: &Path) -> bool {
    false
}

/// Rejects `-` where a file is required; `verb` completes the error message.
pub(crate) fn must_be_a_file(path: &Path, verb: &str) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        let failure = Failure::request(format!("cannot {verb} standard input"));
        return Err(failure.with_hint("give the path of a file"));
    }
    Ok(())
}

/// Rejects `-`, URLs and pipes where a local file is required.
pub(crate) fn must_be_on_disk(path: &Path, verb: &str) -> Result<(), Failure> {
    must_be_local(path, verb)?;
    if is_pipe(path) {
        let failure = Failure::request(format!("{}: cannot {verb} a pipe", display_path(path)));
        return Err(failure.with_location(path).with_hint("write it to a file first"));
    }
    Ok(())
}

/// Rejects `-`, URLs and pipes where a file is changed in place.
pub(crate) fn must_be_changeable(path: &Path, verb: &str) -> Result<(), Failure> {
    must_be_local(path, verb)?;
    if is_pipe(path) { Err(cannot_change(path, "a pipe")) } else { Ok(()) }
}

/// Rejects `-` and URLs.
pub(crate) fn must_be_local(path: &Path, verb: &str) -> Result<(), Failure> {
    must_be_a_file(path, verb)?;
    if remote::url_of(path).is_some() {
        let failure = Failure::request(format!("{}: cannot {verb} a remote file", display_path(path)));
        return Err(failure.with_location(path).with_hint("download it first"));
    }
    Ok(())
}

/// The error of changing a pipe or device in place.
pub(crate) fn cannot_change(path: &Path, kind: &str) -> Failure {
    let message = format!("{}: is {kind}, which cannot be changed in place", display_path(path));
    Failure::request(message).with_location(path).with_hint("write it to a file first")
}

/// Copies a stream into an unnamed temporary file.
fn spool(name: &str, mut from: impl Read, limit: u64) -> Result<Arc<dyn ByteSource>, Failure> {
    let shown = escape::name(name);
    let refused =
        |error: io::Error| Failure::io(&format!("cannot write {shown} to a temporary file"), &error);
    let mut file = tempfile::tempfile().map_err(refused)?;
    let mut buffer = vec![0; 1 << 20];
    let mut len = 0u64;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io(&format!("cannot read {shown}"), &error)),
        };
        len += n as u64;
        if len > limit {
            let message = format!("{shown}: exceeds the limit of {limit} bytes ({})", human_size(limit));
            return Err(Failure::new(Class::Limit, message).with_hint("raise it with `--max-stdin SIZE`"));
        }
        file.write_all(&buffer[..n]).map_err(refused)?;
    }
    file.rewind().map_err(refused)?;
    let file = source::File::from_handle(name, file).map_err(|error| Failure::source(name, error))?;
    Ok(Arc::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_spooled_completely_or_rejected() {
        let bytes = vec![7u8; 3 << 20];
        let kept = spool(STDIN, &bytes[..], 3 << 20).unwrap();
        assert_eq!(kept.len(), 3 << 20);
        assert_eq!(&**kept.name(), STDIN);
        let refused = spool(STDIN, &bytes[..], (3 << 20) - 1).unwrap_err();
        assert_eq!(refused.exit_code(), Class::Limit.exit_code());
    }
}
