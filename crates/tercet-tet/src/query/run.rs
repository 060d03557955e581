//! Runs query documents: each is lowered to a request, planned and run once, with one typed result.

use std::path::PathBuf;

use tercet_core::Progress;

use super::Query;
use super::alignment::Alignment;
use super::error::{QueryError, QueryErrorKind};
use crate::compute::{Computed, Outcome, Request, Settings, ValueMode};
use crate::error::{Error, ErrorKind};
use crate::exec::reduce::is_streaming;
use crate::file::{Dataset, File};
use crate::plan::ReadPlan;

/// Options for running a query.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOptions {
    /// The number of elements of the preview.
    pub preview: u64,
    /// Use chunk statistics to answer without reading and to prune chunks. Results are the same.
    pub statistics: bool,
    /// Additional directories in which files may be written.
    pub spill_allow: Vec<PathBuf>,
    /// Whether `spill` and `write` may replace existing files.
    pub overwrite: bool,
    /// Whether to use several threads; overrides `fold_parallel` of the query.
    pub parallel: Option<bool>,
    /// Compute with stored values, and require a slice for each axis of a selection, as the reference does. Otherwise
    /// values are decoded and missing ones skipped, unless the query says otherwise.
    pub reference: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            preview: 64,
            statistics: true,
            spill_allow: Vec::new(),
            overwrite: false,
            parallel: None,
            reference: true,
        }
    }
}

impl RunOptions {
    /// Previews of 64 elements, with statistics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of elements of the preview.
    pub fn with_preview(mut self, elements: u64) -> Self {
        self.preview = elements;
        self
    }

    /// Sets whether statistics are used.
    pub fn with_statistics(mut self, statistics: bool) -> Self {
        self.statistics = statistics;
        self
    }

    /// Sets whether `spill` and `write` may replace existing files.
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets whether several threads are used.
    pub fn with_parallel(mut self, parallel: Option<bool>) -> Self {
        self.parallel = parallel;
        self
    }

    /// Sets whether the query is read and computed as the reference does.
    pub fn with_reference(mut self, reference: bool) -> Self {
        self.reference = reference;
        self
    }

    pub(crate) fn settings(&self) -> Settings {
        let skip_missing = ValueMode::Decoded { skip_missing: true };
        Settings {
            parallel: self.parallel,
            statistics: self.statistics,
            allowed: self.spill_allow.clone(),
            overwrite: self.overwrite,
            preview: self.preview,
            values: if self.reference { ValueMode::Stored } else { skip_missing },
            as_reference: self.reference,
            ..Settings::default()
        }
    }
}

/// A query with its dataset, its plan and its result.
#[derive(Debug)]
#[non_exhaustive]
pub struct QueryResult<'a> {
    /// The query.
    pub query: &'a Query,
    /// The dataset.
    pub dataset: Dataset<'a>,
    /// The comparison of axes, if the query has `align`: such a query has no request.
    pub alignment: Option<Alignment>,
    /// The request that the query was lowered to.
    pub request: Option<Request<'a>>,
    /// The chunks of the request.
    pub plan: Option<ReadPlan>,
    /// The result of the request; `None` if it was planned only.
    pub outcome: Option<Outcome>,
}

impl<'a> QueryResult<'a> {
    /// The file of the dataset.
    pub fn file(&self) -> &'a File {
        self.dataset.file
    }

    /// Where the result was computed, as the reference implementation names it; `None` if the query was planned only.
    pub fn memory_strategy(&self) -> Option<&'static str> {
        if self.alignment.is_some() {
            return Some("alignment_check");
        }
        let (request, plan, outcome) = (self.request.as_ref()?, self.plan.as_ref()?, self.outcome.as_ref()?);
        Some(match &outcome.computed {
            Computed::Read(_) | Computed::Preview => "capped_in_memory",
            Computed::Written(_) => "mmap_spill",
            Computed::Transformed(made) => match (&made.file, made.is_sidecar) {
                (None, _) => "transform_ram",
                (Some(_), false) => "transform_spill",
                (Some(_), true) => "transform_sidecar",
            },
            Computed::Reduced(_) if request.operation_kind().is_some_and(is_streaming) => "streaming_fold",
            Computed::Reduced(_) if plan.selection_bytes() > outcome.execution.memory_budget => {
                "temp_spill_materialize"
            }
            Computed::Reduced(_) => "in_memory_materialize",
        })
    }
}

impl Query {
    /// Looks the dataset up and plans the reads. Nothing is computed.
    pub fn plan<'a>(&'a self, file: &'a File, options: &RunOptions) -> Result<QueryResult<'a>, Error> {
        let dataset = file.dataset(self.dataset())?;
        self.prepare(dataset, options).map_err(|kind| file.error(kind))
    }

    /// Runs the query. The result of a query without operation is a preview; [`Query::request`] reads all values.
    ///
    /// ```no_run
    /// use tercet_core::progress::NoProgress;
    /// use tercet_tet::{Computed, File, Query, RunOptions, Syntax};
    ///
    /// let file = File::open("era5.tet")?;
    /// let query = Query::parse(r#"{"dataset": "t2m", "mean": "time"}"#, Syntax::Json)?;
    /// let result = query.run(&file, &RunOptions::new(), &NoProgress)?;
    /// if let Some(Computed::Reduced(means)) = result.outcome.map(|outcome| outcome.computed) {
    ///     println!("{:?}", means[0].tensor);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<'a>(
        &'a self,
        file: &'a File,
        options: &RunOptions,
        progress: &dyn Progress,
    ) -> Result<QueryResult<'a>, Error> {
        let mut result = self.plan(file, options)?;
        if let (Some(request), Some(plan)) = (&result.request, &result.plan) {
            let outcome = if request.is_read() {
                if options.preview == 0 {
                    return Err(file.error(self.nothing_to_do().into()));
                }
                request.preview(plan, progress)
            } else {
                request.run_with(plan, progress)
            };
            result.outcome = Some(outcome.map_err(|kind| file.error(kind))?);
        }
        Ok(result)
    }

    fn prepare<'a>(
        &'a self,
        dataset: Dataset<'a>,
        options: &RunOptions,
    ) -> Result<QueryResult<'a>, ErrorKind> {
        dataset.checked_grid()?;
        let alignment = self.alignment(dataset.file, &dataset)?;
        let (mut request, mut plan) = (None, None);
        if alignment.is_none() {
            let lowered = self.lower(&dataset, options.settings())?;
            plan = Some(lowered.locate()?);
            request = Some(lowered);
        }
        Ok(QueryResult { query: self, dataset, alignment, request, plan, outcome: None })
    }

    fn nothing_to_do(&self) -> QueryError {
        let reason = QueryErrorKind::refused(
            "has no operation, no `spill` and a preview of 0 elements",
            "request a preview, or add an operation such as `\"mean\": []`",
        );
        self.error_at("", reason)
    }
}
