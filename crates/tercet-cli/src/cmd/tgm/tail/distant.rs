//! A file that grows at a server or in a store.
//!
//! It is opened anew at every look: what a server calls the version of a file changes when it grows. So a file that was
//! replaced is not known by its version, but by its bytes, as one that was written anew in its place.

use super::growing::Place;
use crate::failure::Failure;

#[cfg(not(feature = "remote"))]
pub(super) fn place(address: &str) -> Result<Box<dyn Place>, Failure> {
    Err(crate::address::open(address).err().unwrap_or(Failure::Interrupted))
}

#[cfg(feature = "remote")]
pub(super) fn place(address: &str) -> Result<Box<dyn Place>, Failure> {
    crate::address::must_be_known(address)?;
    Ok(Box::new(remote::Distant { address: address.to_owned() }))
}

#[cfg(feature = "remote")]
mod remote {
    use std::cell::RefCell;
    use std::sync::Arc;

    use tercet::core::{ByteSource, Diagnose as _, SourceError, Span};
    use tercet::remote::{Remote, RemoteError, RemoteOptions};

    use crate::cmd::tgm::tail::growing::{Growing, Identity, Place, Stamp};

    /// All that is there is one thing.
    const IDENTITY: Identity = (0, 0);
    /// Bytes that come with every look.
    const BLOCK: u64 = 512;
    /// How often a file that changes while it is read is opened again.
    const TRIES: usize = 5;

    /// The address of a file that grows.
    #[derive(Clone, Debug)]
    pub(super) struct Distant {
        pub(super) address: String,
    }

    impl Distant {
        /// Opens what is there now. Reads of new bytes are exact: the cache would only keep what is read once.
        fn now(&self) -> Result<Option<Remote>, SourceError> {
            let mut options = RemoteOptions::default();
            (options.block_bytes, options.cache_bytes, options.grows) = (BLOCK, BLOCK, true);
            match Remote::open(&self.address, &options) {
                Ok(remote) => Ok(Some(remote)),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        }

        fn must_be_there(&self) -> Result<Remote, SourceError> {
            let gone = || SourceError::Remote { span: None, error: Box::new(RemoteError::NotFound) };
            self.now()?.ok_or_else(gone)
        }
    }

    impl Place for Distant {
        fn identity(&self) -> Result<Option<Identity>, SourceError> {
            Ok(self.now()?.map(|_| IDENTITY))
        }

        fn open(&self) -> Result<Option<Box<dyn Growing>>, SourceError> {
            let thing = |remote| Thing { place: self.clone(), remote: RefCell::new(remote) };
            Ok(self.now()?.map(|remote| Box::new(thing(remote)) as Box<dyn Growing>))
        }
    }

    /// What was there at the last look.
    #[derive(Debug)]
    struct Thing {
        place: Distant,
        remote: RefCell<Remote>,
    }

    impl Growing for Thing {
        fn identity(&self) -> Identity {
            IDENTITY
        }

        fn look(&self) -> Result<(u64, Stamp), SourceError> {
            // What is gone for a moment is as long as it was: the watcher looks at the place too.
            if let Some(remote) = self.place.now()? {
                self.remote.replace(remote);
            }
            let remote = self.remote.borrow();
            let stamp = match remote.version() {
                Some(version) => version.to_owned(),
                // A server that tells no version: the first bytes came along with the look.
                None => format!("{:?}", remote.read_at(Span::first(remote.len().min(BLOCK)))?),
            };
            Ok((remote.len(), Some(stamp)))
        }

        fn read_at(&self, at: u64, out: &mut [u8]) -> Result<usize, SourceError> {
            let mut tries = 1;
            loop {
                let (len, wanted) = (self.remote.borrow().len(), out.len() as u64);
                let here = wanted.min(len.saturating_sub(at));
                let Some(span) = Span::at(at, here).filter(|_| here > 0) else { return Ok(0) };
                let read = self.remote.borrow().read_at(span);
                match read {
                    Ok(bytes) => {
                        out[..bytes.len()].copy_from_slice(&bytes);
                        return Ok(bytes.len());
                    }
                    Err(error)
                        if RemoteError::from_source(&error) == Some(&RemoteError::Changed)
                            && tries < TRIES =>
                    {
                        tries += 1;
                        self.remote.replace(self.place.must_be_there()?);
                    }
                    Err(error) => return Err(error),
                }
            }
        }

        fn snapshot(&self) -> Result<Arc<dyn ByteSource>, SourceError> {
            Ok(Arc::new(self.place.must_be_there()?))
        }
    }
}
