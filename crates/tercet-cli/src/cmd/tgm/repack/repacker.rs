//! Repacking of one message: decode, encode, compare.

use tercet::core::limits::check_limit;
use tercet::core::{Diagnostic as _, escape};
use tercet::tgm::precision::{Candidate, PRECISION, choose, deviation};
use tercet::tgm::{
    DType, DataObjectDescriptor, EncodeError, EncodeOptions, Entry, Error, ErrorKind, File, GlobalMetadata,
    Message, Object, PipelineError, PreEncoded, Provenance, Value, can_widen_to_f64, encode_pre_encoded,
    is_pipeline_parameter, widen_to_f64,
};

use super::{RepackOptions, Tally};
use crate::args::limits;
use crate::cmd::tgm::Globals;
use crate::cmd::tgm::object_id::describe;
use crate::failure::{Failure, hint_text};
use crate::render::exact;
use crate::ui::Ui;

/// Repacks messages.
#[derive(Debug)]
pub(in crate::cmd::tgm) struct Repacker<'a> {
    repacking: &'a RepackOptions,
    options: EncodeOptions,
    file: &'a File,
}

/// A repacked object.
struct RepackedObject {
    descriptor: DataObjectDescriptor,
    payload: Vec<u8>,
    /// The maximum change of a value; `None` for a copied object.
    change: Option<f64>,
}

/// The reason an object is not repacked.
enum Refusal {
    /// The pipeline cannot store it; it is copied unchanged.
    Unstorable(Box<Failure>, String),
    /// An error that ends the command.
    Failed(Box<Failure>),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<tercet::tgm::Error> for Refusal {
    fn from(error: tercet::tgm::Error) -> Self {
        Failure::from(error).into()
    }
}

impl<'a> Repacker<'a> {
    /// A repacker of the messages of a file.
    pub(in crate::cmd::tgm) fn new(repacking: &'a RepackOptions, globals: &Globals, file: &'a File) -> Self {
        // NaN and infinities of the input are kept by default.
        let options = globals.encode_options(true);
        let options = if repacking.reproducible { options.with_provenance(Provenance::Off) } else { options };
        Self { repacking, options, file }
    }

    /// Repacks a message and returns its bytes.
    pub(in crate::cmd::tgm) fn message(
        &mut self,
        message: &Message,
        tally: &mut Tally,
        out: &mut Ui,
    ) -> Result<Vec<u8>, Failure> {
        let mut metadata = message.metadata().without_reserved();
        let mut stored = Vec::new();
        for object in message.objects() {
            let object = object?;
            let one = self.object(message, &object, out)?;
            match one.change {
                Some(change) => {
                    tally.repacked += 1;
                    tally.max_change = tally.max_change.max(change);
                    let recorded = self.record(&one, change, &mut metadata, stored.len());
                    recorded.map_err(|reason| {
                        Failure::request(format!("{}: {reason}", label(message, &object)))
                    })?;
                }
                None => tally.copied += 1,
            }
            stored.push(one);
        }
        let objects: Vec<PreEncoded<'_>> = stored
            .iter()
            .map(|one| PreEncoded { descriptor: &one.descriptor, payload: &one.payload })
            .collect();
        let bytes = encode_pre_encoded(&metadata, &objects, &self.options)?;
        tally.messages += 1;
        tally.bytes_before += message.span().len();
        tally.bytes_after += bytes.len() as u64;
        Ok(bytes)
    }

    fn object(
        &self,
        message: &Message,
        object: &Object<'_>,
        out: &mut Ui,
    ) -> Result<RepackedObject, Failure> {
        match self.repack(message, object) {
            Ok(stored) => Ok(stored),
            Err(Refusal::Failed(failure)) => Err(*failure),
            Err(Refusal::Unstorable(failure, _)) if self.repacking.strict => Err(*failure),
            Err(Refusal::Unstorable(_, reason)) => {
                let label = label(message, object);
                out.note(format_args!("note: {label}: copied unchanged: {reason}"))?;
                let (descriptor, payload) = (object.descriptor().clone(), object.stored()?.to_vec());
                Ok(RepackedObject { descriptor, payload, change: None })
            }
        }
    }

    fn repack(&self, message: &Message, object: &Object<'_>) -> Result<RepackedObject, Refusal> {
        let pipeline = &self.repacking.pipeline;
        let label = || label(message, object);
        let found = object.descriptor().dtype;
        let is_widened = pipeline.widens() && can_widen_to_f64(found);
        let dtype = if is_widened { DType::F64 } else { found };
        let descriptor = pipeline
            .apply(plain(object.descriptor(), dtype))
            .map_err(|unfit| Refusal::Unstorable(unfit.failure(&label()).into(), unfit.reason()))?;
        self.check_memory(object, found, dtype)?;
        let array = object.decode()?;
        let widened;
        let values: &[u8] = if is_widened {
            widened = widen_to_f64(found, array.bytes()).map_err(|error| {
                let failure = Failure::request(format!("{}: {error}", label()));
                Refusal::Unstorable(failure.into(), error.to_string())
            })?;
            &widened
        } else {
            array.bytes()
        };
        self.encode(&descriptor, values, &label, object.index())
    }

    /// A small file may declare a large array that is constant. Repacking has it in memory more than once: as decoded,
    /// widened, and decoded again for the comparison.
    fn check_memory(&self, object: &Object<'_>, found: DType, dtype: DType) -> Result<(), Refusal> {
        let most = limits().with_array_bytes(u64::MAX).for_file(self.file.len()).array_bytes;
        let elements = object.descriptor().elements().unwrap_or(u64::MAX);
        let len = |dtype: DType| dtype.byte_len(elements).unwrap_or(u64::MAX);
        let widened = if found == dtype { 0 } else { len(dtype) };
        let wanted = len(found).saturating_add(widened).saturating_add(len(dtype));
        match check_limit("repacking an array", wanted, most) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::new(self.file.name().clone(), error.into()).into()),
        }
    }

    /// Encodes values and compares the decoded result.
    fn encode(
        &self,
        descriptor: &DataObjectDescriptor,
        values: &[u8],
        label: &dyn Fn() -> String,
        number: u64,
    ) -> Result<RepackedObject, Refusal> {
        let pipeline = &self.repacking.pipeline;
        let wrong = |error: PipelineError| refusal(error, label, number);
        if let Some(bound) = pipeline.max_error().filter(|_| !pipeline.has_stages()) {
            let chosen = choose(descriptor, values, bound, &self.options).map_err(wrong)?;
            let (descriptor, payload) = (chosen.trial.descriptor, chosen.trial.stored);
            return Ok(RepackedObject { descriptor, payload, change: Some(chosen.error) });
        }
        let trial = Candidate::given(descriptor).encode(values, &self.options).map_err(wrong)?;
        let found = deviation(descriptor.dtype, values, &trial.decode().map_err(wrong)?);
        let allowed = match pipeline.max_error() {
            Some(bound) => bound,
            None if self.repacking.lossy => f64::INFINITY,
            None => 0.0,
        };
        let must_be_exact = allowed <= 0.0 && !found.is_exact;
        if found.max > allowed || must_be_exact {
            return Err(changed(&label(), found.max, found.at, pipeline.max_error()).into());
        }
        Ok(RepackedObject { descriptor: trial.descriptor, payload: trial.stored, change: Some(found.max) })
    }

    /// Updates the recorded error of an object: the old bound and measurement plus the new ones.
    fn record(
        &self,
        stored: &RepackedObject,
        change: f64,
        metadata: &mut GlobalMetadata,
        object: usize,
    ) -> Result<(), &'static str> {
        let bound = self.repacking.pipeline.max_error();
        let before = metadata.base.get(object).and_then(|entry| entry.get(PRECISION));
        let number = |key: &str| before.and_then(|before| before.get(key)?.as_f64());
        let (old_bound, old_measured) = (number("max_error"), number("measured"));
        match (bound, before, old_bound) {
            (None, _, None) => return Ok(()),
            // `precision` is used for something else.
            (Some(_), Some(_), None) => {
                return Err(
                    "metadata key `precision` is already used, so the error bound cannot be recorded",
                );
            }
            _ => {}
        }
        let entry: Entry = [
            ("max_error".to_owned(), Value::Float(sum(old_bound.unwrap_or(0.0), bound.unwrap_or(change)))),
            ("measured".to_owned(), Value::Float(sum(old_measured.or(old_bound).unwrap_or(0.0), change))),
            ("method".to_owned(), Candidate::given(&stored.descriptor).to_string().into()),
        ]
        .into();
        if metadata.base.len() <= object {
            metadata.base.resize_with(object + 1, Entry::new);
        }
        if let Some(base) = metadata.base.get_mut(object) {
            base.insert(PRECISION.to_owned(), entry.into());
        }
        Ok(())
    }
}

/// A sum rounded up.
fn sum(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { a + b } else { (a + b).next_up() }
}

/// The descriptor without pipeline.
fn plain(descriptor: &DataObjectDescriptor, dtype: DType) -> DataObjectDescriptor {
    let mut plain = DataObjectDescriptor::new(dtype, descriptor.shape.clone());
    plain.obj_type.clone_from(&descriptor.obj_type);
    if descriptor.strides.len() == plain.shape.len() {
        plain.strides.clone_from(&descriptor.strides);
    }
    let params = descriptor.params.iter().filter(|(key, _)| !is_pipeline_parameter(key));
    plain.params = params.map(|(key, value)| (key.clone(), value.clone())).collect();
    plain
}

fn label(message: &Message, object: &Object<'_>) -> String {
    format!("{}: {}", escape::name(message.name()), describe(message, object))
}

/// Classifies an encoder error: unsupported stage for this object, or fatal.
fn refusal(error: PipelineError, label: &dyn Fn() -> String, object: u64) -> Refusal {
    let is_unfit = matches!(error, PipelineError::Combination { .. } | PipelineError::Packing(_));
    let reason = error.to_string();
    let fault = ErrorKind::from(EncodeError::Pipeline { object, error: error.into() });
    let failure = Failure::new(fault.class(), format!("{}: {reason}", label()));
    let failure = match fault.hint().map(|hint| hint_text(&hint, "tgm")) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    };
    if is_unfit { Refusal::Unstorable(failure.into(), reason) } else { failure.into() }
}

/// The error of a changed value.
fn changed(label: &str, change: f64, at: Option<u64>, bound: Option<f64>) -> Failure {
    let element = at.map_or_else(|| "a value".to_owned(), |at| format!("element {at}"));
    let by = match change {
        change if !change.is_finite() => "to or from a non-finite value".to_owned(),
        // A change of zero: only the sign differs.
        change if change <= 0.0 => "its sign".to_owned(),
        change => format!("by {}", exact(change)),
    };
    let message = format!("{label}: {element} would change {by}");
    match bound {
        None => Failure::request(message)
            .with_hint("add `--max-error E` to allow changes up to E, or `--lossy` to allow any change"),
        Some(bound) => Failure::request(format!("{message}; the maximum error is {}", exact(bound)))
            .with_hint("omit the pipeline options to let `--max-error` choose a pipeline"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_bounds_are_rounded_up() {
        assert_eq!((sum(0.0, 0.5), sum(0.5, 0.0), sum(0.0, 0.0)), (0.5, 0.5, 0.0));
        assert!(sum(0.1, 0.2) > 0.3);
    }

    #[test]
    fn user_parameters_are_kept() {
        let descriptor = DataObjectDescriptor::new(DType::F64, [3])
            .with_compression("zstd")
            .with_param("zstd_level", 7)
            .with_param("quality", 0.5);
        let plain = plain(&descriptor, DType::F64);
        assert_eq!(plain.params.keys().collect::<Vec<_>>(), ["quality"]);
        assert_eq!(plain.compression, "none");
    }
}
