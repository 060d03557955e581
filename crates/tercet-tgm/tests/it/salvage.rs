//! Damaged files: every intact object is found, and no damaged object is reported as intact.

use std::io::Cursor;
use std::sync::Arc;

use rayon::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Diagnostic as _, Span};
use tercet_testkit::damage;
use tercet_tgm::salvage::{Lost, RepairedMessage, SalvageOptions, SalvagePlan, State, plan};
use tercet_tgm::{
    DType, DataObjectDescriptor, Entry, File, FrameKind, GlobalMetadata, MaskMethod, Placement, PreEncoded,
    ReadOptions, StreamingEncoder, Value, encode_message, encode_pre_encoded,
};

use crate::samples;

fn source(bytes: &[u8]) -> Arc<dyn ByteSource> {
    Arc::new(Memory::new("damaged", bytes.to_vec()))
}

fn saved(bytes: &[u8]) -> SalvagePlan {
    plan(&source(bytes), &SalvageOptions::new().with_encode(samples::options()), &NoProgress).unwrap()
}

fn opened(bytes: Vec<u8>) -> File {
    File::from_source(Arc::new(Memory::new("new", bytes)), ReadOptions::new()).unwrap()
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n.max(1)
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}

/// An object of a generated file: position, content, and metadata.
#[derive(Clone, Debug)]
struct ExpectedObject {
    frame: Span,
    message: usize,
    descriptor: DataObjectDescriptor,
    stored: Vec<u8>,
    entry: Entry,
    /// The metadata of its message.
    extra: Entry,
    hashed: bool,
    streamed: bool,
}

/// Counts of kept objects per kind: a generator that stopped making one of them would prove nothing about it.
#[derive(Debug, Default)]
struct Kinds {
    all: u32,
    masked: u32,
    streamed: u32,
    unhashed: u32,
}

impl Kinds {
    fn add(&mut self, known: &ExpectedObject) {
        self.all += 1;
        self.masked += u32::from(known.descriptor.masks.is_some());
        self.streamed += u32::from(known.streamed);
        self.unhashed += u32::from(!known.hashed);
    }
}

/// A generated file.
struct Sample {
    bytes: Vec<u8>,
    messages: Vec<Span>,
    objects: Vec<ExpectedObject>,
}

fn values(random: &mut Random, with_nan: bool) -> (DataObjectDescriptor, Vec<u8>) {
    let n = match random.below(8) {
        0 => 1,
        1..=5 => 1 + random.below(40),
        6 => 500 + random.below(1000),
        _ => 20_000 + random.below(20_000),
    };
    match random.below(4) {
        0 => (DataObjectDescriptor::new(DType::U8, [n]), random.bytes(usize::try_from(n).unwrap())),
        1 => {
            let descriptor = DataObjectDescriptor::new(DType::I16, [n]).with_compression("zstd");
            (descriptor, random.bytes(usize::try_from(2 * n).unwrap()))
        }
        _ => {
            let mut floats: Vec<f64> =
                (0..n).map(|_| f64::from(random.next().to_le_bytes()[4]) / 8.0).collect();
            if with_nan {
                for _ in 0..=n / 7 {
                    let at = usize::try_from(random.below(n)).unwrap();
                    floats[at] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][at % 3];
                }
            }
            let bytes = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
            (DataObjectDescriptor::new(DType::F64, [n]), bytes)
        }
    }
}

fn generate(seed: u64) -> Sample {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut bytes = Vec::new();
    for number in 0..=random.below(4) {
        if random.below(6) == 0 {
            let n = usize::try_from(random.below(100)).unwrap();
            bytes.extend(random.bytes(n));
        }
        let hashed = random.below(4) != 0;
        let masks = if random.below(2) == 0 { MaskMethod::Rle } else { MaskMethod::Roaring };
        let options = samples::options().with_hash(hashed).with_allowed(true, true).with_masks(masks);
        let with_nan = random.below(3) == 0;
        let objects: Vec<_> = (0..random.below(6)).map(|_| values(&mut random, with_nan)).collect();
        let entry =
            |at: usize| -> Entry { [("name".to_owned(), Value::from(format!("m{number}o{at}")))].into() };
        let mut metadata = GlobalMetadata::default();
        metadata.extra.insert("message".to_owned(), number.into());
        let is_stream = random.below(2) == 0;
        let preceded = is_stream && random.below(2) == 0;
        if !preceded {
            metadata.base = (0..objects.len()).map(entry).collect();
        }
        if is_stream {
            let mut encoder = StreamingEncoder::new(Cursor::new(Vec::new()), &metadata, options).unwrap();
            for (at, (descriptor, values)) in objects.iter().enumerate() {
                if preceded {
                    encoder.write_preceder(entry(at)).unwrap();
                }
                encoder.write_object(descriptor, values).unwrap();
            }
            let sink = if random.below(2) == 0 { encoder.finish() } else { encoder.finish_with_length() };
            bytes.extend(sink.unwrap().into_inner());
        } else {
            let placement = [Placement::Auto, Placement::None, Placement::Footer, Placement::Both];
            let placement = placement[usize::try_from(random.below(4)).unwrap()];
            let options = options.with_index(placement).with_hashes(placement);
            let pairs: Vec<_> = objects.iter().map(|(d, v)| (d, &v[..])).collect();
            bytes.extend(encode_message(&metadata, &pairs, &options).unwrap());
        }
    }
    known(bytes)
}

/// The content of a valid file.
fn known(bytes: Vec<u8>) -> Sample {
    let file = opened(bytes.clone());
    let messages = file.scan().unwrap().messages.clone();
    let mut objects = Vec::new();
    for message in file.messages().unwrap() {
        let message = message.unwrap();
        let streamed =
            message.layout().unwrap().frames.iter().any(|frame| frame.kind == FrameKind::FooterMetadata);
        for object in message.objects() {
            let object = object.unwrap();
            let at = usize::try_from(object.index()).unwrap();
            let mut entry = message.metadata().base[at].clone();
            entry.remove("_reserved_");
            objects.push(ExpectedObject {
                frame: object.frame().span,
                message: usize::try_from(message.number()).unwrap(),
                descriptor: object.descriptor().clone(),
                stored: object.stored().unwrap().to_vec(),
                entry,
                extra: message.metadata().extra.clone(),
                hashed: object.frame().hash().is_some(),
                streamed,
            });
        }
    }
    Sample { bytes, messages, objects }
}

/// Kinds of damage.
#[derive(Clone, Debug)]
enum Damage {
    /// Truncated here.
    Cut(usize),
    /// Overwritten with these bytes.
    Over(std::ops::Range<usize>),
    /// These bytes are removed.
    Out(std::ops::Range<usize>),
    /// This many bytes are inserted here.
    In(usize, usize),
}

impl Damage {
    fn random(random: &mut Random, len: usize) -> Self {
        let at = usize::try_from(random.below(len as u64)).unwrap();
        let max_len = [4, 60, 600, 30_000][usize::try_from(random.below(4)).unwrap()];
        let n = 1 + usize::try_from(random.below(max_len)).unwrap();
        let range = at..(at + n).min(len);
        match random.below(8) {
            0 | 1 => Self::Cut(at),
            2 => Self::Out(range),
            3 => Self::In(at, n),
            _ => Self::Over(range),
        }
    }

    fn apply(&self, bytes: &[u8], random: &mut Random) -> Vec<u8> {
        match self {
            Self::Cut(at) => bytes[..*at].to_vec(),
            Self::Over(range) => {
                let mut damaged = bytes.to_vec();
                for byte in &mut damaged[range.clone()] {
                    *byte ^= 1 + random.next().to_le_bytes()[5] % 255;
                }
                damaged
            }
            Self::Out(range) => damage::spliced(bytes, range.clone(), &[]),
            Self::In(at, n) => damage::spliced(bytes, *at..*at, &random.bytes(*n)),
        }
    }

    /// Whether a span of the valid file is affected.
    fn touches(&self, span: Span) -> bool {
        let (start, end) = (usize::try_from(span.start()).unwrap(), usize::try_from(span.end()).unwrap());
        match self {
            Self::Cut(at) => *at < end,
            Self::Over(range) | Self::Out(range) => range.start < end && range.end > start,
            Self::In(at, _) => start < *at && *at < end,
        }
    }
}

/// The objects of a file by descriptor and stored bytes, with their metadata and that of their message.
fn contents_of(file: &File) -> Vec<(DataObjectDescriptor, Vec<u8>, Entry, Entry)> {
    let mut all = Vec::new();
    for message in file.messages().unwrap() {
        let message = message.unwrap();
        for object in message.objects() {
            let object = object.unwrap();
            let mut entry = message.metadata().base[usize::try_from(object.index()).unwrap()].clone();
            entry.remove("_reserved_");
            let extra = message.metadata().extra.clone();
            all.push((object.descriptor().clone(), object.stored().unwrap().to_vec(), entry, extra));
        }
    }
    all
}

/// Whether damage inside a frame changes only fields without meaning: version, unknown flags.
fn is_free(frame: Span, damage: &[Damage]) -> bool {
    let meaning =
        [Span::between(frame.start(), frame.start() + 4), Span::between(frame.start() + 7, frame.end())];
    meaning.into_iter().flatten().all(|span| !damage.iter().any(|damage| damage.touches(span)))
}

#[test]
fn every_intact_object_is_kept_and_no_other() {
    let (mut kept, mut in_damaged, mut lost, mut repaired) = (Kinds::default(), Kinds::default(), 0, 0);
    for seed in 0..240 {
        let good = generate(seed);
        let mut random = Random(seed * 2 + 12_345);
        let count = 1 + usize::try_from(random.below(3)).unwrap();
        let mut damage: Vec<Damage> =
            (0..count).map(|_| Damage::random(&mut random, good.bytes.len())).collect();
        // Offsets in the report are those of the valid file only if at most one change moves bytes.
        if let Some(moving) = damage.iter().find(|damage| !matches!(damage, Damage::Over(_))).cloned() {
            damage = vec![moving];
        }
        let mut bytes = good.bytes.clone();
        for damage in &damage {
            bytes = damage.apply(&bytes, &mut random);
        }
        let found = saved(&bytes);
        let new = opened(found.to_bytes().unwrap());
        assert!(new.scan().unwrap().unrecognized.is_empty(), "seed {seed}");
        let content = contents_of(&new);
        let intact = |known: &&ExpectedObject| !damage.iter().any(|damage| damage.touches(known.frame));
        let mut expected = good.objects.iter().filter(intact);
        let mut next = expected.next();
        for (descriptor, stored, entry, extra) in &content {
            if let Some(known) = next
                && known.descriptor == *descriptor
                && known.stored == *stored
            {
                // Metadata is kept with its object or reported as lost, never attached to another.
                if !entry.is_empty() {
                    assert_eq!(*entry, known.entry, "seed {seed}: {damage:?}");
                }
                assert!(extra.is_empty() || *extra == known.extra, "seed {seed}: {damage:?}: {extra:?}");
                kept.add(known);
                if damage.iter().any(|damage| damage.touches(good.messages[known.message])) {
                    in_damaged.add(known);
                }
                next = expected.next();
                continue;
            }
            // Other kept objects have harmless damage, or are unverified.
            let same = |known: &&ExpectedObject| known.descriptor == *descriptor && known.stored == *stored;
            let is_harmless = good.objects.iter().filter(same).any(|known| is_free(known.frame, &damage));
            let touched = |known: &&ExpectedObject| {
                !known.hashed && damage.iter().any(|damage| damage.touches(known.frame))
            };
            let is_unverified = good.objects.iter().any(|known| touched(&known));
            assert!(is_harmless || is_unverified, "seed {seed}: {damage:?}: a damaged object is kept");
        }
        assert!(
            next.is_none(),
            "seed {seed}: {damage:?}: {:?} is lost\n{:#?}",
            next.map(|k| k.frame),
            found.report
        );
        lost += u32::try_from(good.objects.len().saturating_sub(content.len())).unwrap();
        // Untouched messages are kept byte for byte.
        let new = found.to_bytes().unwrap();
        for message in &good.messages {
            if !damage.iter().any(|damage| damage.touches(*message)) {
                let whole = &good.bytes[message.to_range().unwrap()];
                assert!(memchr::memmem::find(&new, whole).is_some(), "seed {seed}: {damage:?}: {message}");
            }
        }
        // A missing object is reported.
        if content.len() < good.objects.len() {
            assert!(
                !found.report.is_complete() || !found.report.unrecognized.is_empty(),
                "seed {seed}: {damage:?}"
            );
        }
        let is_repaired = |message: &&RepairedMessage| message.state == State::Repaired;
        repaired += u32::try_from(found.report.messages.iter().filter(is_repaired).count()).unwrap();
        // What was repaired is valid.
        let again = saved(&new);
        assert!(again.report.is_intact(), "seed {seed}: {:?}", again.report);
        assert_eq!(again.to_bytes().unwrap(), new);
    }
    for (what, found, least) in [
        ("kept", kept.all, 300),
        ("kept of damaged messages", in_damaged.all, 80),
        ("kept with masks", in_damaged.masked, 10),
        ("kept of streams", in_damaged.streamed, 30),
        ("kept without a hash", in_damaged.unhashed, 10),
        ("lost", lost, 60),
        ("repaired", repaired, 10),
    ] {
        assert!(found >= least, "{what}: {found}, not {least}; {kept:?}, {in_damaged:?}");
    }
}

/// Two messages that differ in all metadata.
fn pair(first: usize, second: usize) -> Sample {
    let message = |kind: usize, tag: u64| {
        let values: Vec<u8> = (0..24).map(|at| u8::try_from(at + 100 * tag).unwrap()).collect();
        let descriptor = DataObjectDescriptor::new(DType::U8, [12]);
        let objects: [(&DataObjectDescriptor, &[u8]); 2] =
            [(&descriptor, &values[..12]), (&descriptor, &values[12..])];
        let entry = |at: usize| -> Entry { [("name".to_owned(), format!("m{tag}o{at}").into())].into() };
        let mut metadata = GlobalMetadata::default();
        metadata.extra.insert("message".to_owned(), tag.into());
        let options = samples::options();
        let (is_stream, preceded) = (kind >= 3, kind == 4);
        if !preceded {
            metadata.base = (0..2).map(entry).collect();
        }
        let options = match kind {
            1 => options.with_index(Placement::Footer).with_hashes(Placement::Footer),
            2 => options.with_index(Placement::Header).with_hashes(Placement::None),
            _ => options,
        };
        if !is_stream {
            return encode_message(&metadata, &objects, &options).unwrap();
        }
        let mut encoder = StreamingEncoder::new(Cursor::new(Vec::new()), &metadata, options).unwrap();
        for (at, (descriptor, values)) in objects.into_iter().enumerate() {
            if preceded {
                encoder.write_preceder(entry(at)).unwrap();
            }
            encoder.write_object(descriptor, values).unwrap();
        }
        let sink = if kind == 5 { encoder.finish_with_length() } else { encoder.finish() };
        sink.unwrap().into_inner()
    };
    known([message(first, 0), message(second, 1)].concat())
}

/// Damage across the boundary of two messages: no metadata is attached to an object of the other message, and losses
/// are reported.
#[test]
fn damaged_boundaries_mix_no_messages() {
    let kinds: Vec<(usize, usize)> =
        (0..6).flat_map(|first| (0..6).map(move |second| (first, second))).collect();
    kinds.into_par_iter().for_each(|(first, second)| {
        let good = pair(first, second);
        let (border, len) = (usize::try_from(good.messages[0].end()).unwrap(), good.bytes.len());
        let mut random = Random(first as u64 * 6 + second as u64 + 1);
        for from in (24..border).step_by(48) {
            for to in (border + 8..len).step_by(56) {
                let zeros = vec![0; to - from];
                let noise = random.bytes(to - from);
                // An odd number, so that frames are not aligned again by accident.
                let n = 1 + 2 * usize::try_from(random.below(20)).unwrap();
                let fewer = random.bytes(n);
                for with in [&zeros, &noise, &fewer] {
                    let context = format!("{first} and {second}: {from}..{to} with {} bytes", with.len());
                    let found = saved(&damage::spliced(&good.bytes, from..to, with));
                    let content = contents_of(&opened(found.to_bytes().unwrap()));
                    let mut well = 0;
                    for (descriptor, stored, entry, extra) in content {
                        let same = |known: &&ExpectedObject| {
                            known.descriptor == descriptor && known.stored == stored
                        };
                        let known = good.objects.iter().find(same).unwrap();
                        assert!(entry.is_empty() || entry == known.entry, "{context}: {entry:?}, {known:?}");
                        assert!(extra.is_empty() || extra == known.extra, "{context}: {extra:?}, {known:?}");
                        well += usize::from(entry == known.entry && extra == known.extra);
                    }
                    if well < good.objects.len() {
                        assert!(!found.report.is_complete(), "{context}: {:#?}", found.report);
                    }
                }
            }
        }
    });
}

/// Small files of every kind: two messages, the first of which is a sample.
fn small() -> Vec<(&'static str, Sample)> {
    let zstd = DataObjectDescriptor::new(DType::I32, [50]).with_compression("zstd");
    let values: Vec<u8> = (0..200).collect();
    let pairs: [(&DataObjectDescriptor, &[u8]); 2] = [(&zstd, &values), (&zstd, &values[..200])];
    let compressed = encode_message(&GlobalMetadata::default(), &pairs, &samples::options()).unwrap();
    let compressed = samples::Sample { name: "compressed", bytes: compressed };
    let all = samples::all().into_iter().chain([compressed]);
    all.map(|sample| {
        let next = DataObjectDescriptor::new(DType::U8, [3]);
        let last = encode_message(&GlobalMetadata::default(), &[(&next, &[1, 2, 3])], &samples::options());
        (sample.name, known([sample.bytes, last.unwrap()].concat()))
    })
    .collect()
}

fn check(name: &str, good: &Sample, bytes: &[u8], damage: &Damage) {
    let context = format!("{name}: {damage:?}");
    let found = saved(bytes);
    let new = found.to_bytes().unwrap();
    let content = contents_of(&opened(new.clone()));
    let hashed = good.objects.iter().all(|known| known.hashed);
    for (descriptor, stored, entry, _) in content.iter().filter(|_| hashed) {
        let same = |known: &&ExpectedObject| known.descriptor == *descriptor && known.stored == *stored;
        let entries = |known: &&ExpectedObject| entry.is_empty() || known.entry == *entry;
        assert!(good.objects.iter().filter(same).any(|known| entries(&known)), "{context}: {entry:?}");
    }
    let intact = good.objects.iter().filter(|known| !damage.touches(known.frame)).count();
    assert!(content.len() >= intact, "{context}: {} of {intact}\n{:#?}", content.len(), found.report);
    assert!(content.len() <= good.objects.len(), "{context}");
    // Messages that left no trace cannot be reported.
    let begun = |known: &&ExpectedObject| match damage {
        Damage::Cut(cut) => good.messages[known.message].start() < *cut as u64,
        _ => true,
    };
    if content.len() < good.objects.iter().filter(begun).count() {
        assert!(!found.report.is_complete(), "{context}: {:#?}", found.report);
    }
}

#[test]
fn every_truncation_keeps_the_objects_before_it() {
    for (name, good) in small() {
        for cut in damage::truncations(&good.bytes) {
            check(name, &good, cut, &Damage::Cut(cut.len()));
        }
    }
}

#[test]
fn every_flip_loses_only_the_objects_it_touches() {
    small().into_par_iter().for_each(|(name, good)| {
        let mut bytes = good.bytes.clone();
        for at in 0..bytes.len() {
            for mask in [0xff, 1 << (at % 8)] {
                bytes[at] ^= mask;
                check(name, &good, &bytes, &Damage::Over(at..at + 1));
                bytes[at] ^= mask;
            }
        }
    });
}

#[test]
fn a_valid_file_is_unchanged() {
    for seed in 0..40 {
        let good = generate(seed);
        let found = saved(&good.bytes);
        // Bytes between messages are a loss only if the shortest message, of 48 bytes, had room there.
        let may_lose = found.report.unrecognized.iter().any(|span| span.len() >= 48);
        assert!(found.report.messages.is_empty(), "{:#?}", found.report);
        assert_eq!(found.report.is_complete(), !may_lose, "{:#?}", found.report);
        assert_eq!(found.report.kept_objects, good.objects.len() as u64);
        let whole: Vec<u8> =
            good.messages.iter().flat_map(|span| good.bytes[span.to_range().unwrap()].to_vec()).collect();
        assert_eq!(found.to_bytes().unwrap(), whole);
    }
    assert!(saved(b"").is_worth_writing() && saved(b"").report.is_complete());
    let text = saved(b"no message here");
    assert!(!text.is_worth_writing() && text.report.partial_messages.is_empty());
    assert_eq!(text.report.unrecognized.len(), 1);
    assert!(!saved(b"TENSO").report.is_complete());
}

/// A message inside the payload of another is part of that payload.
#[test]
fn messages_inside_payloads_are_not_extracted() {
    let inner = samples::all().swap_remove(2).bytes;
    let wrap = DataObjectDescriptor::new(DType::U8, [inner.len() as u64 + 8]);
    let payload = [&[0; 8][..], &inner].concat();
    let plain = DataObjectDescriptor::new(DType::U8, [4]);
    let objects: [(&DataObjectDescriptor, &[u8]); 3] =
        [(&plain, &[1; 4]), (&wrap, &payload), (&plain, &[2; 4])];
    let one_piece = encode_message(&GlobalMetadata::default(), &objects, &samples::options()).unwrap();
    let mut encoder =
        StreamingEncoder::new(Cursor::new(Vec::new()), &GlobalMetadata::default(), samples::options())
            .unwrap();
    for (descriptor, values) in objects {
        encoder.write_object(descriptor, values).unwrap();
    }
    let stream = encoder.finish().unwrap().into_inner();
    for good in [known(one_piece.clone()), known(stream)] {
        assert_eq!((good.messages.len(), good.objects.len()), (1, 3));
        assert_eq!(saved(&good.bytes).to_bytes().unwrap(), good.bytes);
        // The last object is damaged: the outer message is rebuilt, with the inner one in place.
        let mut bytes = good.bytes.clone();
        bytes[usize::try_from(good.objects[2].frame.start()).unwrap() + 17] ^= 1;
        let found = saved(&bytes);
        let content = contents_of(&opened(found.to_bytes().unwrap()));
        assert_eq!(content.len(), 2);
        assert_eq!(content[1].1, payload);
        // The payload itself is damaged, before and after the inner message.
        for at in [17, good.objects[1].frame.len() - 22] {
            let mut bytes = good.bytes.clone();
            bytes[usize::try_from(good.objects[1].frame.start() + at).unwrap()] ^= 1;
            let content = contents_of(&opened(saved(&bytes).to_bytes().unwrap()));
            assert_eq!(content.iter().map(|one| one.1.len()).collect::<Vec<_>>(), [4, 4]);
        }
    }
    // Even if the length of its frame is damaged: the index has it.
    let good = known(one_piece);
    let mut bytes = good.bytes.clone();
    bytes[usize::try_from(good.objects[1].frame.start()).unwrap() + 14] ^= 1;
    let found = saved(&bytes);
    let content = contents_of(&opened(found.to_bytes().unwrap()));
    assert_eq!(content.iter().map(|one| one.1.len()).collect::<Vec<_>>(), [4, 4], "{:#?}", found.report);
    let lost = &found.report.messages[0].lost;
    assert_eq!((lost.len(), lost[0].what, lost[0].object), (1, Lost::Object, Some(1)));
    assert_eq!(lost[0].span, good.objects[1].frame);
}

/// Losses are reported with their location.
#[test]
fn losses_are_reported_with_their_location() {
    let good = known(samples::all().swap_remove(2).bytes);
    let frame = good.objects[1].frame;
    let mut bytes = good.bytes.clone();
    bytes[usize::try_from(frame.start()).unwrap() + 20] ^= 0x10;
    let report = saved(&bytes).report;
    let message = &report.messages[0];
    assert_eq!((message.state, message.objects_kept, message.output), (State::Damaged, 1, Some(0)));
    assert_eq!(message.lost.len(), 1, "{message:#?}");
    let loss = &message.lost[0];
    assert_eq!((loss.what, loss.object, loss.span), (Lost::Object, Some(1), frame));
    assert!(loss.reason.contains("expected") && loss.reason.contains("found"), "{}", loss.reason);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["messages"][0]["lost"][0]["span"]["start"], frame.start());
    // The metadata of the object that is kept, and of the message, are still there.
    let new = opened(saved(&bytes).to_bytes().unwrap());
    let message = new.message(0).unwrap();
    assert_eq!(message.metadata().get("mars.param"), Some(&"2t".into()));
    assert_eq!(message.metadata().get("source"), Some(&"test".into()));
}

#[test]
fn objects_without_hashes_are_unverified() {
    let good = known(samples::all().swap_remove(4).bytes);
    assert!(!good.objects[0].hashed);
    let cut = good.bytes.len() - 1;
    let found = saved(&good.bytes[..cut]);
    assert_eq!(found.report.messages[0].unverified, [0], "{:#?}", found.report);
    let new = opened(found.to_bytes().unwrap());
    let message = new.message(0).unwrap();
    assert_eq!(message.object(0).unwrap().frame().hash(), None, "nothing vouches for it now either");
    // A payload that is too short for its shape is not kept.
    let start = usize::try_from(good.objects[0].frame.start()).unwrap();
    let shape = memchr::memmem::find(&good.bytes[start..], b"\x65shape\x82\x02\x03").unwrap();
    let mut bytes = good.bytes.clone();
    bytes[start + shape + 8] = 4;
    let report = saved(&bytes).report;
    assert_eq!((report.messages[0].objects_kept, report.is_complete()), (0, false), "{report:#?}");
}

/// No hash covers the flag for the position of the descriptor; if it is wrong the payload is not found.
#[test]
fn a_misplaced_descriptor_is_detected() {
    let descriptor = DataObjectDescriptor::new(DType::I32, [5]).with_compression("zstd");
    let good = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[7; 20])], &samples::options());
    let good = known(good.unwrap());
    let mut bytes = good.bytes.clone();
    bytes[usize::try_from(good.objects[0].frame.start()).unwrap() + 7] ^= 1;
    let report = saved(&bytes).report;
    assert_eq!((report.kept_objects, report.is_complete()), (0, false), "{report:#?}");
}

/// Bytes that look like frames and messages: the work is linear.
#[test]
fn hostile_bytes_take_linear_time() {
    let n = 1 << 20;
    let frame = |len: u64| {
        let mut head = b"FR\0\x09\0\x01\0\x03".to_vec();
        head.extend(len.to_be_bytes());
        head
    };
    // Headers one after the other, all of which end at one of many ends, with a wrong hash.
    let mut nested = Vec::new();
    while nested.len() < n / 2 {
        let len = (n - 16 - nested.len()) as u64;
        nested.extend(frame(len));
    }
    nested.resize(n - 16 - 20, 7);
    nested.extend(16u64.to_be_bytes());
    nested.extend([0; 8]);
    nested.extend(b"ENDF");
    nested.extend([1; 16]);
    let preambles = b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0".repeat(n / 24);
    let marks = b"FRTENSOGRM39277777ENDF".repeat(n / 22);
    let zeros = [&preambles[..24], &vec![0; n]].concat();
    let next = |start: &[u8], rest: &[u8]| [start, rest].concat();
    let start = samples::all().swap_remove(7).bytes;
    assert_eq!(saved(&zeros).report.messages[0].state, State::Lost);
    for bytes in [
        nested.clone(),
        next(&start[..60], &nested),
        preambles.clone(),
        marks.clone(),
        next(&start[..100], &marks),
    ] {
        let report = saved(&bytes).report;
        assert_eq!(report.kept_objects, 0);
        let reported: u64 = report.unrecognized.iter().map(|span| span.len()).sum::<u64>()
            + report.messages.iter().map(|message| message.span.len()).sum::<u64>();
        assert!(reported >= bytes.len() as u64 / 2, "{reported} of {}", bytes.len());
    }
}

/// Memory for damaged messages is bounded.
#[test]
fn memory_for_damage_is_bounded() {
    let preambles = b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0".repeat(10_000);
    let limits = tercet_core::Limits::small().with_table_bytes(1 << 20);
    let reading = ReadOptions::new().with_limits(limits);
    let error = plan(
        &source(&preambles),
        &SalvageOptions::new().with_read(reading).with_encode(samples::options()),
        &NoProgress,
    )
    .unwrap_err();
    assert!(
        matches!(error.kind(), tercet_tgm::ErrorKind::Common(tercet_core::CommonError::Limit(_))),
        "{error}"
    );
    assert_eq!(saved(&preambles).report.messages.len(), 10_000);
}

#[test]
fn plans_are_printed() {
    let bytes = samples::all()[2].bytes.clone();
    let intact = saved(&bytes);
    let objects = intact.report.kept_objects;
    assert!(intact.to_string().starts_with("damaged: keep 1 message with "), "{intact}");
    assert_eq!(intact.to_string().lines().count(), 1, "{intact}");
    let mut bad = bytes.clone();
    let file = opened(bytes);
    let payload = file.message(0).unwrap().object(0).unwrap().payload_span();
    bad[usize::try_from(payload.start()).unwrap()] ^= 1;
    let plan = saved(&bad);
    assert_eq!(plan.report.kept_objects + 1, objects);
    assert!(plan.to_string().contains(" of message 0, object 0: "), "{plan}");
}

/// An array without a hash that is too large to be decoded is neither lost nor intact.
#[test]
fn limits_are_not_damage() {
    for gibibytes in [2, 9, 32] {
        let descriptor = DataObjectDescriptor::new(DType::U8, [gibibytes << 30]).with_compression("zstd");
        let object = PreEncoded { descriptor: &descriptor, payload: b"not decoded" };
        let options = samples::options().with_hash(false);
        let bytes = encode_pre_encoded(&GlobalMetadata::default(), &[object], &options).unwrap();
        let options = SalvageOptions::new().with_encode(samples::options());
        let error = plan(&source(&bytes), &options, &NoProgress).unwrap_err();
        assert_eq!(error.class(), tercet_core::Class::Limit, "{gibibytes}: {error}");
        assert_eq!(error.hint(), Some(tercet_core::Hint::RaiseLimit), "{gibibytes}: {error}");
    }
}

/// A message without hashes may be intact, but nothing proves it.
#[test]
fn intact_messages_without_hashes_are_counted() {
    let all = samples::all();
    let bytes: Vec<u8> = all.iter().flat_map(|sample| sample.bytes.clone()).collect();
    let report = saved(&bytes).report;
    assert_eq!((report.intact_messages, report.unverified_messages), (all.len() as u64, 2));
    assert!(report.is_intact() && report.is_complete());
}

/// Without a hash, compressed payloads must at least decode.
#[test]
fn undecodable_objects_are_not_kept() {
    let descriptor = DataObjectDescriptor::new(DType::I32, [50]).with_compression("zstd");
    let values: Vec<u8> = (0..200).collect();
    let pairs: [(&DataObjectDescriptor, &[u8]); 2] = [(&descriptor, &values), (&descriptor, &values)];
    let options = samples::options().with_hash(false);
    let good = known(encode_message(&GlobalMetadata::default(), &pairs, &options).unwrap());
    // The first byte of a zstd payload, which starts after the header of its frame.
    let mut bytes = good.bytes.clone();
    bytes[usize::try_from(good.objects[1].frame.start()).unwrap() + 16] ^= 1;
    let report = saved(&bytes).report;
    assert_eq!((report.kept_objects, report.is_complete()), (1, false), "{report:#?}");
    assert_eq!(report.messages[0].lost[0].span, good.objects[1].frame);
}
