//! Runs filters on `.tatami` files: `filter_tatami FILE…`, one filter per line of stdin as a JSON string, one JSON answer per line
//! of stdout, in order.
//!
//! ```text
//! "name like \"a%\""     [[3, 17, 9], [3, 17, 9]]        for each file: the rows that match, the sum and the xor of their `id`
//!                        {"error": "…"}
//! ```
//!
//! A count that differs from the rows of the same scan is an error.

use std::io::{BufRead, Write};

use rayon::prelude::*;
use serde_json::{Value, json};
use tercet_interop::Failure;
use tercet_tatami::predicate::ParsedFilter;
use tercet_tatami::{File, LogicalType, Values};

fn main() -> Result<(), Failure> {
    let files = std::env::args().skip(1).map(File::open).collect::<Result<Vec<File>, _>>()?;
    let filters = std::io::stdin().lock().lines().collect::<Result<Vec<String>, _>>()?;
    let answer = |line: &String| {
        let answer = serde_json::from_str::<String>(line).map_err(Failure::from).and_then(|filter| {
            let all = files.iter().map(|file| matches(file, &filter).map(|found| json!(found)));
            all.collect::<Result<Vec<Value>, _>>()
        });
        answer.map_or_else(|error| json!({ "error": error.to_string() }), Value::from)
    };
    let answers: Vec<Value> = filters.par_iter().map(answer).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for answer in answers {
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// The number, the sum and the xor of the matching rows.
fn matches(file: &File, filter: &str) -> Result<[u64; 3], Failure> {
    let filter = ParsedFilter::new(filter)?;
    // Binding alone must agree with the scan.
    let types = LogicalType::for_fields(file.schema().fields(), &file.footer().pairs);
    filter.bind(file.schema(), &types).map_err(|(error, _)| error)?;
    let scan = file.scan().columns(&["id"])?.filter(filter.expr())?;
    let (mut rows, mut sum, mut xor) = (0, 0_u64, 0);
    for batch in scan.batches() {
        for column in batch?.columns {
            let Values::Int64(ids) = column.values else { return Err("`id` is not int64".into()) };
            for id in ids {
                rows += 1;
                sum = sum.wrapping_add(id.cast_unsigned());
                xor ^= id.cast_unsigned();
            }
        }
    }
    let count = scan.count()?;
    if count != rows {
        return Err(format!("count is {count}, but {rows} rows match").into());
    }
    Ok([rows, sum, xor])
}
