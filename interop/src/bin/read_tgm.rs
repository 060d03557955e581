//! Prints what our reader finds in `.tgm` files: paths come from stdin, one JSON object for each goes to stdout.

use std::io::{BufRead, Write};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tercet_core::progress::NoProgress;
use tercet_interop::{Failure, tgm};
use tercet_tgm::{Depth, File, Message, ValidateOptions, validate_source};

fn main() -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::io::stdin().lock().lines() {
        let found = describe(&path?).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        serde_json::to_writer(&mut out, &found)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

fn describe(path: &str) -> Result<Value, Failure> {
    let file = File::open(path)?;
    let options = ValidateOptions::new().with_depth(Depth::Full).with_canonical(true);
    let report = validate_source(&Arc::clone(file.source()), &options, &NoProgress)?;
    let messages = file.messages()?.map(|message| one(&message?)).collect::<Result<Vec<_>, Failure>>()?;
    let issues: Vec<_> = report.messages.iter().flat_map(|message| &message.issues).collect();
    Ok(json!({ "messages": messages, "valid": report.is_ok(), "issues": issues }))
}

fn one(message: &Message) -> Result<Value, Failure> {
    let mut objects = Vec::new();
    for object in message.objects() {
        let object = object?;
        let array = object.decode()?;
        objects.push(json!({
            "dtype": array.dtype().name(),
            "shape": array.shape(),
            "byte_order": object.descriptor().stored_order().name(),
            "sha256": tgm::hex(&Sha256::digest(array.bytes())),
        }));
    }
    Ok(json!({
        "base": message.metadata().base,
        "extra": message.metadata().extra,
        "objects": objects,
        "same_again": tgm::again(message)? == message.bytes()?,
    }))
}
