//! `--compression CODEC[:LEVEL]`, with the same syntax for every format.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::ValueEnum;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;

/// A codec and its level, if one is given: `zstd`, `zstd:9`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leveled<C> {
    pub(crate) codec: C,
    pub(crate) level: Option<i32>,
}

/// The parser of `CODEC[:LEVEL]`.
#[derive(Clone, Debug)]
pub(crate) struct LeveledParser<C>(PhantomData<C>);

/// Parses `CODEC[:LEVEL]`.
pub(crate) fn leveled<C: ValueEnum + Clone + Send + Sync + 'static>() -> LeveledParser<C> {
    LeveledParser(PhantomData)
}

impl<C: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for LeveledParser<C> {
    type Value = Leveled<C>;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Leveled<C>, clap::Error> {
        let text = value.to_string_lossy();
        let (codec, level) = split_level(&text).map_err(|reason| {
            let option = arg.map(|arg| format!(" for '{arg}'")).unwrap_or_default();
            let message = format!("invalid value '{text}'{option}: {reason}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })?;
        let codec = EnumValueParser::<C>::new().parse_ref(command, arg, OsStr::new(codec))?;
        Ok(Leveled { codec, level })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(C::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

/// The codec and the level of `CODEC[:LEVEL]`.
pub(crate) fn split_level(text: &str) -> Result<(&str, Option<i32>), String> {
    let Some((codec, level)) = text.split_once(':') else { return Ok((text, None)) };
    match level.parse() {
        Ok(level) => Ok((codec, Some(level))),
        Err(_) => Err(format!("invalid level `{level}`; expected an integer, like `zstd:9`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_follows_the_codec() {
        assert_eq!(split_level("zstd"), Ok(("zstd", None)));
        assert_eq!(split_level("zstd:-5"), Ok(("zstd", Some(-5))));
        assert!(split_level("zstd:").is_err() && split_level("zstd:high").is_err());
    }
}
