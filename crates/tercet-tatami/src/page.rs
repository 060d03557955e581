//! Pages: the encoded values of some rows of one column.
//!
//! ```text
//! [bounds] │ codec( [validity bitmap] │ encoded present values )
//! ```

pub(crate) mod bounds;
pub(crate) mod decode;
pub(crate) mod encode;
