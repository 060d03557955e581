//! How many requests it takes to find messages and to fetch one object.

use std::time::{Duration, Instant};

use super::*;

/// A thousand messages of which number 500 is large: an object of 800 kB.
fn thousand(scene: &Scene, small: u32) {
    scene.dir.write("small.npy", npy(small));
    scene.ok("tgm create small.tgm --force --from t=small.npy --meta size=small");
    scene.ok("tgm create large.tgm --force --from t=t.npy --meta size=large");
    let (small, large) = (scene.dir.read("small.tgm"), scene.dir.read("large.tgm"));
    let bytes = [small.repeat(500), large, small.repeat(499)].concat();
    scene.dir.write("thousand.tgm", &bytes);
    scene.server.put("/thousand.tgm", &bytes);
}

fn array_of(scene: &Scene, address: &str) -> Vec<u8> {
    scene.ok(&format!("tgm extract {address} 500 -o - --as npy")).bytes
}

#[test]
fn a_thousand_messages_take_a_request_each_or_fewer() {
    let scene = Scene::new();
    let address = scene.server.url("/thousand.tgm");
    let expected = scene.dir.read("t.npy");
    // Small messages stand in one block together.
    thousand(&scene, 100);
    scene.traffic();
    assert!(scene.ok(&format!("tgm info {address}")).out.contains("Messages: 1000\n"));
    let (requests, bytes) = scene.traffic();
    assert!(requests <= 16, "{requests}");
    assert!(bytes <= scene.dir.read("thousand.tgm").len() as u64 + (64 << 10), "{bytes}");
    assert_eq!(array_of(&scene, &address), expected);
    assert!(scene.traffic().0 <= 20);
    // Of large ones the end and the next start are read together.
    thousand(&scene, 4000);
    scene.traffic();
    scene.ok(&format!("tgm info {address}"));
    let (requests, bytes) = scene.traffic();
    assert!(requests <= 1000 + 8, "{requests}");
    assert!(bytes <= 1000 * (32 << 10) + (128 << 10), "{bytes}");
}

/// With a catalogue the number of messages does not matter: the first block, which opens the file, the last bytes, and
/// the message.
#[test]
fn a_catalogue_makes_it_a_handful() {
    let scene = Scene::new();
    let address = scene.server.url("/thousand.tgm");
    thousand(&scene, 4000);
    scene.ok("tgm index thousand.tgm");
    scene.server.put("/thousand.tgm", &scene.dir.read("thousand.tgm"));
    scene.traffic();
    assert!(scene.ok(&format!("tgm info {address}")).out.contains("Messages: 1000\n"));
    let (requests, bytes) = scene.traffic();
    assert!(requests <= 3 && bytes <= 32 << 10, "{requests} requests, {bytes} bytes");
    let listed = scene.ok(&format!("tgm ls {address} -w size=large -p size"));
    assert_eq!(listed.out, "size\nlarge\n");
    let (requests, bytes) = scene.traffic();
    assert!(requests <= 4 && bytes <= 48 << 10, "{requests} requests, {bytes} bytes");
    assert_eq!(array_of(&scene, &address), scene.dir.read("t.npy"));
    let (requests, bytes) = scene.traffic();
    assert!(requests <= 8, "{requests} requests");
    assert!(bytes <= 800_000 + (64 << 10), "{bytes} bytes");
}

/// A file that grows at a server is followed.
#[test]
fn tail_follows_an_address() {
    let scene = Scene::new();
    let run = scene.dir.read("run.tgm");
    let one = run.len() / 3;
    scene.server.put("/grows.tgm", &run[..one + 100]);
    let words = format!(
        "tgm tail {}?key=secret -p step --until-count 3 --interval 0.05",
        scene.server.url("/grows.tgm")
    );
    let (program, words) = words.split_once(' ').unwrap();
    assert_eq!(program, "tgm");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tgm"));
    command.args(words.split_whitespace()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut tail = command.spawn().unwrap();
    let start = Instant::now();
    let looks = scene.server.requests().len() + 4;
    while scene.server.requests().len() < looks && start.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(tail.try_wait().unwrap().is_none(), "it waits for more");
    scene.server.put("/grows.tgm", &run);
    let output = tail.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    let steps: Vec<&str> = out.lines().filter_map(|line| line.split('\t').next_back()).collect();
    assert_eq!(steps.len(), 3 + usize::from(out.contains("step")), "{out}");
    assert!(steps.ends_with(&["0", "6", "12"]), "{out}");
    assert!(!out.contains("secret") && !err.contains("secret"));
}

/// A file that has grown again at every request is followed, and one that was replaced by another of its length is noticed.
#[test]
fn tail_follows_what_never_rests() {
    let scene = Scene::new();
    let run = scene.dir.read("run.tgm");
    let one = run.len() / 3;
    scene.server.put("/grows.tgm", &run[..one]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tgm"));
    let address = scene.server.url("/grows.tgm");
    command.args(["tail", &address, "-p", "step", "--until-count", "4", "--interval", "0.02"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut tail = command.spawn().unwrap();
    let start = Instant::now();
    let mut len = one;
    while len < run.len() {
        // A little more for every request, so that no two of them see the same file.
        let seen = scene.server.requests().len();
        len = (len + run.len() / 40).min(run.len());
        scene.server.put("/grows.tgm", &run[..len]);
        while scene.server.requests().len() == seen && start.elapsed() < Duration::from_mins(1) {
            assert!(tail.try_wait().unwrap().is_none(), "it follows on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let looks = scene.server.requests().len() + 6;
    while scene.server.requests().len() < looks && start.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let other = [&run[one..], &run[..one]].concat();
    assert_eq!(other.len(), run.len());
    scene.server.put("/grows.tgm", &other);
    let output = tail.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    assert!(err.contains("file was rewritten; reading from its start"), "{err}");
    let steps: Vec<&str> = out.lines().filter_map(|line| line.split('\t').next_back()).collect();
    assert!(steps.ends_with(&["0", "6", "12", "6"]), "{out}");
}

#[test]
fn an_address_without_a_file_is_not_followed() {
    let scene = Scene::new();
    let missing = scene.server.url("/missing.tgm");
    scene.refused(&format!("tgm tail --json {missing}"), 3, "add `--retry` to wait for it");
}
