//! Remote files: `https://…`, `s3://…`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tercet::core::{ByteSource, Class};

use crate::failure::Failure;

/// The URL, if the argument is one.
pub(crate) fn url_of(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(text)
}

/// Removes credentials (users, passwords, queries) of command-line URLs from a message.
pub(crate) fn redact(text: &str) -> String {
    let given = std::env::args_os().filter_map(|word| word.into_string().ok());
    // Also `NAME=URL` and `--option=URL`.
    let given = given.flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value.to_owned());
        [Some(word), value].into_iter().flatten()
    });
    let urls = given.filter(|word| url_of(Path::new(word)).is_some());
    urls.fold(text.to_owned(), |text, url| text.replace(&url, &redacted(&url)))
}

/// A URL for messages, without credentials.
pub(crate) fn redacted(url: &str) -> String {
    tercet::core::redact_url(url)
}

#[cfg(feature = "remote")]
mod client {
    use tercet::convert::arrays::ArraySource;
    use tercet::core::Location;
    use tercet::remote::{Remote, RemoteError, RemoteOptions, Upload};

    use super::{Arc, ByteSource, Class, Failure, Write, io, redacted};
    use crate::ui::exit_at_once_if_interrupted;

    pub(crate) fn must_be_known(url: &str) -> Result<(), Failure> {
        if Location::is_url(url) {
            return Ok(());
        }
        let failure = Failure::new(Class::Request, format!("{}: unsupported URL scheme", redacted(url)));
        let failure = failure.with_location(url);
        Err(failure.with_hint("supported: `https://`, `http://`, `s3://`, `gs://`, `az://`"))
    }

    /// Opens a remote file.
    pub(crate) fn open(url: &str) -> Result<Arc<dyn ByteSource>, Failure> {
        must_be_known(url)?;
        let opened = exit_at_once_if_interrupted(|| Remote::open(url, &RemoteOptions::default()));
        Ok(Arc::new(opened.map_err(|error| Failure::source(&redacted(url), error))?))
    }

    /// Opens a URL as a Zarr store, if it is one of a directory.
    pub(crate) fn open_store(url: &str) -> Result<Option<Box<dyn ArraySource>>, Failure> {
        if !tercet::is_store_url(url) {
            return Ok(None);
        }
        let opened = exit_at_once_if_interrupted(|| tercet::open_store_url(url, crate::args::limits()));
        opened.map(Some).map_err(|error| Failure::from_error(&error).with_location(redacted(url)))
    }

    /// An object that is being uploaded.
    #[derive(Debug)]
    pub(crate) struct Object {
        pub(super) url: String,
        upload: Upload,
    }

    impl Object {
        pub(crate) fn create(url: &str, force: bool) -> Result<Self, Failure> {
            must_be_known(url)?;
            let upload = Upload::create(url, &RemoteOptions::default(), force);
            let upload = upload.map_err(|error| failed(&error))?;
            Ok(Self { url: url.to_owned(), upload })
        }

        /// The URL for messages.
        pub(crate) fn name(&self) -> Arc<str> {
            Arc::clone(self.upload.name())
        }

        /// Completes the upload.
        pub(crate) fn finish(self) -> Result<u64, Failure> {
            self.upload.finish().map_err(|error| failed(&error))
        }
    }

    impl Write for Object {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.upload.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn failed(error: &tercet::core::Error<RemoteError>) -> Failure {
        Failure::from_error(error)
    }

    /// The failure of an upload, if the error of writing to an object is one.
    pub(crate) fn upload_failure(error: &io::Error) -> Option<Failure> {
        let ours = error.get_ref().and_then(|error| error.downcast_ref::<tercet::core::Error<RemoteError>>());
        ours.map(failed)
    }
}

#[cfg(not(feature = "remote"))]
mod client {
    use tercet::convert::arrays::ArraySource;

    use super::{Arc, ByteSource, Class, Failure, Write, io, redacted};

    fn not_built(url: &str) -> Failure {
        let failure =
            Failure::new(Class::Unsupported, format!("{}: this build does not support URLs", redacted(url)));
        failure.with_location(url).with_hint("build with the feature `remote`")
    }

    pub(crate) fn open(url: &str) -> Result<Arc<dyn ByteSource>, Failure> {
        Err(not_built(url))
    }

    pub(crate) fn open_store(_url: &str) -> Result<Option<Box<dyn ArraySource>>, Failure> {
        // Opening it as a file gives the error.
        Ok(None)
    }

    /// Uploads are not supported by this build.
    #[derive(Debug)]
    pub(crate) struct Object {
        pub(super) url: String,
    }

    impl Object {
        pub(crate) fn create(url: &str, _force: bool) -> Result<Self, Failure> {
            Err(not_built(url))
        }

        pub(crate) fn name(&self) -> Arc<str> {
            redacted(&self.url).into()
        }

        pub(crate) fn finish(self) -> Result<u64, Failure> {
            Err(not_built(&self.url))
        }
    }

    impl Write for Object {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn upload_failure(_error: &io::Error) -> Option<Failure> {
        None
    }
}

#[cfg(feature = "remote")]
pub(crate) use client::must_be_known;
pub(crate) use client::{Object, open, open_store, upload_failure};

impl Object {
    /// Whether the object is also the input.
    pub(crate) fn is_at(&self, input: &Path) -> bool {
        url_of(input) == Some(self.url.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_not_urls() {
        assert_eq!(url_of(Path::new("s3://b/k")), Some("s3://b/k"));
        assert_eq!(url_of(Path::new("ftp://h/f")), Some("ftp://h/f"));
        for path in ["a.tgm", "a/b://c", "://x", "./http://x", "-", "C:\\x", "1s://x"] {
            assert_eq!(url_of(Path::new(path)), None, "{path}");
        }
    }
}
