//! Writer options.

use crate::wire::ids::Codec;

/// Output profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// All features; readable by Tercet.
    #[default]
    Native,
    /// Only features that other readers support: no value dictionaries, symbol tables, lists or page statistics.
    Interop,
}

/// Whether the header records when and by which program a file was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    /// A random UUID, the current time and the ID of this library, where the options set none. `SOURCE_DATE_EPOCH` replaces the
    /// clock; there is no UUID then, so that files are reproducible.
    #[default]
    Recorded,
    /// Only what the options set: equal rows make equal files.
    Off,
}

/// Writer options. The defaults are those of the native profile; see [`interop`](Self::interop).
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
    /// Output profile.
    pub profile: Profile,
    /// Codec of payloads: [`Codec::None`], [`Codec::Lz4`] or [`Codec::Zstd`].
    pub codec: Codec,
    /// Zstandard compression level.
    pub level: i32,
    /// Maximum rows per row group.
    pub row_group_max_rows: u64,
    /// Maximum bytes per row group, before encoding.
    pub row_group_max_bytes: u64,
    /// Maximum rows per page.
    pub page_max_values: u32,
    /// Maximum bytes per page before encoding, unless one row has more; 0 for no limit. The default is 1 MiB, 64 KiB in search segments.
    pub page_max_bytes: u32,
    /// Page size hint in the header; by default the maximum page size.
    pub page_size_hint: Option<u32>,
    /// Target size of blob runs. Longer runs compress better, but single values take longer to read. The default is 4 MiB, 192 KiB in
    /// search segments.
    pub blob_run_target_bytes: u64,
    /// Maximum values per value dictionary.
    pub dictionary_max_values: u32,
    /// Maximum bytes per value dictionary.
    pub dictionary_max_bytes: u32,
    /// Whether to write page statistics.
    pub inline_bounds: bool,
    /// Whether UUID, creation time and creator are recorded if they are not set.
    pub provenance: Provenance,
    /// File UUID; zero if it is not set.
    pub uuid: [u8; 16],
    /// Creation time in milliseconds since 1970; 0 if it is not set.
    pub created_millis: u64,
    /// Creator ID; 0 if it is not set.
    pub creator_id: u32,
    /// Whether to check that rows are sorted by the sort key. Lookups in an unsorted file return wrong results.
    pub require_sorted: bool,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Key-value pairs of the footer.
    pub metadata: Vec<(String, String)>,
}

/// Target size of the blob runs of documents.
const DOCUMENT_RUN_BYTES: u64 = 192 << 10;
/// Maximum bytes per page of the columns of documents.
const DOCUMENT_PAGE_BYTES: u32 = 64 << 10;

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            profile: Profile::Native,
            codec: Codec::Zstd,
            level: tercet_codec::bytes::zstd::DEFAULT_LEVEL,
            row_group_max_rows: 131_072,
            row_group_max_bytes: 128 << 20,
            page_max_values: 65_536,
            page_max_bytes: 1 << 20,
            page_size_hint: None,
            blob_run_target_bytes: 4 << 20,
            dictionary_max_values: 1 << 20,
            dictionary_max_bytes: 16 << 20,
            inline_bounds: true,
            provenance: Provenance::default(),
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
    /// Sets the codec of payloads.
    with_codec: codec = Codec;
    /// Sets the Zstandard compression level.
    with_level: level = i32;
    /// Sets the maximum rows per row group.
    with_row_group_max_rows: row_group_max_rows = u64;
    /// Sets the maximum bytes per row group.
    with_row_group_max_bytes: row_group_max_bytes = u64;
    /// Sets the maximum rows per page.
    with_page_max_values: page_max_values = u32;
    /// Sets the maximum bytes per page.
    with_page_max_bytes: page_max_bytes = u32;
    /// Sets the page size hint in the header.
    with_page_size_hint: page_size_hint = Option<u32>;
    /// Sets the target size of blob runs.
    with_blob_run_target_bytes: blob_run_target_bytes = u64;
    /// Sets the maximum values per value dictionary.
    with_dictionary_max_values: dictionary_max_values = u32;
    /// Sets the maximum bytes per value dictionary.
    with_dictionary_max_bytes: dictionary_max_bytes = u32;
    /// Sets whether to write page statistics.
    with_inline_bounds: inline_bounds = bool;
    /// Sets whether UUID, creation time and creator are recorded.
    with_provenance: provenance = Provenance;
    /// Sets the file UUID.
    with_uuid: uuid = [u8; 16];
    /// Sets the creation time.
    with_created_millis: created_millis = u64;
    /// Sets the creator ID.
    with_creator_id: creator_id = u32;
    /// Sets whether to check that rows are sorted by the sort key.
    with_require_sorted: require_sorted = bool;
    /// Sets whether an existing file is replaced.
    with_overwrite: overwrite = bool;
}

impl WriterOptions {
    /// The defaults of the native profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// The defaults of the interop profile. Like other writers, it records no provenance.
    pub fn interop() -> Self {
        Self {
            profile: Profile::Interop,
            row_group_max_bytes: 256 << 20,
            page_max_bytes: 0,
            blob_run_target_bytes: 1 << 20,
            inline_bounds: false,
            provenance: Provenance::Off,
            ..Self::default()
        }
    }

    /// The options of a search segment: a search reads single documents, so runs and pages are shorter than those of tables, unless
    /// other sizes than the defaults are set. A segment becomes about 5 % larger.
    pub(crate) fn for_documents(mut self) -> Self {
        let tables = Self::new();
        if self.is_native() && self.blob_run_target_bytes == tables.blob_run_target_bytes {
            self.blob_run_target_bytes = DOCUMENT_RUN_BYTES;
        }
        if self.is_native() && self.page_max_bytes == tables.page_max_bytes {
            self.page_max_bytes = DOCUMENT_PAGE_BYTES;
        }
        self
    }

    /// Adds a key-value pair to the footer.
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Whether the file may use native features.
    pub(crate) fn is_native(&self) -> bool {
        self.profile == Profile::Native
    }

    /// Whether page statistics are written.
    pub(crate) fn writes_bounds(&self) -> bool {
        self.is_native() && self.inline_bounds
    }

    /// The page size hint in the header.
    pub(crate) fn hint(&self) -> u32 {
        self.page_size_hint.unwrap_or(self.page_max_bytes)
    }
}
