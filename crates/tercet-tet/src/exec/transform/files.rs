//! Result files of transforms, written block by block.

use std::path::{Path, PathBuf};

use tercet_core::CommonError;
use tercet_core::Tensor;
use tercet_core::publish::AtomicFile;

use super::{Made, sidecar};
use crate::compute::OutputFile;
use crate::error::{Error, ErrorKind, TargetError};
use crate::exec::dense::DenseWriter;
use crate::exec::job::Job;
use crate::exec::spill::{Head, OffsetWriter, plan};
use crate::exec::target::{Output, Outputs};
use crate::export::Fill;
use crate::layout::{DatasetId, WriterOptions};
use crate::query::Target;
use crate::query::operation::Method;
use crate::query::resolved::Operation;
use crate::writer::Writer;

/// An output file that is ready to be written. Dropping it removes everything that was created.
pub(super) enum PendingOutput {
    /// Unnamed temporary file, removed after the query, and its directory.
    Temporary(std::fs::File, PathBuf),
    // The file is the first field: it is dropped first, because the directories created for it must be empty when they
    // are removed.
    Raw(Box<AtomicFile>, Output),
    Sidecar(Box<Writer<AtomicFile>>, DatasetId, Output),
}

impl PendingOutput {
    /// Checks the location of the result and opens it.
    pub(super) fn prepare(
        job: &Job<'_>,
        operation: &Operation,
        method: Method,
        outputs: &Outputs,
        target: Target,
    ) -> Result<Self, ErrorKind> {
        let write = job.resolved.write.as_ref();
        let path = write.and_then(|write| write.path.as_deref());
        match target {
            Target::Sidecar => {
                let (layout, id) = sidecar::layout(job, method, &operation.axes)?;
                let timestamp = write.and_then(|write| write.timestamp).unwrap_or(true);
                let path = match path {
                    Some(path) => path.into(),
                    None => sidecar::path(outputs, method, timestamp)?,
                };
                let output = outputs.open(outputs.spot(&path)?)?;
                let atomic_file = output.stage()?;
                let writer = Writer::new(atomic_file, layout, WriterOptions::new());
                let writer = writer.map_err(Error::into_kind)?.with_name(&output.path().to_string_lossy());
                Ok(Self::Sidecar(Box::new(writer), id, output))
            }
            Target::Spill => {
                let output = match path {
                    Some(path) => outputs.open(outputs.spot(Path::new(path))?)?,
                    None => outputs.automatic()?,
                };
                Ok(Self::Raw(Box::new(output.stage()?), output))
            }
            Target::Ram | Target::Switch => {
                let (file, directory) = outputs.temporary()?;
                Ok(Self::Temporary(file, directory))
            }
        }
    }

    /// Writes the result that `fill` computes.
    pub(super) fn write(
        self,
        job: &Job<'_>,
        values: &DenseWriter<'_>,
        preview: u64,
        fill: &Fill<'_>,
    ) -> Result<Made, ErrorKind> {
        let dtype = job.transformed();
        let export = plan(job, values, dtype)?;
        let bytes = export.bytes();
        let mut head = Head::new(job, preview, dtype)?;
        let (path, is_sidecar) = match self {
            Self::Temporary(file, directory) => {
                // The caller did not name this file: the error for a full disk names its directory.
                let named = |fault: ErrorKind| match fault {
                    ErrorKind::Common(CommonError::Write(error)) => ErrorKind::Target {
                        path: directory.to_string_lossy().into(),
                        reason: TargetError::Io(error),
                    },
                    other => other,
                };
                let mut placed = OffsetWriter::new(std::io::BufWriter::with_capacity(1 << 18, file));
                export.each_run(fill, |at, run| {
                    head.look(at, run);
                    placed.put(at, run).map_err(named)
                })?;
                values.check()?;
                placed.into_inner().into_inner().map_err(|error| named(error.into_error().into()))?;
                (None, false)
            }
            Self::Raw(atomic_file, output) => {
                let mut placed = OffsetWriter::new(*atomic_file);
                export.each_run(fill, |at, run| {
                    head.look(at, run);
                    placed.put(at, run)
                })?;
                values.check()?;
                let path = placed.into_inner().publish()?;
                output.keep();
                (Some(path), false)
            }
            Self::Sidecar(mut writer, id, output) => {
                let mut dense = writer.dense(id);
                export.each_run(fill, |at, run| {
                    head.look(at, run);
                    writer.put_dense(&mut dense, at, run)
                })?;
                values.check()?;
                writer.end_dense(&dense)?;
                let path = writer.finish().map_err(Error::into_kind)?.output;
                output.keep();
                (Some(path), true)
            }
        };
        let path = path.map(|path| path.to_string_lossy().into_owned());
        let preview: Option<Tensor> = head.into_values();
        Ok(Made { tensor: None, preview, file: Some(OutputFile { path, bytes }), is_sidecar })
    }
}
