//! Output formats, and what each can hold.

use std::path::Path;

use tercet_core::DType;

use super::model::{AttrData, Header, Kind, Numbers};
use super::plan::as_text;
use crate::formats::netcdf::{self, Version};

/// The format of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFormat {
    /// A `.tet` file.
    Tet,
    /// A `.tgm` file: messages of fields with metadata.
    Tgm,
    /// A NetCDF classic file; without a version, the oldest that can hold the variables is chosen.
    NetCdf(Option<Version>),
    /// A Zarr version 3 store: a directory with consolidated metadata.
    Zarr,
    /// A NumPy `.npy` file: one array.
    Npy,
    /// A NumPy `.npz` archive of arrays.
    Npz,
    /// A NetCDF-4 file.
    NetCdf4,
    /// An HDF5 file, with dimension scales as in NetCDF-4.
    Hdf5,
    /// A GRIB edition 2 file.
    Grib,
}

/// The stored value of an attribute, and what changes.
type StoredAttribute = (AttrData, Option<String>);

/// What a format can hold.
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct Rules {
    /// The name of the format.
    pub(crate) name: &'static str,
    /// The element type that a type is stored as; `None` if it cannot be stored.
    pub(crate) stored_type: fn(DType) -> Option<DType>,
    /// Whether the file records the original type, so that reading it back gives that.
    pub(crate) restores_types: bool,
    /// How characters are stored; `None` if they are not.
    pub(crate) chars: Option<Kind>,
    /// Whether there are strings of any length.
    pub(crate) strings: bool,
    /// Whether the strings of a dimension are stored as its labels.
    pub(crate) labels: bool,
    pub(crate) max_label: usize,
    pub(crate) scalars: bool,
    pub(crate) empty: bool,
    pub(crate) max_rank: usize,
    /// Whether dimensions that are not unlimited may have length 0.
    pub(crate) empty_dims: bool,
    /// Whether names may contain `/`.
    pub(crate) slashes: bool,
    pub(crate) has_dims: bool,
    pub(crate) max_unlimited: usize,
    pub(crate) unlimited_reason: &'static str,
    pub(crate) attributes: bool,
    /// Whether a fill value must be a value of the type of its variable.
    pub(crate) typed_fill: bool,
    /// The stored value of an attribute, and what changes. The type is that of the variable.
    pub(crate) attribute: fn(&str, &AttrData, Option<DType>) -> StoredAttribute,
}

impl OutputFormat {
    /// The format of a file extension.
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        Some(match extension.as_deref()? {
            "tet" => Self::Tet,
            "tgm" => Self::Tgm,
            "nc" | "nc3" | "cdf" => Self::NetCdf(None),
            "zarr" => Self::Zarr,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "grib" | "grib2" | "grb" | "grb2" => Self::Grib,
            "nc4" => Self::NetCdf4,
            "h5" | "hdf5" | "he5" => Self::Hdf5,
            "nc5" => Self::NetCdf(Some(Version::Cdf5)),
            _ => return None,
        })
    }

    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tet => "Tetration .tet",
            Self::Tgm => "Tensogram .tgm",
            Self::NetCdf(version) => version.map_or("NetCDF classic", Version::name),
            Self::Zarr => "Zarr version 3",
            Self::Npy => "NumPy .npy",
            Self::Npz => "NumPy .npz",
            Self::NetCdf4 => "NetCDF-4",
            Self::Hdf5 => "HDF5",
            Self::Grib => "GRIB 2",
        }
    }

    /// The file extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Tet => "tet",
            Self::Tgm => "tgm",
            Self::NetCdf(_) => "nc",
            Self::Zarr => "zarr",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::NetCdf4 => "nc4",
            Self::Hdf5 => "h5",
            Self::Grib => "grib2",
        }
    }

    /// Whether values are stored in chunks.
    pub(crate) fn is_chunked(self) -> bool {
        matches!(self, Self::Tet | Self::Tgm | Self::Zarr | Self::NetCdf4 | Self::Hdf5)
    }

    /// Whether the extents of chunks can be chosen.
    pub(crate) fn has_chunk_shapes(self) -> bool {
        self.is_chunked() && self != Self::Tgm
    }

    /// Whether values can be compressed with Zstandard.
    pub(crate) fn has_zstd(self) -> bool {
        matches!(self, Self::Tet | Self::Tgm | Self::Zarr)
    }

    /// The extensions of all formats, for messages.
    pub const EXTENSIONS: &'static str =
        ".tet, .tgm, .nc (NetCDF classic), .nc4 (NetCDF-4), .nc5 (CDF-5), .h5, .zarr, .npy, .npz, .grib2";

    /// Chooses a version for the variables of a file.
    pub(crate) fn resolved(self, header: &Header) -> Self {
        match self {
            Self::NetCdf(None) => Self::NetCdf(Some(netcdf_version(header))),
            other => other,
        }
    }

    #[expect(clippy::too_many_lines, reason = "one table for each format")]
    pub(crate) fn rules(self) -> Rules {
        match self {
            Self::Tet => Rules {
                name: ".tet",
                stored_type: tet_type,
                restores_types: true,
                chars: Some(Kind::Number(DType::U8)),
                strings: false,
                labels: true,
                max_label: 1024,
                scalars: false,
                empty: false,
                empty_dims: true,
                max_rank: tercet_tet::MAX_RANK,
                slashes: true,
                has_dims: true,
                max_unlimited: usize::MAX,
                unlimited_reason: "",
                attributes: true,
                typed_fill: false,
                attribute: |_, value, _| (value.clone(), None),
            },
            Self::Tgm => Rules {
                name: ".tgm",
                stored_type: |dtype| match dtype {
                    DType::Bitmask => None,
                    DType::Bool => Some(DType::U8),
                    other => Some(other),
                },
                restores_types: true,
                chars: Some(Kind::Char),
                strings: true,
                labels: false,
                max_label: 0,
                scalars: true,
                empty: false,
                empty_dims: true,
                max_rank: 32,
                slashes: true,
                has_dims: true,
                max_unlimited: 0,
                unlimited_reason: "files grow by messages",
                attributes: true,
                typed_fill: false,
                attribute: |_, value, _| (value.clone(), None),
            },
            Self::Zarr => Rules {
                name: "Zarr",
                stored_type: |dtype| match dtype {
                    DType::BF16 => Some(DType::F32),
                    DType::Bitmask => None,
                    other => Some(other),
                },
                restores_types: false,
                chars: Some(Kind::Number(DType::U8)),
                strings: true,
                labels: false,
                max_label: 0,
                scalars: true,
                empty: true,
                empty_dims: true,
                max_rank: 64,
                slashes: true,
                has_dims: true,
                max_unlimited: 0,
                unlimited_reason: "Zarr arrays can always grow",
                attributes: true,
                typed_fill: true,
                attribute: zarr_attribute,
            },
            Self::Npy | Self::Npz => Rules {
                name: "NumPy",
                stored_type: |dtype| match dtype {
                    DType::BF16 => Some(DType::F32),
                    DType::Bitmask => None,
                    other => Some(other),
                },
                restores_types: false,
                chars: Some(Kind::Number(DType::U8)),
                strings: false,
                labels: false,
                max_label: 0,
                scalars: true,
                empty: true,
                empty_dims: true,
                max_rank: 64,
                slashes: true,
                has_dims: false,
                max_unlimited: 0,
                unlimited_reason: "",
                attributes: false,
                typed_fill: false,
                attribute: |_, value, _| (value.clone(), None),
            },
            Self::NetCdf4 | Self::Hdf5 => Rules {
                name: if self == Self::Hdf5 { "HDF5" } else { "NetCDF-4" },
                stored_type: if self == Self::Hdf5 { hdf5_type } else { cdf5_type },
                restores_types: false,
                chars: Some(Kind::Char),
                strings: true,
                labels: false,
                max_label: 0,
                scalars: true,
                empty: true,
                empty_dims: true,
                max_rank: 32,
                slashes: true,
                has_dims: true,
                max_unlimited: usize::MAX,
                unlimited_reason: "",
                attributes: true,
                typed_fill: self == Self::NetCdf4,
                attribute: if self == Self::Hdf5 { hdf5_attribute } else { netcdf4_attribute },
            },
            Self::Grib => Rules {
                name: "GRIB",
                stored_type: |dtype| (dtype != DType::Bitmask).then_some(DType::F64),
                restores_types: false,
                chars: None,
                strings: false,
                labels: false,
                max_label: 0,
                scalars: false,
                empty: false,
                empty_dims: true,
                max_rank: 6,
                slashes: false,
                has_dims: true,
                max_unlimited: 0,
                unlimited_reason: "GRIB files can always grow",
                attributes: false,
                typed_fill: false,
                attribute: |_, value, _| (value.clone(), None),
            },
            Self::NetCdf(version) => Rules {
                name: version.map_or("NetCDF", Version::name),
                stored_type: if version == Some(Version::Cdf5) { cdf5_type } else { classic_type },
                restores_types: false,
                chars: Some(Kind::Char),
                strings: false,
                labels: false,
                max_label: 0,
                scalars: true,
                empty: true,
                empty_dims: false,
                max_rank: 1024,
                slashes: false,
                has_dims: true,
                max_unlimited: 1,
                unlimited_reason: "NetCDF classic has one, and it is the first of a variable",
                attributes: true,
                typed_fill: false,
                attribute: if version == Some(Version::Cdf5) { cdf5_attribute } else { classic_attribute },
            },
        }
    }
}

/// The stored type in a `.tet` file.
fn tet_type(dtype: DType) -> Option<DType> {
    match dtype {
        DType::I8 => Some(DType::I16),
        DType::Bool => Some(DType::U8),
        DType::BF16 | DType::C64 => Some(DType::F32),
        DType::C128 => Some(DType::F64),
        other => other.element().map(DType::from),
    }
}

fn cdf5_type(dtype: DType) -> Option<DType> {
    match dtype {
        DType::Bool => Some(DType::I8),
        DType::F16 | DType::BF16 | DType::C64 => Some(DType::F32),
        DType::C128 => Some(DType::F64),
        other => netcdf::type_number(Kind::Number(other), Version::Cdf5).map(|_| other),
    }
}

/// The stored type in CDF-1 and CDF-2: unsigned integers are widened.
fn classic_type(dtype: DType) -> Option<DType> {
    match dtype {
        DType::U8 => Some(DType::I16),
        DType::U16 => Some(DType::I32),
        DType::U32 => Some(DType::F64),
        DType::I64 | DType::U64 => None,
        other => cdf5_type(other),
    }
}

/// The stored type in an HDF5 file.
fn hdf5_type(dtype: DType) -> Option<DType> {
    match dtype {
        // The writer has no floats of two bytes.
        DType::F16 | DType::BF16 => Some(DType::F32),
        DType::Bitmask => None,
        other => Some(other),
    }
}

fn netcdf4_attribute(name: &str, value: &AttrData, dtype: Option<DType>) -> StoredAttribute {
    let AttrData::Numbers(numbers) = value else { return hdf5_attribute(name, value, dtype) };
    let stored = match dtype {
        // The library refuses files whose fill value has another type than its variable.
        Some(dtype) if name == "_FillValue" && numbers.converted(dtype).is_some() => Some(dtype),
        _ => cdf5_type(numbers.dtype),
    };
    let (value, how) = converted(numbers, stored);
    let (value, single) = hdf5_attribute(name, &value, dtype);
    (value, how.or(single))
}

/// Readers of HDF5 do not distinguish one number from a list of one, nor one string.
fn hdf5_attribute(_: &str, value: &AttrData, _: Option<DType>) -> StoredAttribute {
    match value {
        AttrData::Numbers(numbers) if numbers.is_list && numbers.len() == 1 => {
            let scalar = Numbers { is_list: false, ..numbers.clone() };
            (AttrData::Numbers(scalar), Some("a list of one number stored as the number".to_owned()))
        }
        AttrData::Strings(texts) if texts.len() == 1 => {
            (AttrData::Text(texts[0].clone()), Some("a list of one string stored as the string".to_owned()))
        }
        AttrData::Strings(texts) if texts.is_empty() => {
            (AttrData::Text(String::new()), Some("an empty list stored as an empty string".to_owned()))
        }
        AttrData::Json(_) => as_text(value),
        other => (other.clone(), None),
    }
}

fn cdf5_attribute(_: &str, value: &AttrData, _: Option<DType>) -> (AttrData, Option<String>) {
    match value {
        AttrData::Numbers(numbers) => converted(numbers, cdf5_type(numbers.dtype)),
        other => as_text(other),
    }
}

fn classic_attribute(name: &str, value: &AttrData, dtype: Option<DType>) -> (AttrData, Option<String>) {
    let AttrData::Numbers(numbers) = value else { return as_text(value) };
    // Attributes about values have the type of the values.
    if let Some(stored) =
        dtype.filter(|_| tercet_tet::AttrValue::must_be_number(name) && name != "scale_factor")
    {
        let is_same = classic_type(numbers.dtype) == Some(stored) || numbers.dtype == stored;
        if is_same {
            return converted(numbers, Some(stored));
        }
    }
    let fitting = [classic_type(numbers.dtype), Some(DType::I32), Some(DType::F64)];
    let fitting = fitting.into_iter().flatten().find(|dtype| numbers.converted(*dtype).is_some());
    converted(numbers, fitting)
}

/// Zarr stores attributes as JSON: integers and floats have no width. `_FillValue` has the type of its array.
fn zarr_attribute(name: &str, value: &AttrData, dtype: Option<DType>) -> (AttrData, Option<String>) {
    match value {
        AttrData::Text(text) if name == "_FillValue" && dtype == Some(DType::U8) && text.len() == 1 => {
            let code = Numbers::scalar(DType::U8, text.as_bytes().to_vec());
            (AttrData::Numbers(code), Some("a character stored as uint8".to_owned()))
        }
        AttrData::Numbers(numbers) if name == "_FillValue" && numbers.len() == 1 && dtype.is_some() => {
            let scalar = Numbers { is_list: false, ..numbers.clone() };
            converted(&scalar, dtype)
        }
        AttrData::Numbers(numbers) => {
            // A float is stored with all digits of its value, not with the shortest text of its type.
            let wide = numbers.converted(DType::F64).filter(|_| numbers.dtype.is_float());
            let stored =
                AttrData::from_json(&wide.map_or_else(|| value.clone(), AttrData::Numbers).to_json());
            let how = (stored != *value).then(|| format!("{} stored as JSON", numbers.dtype));
            (stored, how)
        }
        AttrData::Strings(_) | AttrData::Json(_) => (AttrData::from_json(&value.to_json()), None),
        AttrData::Text(_) => (value.clone(), None),
    }
}

/// Numbers as another type, or as text if they do not fit.
fn converted(numbers: &Numbers, dtype: Option<DType>) -> (AttrData, Option<String>) {
    match dtype.and_then(|dtype| numbers.converted(dtype)) {
        Some(stored) if stored.dtype == numbers.dtype => (AttrData::Numbers(stored), None),
        Some(stored) => {
            let how = format!("{} stored as {}", numbers.dtype, stored.dtype);
            (AttrData::Numbers(stored), Some(how))
        }
        None => {
            let text = AttrData::Text(AttrData::Numbers(numbers.clone()).to_text());
            (text, Some(format!("{} stored as a string", numbers.dtype)))
        }
    }
}

/// The oldest version of NetCDF that can hold the variables of a file without a change of their types.
fn netcdf_version(header: &Header) -> Version {
    const LARGEST: u64 = (1 << 31) - 4;
    let needs_types = |variable: &super::model::Variable| {
        variable.dtype().is_some_and(|dtype| {
            cdf5_type(dtype)
                .is_some_and(|stored| netcdf::type_number(Kind::Number(stored), Version::Offset64).is_none())
                && variable.kind != Kind::Char
        })
    };
    let is_large = |variable: &super::model::Variable| {
        let record = variable.dims.first().and_then(|dim| header.dim(dim)).is_some_and(|dim| dim.unlimited);
        let inner = &variable.shape[usize::from(record)..];
        let bytes =
            inner.iter().fold(variable.item_size() as u64, |bytes, extent| bytes.saturating_mul(*extent));
        bytes > LARGEST
    };
    let many_records = header.dims.iter().any(|dim| dim.len > LARGEST);
    if header.variables.iter().any(|variable| needs_types(variable) || is_large(variable)) || many_records {
        Version::Cdf5
    } else {
        Version::Offset64
    }
}
