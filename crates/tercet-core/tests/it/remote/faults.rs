//! Servers that misbehave.

use tercet_core::{ByteSource, Class, Diagnose};
use tercet_testkit::server::Fault;

use super::*;

#[test]
fn a_server_without_ranges_sends_the_file_once() {
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
fn and_not_if_it_is_too_large() {
    let (server, _) = server(300_000);
    server.always(Fault::NoRanges);
    let mut options = RemoteOptions::default();
    options.whole_bytes = 299_999;
    let error = Remote::open(&server.url("/a.tgm"), &options).unwrap_err();
    assert_eq!(error.class(), Class::Limit);
    assert!(error.hint().unwrap().to_string().contains("download"));
    assert_eq!(trouble::<()>(Err(error)), RemoteError::NoRanges { limit: 299_999 });
    options.whole_bytes = 300_000;
    Remote::open(&server.url("/a.tgm"), &options).unwrap();
}

#[test]
fn what_breaks_for_a_moment_is_tried_again() {
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
fn and_given_up_after_a_while() {
    let expected = [
        (Fault::Status(503), RemoteError::Status { status: 503 }),
        (Fault::Shorter, RemoteError::Short { found: 50_000, expected: 100_000 }),
    ];
    for (fault, expected) in expected {
        let (server, _) = server(300_000);
        let mut options = RemoteOptions::default();
        options.retries = 1;
        let remote = Remote::open(&server.url("/a.tgm"), &options).unwrap();
        server.forget();
        server.always(fault);
        let error = remote.read_at(span(100_000, 100_000)).unwrap_err();
        assert_eq!((error.class(), Diagnose::span(&error)), (Class::Io, Some(span(100_000, 100_000))));
        assert_eq!(trouble::<()>(Err(error)), expected);
        assert_eq!(server.requests().len(), 2);
    }
    let (server, _) = server(300_000);
    let remote = Remote::open(&server.url("/a.tgm"), &once()).unwrap();
    server.always(Fault::Truncated);
    let error = remote.read_at(span(100_000, 100_000)).unwrap_err();
    assert!(matches!(trouble::<()>(Err(error)), RemoteError::Interrupted { .. }));
    // The server is as it was: so is the source.
    server.behave();
    remote.read_at(span(100_000, 100_000)).unwrap();
}

#[test]
fn never_more_than_asked_for() {
    let (server, _) = server(300_000);
    let remote = open(&server);
    server.forget();
    server.always(Fault::Endless);
    let error = trouble(remote.read_at(span(100_000, 100_000)));
    assert_eq!(error, RemoteError::Long { expected: 100_000 });
    assert_eq!(server.requests().len(), 1, "it would not be better the next time");
    assert!(matches!(trouble(Remote::open(&server.url("/a.tgm"), &once())), RemoteError::Long { .. }));
    server.behave();
    server.always(Fault::Endless);
    server.always(Fault::NoRanges);
    // Where the connection ends could be the end of the file, or not.
    assert_eq!(trouble(Remote::open(&server.url("/a.tgm"), &once())), RemoteError::NoLength);
}

#[test]
fn other_bytes_are_refused() {
    let (server, _) = server(300_000);
    let remote = open(&server);
    server.always(Fault::OtherRange);
    let error = trouble(remote.read_at(span(100_000, 100_000)));
    assert_eq!(error, RemoteError::OtherBytes { said: "bytes 99999-199999/300000".to_owned() });
}

#[test]
fn waiting_has_an_end() {
    for fault in [Fault::NoProgress, Fault::Hanging] {
        let (server, _) = server(300_000);
        server.always(fault);
        let error = Remote::open(&server.url("/a.tgm"), &impatient()).unwrap_err();
        assert_eq!(error.class(), Class::Io);
        assert_eq!(trouble::<()>(Err(error)), RemoteError::TimedOut { seconds: 0 });
    }
}

#[test]
fn nobody_there_is_told() {
    let address = {
        let (server, _) = server(10);
        server.url("/a.tgm")
    };
    let error = trouble(Remote::open(&address, &once()));
    assert!(matches!(error, RemoteError::Unreachable { .. } | RemoteError::Interrupted { .. }), "{error:?}");
}

#[test]
fn refusals_are_not_repeated() {
    let expected = [
        (404, RemoteError::NotFound),
        (401, RemoteError::Denied { status: 401 }),
        (403, RemoteError::Denied { status: 403 }),
        (400, RemoteError::Status { status: 400 }),
    ];
    for (status, expected) in expected {
        let (server, _) = server(10);
        server.always(Fault::Status(status));
        assert_eq!(trouble(Remote::open(&server.url("/a.tgm"), &RemoteOptions::default())), expected);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_replaced_file_is_never_mixed_with_the_old_one() {
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
        assert_eq!(trouble::<()>(Err(error)), RemoteError::Changed, "{faults:?}");
        assert_eq!(trouble(remote.read_at(span(100_000, 100_000))), RemoteError::Changed, "{faults:?}");
        assert_eq!(trouble(remote.read_many(&[span(100_000, 10)])), RemoteError::Changed, "{faults:?}");
        let sent = server.requests()[1].header("if-match").map(str::to_owned);
        assert_eq!(sent.is_some(), !faults.contains(&Fault::WeakTags) && !faults.contains(&Fault::TimesOnly));
    }
    // Nothing says which file it is, but another length is another file.
    let (server, bytes) = server(300_000);
    server.always(Fault::NoVersion);
    let remote = open(&server);
    server.put("/a.tgm", &bytes[..299_999]);
    assert_eq!(trouble(remote.read_at(span(100_000, 10))), RemoteError::Changed);
}

#[test]
fn addresses_signed_for_reading_need_nothing_else() {
    let (server, bytes) = server(300_000);
    server.always(Fault::HeadRefused);
    assert_eq!(open(&server).read_at(span(1, 299_999)).unwrap(), bytes[1..]);
}

#[test]
fn redirects_stay_at_the_server() {
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
    assert_eq!(trouble::<()>(Err(error)), RemoteError::Redirected { host: elsewhere.url("") });
    assert_eq!(elsewhere.requests(), []);

    here.behave();
    here.forget();
    here.always(Fault::Redirect("/a.tgm".to_owned()));
    let error = trouble(Remote::open(&here.url("/a.tgm"), &RemoteOptions::default()));
    assert_eq!(error, RemoteError::RedirectedTooOften { most: 5 });
    assert_eq!(here.requests().len(), 6);
}

#[test]
fn secrets_of_an_address_are_sent_and_never_told() {
    let (server, _) = server(300_000);
    let address = server.url("/a.tgm?token=geheim").replace("http://", "http://me:geheim@");
    let remote = Remote::open(&address, &RemoteOptions::default()).unwrap();
    assert_eq!(&**remote.name(), server.url("/a.tgm?…"));
    let request = &server.requests()[0];
    assert_eq!(
        (request.query.as_str(), request.header("authorization")),
        ("token=geheim", Some("Basic bWU6Z2VoZWlt"))
    );
    let mut told = vec![format!("{remote:?}")];
    for fault in [
        Fault::Status(500),
        Fault::Status(404),
        Fault::Closed,
        Fault::Truncated,
        Fault::NoProgress,
        Fault::Endless,
    ] {
        server.behave();
        let options = if fault == Fault::NoProgress { impatient() } else { once() };
        server.always(fault);
        let error = Remote::open(&address, &options).unwrap_err();
        let error = tercet_core::Error::new(remote.name().clone(), error);
        told.push(format!("{error} {error:?} {:?}", std::error::Error::source(&error)));
    }
    drop(server);
    let error = Remote::open(&address, &once()).unwrap_err();
    told.push(format!("{error} {error:?}"));
    let told = told.join("\n");
    assert!(!told.contains("geheim") && !told.contains("Z2VoZWlt"), "{told}");
}
