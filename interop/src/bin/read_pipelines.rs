//! Prints what our reader finds in the messages of a file, one JSON object for each. The path comes from stdin.

use std::io::Write;

use serde_json::json;
use tercet_interop::{Failure, pipelines};
use tercet_tgm::{File, ReadOptions};

fn main() -> Result<(), Failure> {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    // The input was just written by the reference, so it is trusted.
    let options = ReadOptions::new();
    let file = File::open_with(path.trim_end(), options)?;
    for message in file.messages()? {
        let found = message.map_err(Failure::from).and_then(|message| pipelines::describe(&message));
        let found = found.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        serde_json::to_writer(&mut out, &found)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}
