//! Damaged, torn and hostile manifests.

use std::fs;

use tercet_core::{Class, Diagnostic as _};
use tercet_tatami::collection::log::{self, Record, Replay};
use tercet_tatami::collection::{MANIFEST, ManifestWarning, Member};
use tercet_tatami::{Collection, ErrorKind, File};
use tercet_testkit::damage::{for_each_flip, truncations};

use super::{three, write};

/// A log of several records, and the end of each.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let (dir, files) = three();
    let members: Vec<Member> = files
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            Member::describe(name, &File::open(path).unwrap())
        })
        .collect();
    drop(dir);
    let id = members[1].id;
    let mut records: Vec<Record> = members.into_iter().map(|member| Record::Add(Box::new(member))).collect();
    records.push(Record::SetTier(id, 7));
    records.insert(2, Record::Remove(id));
    records.push(Record::Remove([9; 16]));
    let mut bytes = b"TMAN\x01".to_vec();
    let mut ends = Vec::new();
    for record in &records {
        record.put(&mut bytes);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn live(replay: &Replay) -> Vec<(String, u8)> {
    replay.members.iter().map(|member| (member.path.clone(), member.tier)).collect()
}

/// The members after the first records.
fn after(bytes: &[u8], ends: &[usize], records: usize) -> Vec<(String, u8)> {
    let end = records.checked_sub(1).map_or(5, |last| ends[last]);
    live(&log::replay(&bytes[..end]).unwrap())
}

#[test]
fn every_truncation_is_a_reported_shorter_log() {
    let (bytes, ends) = sample();
    for cut in truncations(&bytes) {
        let replay = log::replay(cut).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut.len()).count();
        assert_eq!(replay.records, whole as u64);
        assert_eq!(live(&replay), after(&bytes, &ends, whole));
        let at_a_border = cut.len() <= 5 || ends.contains(&cut.len());
        let torn = replay.warnings.iter().any(|odd| matches!(odd, ManifestWarning::TornTail { .. }));
        assert_eq!(torn, !at_a_border, "{} bytes", cut.len());
    }
}

/// Also in a log of another program, which does not state its length: a record of full length is not a torn one.
#[test]
fn every_flipped_byte_is_an_error() {
    let (bytes, ends) = sample();
    for_each_flip(&bytes, |flip, damaged| {
        let error = log::replay(damaged).unwrap_err();
        if flip.offset < 5 {
            return;
        }
        assert!(matches!(error, ErrorKind::ManifestDamaged { .. }), "{error}");
        assert_eq!(error.class(), Class::Corrupt);
        let hit = ends.iter().filter(|end| **end <= flip.offset).count();
        let saved = log::salvage(damaged).unwrap();
        assert_eq!(saved.records, ends.len() as u64 - 1, "all but the damaged one, which is {hit}");
        assert!(saved.warnings.iter().any(|odd| matches!(odd, ManifestWarning::Damaged { .. })));
    });
}

/// The manifest of three changes.
fn written() -> (tempfile::TempDir, Vec<u8>) {
    let (dir, files) = three();
    let mut collection = Collection::open(dir.path()).unwrap();
    collection.add(&files[..2]).unwrap();
    collection.add(&files[2..]).unwrap();
    collection.set_tier("b.tatami", 3).unwrap();
    let bytes = fs::read(dir.path().join(MANIFEST)).unwrap();
    (dir, bytes)
}

/// What every reading function of a collection answers, or the class of its error.
fn answers(dir: &std::path::Path) -> Vec<Result<u64, Class>> {
    let opened = Collection::open(dir);
    let ask = |answer: &dyn Fn(&Collection) -> Result<u64, tercet_tatami::Error>| {
        opened
            .as_ref()
            .map_or_else(|error| Err(error.class()), |it| answer(it).map_err(|error| error.class()))
    };
    let rows = |it: &Collection| {
        it.scan().batches()?.map(|batch| batch.map(|batch| batch.batch.rows.len() as u64)).sum()
    };
    let filter = tercet_tatami::predicate::Expr::parse("key >= 0").unwrap();
    let key = tercet_tatami::Scalar::Int64(205);
    vec![
        ask(&|it| it.scan().count()),
        ask(&rows),
        ask(&|it| it.scan().filter(&filter)?.count()),
        ask(&|it| Ok(it.prune(&filter)?.len() as u64)),
        ask(&|it| Ok(u64::from(it.lookup(&key)?.found.is_some()))),
    ]
}

/// Every flip and every truncation of a manifest is an error of every reading function: none answers with rows missing.
#[test]
fn no_damage_loses_rows_silently() {
    let (dir, bytes) = written();
    let path = dir.path().join(MANIFEST);
    assert_eq!(answers(dir.path()), [Ok(60), Ok(60), Ok(60), Ok(3), Ok(1)]);
    let check = |damaged: &[u8], what: &str| {
        fs::write(&path, damaged).unwrap();
        for (at, answer) in answers(dir.path()).into_iter().enumerate() {
            // A flipped version is unknown.
            let is_refused = matches!(answer, Err(Class::Corrupt | Class::Malformed | Class::Unsupported));
            assert!(is_refused, "{what}: {at}: {answer:?}");
        }
    };
    for_each_flip(&bytes, |flip, damaged| check(damaged, &format!("byte {}", flip.offset)));
    for cut in truncations(&bytes) {
        check(cut, &format!("{} bytes", cut.len()));
        // A salvage keeps what is left, and says what is missing.
        let saved = log::salvage(cut).unwrap();
        assert!(saved.members.len() < 3 || cut.len() > 5, "{} bytes", cut.len());
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(answers(dir.path())[0], Ok(60));
}

/// Other programs skip the record with the length and append after it.
#[test]
fn records_appended_by_other_programs_are_applied() {
    let (dir, bytes) = written();
    let path = dir.path().join(MANIFEST);
    let gone = Collection::open(dir.path()).unwrap().member("a.tatami").unwrap().id;
    let mut longer = bytes.clone();
    Record::Remove(gone).put(&mut longer);
    fs::write(&path, &longer).unwrap();
    assert_eq!(answers(dir.path())[0], Ok(40));
    // An interrupted append of theirs is a torn tail, a complete record with a wrong checksum is damage.
    for cut in bytes.len() + 1..longer.len() {
        fs::write(&path, &longer[..cut]).unwrap();
        assert_eq!(answers(dir.path())[0], Ok(60));
        let collection = Collection::open(dir.path()).unwrap();
        assert!(matches!(collection.replay().warnings[..], [ManifestWarning::TornTail { .. }]));
    }
    for at in bytes.len()..longer.len() {
        let mut damaged = longer.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(answers(dir.path())[0], Err(Class::Corrupt), "byte {at}");
    }
    // The next change keeps their records and states the new length.
    fs::write(&path, &longer).unwrap();
    Collection::open(dir.path()).unwrap().set_tier("c.tatami", 1).unwrap();
    let new = fs::read(&path).unwrap();
    fs::write(&path, &new[..longer.len()]).unwrap();
    assert_eq!(answers(dir.path())[0], Err(Class::Corrupt));
}

/// A torn tail of another program is dropped by the next change.
#[test]
fn changes_after_a_torn_tail_are_kept() {
    let (dir, files) = three();
    let path = dir.path().join(MANIFEST);
    Collection::open(dir.path()).unwrap().add(&files[..2]).unwrap();
    // As other programs write it.
    let whole = Collection::open(dir.path()).unwrap().replay().compacted();
    for len in 5..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let mut collection = Collection::open(dir.path()).unwrap();
        let before = collection.members().len();
        collection.add(&files[2..]).unwrap();
        let again = Collection::open(dir.path()).unwrap();
        assert_eq!(again.members(), collection.members(), "{len} bytes");
        assert_eq!(again.members().len(), before + 1);
        assert!(again.member("c.tatami").is_some());
        assert!(again.replay().warnings.is_empty(), "{:?}", again.replay().warnings);
    }
    for len in 0..5 {
        fs::write(&path, &whole[..len]).unwrap();
        let error = Collection::open(dir.path()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ManifestTruncated { expected: 5, .. }), "{error}");
        let mut collection = Collection::for_recovery(dir.path(), tercet_tatami::ReadOptions::new());
        assert_eq!(collection.compact(true).unwrap().live, 0);
        assert_eq!(answers(dir.path())[0], Ok(0), "an empty collection that says so");
    }
    // Zeros at the end are a file that was extended and not written.
    for tail in [&[0; 64][..], b"TMAN\x01"] {
        fs::write(&path, [&whole[..], tail].concat()).unwrap();
        let mut collection = Collection::open(dir.path()).unwrap();
        assert_eq!(collection.members().len(), 2);
        collection.add(&files[2..]).unwrap();
        assert_eq!(Collection::open(dir.path()).unwrap().members().len(), 3);
    }
}

#[test]
fn a_damaged_log_is_not_changed_until_it_is_salvaged() {
    let (dir, files) = three();
    let path = dir.path().join(MANIFEST);
    let mut collection = Collection::open(dir.path()).unwrap();
    for file in &files {
        collection.add(&[file]).unwrap();
    }
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(Collection::open(dir.path()).is_err());
    assert!(collection.add(&files[..1]).is_err());
    assert!(collection.remove(&files[1..2]).is_err());
    assert!(collection.compact(false).is_err());
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let done = collection.compact(true).unwrap();
    assert_eq!((done.live, done.records), (2, 2));
    assert!(matches!(done.warnings[..], [ManifestWarning::Damaged { offset: 19, .. }]));
    assert_eq!(Collection::open(dir.path()).unwrap().members().len(), 2);
}

#[test]
fn changed_members_are_rejected() {
    let (dir, files) = three();
    let mut collection = Collection::open(dir.path()).unwrap();
    collection.add(&files).unwrap();
    write(&files[1], &[(1, None), (2, Some("new"))]);
    let scanned = collection.scan().batches().unwrap().collect::<Result<Vec<_>, _>>();
    let error = scanned.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MemberChanged { .. }), "{error}");
    assert_eq!(error.class(), Class::Corrupt);
    assert!(error.to_string().contains("b.tatami"), "{error}");
    assert!(collection.scan().count().is_err());
    // A file that is added again has one entry, not two.
    collection.add(&files[1..2]).unwrap();
    let again = Collection::open(dir.path()).unwrap();
    assert_eq!(again.members().len(), 3);
    assert_eq!(again.rows(), 42);
    assert_eq!(again.scan().count().unwrap(), 42);
}

/// A log of the reference keeps the old entry of a rewritten file.
#[test]
fn the_older_entry_of_a_path_is_ignored() {
    let (dir, files) = three();
    let first = Member::describe("a.tatami", &File::open(&files[0]).unwrap());
    write(&files[0], &[(5, None)]);
    let second = Member::describe("a.tatami", &File::open(&files[0]).unwrap());
    assert_ne!(first.id, second.id);
    let mut bytes = b"TMAN\x01".to_vec();
    for member in [&first, &second] {
        Record::Add(Box::new(member.clone())).put(&mut bytes);
    }
    fs::write(dir.path().join(MANIFEST), &bytes).unwrap();
    let collection = Collection::open(dir.path()).unwrap();
    assert_eq!(collection.members(), std::slice::from_ref(&second));
    assert_eq!(collection.replay().warnings, [ManifestWarning::Superseded { path: "a.tatami".into() }]);
    assert_eq!(collection.scan().count().unwrap(), 1);
    // Removing the older entry, as other programs do, keeps the newer one.
    Record::Remove(first.id).put(&mut bytes);
    assert_eq!(log::replay(&bytes).unwrap().members, [second]);
}

#[test]
fn paths_outside_the_directory_are_rejected() {
    let (dir, files) = three();
    let inside = dir.path().join("inner");
    fs::create_dir(&inside).unwrap();
    let mut collection = Collection::open(&inside).unwrap();
    for outside in [files[0].clone(), inside.join("../a.tatami")] {
        let error = collection.add(&[outside]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Outside { .. }), "{error}");
    }
    assert!(!inside.join(MANIFEST).exists());
    // A hostile manifest.
    for path in ["../a.tatami", "/etc/passwd", "x/../../a.tatami", "", "."] {
        let mut member = Member::describe("a.tatami", &File::open(&files[0]).unwrap());
        member.path = path.to_owned();
        let mut bytes = b"TMAN\x01".to_vec();
        Record::Add(Box::new(member)).put(&mut bytes);
        fs::write(inside.join(MANIFEST), &bytes).unwrap();
        let mut collection = Collection::open(&inside).unwrap();
        let error = collection.open_member(&collection.members()[0]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Outside { .. }), "{error}");
        assert!(collection.scan().count().is_err());
        // It can be removed.
        collection.remove(&[path]).unwrap();
        assert!(collection.members().is_empty());
    }
}

/// Bytes that look like the start of a long record at every offset take linear time.
#[test]
fn adversarial_logs_take_linear_time() {
    let mut bytes = b"TMAN\x01".to_vec();
    // The start of an ADD record with a path of 100 kB, repeated.
    for _ in 0..300_000 {
        bytes.extend([1, 0xa0, 0x8d, 0x06]);
    }
    let start = std::time::Instant::now();
    let _ = log::replay(&bytes);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_copy_with_the_same_id_does_not_replace_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tatami");
    let schema = tercet_tatami::Schema::new(vec![tercet_tatami::Field::new("n", tercet_tatami::Type::Int8)]);
    let options = tercet_tatami::WriterOptions::new().with_uuid([7; 16]);
    let mut writer =
        tercet_tatami::Writer::create(&path, schema.unwrap(), options.with_overwrite(true)).unwrap();
    writer.append(&[tercet_tatami::Column::new(tercet_tatami::Values::Int8(vec![1, 2]))]).unwrap();
    writer.finish().unwrap();
    let copy = dir.path().join("b.tatami");
    fs::copy(&path, &copy).unwrap();
    let mut collection = Collection::open(dir.path()).unwrap();
    collection.add(&[&path]).unwrap();
    let error = collection.add(&[&copy]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DuplicateId { .. }), "{error}");
    assert_eq!(collection.rows(), 2);
    // A moved file keeps its ID.
    fs::remove_file(&path).unwrap();
    collection.add(&[&copy]).unwrap();
    assert_eq!(collection.members().len(), 1);
    assert_eq!(collection.members()[0].path, "b.tatami");
}

#[cfg(unix)]
#[test]
fn links_out_of_the_directory_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (root, outside) = (directory.path().join("collection"), directory.path().join("elsewhere"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    let path = outside.join("a.tatami");
    write(&path, &[(1, None)]);
    std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
    let member = Member::describe("link/a.tatami", &File::open(&path).unwrap());
    let mut bytes = b"TMAN\x01".to_vec();
    Record::Add(Box::new(member)).put(&mut bytes);
    fs::write(root.join(MANIFEST), bytes).unwrap();
    let collection = Collection::open(&root).unwrap();
    let error = collection.open_member(&collection.members()[0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Outside { .. }), "{error}");
    assert!(collection.scan().batches().is_err());
}

#[test]
fn a_writer_removes_files_of_a_killed_compaction() {
    let (directory, files) = three();
    let mut collection = Collection::open(directory.path()).unwrap();
    collection.add(&files[..1]).unwrap();
    let stale = directory.path().join(format!(".{MANIFEST}.tercet-0123456789abcdef.tmp"));
    fs::write(&stale, b"half a manifest").unwrap();
    collection.add(&files[1..]).unwrap();
    assert!(!stale.exists());
    assert_eq!(collection.members().len(), 3);
}

#[test]
fn collections_are_local() {
    let error = Collection::open("https://localhost/crawl").unwrap_err();
    assert_eq!((error.class(), error.location()), (Class::Request, "https://localhost/crawl"));
}
