//! Features of this build.

use serde::Serialize;
use tercet::tgm::{
    DType, DataObjectDescriptor, EncodeError, EncodeOptions, ErrorKind, GlobalMetadata, PipelineError,
    VERSION, encode_message,
};

/// How the program was built.
#[derive(Debug, Serialize)]
pub(super) struct Build {
    pub(super) version: &'static str,
    wire_version: u16,
    pub(super) target: String,
    pub(super) profile: &'static str,
}

impl Build {
    pub(super) fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            wire_version: VERSION,
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}

/// An optional feature.
#[derive(Debug, Serialize)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    kind: &'static str,
    state: State,
    /// The backend, if the feature is built in.
    #[serde(flatten)]
    backend: Option<Backend>,
}

/// Whether a feature is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    On,
    Off,
}

/// The library of a feature.
#[derive(Clone, Debug, Serialize)]
struct Backend {
    #[serde(rename = "backend")]
    name: &'static str,
    linkage: Linkage,
    version: String,
}

/// How a backend is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Linkage {
    PureRust,
    StaticC,
}

impl Feature {
    fn new(name: &'static str, kind: &'static str, is_there: bool, backend: Backend) -> Self {
        let (state, backend) = if is_there { (State::On, Some(backend)) } else { (State::Off, None) };
        Self { name, kind, state, backend }
    }

    /// Backend, linkage and version; `None` if not built in.
    pub(super) fn summary(&self) -> Option<String> {
        let Backend { name, linkage, version } = self.backend.as_ref()?;
        let linkage = match linkage {
            Linkage::PureRust => "pure Rust",
            Linkage::StaticC => "static C",
        };
        Some(format!("{name:<18}{linkage:<12}{version}"))
    }
}

/// Code of this project.
fn own() -> Backend {
    Backend { name: "own", linkage: Linkage::PureRust, version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// The versions of backend crates. A test compares them with the lock file.
const CRATES: [(&str, &str); 8] = [
    ("lz4_flex", "0.14.0"),
    ("blosc2-pure-rs", "0.2.4"),
    ("zfp-rs", "1.0.1"),
    ("roaring", "0.12.0"),
    ("rayon", "1.12.0"),
    ("memmap2", "0.9.12"),
    ("tokio", "1.54.1"),
    ("object_store", "0.13.2"),
];

fn of_crate(name: &'static str, linkage: Linkage) -> Backend {
    let version = CRATES.iter().find(|(known, _)| *known == name).map_or("unknown", |(_, version)| version);
    Backend { name, linkage, version: version.to_owned() }
}

#[cfg(feature = "zstd")]
fn zstd() -> Backend {
    let version = zstd::zstd_safe::version_string().to_owned();
    Backend { name: "libzstd", linkage: Linkage::StaticC, version }
}

/// Without the feature the version cannot be queried.
#[cfg(not(feature = "zstd"))]
fn zstd() -> Backend {
    Backend { name: "libzstd", linkage: Linkage::StaticC, version: "unknown".to_owned() }
}

/// All optional features.
pub(super) fn features() -> Vec<Feature> {
    let rust = Linkage::PureRust;
    let stages = [
        ("simple_packing", "encoding", own()),
        ("shuffle", "filter", own()),
        ("szip", "compression", own()),
        ("zstd", "compression", zstd()),
        ("lz4", "compression", of_crate("lz4_flex", rust)),
        ("blosc2", "compression", of_crate("blosc2-pure-rs", rust)),
        ("zfp", "compression", of_crate("zfp-rs", rust)),
        ("sz3", "compression", own()),
        ("rle", "compression", own()),
        ("roaring", "compression", of_crate("roaring", rust)),
    ];
    let stages =
        stages.map(|(name, kind, backend)| Feature::new(name, kind, is_built_in(kind, name), backend));
    let others = [
        Feature::new("threads", "threading", true, of_crate("rayon", rust)),
        Feature::new("remote", "io", cfg!(feature = "remote"), of_crate("object_store", rust)),
        Feature::new("mmap", "io", true, of_crate("memmap2", rust)),
        // A feature of the library; no command uses it.
        Feature::new("async", "io", false, of_crate("tokio", rust)),
    ];
    stages.into_iter().chain(others).collect()
}

/// A sample object for a pipeline stage.
pub(super) fn sample(kind: &str, name: &str) -> (DataObjectDescriptor, Vec<u8>) {
    let floats = || (0..64).flat_map(|i| (f64::from(i) / 8.0).to_le_bytes()).collect::<Vec<u8>>();
    let float64 = DataObjectDescriptor::new(DType::F64, [64]);
    match (kind, name) {
        ("encoding", _) => (float64.with_encoding(name).with_param("sp_bits_per_value", 16), floats()),
        ("filter", _) => (float64.with_filter(name).with_param("shuffle_element_size", 8), floats()),
        (_, "szip") => {
            let descriptor = DataObjectDescriptor::new(DType::U16, [256]).with_compression(name);
            let descriptor = descriptor.with_param("szip_rsi", 128).with_param("szip_block_size", 16);
            (descriptor.with_param("szip_flags", 8), floats())
        }
        (_, "zfp") => {
            let descriptor = float64.with_compression(name).with_param("zfp_mode", "fixed_rate");
            (descriptor.with_param("zfp_rate", 64), floats())
        }
        (_, "sz3") => {
            let descriptor = float64.with_compression(name).with_param("sz3_error_bound_mode", "abs");
            (descriptor.with_param("sz3_error_bound", 0.001), floats())
        }
        (_, "rle" | "roaring") => {
            (DataObjectDescriptor::new(DType::Bitmask, [4096]).with_compression(name), floats())
        }
        _ => (float64.with_compression(name), floats()),
    }
}

/// Whether the encoder supports a stage.
pub(super) fn is_built_in(kind: &str, name: &str) -> bool {
    let (descriptor, values) = sample(kind, name);
    let made = encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &EncodeOptions::new());
    match made {
        Ok(_) => true,
        Err(error) => match error.kind() {
            // An unknown name is not built in.
            ErrorKind::Encode(EncodeError::Descriptor { .. }) => false,
            ErrorKind::Encode(EncodeError::Pipeline { error, .. }) => {
                !matches!(&**error, PipelineError::Codec(error) if error.is_not_built())
            }
            _ => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoder_decides() {
        assert!(is_built_in("compression", "none"));
        assert!(!is_built_in("compression", "no such thing"));
        assert!(!is_built_in("encoding", "no such thing"));
        assert!(!is_built_in("filter", "no such thing"));
    }

    #[test]
    fn fourteen_features_are_reported() {
        let features = features();
        assert_eq!(features.len(), 14);
        let summary = |name: &str| features.iter().find(|feature| feature.name == name).unwrap().summary();
        assert!(summary("szip").unwrap().starts_with("own "));
        assert_eq!(summary("remote").is_some(), cfg!(feature = "remote"));
        assert_eq!(summary("zfp").is_some(), is_built_in("compression", "zfp"));
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = include_str!("../../../../../../Cargo.lock");
        for (name, version) in CRATES {
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "Cargo.lock has another version of {name} than {version}");
        }
    }
}
