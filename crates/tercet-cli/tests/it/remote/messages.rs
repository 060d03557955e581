//! Numbers of requests to list messages and to fetch one object.

use std::time::{Duration, Instant};

use super::*;

/// A thousand messages of which number 500 is large: an object of 800 kB.
fn thousand(fixture: &Fixture, small: u32) {
    fixture.dir.write("small.npy", npy(small));
    fixture.ok("tgm create small.tgm --force --from t=small.npy --meta size=small");
    fixture.ok("tgm create large.tgm --force --from t=t.npy --meta size=large");
    let (small, large) = (fixture.dir.read("small.tgm"), fixture.dir.read("large.tgm"));
    let bytes = [small.repeat(500), large, small.repeat(499)].concat();
    fixture.dir.write("thousand.tgm", &bytes);
    fixture.server.put("/thousand.tgm", &bytes);
}

fn array_of(fixture: &Fixture, url: &str) -> Vec<u8> {
    fixture.ok(&format!("tgm extract {url} 500 -o - --as npy")).bytes
}

#[test]
fn listing_messages_takes_at_most_one_request_each() {
    let fixture = Fixture::new();
    let url = fixture.server.url("/thousand.tgm");
    let expected = fixture.dir.read("t.npy");
    // Several small messages are in one block.
    thousand(&fixture, 100);
    fixture.traffic();
    assert!(fixture.ok(&format!("tgm info {url}")).out.contains("Messages: 1000\n"));
    let (requests, bytes) = fixture.traffic();
    assert!(requests <= 16, "{requests}");
    assert!(bytes <= fixture.dir.read("thousand.tgm").len() as u64 + (64 << 10), "{bytes}");
    assert_eq!(array_of(&fixture, &url), expected);
    assert!(fixture.traffic().0 <= 20);
    // The end of a large message and the start of the next one are read together.
    thousand(&fixture, 4000);
    fixture.traffic();
    fixture.ok(&format!("tgm info {url}"));
    let (requests, bytes) = fixture.traffic();
    assert!(requests <= 1000 + 8, "{requests}");
    assert!(bytes <= 1000 * (32 << 10) + (128 << 10), "{bytes}");
}

/// With an index the number of messages does not matter: the requests are the first block, the last bytes, and the
/// message.
#[test]
fn an_index_cuts_listing_to_a_few_requests() {
    let fixture = Fixture::new();
    let url = fixture.server.url("/thousand.tgm");
    thousand(&fixture, 4000);
    fixture.ok("tgm index thousand.tgm");
    fixture.server.put("/thousand.tgm", &fixture.dir.read("thousand.tgm"));
    fixture.traffic();
    assert!(fixture.ok(&format!("tgm info {url}")).out.contains("Messages: 1000\n"));
    let (requests, bytes) = fixture.traffic();
    assert!(requests <= 3 && bytes <= 32 << 10, "{requests} requests, {bytes} bytes");
    let listed = fixture.ok(&format!("tgm ls {url} -w size=large -p size"));
    assert_eq!(listed.out, "size\nlarge\n");
    let (requests, bytes) = fixture.traffic();
    assert!(requests <= 4 && bytes <= 48 << 10, "{requests} requests, {bytes} bytes");
    assert_eq!(array_of(&fixture, &url), fixture.dir.read("t.npy"));
    let (requests, bytes) = fixture.traffic();
    assert!(requests <= 8, "{requests} requests");
    assert!(bytes <= 800_000 + (64 << 10), "{bytes} bytes");
}

/// `tail` follows a remote file that grows.
#[test]
fn tail_follows_a_url() {
    let fixture = Fixture::new();
    let run = fixture.dir.read("run.tgm");
    let one = run.len() / 3;
    fixture.server.put("/grows.tgm", &run[..one + 100]);
    let args = format!(
        "tgm tail {}?key=secret -p step --until-count 3 --interval 0.05",
        fixture.server.url("/grows.tgm")
    );
    let (program, args) = args.split_once(' ').unwrap();
    assert_eq!(program, "tgm");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tgm"));
    command.args(args.split_whitespace()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut tail = command.spawn().unwrap();
    let start = Instant::now();
    let looks = fixture.server.requests().len() + 4;
    while fixture.server.requests().len() < looks && start.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(tail.try_wait().unwrap().is_none(), "it waits for more");
    fixture.server.put("/grows.tgm", &run);
    let output = tail.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    let steps: Vec<&str> = out.lines().filter_map(|line| line.split('\t').next_back()).collect();
    assert_eq!(steps.len(), 3 + usize::from(out.contains("step")), "{out}");
    assert!(steps.ends_with(&["0", "6", "12"]), "{out}");
    assert!(!out.contains("secret") && !err.contains("secret"));
}

/// `tail` follows a file that grows at every request, and detects a replacement of equal length.
#[test]
fn tail_follows_a_file_that_grows_all_the_time() {
    let fixture = Fixture::new();
    let run = fixture.dir.read("run.tgm");
    let one = run.len() / 3;
    fixture.server.put("/grows.tgm", &run[..one]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tgm"));
    let url = fixture.server.url("/grows.tgm");
    command.args(["tail", &url, "-p", "step", "--until-count", "4", "--interval", "0.02"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut tail = command.spawn().unwrap();
    let start = Instant::now();
    let mut len = one;
    while len < run.len() {
        // The file grows before every request, so that no two requests see the same length.
        let seen = fixture.server.requests().len();
        len = (len + run.len() / 40).min(run.len());
        fixture.server.put("/grows.tgm", &run[..len]);
        while fixture.server.requests().len() == seen && start.elapsed() < Duration::from_mins(1) {
            assert!(tail.try_wait().unwrap().is_none(), "it follows on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let looks = fixture.server.requests().len() + 6;
    while fixture.server.requests().len() < looks && start.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let other = [&run[one..], &run[..one]].concat();
    assert_eq!(other.len(), run.len());
    fixture.server.put("/grows.tgm", &other);
    let output = tail.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    assert!(err.contains("file was rewritten; reading from its start"), "{err}");
    let steps: Vec<&str> = out.lines().filter_map(|line| line.split('\t').next_back()).collect();
    assert!(steps.ends_with(&["0", "6", "12", "6"]), "{out}");
}

#[test]
fn tail_of_a_missing_url_is_an_error() {
    let fixture = Fixture::new();
    let missing = fixture.server.url("/missing.tgm");
    fixture.refused(&format!("tgm tail --json {missing}"), 3, "add `--retry` to wait for it");
}
