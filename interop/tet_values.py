"""The values of every array, computed from pattern, seed and linear index.

`src/values.rs` implements the same rules. They are written twice on purpose: two programs that agree on a pattern
agree on the array.
"""

import numpy as np

# Element type: numpy's name, bits, bits of the fraction (floats only), tag in the file.
DTYPES = {
    "f32": ("<f4", 32, 23, 1),
    "f64": ("<f8", 64, 52, 2),
    "i32": ("<i4", 32, None, 3),
    "i64": ("<i8", 64, None, 4),
    "u8": ("|u1", 8, None, 5),
    "u16": ("<u2", 16, None, 6),
    "i16": ("<i2", 16, None, 7),
    "u32": ("<u4", 32, None, 8),
    "f16": ("<f2", 16, 10, 9),
    "u64": ("<u8", 64, None, 10),
}


def mix(seed, index):
    """Splitmix64 of seed and index."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed << 32) + index + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def limits(width, fraction, with_nans):
    """The table of bits at the ends of a range."""
    sign, ones = 1 << (width - 1), (1 << width) - 1
    if fraction is None:
        return [0, 1, ones, sign, sign - 1, (sign + 1) & ones, sign - 2, 0x5555555555555555 & ones, ones - 1]
    infinity = sign - (1 << fraction)
    normal = 1 << fraction
    largest = infinity - 1
    table = [0, sign, infinity, sign | infinity, largest, sign | largest, 1, sign | 1, normal, normal - 1]
    quiet = infinity | (1 << (fraction - 1))
    return table + [quiet, sign | quiet, quiet | 5, infinity | 1] if with_nans else table


def array(dtype, pattern, seed, shape):
    """A complete array."""
    name, width, fraction, _ = DTYPES[dtype]
    index = np.arange(np.prod(shape, dtype=np.uint64), dtype=np.uint64)
    unsigned = np.dtype(f"<u{width // 8}")
    if pattern == "mixed":
        bits = mix(seed, index)
        if fraction is None:
            values = bits.astype(unsigned).view(name)
        else:
            numbers = (bits >> np.uint64(63 - fraction)).astype(np.int64) - (1 << fraction)
            values = (numbers / 2.0 ** (fraction // 2 + 1)).astype(name)
    elif pattern == "steps":
        values = (index // np.uint64(7) % np.uint64(100) + np.uint64(seed)).astype(name)
    else:
        table = np.array(limits(width, fraction, pattern == "nans"), dtype=unsigned)
        values = table[index % np.uint64(len(table))].view(name)
    return values.reshape(shape)
