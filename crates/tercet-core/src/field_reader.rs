//! A cursor over untrusted bytes; every read names its field.

use crate::{Malformed, Reason, Region, Site, Span};

/// Reads the fields of one region in order; every error has its [`Site`].
///
/// ```
/// use tercet_core::{FieldReader, Region};
///
/// #[derive(Clone, Copy, Debug)]
/// struct Header;
/// impl std::fmt::Display for Header {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         f.write_str("header")
///     }
/// }
/// impl Region for Header {}
///
/// let mut fields = FieldReader::new(Header, 100, b"TETR\x01\0");
/// fields.magic("magic", b"TETR").unwrap();
/// let error = fields.u32_le("version").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "malformed header › version (bytes 104..108)\n  needs 4 bytes, but only 2 are available"
/// );
/// ```
#[derive(Clone, Debug)]
pub struct FieldReader<'a, R> {
    region: R,
    base: u64,
    bytes: &'a [u8],
    at: usize,
}

macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $from:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, field: &'static str) -> Result<$type, Malformed<R>> {
            let bytes = self.array(field)?;
            Ok(<$type>::$from(bytes))
        }
    )*};
}

impl<'a, R: Region> FieldReader<'a, R> {
    /// A cursor over `bytes`, which start at offset `base` of the file.
    pub fn new(region: R, base: u64, bytes: &'a [u8]) -> Self {
        Self { region, base, bytes, at: 0 }
    }

    /// The file offset of the next field.
    pub fn position(&self) -> u64 {
        self.base.saturating_add(self.at as u64)
    }

    /// The number of bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The site of `len` bytes of a field that starts at the cursor.
    pub fn site_here(&self, field: &'static str, len: u64) -> Site<R> {
        let span = Span::clamped(self.position(), len);
        Site { region: self.region, field, span }
    }

    /// An error of the field of `len` bytes that ends at the cursor.
    pub fn fault(&self, field: &'static str, len: u64, reason: Reason) -> Malformed<R> {
        let end = self.position();
        let start = end.saturating_sub(len);
        let span = Span::clamped(start, end - start);
        Malformed { site: Site { region: self.region, field, span }, reason }
    }

    /// The next `len` bytes.
    pub fn take(&mut self, field: &'static str, len: u64) -> Result<&'a [u8], Malformed<R>> {
        let have = self.remaining();
        let wanted = usize::try_from(len).ok().filter(|&wanted| wanted <= have);
        let Some(wanted) = wanted else {
            return Err(Malformed {
                site: self.site_here(field, len),
                reason: Reason::Truncated { need: len, have: have as u64 },
            });
        };
        let taken = &self.bytes[self.at..self.at + wanted];
        self.at += wanted;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed<R>> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(field, N as u64)?);
        Ok(out)
    }

    /// Skips `len` bytes.
    pub fn skip(&mut self, field: &'static str, len: u64) -> Result<(), Malformed<R>> {
        self.take(field, len).map(drop)
    }

    /// Bytes that must be exactly `expected`.
    pub fn magic(&mut self, field: &'static str, expected: &'static [u8]) -> Result<(), Malformed<R>> {
        let found = self.take(field, expected.len() as u64)?;
        if found == expected {
            return Ok(());
        }
        let reason = Reason::BadMagic { expected, found: found.to_vec() };
        Err(self.fault(field, expected.len() as u64, reason))
    }

    /// The next `len` bytes as a UTF-8 string.
    pub fn utf8(&mut self, field: &'static str, len: u64) -> Result<&'a str, Malformed<R>> {
        let bytes = self.take(field, len)?;
        std::str::from_utf8(bytes).map_err(|_| self.fault(field, len, Reason::NotUtf8))
    }

    integers! {
        /// A little-endian `u16`.
        u16_le: u16 = from_le_bytes;
        /// A little-endian `u32`.
        u32_le: u32 = from_le_bytes;
        /// A little-endian `u64`.
        u64_le: u64 = from_le_bytes;
        /// A big-endian `u16`.
        u16_be: u16 = from_be_bytes;
        /// A big-endian `u32`.
        u32_be: u32 = from_be_bytes;
        /// A big-endian `u64`.
        u64_be: u64 = from_be_bytes;
    }

    /// Ends the region; trailing bytes are an error.
    pub fn finish(self) -> Result<(), Malformed<R>> {
        let len = self.remaining() as u64;
        if len == 0 {
            return Ok(());
        }
        Err(Malformed { site: self.site_here("end", len), reason: Reason::Leftover { len } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Here;
    impl std::fmt::Display for Here {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("here")
        }
    }
    impl Region for Here {}

    #[test]
    fn every_failure_names_its_bytes() {
        let mut fields = FieldReader::new(Here, 10, &[1, 0, 0, 0, 9]);
        assert_eq!(fields.u32_le("count").unwrap(), 1);
        let error = fields.u64_le("offset").unwrap_err();
        assert_eq!(error.site.span, Span::at(14, 8).unwrap());
        assert_eq!(error.reason, Reason::Truncated { need: 8, have: 1 });
        let error = fields.finish().unwrap_err();
        assert_eq!(error.reason, Reason::Leftover { len: 1 });
    }

    #[test]
    fn huge_lengths_are_truncation_not_panic() {
        let mut fields = FieldReader::new(Here, u64::MAX - 2, &[0; 4]);
        let error = fields.take("name", u64::MAX).unwrap_err();
        assert_eq!(error.reason, Reason::Truncated { need: u64::MAX, have: 4 });
    }

    #[test]
    fn bad_magic_shows_both() {
        let error = FieldReader::new(Here, 0, b"RIFF").magic("magic", b"TETR").unwrap_err();
        assert_eq!(error.to_string(), "malformed here › magic (bytes 0..4)\n  expected `TETR`, found `RIFF`");
    }
}
