//! The number of threads of the options is used by everything that reads chunks.

use std::io::Cursor;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::{ByteSource, ElementType, TensorView};
use tercet_testkit::pool_size::PoolSize;
use tercet_tet::{
    File, Layout, Method, Query, ReadOptions, RepairOptions, RunOptions, SalvageOptions, Syntax,
    VerifyOptions, Writer, WriterOptions,
};

const SHAPE: [u64; 2] = [8, 6];

fn bytes() -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::F32, SHAPE, [2, 3]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    let values: Vec<f32> = (0..48u8).map(f32::from).collect();
    writer.array(id, TensorView::from_slice(&SHAPE, &values).unwrap()).unwrap();
    writer.finish().unwrap().output
}

#[test]
fn the_threads_option_sets_the_pool() {
    for count in [1, 3] {
        let threads = NonZeroUsize::new(count);
        let read = ReadOptions::new().with_threads(threads);
        let source = PoolSize::new("a.tet", bytes());
        let dynamic = || -> Arc<dyn ByteSource> { source.clone() };
        let file = File::from_source(dynamic(), read).unwrap();
        let dataset = file.dataset("a").unwrap();
        let select = dataset.select().statistics(false).parallel(true);
        let full = select.selection().unwrap();
        // Opening a file is not parallel.
        source.take();
        let check = |what: &str, work: &dyn Fn()| {
            work();
            assert_eq!(source.take(), count, "{what}");
        };
        check("read", &|| drop(dataset.read(&full).unwrap()));
        dataset.read_into(&full, &mut [0; 192], &NoProgress).unwrap();
        assert_eq!(source.take(), count, "read into");
        check("export", &|| dataset.export(&full).unwrap().stream(&mut Vec::new(), &NoProgress).unwrap());
        check("reduction", &|| drop(select.mean([0usize]).run().unwrap()));
        check("median", &|| drop(select.median([1usize]).run().unwrap()));
        check("transform", &|| drop(select.transform(Method::Zscore).run().unwrap()));
        let query = Query::parse(r#"{"dataset": "a", "sum": []}"#, Syntax::Json).unwrap();
        let options = RunOptions::new().with_statistics(false);
        check("query", &|| drop(query.run(&file, &options, &NoProgress).unwrap()));
        let verify = VerifyOptions::new().with_deep(true).with_threads(threads);
        check("verification", &|| assert!(tercet_tet::verify(dynamic(), verify, &NoProgress).unwrap().ok));
        let repair = RepairOptions::new().with_read(read);
        check("plan of a repair", &|| {
            assert!(tercet_tet::plan_repair(dynamic(), &repair, &NoProgress).unwrap().ok());
        });
        let salvage = SalvageOptions::new().with_read(read);
        check("salvage", &|| {
            let sink = Cursor::new(Vec::new());
            drop(tercet_tet::salvage(dynamic(), sink, salvage, &NoProgress).unwrap());
        });
    }
}
