use proptest::prelude::*;

use super::*;

fn terms(analyzer: &str, text: &str) -> Vec<String> {
    analyzer.parse::<Analyzer>().unwrap().terms(text.as_bytes())
}

/// Whether a query word finds a word of a text.
fn finds(analyzer: &str, text: &str, query: &str) -> bool {
    let text = terms(analyzer, text);
    let query = terms(analyzer, query);
    !query.is_empty() && query.iter().all(|term| text.contains(term))
}

#[test]
fn spellings_of_a_word_are_one_term() {
    let cases = [
        ("café", "cafe"),
        ("cafe\u{301}", "café"),
        ("ΟΔΟΣ", "οδός"),
        ("ＴＯＫＹＯ", "tokyo"),
        ("ﬁnal", "final"),
        ("Straße", "STRASSE"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("Łódź", "lodz"),
        ("ﾃﾞｰﾀ", "データ"),
        ("한\u{1100}\u{1161}", "한가"),
        ("naïve résumé", "resume"),
    ];
    for (text, query) in cases {
        assert!(finds("standard", text, query), "{text} {query}");
        assert!(finds("english", text, query), "{text} {query}");
    }
}

#[test]
fn scripts_without_spaces_become_bigrams() {
    assert_eq!(terms("standard", "日本語 Rust語"), ["日本", "本語", "rust", "語"]);
    assert_eq!(terms("standard", "学校 학교에서"), ["学校", "학교", "교에", "에서"]);
    assert!(finds("standard", "ภาษาไทยง่ายนิดเดียว", "ภาษาไทย"));
    assert!(finds("standard", "東京都庁に行きました", "都庁"));
}

#[test]
fn marks_stay_in_their_words() {
    assert_eq!(terms("standard", "हिन्दी भाषा").len(), 2);
    assert_eq!(terms("plain", "हिन्दी भाषा").len(), 5);
    assert_ne!(terms("standard", "कि"), terms("standard", "की"));
}

#[test]
fn words_are_stemmed() {
    assert_eq!(terms("english", "Running runs; salvaged salvages"), ["run", "run", "salvag", "salvag"]);
    assert!(finds("german", "Häuser und Gärten", "Haus"));
    assert!(finds("french", "les chevaux étaient fatigués", "fatiguée"));
    assert!(finds("russian", "красивые дома", "красивый"));
    assert!(finds("arabic", "الكتاب", "كتاب"));
}

#[test]
fn spans_cover_the_surface_form() {
    let text = "The CAFÉS, 日本語!";
    let mut out = Vec::new();
    let english: Analyzer = "english".parse().unwrap();
    english.tokenizer().spans(text.as_bytes(), |range, term| out.push((&text[range], term.to_owned())));
    let expected = [("The", "the"), ("CAFÉS", "cafe"), ("日本", "日本"), ("本語", "本語")];
    assert_eq!(out, expected.map(|(surface, term)| (surface, term.to_owned())));
}

#[test]
fn languages_are_detected() {
    let english =
        "The quick brown fox jumps over the lazy dog, and nobody knows where it went after that day. ";
    let german =
        "Der schnelle braune Fuchs springt über den faulen Hund, und niemand weiß, wohin er danach ging. ";
    assert_eq!(Analyzer::detect(&english.repeat(3)).name(), "english");
    assert_eq!(Analyzer::detect(&german.repeat(3)).name(), "german");
    assert_eq!(Analyzer::detect("0 1 2 3"), Analyzer::STANDARD);
    assert_eq!(Analyzer::detect(""), Analyzer::STANDARD);
}

#[test]
fn records_name_version_and_analyzer() {
    for analyzer in ["standard", "english", "yiddish"] {
        let analyzer: Analyzer = analyzer.parse().unwrap();
        let value = analyzer.recorded().unwrap();
        assert_eq!(Analyzer::from_recorded(&value), Some(analyzer));
    }
    assert_eq!(Analyzer::PLAIN.recorded(), None);
    for value in ["", "1", "2 english", "1 klingon", "1 plain", "english", "1 en"] {
        assert_eq!(Analyzer::from_recorded(value), None, "{value}");
    }
    let unknown = "klingon".parse::<Analyzer>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("unknown analyzer `klingon`; known are plain, standard and arabic,"),
        "{unknown}"
    );
}

proptest! {
    #[test]
    fn any_text_has_terms_at_its_spans(text in "\\PC{0,60}", language in 0usize..40) {
        let algorithms = Algorithm::all();
        let analyzers =
            [Analyzer::STANDARD, Analyzer(Kind::Language(algorithms[language % algorithms.len()]))];
        for analyzer in analyzers {
            let mut last = 0;
            let mut valid = true;
            analyzer.tokenizer().spans(text.as_bytes(), |range, term| {
                valid &= range.start >= last && range.end <= text.len() && range.start < range.end;
                valid &= !term.is_empty() && !term.contains(':') && text.get(range.clone()).is_some();
                last = range.start;
            });
            prop_assert!(valid);
        }
    }

    #[test]
    fn ascii_words_equal_the_tokens_of_the_format(text in "[ -~]{0,80}") {
        prop_assert_eq!(Analyzer::STANDARD.terms(text.as_bytes()), Analyzer::PLAIN.terms(text.as_bytes()));
    }

    #[test]
    fn invalid_bytes_separate_words(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        Analyzer::STANDARD.terms(&bytes);
    }
}
