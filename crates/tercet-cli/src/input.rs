//! A path, an address, or `-` for standard input, opened.

use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet::core::{ByteSource, Class, source};
use tercet::tet;

use crate::address;
use crate::failure::Failure;
use crate::render::{human_size, parse_size};
use crate::ui::exit_at_once_if_interrupted;

/// The name of standard input in every message.
const STDIN: &str = "standard input";

/// The file that a verb reads.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Input {
    /// The file, or its address (`https://`, `s3://`, `gs://`, `az://`); `-` reads standard input
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The most that is taken from standard input, which is kept in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    pub(crate) max_stdin: u64,
}

impl Input {
    /// Whether standard input is meant.
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Whether the file has a path, not an address, and is not standard input.
    pub(crate) fn is_on_disk(&self) -> bool {
        !self.is_stdin() && address::of(&self.path).is_none()
    }

    /// The bytes. They are read by position, never mapped: another program may shorten the file meanwhile.
    pub(crate) fn source(&self) -> Result<Arc<dyn ByteSource>, Failure> {
        if self.is_stdin() {
            return exit_at_once_if_interrupted(|| spool(io::stdin().lock(), self.max_stdin));
        }
        open(&self.path)
    }

    /// The bytes of one file of many: it is open only while it is read.
    pub(crate) fn one_of_many(&self) -> Result<Arc<dyn ByteSource>, Failure> {
        if !self.is_on_disk() {
            return self.source();
        }
        let opened = source::LazyFile::open(&self.path);
        let opened = opened.map_err(|error| Failure::source(&self.path.to_string_lossy(), error))?;
        Ok(Arc::new(opened))
    }

    /// The file, opened as a `.tet` file.
    pub(crate) fn open_tet(&self, options: tet::ReadOptions) -> Result<tet::File, Failure> {
        Ok(options.open_source(self.source()?)?)
    }
}

/// The files that a verb reads, one after the other.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Inputs {
    /// The files, or their addresses (`https://`, `s3://`, `gs://`, `az://`); `-` reads standard input
    #[arg(value_name = "FILES", required = true)]
    paths: Vec<PathBuf>,
    /// The most that is taken from standard input, which is kept in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    max_stdin: u64,
}

impl Inputs {
    /// Each file. Standard input ends once it is read, so it may be named once.
    pub(crate) fn each(&self) -> Result<Vec<Input>, Failure> {
        let each = self.paths.iter().map(|path| Input { path: path.clone(), max_stdin: self.max_stdin });
        let each: Vec<Input> = each.collect();
        if each.iter().filter(|input| input.is_stdin()).count() > 1 {
            return Err(Failure::request("standard input can be read only once, but `-` is given again"));
        }
        Ok(each)
    }
}

/// The bytes of a file on disk, or at an address.
pub(crate) fn open(path: &Path) -> Result<Arc<dyn ByteSource>, Failure> {
    if let Some(address) = address::of(path) {
        return address::open(address);
    }
    let opened = source::File::open(path);
    let opened = opened.map_err(|error| Failure::source(&path.to_string_lossy(), error))?;
    Ok(Arc::new(opened))
}

/// Refuses `-` where a file is to be changed; `verb` is what cannot be done to standard input.
pub(crate) fn must_be_a_file(path: &Path, verb: &str) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        let failure = Failure::request(format!("cannot {verb} standard input"));
        return Err(failure.with_hint("give the path of a file"));
    }
    Ok(())
}

/// Refuses `-` and addresses where a file is to be changed in its place.
pub(crate) fn must_be_on_disk(path: &Path, verb: &str) -> Result<(), Failure> {
    must_be_a_file(path, verb)?;
    match address::of(path) {
        None => Ok(()),
        Some(address) => {
            let failure =
                Failure::request(format!("{}: cannot {verb} a file at an address", address::shown(address)));
            Err(failure.with_hint("download it first"))
        }
    }
}

/// Copies a stream into a temporary file that has no name and disappears with the process.
fn spool(mut from: impl Read, limit: u64) -> Result<Arc<dyn ByteSource>, Failure> {
    let refused = |error: io::Error| Failure::io("cannot keep standard input in a temporary file", &error);
    let mut file = tempfile::tempfile().map_err(refused)?;
    let mut buffer = vec![0; 1 << 20];
    let mut len = 0u64;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("cannot read standard input", &error)),
        };
        len += n as u64;
        if len > limit {
            let said = format!("{STDIN}: is longer than the limit of {limit} bytes ({})", human_size(limit));
            return Err(Failure::new(Class::Limit, said).with_hint("raise it with `--max-stdin SIZE`"));
        }
        file.write_all(&buffer[..n]).map_err(refused)?;
    }
    file.rewind().map_err(refused)?;
    let file = source::File::from_handle(STDIN, file).map_err(|error| Failure::source(STDIN, error))?;
    Ok(Arc::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_kept_whole_or_refused() {
        let bytes = vec![7u8; 3 << 20];
        let kept = spool(&bytes[..], 3 << 20).unwrap();
        assert_eq!(kept.len(), 3 << 20);
        assert_eq!(&**kept.name(), STDIN);
        let refused = spool(&bytes[..], (3 << 20) - 1).unwrap_err();
        assert_eq!(refused.exit_code(), Class::Limit.exit_code());
    }
}
