use proptest::prelude::*;

use super::*;

/// Formats a query with all parentheses.
fn display(text: &str) -> String {
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
fn queries_are_parsed() {
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
        ("-a", "0: only excluded terms: at least one other term is required"),
        ("a (-b)", "3: only excluded terms: at least one other term is required"),
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
    assert_eq!(query, Query::terms("Red, green; RED blue"));
    assert_eq!(query.plain().unwrap(), ["red", "green", "red", "blue"]);
    assert!(Query::parse("red +green").unwrap().plain().is_none());
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in "[a-c+\\-\"() ANDORT]{0,24}|\\PC{0,20}") {
        if let Err(error) = Query::parse(&text) {
            prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at));
        }
    }
}
