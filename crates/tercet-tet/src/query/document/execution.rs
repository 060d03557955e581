//! The keys `execution` and `write`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer as _, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::nullable::without_null;
use crate::query::error::excerpt;
use crate::query::{Target, Write};

/// The value of `execution`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExecutionOptions {
    /// Bytes of memory for dense buffers, at least 1.
    pub(crate) memory_budget_bytes: Option<u64>,
    /// Memory for dense buffers in hundredths of a percent of the available memory.
    pub(crate) percent_bps: Option<u16>,
    /// Whether to use several threads.
    pub(crate) fold_parallel: Option<bool>,
    /// The device; everything is computed on the CPU.
    pub(crate) device: Device,
}

/// `execution` as an object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    transform = without_null,
    rename = "Execution",
    extend("not" = {"required": ["memory_budget_percent", "memory_budget_percent_bps"]})
)]
struct Object {
    /// Bytes of memory for dense buffers; 0 means 1.
    memory_budget_bytes: Option<u64>,
    /// Memory for dense buffers in percent of the available memory.
    memory_budget_percent: Option<Percent>,
    /// The same in hundredths of a percent.
    memory_budget_percent_bps: Option<BasisPoints>,
    /// Whether to use several threads.
    fold_parallel: Option<bool>,
    /// The device; everything is computed on the CPU.
    device: Option<Device>,
}

impl<'de> Deserialize<'de> for ExecutionOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Object::deserialize(deserializer)?;
        let percent_bps = match (object.memory_budget_percent, object.memory_budget_percent_bps) {
            (Some(_), Some(_)) => {
                let both = "has both `memory_budget_percent` and `memory_budget_percent_bps`";
                return Err(D::Error::custom(both));
            }
            (Some(Percent(bps)), None) | (None, Some(BasisPoints(bps))) => Some(bps),
            (None, None) => None,
        };
        Ok(Self {
            memory_budget_bytes: object.memory_budget_bytes.map(|bytes| bytes.max(1)),
            percent_bps,
            fold_parallel: object.fold_parallel,
            device: object.device.unwrap_or_default(),
        })
    }
}

impl JsonSchema for ExecutionOptions {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Execution".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Object>()
    }
}

/// 100 %, in hundredths of a percent.
const ALL: u16 = 10_000;

/// A percentage, rounded to hundredths.
struct Percent(u16);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = f64::deserialize(deserializer)?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(D::Error::invalid_value(Unexpected::Float(percent), &"a number from 0 to 100"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10000")]
        let bps = (percent * 100.0).round() as u16;
        Ok(Self(bps))
    }
}

impl JsonSchema for Percent {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0, "maximum": 100})
    }
}

/// Hundredths of a percent.
struct BasisPoints(u16);

impl<'de> Deserialize<'de> for BasisPoints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bps = u64::deserialize(deserializer)?;
        let fitting = u16::try_from(bps).ok().filter(|bps| *bps <= ALL);
        let expected = format!("an integer from 0 to {ALL}");
        fitting
            .map(Self)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(bps), &expected.as_str()))
    }
}

impl JsonSchema for BasisPoints {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "BasisPoints".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 0, "maximum": ALL})
    }
}

/// The key `device`. Everything is computed on the CPU; the answer reports other requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// The best one.
    Auto,
    /// A GPU by Metal.
    Metal,
    /// A GPU by CUDA.
    Cuda(Gpus),
    /// A GPU by `ROCm`.
    Rocm(Gpus),
}

/// The GPU of a [`Device`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// Any.
    #[default]
    Any,
    /// The one of this number.
    Number(u64),
    /// All of them.
    Multi,
}

impl Device {
    /// Reason the CPU is used although another device was requested.
    pub(crate) fn fallback_reason(self) -> Option<&'static str> {
        match self {
            Self::Cpu => None,
            Self::Auto => Some("auto_below_size_threshold"),
            Self::Metal | Self::Cuda(_) | Self::Rocm(_) => Some("gpu_feature_disabled"),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, gpus) = match self {
            Self::Cpu => ("cpu", Gpus::Any),
            Self::Auto => ("auto", Gpus::Any),
            Self::Metal => ("metal", Gpus::Any),
            Self::Cuda(gpus) => ("cuda", *gpus),
            Self::Rocm(gpus) => ("rocm", *gpus),
        };
        match gpus {
            Gpus::Any => f.write_str(word),
            Gpus::Number(number) => write!(f, "{word}:{number}"),
            Gpus::Multi => write!(f, "{word}:multi"),
        }
    }
}

/// An unknown device name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownDevice(String);

impl fmt::Display for UnknownDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = tercet_core::escape::name(&self.0);
        write!(
            f,
            "unknown device `{word}`: expected `cpu`, `auto`, `metal`, `cuda` or `rocm` (also `cuda:0`, `cuda:multi`)"
        )
    }
}

impl std::error::Error for UnknownDevice {}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let unknown = || UnknownDevice(excerpt(text));
        let gpus = |which: Option<&str>| match which {
            None => Ok(Gpus::Any),
            Some("multi") => Ok(Gpus::Multi),
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map(Gpus::Number).map_err(|_| unknown())
            }
            Some(_) => Err(unknown()),
        };
        let (word, which) = text.split_once(':').map_or((text, None), |(word, which)| (word, Some(which)));
        match (word, which) {
            ("cpu", None) => Ok(Self::Cpu),
            ("auto", None) => Ok(Self::Auto),
            ("metal", None) => Ok(Self::Metal),
            ("cuda", which) => gpus(which).map(Self::Cuda),
            ("rocm", which) => gpus(which).map(Self::Rocm),
            _ => Err(unknown()),
        }
    }
}

impl Serialize for Device {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Device {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Device".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(cpu|auto|metal|(cuda|rocm)(:([0-9]+|multi))?)$"})
    }
}

/// `write` as an object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null, rename = "WriteObject")]
struct WriteObject {
    /// The kind of output; `switch` by default.
    target: Option<Target>,
    /// The path of the file, for `spill` and `sidecar`.
    #[schemars(regex(pattern = r"\S"))]
    path: Option<String>,
    /// Whether the name of a sidecar contains the time; true by default.
    timestamp: Option<bool>,
}

impl<'de> Deserialize<'de> for Write {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Write;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`ram`, `spill`, `switch`, `sidecar`, or an object with `target`")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Write, E> {
                let target = Target::deserialize(text.into_deserializer())?;
                Ok(Write { target, path: None, timestamp: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Write, A::Error> {
                let object = WriteObject::deserialize(MapAccessDeserializer::new(map))?;
                let target = object.target.unwrap_or_default();
                Ok(Write { target, path: object.path, timestamp: object.timestamp })
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Write {
    fn schema_name() -> Cow<'static, str> {
        "Write".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let target = generator.subschema_for::<Target>();
        let object = generator.subschema_for::<WriteObject>();
        json_schema!({"anyOf": [target, object]})
    }
}
