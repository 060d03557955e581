//! The links of a group, with those that lead nowhere: the library leaves them out.

use std::collections::BTreeSet;

use hdf5_reader::btree_v1::collect_btree_v1_leaves_storage;
use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::error::{Error, Result};
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::group::Group;
use hdf5_reader::io::Cursor;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::link::{self, LinkMessage, LinkTarget};
use hdf5_reader::messages::link_info::LinkInfoMessage;
use hdf5_reader::messages::symbol_table_msg::SymbolTableMessage;
use hdf5_reader::symbol_table::SymbolTableNode;
use hdf5_reader::{Hdf5File, StorageBuffer};

/// The cache type of symbol table entries that are soft links.
const SOFT: u32 = 2;

/// The links of a group: in the order of creation if the file stores it, otherwise in that of the file.
pub(super) fn list(file: &Hdf5File, group: &Group) -> Result<Vec<LinkMessage>> {
    let header = file.get_or_parse_header(group.address())?;
    let mut links = Vec::new();
    let mut dense = None;
    for message in &header.messages {
        match message {
            // Such a group has no other links.
            HdfMessage::SymbolTable(table) => return symbols(group, table),
            HdfMessage::Link(link) => links.push(link.clone()),
            HdfMessage::LinkInfo(info) => dense = Some(info),
            _ => {}
        }
    }
    if let Some(info) = dense
        && !Cursor::is_undefined_offset(info.fractal_heap_address, group.offset_size())
    {
        links.extend(heap_links(group, info)?);
    }
    let mut names = BTreeSet::new();
    links.retain(|link| names.insert(link.name.clone()));
    if links.iter().all(|link| link.creation_order.is_some()) {
        links.sort_by_key(|link| link.creation_order);
    }
    Ok(links)
}

/// The links of a fractal heap.
fn heap_links(group: &Group, info: &LinkInfoMessage) -> Result<Vec<LinkMessage>> {
    let (storage, offset, length) = (group.storage(), group.offset_size(), group.length_size());
    let heap = FractalHeap::parse_at_storage(storage, info.fractal_heap_address, offset, length)?;
    let tree = BTreeV2Header::parse_at_storage(storage, info.btree_name_index_address, offset, length)?;
    let records = collect_btree_v2_records_storage(storage, &tree, offset, length, None, &[], None)?;
    let mut blocks = FractalHeapDirectBlockCache::default();
    let mut links = Vec::new();
    for record in &records {
        let (BTreeV2Record::LinkNameHash { heap_id, .. } | BTreeV2Record::CreationOrder { heap_id, .. }) =
            record
        else {
            continue;
        };
        let bytes = heap.get_object_storage_cached(heap_id, storage, offset, length, &mut blocks)?;
        links.push(link::parse(&mut Cursor::new(&bytes), offset, length, bytes.len())?);
    }
    Ok(links)
}

/// The links of a symbol table.
fn symbols(group: &Group, table: &SymbolTableMessage) -> Result<Vec<LinkMessage>> {
    let (storage, offset, length) = (group.storage(), group.offset_size(), group.length_size());
    let heap = LocalHeap::parse_at_storage(storage, table.heap_address, offset, length)?;
    let leaves =
        collect_btree_v1_leaves_storage(storage, table.btree_address, offset, length, None, &[], None)?;
    let mut texts: Option<StorageBuffer> = None;
    let mut links = Vec::new();
    for (_, address) in leaves {
        // The signature, the version, a reserved byte and the number of entries.
        let prefix = storage.read_range(address, 8)?;
        let mut prefix = Cursor::new(prefix.as_ref());
        prefix.skip(6)?;
        let count = usize::from(prefix.read_u16_le()?);
        let bytes = storage.read_range(address, 8 + count * (2 * usize::from(offset) + 24))?;
        let node = SymbolTableNode::parse(&mut Cursor::new(bytes.as_ref()), offset, length)?;
        for entry in node.entries {
            let texts = if let Some(texts) = &mut texts {
                texts
            } else {
                let len = usize::try_from(heap.data_segment_size)
                    .map_err(|_| Error::OffsetOutOfBounds(heap.data_segment_size))?;
                texts.insert(storage.read_range(heap.data_segment_address, len)?)
            };
            let text = |offset: u64| {
                let start = usize::try_from(offset).ok();
                let rest = start.and_then(|start| texts.as_ref().get(start..));
                let mut rest = Cursor::new(rest.ok_or(Error::OffsetOutOfBounds(offset))?);
                rest.read_null_terminated_string()
            };
            let name = text(entry.link_name_offset)?;
            let target = if entry.cache_type == SOFT {
                let [a, b, c, d, ..] = entry.scratch;
                LinkTarget::Soft { path: text(u64::from(u32::from_le_bytes([a, b, c, d])))? }
            } else {
                LinkTarget::Hard { address: entry.object_header_address }
            };
            links.push(LinkMessage { name, target, creation_order: None });
        }
    }
    Ok(links)
}
