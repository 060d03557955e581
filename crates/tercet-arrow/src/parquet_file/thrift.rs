//! Validation of Thrift compact protocol structs without allocating.
//!
//! Page headers and the footer of a Parquet file are such structs. The parquet crate allocates by the counts in them; a walk
//! before it checks that the bytes for all elements exist.

/// An item of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An integer.
    Number(i64),
    /// A list with its number of elements.
    List(u64),
}

/// Reason a walk stops early.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The struct is truncated.
    Short,
    /// The struct is invalid, or the visitor rejected it.
    Wrong(String),
}

/// Visitor of integers and lists, with the path of field IDs to each.
type ThriftVisitor<'s> = dyn FnMut(&[i16], Item) -> Result<(), String> + 's;

/// Maximum nesting depth.
const DEPTH: usize = 32;

/// Walks over a struct and returns its length. `seen` visits every integer and list.
pub(super) fn walk(bytes: &[u8], seen: &mut ThriftVisitor<'_>) -> Result<usize, Stop> {
    let mut walk = Walk { left: bytes, path: Vec::new(), seen };
    walk.fields()?;
    Ok(bytes.len() - walk.left.len())
}

struct Walk<'a, 's> {
    left: &'a [u8],
    path: Vec<i16>,
    seen: &'s mut ThriftVisitor<'s>,
}

impl Walk<'_, '_> {
    fn fields(&mut self) -> Result<(), Stop> {
        if self.path.len() >= DEPTH {
            return Err(Stop::Wrong(format!("structs nested deeper than {DEPTH}")));
        }
        self.path.push(0);
        loop {
            let head = self.byte()?;
            let kind = head & 0x0f;
            if kind == 0 {
                break;
            }
            let last = self.path.last().copied().unwrap_or(0);
            let id = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).ok(),
                delta => last.checked_add(i16::from(delta)),
            };
            let id = id.ok_or_else(|| Stop::Wrong("a field without a number".to_owned()))?;
            if let Some(last) = self.path.last_mut() {
                *last = id;
            }
            // The type code of a bool in a struct is its value.
            if kind > 2 {
                self.value(kind)?;
            }
        }
        self.path.pop();
        Ok(())
    }

    fn value(&mut self, kind: u8) -> Result<(), Stop> {
        match kind {
            1..=3 => self.skip(1),
            4..=6 => {
                let number = self.zigzag()?;
                (self.seen)(&self.path, Item::Number(number)).map_err(Stop::Wrong)
            }
            7 => self.skip(8),
            8 => {
                let len = self.varint()?;
                self.skip(len)
            }
            9 | 10 => self.list(),
            12 => self.fields(),
            13 => self.skip(16),
            other => Err(Stop::Wrong(format!("a value of the kind {other}"))),
        }
    }

    fn list(&mut self) -> Result<(), Stop> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        // An element takes at least one byte.
        if len > self.left.len() as u64 {
            return Err(Stop::Short);
        }
        (self.seen)(&self.path, Item::List(len)).map_err(Stop::Wrong)?;
        (0..len).try_for_each(|_| self.value(head & 0x0f))
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        let (first, left) = self.left.split_first().ok_or(Stop::Short)?;
        self.left = left;
        Ok(*first)
    }

    fn skip(&mut self, len: u64) -> Result<(), Stop> {
        let len = usize::try_from(len).map_err(|_| Stop::Short)?;
        self.left = self.left.get(len..).ok_or(Stop::Short)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Stop> {
        let (number, left) = varint(self.left)?;
        self.left = left;
        Ok(number)
    }

    fn zigzag(&mut self) -> Result<i64, Stop> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

/// Decodes a varint; returns it and the bytes after it.
pub(super) fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), Stop> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f).wrapping_shl(7 * u32::try_from(index).unwrap_or(0));
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[index + 1..]));
        }
    }
    if bytes.len() < 10 { Err(Stop::Short) } else { Err(Stop::Wrong("a number without an end".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type All = Vec<(Vec<i16>, Item)>;

    fn seen(bytes: &[u8]) -> (Result<usize, Stop>, All) {
        let mut all = Vec::new();
        let end = walk(bytes, &mut |path, item| {
            all.push((path.to_vec(), item));
            Ok(())
        });
        (end, all)
    }

    #[test]
    fn numbers_and_lists_are_visited_with_their_fields() {
        // 1: i32 = -2, 2: list of two structs {1: i64 = 150}, 3: binary of 2 bytes, 4: true.
        let bytes = [0x15, 3, 0x19, 0x2c, 0x16, 0xac, 2, 0, 0x16, 2, 0, 0x18, 2, 9, 9, 0x11, 0, 77];
        let (end, all) = seen(&bytes);
        assert_eq!(end, Ok(bytes.len() - 1));
        assert_eq!(
            all,
            [
                (vec![1], Item::Number(-2)),
                (vec![2], Item::List(2)),
                (vec![2, 1], Item::Number(150)),
                (vec![2, 1], Item::Number(1)),
            ]
        );
        for len in 0..bytes.len() - 1 {
            assert_eq!(seen(&bytes[..len]).0, Err(Stop::Short), "{len}");
        }
    }

    #[test]
    fn impossible_lengths_are_rejected() {
        assert_eq!(seen(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0x7f, 0]).0, Err(Stop::Short));
        assert_eq!(seen(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]).0, Err(Stop::Short));
        assert!(matches!(seen(&[0x1c; 100]).0, Err(Stop::Wrong(_))));
        assert!(matches!(
            seen(&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).0,
            Err(Stop::Wrong(_))
        ));
    }
}
