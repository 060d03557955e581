//! Bridges: arrays of other formats into Tercet containers and out of them.
//!
//! ```text
//! a.npy ──▶ npy::Npy ──tile by tile──▶ tercet_tet::Writer        (store)
//! a.npy ──▶ npy::Array ──▶ bytes of any array of numbers         (what messages hold)
//! tercet_tet::Dataset ──▶ Export ──▶ npy::header + values        (a .npy file is a header and the values)
//! ```
//!
//! ```
//! use tercet_convert::{chunking, npy::{self, Npy}};
//! use tercet_core::{ElementType, progress::NoProgress};
//! use tercet_tet::{File, Layout, WriterOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (input, output) = (folder.path().join("a.npy"), folder.path().join("a.tet"));
//! let mut bytes = npy::header(ElementType::U8, &[2, 3]);
//! bytes.extend([1, 2, 3, 4, 5, 6]);
//! # #[expect(clippy::disallowed_methods, reason = "an example makes its own input")]
//! std::fs::write(&input, bytes)?;
//!
//! let npy = Npy::open(&input)?;
//! let chunks = chunking::default_chunk_shape(npy.shape(), npy.dtype().size());
//! let mut layout = Layout::new();
//! let a = layout.dataset("a", npy.dtype(), npy.shape(), chunks)?;
//! let mut writer = layout.create(&output, WriterOptions::new())?;
//! tercet_convert::store(&npy, &mut writer, a, &NoProgress)?;
//! writer.seal()?;
//!
//! let file = File::open(&output)?;
//! assert_eq!(file.dataset("a")?.read_all()?.bytes(), [1, 2, 3, 4, 5, 6]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`npy`] | NumPy's `.npy` files |
//! | [`chunking`] | the chunk shape to use when nobody says one |
#![deny(clippy::disallowed_methods)]
#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test values are small")
)]

pub mod chunking;
mod error;
mod foreign;
mod store;

pub use error::Error;
pub use foreign::npy;
pub use store::store;
