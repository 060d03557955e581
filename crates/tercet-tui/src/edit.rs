//! A line of text that the user edits.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Longer input is ignored.
const MAX_LEN: usize = 4096;

/// A line with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    text: String,
    /// A byte position between characters.
    cursor: usize,
}

impl Edit {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(crate) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Handles a key; returns whether the text changed.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => self.remove(0),
            KeyCode::Char('w') if control => {
                let before = self.before_cursor().trim_end();
                let start = before.rfind(char::is_whitespace);
                self.remove(start.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8)))
            }
            KeyCode::Char('a') if control => self.go(0),
            KeyCode::Char('e') if control => self.go(self.text.len()),
            KeyCode::Char(c) if !control && self.text.len() < MAX_LEN => {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
                true
            }
            KeyCode::Backspace => self.remove(self.previous()),
            KeyCode::Delete => {
                let next = self.next();
                let is_changed = next > self.cursor;
                self.text.replace_range(self.cursor..next, "");
                is_changed
            }
            KeyCode::Left => self.go(self.previous()),
            KeyCode::Right => self.go(self.next()),
            KeyCode::Home => self.go(0),
            KeyCode::End => self.go(self.text.len()),
            _ => false,
        }
    }

    fn go(&mut self, cursor: usize) -> bool {
        self.cursor = cursor;
        false
    }

    /// Removes the text between a position and the cursor.
    fn remove(&mut self, start: usize) -> bool {
        let is_changed = start < self.cursor;
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
        is_changed
    }

    fn previous(&self) -> usize {
        self.before_cursor().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.cursor + self.text[self.cursor..].chars().next().map_or(0, char::len_utf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_by_keys() {
        let mut edit = Edit::default();
        let key = |edit: &mut Edit, code| edit.key(KeyEvent::new(code, KeyModifiers::NONE));
        for c in "één two".chars() {
            assert!(key(&mut edit, KeyCode::Char(c)));
        }
        assert!(edit.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL)));
        assert_eq!(edit.text(), "één ");
        key(&mut edit, KeyCode::Home);
        key(&mut edit, KeyCode::Right);
        assert!(key(&mut edit, KeyCode::Delete) && key(&mut edit, KeyCode::Backspace));
        assert_eq!((edit.text(), edit.before_cursor()), ("n ", ""));
        assert!(!key(&mut edit, KeyCode::Backspace) && !key(&mut edit, KeyCode::Left));
        key(&mut edit, KeyCode::End);
        assert!(edit.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
        assert_eq!(edit.text(), "");
    }
}
