//! The table of targets.

mod http;
mod query;
mod selection;
mod tatami;
mod tet;
mod tgm;

/// A function that must survive any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name on the command line.
    pub name: &'static str,
    /// The directory of `corpus/` with its seeds; targets with the same kind of input share one.
    pub corpus: &'static str,
    /// Returns for any input, and panics only to report a fault.
    pub run: fn(&[u8]),
    /// Recomputes the checksums of a mutated input, so that the code after their check is tested.
    pub recompute_checksums: Option<fn(&mut [u8])>,
    /// Maximum bytes allocated at a time; inputs may cost up to 64 times their length in addition.
    pub memory: usize,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "http_request",
        corpus: "http",
        run: http::run,
        recompute_checksums: None,
        memory: 1 << 20,
    },
    Target { name: "query", corpus: "query", run: query::run, recompute_checksums: None, memory: 16 << 20 },
    Target {
        name: "selection",
        corpus: "selection",
        run: selection::parse,
        recompute_checksums: None,
        memory: 1 << 20,
    },
    Target {
        name: "tatami_open",
        corpus: "tatami",
        run: tatami::open,
        recompute_checksums: Some(tatami::checksums::recompute),
        memory: 16 << 20,
    },
    Target {
        name: "tatami_manifest",
        corpus: "manifest",
        run: tatami::manifest::run,
        recompute_checksums: Some(tatami::manifest::recompute_checksums),
        memory: 1 << 20,
    },
    Target {
        name: "tatami_page",
        corpus: "rows",
        run: tatami::page::run,
        recompute_checksums: None,
        memory: 16 << 20,
    },
    Target {
        name: "tatami_repair",
        corpus: "tatami",
        run: tatami::repair,
        recompute_checksums: Some(tatami::checksums::recompute),
        memory: 16 << 20,
    },
    Target {
        name: "tet_open",
        corpus: "tet",
        run: tet::open,
        recompute_checksums: Some(tet::checksums::recompute),
        memory: 16 << 20,
    },
    Target {
        name: "tet_verify",
        corpus: "tet",
        run: tet::verify,
        recompute_checksums: Some(tet::checksums::recompute),
        memory: 16 << 20,
    },
    Target {
        name: "tgm_open",
        corpus: "tgm",
        run: tgm::open,
        recompute_checksums: Some(tgm::checksums::recompute),
        memory: 16 << 20,
    },
    Target {
        name: "tgm_edit",
        corpus: "tgm",
        run: tgm::edit,
        recompute_checksums: Some(tgm::checksums::recompute),
        memory: 16 << 20,
    },
    Target {
        name: "tgm_stream",
        corpus: "tgm",
        run: tgm::stream,
        recompute_checksums: Some(tgm::checksums::recompute),
        memory: 16 << 20,
    },
    Target {
        name: "tgm_pipeline",
        corpus: "pipeline",
        run: tgm::pipeline,
        recompute_checksums: Some(tgm::checksums::recompute),
        memory: 16 << 20,
    },
    Target { name: "cbor", corpus: "cbor", run: tgm::cbor, recompute_checksums: None, memory: 16 << 20 },
];

#[cfg(test)]
mod tests {
    use super::TARGETS;

    #[test]
    fn every_target_has_a_libfuzzer_entry() {
        let manifest = include_str!("../Cargo.toml");
        for target in TARGETS {
            let path = format!("path = \"fuzz_targets/{}.rs\"", target.name);
            assert!(manifest.contains(&path), "{path}");
        }
    }

    #[test]
    fn every_target_survives_trivial_inputs() {
        for target in TARGETS {
            for input in [&b""[..], b"\0", b"\n", &[0xff; 64]] {
                (target.run)(input);
            }
        }
    }
}
