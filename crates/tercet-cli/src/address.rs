//! Files at an address instead of a path: `https://…`, `s3://…`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tercet::core::{ByteSource, Class};

use crate::failure::Failure;

/// The address that was given in the place of a path.
pub(crate) fn of(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(text)
}

/// A text of the user without the secrets of addresses in it: users, passwords, queries.
pub(crate) fn redact(text: &str) -> String {
    let given = std::env::args_os().filter_map(|word| word.into_string().ok());
    // `NAME=ADDRESS` and `--option=ADDRESS` hold one as well.
    let given = given.flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value.to_owned());
        [Some(word), value].into_iter().flatten()
    });
    let addresses = given.filter(|word| of(Path::new(word)).is_some());
    addresses.fold(text.to_owned(), |text, address| text.replace(&address, &shown(&address)))
}

/// An address as it is shown to the user.
#[cfg(feature = "remote")]
pub(crate) fn shown(address: &str) -> String {
    tercet::core::redact_url(address)
}

/// An address as it is shown to the user. What cannot be taken apart is not shown.
#[cfg(not(feature = "remote"))]
pub(crate) fn shown(address: &str) -> String {
    format!("{}://…", address.split_once("://").map_or("", |(scheme, _)| scheme))
}

#[cfg(feature = "remote")]
mod remote {
    use tercet::core::Location;
    use tercet::remote::{Remote, RemoteError, RemoteOptions, Upload};

    use super::{Arc, ByteSource, Class, Failure, Write, io, shown};
    use crate::ui::exit_at_once_if_interrupted;

    pub(crate) fn must_be_known(address: &str) -> Result<(), Failure> {
        if Location::is_url(address) {
            return Ok(());
        }
        let failure =
            Failure::new(Class::Request, format!("{}: this kind of address is not known", shown(address)));
        Err(failure.with_hint("`https://`, `http://`, `s3://`, `gs://` and `az://` are"))
    }

    /// Opens the file at an address.
    pub(crate) fn open(address: &str) -> Result<Arc<dyn ByteSource>, Failure> {
        must_be_known(address)?;
        let opened = exit_at_once_if_interrupted(|| Remote::open(address, &RemoteOptions::default()));
        Ok(Arc::new(opened.map_err(|error| Failure::source(&shown(address), error))?))
    }

    /// An object of a store that is being written.
    #[derive(Debug)]
    pub(crate) struct Object {
        pub(super) address: String,
        upload: Upload,
    }

    impl Object {
        pub(crate) fn create(address: &str, force: bool) -> Result<Self, Failure> {
            must_be_known(address)?;
            let upload = Upload::create(address, &RemoteOptions::default(), force);
            let upload = upload.map_err(|error| failed(&error))?;
            Ok(Self { address: address.to_owned(), upload })
        }

        /// Its address, as it is shown.
        pub(crate) fn name(&self) -> Arc<str> {
            Arc::clone(self.upload.name())
        }

        /// Lets it appear.
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
        Failure::of(error)
    }

    /// An error that came out of an object while it was written.
    pub(crate) fn of_object(error: &io::Error) -> Failure {
        let ours = error.get_ref().and_then(|error| error.downcast_ref::<tercet::core::Error<RemoteError>>());
        ours.map_or_else(|| Failure::io("cannot write the object", error), failed)
    }
}

#[cfg(not(feature = "remote"))]
mod remote {
    use super::{Arc, ByteSource, Class, Failure, Write, io, shown};

    fn not_built(address: &str) -> Failure {
        let failure =
            Failure::new(Class::Unsupported, format!("{}: this build knows no addresses", shown(address)));
        failure.with_hint("build it with the feature `remote`")
    }

    pub(crate) fn open(address: &str) -> Result<Arc<dyn ByteSource>, Failure> {
        Err(not_built(address))
    }

    /// An object of a store, which this build does not make.
    #[derive(Debug)]
    pub(crate) struct Object {
        pub(super) address: String,
    }

    impl Object {
        pub(crate) fn create(address: &str, _force: bool) -> Result<Self, Failure> {
            Err(not_built(address))
        }

        pub(crate) fn name(&self) -> Arc<str> {
            shown(&self.address).into()
        }

        pub(crate) fn finish(self) -> Result<u64, Failure> {
            Err(not_built(&self.address))
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

    pub(crate) fn of_object(error: &io::Error) -> Failure {
        Failure::io("cannot write the object", error)
    }
}

#[cfg(feature = "remote")]
pub(crate) use remote::must_be_known;
pub(crate) use remote::{Object, of_object, open};

impl Object {
    /// Whether it has the address of a file that is read.
    pub(crate) fn is_at(&self, input: &Path) -> bool {
        of(input) == Some(self.address.as_str())
    }

    /// Copies a stream to it and lets it appear.
    pub(crate) fn take(mut self, from: &mut dyn io::Read) -> Result<u64, Failure> {
        io::copy(from, &mut self).map_err(|error| of_object(&error))?;
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_addresses() {
        assert_eq!(of(Path::new("s3://b/k")), Some("s3://b/k"));
        assert_eq!(of(Path::new("ftp://h/f")), Some("ftp://h/f"));
        for path in ["a.tgm", "a/b://c", "://x", "./http://x", "-", "C:\\x", "1s://x"] {
            assert_eq!(of(Path::new(path)), None, "{path}");
        }
    }
}
