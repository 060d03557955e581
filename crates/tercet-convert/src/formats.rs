//! File formats of other programs, one module each.

pub(crate) mod grib;
pub(crate) mod hdf5;
pub(crate) mod matrix;
pub(crate) mod netcdf;
pub mod npy;
pub(crate) mod strided;
pub(crate) mod tet;
pub(crate) mod tgm;
pub(crate) mod unwind;
pub(crate) mod zarr;
pub(crate) mod zip;
