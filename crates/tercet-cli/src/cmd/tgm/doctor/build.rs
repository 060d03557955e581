//! What is in this build.

use serde::Serialize;
use tercet::tgm::{
    DataObjectDescriptor, Dtype, EncodeError, EncodeOptions, Fault, GlobalMetadata, VERSION, encode_message,
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

/// Something that a build may have.
#[derive(Debug, Serialize)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    kind: &'static str,
    pub(super) built_in: bool,
}

/// The stages of the payload pipeline that the format names, besides `none`.
const STAGES: [(&str, &[&str]); 3] = [
    ("encoding", &["simple_packing"]),
    ("filter", &["shuffle"]),
    ("compression", &["szip", "zstd", "lz4", "blosc2", "zfp", "sz3", "rle", "roaring"]),
];

/// Every part that is optional, and whether it is there.
pub(super) fn features() -> Vec<Feature> {
    let mut features = Vec::new();
    for (kind, names) in STAGES {
        let feature = |&name| Feature { name, kind, built_in: is_built_in(kind, name) };
        features.extend(names.iter().map(feature));
    }
    for (name, built_in) in [("mmap", cfg!(feature = "mmap")), ("async", cfg!(feature = "async"))] {
        features.push(Feature { name, kind: "access", built_in });
    }
    features
}

/// Asks the encoder: what it cannot do it refuses before it looks at anything else.
fn is_built_in(stage: &str, name: &str) -> bool {
    let mut descriptor = DataObjectDescriptor::new(Dtype::Uint8, [0]);
    match stage {
        "encoding" => name.clone_into(&mut descriptor.encoding),
        "filter" => name.clone_into(&mut descriptor.filter),
        _ => name.clone_into(&mut descriptor.compression),
    }
    let made = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[])], &EncodeOptions::new());
    !made.is_err_and(|error| matches!(error.fault(), Fault::Encode(EncodeError::Unsupported { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoder_is_asked() {
        assert!(is_built_in("compression", "none"));
        assert!(!is_built_in("compression", "no such thing"));
        assert!(!is_built_in("encoding", "no such thing"));
        assert!(!is_built_in("filter", "no such thing"));
    }
}
