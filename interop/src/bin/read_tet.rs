//! Prints what our reader finds in `.tet` files: paths come from stdin, one JSON object for each goes to stdout.

use std::io::{BufRead, Write};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tercet_core::progress::NoProgress;
use tercet_interop::Failure;
use tercet_tet::{Dataset, Error, File, VerifyOptions};

fn main() -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::io::stdin().lock().lines() {
        let path = path?;
        let found = describe(&path).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        serde_json::to_writer(&mut out, &found)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

fn describe(path: &str) -> Result<Value, Error> {
    let file = File::open(path)?;
    let source = Arc::new(tercet_core::source::File::open(path).expect("the file was opened before"));
    let report = tercet_tet::verify(source, VerifyOptions::new().with_deep(true), &NoProgress)?;
    let findings: Vec<_> =
        report.findings.iter().filter(|finding| !finding.ok).map(|finding| json!(finding)).collect();
    let datasets = file.datasets().map(|dataset| array(&dataset)).collect::<Result<Vec<_>, _>>()?;
    let budget = file.memory_budget();
    Ok(json!({
        "datasets": datasets,
        "history": file.history(),
        "budget": [u32::from(budget.percent_bps), budget.bytes],
        "footer_version": file.footer_version(),
        "tool": file.metadata().map(|metadata| &metadata.file.tool).filter(|tool| !tool.is_empty()),
        "protection": file.integrity_status(),
        "verify": { "ok": report.ok, "complaints": findings },
    }))
}

fn array(dataset: &Dataset<'_>) -> Result<Value, Error> {
    let values = dataset.read_all()?;
    let digest = Sha256::digest(values.bytes());
    let labels: Vec<_> = (0..dataset.shape().len()).map(|axis| dataset.labels(axis)).collect();
    let info = dataset.info();
    Ok(json!({
        "name": dataset.name(),
        "dtype": dataset.dtype().map(tercet_core::DType::short_name),
        "shape": dataset.shape(),
        "chunk_shape": dataset.chunk_shape(),
        "sha256": format!("{digest:x}"),
        "attrs": info.map(|info| &info.attrs),
        "dim_names": info.map(|info| &info.dim_names),
        "labels": labels,
    }))
}
