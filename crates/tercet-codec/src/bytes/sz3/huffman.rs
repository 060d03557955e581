//! Huffman codes of an SZ3 stream.
//!
//! ```text
//! i32 offset │ u32 nodes, big-endian │ u32 half of the symbols, big-endian │ u8 0
//! left child of each node │ right child │ i32 symbol of each node │ u8 whether it is a leaf
//! u64 bytes │ codes, first bit highest
//! ```
//!
//! Nodes are in pre-order; the width of a child is 1, 2 or 4 bytes by the number of nodes. The number of symbols is stored
//! between tree and codes of the main symbols, but not of others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cursor::Cursor;
use super::failed;
use crate::CodecError;

/// The number of bits that are decoded at once.
const TABLE_BITS: u32 = 11;

/// A tree that was read.
pub(super) struct Tree {
    offset: i32,
    nodes: Vec<Node>,
    /// The leaf, or the inner node after all bits, and the number of bits used.
    table: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// Left and right. 0 is not a node.
    children: [u32; 2],
    symbol: i32,
    is_leaf: bool,
}

impl Tree {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, CodecError> {
        let offset = cursor.i32()?;
        let count = cursor.u32_big_endian()? as usize;
        cursor.u32_big_endian()?;
        if cursor.u8()? != 0 {
            return Err(failed("a big-endian Huffman tree"));
        }
        let width = child_width(count);
        let len = |width: usize| count.checked_mul(width).ok_or_else(|| failed("too many Huffman nodes"));
        let left = cursor.take(len(width)?)?;
        let right = cursor.take(len(width)?)?;
        let symbols = cursor.take(len(4)?)?.as_chunks::<4>().0;
        let leaves = cursor.take(count)?;
        let child =
            |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        let children = left.chunks_exact(width).map(child).zip(right.chunks_exact(width).map(child));
        let mut nodes = Vec::with_capacity(count);
        for (at, ((left, right), (symbol, is_leaf))) in children.zip(symbols.iter().zip(leaves)).enumerate() {
            let is_leaf = *is_leaf != 0;
            // In pre-order a child follows its parent, so every walk ends.
            let is_valid = |child: u32| child as usize > at && (child as usize) < count;
            if !(is_leaf || is_valid(left) && is_valid(right)) {
                return Err(failed("an invalid Huffman tree"));
            }
            nodes.push(Node { children: [left, right], symbol: i32::from_le_bytes(*symbol), is_leaf });
        }
        if nodes.is_empty() {
            return Err(failed("an empty Huffman tree"));
        }
        let mut tree = Self { offset, nodes, table: Vec::new() };
        tree.table = (0..1_u32 << TABLE_BITS).map(|bits| tree.walk(bits)).collect();
        Ok(tree)
    }

    /// Follows the bits of a table entry.
    fn walk(&self, bits: u32) -> (u32, u32) {
        let mut at = 0_u32;
        for used in 0..TABLE_BITS {
            let node = self.node(at);
            if node.is_leaf {
                return (at, used);
            }
            at = node.children[(bits >> (TABLE_BITS - 1 - used) & 1) as usize];
        }
        (at, TABLE_BITS)
    }

    fn node(&self, at: u32) -> Node {
        self.nodes.get(at as usize).copied().unwrap_or_default()
    }

    /// Reads `count` symbols.
    pub(super) fn decode(&self, cursor: &mut Cursor<'_>, count: usize) -> Result<Vec<i32>, CodecError> {
        let len = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
        let codes = cursor.take(len)?;
        let root = self.node(0);
        if root.is_leaf {
            return Ok(vec![root.symbol.wrapping_add(self.offset); count]);
        }
        // Every symbol takes a bit at least.
        if codes.len().saturating_mul(8) < count {
            return Err(failed("its codes are truncated"));
        }
        let mut symbols = Vec::with_capacity(count);
        let total = codes.len() * 8;
        let mut at = 0_usize;
        for _ in 0..count {
            let (mut node, used) = self.table[(window(codes, at) >> (64 - TABLE_BITS)) as usize];
            at += used as usize;
            while !self.node(node).is_leaf {
                let bit = codes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
                node = self.node(node).children[usize::from(bit)];
                at += 1;
            }
            if at > total {
                return Err(failed("its codes are truncated"));
            }
            symbols.push(self.node(node).symbol.wrapping_add(self.offset));
        }
        Ok(symbols)
    }
}

/// At least 57 bits from bit `at`, highest first; zeros after the end.
fn window(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at / 8..).unwrap_or_default();
    let word = rest.first_chunk().copied().unwrap_or_else(|| {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        word
    });
    u64::from_be_bytes(word) << (at % 8)
}

const fn child_width(nodes: usize) -> usize {
    match nodes {
        0..=256 => 1,
        257..=65536 => 2,
        _ => 4,
    }
}

/// Appends tree and codes of symbols; between them the number of symbols. There is at least one symbol.
pub(super) fn encode(symbols: &[i32], out: &mut Vec<u8>) {
    let offset = symbols.iter().copied().min().unwrap_or(0);
    let span = symbols.iter().copied().max().unwrap_or(0).wrapping_sub(offset);
    let index = |symbol: i32| usize::try_from(symbol.wrapping_sub(offset)).unwrap_or(0);
    let mut counts = vec![0_u64; usize::try_from(span).unwrap_or(0) + 1];
    for symbol in symbols {
        counts[index(*symbol)] += 1;
    }
    let (nodes, codes) = build(&counts);
    out.extend(offset.to_le_bytes());
    out.extend(u32::try_from(nodes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend((span.unsigned_abs() / 2 + 2).to_be_bytes());
    out.push(0);
    let width = child_width(nodes.len());
    for side in 0..2 {
        out.extend(nodes.iter().flat_map(|node| node.children[side].to_le_bytes().into_iter().take(width)));
    }
    out.extend(nodes.iter().flat_map(|node| node.symbol.to_le_bytes()));
    out.extend(nodes.iter().map(|node| u8::from(node.is_leaf)));
    out.extend((symbols.len() as u64).to_le_bytes());
    let len_at = out.len();
    out.extend([0; 8]);
    let (mut word, mut filled) = (0_u128, 0_u32);
    for symbol in symbols {
        let (code, bits) = codes[index(*symbol)];
        word = word << bits | u128::from(code);
        filled += bits;
        while filled >= 32 {
            filled -= 32;
            out.extend(low_32(word >> filled).to_be_bytes());
        }
        word &= (1 << filled) - 1;
    }
    let rest = low_32(word << (32 - filled)).to_be_bytes();
    out.extend(rest.iter().take(filled.div_ceil(8) as usize));
    let len = (out.len() - len_at - 8) as u64;
    out[len_at..len_at + 8].copy_from_slice(&len.to_le_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "the lowest bits are wanted")]
const fn low_32(word: u128) -> u32 {
    word as u32
}

/// The nodes in pre-order, and the code of each symbol.
fn build(counts: &[u64]) -> (Vec<Node>, Vec<(u64, u32)>) {
    // Leaves first, then inner nodes with the numbers of their children.
    let leaves: Vec<usize> = (0..counts.len()).filter(|&symbol| counts[symbol] > 0).collect();
    let mut inner: Vec<[usize; 2]> = Vec::new();
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> =
        leaves.iter().enumerate().map(|(node, &symbol)| Reverse((counts[symbol], node))).collect();
    while let (Some(Reverse(left)), Some(Reverse(right))) = (heap.pop(), heap.peek().copied()) {
        heap.pop();
        heap.push(Reverse((left.0.saturating_add(right.0), leaves.len() + inner.len())));
        inner.push([left.1, right.1]);
    }
    let root = (leaves.len() + inner.len()).saturating_sub(1);
    let mut nodes: Vec<Node> = Vec::with_capacity(leaves.len() + inner.len());
    let mut codes = vec![(0, 0); counts.len()];
    // Node, its parent and side, its code.
    let mut pending = vec![(root, None::<(usize, usize)>, 0_u64, 0_u32)];
    while let Some((node, parent, code, bits)) = pending.pop() {
        let at = nodes.len();
        if let Some((parent, side)) = parent {
            nodes[parent].children[side] = u32::try_from(at).unwrap_or(u32::MAX);
        }
        if let Some(&symbol) = leaves.get(node) {
            codes[symbol] = (code, bits);
            let symbol = i32::try_from(symbol).unwrap_or(i32::MAX);
            nodes.push(Node { symbol, is_leaf: true, ..Node::default() });
        } else {
            let [left, right] = inner[node - leaves.len()];
            nodes.push(Node::default());
            pending.push((right, Some((at, 1)), code << 1 | 1, bits + 1));
            pending.push((left, Some((at, 0)), code << 1, bits + 1));
        }
    }
    (nodes, codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_decoded() {
        for (n, spread) in [(1, 1), (2, 2), (1000, 5), (1000, 1), (70_000, 40_000), (300, 3)] {
            let symbol = |i: i32| 32_768 + i.wrapping_mul(i).wrapping_mul(7).rem_euclid(spread) - spread / 2;
            let symbols: Vec<i32> = (0..n).map(symbol).collect();
            let mut bytes = Vec::new();
            encode(&symbols, &mut bytes);
            let mut cursor = Cursor(&bytes);
            let tree = Tree::read(&mut cursor).unwrap();
            assert_eq!(cursor.u64().unwrap(), symbols.len() as u64);
            assert_eq!(tree.decode(&mut cursor, symbols.len()).unwrap(), symbols, "{n} {spread}");
            assert!(cursor.0.is_empty());
        }
    }
}
