//! Provenance: when and by which program a message was written.

use crate::metadata::{ENCODER, Entry};
use crate::value::Value;

/// Whether a message records when and by which program it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Provenance {
    /// The current time, a new UUID and this library.
    Recorded,
    /// Not recorded.
    Off,
    /// A given stamp.
    Fixed(Box<Stamp>),
}

/// Without a clock and a source of random numbers, nothing is recorded.
impl Default for Provenance {
    fn default() -> Self {
        if cfg!(any(unix, windows)) { Self::Recorded } else { Self::Off }
    }
}

/// The provenance of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// `YYYY-MM-DDThh:mm:ssZ`.
    pub time: String,
    /// A version 4 UUID, lower case, with hyphens.
    pub uuid: String,
    /// The name of the program or library.
    pub encoder: String,
    /// Its version.
    pub version: String,
}

impl Stamp {
    /// The stamp of this library now; `SOURCE_DATE_EPOCH` sets the time.
    #[cfg(any(unix, windows))]
    pub fn now() -> Self {
        let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<i64>().ok());
        let fixed = fixed.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        let time = fixed.unwrap_or_else(jiff::Timestamp::now);
        Self::at(time, uuid::Uuid::new_v4().hyphenated().to_string())
    }

    /// The stamp of this library at a time in seconds since 1970, with a UUID.
    pub fn fixed(unix_seconds: i64, uuid: impl Into<String>) -> Self {
        Self::at(jiff::Timestamp::from_second(unix_seconds).unwrap_or_default(), uuid.into())
    }

    fn at(time: jiff::Timestamp, uuid: String) -> Self {
        Self {
            time: time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            uuid,
            encoder: ENCODER.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn entry(&self) -> Entry {
        let text = |text: &String| Value::from(text.as_str());
        let encoder: Entry =
            [("name".to_owned(), text(&self.encoder)), ("version".to_owned(), text(&self.version))].into();
        [
            ("time".to_owned(), text(&self.time)),
            ("uuid".to_owned(), text(&self.uuid)),
            ("encoder".to_owned(), Value::from(encoder)),
        ]
        .into()
    }
}

impl Provenance {
    /// The `_reserved_` section of a message.
    pub(crate) fn section(&self) -> Entry {
        match self {
            #[cfg(any(unix, windows))]
            Self::Recorded => Stamp::now().entry(),
            #[cfg(not(any(unix, windows)))]
            Self::Recorded => Entry::new(),
            Self::Off => Entry::new(),
            Self::Fixed(stamp) => stamp.entry(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_of_utc() {
        let stamp = Stamp::fixed(1_794_771_155, "976bf8a7-b57e-4bb9-b612-99ca8e251769");
        assert_eq!(stamp.time, "2026-11-15T19:32:35Z");
        let now = Stamp::now();
        assert_eq!((now.time.len(), now.uuid.len()), (20, 36));
        assert_ne!(now.uuid, Stamp::now().uuid);
    }
}
