//! Transforms and their results.

use std::path::Path;

use tercet_core::Tensor;
use tercet_core::progress::NoProgress;

use super::request::{Computed, Execution, OutputFile, Plan, Request};
use super::{Axis, Dim, Select};
use crate::error::Error;
use crate::exec::transform;
use crate::query::operation::{Kind, Method};
use crate::query::resolved::{Operation, Role};
use crate::query::{Target, Write};

/// A transform to be run: an array of the same shape, from statistics over axes.
#[derive(Debug)]
pub struct Transform<'f> {
    select: Select<'f>,
    method: Method,
    axes: Vec<Result<usize, Error>>,
    write: Result<Write, Error>,
}

/// Result of a transform.
#[derive(Debug)]
#[non_exhaustive]
pub struct Transformed {
    /// The method.
    pub method: Method,
    /// The result, if it is kept in memory.
    pub tensor: Option<Tensor>,
    /// The file of the result, if it was written to one.
    pub file: Option<OutputFile>,
    /// The dimensions.
    pub dims: Vec<Dim>,
    /// The statistics that were used: the operation, and its results over the axes.
    pub statistics: Vec<(Kind, Vec<f64>)>,
    /// The number of elements in the statistics, after filters.
    pub elements: u64,
    /// The number of missing elements, which are NaN or fill values in the result.
    pub skipped: u64,
    /// The number of finite elements whose result is NaN because their divisor is zero or not finite.
    pub zero_divisors: u64,
    /// The first of their indices, ascending.
    pub zero_divisor_indices: Vec<u64>,
    /// How the result was computed.
    pub execution: Execution,
    /// Whether the file is a `.tet` file.
    pub(crate) is_sidecar: bool,
}

impl Transformed {
    /// Adds names to a computed transform. Returns the preview as well.
    pub(super) fn new(
        method: Method,
        made: transform::Transformed,
        dims: Vec<Dim>,
        execution: Execution,
    ) -> (Self, Option<Tensor>) {
        let transformed = Self {
            method,
            tensor: made.tensor,
            file: made.file,
            dims,
            statistics: made.statistics,
            elements: made.elements,
            skipped: made.skipped,
            zero_divisors: made.div_by_zero,
            zero_divisor_indices: made.div_by_zero_indices,
            execution,
            is_sidecar: made.is_sidecar,
        };
        (transformed, made.preview)
    }
}

impl<'f> Transform<'f> {
    pub(super) fn new(select: Select<'f>, method: Method) -> Self {
        let write = Write { target: Target::Switch, path: None, timestamp: None };
        Self { select, method, axes: Vec::new(), write: Ok(write) }
    }

    /// Computes statistics over these axes; without any, over all of them.
    pub fn over<'a, A: Into<Axis<'a>>>(mut self, axes: impl IntoIterator<Item = A>) -> Self {
        self.axes = axes.into_iter().map(|axis| self.select.axis(axis.into())).collect();
        self
    }

    /// Keeps the result in memory, or fails if the memory budget is too small for it. By default such a result is only
    /// computed, and lost with its temporary file.
    pub fn in_memory(mut self) -> Self {
        self.write = Ok(Write { target: Target::Ram, path: None, timestamp: None });
        self
    }

    /// Writes the values of the result to a new file: row-major, little-endian, no header. An existing file needs
    /// [`Select::overwrite`].
    pub fn raw_output(self, path: impl AsRef<Path>) -> Self {
        self.output(Target::Spill, path.as_ref())
    }

    /// Writes the result to a new `.tet` file, with dimensions, labels, attributes and history. An existing file needs
    /// [`Select::overwrite`].
    pub fn tet_output(self, path: impl AsRef<Path>) -> Self {
        self.output(Target::Sidecar, path.as_ref())
    }

    fn output(mut self, target: Target, path: &Path) -> Self {
        let path = self.select.allow(path);
        self.write = path.map(|path| Write { target, path: Some(path), timestamp: None });
        self
    }

    /// The request: planned and run in the same way as a query document.
    pub fn request(self) -> Result<Request<'f>, Error> {
        let Self { select, method, axes, write } = self;
        let write = write?;
        let axes = axes.into_iter().collect::<Result<Vec<usize>, Error>>()?;
        let reduced = |axis: usize| axes.is_empty() || axes.contains(&axis);
        let roles = (0..select.axes.len()).map(|axis| if reduced(axis) { Role::Reduced } else { Role::Kept });
        let operation = Operation { kind: Kind::Transform { method }, roles: roles.collect(), axes };
        select.refuse_reversed("a transform")?;
        let dims = select.dims()?;
        let mut request = select.bind(Some(operation), Vec::new(), dims)?;
        request.resolved.write = Some(write);
        Ok(request)
    }

    /// Plans the transform. No values are read.
    pub fn plan(self) -> Result<Plan, Error> {
        self.request()?.plan()
    }

    /// Runs the transform.
    pub fn run(self) -> Result<Transformed, Error> {
        let dataset = self.select.dataset;
        match self.request()?.run(&NoProgress)?.computed {
            Computed::Transformed(transformed) => Ok(*transformed),
            _ => Err(super::refuse(&dataset, "the request is not a transform")),
        }
    }
}
