//! Arrays in a `.tet` file: create, open, read a selection, query a mean, verify.
//!
//! Run with `cargo run -p tercet-tet --example arrays`.

use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source;
use tercet_core::{DType, TensorView};
use tercet_tet::{
    Compression, Computed, File, Layout, Query, Syntax, VerifyOptions, Writer, WriterOptions, verify,
};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("weather.tet");

    // A layout lists every dataset before the first byte is written: name, element type, shape, chunk shape.
    let mut layout = Layout::new();
    let t2m = layout.dataset("t2m", DType::F32, [4, 2, 3], [2, 2, 3])?;
    layout.dims(t2m, ["time", "lat", "lon"])?;
    layout.labels(t2m, "lat", vec!["60".to_owned(), "50".to_owned()])?;
    layout.attr(t2m, "units", "K")?;
    let mask = layout.dataset("mask", DType::U8, [2, 3], [2, 3])?;
    layout.dims(mask, ["lat", "lon"])?;
    layout.compress(mask, Compression::Zstd { level: 3 })?;

    // Write whole arrays, or chunk by chunk with `Writer::chunk`. The file appears when the writer is finished.
    let temperatures: Vec<f32> = (0..24u8).map(|i| 270.0 + f32::from(i)).collect();
    let mut writer = Writer::create(&path, layout, WriterOptions::new())?;
    writer.array(t2m, TensorView::from_slice(&[4, 2, 3], &temperatures)?)?;
    writer.array(mask, TensorView::from_slice(&[2, 3], &[0u8, 1, 1, 0, 0, 1])?)?;
    let written = writer.finish()?;
    assert_eq!(written.chunks, 3);

    // Opening reads the catalog only.
    let file = File::open(&path)?;
    let names: Vec<&str> = file.datasets().map(|dataset| dataset.name()).collect();
    assert_eq!(names, ["t2m", "mask"]);
    let t2m = file.dataset("t2m")?;
    assert_eq!(t2m.shape(), [4, 2, 3]);
    assert_eq!(t2m.axis_name(0), Some("time"));
    assert_eq!(t2m.info().map(|info| info.attrs["units"].as_str()), Some("K"));

    // Read a selection, in NumPy's slice syntax: two time steps, the first latitude, every longitude. A single
    // position has no axis.
    let part = t2m.select().slices("1:3,0,:")?.read()?;
    assert_eq!(part.shape()[..], [2, 3]);
    assert_eq!(part.as_slice::<f32>(), Some(&[276.0, 277.0, 278.0, 282.0, 283.0, 284.0][..]));

    // The mean over time. The result has the axes that remain, lat and lon.
    let mean = t2m.select().mean(["time"]).run()?;
    assert_eq!(
        mean.dims.iter().map(|dim| dim.name.as_deref()).collect::<Vec<_>>(),
        [Some("lat"), Some("lon")]
    );
    assert_eq!(mean.tensor.as_slice::<f64>(), Some(&[279.0, 280.0, 281.0, 282.0, 283.0, 284.0][..]));

    // A query document is the same request as text.
    let query = Query::parse(r#"{"dataset": "t2m", "mean": ["time"]}"#, Syntax::Json)?;
    let Computed::Reduced(results) = query.request(&file)?.run(&NoProgress)?.computed else {
        return Err("no reduction".into());
    };
    assert_eq!(results[0].tensor.bytes(), mean.tensor.bytes());

    // Verify every checksum and decode every chunk.
    let source = Arc::new(source::File::open(&path)?);
    let report = verify(source, VerifyOptions::new().with_deep(true), &NoProgress)?;
    assert!(report.ok && report.failures().count() == 0);

    println!("wrote and verified {} datasets, {} bytes", names.len(), written.bytes);
    Ok(())
}

#[test]
fn the_example_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
