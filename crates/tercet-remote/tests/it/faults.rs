//! Faulty servers.

use tercet_core::{ByteSource, Class, Diagnostic};
use tercet_testkit::server::Fault;

use super::*;

#[test]
fn a_server_without_ranges_sends_the_file_no_retries() {
    let (server, bytes) = server(300_000);
    server.always(Fault::NoRanges);
    let remote = open(&server);
    assert_eq!(remote.read_at(span(7, 200_000)).unwrap(), bytes[7..200_007]);
    assert_eq!(
        remote.read_many(&[span(9, 9), span(299_999, 1)]).unwrap(),
        [&bytes[9..18], &bytes[299_999..]]
    );
    assert_eq!(server.requests().len(), 1);
    assert!(remote.is_zero_copy() && !remote.is_remote());
}

#[test]
fn a_large_file_without_ranges_is_refused() {
    let (server, _) = server(300_000);
    server.always(Fault::NoRanges);
    let mut options = RemoteOptions::default();
    options.whole_bytes = 299_999;
    let error = Remote::open(&server.url("/a.tgm"), &options).unwrap_err();
    assert_eq!(error.class(), Class::Limit);
    assert!(error.hint().unwrap().to_string().contains("download"));
    assert_eq!(remote_error::<()>(Err(error)), RemoteError::NoRanges { limit: 299_999 });
    options.whole_bytes = 300_000;
    Remote::open(&server.url("/a.tgm"), &options).unwrap();
}

#[test]
fn transient_errors_are_retried() {
    for fault in [Fault::Truncated, Fault::Shorter, Fault::Closed, Fault::Status(500), Fault::Status(429)] {
        let (server, bytes) = server(300_000);
        server.next([Some(fault.clone()), Some(fault.clone())]);
        let remote = open(&server);
        assert_eq!(server.requests().len(), 3, "{fault:?}");
        server.next([Some(fault.clone())]);
        assert_eq!(remote.read_at(span(100_000, 100_000)).unwrap(), bytes[100_000..200_000], "{fault:?}");
        assert_eq!(server.requests().len(), 5, "{fault:?}");
    }
}

#[test]
fn retries_end() {
    let expected = [
        (Fault::Status(503), RemoteError::Status { status: 503 }),
        (Fault::Shorter, RemoteError::Short { found: 50_000, expected: 100_000 }),
    ];
    for (fault, expected) in expected {
        let (server, _) = server(300_000);
        let mut options = RemoteOptions::default();
        options.retries = 1;
        let remote = Remote::open(&server.url("/a.tgm"), &options).unwrap();
        server.clear_requests();
        server.always(fault);
        let error = remote.read_at(span(100_000, 100_000)).unwrap_err();
        assert_eq!((error.class(), Diagnostic::span(&error)), (Class::Io, Some(span(100_000, 100_000))));
        assert_eq!(remote_error::<()>(Err(error)), expected);
        assert_eq!(server.requests().len(), 2);
    }
    let (server, _) = server(300_000);
    let remote = Remote::open(&server.url("/a.tgm"), &no_retries()).unwrap();
    server.always(Fault::Truncated);
    let error = remote.read_at(span(100_000, 100_000)).unwrap_err();
    assert!(matches!(remote_error::<()>(Err(error)), RemoteError::Interrupted { .. }));
    // The source works again once the server does.
    server.clear_faults();
    remote.read_at(span(100_000, 100_000)).unwrap();
}

#[test]
fn longer_responses_are_refused() {
    let (server, _) = server(300_000);
    let remote = open(&server);
    server.clear_requests();
    server.always(Fault::Endless);
    let error = remote_error(remote.read_at(span(100_000, 100_000)));
    assert_eq!(error, RemoteError::Long { expected: 100_000 });
    assert_eq!(server.requests().len(), 1, "not retried");
    assert!(matches!(
        remote_error(Remote::open(&server.url("/a.tgm"), &no_retries())),
        RemoteError::Long { .. }
    ));
    server.clear_faults();
    server.always(Fault::Endless);
    server.always(Fault::NoRanges);
    // The end of the connection need not be the end of the file.
    assert_eq!(remote_error(Remote::open(&server.url("/a.tgm"), &no_retries())), RemoteError::NoLength);
}

#[test]
fn other_ranges_are_refused() {
    let (server, _) = server(300_000);
    let remote = open(&server);
    server.always(Fault::OtherRange);
    let error = remote_error(remote.read_at(span(100_000, 100_000)));
    assert_eq!(error, RemoteError::WrongRange { content_range: "bytes 99999-199999/300000".to_owned() });
}

#[test]
fn requests_time_out() {
    for fault in [Fault::NoResponse, Fault::Hanging] {
        let (server, _) = server(300_000);
        server.always(fault);
        let error = Remote::open(&server.url("/a.tgm"), &short_timeout()).unwrap_err();
        assert_eq!(error.class(), Class::Io);
        assert_eq!(remote_error::<()>(Err(error)), RemoteError::TimedOut { seconds: 0 });
    }
}

#[test]
fn connection_failures_are_reported() {
    let url = {
        let (server, _) = server(10);
        server.url("/a.tgm")
    };
    let error = remote_error(Remote::open(&url, &no_retries()));
    assert!(matches!(error, RemoteError::Unreachable { .. } | RemoteError::Interrupted { .. }), "{error:?}");
}

#[test]
fn permanent_errors_are_not_retried() {
    let expected = [
        (404, RemoteError::NotFound),
        (401, RemoteError::Denied { status: 401 }),
        (403, RemoteError::Denied { status: 403 }),
        (400, RemoteError::Status { status: 400 }),
    ];
    for (status, expected) in expected {
        let (server, _) = server(10);
        server.always(Fault::Status(status));
        assert_eq!(remote_error(Remote::open(&server.url("/a.tgm"), &RemoteOptions::default())), expected);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_replaced_file_is_an_error() {
    let ways = [vec![], vec![Fault::NoConditions], vec![Fault::WeakTags], vec![Fault::TimesOnly]];
    for faults in ways {
        let (server, bytes) = server(300_000);
        for fault in &faults {
            server.always(fault.clone());
        }
        let remote = open(&server);
        remote.read_at(span(0, 10)).unwrap();
        server.put("/a.tgm", &bytes.iter().map(|byte| !byte).collect::<Vec<u8>>());
        let error = remote.read_at(span(100_000, 10)).unwrap_err();
        assert!(error.hint().is_some());
        assert_eq!(remote_error::<()>(Err(error)), RemoteError::Changed, "{faults:?}");
        assert_eq!(remote_error(remote.read_at(span(100_000, 100_000))), RemoteError::Changed, "{faults:?}");
        assert_eq!(remote_error(remote.read_many(&[span(100_000, 10)])), RemoteError::Changed, "{faults:?}");
        let sent = server.requests()[1].header("if-match").map(str::to_owned);
        assert_eq!(sent.is_some(), !faults.contains(&Fault::WeakTags) && !faults.contains(&Fault::TimesOnly));
    }
    // Without a version, another length is another file.
    let (server, bytes) = server(300_000);
    server.always(Fault::NoVersion);
    let remote = open(&server);
    server.put("/a.tgm", &bytes[..299_999]);
    assert_eq!(remote_error(remote.read_at(span(100_000, 10))), RemoteError::Changed);
}

#[test]
fn presigned_urls_need_get_only() {
    let (server, bytes) = server(300_000);
    server.always(Fault::HeadRefused);
    assert_eq!(open(&server).read_at(span(1, 299_999)).unwrap(), bytes[1..]);
}

#[test]
fn redirects_stay_on_the_server() {
    let (here, bytes) = server(300_000);
    here.put("/b.tgm", &bytes);
    here.next([Some(Fault::Redirect("/b.tgm?again".to_owned()))]);
    assert_eq!(open(&here).read_at(span(5, 5)).unwrap(), bytes[5..10]);
    assert_eq!(here.requests()[1].path, "/b.tgm");

    let (elsewhere, _) = server(300_000);
    let there = elsewhere.url("/a.tgm?token=geheim").replace("http://", "http://me:geheim@");
    here.always(Fault::Redirect(there));
    let error = Remote::open(&here.url("/a.tgm"), &RemoteOptions::default()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("geheim"), "{error:?}");
    assert_eq!(remote_error::<()>(Err(error)), RemoteError::Redirected { host: elsewhere.url("") });
    assert_eq!(elsewhere.requests(), []);

    here.clear_faults();
    here.clear_requests();
    here.always(Fault::Redirect("/a.tgm".to_owned()));
    let error = remote_error(Remote::open(&here.url("/a.tgm"), &RemoteOptions::default()));
    assert_eq!(error, RemoteError::TooManyRedirects { max: 5 });
    assert_eq!(here.requests().len(), 6);
}

#[test]
fn credentials_are_sent_and_never_printed() {
    let (server, _) = server(300_000);
    let url = server.url("/a.tgm?token=geheim").replace("http://", "http://me:geheim@");
    let remote = Remote::open(&url, &RemoteOptions::default()).unwrap();
    assert_eq!(&**remote.name(), server.url("/a.tgm?…"));
    let request = &server.requests()[0];
    assert_eq!(
        (request.query.as_str(), request.header("authorization")),
        ("token=geheim", Some("Basic bWU6Z2VoZWlt"))
    );
    let mut output = vec![format!("{remote:?}")];
    for fault in [
        Fault::Status(500),
        Fault::Status(404),
        Fault::Closed,
        Fault::Truncated,
        Fault::NoResponse,
        Fault::Endless,
    ] {
        server.clear_faults();
        let options = if fault == Fault::NoResponse { short_timeout() } else { no_retries() };
        server.always(fault);
        let error = Remote::open(&url, &options).unwrap_err();
        let error = tercet_core::Error::new(remote.name().clone(), error);
        output.push(format!("{error} {error:?} {:?}", std::error::Error::source(&error)));
    }
    drop(server);
    let error = Remote::open(&url, &no_retries()).unwrap_err();
    output.push(format!("{error} {error:?}"));
    let output = output.join("\n");
    assert!(!output.contains("geheim") && !output.contains("Z2VoZWlt"), "{output}");
}
