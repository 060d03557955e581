//! Print the smallest pipelines for raw float64 files within error bounds, as JSON lines: `max_error BOUND,… FILE…`
#![allow(clippy::print_stdout, reason = "an example shows its results")]
#![allow(clippy::disallowed_methods, reason = "an example reads its arguments")]

use std::error::Error;

use tercet_tgm::precision::{choose, deviation};
use tercet_tgm::{DType, DataObjectDescriptor, EncodeOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let bounds = arguments.next().ok_or("no bounds")?;
    let files: Vec<String> = arguments.collect();
    for bound in bounds.split(',') {
        let bound: f64 = bound.parse()?;
        for file in &files {
            let values = std::fs::read(file)?;
            let descriptor = DataObjectDescriptor::new(DType::F64, [values.len() as u64 / 8]);
            let chosen = choose(&descriptor, &values, bound, &EncodeOptions::new())?;
            let error = deviation(DType::F64, &values, &chosen.trial.decode()?).max;
            let line = serde_json::json!({
                "file": file, "bound": bound, "payload": chosen.trial.stored.len(), "object": chosen.trial.len(),
                "error": error, "holds": error <= bound, "method": chosen.candidate.to_string(),
            });
            println!("{line}");
        }
    }
    Ok(())
}
