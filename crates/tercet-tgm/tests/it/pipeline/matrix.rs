//! Every valid pipeline of every type, in both byte orders.

use rayon::ThreadPoolBuilder;
use tercet_tgm::{ByteOrder, DTYPES, DType, DataObjectDescriptor, EncodeOptions};

use crate::descriptors::{doubles, field, message_of, packed, pipelines, shuffled, szip, zfp};

/// The maximum error of decoded values.
fn tolerance(descriptor: &DataObjectDescriptor) -> Option<f64> {
    if descriptor.encoding == "simple_packing" {
        let bits = descriptor.params["sp_bits_per_value"].as_u64().unwrap();
        // The range is 30.25; 0 bits keep the first value only.
        return Some(if bits == 0 { 31.0 } else { (32.0 / f64::exp2(bits as f64)).max(1e-12) });
    }
    (descriptor.compression == "zfp").then_some(2.0)
}

#[test]
fn every_combination_round_trips() {
    for dtype in DTYPES {
        for elements in [0, 1, 5, 64, 700] {
            let values = field(dtype, elements);
            for plain in pipelines(dtype, elements as u64) {
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let mut descriptor = plain.clone();
                    descriptor.byte_order = Some(order);
                    let mut stored = values.clone();
                    if order == ByteOrder::Big {
                        let unit = dtype.swap_unit();
                        stored.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
                    }
                    let message = match message_of(&descriptor, &stored, &EncodeOptions::new()) {
                        Err(_) if elements == 0 && descriptor.compression == "blosc2" => continue,
                        made => made.unwrap_or_else(|error| panic!("{descriptor:?}: {error}")),
                    };
                    let object = message.object(0).unwrap();
                    let array = object.decode().unwrap_or_else(|error| panic!("{descriptor:?}: {error}"));
                    let Some(tolerance) = tolerance(&descriptor) else {
                        assert_eq!(array.bytes(), values, "{descriptor:?}");
                        continue;
                    };
                    assert_eq!(array.bytes().len(), values.len());
                    for (found, value) in doubles(array.bytes()).iter().zip(doubles(&values)) {
                        assert!((found - value).abs() <= tolerance, "{found} {value} {descriptor:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let values = field(DType::F64, 200_000);
    let ours = |threads: usize, descriptor: &DataObjectDescriptor| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let message = message_of(descriptor, &values, &EncodeOptions::new()).unwrap();
            let array = message.object(0).unwrap().decode().unwrap().bytes().to_vec();
            (message.bytes().unwrap(), array)
        })
    };
    let plain = DataObjectDescriptor::new(DType::F64, [200_000]);
    let mut all = vec![
        plain.clone().with_compression("zstd"),
        shuffled(plain.clone(), 8).with_compression("lz4"),
        plain.clone().with_compression("blosc2"),
        zfp(plain.clone(), "fixed_rate", "zfp_rate", 12.0),
        zfp(plain.clone(), "fixed_accuracy", "zfp_tolerance", 0.01),
    ];
    for bits in [13, 16, 24, 32] {
        all.push(packed(bits)(plain.clone()));
    }
    all.push(szip(packed(24)(plain.clone()), 128, 16, 8));
    for descriptor in all {
        let one = ours(1, &descriptor);
        for threads in [2, 3, 7] {
            assert!(ours(threads, &descriptor) == one, "{threads} threads: {descriptor:?}");
        }
    }
}
