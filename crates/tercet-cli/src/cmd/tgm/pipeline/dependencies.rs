//! Dependencies between pipeline options.

use super::{Compression, Encoding, Pipeline, name};
use crate::failure::Failure;

/// Rejects options of stages that are not selected, and stages without required options.
pub(super) fn check(pipeline: &Pipeline) -> Result<(), Failure> {
    let packs = pipeline.encoding == Some(Encoding::SimplePacking);
    for (option, is_given) in
        [("--bits", pipeline.bits.is_some()), ("--decimal-scale", pipeline.decimal_scale.is_some())]
    {
        if is_given && !packs {
            return Err(alone(option, "packed values", "--encoding simple_packing"));
        }
    }
    for (option, is_given, codec) in options_of_codecs(pipeline) {
        if is_given && pipeline.codec() != Some(codec) {
            let codec = name(codec);
            return Err(alone(option, &format!("`{codec}`"), &format!("--compression {codec}")));
        }
    }
    check_level(pipeline)?;
    match pipeline.codec() {
        Some(Compression::Zfp) if !has_zfp_mode(pipeline) => {
            let failure = Failure::request("`zfp` requires a mode");
            Err(failure.with_hint("add `--zfp-rate R`, `--zfp-precision P` or `--zfp-tolerance T`"))
        }
        Some(Compression::Sz3) if pipeline.sz3_bound.is_none() => {
            let failure = Failure::request("`sz3` requires an error bound");
            Err(failure.with_hint("add `--sz3-bound B`"))
        }
        _ => Ok(()),
    }
}

fn alone(option: &str, what: &str, with: &str) -> Failure {
    Failure::request(format!("`{option}` applies to {what} only")).with_hint(format!("add `{with}`"))
}

/// The options of each codec and whether they are given.
fn options_of_codecs(pipeline: &Pipeline) -> [(&'static str, bool, Compression); 9] {
    let Pipeline { blosc2_codec, szip_rsi, szip_block_size, szip_flags, .. } = pipeline;
    let Pipeline { zfp_rate, zfp_precision, zfp_tolerance, sz3_mode, sz3_bound, .. } = pipeline;
    [
        ("--blosc2-codec", blosc2_codec.is_some(), Compression::Blosc2),
        ("--szip-rsi", szip_rsi.is_some(), Compression::Szip),
        ("--szip-block-size", szip_block_size.is_some(), Compression::Szip),
        ("--szip-flags", szip_flags.is_some(), Compression::Szip),
        ("--zfp-rate", zfp_rate.is_some(), Compression::Zfp),
        ("--zfp-precision", zfp_precision.is_some(), Compression::Zfp),
        ("--zfp-tolerance", zfp_tolerance.is_some(), Compression::Zfp),
        ("--sz3-mode", sz3_mode.is_some(), Compression::Sz3),
        ("--sz3-bound", sz3_bound.is_some(), Compression::Sz3),
    ]
}

fn check_level(pipeline: &Pipeline) -> Result<(), Failure> {
    let Some(level) = pipeline.level() else { return Ok(()) };
    let is_twice = pipeline.compression.is_some_and(|compression| compression.level.is_some());
    if is_twice && pipeline.compression_level.is_some() {
        return Err(Failure::request("the compression level is given twice"));
    }
    match pipeline.codec() {
        Some(Compression::Zstd) => Ok(()),
        Some(Compression::Blosc2) if (0..=9).contains(&level) => Ok(()),
        Some(Compression::Blosc2) => {
            let message = format!("invalid level {level} of `blosc2`");
            Err(Failure::request(message).with_hint("levels are 0 to 9"))
        }
        None => Err(alone("--compression-level", "`zstd` and `blosc2`", "--compression zstd")),
        Some(codec) => {
            let message = format!("`{}` has no levels", name(codec));
            Err(Failure::request(message).with_hint("`zstd` and `blosc2` have levels"))
        }
    }
}

fn has_zfp_mode(pipeline: &Pipeline) -> bool {
    pipeline.zfp_rate.is_some() || pipeline.zfp_precision.is_some() || pipeline.zfp_tolerance.is_some()
}
