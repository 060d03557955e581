//! Conversion of array files: any reader to any writer through one model.
//!
//! ```text
//! ArraySource ──Header──▶ plan (Rules of the output) ──▶ ArraySink     structure
//!      └──────────────── boxes of values ───────────────────┘          on all threads, in bounded memory
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `model` | dimensions, variables, attributes |
//! | `source`, `open` | readers, and the detection of formats |
//! | `output`, `plan` | what each output format can hold; the structure of the output |
//! | `convert`, `readable`, `verify`, `rechunk`, `cast` | writing and verification |
//! | `fidelity` | the report: exact, changed, not carried |

pub(crate) mod cast;
mod convert;
pub(crate) mod dims;
mod fidelity;
mod model;
mod open;
mod output;
pub(crate) mod plan;
mod readable;
pub(crate) mod rechunk;
pub(crate) mod sink;
pub(crate) mod source;
mod staged;
mod verify;
mod view;

#[cfg(test)]
mod tests;

pub use crate::formats::grib::GribPacking;
pub use crate::formats::netcdf::Version as NetCdfVersion;
pub use crate::formats::tgm::{ObjectSource, Split};
pub use crate::formats::zarr::OpenKey;
pub(crate) use convert::place_of;
pub use convert::{ConvertOptions, convert, convert_to_messages, plan_conversion};
pub use fidelity::{Fate, Fidelity, FidelityItem, Subject};
pub use model::{Attr, AttrData, Dim, Header, Kind, Number, Numbers, Variable, number_at, push_number};
pub use open::{open_path, open_path_with, open_source, open_source_with, open_store};
pub use output::OutputFormat;
pub use plan::Plan;
pub(crate) use plan::as_text;
pub use sink::{ArraySink, Fill, Stored, Values};
pub use source::{ArraySource, ZstdChunks, read_all, read_tensor};
pub use view::{View, ViewOptions};
