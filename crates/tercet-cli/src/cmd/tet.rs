//! The verbs for `.tet` files.

use clap::Subcommand;
use tercet::tet::Op;

use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

pub(crate) mod advise;
pub(crate) mod append;
mod arrays;
pub(crate) mod compute;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod drop;
mod edit;
pub(crate) mod extract;
mod history;
pub(crate) mod info;
pub(crate) mod merge;
pub(crate) mod outline;
pub(crate) mod plot;
pub(crate) mod qhist;
pub(crate) mod query;
pub(crate) mod rename;
pub(crate) mod repack;
pub(crate) mod repair;
pub(crate) mod report;
mod result_text;
mod save;
mod selection;
pub(crate) mod set;
pub(crate) mod transform;
pub(crate) mod unset;
pub(crate) mod verify;
mod written;

/// The verbs for `.tet` files.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show datasets, metadata, chunks and history
    Info(info::Args),
    /// Verify structure, checksums and chunks
    Verify(verify::Args),
    /// Repair a damaged file, or salvage its intact chunks
    Repair(repair::Args),
    /// Create a file from arrays
    ///
    /// Reads NumPy .npy files in C or Fortran order and either byte order. Arrays may be larger than memory. The output file
    /// is written atomically: it appears when it is complete.
    Create(create::Args),
    /// Extract an array, or a slice of it
    ///
    /// The array may be larger than memory, in every format. The output file is written atomically.
    Extract(extract::Args),
    /// Add arrays to a file, or append values along an axis
    ///
    /// Rewrites the file with the arrays added, verifies every copied chunk, and replaces the old file atomically.
    /// Concurrent changes of the same file are rejected.
    ///
    /// With --along, the arrays are appended to existing datasets. All datasets that share the axis must grow together.
    /// Stored chunks are copied as they are.
    Append(append::Args),
    /// Remove arrays from a file
    ///
    /// Rewrites the file without them, verifies every copied chunk, and replaces the old file atomically.
    Drop(drop::Args),
    /// Set attributes, axis names and labels
    Set(set::Args),
    /// Remove attributes and labels
    Unset(unset::Args),
    /// Rename datasets, axes, attributes and labels
    Rename(rename::Args),
    /// Copy a dataset, or all of them, into a new or an existing file
    Copy(copy::Args),
    /// Merge the datasets of several files into one
    Merge(merge::Args),
    /// Plot a series or a field, in the terminal or as a PNG image
    Plot(plot::Args),
    /// Compare compression and rounding settings by size, error and speed
    Advise(advise::Args),
    /// Rewrite datasets with another compression, rounding or chunk shape
    ///
    /// Values are decoded and encoded again, in memory that does not grow with the file. The output file is written
    /// atomically.
    Repack(repack::Args),
    /// Convert array files: NetCDF, HDF5, GRIB, Zarr, NumPy, .tet, .tgm
    ///
    /// The same as `tercet convert`.
    #[command(visible_alias = "export")]
    Convert(Box<crate::cmd::convert::Args>),
    /// Print the byte layout as a tree
    Outline(outline::Args),
    /// Compute the mean over axes
    Mean(compute::Args),
    /// Compute the sum over axes
    Sum(compute::Args),
    /// Compute the minimum over axes
    Min(compute::Args),
    /// Compute the maximum over axes
    Max(compute::Args),
    /// Compute the population standard deviation over axes
    Std(compute::Args),
    /// Compute the population variance over axes
    Var(compute::Args),
    /// Compute the median over axes
    Median(compute::Args),
    /// Compute quantiles over axes
    Quantile(compute::QuantileArgs),
    /// Count values in bins
    Histogram(compute::HistogramArgs),
    /// Count values over axes
    Count(compute::Args),
    /// Compute the product over axes
    Product(compute::Args),
    /// Find the coordinates of the minimum over axes
    Argmin(compute::Args),
    /// Find the coordinates of the maximum over axes
    Argmax(compute::Args),
    /// Transform a dataset: anomalies, standard scores, normalization
    Transform(transform::Args),
    /// Compute the covariance matrix of variables over observations
    Covariance(transform::MatrixArgs),
    /// Compute the correlation matrix of variables over observations
    Correlation(transform::MatrixArgs),
    /// Run a query: reductions, slices, transforms
    ///
    /// A query is a JSON or TOML document with a dataset, a selection and an operation.
    #[command(visible_alias = "q")]
    Query(query::Args),
    /// Show the query history, or run a past query again
    #[command(visible_alias = "hist")]
    Qhist(qhist::Args),
}

impl Verb {
    pub(crate) fn run(&self, out: &mut Ui) -> Result<Outcome, Failure> {
        match self {
            Self::Info(args) => info::run(args, out),
            Self::Verify(args) => verify::run(args, out),
            Self::Repair(args) => repair::run(args, out),
            Self::Create(args) => create::run(args, out),
            Self::Extract(args) => extract::run(args, out),
            Self::Append(args) => append::run(args, out),
            Self::Drop(args) => drop::run(args, out),
            Self::Set(args) => set::run(args, out),
            Self::Unset(args) => unset::run(args, out),
            Self::Rename(args) => rename::run(args, out),
            Self::Copy(args) => copy::run(args, out),
            Self::Merge(args) => merge::run(args, out),
            Self::Plot(args) => plot::run(args, out),
            Self::Advise(args) => advise::run(args, out),
            Self::Repack(args) => repack::run(args, out),
            Self::Convert(args) => crate::cmd::convert::run(args, out),
            Self::Outline(args) => outline::run(args, out),
            Self::Mean(args) => compute::run(args, Op::Mean, out),
            Self::Sum(args) => compute::run(args, Op::Sum, out),
            Self::Min(args) => compute::run(args, Op::Min, out),
            Self::Max(args) => compute::run(args, Op::Max, out),
            Self::Std(args) => compute::run(args, Op::Std, out),
            Self::Var(args) => compute::run(args, Op::Var, out),
            Self::Median(args) => compute::run(args, Op::Median, out),
            Self::Count(args) => compute::run(args, Op::Count, out),
            Self::Product(args) => compute::run(args, Op::Product, out),
            Self::Argmin(args) => compute::run(args, Op::ArgMin, out),
            Self::Argmax(args) => compute::run(args, Op::ArgMax, out),
            Self::Quantile(args) => compute::quantile(args, out),
            Self::Histogram(args) => compute::histogram(args, out),
            Self::Transform(args) => transform::run(args, out),
            Self::Covariance(args) => transform::matrix(args, Op::Covariance, out),
            Self::Correlation(args) => transform::matrix(args, Op::Correlation, out),
            Self::Query(args) => query::run(args, out),
            Self::Qhist(args) => qhist::run(args, out),
        }
    }
}
