//! The same documents in tantivy: one field of the same terms with their frequencies, four stored fields.

use std::path::Path;

use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::{Compressor, ZstdCompressor};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{DocAddress, Index, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, Term};

use super::corpus::Page;

/// Memory of its writer per thread, in bytes.
const MEMORY: usize = 1 << 30;

/// An open index.
pub struct Peer {
    searcher: Searcher,
    tokens: Field,
}

/// Bytes of an index.
pub struct Sizes {
    pub all: u64,
    /// Dictionary, postings and skips.
    pub inverted: u64,
    pub parts: serde_json::Value,
}

/// Our terms, for its writer.
#[derive(Clone, Default)]
struct Tokens {
    text: String,
    ends: Vec<usize>,
    token: Token,
}

struct Stream<'a> {
    tokens: &'a mut Tokens,
    next: usize,
}

impl Tokenizer for Tokens {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        self.text.clear();
        self.ends.clear();
        let Self { text: tokens, ends, .. } = self;
        tercet_tatami::search::analyze::tokenize(text.as_bytes(), |term| {
            tokens.push_str(term);
            ends.push(tokens.len());
        });
        self.token.reset();
        Stream { tokens: self, next: 0 }
    }
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        let Some(end) = self.tokens.ends.get(self.next) else { return false };
        let start = if self.next == 0 { 0 } else { self.tokens.ends[self.next - 1] };
        self.tokens.token.text.clear();
        self.tokens.token.text.push_str(&self.tokens.text[start..*end]);
        self.tokens.token.position = self.next;
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.tokens.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens.token
    }
}

impl Peer {
    /// Creates an index of one segment, in a directory that is emptied first.
    pub fn build(pages: &[Page], path: &Path, threads: usize) {
        let _ = std::fs::remove_dir_all(path);
        std::fs::create_dir_all(path).unwrap();
        let mut schema = Schema::builder();
        let stored = ["doc_id", "url", "title", "body"].map(|name| schema.add_text_field(name, STORED));
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("words")
            .set_index_option(IndexRecordOption::WithFreqs)
            .set_fieldnorms(true);
        let tokens = schema.add_text_field("words", TextOptions::default().set_indexing_options(indexing));
        let settings = IndexSettings {
            docstore_compression: Compressor::Zstd(ZstdCompressor { compression_level: Some(3) }),
            ..IndexSettings::default()
        };
        let index = Index::builder().schema(schema.build()).settings(settings).create_in_dir(path).unwrap();
        index.tokenizers().register("words", Tokens::default());
        let mut writer: IndexWriter = index.writer_with_num_threads(threads, threads * MEMORY).unwrap();
        for page in pages {
            let mut document = TantivyDocument::default();
            let values = [&page.id, &page.url, &page.title, &page.body];
            for (field, value) in stored.iter().zip(values) {
                document.add_text(*field, value);
            }
            for text in [&page.body, &page.title, &page.url] {
                document.add_text(tokens, text);
            }
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
        let segments = index.searchable_segment_ids().unwrap();
        if segments.len() > 1 {
            writer.merge(&segments).wait().unwrap();
        }
        writer.wait_merging_threads().unwrap();
    }

    /// Opens it.
    pub fn open(path: &Path) -> Self {
        let index = Index::open_in_dir(path).unwrap();
        let tokens = index.schema().get_field("words").unwrap();
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().unwrap();
        let searcher = reader.searcher();
        assert_eq!(searcher.segment_readers().len(), 1, "one segment");
        Self { searcher, tokens }
    }

    /// Size of the index files in bytes.
    pub fn sizes(&self, path: &Path) -> Sizes {
        let (mut all, mut inverted) = (0, 0);
        let mut parts = serde_json::Map::new();
        let id = self.searcher.segment_readers()[0].segment_id().uuid_string();
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let Some(suffix) = name.strip_prefix(&id) else { continue };
            let bytes = entry.metadata().unwrap().len();
            all += bytes;
            if matches!(suffix, ".term" | ".idx") {
                inverted += bytes;
            }
            parts.insert(suffix.to_owned(), bytes.into());
        }
        Sizes { all, inverted, parts: parts.into() }
    }

    /// A query for any of some terms.
    pub fn query(&self, tokens: &[String]) -> Box<dyn Query> {
        let one = |term: &String| -> Box<dyn Query> {
            let term = Term::from_field_text(self.tokens, term);
            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
        };
        if let [term] = tokens {
            return one(term);
        }
        Box::new(BooleanQuery::new(tokens.iter().map(|term| (Occur::Should, one(term))).collect()))
    }

    /// The ten best hits.
    pub fn search(&self, query: &dyn Query) -> Vec<(f32, DocAddress)> {
        self.searcher.search(query, &TopDocs::with_limit(10).order_by_score()).unwrap()
    }
}
