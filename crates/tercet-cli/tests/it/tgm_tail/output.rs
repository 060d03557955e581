//! Output lines.

use super::{TestDir, message};

#[test]
fn lines_have_numbers_offsets_and_keys() {
    let dir = TestDir::new();
    dir.write("run.tgm", [message(0, 100), message(1, 200), message(2, 300)].concat());
    let result = dir.ok("tail run.tgm --no-follow -p step,missing");
    let (a, b, c) = (message(0, 100).len(), message(1, 200).len(), message(2, 300).len());
    let ab = a + b;
    assert_eq!(
        result.out,
        format!(
            "message\toffset\tlength\tobjects\tstep\tmissing\n0\t0\t{a}\t1\t0\tN/A\n1\t{a}\t{b}\t1\t1\tN/A\n\
             2\t{ab}\t{c}\t1\t2\tN/A\n"
        )
    );
    let result = dir.ok("tail run.tgm --no-follow -w step!=1 --json");
    assert_eq!(
        result.out,
        format!(
            "{{\"message\":0,\"offset\":0,\"length\":{a},\"objects\":1}}\n\
             {{\"message\":2,\"offset\":{ab},\"length\":{c},\"objects\":1}}\n"
        )
    );
    let result = dir.ok("tail run.tgm --no-follow -w step=1/2 --json -p step,missing -n 1");
    assert_eq!(
        result.out,
        format!("{{\"message\":1,\"offset\":{a},\"length\":{b},\"objects\":1,\"keys\":{{\"step\":1}}}}\n")
    );
}

/// Damage is reported with its offset, skipped, counted, and sets the exit code.
#[test]
fn damage_is_reported_and_skipped() {
    let dir = TestDir::new();
    let (first, mut second, third) = (message(0, 100), message(1, 100), message(2, 100));
    let at = second.windows(4).position(|four| four == [1, 8, 15, 22]).unwrap();
    second[at + 50] ^= 0x10;
    dir.write("bad.tgm", [&first[..], &second, b"junk", &third].concat());
    let result = dir.run("tail bad.tgm --no-follow --json -p step");
    assert_eq!(result.code, 1, "{}", result.err);
    let steps: Vec<&str> = result.out.lines().map(|line| line.split("step\":").nth(1).unwrap()).collect();
    assert_eq!(steps, ["0}}", "2}}"]);
    let start = first.len();
    assert!(result.out.lines().nth(1).unwrap().starts_with("{\"message\":2,"), "{}", result.out);
    assert!(result.err.contains("error: bad.tgm: message 1 › object 0 (bytes "), "{}", result.err);
    let passed = format!("\n  skipped the message at byte {start}\n");
    assert!(result.err.contains(&passed), "{}", result.err);
    let sum = "warning: bad.tgm: 1 damaged message, 0 unrecognized bytes\n";
    assert!(result.err.ends_with(sum), "{}", result.err);

    dir.write("junk.tgm", [&first[..], b"junk", &third].concat());
    let result = dir.run("tail junk.tgm --no-follow --json");
    assert_eq!((result.code, result.out.lines().count()), (1, 2), "{}", result.err);
    let end = start + 4;
    assert_eq!(
        result.err,
        format!(
            "warning: junk.tgm: unrecognized bytes {start}..{end}: not part of a message\n\
             warning: junk.tgm: 0 damaged messages, 4 unrecognized bytes\n"
        )
    );
}

#[test]
fn metadata_is_escaped_for_terminals() {
    let dir = TestDir::new();
    let mut metadata = tercet::tgm::GlobalMetadata::default();
    metadata.extra.insert("step".to_owned(), "a\u{1b}[2J\tb".into());
    dir.write("evil.tgm", tercet::tgm::encode_message(&metadata, &[], &super::options()).unwrap());
    for args in ["tail evil.tgm --no-follow -p step", "tail evil.tgm --no-follow -p step --json"] {
        let result = dir.ok(args);
        assert!(!result.out.contains('\u{1b}'), "{}", result.out);
        assert!(result.out.contains("u{1b}") || result.out.contains("\\u001b"), "{}", result.out);
    }
}
