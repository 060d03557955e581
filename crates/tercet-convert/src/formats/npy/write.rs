//! Header of new `.npy` files, byte for byte as NumPy writes it.

use tercet_core::DType;

use super::dtype::type_string;

/// Alignment of the values, so that a mapped file can be used in place.
const ALIGN: usize = 64;
/// NumPy leaves room for the first extent to grow to as many digits.
const GROWTH_DIGITS: usize = 21;

/// The header of a `.npy` file in C order, little-endian. `None` for element types that NumPy does not have: see
/// [`type_string`].
///
/// The raw values follow: a header and row-major little-endian bytes make a file. Scalars and empty arrays are allowed. The
/// format version is 1.0, and 2.0 for shapes of thousands of axes.
///
/// ```
/// use tercet_convert::npy;
/// use tercet_core::DType;
///
/// let header = npy::header(DType::F32, &[2, 3]).unwrap();
/// assert_eq!(header.len(), 128);
/// assert!(header[10..].starts_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } "));
/// ```
pub fn header(dtype: impl Into<DType>, shape: &[u64]) -> Option<Vec<u8>> {
    let descr = type_string(dtype.into())?;
    let extents = match shape {
        [] => String::new(),
        [only] => format!("{only},"),
        _ => shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    };
    let first_digits = shape.first().map_or(GROWTH_DIGITS, |first| first.to_string().len());
    let growth = " ".repeat(GROWTH_DIGITS.saturating_sub(first_digits));
    let dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}{growth}");
    let padded = |preamble: usize| {
        let used = preamble + dictionary.len() + 1;
        // Like NumPy: a header that ends on the boundary gets another block.
        used + ALIGN - used % ALIGN
    };
    let mut out = b"\x93NUMPY".to_vec();
    let total = if let Ok(len) = u16::try_from(padded(10) - 10) {
        out.extend([1, 0]);
        out.extend(len.to_le_bytes());
        padded(10)
    } else {
        out.extend([2, 0]);
        // A shape in memory has fewer digits than 32 bits can count.
        out.extend(u32::try_from(padded(12) - 12).unwrap_or(u32::MAX).to_le_bytes());
        padded(12)
    };
    out.extend(dictionary.bytes());
    out.resize(total - 1, b' ');
    out.push(b'\n');
    Some(out)
}
