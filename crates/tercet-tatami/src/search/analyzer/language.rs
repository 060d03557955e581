//! Languages: detection and stop words.

use frostem::Algorithm;
use whatlang::Lang;

/// Bytes of a sample that are examined.
const SAMPLE_BYTES: usize = 64 << 10;

/// The names of the languages with a stemmer.
pub(super) fn names() -> String {
    Algorithm::all().iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

/// The stemmer for the language of a text, if the language is certain and has one.
pub(super) fn detect(sample: &str) -> Option<Algorithm> {
    let end = (0..=SAMPLE_BYTES.min(sample.len())).rev().find(|end| sample.is_char_boundary(*end))?;
    let found = whatlang::detect(&sample[..end])?;
    if !found.is_reliable() {
        return None;
    }
    let algorithm = match found.lang() {
        Lang::Ara => Algorithm::Arabic,
        Lang::Cat => Algorithm::Catalan,
        Lang::Ces => Algorithm::Czech,
        Lang::Dan => Algorithm::Danish,
        Lang::Deu => Algorithm::German,
        Lang::Ell => Algorithm::Greek,
        Lang::Eng => Algorithm::English,
        Lang::Epo => Algorithm::Esperanto,
        Lang::Est => Algorithm::Estonian,
        Lang::Fin => Algorithm::Finnish,
        Lang::Fra => Algorithm::French,
        Lang::Hin => Algorithm::Hindi,
        Lang::Hun => Algorithm::Hungarian,
        Lang::Hye => Algorithm::Armenian,
        Lang::Ind => Algorithm::Indonesian,
        Lang::Ita => Algorithm::Italian,
        Lang::Lit => Algorithm::Lithuanian,
        Lang::Nep => Algorithm::Nepali,
        Lang::Nld => Algorithm::Dutch,
        Lang::Nob => Algorithm::Norwegian,
        Lang::Pes => Algorithm::Persian,
        Lang::Pol => Algorithm::Polish,
        Lang::Por => Algorithm::Portuguese,
        Lang::Ron => Algorithm::Romanian,
        Lang::Rus => Algorithm::Russian,
        Lang::Spa => Algorithm::Spanish,
        Lang::Srp => Algorithm::Serbian,
        Lang::Swe => Algorithm::Swedish,
        Lang::Tam => Algorithm::Tamil,
        Lang::Tur => Algorithm::Turkish,
        Lang::Ukr => Algorithm::Ukrainian,
        Lang::Yid => Algorithm::Yiddish,
        _ => return None,
    };
    Some(algorithm)
}

/// The stop words of a language; empty if there is no list.
pub(super) fn stop_words(algorithm: Algorithm) -> &'static [&'static str] {
    let code = match algorithm {
        Algorithm::Arabic => "ar",
        Algorithm::Basque => "eu",
        Algorithm::Catalan => "ca",
        Algorithm::Danish => "da",
        Algorithm::Dutch | Algorithm::DutchPorter => "nl",
        Algorithm::English | Algorithm::Porter | Algorithm::Lovins => "en",
        Algorithm::Finnish => "fi",
        Algorithm::French => "fr",
        Algorithm::German => "de",
        Algorithm::Greek => "el",
        Algorithm::Hungarian => "hu",
        Algorithm::Indonesian => "id",
        Algorithm::Italian => "it",
        Algorithm::Nepali => "ne",
        Algorithm::Norwegian => "no",
        Algorithm::Portuguese => "pt",
        Algorithm::Romanian => "ro",
        Algorithm::Russian => "ru",
        Algorithm::Spanish => "es",
        Algorithm::Swedish => "sv",
        Algorithm::Tamil => "ta",
        Algorithm::Turkish => "tr",
        _ => return &[],
    };
    stop_words::lookup(code).unwrap_or(&[])
}
