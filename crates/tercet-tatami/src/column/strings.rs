//! String and binary columns: views into shared buffers.
//!
//! A value is a [`View`] into a decoded buffer, like a `StringViewArray`. All pages of a column share the buffer of their
//! dictionary, so reading them copies no bytes.

use bytes::Bytes;

/// Maximum length of the buffer for pushed values; a longer value gets its own buffer.
const TAIL_LEN: usize = 1 << 20;

/// Number of values whose UTF-8 is validated together.
const UTF8_BLOCK: usize = 128;

/// The buffer and byte range of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The number of its buffer.
    pub buffer: u32,
    /// Its offset in the buffer.
    pub start: u32,
    /// Its length.
    pub len: u32,
}

impl View {
    /// The empty value.
    pub const EMPTY: Self = Self { buffer: 0, start: 0, len: 0 };
}

/// A vector of byte strings.
#[derive(Clone, Default)]
pub struct Strings {
    views: Vec<View>,
    buffers: Vec<Bytes>,
    /// The buffer for pushed values; its number follows those of the others.
    tail: Vec<u8>,
}

impl Strings {
    /// An empty vector.
    pub const fn new() -> Self {
        Self { views: Vec::new(), buffers: Vec::new(), tail: Vec::new() }
    }

    /// Views into existing buffers; `None` if one is out of bounds.
    pub fn from_parts(buffers: Vec<Bytes>, mut views: Vec<View>) -> Option<Self> {
        u32::try_from(buffers.len()).ok()?;
        for view in &mut views {
            if view.len == 0 {
                *view = View::EMPTY;
                continue;
            }
            let end = view.start as usize + view.len as usize;
            if buffers.get(view.buffer as usize)?.len() < end {
                return None;
            }
        }
        Some(Self { views, buffers, tail: Vec::new() })
    }

    /// The buffers, and the views into them.
    pub fn into_parts(mut self) -> (Vec<Bytes>, Vec<View>) {
        self.seal();
        (self.buffers, self.views)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// One value; empty past the end.
    pub fn get(&self, index: usize) -> &[u8] {
        self.views.get(index).map_or(&[], |view| self.view(*view))
    }

    /// The values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.views.iter().map(|view| self.view(*view))
    }

    /// The views of the values.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// The buffers that the views refer to. The last may still grow.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let count = self.buffers.len() + usize::from(!self.tail.is_empty());
        (0..count).map(|index| self.buffer(index))
    }

    fn buffer(&self, index: usize) -> &[u8] {
        self.buffers.get(index).map_or(&self.tail[..], |buffer| &buffer[..])
    }

    fn view(&self, view: View) -> &[u8] {
        if view.len == 0 {
            return &[];
        }
        let start = view.start as usize;
        &self.buffer(view.buffer as usize)[start..start + view.len as usize]
    }

    /// The total length of all values.
    pub fn total_bytes(&self) -> u64 {
        self.views.iter().map(|view| u64::from(view.len)).sum()
    }

    /// The number of completed buffers.
    pub(crate) fn sealed(&self) -> usize {
        self.buffers.len()
    }

    /// The length of the completed buffers from a number on.
    pub(crate) fn sealed_bytes(&self, from: usize) -> u64 {
        self.buffers.get(from..).unwrap_or_default().iter().map(|buffer| buffer.len() as u64).sum()
    }

    /// Appends a copy of a value.
    ///
    /// # Panics
    ///
    /// For a value of 4 GiB or more, which no page can hold.
    pub fn push(&mut self, value: &[u8]) {
        assert!(u32::try_from(value.len()).is_ok(), "a value of 4 GiB or more");
        if value.is_empty() {
            self.views.push(View::EMPTY);
            return;
        }
        if !self.tail.is_empty() && self.tail.len() + value.len() > TAIL_LEN {
            self.seal();
        }
        let start = self.tail.len();
        self.tail.extend_from_slice(value);
        self.views.push(View {
            buffer: number(self.buffers.len()),
            start: number(start),
            len: number(value.len()),
        });
    }

    /// Appends empty values.
    pub fn push_empty(&mut self, count: usize) {
        self.views.resize(self.views.len() + count, View::EMPTY);
    }

    /// The buffer, if there is exactly one.
    pub(crate) fn shared_buffer(&self) -> Option<Bytes> {
        self.buffers.first().cloned()
    }

    /// The first value from `start` on that is not valid UTF-8.
    pub(crate) fn first_invalid_utf8(&self, start: usize) -> Option<usize> {
        // Most strings are ASCII: one pass over the bytes from the first to the last value is faster than validating each.
        let views = self.views.get(start..)?;
        if self.covered(views).is_some_and(<[u8]>::is_ascii) {
            return None;
        }
        for (number, some) in views.chunks(UTF8_BLOCK).enumerate() {
            let is_wrong = |view: &View| simdutf8::basic::from_utf8(self.view(*view)).is_err();
            if !self.is_utf8_block(some)
                && let Some(at) = some.iter().position(is_wrong)
            {
                return Some(start + number * UTF8_BLOCK + at);
            }
        }
        None
    }

    /// The bytes between the first and the last of some values, which are in one buffer and in any order.
    ///
    /// `None` if most of the bytes do not belong to the values: a batch may refer to a few values of a buffer that many
    /// batches share, and reading the entire buffer for each of them would take quadratic time.
    fn covered(&self, views: &[View]) -> Option<&[u8]> {
        let mut full = views.iter().filter(|view| view.len > 0);
        let end = |view: &View| view.start as usize + view.len as usize;
        let Some(first) = full.next() else { return Some(&[]) };
        let (mut from, mut to, mut total) = (first.start as usize, end(first), first.len as usize);
        for view in full {
            if view.buffer != first.buffer {
                return None;
            }
            from = from.min(view.start as usize);
            to = to.max(end(view));
            total = total.saturating_add(view.len as usize);
        }
        // Lengths between the values of a page take up to five bytes each.
        let wanted = total.saturating_mul(2).saturating_add(views.len().saturating_mul(5));
        if to - from > wanted {
            return None;
        }
        self.buffer(first.buffer as usize).get(from..to)
    }

    /// Whether consecutive values in a buffer are valid UTF-8, validated together with the bytes between them.
    fn is_utf8_block(&self, views: &[View]) -> bool {
        let mut full = views.iter().filter(|view| view.len > 0);
        let Some(first) = full.next() else { return true };
        let end = |view: &View| view.start as usize + view.len as usize;
        let mut last = first;
        for view in full {
            if view.buffer != first.buffer || (view.start as usize) < end(last) {
                return false;
            }
            last = view;
        }
        let base = first.start as usize;
        let Some(all) = self.covered(views) else { return false };
        let Ok(text) = simdutf8::basic::from_utf8(all) else { return false };
        let is_whole = |view: &View| {
            view.len == 0
                || text.is_char_boundary(view.start as usize - base)
                    && text.is_char_boundary(end(view) - base)
        };
        views.iter().all(is_whole)
    }

    /// Completes the buffer for pushed values.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.buffers.push(Bytes::from(std::mem::take(&mut self.tail)));
        }
    }

    /// Adds a buffer and returns its number, for views that are pushed next.
    pub(crate) fn add_buffer(&mut self, buffer: Bytes) -> u32 {
        self.seal();
        // Pages of a column share their dictionary, which was added before.
        let same = |kept: &Bytes| kept.as_ptr() == buffer.as_ptr() && kept.len() == buffer.len();
        if let Some(last) = self.buffers.last().filter(|last| same(last)) {
            debug_assert_eq!(last.len(), buffer.len());
            return number(self.buffers.len() - 1);
        }
        self.buffers.push(buffer);
        number(self.buffers.len() - 1)
    }

    /// Appends views into an added buffer. Each must be in bounds.
    pub(crate) fn push_views(&mut self, views: impl Iterator<Item = View>) {
        self.views.extend(views);
    }

    /// The views, mutable.
    pub(crate) fn views_mut(&mut self) -> &mut Vec<View> {
        &mut self.views
    }

    /// Appends values `from..to` of `other`; long values are shared, not copied.
    pub fn extend_from(&mut self, other: &Self, from: usize, to: usize) {
        // A few values of a large buffer are copied, so that the buffer can be freed.
        let wanted: u64 = other.views[from..to].iter().map(|view| u64::from(view.len)).sum();
        let held: u64 = other.buffers().map(|buffer| buffer.len() as u64).sum();
        if wanted < held / 2 || !other.tail.is_empty() {
            for index in from..to {
                self.push(other.get(index));
            }
            return;
        }
        self.seal();
        let base = number(self.buffers.len());
        self.buffers.extend_from_slice(&other.buffers);
        let moved =
            |view: &View| View { buffer: if view.len == 0 { 0 } else { view.buffer + base }, ..*view };
        self.views.extend(other.views[from..to].iter().map(moved));
    }
}

/// Buffer numbers and lengths fit 32 bits: [`Strings::push`] checks them.
fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl std::fmt::Debug for Strings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|value| value.escape_ascii().to_string())).finish()
    }
}

/// Compares the values, not their buffers.
impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<A: AsRef<[u8]>> FromIterator<A> for Strings {
    fn from_iter<I: IntoIterator<Item = A>>(values: I) -> Self {
        let mut out = Self::new();
        values.into_iter().for_each(|value| out.push(value.as_ref()));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_through_all_buffers() {
        let long = vec![7; TAIL_LEN - 3];
        let values: Vec<&[u8]> = vec![b"", b"one", &long, b"two", b"", &long, b"three"];
        let strings: Strings = values.iter().collect();
        assert!(strings.buffers().len() > 2);
        assert_eq!(strings.iter().collect::<Vec<_>>(), values);
        assert_eq!(strings.total_bytes(), 2 * long.len() as u64 + 11);
        let mut more: Strings = ["x"].into_iter().collect();
        more.extend_from(&strings, 1, 6);
        assert_eq!(more.len(), 6);
        assert_eq!(more.get(0), b"x");
        assert_eq!(more.iter().skip(1).collect::<Vec<_>>(), &values[1..6]);
    }

    #[test]
    fn the_first_invalid_value_is_found() {
        // Lengths between the values, as in pages; long lengths are not valid UTF-8 themselves.
        let long = "é".repeat(100);
        let good = ["", "a", "straße", "日本", &long, ""];
        let bad: [&[u8]; 4] = [b"\xff", b"\xc3", b"\x9f", &"日本".as_bytes()[..4]];
        for count in [1, UTF8_BLOCK - 1, UTF8_BLOCK, 3 * UTF8_BLOCK + 5] {
            for (wrong, at) in bad.iter().zip([0, count / 2, count - 1, count]) {
                let values = (0..count)
                    .map(|index| if index == at { wrong } else { good[index % good.len()].as_bytes() });
                let (mut bytes, mut strings) = (Vec::new(), Strings::new());
                let mut views = Vec::new();
                for value in values {
                    tercet_codec::varint::put(value.len() as u64, &mut bytes);
                    views.push(View { buffer: 0, start: number(bytes.len()), len: number(value.len()) });
                    bytes.extend_from_slice(value);
                }
                strings.add_buffer(Bytes::from(bytes));
                strings.push_views(views.into_iter());
                let slow = strings.iter().position(|value| std::str::from_utf8(value).is_err());
                assert_eq!(slow, (at < count).then_some(at));
                assert_eq!(strings.first_invalid_utf8(0), slow);
            }
        }
        // Two halves of a character, valid only together.
        let mut halves = Strings::new();
        halves.add_buffer(Bytes::from_static("é".as_bytes()));
        halves.push_views((0..2).map(|start| View { buffer: 0, start, len: 1 }));
        assert_eq!(halves.first_invalid_utf8(0), Some(0));
    }

    #[test]
    fn validation_reads_only_the_bytes_of_the_values() {
        // Two short values at the ends of a buffer that is otherwise not valid UTF-8.
        let mut bytes = vec![0xff; 100_000];
        bytes[..3].copy_from_slice(b"one");
        bytes[99_990..99_996].copy_from_slice("straße".as_bytes().get(..6).unwrap());
        let view = |start, len| View { buffer: 0, start, len };
        let buffer = Bytes::from(bytes);
        let made = |views: &[View]| Strings::from_parts(vec![buffer.clone()], views.to_vec()).unwrap();
        for views in [vec![view(0, 3), view(99_990, 4)], vec![view(99_990, 4), view(0, 3), view(0, 0)]] {
            let strings = made(&views);
            assert!(strings.covered(&views).is_none(), "most bytes are between the values");
            assert_eq!(strings.first_invalid_utf8(0), None);
        }
        let near = [view(0, 3), view(1, 2), view(2, 1)];
        assert_eq!(made(&near).covered(&near), Some(&b"one"[..]));
        assert_eq!(made(&near).first_invalid_utf8(0), None);
        assert_eq!(made(&[view(0, 3), view(2, 2)]).first_invalid_utf8(0), Some(1));
    }

    #[test]
    fn views_out_of_bounds_are_rejected() {
        let buffer = Bytes::from_static(b"redblue");
        let at = |buffer, start, len| View { buffer, start, len };
        let made = |views: &[View]| Strings::from_parts(vec![buffer.clone()], views.to_vec());
        let strings = made(&[at(0, 3, 4), at(9, 9, 0), at(0, 0, 3)]).unwrap();
        assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"blue"[..], b"", b"red"]);
        let (buffers, views) = strings.into_parts();
        assert_eq!((buffers.len(), views[1]), (1, View::EMPTY));
        for wrong in [at(0, 3, 5), at(1, 0, 1), at(0, u32::MAX, u32::MAX)] {
            assert!(made(&[wrong]).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn shared_buffers_are_stored_once() {
        let dictionary = Bytes::from_static(b"redblue");
        let mut strings = Strings::new();
        for _ in 0..3 {
            let buffer = strings.add_buffer(dictionary.clone());
            let red = View { buffer, start: 0, len: 3 };
            strings.push_views([red, View { buffer, start: 3, len: 4 }].into_iter());
        }
        assert_eq!(strings.buffers().len(), 1);
        assert_eq!(
            strings.iter().collect::<Vec<_>>(),
            [&b"red"[..], b"blue", b"red", b"blue", b"red", b"blue"]
        );
    }
}
