//! Queries: checked, planned and executed, with the answer of the reference implementation.

use std::path::PathBuf;

use tercet_core::Progress;

use super::answer::{Answer, Catalog, Execution, Explain, MatchedDataset, Value};
use super::results;
use crate::compute::{self, Outcome, Request, Settings, ValueMode};
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::plan::ReadPlan;
use crate::query::Query;
use crate::query::error::{QueryError, QueryErrorKind};
use crate::query::operation::Kind;

/// Options for running a query.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct RunOptions {
    /// The number of elements of the preview.
    pub preview: u64,
    /// Use chunk statistics to answer without reading and to prune chunks. Answers are the same.
    pub statistics: bool,
    /// Include how the answer is computed.
    pub explain: bool,
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
            explain: false,
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

    /// Sets whether the answer includes how it is computed.
    pub fn with_explain(mut self, explain: bool) -> Self {
        self.explain = explain;
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

impl Query {
    /// The answer without a file.
    pub fn check(&self) -> Answer {
        self.answer("query accepted".to_owned())
    }

    /// Looks the dataset up and plans the reads. Nothing is computed.
    ///
    /// An unknown dataset is not an error: the answer lists the names.
    pub fn plan(&self, file: &File, options: &RunOptions) -> Result<Answer, Error> {
        self.prepare(file, options).map(|(answer, _)| answer).map_err(|fault| file.error(fault))
    }

    /// Executes the query.
    ///
    /// ```no_run
    /// use tercet_core::progress::NoProgress;
    /// use tercet_tet::compat::RunOptions;
    /// use tercet_tet::{File, Query, Syntax};
    ///
    /// let file = File::open("era5.tet")?;
    /// let query = Query::parse(r#"{"dataset": "t2m", "mean": "time"}"#, Syntax::Json)?;
    /// let answer = query.run(&file, &RunOptions::new(), &NoProgress)?;
    /// println!("{:?}", answer.execution.and_then(|execution| execution.get("operation_reduced_mean").cloned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(&self, file: &File, options: &RunOptions, progress: &dyn Progress) -> Result<Answer, Error> {
        self.execute(file, options, progress).map_err(|fault| file.error(fault))
    }

    fn answer(&self, message: String) -> Answer {
        Answer {
            layout_version: self.layout_version(),
            dataset: self.dataset().to_owned(),
            selection_axes: self.selection_axes(),
            operation: self.echo(None),
            message,
            tet_file: None,
            catalog: None,
            read_plan: None,
            execution: None,
            explain: None,
        }
    }

    /// The answer without execution, and the request.
    fn prepare<'f>(
        &self,
        file: &'f File,
        options: &RunOptions,
    ) -> Result<(Answer, Option<Request<'f>>), ErrorKind> {
        let mut answer = self.answer("query accepted".to_owned());
        answer.tet_file = Some(file.name().to_owned());
        let mut catalog = Catalog { file_execution: file.memory_budget(), ..Catalog::default() };
        let Some(dataset) = file.datasets().find(|dataset| dataset.name() == self.dataset()) else {
            answer.message += "; dataset name not found in this file (see catalog.available_datasets)";
            catalog.available_datasets = file.datasets().map(|dataset| dataset.name().to_owned()).collect();
            answer.catalog = Some(catalog);
            return Ok((answer, None));
        };
        let grid = dataset.checked_grid()?;
        catalog.found = Some(MatchedDataset {
            dataset_index: dataset.id(),
            dtype: grid.element(),
            dtype_tag: dataset.dtype_tag(),
            shape: grid.shape().to_vec(),
            chunk_shape: grid.chunk_shape().to_vec(),
            chunk_index_rows: grid.chunk_count(),
            bytes: grid.bytes(),
        });
        answer.catalog = Some(catalog);
        answer.message += "; dataset matched";
        if let Some(alignment) = self.alignment(file, &dataset)? {
            let with = &alignment.with;
            let found = if alignment.aligned { "ok" } else { "reported mismatch" };
            answer.message = format!("{}; alignment check {found} with {with:?}", answer.message);
            let value = serde_json::to_value(&alignment).unwrap_or_default();
            answer.execution = Some(Execution {
                memory_strategy: "alignment_check",
                details: vec![("alignment", Value::Json(value))],
                ..Execution::default()
            });
            return Ok((answer, None));
        }
        let request = self.lower(&dataset, options.settings())?;
        let resolved = &request.resolved;
        answer.operation = self.echo(Some(resolved));
        let plan = request.locate()?;
        answer.message += "; read_plan lists mmap payload regions for touched chunks";
        if resolved.filter.is_some() {
            answer.message += "; cell filter applied to kept chunks";
        }
        if resolved.positions.is_some() {
            answer.message += "; label filter applied to kept chunks";
        }
        if plan.index_filter_skipped > 0 {
            answer.message =
                format!("{}; index filter skipped {}", answer.message, plan.index_filter_skipped);
        }
        answer.read_plan = Some(plan);
        Ok((answer, Some(request)))
    }

    fn execute(
        &self,
        file: &File,
        options: &RunOptions,
        progress: &dyn Progress,
    ) -> Result<Answer, ErrorKind> {
        let (mut answer, request) = self.prepare(file, options)?;
        let (Some(request), Some(plan)) = (&request, &answer.read_plan) else { return Ok(answer) };
        let resolved = &request.resolved;
        let (mut execution, how) = if resolved.operation.is_none() && resolved.spill.is_none() {
            if options.preview == 0 {
                return Err(self.nothing_to_do().into());
            }
            let (preview, how) = request.preview(plan, progress)?;
            let execution = Execution {
                preview: Some(preview),
                memory_strategy: "capped_in_memory",
                ..Execution::default()
            };
            (execution, how)
        } else {
            let Outcome { computed, execution: how, preview } = request.run_with(plan, progress)?;
            let execution = results::execution(request, plan, computed, &how);
            (Execution { preview, ..execution }, how)
        };
        execution.total_bytes_read_from_disk = how.bytes_read;
        self.details(request, plan, &how, &mut execution);
        answer.message += match resolved.operation {
            Some(_) => "; operation executed (see execution.memory_strategy and operation_*)",
            None => "; mmap f32 preview attached (see execution)",
        };
        if let Some(groups) = resolved.group_count {
            answer.message = format!("{}; group_count={groups}", answer.message);
        }
        answer.explain = options.explain.then_some(Explain {
            steps: how.steps,
            chunks_by_statistics: how.chunks_by_statistics,
            chunks_by_payload: how.chunks_read,
            chunks_skipped: how.chunks_skipped,
            threads: how.threads,
        });
        answer.execution = Some(execution);
        Ok(answer)
    }

    fn nothing_to_do(&self) -> QueryError {
        let reason = QueryErrorKind::refused(
            "has no operation, no `spill` and a preview of 0 elements",
            "request a preview, or add an operation such as `\"mean\": []`",
        );
        self.error_at("", reason)
    }

    /// Adds the members about memory and execution.
    fn details(
        &self,
        request: &Request<'_>,
        plan: &ReadPlan,
        how: &compute::Execution,
        execution: &mut Execution,
    ) {
        let mut put = |name, value| execution.details.push((name, value));
        put("memory_budget_bytes", Value::Count(how.memory_budget));
        if let Some(available) = how.available_memory {
            put("host_available_ram_bytes", Value::Count(available));
        }
        if plan.grid.element() == tercet_core::ElementType::F32 {
            put("logical_selection_f32_bytes", Value::Count(plan.selection_bytes()));
        }
        put("logical_selection_bytes", Value::Count(plan.selection_bytes()));
        let kind = request.resolved.operation.as_ref().map(|operation| operation.kind);
        if kind.is_some_and(is_fold) {
            put("fold_parallel", Value::Flag(how.is_parallel));
            let regime = if how.is_out_of_core { "out_of_core" } else { "in_core" };
            put("io_regime", Value::Text(regime.to_owned()));
            put("fold_linear_scan", Value::Flag(how.is_linear_scan));
        }
        let device = self.execution().device;
        if let Some(reason) = device.fallback_reason() {
            put("device_requested", Value::Text(device.to_string()));
            put("device_used", Value::Text("cpu".to_owned()));
            put("device_fallback_reason", Value::Text(reason.to_owned()));
        } else {
            put("device_used", Value::Text("cpu".to_owned()));
        }
    }
}

/// Whether an operation is a streaming fold.
pub(super) fn is_fold(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Median | Kind::Quantile { .. } | Kind::Histogram { .. } | Kind::Covariance | Kind::Correlation
    )
}

impl From<QueryError> for ErrorKind {
    fn from(error: QueryError) -> Self {
        Self::Query(Box::new(error))
    }
}
