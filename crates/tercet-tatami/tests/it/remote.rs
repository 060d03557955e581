//! Remote files on a loopback server: the same rows, with few requests.

use std::io::{BufRead as _, BufReader, Cursor, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use bytes::Bytes;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, SourceError, Span};
use tercet_tatami::search::{Query, Ranking, SearchOptions};
use tercet_tatami::{Column, Field, File, ReadOptions, Scalar, Schema, Type, Values, Writer, WriterOptions};
use tercet_testkit::server::Server;

/// A source without a cache: one request per read.
#[derive(Debug)]
struct Plain {
    name: Arc<str>,
    port: u16,
    len: u64,
}

impl ByteSource for Plain {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        if span.is_empty() {
            return Ok(Bytes::new());
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (first, last) = (span.start(), span.end() - 1);
        write!(
            stream,
            "GET {} HTTP/1.1\r\nHost: localhost\r\nRange: bytes={first}-{last}\r\nConnection: close\r\n\r\n",
            self.name
        )
        .unwrap();
        // Servers keep connections open: the length ends the body.
        let mut answer = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(answer.read_line(&mut head).unwrap() > 0, "no more than {head}");
        }
        assert!(head.starts_with("HTTP/1.1 206"), "{head}");
        let mut body = vec![0; span.len_usize().unwrap()];
        answer.read_exact(&mut body).unwrap();
        Ok(Bytes::from(body))
    }

    fn is_remote(&self) -> bool {
        true
    }
}

const ROWS: u64 = 200_000;

/// The value of a row: incompressible noise.
fn noise(row: u64) -> u64 {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// Two row groups of three columns; chunks of about 700 kB with a hundred pages each.
fn written() -> Vec<u8> {
    let fields = vec![
        Field::new("key", Type::UInt64).with_sort_key(),
        Field::new("noise", Type::UInt64),
        Field::new("body", Type::BlobRef),
    ];
    let columns = [
        Column::new(Values::UInt64((0..ROWS).map(|row| row * 1000 + noise(row) % 1000).collect())),
        Column::new(Values::UInt64((0..ROWS).map(noise).collect())),
        Column::new(Values::Bytes((0..ROWS).map(|row| format!("{:x}", noise(row))).collect())),
    ];
    let options = WriterOptions::new().with_level(1).with_page_max_values(1000);
    let mut writer = Writer::new(Cursor::new(Vec::new()), Schema::new(fields).unwrap(), options).unwrap();
    writer.append(&columns).unwrap();
    writer.finish().unwrap().output
}

/// Requests and bytes since the last call.
fn traffic(server: &Server) -> (usize, u64) {
    let requests = server.requests();
    server.clear_requests();
    (requests.len(), requests.iter().map(|request| request.sent).sum())
}

/// A word of a large remote segment: opening and searching.
#[test]
fn a_word_takes_few_requests() {
    let bytes = super::access::built(40_000, 100_000, WriterOptions::new());
    let server = Server::start();
    server.put("/s.tatami", &bytes);
    let source = Plain { name: "/s.tatami".into(), port: server.port(), len: bytes.len() as u64 };
    let file = File::from_source(Arc::new(source), ReadOptions::new()).unwrap();
    let segment = file.segment().unwrap().unwrap();
    let local = File::from_bytes("near", bytes.clone()).unwrap().segment().unwrap().unwrap();
    let (opening, sent_by_opening) = traffic(&server);
    assert!(opening <= 3 && sent_by_opening < 160 << 10, "{opening} requests, {sent_by_opening} bytes");
    for (word, ranking) in [("w3e8", Ranking::Relevance), ("w0", Ranking::Bm25), ("w5a5a", Ranking::Native)] {
        let (query, options) = (Query::terms(word), SearchOptions::new(10).with_ranking(ranking));
        let found = segment.find(&query, &options).unwrap();
        assert_eq!(found.hits, local.find(&query, &options).unwrap().hits);
        assert!(!found.hits.is_empty(), "{word}");
        let (requests, sent) = traffic(&server);
        assert!(opening + requests <= 10, "{word}: {requests} requests");
        assert!(sent_by_opening + sent <= 1 << 20, "{word}: {sent} of {} bytes", bytes.len());
    }
}

/// The stored fields and texts of hits in a large remote segment: pages are found without a request for each page header.
#[cfg(feature = "remote")]
#[test]
fn hits_take_few_requests() {
    let bytes = super::access::built(40_000, 100_000, WriterOptions::new());
    let server = Server::start();
    server.put("/s.tatami", &bytes);
    let local = File::from_bytes("near", bytes).unwrap().segment().unwrap().unwrap();
    let pages: usize = (0..3).map(|column| local.file().pages(0, column).unwrap().len()).sum();
    assert!(pages > 40, "{pages} pages");
    let query = Query::terms("w3e8");
    let options = SearchOptions::new(10).with_ranking(Ranking::Relevance);
    for hits in [1, 10] {
        let file = File::open(server.url("/s.tatami")).unwrap();
        let segment = file.segment().unwrap().unwrap();
        let found = segment.find(&query, &options).unwrap();
        let (finding, _) = traffic(&server);
        let documents: Vec<u32> = found.hits.iter().take(hits).map(|hit| hit.document).collect();
        assert_eq!(documents.len(), hits);
        assert_eq!(segment.documents(&documents).unwrap(), local.documents(&documents).unwrap());
        let (fields, sent) = traffic(&server);
        // A page of each column for each hit, and the headers of all.
        assert!(fields <= 3 * hits + 1, "{fields} requests for the fields of {hits} hits");
        assert!(sent <= (hits as u64 + 1) << 18, "{sent} bytes for the fields of {hits} hits");
        let of = |segment: &tercet_tatami::search::Segment| -> Vec<Vec<u8>> {
            segment.texts(&documents).unwrap().iter().map(<[u8]>::to_vec).collect()
        };
        assert_eq!(of(&segment), of(&local));
        let (texts, _) = traffic(&server);
        assert!(texts <= hits + 3, "{texts} requests for the texts of {hits} hits");
        let all = finding + fields + texts;
        assert!(all <= if hits == 1 { 15 } else { 30 }, "{finding} + {fields} + {texts} requests");
    }
}

#[test]
fn few_requests_are_enough() {
    let bytes = written();
    let local = File::from_source(Arc::new(Memory::new("near", bytes.clone())), ReadOptions::new()).unwrap();
    assert!(local.pages(0, 1).unwrap().len() > 100);
    let server = Server::start();
    server.put("/a.tatami", &bytes);

    let source = Plain { name: "/a.tatami".into(), port: server.port(), len: bytes.len() as u64 };
    let remote = File::from_source(Arc::new(source), ReadOptions::new()).unwrap();
    let (requests, sent) = traffic(&server);
    assert!(requests <= 2, "opening: {requests} requests");
    assert!(sent <= 80 << 10, "opening: {sent} bytes");

    assert_eq!(remote.read_column(1).unwrap(), local.read_column(1).unwrap());
    let (requests, sent) = traffic(&server);
    assert!(requests <= 4, "a column: {requests} requests, two row groups and a dictionary");
    let stored: u64 = local.footer().groups.iter().map(|group| group.total_bytes).sum();
    assert!(sent < stored, "{sent} of {stored} bytes");

    let key = 150_000 * 1000 + noise(150_000) % 1000;
    let found = remote.lookup(&Scalar::UInt64(key)).unwrap().unwrap();
    assert_eq!(found.row, 150_000);
    let (requests, sent) = traffic(&server);
    assert!(requests <= 6, "a lookup: {requests} requests");
    assert!(sent <= 1200 << 10, "a lookup: {sent} bytes");
    remote.lookup(&Scalar::UInt64(key + 3_000_000)).unwrap();
    let (requests, sent) = traffic(&server);
    assert!(requests <= 1, "a lookup in the same row group: {requests} requests");
    assert!(sent <= 64 << 10, "a lookup in the same row group: {sent} bytes");

    assert_eq!(remote.take(&[150_000], &[2]).unwrap(), local.take(&[150_000], &[2]).unwrap());
    let (requests, _) = traffic(&server);
    assert!(requests <= 6, "one blob: {requests} requests");
}
