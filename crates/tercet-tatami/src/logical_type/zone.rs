//! Names of time zones.

use std::fmt;

/// The name of a time zone, as the source of a column has it: `UTC`, `Europe/Berlin`, `+02:00`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone {
    len: u8,
    name: [u8; Self::MAX_LEN],
}

impl Zone {
    /// The longest name in bytes. Names of the time zone database have up to 32.
    pub const MAX_LEN: usize = 39;

    /// UTC.
    pub const UTC: Self = {
        let mut name = [0; Self::MAX_LEN];
        name[0] = b'U';
        name[1] = b'T';
        name[2] = b'C';
        Self { len: 3, name }
    };

    /// A time zone; `None` for longer names.
    pub fn new(text: &str) -> Option<Self> {
        let mut name = [0; Self::MAX_LEN];
        name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { len: u8::try_from(text.len()).ok()?, name })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let bytes = self.name.get(..self.len.into()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_preserved() {
        for name in ["UTC", "+02:00", "America/Argentina/ComodRivadavia", "", &"z".repeat(Zone::MAX_LEN)] {
            assert_eq!(Zone::new(name).unwrap().as_str(), name);
        }
        assert_eq!(Zone::new(&"z".repeat(Zone::MAX_LEN + 1)), None);
        assert_eq!(Zone::new("UTC"), Some(Zone::UTC));
    }
}
