//! Conversion of arrays and tables of other formats to and from Tercet containers.
//!
//! ```text
//! a.npy ──▶ npy::Npy ──chunk by chunk──▶ tercet_tet::Writer      (store)
//! a.npy ──▶ npy::Array ──▶ raw bytes of a numeric array          (for messages)
//! tercet_tet::Dataset ──▶ Export ──▶ npy::header + values        (a .npy file is a header and the values)
//! tercet_tet::Results ──▶ write_results ──▶ .npy, .tet, .csv, .json
//! a.csv, a.jsonl, a.parquet, … ──▶ tables::Table ──batch by batch──▶ tercet_tatami::Writer
//! a.md, a.html, a.trec, … ──▶ documents::read ──▶ tercet_tatami::search::SegmentBuilder
//! ```
//!
//! ```
//! use tercet_convert::{chunking, npy::{self, Npy}};
//! use tercet_core::{DType, progress::NoProgress};
//! use tercet_tet::{File, Layout, Writer, WriterOptions};
//!
//! # let directory = tempfile::tempdir()?;
//! # let (input, output) = (directory.path().join("a.npy"), directory.path().join("a.tet"));
//! let mut bytes = npy::header(DType::U8, &[2, 3]).unwrap();
//! bytes.extend([1, 2, 3, 4, 5, 6]);
//! # #[expect(clippy::disallowed_methods, reason = "an example makes its own input")]
//! std::fs::write(&input, bytes)?;
//!
//! let npy = Npy::open(&input)?;
//! let chunks = chunking::default_chunk_shape(npy.shape(), npy.item_size());
//! let mut layout = Layout::new();
//! let a = layout.dataset("a", npy.dtype(), npy.shape(), chunks)?;
//! let mut writer = Writer::create(&output, layout, WriterOptions::new())?;
//! tercet_convert::store(&npy, &mut writer, a, &NoProgress)?;
//! writer.finish()?;
//!
//! let file = File::open(&output)?;
//! assert_eq!(file.dataset("a")?.read_all()?.bytes(), [1, 2, 3, 4, 5, 6]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`arrays`] | array files: NetCDF, HDF5, GRIB, Zarr, `.npy`, `.tet`, `.tgm`, from any to any |
//! | [`catalog`] | catalogs of many files, as `.tatami` tables |
//! | [`diff`], [`content_hash`] | differences of two files; hashes that do not depend on the format |
//! | [`npy`] | NumPy `.npy` files |
//! | [`chunking`] | default chunk shapes |
//! | [`documents`] | documents of text files: plain text, Markdown, HTML, TREC, JSONL, Parquet |
//! | [`tables`] | tables of any format: CSV, JSONL, Parquet, Arrow, `.tatami` |
//! | [`write_results`], [`write_selection`] | results of computations, and selections, as `.npy`, `.tet`, `.csv`, `.json` |
#![deny(clippy::disallowed_methods)]
#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test values are small")
)]

#[cfg(any(unix, windows))]
pub mod arrays;
#[cfg(any(unix, windows))]
pub mod catalog;
pub mod chunking;
#[cfg(any(unix, windows))]
pub mod content_hash;
#[cfg(any(unix, windows))]
pub mod diff;
#[cfg(any(unix, windows))]
pub mod documents;
mod error;
mod formats;
mod results;
mod store;
pub mod tables;

pub use error::{Error, ErrorKind};
pub use formats::npy;
#[cfg(any(unix, windows))]
pub use results::save_results;
pub use results::{ResultFormat, UnknownExtension, write_results, write_selection};
pub use store::{max_abs_error, store};
