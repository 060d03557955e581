//! Groups, datasets and dimensions of a file.

use std::collections::{BTreeMap, BTreeSet};

use hdf5_reader::error::Error as Hdf5Error;
use hdf5_reader::group::Group;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::dataspace::DataspaceType;
use hdf5_reader::messages::link::LinkTarget;
use hdf5_reader::{Attribute, Dataset, Hdf5File};

use super::{NON_COORDINATE, StoredDataset, attribute, element, filter, links};
use crate::Error;
use crate::arrays::dims::DimTable;
use crate::arrays::source::malformed;
use crate::arrays::{Attr, Header, Variable};

/// Groups inside groups.
const MAX_DEPTH: usize = 64;
/// Objects of a file.
const MAX_OBJECTS: usize = 100_000;

/// The text of the attribute `NAME` of dimensions without a variable.
const NOT_A_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// The layout of datasets that are made of parts of other datasets.
const VIRTUAL: u8 = 3;

struct DatasetEntry {
    path: String,
    dataset: Dataset,
}

/// What a link leads to.
enum Child {
    Dataset(Box<Dataset>),
    Group(Group),
    /// A named type.
    Other,
}

struct Walk<'a> {
    file: &'a Hdf5File,
    /// NetCDF-4 stores empty attributes with a null dataspace.
    is_netcdf: bool,
    datasets: Vec<DatasetEntry>,
    attrs: Vec<Attr>,
    unreadable: Vec<(String, String)>,
    groups: BTreeSet<u64>,
}

/// Reads the structure of a file.
pub(super) fn read(file: &Hdf5File, name: &str) -> Result<(Header, Vec<StoredDataset>), Error> {
    let root = file.root_group().map_err(|error| malformed(name, error.to_string()))?;
    let mut walk = Walk {
        file,
        is_netcdf: root.attribute("_NCProperties").is_ok(),
        datasets: Vec::new(),
        attrs: Vec::new(),
        unreadable: Vec::new(),
        groups: BTreeSet::new(),
    };
    walk.group(&root, "", 0).map_err(|error| malformed(name, error))?;
    walk.is_netcdf |= walk.datasets.iter().any(|found| found.dataset.attribute("_Netcdf4Dimid").is_ok());
    Ok(walk.header())
}

impl Walk<'_> {
    fn group(&mut self, group: &Group, path: &str, depth: usize) -> Result<(), String> {
        // A link to a group that was visited is a cycle, or a second name.
        if !self.groups.insert(group.address()) {
            self.unreadable.push((path.to_owned(), "a second link to a group".to_owned()));
            return Ok(());
        }
        if depth > MAX_DEPTH || self.groups.len() + self.datasets.len() > MAX_OBJECTS {
            return Err(format!("more than {MAX_DEPTH} groups inside each other or {MAX_OBJECTS} objects"));
        }
        let joined = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        match group.attributes() {
            Ok(attributes) => {
                let nulls = attribute::nulls(&attributes, || group.raw_attributes());
                for item in attributes.iter().filter(|item| !attribute::is_internal(&item.name, false)) {
                    let converted = if nulls.contains(&item.name) && !self.is_empty_text(item) {
                        Err(attribute::NULL.to_owned())
                    } else {
                        attribute::convert(item)
                    };
                    match converted {
                        Ok(attr) => self.attrs.push(Attr { name: joined(&attr.name), value: attr.value }),
                        Err(reason) => self.unreadable.push((joined(&format!(":{}", item.name)), reason)),
                    }
                }
            }
            Err(error) => self.unreadable.push((joined(":attributes"), error.to_string())),
        }
        let links = match links::list(self.file, group) {
            Ok(links) => links,
            Err(error) if depth == 0 => return Err(error.to_string()),
            Err(error) => {
                self.unreadable.push((path.to_owned(), reason(&error)));
                return Ok(());
            }
        };
        let mut groups = Vec::new();
        for link in links {
            let path = joined(&link.name);
            match self.child(group, &link.name, &link.target) {
                Ok(Child::Dataset(dataset)) => self.datasets.push(DatasetEntry { path, dataset: *dataset }),
                Ok(Child::Group(inner)) => groups.push((path, inner)),
                Ok(Child::Other) => {}
                Err(reason) => self.unreadable.push((path, reason)),
            }
        }
        for (path, inner) in groups {
            self.group(&inner, &path, depth + 1)?;
        }
        Ok(())
    }

    /// What a link leads to, or why that cannot be read.
    fn child(&self, group: &Group, name: &str, target: &LinkTarget) -> Result<Child, String> {
        if let LinkTarget::External { filename, .. } = target {
            return Err(format!("external link to {filename}"));
        }
        match group.dataset(name) {
            Ok(dataset) => match self.missing_values(&dataset)? {
                Some(reason) => Err(reason),
                None => Ok(Child::Dataset(Box::new(dataset))),
            },
            Err(Hdf5Error::DatasetNotFound(_)) => match (group.group(name), target) {
                (Ok(inner), _) => Ok(Child::Group(inner)),
                // Not the text for an object of another kind.
                (Err(Hdf5Error::GroupNotFound(text)), LinkTarget::Soft { path }) if text == name => {
                    Err(format!("link to `{path}`, which does not exist"))
                }
                (Err(Hdf5Error::GroupNotFound(_)), _) => Ok(Child::Other),
                (Err(error), _) => Err(reason(&error)),
            },
            Err(error) => Err(reason(&error)),
        }
    }

    /// Why the file does not contain the values of a dataset, or in a form that cannot be read.
    fn missing_values(&self, dataset: &Dataset) -> Result<Option<String>, String> {
        let header = self.file.get_or_parse_header(dataset.address()).map_err(|error| reason(&error))?;
        for message in &header.messages {
            match message {
                HdfMessage::Dataspace(space) if space.dataspace_type == DataspaceType::Null => {
                    return Ok(Some(attribute::NULL.to_owned()));
                }
                HdfMessage::ExternalFiles(files) => {
                    let sizes = self.file.superblock();
                    let (storage, offset, length) =
                        (self.file.storage(), sizes.offset_size, sizes.length_size);
                    let heap = LocalHeap::parse_at_storage(storage, files.heap_address, offset, length);
                    let name = files.slots.first().zip(heap.ok());
                    let name =
                        name.and_then(|(slot, heap)| heap.get_string_storage(slot.name_offset, storage).ok());
                    let name =
                        name.map_or_else(|| "another file".to_owned(), |name| format!("the file {name}"));
                    return Ok(Some(format!("the values are in {name}")));
                }
                HdfMessage::FilterPipeline(pipeline) => {
                    let unknown = pipeline.filters.iter().find(|found| !filter::is_known(found.id));
                    if let Some(unknown) = unknown {
                        return Ok(Some(format!("{} is not supported", filter::name(unknown.id))));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Whether an attribute with a null dataspace is the empty text of NetCDF-4.
    fn is_empty_text(&self, item: &Attribute) -> bool {
        self.is_netcdf && attribute::is_text(item)
    }

    fn header(mut self) -> (Header, Vec<StoredDataset>) {
        let format = if self.is_netcdf { "NetCDF-4" } else { "HDF5" };
        let mut scales = Scales::new(&self.datasets);
        scales.grow(&self.datasets);
        let mut dims = DimTable::new();
        // Dimensions in the order of their numbers.
        for scale in scales.by_number() {
            dims.resolve(&scale.path, &[Some(&scale.path)], &[scale.len]);
        }
        let mut header =
            Header { format: format.to_owned(), attrs: std::mem::take(&mut self.attrs), ..Header::default() };
        let mut datasets = Vec::new();
        for DatasetEntry { path, dataset } in std::mem::take(&mut self.datasets) {
            if scales.is_dimension_only(&path) {
                continue;
            }
            let (kind, swap) = match element::kind(dataset.dtype()) {
                Ok(found) => found,
                Err(reason) => {
                    self.unreadable.push((path, reason));
                    continue;
                }
            };
            let is_scale = scales.paths.values().any(|scale| scale.path == path);
            let names = scales.dims_of(&path, &dataset);
            let mut shape = dataset.shape().to_vec();
            // A variable may have fewer values than its unlimited dimension.
            for (extent, name) in shape.iter_mut().zip(&names) {
                let scale = name.as_ref().and_then(|name| scales.find(name));
                if let Some(scale) = scale.filter(|scale| scale.unlimited && scale.len > *extent) {
                    *extent = scale.len;
                }
            }
            let dataset = if shape == dataset.shape() {
                dataset
            } else {
                match dataset.with_padded_shape(&shape) {
                    Ok(dataset) => dataset,
                    Err(error) => {
                        self.unreadable.push((path, error.to_string()));
                        continue;
                    }
                }
            };
            let mut notes = Vec::from_iter(element::enum_names(dataset.dtype()));
            let mut attrs = Vec::new();
            let items = dataset.attributes();
            let nulls = attribute::nulls(&items, || dataset.raw_attributes());
            for item in items.iter().filter(|item| !attribute::is_internal(&item.name, is_scale)) {
                if nulls.contains(&item.name) && !self.is_empty_text(item) {
                    notes.push(format!("attribute `{}` is not kept: {}", item.name, attribute::NULL));
                    continue;
                }
                match attribute::convert(item) {
                    Ok(attr) => {
                        let names = element::enum_names(&item.datatype);
                        notes.extend(names.map(|note| format!("attribute `{}`: {note}", item.name)));
                        attrs.push(attr);
                    }
                    Err(reason) => self.unreadable.push((format!("{path}:{}", item.name), reason)),
                }
            }
            let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
            let chunks = dataset.chunks().map(|chunks| chunks.into_iter().map(u64::from).collect());
            let dims = dims.resolve(&path, &names, &shape);
            let path = match path.rsplit_once('/') {
                Some((group, name)) => format!("{group}/{}", plain_name(name)),
                None => plain_name(&path).to_owned(),
            };
            header.notes.extend(notes.into_iter().map(|note| (path.clone(), note)));
            header.variables.push(Variable { name: path, kind, dims, shape, chunks, attrs });
            datasets.push(StoredDataset { dataset, swap });
        }
        header.dims = dims.into_dims(|name| scales.find(name).is_some_and(|scale| scale.unlimited));
        header.unreadable = self.unreadable;
        (header, datasets)
    }
}

/// The reason for an error of the library, without the addresses of objects.
fn reason(error: &Hdf5Error) -> String {
    match error {
        Hdf5Error::Context { source, .. } => reason(source),
        Hdf5Error::UnsupportedLayoutClass(VIRTUAL) => "virtual datasets are not supported".to_owned(),
        _ => error.to_string(),
    }
}

/// The name of a variable.
fn plain_name(name: &str) -> &str {
    name.strip_prefix(NON_COORDINATE).unwrap_or(name)
}

/// The dimension scales of a file, by address.
struct Scales {
    paths: BTreeMap<u64, Scale>,
}

struct Scale {
    path: String,
    len: u64,
    unlimited: bool,
    number: i64,
    is_variable: bool,
}

impl Scales {
    fn new(datasets: &[DatasetEntry]) -> Self {
        let mut paths = BTreeMap::new();
        for (position, DatasetEntry { path, dataset }) in datasets.iter().enumerate() {
            let text =
                |name: &str| dataset.attribute(name).and_then(|item| item.read_string()).unwrap_or_default();
            if text("CLASS") != "DIMENSION_SCALE" {
                continue;
            }
            let unlimited = dataset.max_dims().and_then(<[u64]>::first) == Some(&u64::MAX);
            let number = dataset.attribute("_Netcdf4Dimid").and_then(|item| item.read_scalar::<i32>());
            let number = number.map_or(i64::try_from(position).unwrap_or(0) + (1 << 40), i64::from);
            let is_variable = !text("NAME").starts_with(NOT_A_VARIABLE);
            let len = dataset.shape().first().copied().unwrap_or(0);
            paths
                .insert(dataset.address(), Scale { path: path.clone(), len, unlimited, number, is_variable });
        }
        Self { paths }
    }

    /// An unlimited dimension is as long as the longest axis along it; without a coordinate its own dataset has no values.
    fn grow(&mut self, datasets: &[DatasetEntry]) {
        let mut longest: BTreeMap<String, u64> = BTreeMap::new();
        for DatasetEntry { path, dataset } in datasets {
            for (name, extent) in self.dims_of(path, dataset).into_iter().zip(dataset.shape()) {
                if let Some(name) = name {
                    let len = longest.entry(name).or_default();
                    *len = (*len).max(*extent);
                }
            }
        }
        for scale in self.paths.values_mut().filter(|scale| scale.unlimited) {
            scale.len = scale.len.max(longest.get(&scale.path).copied().unwrap_or(0));
        }
    }

    fn by_number(&self) -> Vec<&Scale> {
        let mut scales: Vec<&Scale> = self.paths.values().collect();
        scales.sort_by_key(|scale| scale.number);
        scales
    }

    fn find(&self, path: &str) -> Option<&Scale> {
        self.paths.values().find(|scale| scale.path == path)
    }

    fn is_dimension_only(&self, path: &str) -> bool {
        self.find(path).is_some_and(|scale| !scale.is_variable)
    }

    /// The names of the dimensions of a dataset.
    fn dims_of(&self, path: &str, dataset: &Dataset) -> Vec<Option<String>> {
        let rank = dataset.ndim();
        if let Some(names) = self.listed(dataset, rank) {
            return names;
        }
        if self.find(path).is_some() {
            if rank == 1 {
                return vec![Some(path.to_owned())];
            }
            let numbers = dataset.attribute("_Netcdf4Coordinates").and_then(|item| item.read_1d::<i32>());
            if let Ok(numbers) = numbers {
                let name = |number: &i32| {
                    let number = i64::from(*number);
                    self.paths.values().find(|scale| scale.number == number).map(|scale| scale.path.clone())
                };
                return numbers.iter().map(name).collect();
            }
        }
        vec![None; rank]
    }

    /// The dimensions of `DIMENSION_LIST`: for each axis a list of references to scales.
    fn listed(&self, dataset: &Dataset, rank: usize) -> Option<Vec<Option<String>>> {
        let list = dataset.attribute("DIMENSION_LIST").ok()?;
        let size = dataset.vlen_reference_size();
        let name = |axis: usize| {
            let reference = list.raw_data.get(axis * size..(axis + 1) * size)?;
            let bytes = dataset.resolve_vlen_reference_bytes(reference, 8).ok()?;
            let address = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
            self.paths.get(&address).map(|scale| scale.path.clone())
        };
        Some((0..rank).map(name).collect())
    }
}
