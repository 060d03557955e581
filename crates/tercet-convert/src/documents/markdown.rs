//! The title of a Markdown document. The text is indexed unchanged: markup separates words anyway.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Bytes in which the title is looked for.
const TITLE_LEN: usize = 1 << 20;

/// The first heading of any level that has text.
pub fn markdown_title(text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = &text[..text.floor_char_boundary(TITLE_LEN)];
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_STRIKETHROUGH;
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, options) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(title)) => title.push_str(&text),
            (Event::SoftBreak | Event::HardBreak, Some(title)) => title.push(' '),
            (Event::End(TagEnd::Heading(_)), Some(title)) => {
                let words: Vec<&str> = title.split_whitespace().collect();
                if !words.is_empty() {
                    return Some(words.join(" "));
                }
                heading = None;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(text: &str) -> String {
        markdown_title(text).unwrap_or_default()
    }

    #[test]
    fn the_first_heading_is_the_title() {
        assert_eq!(title("text\n# One  #\n# Two"), "One");
        assert_eq!(title("## Two\n# One"), "Two");
        assert_eq!(title("\u{feff}# C#"), "C#");
        assert_eq!(title("#\n## ##\n###### Six"), "Six");
        assert_eq!(title("#!shebang\n#\n####### seven"), "");
        assert_eq!(title("# A *fast*, `safe`\t[reader](http://x) &amp; more"), "A fast, safe reader & more");
    }

    #[test]
    fn headings_may_be_underlined() {
        assert_eq!(title("One\n===\n# Two"), "One");
        assert_eq!(title("a\n\nOne \n---"), "One");
        assert_eq!(title("two\nlines\n---"), "two lines");
        assert_eq!(title("---\nname: x\n---\n\n# One"), "One");
        assert_eq!(title("- item\n---\n\n***\n---\na\n\n---"), "");
    }

    #[test]
    fn code_and_comments_have_no_titles() {
        assert_eq!(title("```sh\n# no\n~~~\n```\n# One"), "One");
        assert_eq!(title("~~~~\n# no\n~~~\n# no\n~~~~~\n# One"), "One");
        assert_eq!(title("    # no\n\t# no\n   # One"), "One");
        assert_eq!(title("<!-- # no\n# no\n-->\n<!-- a -->\n# One"), "One");
        assert_eq!(title("```\n# no"), "");
    }

    #[test]
    fn a_long_text_is_not_parsed_to_its_end() {
        let text = format!("é{}\n\n# late", "x ".repeat(TITLE_LEN / 2));
        assert_eq!(title(&text), "");
    }
}
