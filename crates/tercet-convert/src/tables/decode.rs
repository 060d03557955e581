//! Text input as UTF-8: decompressed, decoded, without skipped lines.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memchr_iter;
use tercet_core::ByteSource;

use super::chunks::decompressed;
use super::format::Compression;

/// Bytes decoded at a time.
const DECODE_LEN: usize = 1 << 16;

/// How the bytes of a file become text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoding {
    pub(super) compression: Compression,
    /// UTF-8 by default.
    pub(super) encoding: Option<&'static Encoding>,
    /// The number of lines before the text.
    pub(super) skip_lines: u64,
}

/// The encoding of a name.
pub(super) fn by_name(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(name.as_bytes())
}

/// UTF-16, by the byte order mark.
pub(super) fn by_mark(head: &[u8]) -> Option<&'static Encoding> {
    match head {
        // With two zeros, it is UTF-32.
        [0xff, 0xfe, rest @ ..] if !rest.starts_with(&[0, 0]) => Some(UTF_16LE),
        [0xfe, 0xff, ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// The text of a source; the counter counts its bytes.
pub(super) fn text(
    source: Arc<dyn ByteSource>,
    decoding: Decoding,
) -> io::Result<(Box<dyn Read + Send>, Arc<AtomicU64>)> {
    let (mut input, read) = decompressed(source, decoding.compression)?;
    if let Some(encoding) = decoding.encoding.filter(|encoding| *encoding != UTF_8) {
        input = Box::new(Decoded {
            input,
            name: encoding.name(),
            decoder: encoding.new_decoder_with_bom_removal(),
            raw: vec![0; DECODE_LEN],
            text: Vec::new(),
            at: 0,
            consumed: 0,
            is_done: false,
        });
    }
    if decoding.skip_lines > 0 {
        input = Box::new(SkippedLines { input, left: decoding.skip_lines });
    }
    Ok((input, read))
}

/// Text of another encoding than UTF-8.
struct Decoded {
    input: Box<dyn Read + Send>,
    name: &'static str,
    decoder: Decoder,
    raw: Vec<u8>,
    text: Vec<u8>,
    at: usize,
    consumed: u64,
    is_done: bool,
}

impl Decoded {
    /// Decodes more bytes.
    fn fill(&mut self) -> io::Result<()> {
        let count = self.input.read(&mut self.raw)?;
        self.is_done = count == 0;
        let mut raw = &self.raw[..count];
        self.text.clear();
        self.at = 0;
        loop {
            let room =
                self.decoder.max_utf8_buffer_length_without_replacement(raw.len()).unwrap_or(DECODE_LEN);
            let start = self.text.len();
            self.text.resize(start + room.max(16), 0);
            let (result, used, written) =
                self.decoder.decode_to_utf8_without_replacement(raw, &mut self.text[start..], self.is_done);
            self.text.truncate(start + written);
            self.consumed += used as u64;
            raw = &raw[used..];
            match result {
                DecoderResult::InputEmpty => return Ok(()),
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    let reason = format!("invalid {} before byte {}", self.name, self.consumed);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
            }
        }
    }
}

impl Read for Decoded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() && !self.is_done {
            self.fill()?;
        }
        let rest = &self.text[self.at..];
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// Text without its first lines.
struct SkippedLines {
    input: Box<dyn Read + Send>,
    left: u64,
}

impl Read for SkippedLines {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.input.read(into)?;
            if len == 0 || self.left == 0 {
                return Ok(len);
            }
            let mut end = len;
            for at in memchr_iter(b'\n', &into[..len]) {
                self.left -= 1;
                if self.left == 0 {
                    end = at + 1;
                    break;
                }
            }
            if end < len {
                into.copy_within(end..len, 0);
                return Ok(len - end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;

    use super::*;

    fn read(bytes: &[u8], encoding: &str, skip_lines: u64) -> io::Result<String> {
        let source = Arc::new(Memory::new("t.csv", bytes.to_vec()));
        let encoding = Some(by_name(encoding).unwrap());
        let (input, _) = text(source, Decoding { encoding, skip_lines, ..Decoding::default() })?;
        let mut out = String::new();
        // Small reads.
        io::BufReader::with_capacity(3, input).read_to_string(&mut out).map(|_| out)
    }

    #[test]
    fn encodings_are_decoded() {
        let all = "a,é\n日本,\u{1f600}\n".repeat(20_000);
        let wide: Vec<u16> = all.encode_utf16().collect();
        let little: Vec<u8> = wide.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = wide.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        assert!(read(&little, "utf-16", 0).unwrap() == all);
        assert!(read(&big, "utf-16be", 0).unwrap() == all);
        assert!(read(&little, "utf-16le", 39_999).unwrap() == "日本,\u{1f600}\n");
        let marked: Vec<u8> = [&[0xfe, 0xff], &big[..]].concat();
        assert!(read(&marked, "utf-16be", 0).unwrap() == all);
        assert_eq!(by_mark(&marked), Some(UTF_16BE));
        assert_eq!(read(b"caf\xe9\n", "latin1", 0).unwrap(), "café\n");
        assert_eq!(read(b"\x93\xfa\x96\x7b", "shift_jis", 0).unwrap(), "日本");
        for (bytes, encoding) in [(&little[..7], "utf-16"), (&b"a\xff\xff"[..], "shift_jis")] {
            assert_eq!(
                read(bytes, encoding, 0).unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{encoding}"
            );
        }
        assert!(by_name("nothing").is_none() && by_name("utf8") == Some(UTF_8));
    }

    #[test]
    fn lines_are_skipped() {
        let text = "1\n\n3\n4";
        for (skip, rest) in [(0, text), (1, "\n3\n4"), (2, "3\n4"), (3, "4"), (4, ""), (9, "")] {
            assert_eq!(read(text.as_bytes(), "utf-8", skip).unwrap(), rest, "{skip}");
        }
    }
}
