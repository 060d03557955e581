//! How a file is written.

use crate::wire::ids::Codec;

/// Whom a file is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Readers that know everything this crate writes.
    #[default]
    Native,
    /// All readers of the format: no value dictionaries, symbol tables, lists or inline bounds.
    Interop,
}

/// How a file is written. The defaults are those of the native profile; see [`interop`](Self::interop).
///
/// ```
/// use tercet_tatami::{Profile, WriterOptions};
///
/// let options = WriterOptions::new().with_row_group_max_rows(10_000);
/// assert_eq!(options.profile, Profile::Native);
/// assert_eq!(WriterOptions::interop().page_max_bytes, 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Whom the file is for.
    pub profile: Profile,
    /// How payloads are compressed: [`Codec::None`], [`Codec::Lz4`] or [`Codec::Zstd`].
    pub codec: Codec,
    /// The level of Zstandard.
    pub level: i32,
    /// The most rows of a row group.
    pub row_group_max_rows: u64,
    /// Where a row group ends, in bytes before they are encoded.
    pub row_group_max_bytes: u64,
    /// The most rows of a page.
    pub page_max_values: u32,
    /// The most bytes of a page before it is encoded, unless one row has more; 0 for no bound.
    pub page_max_bytes: u32,
    /// The page size in the header; by default the maximum.
    pub page_size_hint: Option<u32>,
    /// The target size of a run of blob values. Longer runs compress better; single values take longer to read.
    pub blob_run_target_bytes: u64,
    /// The most values of a value dictionary.
    pub dictionary_max_values: u32,
    /// The most bytes of a value dictionary.
    pub dictionary_max_bytes: u32,
    /// Whether pages start with minimum and maximum.
    pub inline_bounds: bool,
    /// The UUID of the file.
    pub uuid: [u8; 16],
    /// When the file was made, in milliseconds since 1970.
    pub created_millis: u64,
    /// Who made it.
    pub creator_id: u32,
    /// Whether rows must be in the order of the sort key. A file that breaks the order is not searched rightly.
    pub require_sorted: bool,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Keys and values for the footer.
    pub metadata: Vec<(String, String)>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            profile: Profile::Native,
            codec: Codec::Zstd,
            level: tercet_codec::bytes::zstd::DEFAULT_LEVEL,
            row_group_max_rows: 131_072,
            row_group_max_bytes: 256 << 20,
            page_max_values: 65_536,
            page_max_bytes: 1 << 20,
            page_size_hint: None,
            blob_run_target_bytes: 4 << 20,
            dictionary_max_values: 65_536,
            dictionary_max_bytes: 1 << 20,
            inline_bounds: true,
            uuid: [0; 16],
            created_millis: 0,
            creator_id: 0,
            require_sorted: true,
            overwrite: false,
            metadata: Vec::new(),
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $field:ident = $kind:ty;)*) => {
        impl WriterOptions { $(
            $(#[$doc])*
            pub fn $name(mut self, $field: $kind) -> Self {
                self.$field = $field;
                self
            }
        )* }
    };
}

setters! {
    /// Sets how payloads are compressed.
    with_codec: codec = Codec;
    /// Sets the level of Zstandard.
    with_level: level = i32;
    /// Sets the most rows of a row group.
    with_row_group_max_rows: row_group_max_rows = u64;
    /// Sets where a row group ends, in bytes.
    with_row_group_max_bytes: row_group_max_bytes = u64;
    /// Sets the most rows of a page.
    with_page_max_values: page_max_values = u32;
    /// Sets the most bytes of a page.
    with_page_max_bytes: page_max_bytes = u32;
    /// Sets the page size in the header.
    with_page_size_hint: page_size_hint = Option<u32>;
    /// Sets where a run of blob values ends.
    with_blob_run_target_bytes: blob_run_target_bytes = u64;
    /// Sets the most values of a value dictionary.
    with_dictionary_max_values: dictionary_max_values = u32;
    /// Sets the most bytes of a value dictionary.
    with_dictionary_max_bytes: dictionary_max_bytes = u32;
    /// Sets whether pages start with their bounds.
    with_inline_bounds: inline_bounds = bool;
    /// Sets the UUID of the file.
    with_uuid: uuid = [u8; 16];
    /// Sets when the file was made.
    with_created_millis: created_millis = u64;
    /// Sets who made it.
    with_creator_id: creator_id = u32;
    /// Sets whether rows must be in the order of the sort key.
    with_require_sorted: require_sorted = bool;
    /// Sets whether an existing file is replaced.
    with_overwrite: overwrite = bool;
}

impl WriterOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The defaults of the interop profile.
    pub fn interop() -> Self {
        Self {
            profile: Profile::Interop,
            page_max_bytes: 0,
            blob_run_target_bytes: 1 << 20,
            inline_bounds: false,
            ..Self::default()
        }
    }

    /// Adds a key and a value.
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Whether the file may use native features.
    pub(crate) fn is_native(&self) -> bool {
        self.profile == Profile::Native
    }

    /// Whether pages start with their bounds.
    pub(crate) fn writes_bounds(&self) -> bool {
        self.is_native() && self.inline_bounds
    }

    /// The page size in the header.
    pub(crate) fn hint(&self) -> u32 {
        self.page_size_hint.unwrap_or(self.page_max_bytes)
    }
}
