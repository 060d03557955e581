//! Handles of `.tatami` files.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use tercet::Container;
use tercet::arrow::{Options, Table};
use tercet::core::Progress;
use tercet::core::progress::Cancelled;
use tercet::tatami::scan::{Partition, RowSelection};
use tercet::tatami::search::{Counting, Query, Ranking, SearchRequest, Searcher};
use tercet::tatami::{Expr, File, Scan, Writer, WriterOptions};

use crate::arrow_stream;
use crate::error::{arrow_to_py, cancelled, internal, request, to_py};
use crate::job;

/// An open `.tatami` file.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Tatami {
    file: File,
    searcher: OnceLock<Option<Arc<Searcher>>>,
}

impl Tatami {
    pub(crate) fn new(file: File) -> Self {
        Self { file, searcher: OnceLock::new() }
    }

    fn searcher(&self, py: Python<'_>) -> PyResult<Arc<Searcher>> {
        if self.searcher.get().is_none() {
            let opened = py.detach(|| self.file.segment()).map_err(to_py)?;
            // Another thread may have been faster.
            let _ = self.searcher.set(opened.map(|segment| Arc::new(Searcher::from_segment(segment))));
        }
        let searcher = self.searcher.get().and_then(Clone::clone);
        searcher.ok_or_else(|| request(py, &format!("{}: the file has no search index", self.file.name())))
    }
}

/// A scan: columns, filter and rows of a file.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeScan {
    scan: Scan,
}

#[pymethods]
impl NativeScan {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the request.
        drop(requested_schema);
        arrow_stream::stream(py, &self.scan)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow_stream::schema(py, &self.scan)
    }

    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.scan.count()).map_err(to_py)
    }

    /// Parts of the scan that other processes can open, as JSON.
    fn partitions(&self, py: Python<'_>, count: usize) -> PyResult<Vec<String>> {
        let partitions = py.detach(|| self.scan.partitions(count)).map_err(to_py)?;
        partitions.iter().map(|one| serde_json::to_string(one).map_err(internal)).collect()
    }

    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        let explain = py.detach(|| self.scan.explain()).map_err(to_py)?;
        serde_json::to_string(&explain).map_err(internal)
    }
}

#[pymethods]
impl Tatami {
    /// Path or URL.
    fn name(&self) -> String {
        self.file.name().to_string()
    }

    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| crate::summary(&Container::Tatami(self.file.clone())))
    }

    /// The names of the columns.
    fn columns(&self) -> Vec<String> {
        self.file.schema().fields().iter().map(|field| field.name.to_string()).collect()
    }

    /// The length in bytes; the bytes of the columns before and after compression.
    fn describe(&self) -> (u64, u64, u64) {
        let statistics = self.file.footer().statistics;
        (self.file.len(), statistics.raw_bytes, statistics.stored_bytes)
    }

    /// Name and type of each column.
    fn types(&self) -> Vec<(String, String)> {
        let fields = self.file.schema().fields().iter();
        fields.map(|field| (field.name.to_string(), field.kind.to_string())).collect()
    }

    fn rows(&self) -> u64 {
        self.file.rows()
    }

    fn has_index(&self) -> bool {
        self.file.footer().inverted.is_some()
    }

    /// The scan of a partition.
    fn partition(&self, py: Python<'_>, partition: &str) -> PyResult<NativeScan> {
        let partition: Partition = serde_json::from_str(partition).map_err(internal)?;
        let scan = py.detach(|| partition.scan(&self.file)).map_err(to_py)?;
        Ok(NativeScan { scan })
    }

    /// A partition with other columns and one more filter, as JSON.
    fn narrow(
        &self,
        py: Python<'_>,
        partition: &str,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        batch_rows: Option<u64>,
    ) -> PyResult<String> {
        let mut partition: Partition = serde_json::from_str(partition).map_err(internal)?;
        if let Some(columns) = columns {
            partition.columns = columns;
        }
        if let Some(text) = filter {
            let expr = Expr::parse(text)
                .map_err(|error| request(py, &format!("invalid filter `{text}`: {error}")))?;
            partition.filter = Some(match partition.filter.take() {
                Some(before) => Expr::And(vec![before, expr]),
                None => expr,
            });
        }
        if let Some(rows) = batch_rows {
            partition.batch_rows = rows;
        }
        // Columns and filter must be those of the file.
        py.detach(|| partition.scan(&self.file)).map_err(to_py)?;
        serde_json::to_string(&partition).map_err(internal)
    }

    #[pyo3(signature = (columns, filter, offset, limit, rows, batch_rows = None))]
    #[expect(clippy::too_many_arguments, reason = "options of a scan")]
    fn scan(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        offset: u64,
        limit: Option<u64>,
        rows: Option<Vec<u64>>,
        batch_rows: Option<u64>,
    ) -> PyResult<NativeScan> {
        let mut scan = self.file.scan();
        if let Some(columns) = columns {
            scan = scan.columns(&columns).map_err(to_py)?;
        }
        if let Some(text) = filter {
            let expr = Expr::parse(text)
                .map_err(|error| request(py, &format!("invalid filter `{text}`: {error}")))?;
            scan = scan.filter(&expr).map_err(to_py)?;
        }
        if let Some(rows) = rows {
            scan = scan.rows(RowSelection::from(rows)).map_err(to_py)?;
        }
        scan = scan.offset(offset);
        if let Some(limit) = limit {
            scan = scan.limit(limit);
        }
        if let Some(rows) = batch_rows {
            scan = scan.with_batch_rows(rows);
        }
        Ok(NativeScan { scan })
    }

    /// Hits as dictionaries: document, score, ID, URL, title, snippet, marks.
    #[pyo3(signature = (query, k, *, rank, filter, snippet_bytes, lenient))]
    #[expect(clippy::too_many_arguments, reason = "options of a search")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        query: &str,
        k: usize,
        rank: &str,
        filter: Option<&str>,
        snippet_bytes: usize,
        lenient: bool,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let searcher = self.searcher(py)?;
        let ranking = match rank {
            "relevance" => Ranking::Relevance,
            "bm25" => Ranking::Bm25,
            "native" => Ranking::Native,
            other => {
                let known = "'relevance', 'bm25' and 'native'";
                return Err(request(py, &format!("unknown ranking '{other}'; there are {known}")));
            }
        };
        let query = if lenient {
            Query::terms(query)
        } else {
            Query::parse(query).map_err(|error| request(py, &format!("invalid query `{query}`: {error}")))?
        };
        // The ranking of the format counts repeated terms.
        let query = if ranking == Ranking::Native { query } else { query.dedup_terms() };
        let filter = match filter {
            Some(text) => Some(
                Expr::parse(text)
                    .map_err(|error| request(py, &format!("invalid filter `{text}`: {error}")))?,
            ),
            None => None,
        };
        let request = SearchRequest::new(query)
            .with_ranking(ranking)
            .with_limit(k)
            .with_filter(filter)
            .with_counting(Counting::Off)
            .with_snippet_bytes(snippet_bytes);
        let found = py.detach(|| searcher.search(&request)).map_err(to_py)?;
        let mut dicts = Vec::with_capacity(found.hits.len());
        for hit in found.hits {
            let dict = PyDict::new(py);
            dict.set_item("row", hit.document)?;
            dict.set_item("score", hit.score.unwrap_or_default())?;
            dict.set_item("id", hit.stored.doc_id)?;
            dict.set_item("url", hit.stored.url)?;
            dict.set_item("title", hit.stored.title)?;
            if let Some(excerpt) = hit.highlight {
                // Positions of characters, not of bytes.
                let at = |byte: usize| excerpt.text.get(..byte).map_or(0, |before| before.chars().count());
                let marks: Vec<(usize, usize)> =
                    excerpt.marks.iter().map(|mark| (at(mark.start), at(mark.end))).collect();
                dict.set_item("snippet", &excerpt.text)?;
                dict.set_item("marks", marks)?;
            }
            dicts.push(dict);
        }
        Ok(dicts)
    }

    /// The text of a document.
    fn text<'py>(&self, py: Python<'py>, document: u32) -> PyResult<Bound<'py, PyBytes>> {
        let searcher = self.searcher(py)?;
        let text = py.detach(|| searcher.segments()[0].text(document)).map_err(to_py)?;
        Ok(PyBytes::new(py, &text))
    }
}

/// Writes an Arrow stream to a new file. Returns the number of rows.
#[pyfunction]
#[pyo3(signature = (path, table, *, overwrite = false, progress = None))]
pub(crate) fn write_tatami(
    py: Python<'_>,
    path: &str,
    table: &Bound<'_, PyAny>,
    overwrite: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<u64> {
    let reader = arrow_stream::import(table)?;
    let written =
        job::run(py, progress.as_ref(), move |progress| write_batches(path, reader, overwrite, progress))?;
    match written {
        Ok(rows) => Ok(rows),
        Err(WriteError::Arrow(error)) => Err(arrow_to_py(&error)),
        Err(WriteError::Tatami(error)) => Err(to_py(error)),
        Err(WriteError::Stream(error)) => Err(internal(error)),
        Err(WriteError::Cancelled(_)) => Err(cancelled(py, path)),
    }
}

enum WriteError {
    Arrow(tercet::arrow::Error),
    Tatami(tercet::tatami::Error),
    Stream(arrow_schema::ArrowError),
    Cancelled(Cancelled),
}

fn write_batches(
    path: &str,
    reader: arrow_array::ffi_stream::ArrowArrayStreamReader,
    overwrite: bool,
    progress: &dyn Progress,
) -> Result<u64, WriteError> {
    use arrow_array::RecordBatchReader as _;

    let table =
        Table::from_arrow(&path.into(), &reader.schema(), &Options::new()).map_err(WriteError::Arrow)?;
    let mut options = WriterOptions::new().with_overwrite(overwrite);
    for (key, value) in table.annotations() {
        options = options.with_metadata(key, value);
    }
    let mut writer = Writer::create(path, table.schema().clone(), options).map_err(WriteError::Tatami)?;
    for batch in reader {
        progress.check().map_err(WriteError::Cancelled)?;
        let batch = batch.map_err(WriteError::Stream)?;
        progress.advance(batch.get_array_memory_size() as u64);
        let columns = table.columns(&batch, writer.rows()).map_err(WriteError::Arrow)?;
        writer.append(&columns).map_err(WriteError::Tatami)?;
    }
    let rows = writer.rows();
    writer.finish().map_err(WriteError::Tatami)?;
    Ok(rows)
}
