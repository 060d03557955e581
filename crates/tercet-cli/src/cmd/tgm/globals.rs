//! Global options of the verbs for `.tgm` files.

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use tercet::tgm::{EncodeOptions, MaskMethod};

use crate::args::GLOBAL;
use crate::render::parse_size;

/// The heading under which help lists these options.
const HEADING: &str = "NaN and infinities";

/// Global options, each with an environment variable.
///
/// All verbs accept the options for masks, as in the reference implementation, but only the help of verbs that encode
/// lists them: [`mask_options`].
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Globals {
    /// Number of threads, at most 4 per core [default: all cores]
    #[arg(long, global = true, value_name = "N", env = "TENSOGRAM_THREADS", display_order = 902, help_heading = GLOBAL)]
    threads: Option<usize>,
    /// Maximum size of one decoded array [default: by the size of the file, at least 1GiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size, display_order = 901, help_heading = GLOBAL)]
    max_array: Option<u64>,
    /// Store NaN as a mask; otherwise NaN is an error
    #[arg(long, global = true, value_name = "BOOL", env = "TENSOGRAM_ALLOW_NAN", display_order = 903, hide = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    allow_nan: Option<bool>,
    /// Store infinities as masks; otherwise infinities are an error
    #[arg(long, global = true, value_name = "BOOL", env = "TENSOGRAM_ALLOW_INF", display_order = 904, hide = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    allow_inf: Option<bool>,
    /// Compression of NaN masks [default: roaring; with `--max-error` the shortest]
    #[arg(long, global = true, value_name = "METHOD", env = "TENSOGRAM_NAN_MASK_METHOD", display_order = 905, hide = true,
          value_parser = mask_method())]
    nan_mask_method: Option<MaskMethod>,
    /// Compression of +Inf masks [default: roaring; with `--max-error` the shortest]
    #[arg(long, global = true, value_name = "METHOD", env = "TENSOGRAM_POS_INF_MASK_METHOD", display_order = 906, hide = true,
          value_parser = mask_method())]
    pos_inf_mask_method: Option<MaskMethod>,
    /// Compression of -Inf masks [default: roaring; with `--max-error` the shortest]
    #[arg(long, global = true, value_name = "METHOD", env = "TENSOGRAM_NEG_INF_MASK_METHOD", display_order = 907, hide = true,
          value_parser = mask_method())]
    neg_inf_mask_method: Option<MaskMethod>,
    /// Store masks of up to N bytes uncompressed [default: 128]
    #[arg(
        long,
        global = true,
        value_name = "N",
        env = "TENSOGRAM_SMALL_MASK_THRESHOLD",
        display_order = 908,
        hide = true
    )]
    small_mask_threshold: Option<u64>,
}

/// The options for masks, for the help of a verb that encodes. Their values are those of the global options, which have
/// the same IDs.
pub(super) fn mask_options() -> Vec<clap::Arg> {
    let globals = <Globals as clap::Args>::augment_args(clap::Command::new("tgm"));
    let masks = globals.get_arguments().filter(|option| option.is_hide_set());
    masks.map(|option| option.clone().hide(false).global(false).help_heading(HEADING)).collect()
}

/// The environment variable of a global option.
pub(crate) fn environment_variable(flag: &str) -> Option<String> {
    let globals = <Globals as clap::Args>::augment_args(clap::Command::new("tgm"));
    let mut options = globals.get_arguments();
    let option = options.find(|option| option.get_long().is_some_and(|long| flag == format!("--{long}")))?;
    Some(option.get_env()?.to_string_lossy().into_owned())
}

fn mask_method() -> impl TypedValueParser<Value = MaskMethod> {
    PossibleValuesParser::new(MaskMethod::NAMES).try_map(|name| name.parse::<MaskMethod>())
}

impl Globals {
    /// `--threads` or its environment variable.
    pub(crate) fn threads(&self) -> Option<usize> {
        self.threads
    }

    /// `--max-array`.
    pub(crate) fn max_array(&self) -> Option<u64> {
        self.max_array
    }

    /// Encoder options. `allow` is the default of `--allow-nan` and `--allow-inf`.
    pub(super) fn encode_options(&self, allow: bool) -> EncodeOptions {
        let mut options = EncodeOptions::new()
            .with_allowed(self.allow_nan.unwrap_or(allow), self.allow_inf.unwrap_or(allow));
        let methods = [
            (&mut options.nan_mask, self.nan_mask_method),
            (&mut options.pos_inf_mask, self.pos_inf_mask_method),
            (&mut options.neg_inf_mask, self.neg_inf_mask_method),
        ];
        for (method, given) in methods {
            *method = given.unwrap_or(*method);
        }
        match self.small_mask_threshold {
            Some(bytes) => options.with_small_mask_threshold(bytes),
            None => options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_encoder() {
        let (given, default) = (Globals::default().encode_options(false), EncodeOptions::new());
        assert_eq!((given.allow_nan, given.allow_inf), (false, false));
        assert_eq!(
            (given.nan_mask, given.small_mask_threshold),
            (default.nan_mask, default.small_mask_threshold)
        );
        let given = Globals::default().encode_options(true);
        assert!(given.allow_nan && given.allow_inf);
    }

    #[test]
    fn options_override_the_defaults() {
        let globals = Globals {
            allow_nan: Some(false),
            neg_inf_mask_method: Some(MaskMethod::Rle),
            small_mask_threshold: Some(0),
            ..Globals::default()
        };
        let given = globals.encode_options(true);
        assert_eq!((given.allow_nan, given.allow_inf, given.small_mask_threshold), (false, true, 0));
        assert_eq!((given.neg_inf_mask, given.pos_inf_mask), (MaskMethod::Rle, MaskMethod::Auto));
    }
}
