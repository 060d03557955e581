//! The words of a condition.

use super::ParseError;

/// A word and where it starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) word: Word,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A name or keyword as it was written.
    Name(String),
    /// A name in backquotes, never a keyword.
    Quoted(String),
    Number(String),
    Text(String),
    /// `=`, `!=`, `<`, `<=`, `>`, `>=`, `(`, `)`, `,`.
    Sign(&'static str),
    End,
}

/// Splits a condition into words; the last is [`Word::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut out = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, first)) = rest.next() {
        let word = match first {
            _ if first.is_whitespace() => continue,
            '(' => Word::Sign("("),
            ')' => Word::Sign(")"),
            ',' => Word::Sign(","),
            '=' => {
                // `==` is what many would write.
                rest.next_if(|(_, next)| *next == '=');
                Word::Sign("=")
            }
            '!' => match rest.next_if(|(_, next)| *next == '=') {
                Some(_) => Word::Sign("!="),
                None => return Err(ParseError::new(at, "`!` stands before `=` only; the opposite is `not`")),
            },
            '<' => match rest.next_if(|(_, next)| matches!(next, '=' | '>')) {
                Some((_, '=')) => Word::Sign("<="),
                Some(_) => Word::Sign("!="),
                None => Word::Sign("<"),
            },
            '>' => match rest.next_if(|(_, next)| *next == '=') {
                Some(_) => Word::Sign(">="),
                None => Word::Sign(">"),
            },
            '"' | '\'' => Word::Text(quoted(at, first, &mut rest)?),
            '`' => {
                let mut name = String::new();
                loop {
                    match rest.next() {
                        Some((_, '`')) => break,
                        Some((_, next)) => name.push(next),
                        None => return Err(ParseError::new(at, "the name has no closing backquote")),
                    }
                }
                Word::Quoted(name)
            }
            '0'..='9' | '-' | '+' | '.' => {
                let mut number = String::from(first);
                while let Some((_, next)) = rest.peek().copied() {
                    let sign = matches!(next, '+' | '-') && number.ends_with(['e', 'E']);
                    if next.is_ascii_alphanumeric() || next == '.' || next == '_' || sign {
                        number.push(next);
                        rest.next();
                    } else {
                        break;
                    }
                }
                Word::Number(number.replace('_', ""))
            }
            _ if first.is_alphabetic() || first == '_' => {
                let mut name = String::from(first);
                while let Some((_, next)) =
                    rest.next_if(|(_, next)| next.is_alphanumeric() || matches!(next, '_' | '.'))
                {
                    name.push(next);
                }
                Word::Name(name)
            }
            _ => return Err(ParseError::new(at, "this character has no meaning here")),
        };
        out.push(Token { at, word });
    }
    out.push(Token { at: text.len(), word: Word::End });
    Ok(out)
}

fn quoted(
    start: usize,
    quote: char,
    rest: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
) -> Result<String, ParseError> {
    let mut text = String::new();
    loop {
        match rest.next() {
            Some((_, next)) if next == quote => return Ok(text),
            Some((at, '\\')) => match rest.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, next @ ('\\' | '"' | '\''))) => text.push(next),
                _ => {
                    return Err(ParseError::new(
                        at,
                        "a backslash stands before n, t, r, a quote or a backslash",
                    ));
                }
            },
            Some((_, next)) => text.push(next),
            None => return Err(ParseError::new(start, "the text has no closing quote")),
        }
    }
}
