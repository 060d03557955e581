//! Uploads to object stores.

use std::io::Write as _;

use tercet_core::{Class, Diagnostic};
use tercet_remote::Upload;
use tercet_testkit::server::Fault;

use super::stores::s3;
use super::*;

const OBJECT: &str = "s3://bucket/a.tgm";
const PATH: &str = "/bucket/a.tgm";

fn methods(server: &Server) -> Vec<String> {
    let methods = server.requests().into_iter().map(|request| request.method).collect();
    server.clear_requests();
    methods
}

#[test]
fn a_small_object_is_one_put() {
    let server = Server::start();
    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    upload.write_all(b"hello, ").unwrap();
    upload.write_all(b"world").unwrap();
    assert_eq!(server.file(PATH), None);
    assert_eq!(upload.finish().unwrap(), 12);
    assert_eq!(server.file(PATH).unwrap(), b"hello, world");
    // Existence check, upload, length check.
    assert_eq!(methods(&server), ["HEAD", "PUT", "HEAD"]);

    let error = Upload::create(OBJECT, &s3(&server), false).unwrap_err();
    assert_eq!((error.kind(), error.class()), (&RemoteError::Exists, Class::Request));
    let mut upload = Upload::create(OBJECT, &s3(&server), true).unwrap();
    upload.write_all(b"again").unwrap();
    upload.finish().unwrap();
    assert_eq!(server.file(PATH).unwrap(), b"again");
}

#[test]
fn a_concurrent_object_is_not_overwritten() {
    let server = Server::start();
    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    upload.write_all(b"late").unwrap();
    server.put(PATH, b"early");
    assert_eq!(upload.finish().unwrap_err().kind(), &RemoteError::Exists);
    assert_eq!(server.file(PATH).unwrap(), b"early");
}

#[test]
fn an_empty_object_is_uploaded() {
    let server = Server::start();
    assert_eq!(Upload::create(OBJECT, &s3(&server), false).unwrap().finish().unwrap(), 0);
    assert_eq!(server.file(PATH).unwrap(), b"");
}

#[test]
fn a_large_object_is_a_multipart_upload() {
    let (server, bytes) = (Server::start(), content(20 << 20));
    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    bytes.chunks(1_000_003).for_each(|piece| upload.write_all(piece).unwrap());
    assert_eq!((server.file(PATH), server.open_uploads()), (None, 1));
    assert_eq!(upload.finish().unwrap(), 20 << 20);
    assert!(server.file(PATH).unwrap() == bytes);
    assert_eq!(server.open_uploads(), 0);
    let mut parts: Vec<u64> = server
        .requests()
        .iter()
        .filter(|request| request.method == "PUT")
        .map(|request| request.received)
        .collect();
    parts.sort_unstable();
    assert_eq!(parts, [4 << 20, 8 << 20, 8 << 20]);
}

#[test]
fn the_last_part_is_never_empty() {
    let (server, bytes) = (Server::start(), content(16 << 20));
    for len in [8 << 20, 16 << 20] {
        let mut upload = Upload::create(OBJECT, &s3(&server), true).unwrap();
        upload.write_all(&bytes[..len]).unwrap();
        upload.finish().unwrap();
        assert!(server.file(PATH).unwrap() == bytes[..len]);
        assert!(
            server.requests().iter().all(|request| request.method != "PUT" || request.received == 8 << 20)
        );
    }
}

#[test]
fn dropped_uploads_are_aborted() {
    let (server, bytes) = (Server::start(), content(9 << 20));
    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    upload.write_all(&bytes).unwrap();
    assert_eq!(server.open_uploads(), 1);
    drop(upload);
    assert_eq!((server.file(PATH), server.open_uploads()), (None, 0));

    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    upload.write_all(&bytes).unwrap();
    upload.abort();
    assert_eq!((server.file(PATH), server.open_uploads()), (None, 0));
}

#[test]
fn transient_errors_of_parts_are_retried() {
    let (server, bytes) = (Server::start(), content(9 << 20));
    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    // The next request starts the upload, the second one sends a part.
    server.next([None, Some(Fault::Status(503))]);
    upload.write_all(&bytes).unwrap();
    upload.finish().unwrap();
    assert!(server.file(PATH).unwrap() == bytes);
}

#[test]
fn permanent_errors_of_parts_abort() {
    let (server, bytes) = (Server::start(), content(40 << 20));
    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    server.next([None, Some(Fault::Status(400))]);
    let written = upload.write_all(&bytes);
    if let Err(error) = &written {
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<tercet_core::Error<RemoteError>>())
            .unwrap();
        assert_eq!((inner.location(), inner.kind()), (OBJECT, &RemoteError::Status { status: 400 }));
        assert!(upload.write_all(b"more").is_err(), "a failed upload accepts no more bytes");
    }
    let error = upload.finish().unwrap_err();
    assert_eq!(error.kind(), &RemoteError::Status { status: 400 });
    assert_eq!((server.file(PATH), server.open_uploads()), (None, 0));
}

#[test]
fn multipart_uploads_do_not_overwrite_a_concurrent_object() {
    let (server, bytes) = (Server::start(), content(9 << 20));
    let mut upload = Upload::create(OBJECT, &s3(&server), false).unwrap();
    upload.write_all(&bytes).unwrap();
    server.put(PATH, b"early");
    assert_eq!(upload.finish().unwrap_err().kind(), &RemoteError::Exists);
    assert_eq!((server.file(PATH).unwrap(), server.open_uploads()), (b"early".to_vec(), 0));
}

#[test]
fn uploads_to_web_servers_are_refused() {
    let server = Server::start();
    let error = Upload::create(&server.url("/a?token=geheim"), &RemoteOptions::default(), true).unwrap_err();
    assert_eq!((error.kind(), error.class()), (&RemoteError::NotWritable, Class::Request));
    assert!(error.hint().is_some() && !format!("{error} {error:?}").contains("geheim"));
    assert_eq!(server.requests(), []);
}
