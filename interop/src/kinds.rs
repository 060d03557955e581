//! The list of files: every combination of type, codec, rank and grid, then one file for each variant of a footer, an index or
//! a name.

use tercet_core::ElementType;

use crate::plan::{Array, Options, Plan};
use crate::values::Pattern;

/// Every file.
pub fn all() -> Vec<Plan> {
    let mut plans = matrix();
    plans.extend(values());
    plans.extend(footers());
    plans.extend(blocks());
    plans.extend(several());
    plans.extend(rewritten());
    plans
}

/// Chunk grids.
#[derive(Clone, Copy, Debug)]
enum Tiling {
    Even,
    Ragged,
    /// One chunk that is larger than the array.
    Larger,
}

impl Tiling {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Even, "even"), (Self::Ragged, "ragged"), (Self::Larger, "larger")];

    fn shapes(self, rank: usize) -> (Vec<u64>, Vec<u64>) {
        let (shape, chunk_shape): ([u64; 8], [u64; 8]) = match self {
            Self::Even => ([6, 4, 2, 2, 2, 2, 1, 2], [3, 2, 2, 1, 2, 1, 1, 2]),
            Self::Ragged => ([7, 5, 3, 2, 2, 1, 3, 1], [3, 2, 2, 3, 1, 1, 2, 1]),
            Self::Larger => ([7, 5, 3, 2, 1, 2, 1, 2], [8, 9, 3, 4, 1, 3, 2, 2]),
        };
        (shape[..rank].to_vec(), chunk_shape[..rank].to_vec())
    }
}

fn matrix() -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut seed = 0;
    for dtype in ElementType::ALL {
        for rank in 1..=8 {
            for (tiling, tiling_name) in Tiling::ALL {
                for (zstd, codec) in [(None, "raw"), (Some(3), "zstd")] {
                    let (shape, chunk_shape) = tiling.shapes(rank);
                    seed += 1;
                    let pattern = if seed % 3 == 0 { Pattern::Steps } else { Pattern::Mixed };
                    let mut array =
                        Array::new("values", dtype, &shape, &chunk_shape).valued(pattern, seed % 90);
                    array.zstd = zstd;
                    for (options, profile) in [(Options::Default, "block"), (Options::Interop, "interop")] {
                        let name = format!("{dtype}-rank{rank}-{tiling_name}-{codec}-{profile}");
                        plans.push(Plan::new(name, options, vec![array.clone()]));
                    }
                }
            }
        }
    }
    plans
}

/// The ends of the ranges, infinities, negative zero, NaN.
fn values() -> Vec<Plan> {
    let mut plans = Vec::new();
    for dtype in ElementType::ALL {
        for (zstd, codec) in [(None, "raw"), (Some(1), "zstd")] {
            let patterns: &[_] = if dtype.is_float() {
                &[(Pattern::Limits, "limits"), (Pattern::Nans, "nans")]
            } else {
                &[(Pattern::Limits, "limits")]
            };
            for &(pattern, name) in patterns {
                let mut array = Array::new("values", dtype, &[5, 8], &[2, 3]).valued(pattern, 0);
                array.zstd = zstd;
                plans.push(Plan::new(format!("{dtype}-{name}-{codec}"), Options::Default, vec![array]));
            }
        }
    }
    for level in [-5, 1, 9, 19, 22] {
        let array = Array::new("values", ElementType::F32, &[40, 30], &[16, 16]).compressed(level);
        plans.push(Plan::new(
            format!("zstd-level{level}"),
            Options::Default,
            vec![array.valued(Pattern::Steps, 2)],
        ));
    }
    plans
}

fn small() -> Array {
    Array::new("t2m", ElementType::F32, &[6, 5], &[4, 2])
}

fn described() -> Array {
    small()
        .attr("units", "K")
        .attr("long_name", "2 metre temperature — θ₂ₘ \"quoted\" \\ 気温")
        .attr("_FillValue", "-999")
        .dims(&["time", "station"])
        .labelled("time", "2024-01-0", 6)
        .labelled("station", "Żagań ", 5)
}

fn footers() -> Vec<Plan> {
    let interop = |name: &str, array| Plan::new(name, Options::Interop, vec![array]);
    let mut plans = vec![
        interop("footer-none", small()),
        Plan { history: rows(3), ..interop("footer-history", small()) },
        Plan { tool: Some("interop".to_owned()), ..interop("footer-tool", small()) },
        interop("footer-attrs", small().attr("units", "K")),
        interop("footer-dims", small().dims(&["time", "station"])),
        interop("footer-labels-by-number", small().labelled("1", "s", 5)),
        Plan { history: rows(2), tool: Some("interop".to_owned()), ..interop("footer-all", described()) },
        interop(
            "footer-64-labels",
            Array::new("a", ElementType::I32, &[64, 2], &[10, 2]).labelled("0", "p", 64),
        ),
        interop("footer-spill", spilled(Array::new("a", ElementType::I16, &[9], &[4]))),
        Plan { history: rows(4096 / 8), ..interop("footer-long-history", small()) },
    ];
    for options in [Options::Default, Options::NoStatistics, Options::NoChecksums] {
        let name = match options {
            Options::Default => "default",
            Options::NoStatistics => "no-statistics",
            _ => "no-checksums",
        };
        let plan = |kind: &str, array| Plan::new(format!("{name}-{kind}"), options, vec![array]);
        plans.push(plan("plain", small()));
        plans.push(plan("zstd", small().compressed(3)));
        plans.push(Plan { history: rows(5), ..plan("history", small()) });
        plans.push(Plan { tool: Some("interop".to_owned()), ..plan("all", described()) });
        plans.push(plan("spill", spilled(Array::new("a", ElementType::U64, &[9, 2], &[4, 2]))));
        plans.push(Plan { budget: [5000, 0], ..plan("budget-percent", small()) });
        plans.push(Plan { budget: [0, 1 << 30], ..plan("budget-bytes", small()) });
        plans.push(Plan { budget: [10_000, u32::MAX], ..plan("budget-both", small()) });
        plans.push(Plan::new(format!("{name}-zero-datasets"), options, vec![]));
        plans.push(Plan {
            history: rows(1),
            ..Plan::new(format!("{name}-zero-datasets-history"), options, vec![])
        });
    }
    plans.push(Plan::new("interop-zero-datasets", Options::Interop, vec![]));
    plans
}

fn rows(count: usize) -> Vec<[String; 2]> {
    (0..count).map(|n| [format!("step{n}"), "source ✓".to_owned()]).collect()
}

/// Metadata that does not fit into the footer's 64 KiB: 64 attributes of 1 KiB.
fn spilled(mut array: Array) -> Array {
    for n in 0..64 {
        array = array.attr(&format!("attribute{n:02}"), &format!("{n:02}é").repeat(255));
    }
    array.attrs.insert("attribute63".to_owned(), "é".repeat(512));
    let names = &["x", "y"][..array.shape.len()];
    array.dims(names)
}

/// The integrity block inline, by reference and inside a spill, and its labels.
fn blocks() -> Vec<Plan> {
    let one = |name: &str, array| Plan::new(name, Options::Default, vec![array]);
    let column = |rows: u64| Array::new("column", ElementType::U16, &[rows * 2 - 1], &[2]);
    let mut plans = vec![
        one("block-256-rows", column(256)),
        one("block-257-rows", column(257)),
        one("block-1024-rows", column(1024)),
        one("block-1025-rows", column(1025)),
        one("block-3072-rows", column(3072)),
        one("block-3073-rows", column(3073)),
        one(
            "block-3073-rows-zstd",
            Array::new("column", ElementType::F64, &[7, 1756], &[1, 4]).compressed(1),
        ),
        Plan::new("block-3073-rows-no-statistics", Options::NoStatistics, vec![column(3073)]),
        one("block-spill", spilled(Array::new("a", ElementType::U8, &[600], &[2]))),
        one("block-spill-by-reference", spilled(Array::new("a", ElementType::F32, &[3100], &[1]))),
        one("block-65-labels", Array::new("a", ElementType::F32, &[65, 2], &[10, 2]).labelled("0", "p", 65)),
        one(
            "block-long-labels",
            Array::new("a", ElementType::F64, &[300, 70], &[100, 35])
                .dims(&["time", "station"])
                .labelled("time", "t", 300)
                .labelled("station", "station ", 70),
        ),
        one(
            "block-long-and-short-labels",
            Array::new("a", ElementType::I64, &[100, 4], &[30, 4])
                .dims(&["time", "station"])
                .labelled("time", "2024-", 100)
                .labelled("station", "s", 4),
        ),
        one(
            "block-many-labels-spill",
            Array::new("a", ElementType::U8, &[9000], &[1000]).labelled("0", "label ", 9000),
        ),
    ];
    for dtype in ElementType::ALL {
        let array = Array::new("cells", dtype, &[31, 17], &[1, 1]);
        plans.push(one(&format!("block-by-reference-{dtype}"), array));
    }
    plans
}

fn several() -> Vec<Plan> {
    // Seven bytes come first, so that everything after them is unaligned unless the writer pads.
    let odd_first = || {
        let mut arrays = vec![Array::new("odd", ElementType::U8, &[7], &[7])];
        for (n, dtype) in ElementType::ALL.into_iter().enumerate() {
            let seed = u32::try_from(n).unwrap_or(0) + 2;
            let array = Array::new(&format!("grp/sub{n}/{dtype}"), dtype, &[5, 3], &[2, 2]);
            arrays.push(array.valued(Pattern::Mixed, seed));
        }
        arrays
    };
    let every_second_compressed = || {
        let compress = |(n, array): (usize, Array)| if n % 2 == 0 { array.compressed(3) } else { array };
        odd_first().into_iter().enumerate().map(compress).collect::<Vec<_>>()
    };
    let names = ["a", "group/a", "/", "a b", "温度", "\"q\"\\", "ünïcode/Ω", "12345678", "123456789", "0"];
    let strangely_named =
        || names.iter().map(|name| Array::new(name, ElementType::I32, &[3], &[2])).collect::<Vec<_>>();
    let longest = "n".repeat(1024);
    let mut plans = Vec::new();
    for (options, name) in [(Options::Default, "default"), (Options::Interop, "interop")] {
        let plan = |kind: &str, arrays| Plan::new(format!("several-{kind}-{name}"), options, arrays);
        plans.push(plan("raw", odd_first()));
        plans.push(plan("mixed", every_second_compressed()));
        plans.push(plan("names", strangely_named()));
        plans.push(plan("longest-name", vec![Array::new(&longest, ElementType::U8, &[3], &[2])]));
        plans.push(Plan { shuffled: true, ..plan("raw-backwards", odd_first()) });
        plans.push(Plan { shuffled: true, ..plan("mixed-backwards", every_second_compressed()) });
        let backwards = small().compressed(3).valued(Pattern::Steps, 1);
        plans.push(Plan { shuffled: true, ..plan("one-backwards", vec![backwards]) });
        let many = (0..300).map(|n| Array::new(&format!("many/{n}"), ElementType::F32, &[2], &[1]));
        plans.push(plan("300", many.collect()));
        plans.push(plan(
            "described",
            vec![described(), strangely_named().remove(4).attr("units", "°C").dims(&["x"])],
        ));
    }
    plans
}

/// Files changed by a second program: datasets were added or removed.
fn rewritten() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (options, name) in [(Options::Default, "default"), (Options::NoChecksums, "no-checksums")] {
        for (zstd, codec) in [(None, "raw"), (Some(3), "zstd")] {
            let add = |name: &str, dtype, seed| {
                let mut array = Array::new(name, dtype, &[5, 7], &[2, 3]).valued(Pattern::Mixed, seed);
                array.zstd = zstd;
                array
            };
            let plan = |kind: &str, arrays| Plan::new(format!("{kind}-{codec}-{name}"), options, arrays);
            let first = vec![Array::new("odd", ElementType::U8, &[3], &[3]), described()];
            plans.push(Plan {
                appended: vec![
                    add("more/a", ElementType::F64, 5).attr("units", "m"),
                    add("more/b", ElementType::F16, 6),
                ],
                ..plan("appended", first.clone())
            });
            plans.push(Plan {
                appended: vec![add("first", ElementType::I64, 7)],
                ..plan("appended-to-nothing", vec![])
            });
            plans.push(Plan {
                dropped: vec!["odd".to_owned()],
                ..plan("dropped", [first.clone(), vec![add("last", ElementType::U32, 8)]].concat())
            });
            plans.push(Plan {
                appended: vec![add("more", ElementType::U16, 9)],
                dropped: vec!["t2m".to_owned()],
                ..plan("appended-dropped", first.clone())
            });
            plans.push(Plan {
                dropped: vec!["odd".to_owned(), "t2m".to_owned()],
                ..plan("dropped-all", first)
            });
            let rows = Array::new("column", ElementType::U16, &[3100], &[1]);
            plans.push(Plan {
                appended: vec![add("more", ElementType::F32, 10)],
                ..plan("appended-by-reference", vec![rows])
            });
        }
    }
    plans
}
