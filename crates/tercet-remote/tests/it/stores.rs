//! Reading objects of S3, Google Cloud Storage and Azure.

use tercet_core::ByteSource;
use tercet_testkit::server::Fault;

use super::*;

/// Settings that make the server an S3 endpoint.
pub(super) fn s3(server: &Server) -> RemoteOptions {
    settings([
        ("aws_endpoint_url", server.url("")),
        ("aws_access_key_id", "me".to_owned()),
        ("aws_secret_access_key", "geheim".to_owned()),
        ("aws_region", "eu-central-1".to_owned()),
    ])
}

fn settings<const N: usize>(settings: [(&str, String); N]) -> RemoteOptions {
    let mut options = RemoteOptions::default();
    options.settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
    options
}

#[test]
fn an_s3_object_is_read_with_range_requests() {
    let (server, bytes) = (Server::start(), content(1 << 20));
    server.put("/bucket/directory/a.tgm", &bytes);
    let remote = Remote::open("s3://bucket/directory/a.tgm", &s3(&server)).unwrap();
    assert_eq!((&**remote.name(), remote.len()), ("s3://bucket/directory/a.tgm", 1 << 20));
    assert_eq!(remote.read_at(span(100_001, 500_000)).unwrap(), bytes[100_001..600_001]);
    let requests = server.requests();
    let ranges: Vec<_> =
        requests.iter().map(|request| (request.method.as_str(), request.range.unwrap())).collect();
    assert_eq!(ranges, [("GET", (0, 8 * KIB)), ("GET", (100_001, 600_001))]);
    assert!(requests[1].header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 Credential=me/"));
    assert_eq!(requests[1].header("if-match"), Some("\"1\""));
}

#[test]
fn an_empty_object_is_empty() {
    let server = Server::start();
    server.put("/bucket/a", b"");
    assert!(Remote::open("s3://bucket/a", &s3(&server)).unwrap().is_empty());
}

#[test]
fn faulty_stores_are_handled_like_faulty_servers() {
    let (server, bytes) = (Server::start(), content(300_000));
    let mut options = s3(&server);
    assert_eq!(remote_error(Remote::open("s3://bucket/a", &options)), RemoteError::NotFound);
    server.put("/bucket/a", &bytes);
    let remote = Remote::open("s3://bucket/a", &options).unwrap();
    for fault in [Fault::Status(503), Fault::Truncated, Fault::Closed, Fault::Shorter] {
        server.next([Some(fault)]);
        assert_eq!(remote.read_at(span(100_000, 100_000)).unwrap(), bytes[100_000..200_000]);
    }
    options.retries = 0;
    let remote = Remote::open("s3://bucket/a", &options).unwrap();
    let mut output = Vec::new();
    let expected = [
        (Fault::Status(500), RemoteError::Status { status: 500 }),
        (Fault::Status(400), RemoteError::Status { status: 400 }),
        (Fault::Status(403), RemoteError::Denied { status: 403 }),
        (Fault::Shorter, RemoteError::Short { found: 50_000, expected: 100_000 }),
        (Fault::Endless, RemoteError::Long { expected: 100_000 }),
        (
            Fault::OtherRange,
            RemoteError::WrongRange { content_range: "bytes 99999-199999/300000".to_owned() },
        ),
        (Fault::NoRanges, RemoteError::NoRanges { limit: 0 }),
        (
            Fault::Redirect("http://127.0.0.2:1/?geheim".to_owned()),
            RemoteError::Redirected { host: "http://127.0.0.2:1".to_owned() },
        ),
    ];
    for (fault, expected) in expected {
        server.next([Some(fault.clone())]);
        let error = remote.read_at(span(100_000, 100_000)).unwrap_err();
        output.push(format!("{error} {error:?}\n"));
        assert_eq!(remote_error::<()>(Err(error)), expected, "{fault:?}");
    }
    server.put("/bucket/a", &bytes);
    assert_eq!(remote_error(remote.read_at(span(100_000, 100_000))), RemoteError::Changed);
    output.push(format!("{remote:?} {options:?}"));
    let output = output.join("\n");
    assert!(!output.contains("geheim") && !output.contains("Signature"), "{output}");
}

#[test]
fn google_and_azure_objects_are_read() {
    let (server, bytes) = (Server::start(), content(300_000));
    server.put("/box/a.tgm", &bytes);
    let key = format!(
        r#"{{"gcs_base_url": "{}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}"#,
        server.url("")
    );
    let google = settings([("google_service_account_key", key)]);
    let azure = settings([
        ("azure_storage_account_name", "me".to_owned()),
        ("azure_storage_endpoint", server.url("")),
        ("azure_skip_signature", "true".to_owned()),
    ]);
    for (url, options) in [("gs://box/a.tgm", &google), ("az://box/a.tgm", &azure)] {
        server.clear_requests();
        let remote = Remote::open(url, options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(remote.read_at(span(100_001, 100_000)).unwrap(), bytes[100_001..200_001], "{url}");
        assert_eq!(server.requests().len(), 2, "{url}");
        assert_eq!(
            remote_error(Remote::open(&url.replace("a.tgm", "b.tgm"), options)),
            RemoteError::NotFound
        );
    }
}

#[test]
fn incomplete_settings_are_an_error() {
    let server = Server::start();
    let mut options = s3(&server);
    options.settings.retain(|(name, _)| name != "aws_secret_access_key");
    let error = remote_error(Remote::open("s3://bucket/a", &options));
    assert!(matches!(error, RemoteError::Configuration { .. }), "{error:?}");
    assert_eq!(server.requests(), []);
}
