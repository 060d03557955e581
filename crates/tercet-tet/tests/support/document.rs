//! The test vectors of `docs/spec/tet.md`, read from the document itself.

use std::ops::Range;

use tercet_core::checksum::{crc32c, parse_hex8};

const DOCUMENT: &str = include_str!("../../../../docs/spec/tet.md");

/// The bytes that the document gives for a file: all of them, or some.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) len: usize,
    pub(crate) crc32c: u32,
    pieces: Vec<(usize, Vec<u8>)>,
}

impl Vector {
    /// Reads the vector named `V1`, `V2`, … from the document.
    pub(crate) fn named(name: &str) -> Self {
        let (_, rest) = DOCUMENT.split_once(&format!("\n**{name}**:")).expect("the document has the vector");
        let (intro, rest) = rest.split_once("```\n").expect("its bytes are fenced");
        let (lines, _) = rest.split_once("```").expect("the fence ends");
        let words: Vec<&str> = intro.split_whitespace().map(|word| word.trim_matches(['.', ','])).collect();
        let at = words.iter().position(|word| *word == "bytes").expect("its length is given");
        let crc32c = intro.split('`').find_map(parse_hex8).expect("its checksum is given");
        Self {
            name: name.to_owned(),
            len: words[at - 1].parse().expect("its length is a number"),
            crc32c,
            pieces: lines.lines().map(piece).collect(),
        }
    }

    /// The complete file; gaps between the pieces are filled from `base`, or with zeros.
    pub(crate) fn over(&self, base: &[u8]) -> Vec<u8> {
        let mut bytes = base.to_vec();
        bytes.resize(self.len, 0);
        for (offset, piece) in &self.pieces {
            bytes[*offset..offset + piece.len()].copy_from_slice(piece);
        }
        assert_eq!(crc32c(&bytes), self.crc32c, "the checksum of {} in the document", self.name);
        bytes
    }

    /// The complete file, given without gaps.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut end = 0;
        for (offset, piece) in &self.pieces {
            assert_eq!(*offset, end, "{} has a gap", self.name);
            end += piece.len();
        }
        assert_eq!(end, self.len, "the length of {} in the document", self.name);
        self.over(&[])
    }

    /// Asserts that a file has the bytes given, its length and its checksum.
    pub(crate) fn assert_matches(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len, "the length of {}", self.name);
        for (offset, piece) in &self.pieces {
            assert_eq!(&bytes[*offset..offset + piece.len()], piece, "{} at {offset:#x}", self.name);
        }
        assert_eq!(crc32c(bytes), self.crc32c, "the checksum of {}", self.name);
    }

    /// Asserts that `bytes` are exactly `expected`, naming the first difference.
    pub(crate) fn assert_same(&self, bytes: &[u8], expected: &[u8]) {
        let differs = bytes.iter().zip(expected).position(|(a, b)| a != b);
        let around = |bytes: &[u8], at: usize| {
            let range: Range<usize> = at.saturating_sub(16)..(at + 48).min(bytes.len());
            bytes[range].escape_ascii().to_string()
        };
        if let Some(at) = differs {
            panic!("{} at {at:#x}:\n{}\n{}", self.name, around(bytes, at), around(expected, at));
        }
        assert_eq!(bytes.len(), expected.len(), "the length of {}", self.name);
    }
}

/// One line: offset, then hex bytes, `text` or `row`.
fn piece(line: &str) -> (usize, Vec<u8>) {
    let (offset, rest) = line.split_once(' ').expect("an offset and bytes");
    let offset = usize::from_str_radix(offset, 16).expect("an offset in hex");
    if let Some(text) = rest.strip_prefix("text ") {
        return (offset, text.as_bytes().to_vec());
    }
    let rest = rest.split(';').next().unwrap_or_default();
    match rest.strip_prefix("row ") {
        Some(row) => (offset, index_row(row)),
        None => (offset, rest.split_whitespace().flat_map(hex_word).collect()),
    }
}

fn hex_word(word: &str) -> Vec<u8> {
    match word.split_once('*') {
        Some((byte, times)) => unhex(byte).repeat(times.parse().expect("a number of repeats")),
        None => unhex(word),
    }
}

/// Hex digits as bytes; everything else is skipped.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits")).collect()
}

/// The 104 bytes of `dataset (coordinates) offset raw stored codec`.
fn index_row(text: &str) -> Vec<u8> {
    let (head, rest) = text.split_once('(').expect("coordinates");
    let (coordinates, tail) = rest.split_once(')').expect("the end of the coordinates");
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    let coordinates: Vec<u64> = coordinates.split(',').map(number).collect();
    let tail: Vec<u64> = tail.split_whitespace().map(number).collect();
    let mut words = vec![number(head)];
    words.extend(&coordinates);
    words.resize(9, 0);
    words.extend(&tail[..3]);
    // Codec and the reserved field after it.
    words.push(tail[3]);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}
