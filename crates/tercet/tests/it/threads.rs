//! The number of threads is passed on to every format.

use std::io::Cursor;
use std::num::NonZeroUsize;

use tercet::core::TensorView;
use tercet::prelude::*;
use tercet::{Container, tatami, tet, tgm};
use tercet_testkit::pool_size::PoolSize;

fn tet_bytes() -> Vec<u8> {
    let mut layout = tet::Layout::new();
    let id = layout.dataset("a", DType::U8, [4], [2]).unwrap();
    let sink = Cursor::new(Vec::new());
    let mut writer = tet::Writer::new(sink, layout, tet::WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&[4], &[1u8, 2, 3, 4]).unwrap()).unwrap();
    writer.finish().unwrap().output
}

fn tgm_bytes() -> Vec<u8> {
    let descriptor = tgm::DataObjectDescriptor::new(DType::U8, [4]);
    let (metadata, options) = (tgm::GlobalMetadata::default(), tgm::EncodeOptions::new());
    tgm::encode_message(&metadata, &[(&descriptor, &[1; 4])], &options).unwrap()
}

fn tatami_bytes() -> Vec<u8> {
    let schema = tatami::Schema::new(vec![tatami::Field::new("a", tatami::Type::Int32)]).unwrap();
    let sink = Cursor::new(Vec::new());
    let mut writer = tatami::Writer::new(sink, schema, tatami::WriterOptions::new()).unwrap();
    writer.append(&[tatami::Column::new(tatami::Values::Int32(vec![1, 2, 3]))]).unwrap();
    writer.finish().unwrap().output
}

#[test]
fn every_format_uses_the_number_of_threads() {
    for (name, bytes) in [("tet", tet_bytes()), ("tgm", tgm_bytes()), ("tatami", tatami_bytes())] {
        for count in [1, 3] {
            let threads = NonZeroUsize::new(count);
            let source = PoolSize::new(name, bytes.clone());
            let options = ReadOptions::new().with_threads(threads);
            let container = Container::from_source(source.clone(), options).unwrap();
            source.take();
            match container {
                Container::Tet(file) => drop(file.dataset("a").unwrap().read_all().unwrap()),
                Container::Tgm(file) => {
                    let message = file.messages().unwrap().next().unwrap().unwrap();
                    source.take();
                    message.decode().unwrap();
                }
                Container::Tatami(file) => drop(file.read_column(0).unwrap()),
                _ => unreachable!(),
            }
            assert_eq!(source.take(), count, "{name}");
            let options = VerifyOptions::new().with_deep(true).with_threads(threads);
            assert!(tercet::verify_source(source.clone(), options, &NoProgress).unwrap().is_ok());
            assert_eq!(source.take(), count, "verification of {name}");
        }
    }
}
