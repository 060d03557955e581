//! The names that most programs need: `use tercet::prelude::*`.
//!
//! ```
//! use tercet::prelude::*;
//!
//! let error = Container::from_bytes("notes.txt", "not a container").unwrap_err();
//! assert_eq!(error.class(), Class::Malformed);
//! ```

pub use tercet_core::progress::NoProgress;
pub use tercet_core::{
    ByteSource, Class, DType, Diagnostic, Location, OutlineOptions, Progress, ReadOptions, Selection, Tensor,
    VerifyOptions,
};

pub use crate::{Container, Error, Format};
