use proptest::prelude::*;

use super::*;

/// Formats a query with all parentheses.
fn display(text: &str) -> String {
    fn one(scored: &Scored) -> String {
        let field = if scored.body_only { "body:" } else { "" };
        let boost = if (scored.boost - 1.0).abs() < f32::EPSILON {
            String::new()
        } else {
            format!("^{}", scored.boost)
        };
        format!("{field}{}{boost}", scored.term)
    }
    fn group(outer: &Group) -> String {
        let part = |(sign, part): &(Sign, Part)| {
            let sign = match sign {
                Sign::May => "",
                Sign::Must => "+",
                Sign::Not => "-",
            };
            let part = match part {
                Part::Term(scored) => one(scored),
                Part::Prefix(scored) => format!("{}*", one(scored)),
                Part::Fuzzy(scored, edits) => format!("{}~{edits}", one(scored)),
                Part::Phrase(_, phrase) => {
                    let field = phrase.field.map(|field| format!("{field}:")).unwrap_or_default();
                    let slop = if phrase.slop > 0 { format!("~{}", phrase.slop) } else { String::new() };
                    format!("{field}\"{}\"{slop}", phrase.terms.join(" "))
                }
                Part::Group(inner) => format!("({})", group(inner)),
                Part::Column(test) => format!("<{test:?}>"),
                Part::All => "*".to_owned(),
            };
            format!("{sign}{part}")
        };
        outer.parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }
    match Query::parse(text) {
        Ok(query) => group(&query.analyze(Analyzer::PLAIN).root),
        Err(error) => format!("{}: {error}", error.at),
    }
}

#[test]
fn queries_are_parsed() {
    let cases = [
        ("", ""),
        ("Red  green", "red green"),
        ("red OR green", "red green"),
        ("red AND green", "(+red +green)"),
        ("a b AND c d", "a (+b +c) d"),
        ("a && b", "(+a +b)"),
        ("a || b", "a b"),
        ("a && b || c && NOT d", "(+a +b) (+c -d)"),
        ("AT&T r&d a | b &", "at t r d a b"),
        ("a AND b OR c AND NOT d", "(+a +b) (+c -d)"),
        ("+a b -c NOT d", "+a b -c -d"),
        ("a (b OR c) -(d e)", "a (b c) -(d e)"),
        ("\"Open Source\" +\"x y\"", "\"open source\" +\"x y\""),
        ("\"one\" \"\" \"...\"", "one"),
        ("well-known +x-ray", "well known +\"x ray\""),
        ("-x-ray a AND 3.14", "-\"x ray\" (+a +\"3 14\")"),
        ("-x-ra* -x-rai~ +x-ra*", "-(+x +(ra*)) -(+x +rai~1) +x +(ra*)"),
        ("c++ 1+1=2", "c 1 1 2"),
        ("and or not", "and or not"),
        ("a\"b c\"d(e)f", "a \"b c\" d (e) f"),
        ("( )", "()"),
        ("!!!", ""),
        ("!!! OR a", "a"),
        ("\"\" OR a", "a"),
        ("-a", "-a *"),
        ("a (-b)", "a (-b *)"),
        ("*", "*"),
        ("* -a", "* -a"),
        ("salvag* +co*", "(salvag*) +(co*)"),
        ("colour~ x~2", "colour~1 x~2"),
        ("title:Rust body:x url:\"a b\"", "title:rust body:x url:\"a b\""),
        ("\"a b\"~3 (a b)^2 c^0.5 +\"x y\"^3", "\"a b\"~3 (a^2 b^2) c^0.5 +\"x y\""),
        ("std::vec http://a.b 12:30 Note: x", "std vec http a b 12 30 note x"),
        ("what is rust?", "what is rust"),
        ("why?! really ! [sic] {x} [to]", "why really sic x to"),
        ("http://a.b/c?d=e /usr/bin/", "http a b c d e usr bin"),
        ("subtitle: x title", "subtitle x title"),
        ("** ~ ^ x^n", "x n"),
    ];
    for (text, expected) in cases {
        assert_eq!(display(text), expected, "{text}");
    }
}

#[test]
fn errors_have_byte_offsets() {
    let cases = [
        ("a (b", "2: unmatched `(`"),
        ("a) b", "1: unmatched `)`"),
        ("a \"b c", "2: unterminated `\"`"),
        ("OR a", "0: missing operand before `OR`"),
        ("a OR", "2: missing operand after `OR`"),
        ("a AND", "2: missing operand after `AND`"),
        ("AND a", "0: missing operand before `AND`"),
        ("a AND AND b", "2: missing operand after `AND`"),
        ("a -", "2: missing operand after `-`"),
        ("a + b", "2: missing operand after `+`"),
        ("a NOT", "2: missing operand after `NOT`"),
        ("+-a b", "1: duplicate sign"),
        ("a NOT -b", "6: duplicate sign"),
        ("url:[a TO b]", "0: field `url` has no ranges; columns have"),
        ("title:>5", "0: field `title` has no ranges; columns have"),
        ("-url:<=5", "1: field `url` has no ranges; columns have"),
        ("a title: b", "2: missing term after `title:`: write the term without a space before it"),
        ("title:", "0: missing term after `title:`: write the term without a space before it"),
        ("a !b", "2: `!` is not supported: write `-term` to exclude a term"),
        ("a !\"b c\"", "2: `!` is not supported: write `-term` to exclude a term"),
        ("+!(b c)", "1: `!` is not supported: write `-term` to exclude a term"),
        ("[10 TO 20]", "0: a range needs a column: write `column:[10 TO 20]`"),
        ("price: {10 TO 20}", "7: a range needs a column: write `column:{10 TO 20}`"),
        ("a&&b", "0: write spaces around `&&`"),
        ("a b||c", "2: write spaces around `||`"),
        ("a && && b", "2: missing operand after `&&`"),
        ("|| a", "0: missing operand before `||`"),
        (
            "/re.*/",
            "0: regular expressions are not supported in queries: quote `/re.*/` to search for it as text",
        ),
        (
            "a col?ur",
            "5: the wildcard `?` is not supported: write a prefix (`col*`) or a fuzzy term (`color~1`)",
        ),
        ("title:(a b)", "0: a group cannot have a field: write `title:` before each of its terms"),
        ("a s*vage", "3: a wildcard is supported at the end of a term only, as in `salvag*`"),
        ("a *ing", "2: a wildcard is supported at the end of a term only, as in `salvag*`"),
        ("title:*", "6: `title:*` is not supported; `*` matches all documents"),
        ("a~b", "1: a fuzzy term has at most 2 edits: `term~1` or `term~2`"),
        ("colour~3", "6: a fuzzy term has at most 2 edits: `term~1` or `term~2`"),
        ("(a b)^x", "5: invalid boost: write a positive number, such as `term^2`"),
        ("\"a b\"~x", "5: invalid distance: write the number of other terms, such as `\"a b\"~3`"),
    ];
    for (text, expected) in cases {
        assert_eq!(display(text), expected, "{text}");
    }
    assert_eq!(display(&"a ".repeat(1025)), "0: more than 1024 terms");
    let deep = "(".repeat(100_000);
    assert!(display(&deep).starts_with("64: parentheses nested deeper than 64"));
}

#[test]
fn plain_terms_are_a_list_of_terms() {
    let query = Query::parse("Red, green; RED blue").unwrap();
    let terms = query.analyze(Analyzer::PLAIN);
    let same = Query::terms("Red, green; RED blue").analyze(Analyzer::PLAIN);
    assert_eq!(terms, same);
    assert_eq!(terms.plain().unwrap().len(), 4);
    assert_eq!(query.scored_terms(Analyzer::PLAIN), ["red", "green", "red", "blue"]);
    assert!(Query::parse("red +green").unwrap().analyze(Analyzer::PLAIN).plain().is_none());
}

#[test]
fn stop_words_are_skipped_next_to_other_words() {
    let english: Analyzer = "english".parse().unwrap();
    let terms = |text: &str| Query::parse(text).unwrap().scored_terms(english);
    assert_eq!(terms("the memory of a machine"), ["memori", "machin"]);
    assert_eq!(Query::terms("the memory of a machine").scored_terms(english), ["memori", "machin"]);
    assert_eq!(terms("to be or not to be").len(), 6);
    assert_eq!(terms("+the memory"), ["the", "memori"]);
    assert_eq!(terms("\"the who\""), ["the", "who"]);
    assert_eq!(terms("the -memory"), ["the"]);
    assert_eq!(terms("the-fox"), ["fox"]);
    assert_eq!(terms("state-of-the-art"), ["state", "art"]);
    assert_eq!(terms("+state-of-the-art"), ["state", "of", "the", "art"]);
    assert_eq!(terms("the-of"), ["the", "of"]);
}

#[test]
fn words_of_bigrams_are_phrases_with_a_sign() {
    let parts = |text: &str| Query::parse(text).unwrap().analyze(Analyzer::STANDARD).root.parts;
    let phrase = |part: &(Sign, Part)| match &part.1 {
        Part::Phrase(_, phrase) => phrase.terms.join(" "),
        other => format!("{other:?}"),
    };
    assert_eq!(phrase(&parts("-日本語")[0]), "日本 本語");
    assert_eq!(phrase(&parts("+日本語")[0]), "日本 本語");
    assert_eq!(parts("日本語").len(), 2);
    for text in ["日", "+日", "\"日\""] {
        assert!(matches!(&parts(text)[..], [(_, Part::Prefix(scored))] if scored.term == "日"), "{text}");
    }
    let plain = Query::parse("日").unwrap().analyze(Analyzer::PLAIN).root.parts;
    assert!(matches!(&plain[..], [(_, Part::Term(_))]));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in "[a-c+\\-\"() ANDORT*~^:]{0,24}|\\PC{0,20}") {
        if let Err(error) = Query::parse(&text) {
            prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at));
        }
    }
}
