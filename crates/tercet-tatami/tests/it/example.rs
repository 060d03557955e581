//! The example program of the crate runs and its assertions hold.

#[path = "../../examples/records.rs"]
mod records;

#[test]
fn the_example_runs() {
    let directory = tempfile::tempdir().unwrap();
    records::run(directory.path()).unwrap();
}
