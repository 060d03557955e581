use proptest::prelude::*;

use super::*;

/// A query with all its parentheses.
fn shown(text: &str) -> String {
    fn group(outer: &Group) -> String {
        let part = |(sign, part): &(Sign, Part)| {
            let sign = match sign {
                Sign::May => "",
                Sign::Must => "+",
                Sign::Not => "-",
            };
            let part = match part {
                Part::Term(term) => term.clone(),
                Part::Phrase(terms) => format!("\"{}\"", terms.join(" ")),
                Part::Group(inner) => format!("({})", group(inner)),
            };
            format!("{sign}{part}")
        };
        outer.parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }
    match Query::parse(text) {
        Ok(query) => group(&query.root),
        Err(error) => format!("{}: {error}", error.at),
    }
}

#[test]
fn questions_are_read_as_they_are_told() {
    let cases = [
        ("", ""),
        ("Red  green", "red green"),
        ("red OR green", "red green"),
        ("red AND green", "(+red +green)"),
        ("a b AND c d", "a (+b +c) d"),
        ("a AND b OR c AND NOT d", "(+a +b) (+c -d)"),
        ("+a b -c NOT d", "+a b -c -d"),
        ("a (b OR c) -(d e)", "a (b c) -(d e)"),
        ("\"Open Source\" +\"x y\"", "\"open source\" +\"x y\""),
        ("\"one\" \"\" \"...\"", "one"),
        ("well-known +x-ray", "well known +x +ray"),
        ("c++ 1+1=2", "c 1 1 2"),
        ("and or not", "and or not"),
        ("a\"b c\"d(e)f", "a \"b c\" d (e) f"),
        ("( )", "()"),
        ("!!!", ""),
        ("!!! OR a", "a"),
        ("\"\" OR a", "a"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_pointed_at() {
    let cases = [
        ("a (b", "2: `(` is not closed"),
        ("a) b", "1: `)` closes nothing"),
        ("a \"b c", "2: `\"` is not closed"),
        ("OR a", "0: `OR` has nothing before it"),
        ("a OR", "2: `OR` has nothing behind it"),
        ("a AND", "2: `AND` has nothing behind it"),
        ("AND a", "0: `AND` has nothing before it"),
        ("a AND AND b", "2: `AND` has nothing behind it"),
        ("a -", "2: `-` has nothing behind it"),
        ("a + b", "2: `+` has nothing behind it"),
        ("a NOT", "2: `NOT` has nothing behind it"),
        ("+-a b", "1: a second sign stands behind a sign"),
        ("a NOT -b", "6: a second sign stands behind a sign"),
        ("-a", "0: there is no word that a document should hold"),
        ("a (-b)", "3: there is no word that a document should hold"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text), expected, "{text}");
    }
    assert_eq!(shown(&"a ".repeat(1025)), "0: more than 1024 words");
    let deep = "(".repeat(100_000);
    assert!(shown(&deep).starts_with("64: more than 64"));
}

#[test]
fn plain_words_are_the_list_of_the_format() {
    let query = Query::parse("Red, green; RED blue").unwrap();
    assert_eq!(query, Query::terms("Red, green; RED blue"));
    assert_eq!(query.plain().unwrap(), ["red", "green", "red", "blue"]);
    assert!(Query::parse("red +green").unwrap().plain().is_none());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-c+\\-\"() ANDORT]{0,24}|\\PC{0,20}") {
        if let Err(error) = Query::parse(&text) {
            prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at));
        }
    }
}
