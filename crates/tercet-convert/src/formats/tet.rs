//! `.tet` files as a source and a sink of variables.
//!
//! The format has no int8, bool, complex, character or string type, no scalars, and attributes are strings. What a variable
//! was is recorded in the member `typed` of its metadata, which other programs ignore:
//!
//! ```json
//! {"kind": "int8", "scalar": true, "attrs": [["valid_range", "i8[]", "[0,100]"]]}
//! ```
//!
//! A record of an attribute counts only while the attribute has the recorded text, so that it can be edited.

mod read;
mod typed;
mod write;

pub(crate) use read::TetSource;
pub(crate) use write::{TetSink, TetVariable};
