//! `NAME=FILE` of a command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

/// `NAME=FILE`. The name must be UTF-8, the path need not be.
#[derive(Clone, Debug)]
pub(crate) struct NamedFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

pub(crate) fn named_file() -> impl TypedValueParser<Value = NamedFile> {
    OsStringValueParser::new().try_map(|text: OsString| {
        let shown = text.to_string_lossy().into_owned();
        match split(&text) {
            Some((name, path)) if !name.is_empty() && !path.as_os_str().is_empty() => {
                Ok(NamedFile { name, path })
            }
            _ => Err(format!("expected NAME=FILE, like `t2m=t2m.npy`, found `{shown}`")),
        }
    })
}

#[cfg(unix)]
fn split(text: &OsStr) -> Option<(String, PathBuf)> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    let name = std::str::from_utf8(&bytes[..at]).ok()?;
    Some((name.to_owned(), OsStr::from_bytes(&bytes[at + 1..]).into()))
}

#[cfg(not(unix))]
fn split(text: &OsStr) -> Option<(String, PathBuf)> {
    let (name, path) = text.to_str()?.split_once('=')?;
    Some((name.to_owned(), path.into()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_need_not_be_utf8() {
        use std::os::unix::ffi::OsStrExt as _;
        let (name, path) = split(OsStr::from_bytes(b"a=\xff=b.npy")).unwrap();
        assert_eq!((name.as_str(), path.as_os_str().as_bytes()), ("a", &b"\xff=b.npy"[..]));
        assert!(split(OsStr::from_bytes(b"\xff=b.npy")).is_none());
        assert!(split(OsStr::new("b.npy")).is_none());
    }
}
