//! The index of the chunks of a dataset: a B-tree of version 1.
//!
//! ```text
//! node   TREE · type · level · entries · left sibling · right sibling · key · child · key · … · child · key
//! key    bytes of the chunk · filter mask · its first element by axis · 0
//! ```
//!
//! Nodes are written from the leaves to the root. Every node has its full length, because readers read it whole.

/// The children of a node: twice the K of files without a superblock extension.
const CAPACITY: usize = 64;
/// The type of a node whose leaves are chunks.
const CHUNKS: u8 = 1;
/// No address.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// A chunk in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredChunk {
    pub(super) address: u64,
    pub(super) len: u32,
    /// Its first element, by axis.
    pub(super) start: Vec<u64>,
}

fn key(len: u32, start: impl Iterator<Item = u64>) -> Vec<u8> {
    // No filter is skipped.
    let mut key = u64::from(len).to_le_bytes().to_vec();
    start.chain([0]).for_each(|position| key.extend(position.to_le_bytes()));
    key
}

/// The nodes of a tree over chunks in row-major order, for this address, and the address of the root. There must be a chunk.
pub(super) fn encode(chunks: &[StoredChunk], chunk_shape: &[u64], address: u64) -> (Vec<u8>, u64) {
    let key_len = 8 + 8 * (chunk_shape.len() + 1);
    let node_len = 24 + CAPACITY * (key_len + 8) + key_len;
    let address_of = |node: usize| address + (node * node_len) as u64;
    let mut children: Vec<(Vec<u8>, u64)> =
        chunks.iter().map(|chunk| (key(chunk.len, chunk.start.iter().copied()), chunk.address)).collect();
    let end = chunks.last().map_or_else(Vec::new, |chunk| {
        let positions = chunk.start.iter().zip(chunk_shape).map(|(start, extent)| start + extent);
        key(0, positions)
    });
    let (mut nodes, mut level) = (Vec::new(), 0u8);
    loop {
        let first = nodes.len() / node_len;
        let count = children.len().div_ceil(CAPACITY).max(1);
        let mut parents = Vec::with_capacity(count);
        for (number, group) in children.chunks(CAPACITY).enumerate() {
            let node = first + number;
            let left = if number == 0 { UNDEFINED } else { address_of(node - 1) };
            let right = if number + 1 == count { UNDEFINED } else { address_of(node + 1) };
            let start = nodes.len();
            nodes.extend(b"TREE");
            nodes.extend([CHUNKS, level]);
            nodes.extend(u16::try_from(group.len()).unwrap_or(0).to_le_bytes());
            nodes.extend(left.to_le_bytes());
            nodes.extend(right.to_le_bytes());
            for (key, child) in group {
                nodes.extend(key);
                nodes.extend(child.to_le_bytes());
            }
            nodes.extend(children.get((number + 1) * CAPACITY).map_or(&end, |(key, _)| key));
            nodes.resize(start + node_len, 0);
            parents.extend(group.first().map(|(key, _)| (key.clone(), address_of(node))));
        }
        if count == 1 {
            return (nodes, address_of(first));
        }
        children = parents;
        level += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes.try_into().unwrap())
    }

    /// All chunks below a node, with the bounds of its keys checked.
    fn walk(nodes: &[u8], base: u64, at: u64, found: &mut Vec<(u64, u64)>) {
        let node = &nodes[usize::try_from(at - base).unwrap()..];
        assert_eq!(&node[..5], b"TREE\x01");
        let (level, entries) = (node[5], u16::from_le_bytes([node[6], node[7]]));
        for entry in 0..usize::from(entries) {
            let key = &node[24 + entry * 32..];
            let next = &node[24 + (entry + 1) * 32..];
            assert!(number(&key[8..16]) < number(&next[8..16]));
            let child = number(&key[24..32]);
            if level == 0 {
                found.push((number(&key[8..16]), child));
            } else {
                walk(nodes, base, child, found);
            }
        }
    }

    #[test]
    fn trees_of_any_height_lead_to_all_chunks() {
        for count in [1u64, 63, 64, 65, 4096, 4097] {
            let chunk =
                |number: u64| StoredChunk { address: 10_000 + number, len: 1, start: vec![number * 7] };
            let chunks: Vec<StoredChunk> = (0..count).map(chunk).collect();
            let (nodes, root) = encode(&chunks, &[7], 5000);
            let mut found = Vec::new();
            walk(&nodes, 5000, root, &mut found);
            let expected: Vec<(u64, u64)> =
                chunks.iter().map(|chunk| (chunk.start[0], chunk.address)).collect();
            assert_eq!(found, expected, "{count}");
        }
    }
}
