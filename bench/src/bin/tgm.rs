//! Reads, writes and scans of `.tgm` messages, timed in process. `bench/measure_tgm.py` compares this with the reference.
//!
//! ```text
//! tgm make DIR VALUES                     one.tgm: a message of VALUES f64 with hashes; plain.tgm: without
//! tgm small DIR MESSAGES                  small.tgm: messages of one small object each
//! tgm junk DIR BYTES                      junk.tgm: a message, BYTES of junk, a message
//! tgm decode FILE [--no-verify] [--new] [--repeat K]     into a warm buffer, or into new memory
//! tgm encode VALUES [--no-hash] [--new] [--repeat K]     into a warm buffer, or into new memory
//! tgm memcpy BYTES [--repeat K]           into a warm buffer
//! tgm hash BYTES [--repeat K]             xxh3 alone
//! tgm scan FILE [--mmap] [--repeat K]     where the messages are
//! tgm metadata FILE [--mmap] [--threads N] [--repeat K] the same, and the metadata of each, checked
//! tgm random FILE COUNT [--repeat K]      read_message of random messages
//! ```

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use tercet_bench::{field, flag, number, on_threads, report};
use tercet_core::checksum::xxh3;
use tercet_core::source::Mmap;
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, File, GlobalMetadata, Message, ReadOptions, Value, Writer,
    WriterOptions, encode_message, encode_message_into,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", dir, values, ..] => make(Path::new(dir), values.parse()?),
        ["small", dir, messages, ..] => small(Path::new(dir), messages.parse()?),
        ["junk", dir, bytes, ..] => junk(Path::new(dir), bytes.parse()?),
        ["decode", file, ..] => decode(Path::new(file)),
        ["encode", values, ..] => encode(values.parse()?),
        ["memcpy", bytes, ..] => memcpy(bytes.parse()?),
        ["hash", bytes, ..] => hash(bytes.parse()?),
        ["scan", file, ..] => scan(Path::new(file), false),
        ["metadata", file, ..] => scan(Path::new(file), true),
        ["random", file, count, ..] => random(Path::new(file), count.parse()?),
        _ => Err("see the first lines of bench/src/bin/tgm.rs".into()),
    }
}

fn values(count: u64) -> Vec<u8> {
    let value = |n: u64| f64::from(field(n >> 12, n & 4095)).to_le_bytes();
    (0..count).flat_map(value).collect()
}

fn make(dir: &Path, count: u64) -> Outcome {
    let descriptor = DataObjectDescriptor::new(DType::F64, [count]);
    let payload = values(count);
    for (name, hash) in [("one.tgm", true), ("plain.tgm", false)] {
        let mut writer = Writer::create(dir.join(name), WriterOptions::new().with_overwrite(true))?;
        let options = EncodeOptions::new().with_hash(hash);
        writer.message(&GlobalMetadata::default(), &[(&descriptor, &payload)], &options)?;
        writer.finish()?;
    }
    Ok(())
}

fn metadata(step: u64) -> GlobalMetadata {
    let mars = Value::Map(vec![
        ("class".into(), "od".into()),
        ("param".into(), "2t".into()),
        ("step".into(), step.into()),
        ("levelist".into(), (step % 137).into()),
    ]);
    GlobalMetadata { base: vec![[("mars".to_owned(), mars)].into()], ..GlobalMetadata::default() }
}

fn small(dir: &Path, messages: u64) -> Outcome {
    let descriptor = DataObjectDescriptor::new(DType::F32, [16]);
    let payload = [7; 64];
    let mut writer = Writer::create(dir.join("small.tgm"), WriterOptions::new().with_overwrite(true))?;
    for step in 0..messages {
        writer.message(&metadata(step), &[(&descriptor, &payload)], &EncodeOptions::new())?;
    }
    writer.finish()?;
    Ok(())
}

fn junk(dir: &Path, bytes: u64) -> Outcome {
    let message = encode_message(
        &metadata(1),
        &[(&DataObjectDescriptor::new(DType::U8, [1]), &[7])],
        &EncodeOptions::new(),
    )?;
    let mut state = 1u64;
    let junk: Vec<u8> = (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let mut writer = Writer::create(dir.join("junk.tgm"), WriterOptions::new().with_overwrite(true))?;
    for part in [&message, &junk, &message] {
        writer.raw(part)?;
    }
    writer.finish()?;
    Ok(())
}

fn decode(path: &Path) -> Outcome {
    let options = ReadOptions::new().with_verify(!flag("--no-verify"));
    let bytes = std::fs::read(path)?;
    let message = Message::from_bytes_with("bench", bytes.clone(), options)?;
    let len = message.object(0)?.decoded_len()?;
    if flag("--new") {
        // Like the reference: a buffer with a message goes in, new memory with values comes out.
        let shared = bytes::Bytes::from(bytes);
        report(number("--repeat", 5), len, || {
            let message = Message::from_bytes_with("bench", shared.clone(), options).expect("a message");
            black_box(message.object(0).and_then(|object| object.decode()).expect("an object"));
        });
        return Ok(());
    }
    let mut out = vec![1u8; usize::try_from(len)?];
    report(number("--repeat", 5), len, || {
        message.object(0).and_then(|object| object.decode_into(&mut out)).expect("an object");
        black_box(&out);
    });
    Ok(())
}

fn encode(count: u64) -> Outcome {
    let descriptor = DataObjectDescriptor::new(DType::F64, [count]);
    let payload = values(count);
    let options = EncodeOptions::new().with_hash(!flag("--no-hash"));
    let mut out = Vec::new();
    encode_message_into(&GlobalMetadata::default(), &[(&descriptor, &payload)], &options, &mut out)?;
    report(number("--repeat", 5), payload.len() as u64, || {
        if flag("--new") {
            out = Vec::new();
        }
        out.clear();
        encode_message_into(&GlobalMetadata::default(), &[(&descriptor, &payload)], &options, &mut out)
            .expect("a message");
        black_box(&out);
    });
    Ok(())
}

fn memcpy(bytes: usize) -> Outcome {
    let from = vec![3u8; bytes];
    let mut to = vec![1u8; bytes];
    report(number("--repeat", 5), bytes as u64, || {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
    });
    Ok(())
}

fn hash(bytes: usize) -> Outcome {
    let from = vec![3u8; bytes];
    report(number("--repeat", 5), bytes as u64, || {
        black_box(xxh3(black_box(&from)));
    });
    Ok(())
}

fn open(path: &Path) -> Result<File, Box<dyn std::error::Error>> {
    if flag("--mmap") {
        return Ok(File::from_source(Arc::new(Mmap::open(path)?), ReadOptions::new())?);
    }
    Ok(File::open(path)?)
}

fn scan(path: &Path, metadata: bool) -> Outcome {
    let len = std::fs::metadata(path)?.len();
    on_threads(number("--threads", 1), || {
        report(number("--repeat", 5), len, || {
            let file = open(path).expect("a file");
            if metadata {
                for message in file.messages().expect("a scan") {
                    black_box(message.expect("a message").metadata());
                }
            } else {
                black_box(file.message_count().expect("a scan"));
            }
        })
    });
    Ok(())
}

fn random(path: &Path, count: u64) -> Outcome {
    let file = open(path)?;
    let messages = file.message_count()?;
    let mut state = 1u64;
    report(number("--repeat", 5), 0, || {
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            black_box(file.read_message((state >> 33) % messages).expect("a message"));
        }
    });
    Ok(())
}
