//! Writes every kind of `.tet` file into a directory, and a `manifest.json` that describes them.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

use std::path::PathBuf;

use tercet_interop::{Failure, kinds};

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let (Some(dir), None) = (args.next().map(PathBuf::from), args.next()) else {
        return Err("usage: make_tet DIR".into());
    };
    std::fs::create_dir_all(&dir)?;
    let mut manifest = Vec::new();
    for plan in kinds::all() {
        let file = plan.file.clone();
        manifest.push(plan.write(&dir).map_err(|error| format!("{file}: {error}"))?);
    }
    std::fs::write(dir.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    Ok(())
}
