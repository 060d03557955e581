//! What a client must not be able to do.

use std::time::{Duration, Instant};

use serde_json::json;
use tercet::tatami::search::{Document, SegmentBuilder, SegmentOptions};
use tercet_server::{Options, Token};

use crate::support::{Served, sample};

const SECRET: &str = "0123456789abcdef0123";

#[tokio::test]
async fn no_path_opens_a_file_that_is_not_listed() {
    let directory = sample();
    let outside = tempfile::tempdir().unwrap();
    crate::support::arrays(&outside.path().join("secret.tet"));
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.path().join("secret.tet"), directory.path().join("link.tet")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.path(), directory.path().join("way")).unwrap();
    let served = Served::new(directory.path());
    let files = served.json("/api/files").await;
    assert_eq!((&files["total"], &files["skipped"]), (&json!(4), &json!(1)), "{files}");
    // A listed file that becomes a link out of the directory is not followed.
    #[cfg(unix)]
    {
        let id = served.id("data/weather.tet").await;
        let path = directory.path().join("data/weather.tet");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret.tet"), &path).unwrap();
        for path in
            [format!("/api/tet/{id}"), format!("/api/files/{id}/raw"), format!("/api/files/{id}/verify")]
        {
            assert_eq!(served.get(&path).await.status.as_u16(), 404, "{path}");
        }
    }
    for id in [
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%2Fetc%2Fpasswd",
        "link.tet",
        "0000000000000000",
        "%00",
        "%ff",
    ] {
        for path in [
            format!("/api/files/{id}"),
            format!("/api/files/{id}/raw"),
            format!("/api/tet/{id}"),
            format!("/api/tet/{id}/t2m"),
        ] {
            let answer = served.get(&path).await;
            assert!(
                matches!(answer.status.as_u16(), 400 | 404),
                "{path}: {} {}",
                answer.status,
                answer.text()
            );
        }
    }
    for path in
        ["/..", "/assets/../Cargo.toml", "/index.html/..", "/app.js%00", "/assets/assets/app.js", "//app.js"]
    {
        assert_eq!(served.get(path).await.status.as_u16(), 404, "{path}");
    }
}

#[tokio::test]
async fn wrong_parameters_are_errors_and_never_ignored() {
    let directory = sample();
    let served = Served::new(directory.path());
    let (tet, table, tgm) = (
        served.id("data/weather.tet").await,
        served.id("cities.tatami").await,
        served.id("data/run.tgm").await,
    );
    let long = "x".repeat(5000);
    for path in [
        format!("/api/tet/{tet}/t2m?isle=lat=0"),
        format!("/api/tet/{tet}/t2m?isel=lat"),
        format!("/api/tet/{tet}/t2m?isel=lat=0&isel=lat=1"),
        format!("/api/tet/{tet}/t2m?isel=lat=99"),
        format!("/api/tet/{tet}/t2m?isel=lat=18446744073709551616"),
        format!("/api/tet/{tet}/t2m?isel=lat=::0"),
        format!("/api/tet/{tet}/t2m?sel=lat=abc"),
        format!("/api/tet/{tet}/t2m?op=meen"),
        format!("/api/tet/{tet}/t2m?over=lat"),
        format!("/api/tet/{tet}/t2m?format=f32&op=mean"),
        format!("/api/tet/{tet}/t2m?format=f32&max=0"),
        format!("/api/tet/{tet}/t2m?format=f32&max=1,2,3"),
        format!("/api/tet/{tet}/t2m?format=png"),
        format!("/api/tet/{tet}/t2m?format=png&isel=time=0&vmin=nan"),
        format!("/api/tet/{tet}/t2m?format=png&isel=time=0&axes=false&stretch=98,2"),
        format!("/api/tet/{tet}/t2m?format=exe"),
        format!("/api/tet/{tet}/t2m/chunks?verify=true&limit=100000"),
        format!("/api/tatami/{table}/rows?limit=10001"),
        format!("/api/tatami/{table}/rows?columns=nothing"),
        format!("/api/tatami/{table}/rows?where=people%20%3D"),
        format!("/api/tatami/{table}/rows?where={long}"),
        format!("/api/tgm/{tgm}/0/0?isel=7=0"),
        format!("/api/tgm/{tgm}/0/0?isel=lat=0"),
        format!("/api/tgm/{tgm}/0/0?isel=1=0..4"),
        format!("/api/tgm/{tgm}/0/0?isel=1=0..4&format=f32"),
        format!("/api/tgm/{tgm}/0/0?isel=1=0..4&format=npy"),
        format!("/api/tgm/{tgm}/0/0?isel=1=2..1"),
        format!("/api/tgm/{tgm}/0/0?isel=0=0..100000000000"),
        format!("/api/tgm/{tgm}/0/0?isel=0=0&isel=0=1"),
        format!("/api/tet/{tet}/t2m/chunks?isel=time=0..1000"),
        format!("/api/tet/{tet}/t2m/chunks?isel=time=2..1"),
        format!("/api/tet/{tet}/t2m/chunks?isel=time=1..1"),
        format!("/api/tet/{tet}/t2m/chunks?isel=time=0&isel=time=1"),
        "/api/search".to_owned(),
        "/api/search?q=a&limit=101".to_owned(),
        "/api/search?q=a&offset=10000".to_owned(),
        "/api/search?q=a&in=zzz".to_owned(),
        format!("/api/search?q={}", "a+".repeat(65)),
        format!("/search?q={}", "a+".repeat(65)),
        "/suggest?q=a&limit=0".to_owned(),
        "/api/files?limit=-1".to_owned(),
    ] {
        let answer = served.get(&path).await;
        let shown: String = path.chars().take(80).collect();
        assert!(matches!(answer.status.as_u16(), 400 | 404), "{shown}: {} {}", answer.status, answer.text());
        assert!(answer.json()["error"].as_str().is_some_and(|error| error.len() > 8), "{shown}");
        assert!(answer.header("content-type").starts_with("application/json"));
    }
}

#[tokio::test]
async fn results_have_limits() {
    let directory = sample();
    let mut options = Options::new();
    options.max_values = 5;
    options.max_rows = 5;
    let served = Served::with(directory.path(), options);
    let (tet, table) = (served.id("data/weather.tet").await, served.id("cities.tatami").await);
    let tgm = served.id("data/run.tgm").await;
    for path in [
        format!("/api/tet/{tet}/t2m"),
        format!("/api/tet/{tet}/t2m?format=npy"),
        format!("/api/tet/{tet}/t2m?isel=time=0&format=f32"),
        format!("/api/tatami/{table}/rows?limit=6"),
        format!("/api/tgm/{tgm}/0/0"),
        format!("/api/tgm/{tgm}/0/0?format=npy"),
        format!("/api/tgm/{tgm}/0/0?format=f32"),
    ] {
        assert_eq!(served.get(&path).await.status.as_u16(), 400, "{path}");
    }
    for path in [
        format!("/api/tet/{tet}/t2m?isel=time=0&format=f32&max=2"),
        format!("/api/tgm/{tgm}/0/0?isel=1=0..2"),
        format!("/api/tgm/{tgm}/0/0?format=f32&max=2"),
    ] {
        assert_eq!(served.get(&path).await.status.as_u16(), 200, "{path}");
    }
}

#[tokio::test]
async fn every_response_has_the_headers_of_a_careful_server() {
    let directory = sample();
    let served = Served::new(directory.path());
    for path in ["/", "/app.js", "/api/files", "/nope", "/search", "/healthz"] {
        let answer = served.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}");
        assert_eq!(answer.header("x-request-id").len(), 16, "{path}");
        assert!(answer.headers.get("access-control-allow-origin").is_none());
    }
    let given = served.send("GET", "/healthz", &[("x-request-id", "abc-1.2_3")]).await;
    assert_eq!(given.header("x-request-id"), "abc-1.2_3");
    let forged = served.send("GET", "/healthz", &[("x-request-id", "a b")]).await;
    assert_ne!(forged.header("x-request-id"), "a b");
}

#[tokio::test]
async fn other_names_of_the_server_are_refused() {
    let directory = sample();
    let served = Served::new(directory.path());
    for host in ["evil.example", "localhost.evil.example", "10.1.2.3:8080"] {
        let answer = served.send("GET", "/api/files", &[("host", host)]).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["code"]),
            (403, &json!("forbidden_host")),
            "{host}"
        );
    }
    assert_eq!(served.send("GET", "/healthz", &[("host", "10.1.2.3")]).await.status.as_u16(), 200);
    let named = Served::with(directory.path(), Options::new().with_hosts(vec!["data.example".to_owned()]));
    assert_eq!(named.send("GET", "/api/files", &[("host", "data.example")]).await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_token_is_required_if_there_is_one() {
    let directory = sample();
    let served = Served::with(directory.path(), Options::new().with_token(Token::new(SECRET)));
    let bearer = format!("Bearer {SECRET}");
    for path in ["/api/files", "/api/info", "/search?q=memory", "/stats", "/metrics", "/openapi.json"] {
        let answer = served.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (401, "Bearer"), "{path}");
        let wrong = served.send("GET", path, &[("authorization", "Bearer 0123456789abcdef0124")]).await;
        assert_eq!(wrong.status.as_u16(), 401, "{path}");
        assert_eq!(
            served.send("GET", path, &[("authorization", &bearer)]).await.status.as_u16(),
            200,
            "{path}"
        );
    }
    for path in ["/", "/app.js", "/assets/app.css", "/healthz", "/readyz"] {
        assert_eq!(served.get(path).await.status.as_u16(), 200, "{path}");
    }
    // A cookie stands for the token.
    assert_eq!(served.send("POST", "/api/session", &[]).await.status.as_u16(), 401);
    let session = served.send("POST", "/api/session", &[("authorization", &bearer)]).await;
    assert_eq!(session.status.as_u16(), 204);
    let cookie = session.header("set-cookie").split(';').next().unwrap().to_owned();
    assert!(session.header("set-cookie").contains("HttpOnly; SameSite=Strict") && !cookie.contains(SECRET));
    let list = served.send("GET", "/api/files", &[("cookie", &format!("other=1; {cookie}"))]).await;
    assert_eq!(list.status.as_u16(), 200);
    assert_eq!(
        served.send("GET", "/api/files", &[("cookie", "tercet_session=abc")]).await.status.as_u16(),
        401
    );
    assert_eq!(served.send("POST", "/api/session", &[("cookie", &cookie)]).await.status.as_u16(), 401);
}

#[tokio::test]
async fn origins_are_opt_in() {
    let directory = sample();
    let options = Options::new().with_origins(vec!["https://a.example".to_owned()]);
    let served = Served::with(directory.path(), options);
    let answer = served.send("GET", "/api/files", &[("origin", "https://a.example")]).await;
    assert_eq!(answer.header("access-control-allow-origin"), "https://a.example");
    let other = served.send("GET", "/api/files", &[("origin", "https://b.example")]).await;
    assert!(other.headers.get("access-control-allow-origin").is_none());
    let preflight = served.send("OPTIONS", "/api/files", &[("origin", "https://a.example")]).await;
    assert_eq!(preflight.status.as_u16(), 204);
    assert!(preflight.header("access-control-allow-headers").contains("Authorization"));
}

#[tokio::test]
async fn at_capacity_requests_are_rejected() {
    let directory = sample();
    let served = Served::with(directory.path(), Options::new().with_max_in_flight(0));
    let answer = served.get("/search?q=memory").await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"));
    assert_eq!(answer.text(), "{\"error\":\"server at capacity, retry shortly\"}\n");
    assert_eq!(served.json("/stats").await["rejected"], 1);
    // What needs no work is answered.
    assert_eq!(served.get("/api/files").await.status.as_u16(), 200);
    // A wrong request is not worth a retry.
    assert_eq!(served.get("/search?k=3").await.status.as_u16(), 400);
}

#[tokio::test]
async fn a_deadline_ends_the_work() {
    let directory = sample();
    let served = Served::with(directory.path(), Options::new().with_timeout(std::time::Duration::ZERO));
    let tet = served.id("data/weather.tet").await;
    for path in [
        "/search?q=memory".to_owned(),
        "/api/search?q=memory".to_owned(),
        format!("/api/tet/{tet}/t2m?op=mean"),
        format!("/api/tet/{tet}/t2m?isel=time=0"),
    ] {
        let answer = served.get(&path).await;
        assert_eq!(answer.status.as_u16(), 504, "{path}: {}", answer.text());
        assert!(answer.text().contains("query exceeded the deadline"), "{path}");
    }
    assert_eq!(served.json("/stats").await["timed_out"], 4);
}

#[tokio::test]
async fn a_search_ends_soon_after_its_deadline() {
    let directory = tempfile::tempdir().unwrap();
    // Without positions, each text is read to look for the phrase.
    let options = SegmentOptions::new().with_positions(false);
    let mut builder = SegmentBuilder::create(directory.path().join("long.tatami"), options).unwrap();
    let body = "memory of the safety ".repeat(200);
    for number in 0..2000 {
        let url = format!("https://example.org/{number}");
        builder.add(&Document::new(&url, "Title").with_body(body.as_bytes())).unwrap();
    }
    builder.finish().unwrap();
    let path = "/api/search?q=%22safety+the+memory%22&highlight=0";
    let patient = Served::with(directory.path(), Options::new().with_timeout(Duration::from_mins(10)));
    // The shortest of some times: other processes take time, too.
    let mut took = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        assert_eq!(patient.json(path).await["matches"], 0);
        took = took.min(started.elapsed());
    }
    let served = Served::with(directory.path(), Options::new().with_timeout(took / 8));
    let mut late = Duration::MAX;
    for _ in 0..20 {
        // The first request opens the segment, which is done to the end.
        let is_open = served.json("/stats").await["cache_len"] == 1;
        let answer = served.get(path).await;
        let answered = Instant::now();
        while served.json("/stats").await["in_flight"] != 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if answer.status.as_u16() == 504 && is_open {
            late = late.min(answered.elapsed());
        }
        if late < took / 4 {
            return;
        }
    }
    panic!("the work goes on for {late:?} of {took:?}");
}

#[tokio::test]
async fn names_of_files_are_data() {
    let directory = tempfile::tempdir().unwrap();
    let name = "<img src=x onerror=alert(1)>&\u{2028}.tet";
    crate::support::arrays(&directory.path().join(name));
    let served = Served::new(directory.path());
    let answer = served.get("/api/files").await;
    assert!(!answer.text().contains('<') && !answer.text().contains('\u{2028}'), "{}", answer.text());
    assert_eq!(answer.json()["files"][0]["name"], name);
}
