//! Every legal pipeline of every type, both byte orders.

use rayon::ThreadPoolBuilder;
use tercet_tgm::{ByteOrder, DataObjectDescriptor, Dtype, EncodeOptions};

use super::{doubles, field, message_of, packed, shuffled, szip, zfp};

/// Every legal pipeline for values of a type.
pub(super) fn pipelines(dtype: Dtype, elements: u64) -> Vec<DataObjectDescriptor> {
    let plain = DataObjectDescriptor::new(dtype, [elements]);
    let width = u64::from(dtype.bits() / 8).max(1);
    let general = |from: &DataObjectDescriptor| {
        let mut all = vec![from.clone()];
        all.push(from.clone().with_compression("zstd"));
        all.push(from.clone().with_compression("zstd").with_param("zstd_level", -5));
        all.push(from.clone().with_compression("lz4"));
        all
    };
    let blosc2 = |from: &DataObjectDescriptor| {
        let inner = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"];
        let one = |name: &str| from.clone().with_compression("blosc2").with_param("blosc2_codec", name);
        inner.into_iter().map(one).collect::<Vec<_>>()
    };
    let mut all = general(&plain);
    let shuffle = shuffled(plain.clone(), width);
    all.extend(general(&shuffle));
    all.push(szip(shuffle.clone(), 4, 8, 8));
    all.extend(blosc2(&shuffle));
    if dtype == Dtype::Bitmask {
        all.push(plain.clone().with_compression("rle"));
        all.push(plain.with_compression("roaring"));
        return all;
    }
    all.extend(blosc2(&plain));
    if width <= 4 && width != 3 {
        for (rsi, block, flags) in [(128, 16, 8), (1, 8, 0), (3, 64, 12), (2, 32, 9), (5, 6, 72)] {
            all.push(szip(plain.clone(), rsi, block, flags));
        }
    }
    if dtype == Dtype::Float64 {
        for bits in [0, 1, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64] {
            let packed = packed(bits)(plain.clone());
            all.extend(general(&packed));
            if bits > 0 {
                all.push(packed.clone().with_compression("blosc2"));
            }
            if bits % 8 == 0 && bits > 0 {
                let shuffle = shuffled(packed.clone(), u64::from(bits) / 8);
                all.extend(general(&shuffle));
                all.push(shuffle.with_compression("blosc2"));
            }
            if [8, 16, 24, 32].contains(&bits) {
                all.push(szip(packed.clone(), 4, 16, 8));
                all.push(szip(shuffled(packed, u64::from(bits) / 8), 2, 8, 8));
            }
        }
        all.push(zfp(plain.clone(), "fixed_rate", "zfp_rate", 16.0));
        all.push(zfp(plain.clone(), "fixed_rate", "zfp_rate", 15.3));
        all.push(zfp(plain.clone(), "fixed_precision", "zfp_precision", 30.0));
        all.push(zfp(plain, "fixed_accuracy", "zfp_tolerance", 1e-3));
    }
    all
}

/// How far decoded values may be from the originals.
fn tolerance(descriptor: &DataObjectDescriptor) -> Option<f64> {
    if descriptor.encoding == "simple_packing" {
        let bits = descriptor.params["sp_bits_per_value"].as_u64().unwrap();
        // The range is 30.25; 0 bits keep the first value only.
        return Some(if bits == 0 { 31.0 } else { (32.0 / f64::exp2(bits as f64)).max(1e-12) });
    }
    (descriptor.compression == "zfp").then_some(2.0)
}

#[test]
fn what_goes_in_comes_out() {
    for dtype in Dtype::ALL {
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
    let values = field(Dtype::Float64, 200_000);
    let ours = |threads: usize, descriptor: &DataObjectDescriptor| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let message = message_of(descriptor, &values, &EncodeOptions::new()).unwrap();
            let array = message.object(0).unwrap().decode().unwrap().bytes().to_vec();
            (message.bytes().unwrap(), array)
        })
    };
    let plain = DataObjectDescriptor::new(Dtype::Float64, [200_000]);
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
