//! The conversion: from a source through a plan to a file, and its verification.

use std::path::Path;
use std::sync::Mutex;

use tercet_core::publish::TempDirectory;
use tercet_core::{DType, Progress, Span};
use tercet_tet::{Compression, Rounding};

use super::cast::cast;
use super::fidelity::{Fate, Fidelity, Subject};
use super::model::{Header, Kind, Variable};
use super::output::OutputFormat;
use super::plan::{Conversion, Plan, Transfer, plan};
use super::readable::{ReadFailures, Readable};
use super::sink::{ArraySink, Stored, Values};
use super::source::{ArraySource, refused};
use super::staged::StagedOutput;
use super::verify::verify;
use crate::formats::grib::{self, GribPacking, GribSink, Precision, Storage};
use crate::formats::hdf5::Hdf5Sink;
use crate::formats::netcdf::{NetCdfSink, Version};
use crate::formats::npy::NpySink;
use crate::formats::tet::{TetSink, TetVariable};
use crate::formats::tgm::{Split, TgmSink};
use crate::formats::zarr::ZarrSink;
use crate::{Error, ErrorKind, chunking};

/// Options of a conversion.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// Extents of chunks along dimensions.
    pub chunks: Vec<(String, u64)>,
    /// The compression of `.tet` and Zarr chunks.
    pub compression: Compression,
    /// The largest absolute error of float variables in a `.tet` or GRIB file, by name; without a name for all that are not
    /// coordinates.
    pub max_error: Vec<(Option<String>, f64)>,
    /// How variables are divided into messages of a `.tgm` file.
    pub split: Split,
    /// The number of bits of a value in a GRIB file, for variables without a maximum error.
    pub bits: Option<u32>,
    /// The packing of a GRIB file.
    pub grib_packing: GribPacking,
    /// Replace an existing file.
    pub overwrite: bool,
    /// Read the output again and compare it with the input.
    pub verify: bool,
    /// Convert the other variables if the values of one cannot be read; it is reported as not carried. Otherwise that is an error.
    pub skip_unreadable: bool,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            compression: Compression::Auto,
            max_error: Vec::new(),
            split: Split::Auto,
            bits: None,
            grib_packing: GribPacking::Auto,
            overwrite: false,
            verify: true,
            skip_unreadable: true,
        }
    }
}

impl ConvertOptions {
    /// The defaults: automatic compression, verification.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Source chunks outside of these bounds are replaced by default ones.
const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 256 << 10..=64 << 20;

/// Plans a conversion without writing: the structure of the output, and what is kept.
pub fn plan_conversion(
    source: &dyn ArraySource,
    format: OutputFormat,
    options: &ConvertOptions,
) -> Result<Plan, Error> {
    let mut plan = if format == OutputFormat::Grib { grib::plan(source)? } else { plan(source, format)? };
    for (dim, extent) in &options.chunks {
        if *extent == 0 {
            return Err(refused(source.name(), format!("the chunk extent of `{dim}` is 0")));
        }
        if plan.header.dim(dim).is_none() {
            let known: Vec<&str> = plan.header.dims.iter().map(|dim| dim.name.as_str()).collect();
            let known = known.join(", ");
            return Err(refused(source.name(), format!("no dimension `{dim}`; there are {known}")));
        }
    }
    for (variable, transfer) in plan.header.variables.iter_mut().zip(&plan.transfers) {
        let original = &source.header().variables[transfer.source];
        variable.chunks = chunk_shape(variable, original, &options.chunks);
    }
    let names: Vec<&str> = options.max_error.iter().filter_map(|(name, _)| name.as_deref()).collect();
    if let Some(unknown) = names.iter().find(|name| plan.header.find(name).is_none()) {
        return Err(refused(source.name(), format!("no variable `{unknown}`")));
    }
    if !options.max_error.is_empty()
        && !matches!(plan.format, OutputFormat::Tet | OutputFormat::Tgm | OutputFormat::Grib)
    {
        return Err(refused(
            source.name(),
            format!("{} has no rounding; write a .tet, .tgm or GRIB file", plan.format.name()),
        ));
    }
    let has_packing = options.bits.is_some() || options.grib_packing != GribPacking::Auto;
    if has_packing && plan.format != OutputFormat::Grib {
        return Err(refused(source.name(), format!("{} has no packing with bits", plan.format.name())));
    }
    if !options.chunks.is_empty() && !plan.format.has_chunk_shapes() {
        return Err(refused(source.name(), format!("{} has no chunks", plan.format.name())));
    }
    if matches!(options.compression, Compression::Zstd { .. }) && !plan.format.has_zstd() {
        return Err(refused(
            source.name(),
            format!("{} is not compressed with Zstandard", plan.format.name()),
        ));
    }
    if options.split != Split::Auto && plan.format != OutputFormat::Tgm {
        return Err(refused(source.name(), format!("{} has no messages to split", plan.format.name())));
    }
    if plan.format == OutputFormat::Grib {
        for storage in storages(source.name(), &plan, options)? {
            let (variable, storage) = storage;
            if let (Precision::Bits(bits), Some(item)) =
                (storage.precision, plan.fidelity.variable_mut(&variable))
            {
                item.fate = Fate::Changed;
                item.detail = Some(format!("packed with {bits} bits"));
            }
        }
    }
    for variable in &plan.header.variables {
        if let Some(error) = rounding(variable, &plan.header, options)
            && let Some(item) = plan.fidelity.variable_mut(&variable.name)
        {
            item.fate = Fate::Changed;
            let how = format!("rounded, error at most {error}");
            item.detail = Some(item.detail.take().map_or(how.clone(), |detail| format!("{detail}; {how}")));
        }
    }
    Ok(plan)
}

/// How the variables of a GRIB file are packed.
pub(super) fn storages(
    name: &str,
    plan: &Plan,
    options: &ConvertOptions,
) -> Result<Vec<(String, Storage)>, Error> {
    let storage = |variable: &Variable| {
        let precision = match (rounding(variable, &plan.header, options), options.bits) {
            (Some(error), _) => Precision::Error(error),
            (None, Some(bits)) => Precision::Bits(bits),
            (None, None) => Precision::Exact,
        };
        match (options.grib_packing, precision) {
            (_, Precision::Bits(bits)) if !(1..=32).contains(&bits) => {
                Err(refused(name, format!("{bits} bits per value; GRIB packing has 1 to 32 here")))
            }
            (GribPacking::Simple | GribPacking::Ccsds, Precision::Exact) => Err(refused(
                name,
                format!(
                    "packing of `{}` needs a precision: a maximum error or a number of bits",
                    variable.name
                ),
            )),
            (GribPacking::Ieee, Precision::Error(_) | Precision::Bits(_)) => {
                Err(refused(name, "IEEE floats are exact; they have no other precision"))
            }
            (packing, precision) => Ok((variable.name.clone(), Storage { precision, packing })),
        }
    };
    plan.header.variables.iter().map(storage).collect()
}

/// The maximum error that is allowed for a variable.
pub(super) fn rounding(variable: &Variable, header: &Header, options: &ConvertOptions) -> Option<f64> {
    let is_float = matches!(variable.kind, Kind::Number(DType::F32 | DType::F64));
    let is_coordinate = variable.dims.len() <= 1 || header.is_bounds(&variable.name);
    let named = options.max_error.iter().find(|(name, _)| name.as_deref() == Some(&variable.name));
    let general = options.max_error.iter().find(|(name, _)| name.is_none() && !is_coordinate);
    named.or(general).filter(|_| is_float).map(|(_, error)| *error)
}

/// The chunk shape of the output: the requested one, that of the source, or the default.
fn chunk_shape(variable: &Variable, original: &Variable, asked: &[(String, u64)]) -> Option<Vec<u64>> {
    if variable.shape.is_empty() || variable.kind == Kind::String {
        return None;
    }
    let of = |dim: &String| asked.iter().find(|(name, _)| name == dim).map(|(_, extent)| *extent);
    let size = variable.item_size() as u64;
    let bytes = |chunk: &[u64]| chunk.iter().fold(size, |bytes, extent| bytes.saturating_mul(*extent));
    let mut chunk = original
        .chunks
        .clone()
        .map(|mut chunk| {
            // Axes that the output has in addition.
            chunk.extend(&variable.shape[chunk.len().min(variable.shape.len())..]);
            chunk
        })
        .filter(|chunk| chunk.len() == variable.shape.len())
        .filter(|chunk| CHUNK_BYTES.contains(&bytes(chunk)) || bytes(chunk) >= variable.bytes())
        .unwrap_or_else(|| chunking::default_chunk_shape(&variable.shape, variable.item_size()));
    for (slot, dim) in chunk.iter_mut().zip(&variable.dims) {
        if let Some(extent) = of(dim) {
            *slot = extent;
        }
    }
    for (slot, extent) in chunk.iter_mut().zip(&variable.shape) {
        *slot = (*slot).clamp(1, (*extent).max(1));
    }
    Some(chunk)
}

/// Converts a source to a new file, which appears when it is complete and, unless `verify` is off, equal to the source. Returns what was kept; the errors of changed values are measured if the output is verified.
///
/// The structure of a file is written before its values. If the values of a variable cannot be read, the output is written again without it.
pub fn convert(
    source: &dyn ArraySource,
    path: &Path,
    format: OutputFormat,
    options: &ConvertOptions,
    progress: &dyn Progress,
) -> Result<Plan, Error> {
    let mut lost = Vec::new();
    let mut first_error = None;
    loop {
        let readable = Readable::new(source, &lost);
        let failures = ReadFailures::default();
        let error = match convert_all(&readable, path, format, options, &failures, progress) {
            Ok(plan) => return Ok(plan),
            Err(error) => error,
        };
        let Some((variable, reason)) = failures.into_first().filter(|_| options.skip_unreadable) else {
            // If the other variables cannot be stored, the one that cannot be read is the cause.
            let first = first_error.filter(|_| matches!(error.kind(), ErrorKind::Refused(_)));
            return Err(first.unwrap_or(error));
        };
        lost.push((readable.original(variable), reason));
        let first = first_error.unwrap_or(error);
        if !Readable::new(source, &lost).has_data() {
            return Err(first);
        }
        first_error = Some(first);
    }
}

/// Converts all variables of a source.
fn convert_all(
    source: &dyn ArraySource,
    path: &Path,
    format: OutputFormat,
    options: &ConvertOptions,
    failures: &ReadFailures,
    progress: &dyn Progress,
) -> Result<Plan, Error> {
    let mut plan = plan_conversion(source, format, options)?;
    if options.verify {
        // The output is compared with the source before it appears.
        let staged = StagedOutput::new(path, plan.format, options.overwrite)?;
        write(source, staged.path(), &mut plan, options, failures, progress)
            .and_then(|()| verify(source, staged.path(), &mut plan, options, progress))
            .map_err(|error| staged.named(error))?;
        staged.publish()?;
    } else {
        write(source, path, &mut plan, options, failures, progress)?;
    }
    for transfer in &plan.transfers {
        let name = &source.header().variables[transfer.source].name;
        if let (Some(error), Some(item)) =
            (source.cast_error(transfer.source), plan.fidelity.variable_mut(name))
        {
            // Values that are rounded after the cast have both errors.
            item.max_error = Some(item.max_error.unwrap_or(0.0) + error);
        }
    }
    Ok(plan)
}

/// Converts several sources to the messages of one `.tgm` file, in their order.
pub fn convert_to_messages(
    sources: &[(&dyn ArraySource, ConvertOptions)],
    path: &Path,
    overwrite: bool,
    progress: &dyn Progress,
) -> Result<Vec<Plan>, Error> {
    if let [(source, options)] = sources {
        let options = ConvertOptions { overwrite, ..options.clone() };
        return Ok(vec![convert(*source, path, OutputFormat::Tgm, &options, progress)?]);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut writer =
        tercet_tgm::Writer::create(path, tercet_tgm::WriterOptions::new().with_overwrite(overwrite))?;
    let parts = TempDirectory::create_in(parent, "parts");
    let parts = parts.map_err(|error| Error::new(path.to_string_lossy().into(), ErrorKind::from(error)))?;
    let mut plans = Vec::new();
    for (number, (source, options)) in sources.iter().enumerate() {
        let part = parts.path().join(format!("{number}.tgm"));
        plans.push(convert(*source, &part, OutputFormat::Tgm, options, progress)?);
        let file = tercet_tgm::File::open(&part)?;
        writer.copy_from(&**file.source(), Span::first(file.len()), progress)?;
    }
    writer.finish()?;
    Ok(plans)
}

fn create(
    source: &dyn ArraySource,
    path: &Path,
    plan: &Plan,
    options: &ConvertOptions,
) -> Result<Box<dyn ArraySink>, Error> {
    match plan.format {
        OutputFormat::NetCdf(version) => {
            let version = version.unwrap_or(Version::Offset64);
            Ok(Box::new(NetCdfSink::create(path, plan.header.clone(), version, options.overwrite)?))
        }
        OutputFormat::Zarr => {
            Ok(Box::new(ZarrSink::create(path, plan.header.clone(), options.compression, options.overwrite)?))
        }
        OutputFormat::NetCdf4 | OutputFormat::Hdf5 => {
            let is_netcdf = plan.format == OutputFormat::NetCdf4;
            let (header, compression) = (plan.header.clone(), options.compression);
            let strings = plan.transfers.iter().map(|transfer| match &transfer.how {
                Conversion::Strings(strings) => Some(strings.clone()),
                _ => None,
            });
            let sink =
                Hdf5Sink::create(path, header, strings.collect(), compression, is_netcdf, options.overwrite)?;
            Ok(Box::new(sink))
        }
        OutputFormat::Grib => {
            let sources: Vec<usize> = plan.transfers.iter().map(|transfer| transfer.source).collect();
            let storages =
                storages(source.name(), plan, options)?.into_iter().map(|(_, storage)| storage).collect();
            let sink = GribSink::create(path, &plan.header, source, &sources, storages, options.overwrite)?;
            Ok(Box::new(sink))
        }
        OutputFormat::Npy | OutputFormat::Npz => {
            let is_archive = plan.format == OutputFormat::Npz;
            Ok(Box::new(NpySink::create(path, plan.header.clone(), is_archive, options.overwrite)?))
        }
        OutputFormat::Tgm => {
            let max_error = plan
                .header
                .variables
                .iter()
                .map(|variable| rounding(variable, &plan.header, options))
                .collect();
            let (header, split) = (plan.header.clone(), options.split.clone());
            Ok(Box::new(TgmSink::create(
                path,
                header,
                split,
                options.compression,
                max_error,
                options.overwrite,
            )?))
        }
        OutputFormat::Tet => {
            let variables: Vec<TetVariable> = plan
                .transfers
                .iter()
                .zip(&plan.header.variables)
                .map(|(transfer, variable)| TetVariable {
                    is_carried: is_carried(source, transfer, (plan.format, &plan.header), variable, options),
                    original: match transfer.how {
                        // What the file records are characters: the strings are gone.
                        Conversion::ToChars(..) => Variable { kind: Kind::Char, ..variable.clone() },
                        _ => source.header().variables[transfer.source].clone(),
                    },
                    labels: match &transfer.how {
                        Conversion::Labels(labels) => Some(labels.clone()),
                        _ => None,
                    },
                    rounding: rounding(variable, &plan.header, options).map(Rounding::MaxError),
                })
                .collect();
            let origin = Path::new(source.name()).file_name().map(|name| name.to_string_lossy().into_owned());
            let origin = origin.filter(|name| !name.is_empty() && name.len() <= 1024);
            let origin = origin.unwrap_or_else(|| source.header().format.clone());
            let sink = TetSink::create(
                path,
                (&plan.header, &source.header().dims),
                &variables,
                options.compression,
                &origin,
                options.overwrite,
            )?;
            Ok(Box::new(sink))
        }
    }
}

fn write(
    source: &dyn ArraySource,
    path: &Path,
    plan: &mut Plan,
    options: &ConvertOptions,
    failures: &ReadFailures,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut sink = create(source, path, plan, options)?;
    let mut errors = Vec::new();
    for (number, (transfer, variable)) in plan.transfers.iter().zip(&plan.header.variables).enumerate() {
        match &transfer.how {
            Conversion::Strings(strings) | Conversion::Labels(strings) => {
                sink.write_strings(number, strings)?;
            }
            _ => {
                let largest = Mutex::new(0f64);
                let filled = filler(source, transfer, variable, &largest);
                let fill = |start: &[u64], extents: &[u64], out: &mut [u8]| {
                    failures.check(transfer.source, filled(start, extents, out))
                };
                let original = &source.header().variables[transfer.source];
                let stored = |coords: &[u64]| {
                    failures.check(transfer.source, source.stored_chunk(transfer.source, coords))
                };
                let values = Values {
                    fill: &fill,
                    source_chunks: source_chunks(source, transfer, variable),
                    stored: is_carried(source, transfer, (plan.format, &plan.header), variable, options)
                        .then_some(&stored as &Stored<'_>),
                };
                sink.write(number, &values, progress)?;
                let largest = *largest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if matches!(transfer.how, Conversion::Cast(_)) {
                    errors.push((original.name.clone(), largest));
                }
            }
        }
    }
    sink.finish()?;
    for (name, error) in errors {
        if let Some(item) = plan.fidelity.variable_mut(&name).filter(|item| item.fate == Fate::Changed) {
            item.max_error = Some(error);
        }
    }
    Ok(())
}

/// The chunk shape of the source of a variable, if a box costs as much as the chunks that it overlaps.
pub(super) fn source_chunks(
    source: &dyn ArraySource,
    transfer: &Transfer,
    variable: &Variable,
) -> Option<Vec<u64>> {
    let original = &source.header().variables[transfer.source];
    let mut chunks = original.chunks.clone().filter(|_| source.is_chunked(transfer.source))?;
    chunks.extend(&variable.shape[chunks.len().min(variable.shape.len())..]);
    Some(chunks)
}

/// Whether the chunks of a variable are stored in the output as they are in the source: the same chunks of the same values, compressed with
/// Zstandard, at the requested level.
pub(super) fn is_carried(
    source: &dyn ArraySource,
    transfer: &Transfer,
    (format, header): (OutputFormat, &Header),
    variable: &Variable,
    options: &ConvertOptions,
) -> bool {
    let original = &source.header().variables[transfer.source];
    let is_same = transfer.how == Conversion::Same
        && matches!(variable.kind, Kind::Number(dtype) if dtype != DType::Bool)
        && original.kind == variable.kind
        && original.shape == variable.shape
        && original.chunks.is_some()
        // The objects of messages have no other chunks.
        && (original.chunks == variable.chunks || format == OutputFormat::Tgm);
    if !is_same || rounding(variable, header, options).is_some() {
        return false;
    }
    let Some(stored) = source.zstd(transfer.source) else { return false };
    match options.compression {
        Compression::Auto => true,
        Compression::Zstd { level } => stored.level == Some(level),
        Compression::None => false,
    }
}

/// Reads boxes of a variable of the output from the source.
pub(super) fn filler<'f>(
    source: &'f dyn ArraySource,
    transfer: &'f Transfer,
    variable: &'f Variable,
    largest: &'f Mutex<f64>,
) -> impl Fn(&[u64], &[u64], &mut [u8]) -> Result<(), Error> + Sync + 'f {
    let original = &source.header().variables[transfer.source];
    let rank = original.shape.len();
    move |start: &[u64], extents: &[u64], out: &mut [u8]| match &transfer.how {
        Conversion::Same => {
            // An axis in addition is read whole.
            let extra_is_whole =
                start[rank..].iter().all(|start| *start == 0) && extents[rank..] == variable.shape[rank..];
            if !extra_is_whole {
                return Err(refused(source.name(), format!("`{}` is cut inside an element", variable.name)));
            }
            source.read_box(transfer.source, &start[..rank], &extents[..rank], out)
        }
        Conversion::Cast(to) => {
            let from = original.dtype().unwrap_or(DType::U8);
            let size = to.size().unwrap_or(1).max(1);
            let mut raw = vec![0; out.len() / size * from.size().unwrap_or(1)];
            source.read_box(transfer.source, &start[..rank], &extents[..rank], &mut raw)?;
            let error = cast(from, *to, &raw, out).map_err(|(position, text)| {
                let place = place_of(&start[..rank], &extents[..rank], position);
                let name = tercet_core::escape::name(&variable.name);
                refused(
                    source.name(),
                    format!("`{name}` at {place:?} is {text}, which does not fit into {to}"),
                )
            })?;
            let mut largest = largest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *largest = largest.max(error);
            Ok(())
        }
        Conversion::ToChars(strings, width) => {
            let whole: u64 = *width as u64;
            let (from, count) = (start[rank], extents[rank]);
            for (row, slot) in out.chunks_exact_mut(usize::try_from(count).unwrap_or(1).max(1)).enumerate() {
                let place = place_of(&start[..rank], &extents[..rank], row);
                let linear =
                    place.iter().zip(&original.shape).fold(0, |linear, (at, extent)| linear * extent + at);
                let text = strings
                    .get(usize::try_from(linear).unwrap_or(usize::MAX))
                    .map_or(&[][..], |text| text.as_bytes());
                slot.fill(0);
                for (byte, position) in slot.iter_mut().zip(from..whole) {
                    *byte = text.get(usize::try_from(position).unwrap_or(usize::MAX)).copied().unwrap_or(0);
                }
            }
            Ok(())
        }
        Conversion::Strings(_) | Conversion::Labels(_) => {
            Err(refused(source.name(), format!("`{}` contains strings", variable.name)))
        }
    }
}

/// The position in an array of an element of a box.
pub(crate) fn place_of(start: &[u64], extents: &[u64], element: usize) -> Vec<u64> {
    let mut rest = element as u64;
    let mut place = vec![0; extents.len()];
    for axis in (0..extents.len()).rev() {
        let extent = extents[axis].max(1);
        place[axis] = start[axis] + rest % extent;
        rest /= extent;
    }
    place
}

impl Plan {
    /// The number of bytes of all values of the output.
    pub fn bytes(&self) -> u64 {
        self.header.bytes()
    }

    /// Whether a variable could not be read or stored.
    pub fn has_lost_variables(&self) -> bool {
        let lost = |item: &&super::fidelity::FidelityItem| {
            item.subject == Subject::Variable && item.fate == Fate::NotCarried
        };
        self.fidelity.items.iter().any(|item| lost(&item))
    }

    /// What is kept, changed and not carried.
    pub fn into_fidelity(self) -> Fidelity {
        self.fidelity
    }
}
