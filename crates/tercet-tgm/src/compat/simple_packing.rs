//! Parameters of `simple_packing`.

use super::error::{Result, TensogramError};
use super::types::Section;

/// The parameters of `simple_packing`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimplePackingParams {
    /// The minimum of the values.
    pub reference_value: f64,
    /// The power of two of a step.
    pub binary_scale_factor: i32,
    /// The power of ten by which values are multiplied.
    pub decimal_scale_factor: i32,
    /// Bits per value.
    pub bits_per_value: u32,
}

impl SimplePackingParams {
    /// The parameters of a descriptor.
    pub fn to_params(&self) -> Section {
        use ciborium::Value;
        [
            ("sp_reference_value".to_owned(), Value::Float(self.reference_value)),
            ("sp_binary_scale_factor".to_owned(), self.binary_scale_factor.into()),
            ("sp_decimal_scale_factor".to_owned(), self.decimal_scale_factor.into()),
            ("sp_bits_per_value".to_owned(), self.bits_per_value.into()),
        ]
        .into()
    }
}

/// The parameters of `simple_packing` for values.
pub fn compute_params(
    values: &[f64],
    bits_per_value: u32,
    decimal_scale_factor: i32,
) -> Result<SimplePackingParams> {
    let little: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let packing =
        tercet_codec::pack::Packing::for_values(&little, bits_per_value, decimal_scale_factor, false);
    let packing = packing.map_err(|error| TensogramError::Encoding(error.to_string()))?;
    Ok(SimplePackingParams {
        reference_value: packing.reference,
        binary_scale_factor: packing.binary_scale,
        decimal_scale_factor: packing.decimal_scale,
        bits_per_value: packing.bits,
    })
}
