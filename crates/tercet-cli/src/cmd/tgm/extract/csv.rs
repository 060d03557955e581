//! Extracted values as CSV.

use std::io::Write;

use tercet::core::tensor::{bf16, f16};
use tercet::tgm::{DType, Tensor};

use crate::failure::Failure;

/// Writes a row for each value: its position on each axis, and the value. Floats have the fewest digits that parse to the
/// same value.
pub(super) fn write(array: &Tensor, sink: &mut dyn Write) -> Result<(), Failure> {
    macro_rules! texts {
        ($type:ty, $map:expr) => {
            array
                .to_vec::<$type>()
                .map(|values| Box::new(values.into_iter().map($map)) as Box<dyn Iterator<Item = String>>)
        };
    }
    let texts = match array.dtype() {
        DType::F64 => texts!(f64, |value| value.to_string()),
        DType::F32 => texts!(f32, |value| value.to_string()),
        DType::F16 => texts!(f16, |value| f32::from(value).to_string()),
        DType::BF16 => texts!(bf16, |value| f32::from(value).to_string()),
        DType::I8 => texts!(i8, |value| value.to_string()),
        DType::I16 => texts!(i16, |value| value.to_string()),
        DType::I32 => texts!(i32, |value| value.to_string()),
        DType::I64 => texts!(i64, |value| value.to_string()),
        DType::U8 => texts!(u8, |value| value.to_string()),
        DType::U16 => texts!(u16, |value| value.to_string()),
        DType::U32 => texts!(u32, |value| value.to_string()),
        DType::U64 => texts!(u64, |value| value.to_string()),
        _ => None,
    };
    let dtype = array.dtype();
    let texts = texts.ok_or_else(|| {
        Failure::request(format!("{dtype} cannot be written as CSV"))
            .with_hint("use `--as npy` or `--as raw`")
    })?;
    let shape = array.shape();
    let heads: Vec<String> = (0..shape.len()).map(|axis| format!("dim_{axis},")).collect();
    let mut line = format!("{}value\n", heads.concat());
    let mut at = vec![0_u64; shape.len()];
    for text in texts {
        for position in &at {
            line.push_str(&position.to_string());
            line.push(',');
        }
        line.push_str(&text);
        line.push('\n');
        if line.len() >= 1 << 16 {
            sink.write_all(line.as_bytes()).map_err(super::values::of_file)?;
            line.clear();
        }
        for (position, extent) in at.iter_mut().zip(shape.iter()).rev() {
            *position += 1;
            if *position < *extent {
                break;
            }
            *position = 0;
        }
    }
    sink.write_all(line.as_bytes()).map_err(super::values::of_file)
}
