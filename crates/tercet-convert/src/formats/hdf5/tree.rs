//! Groups, datasets and dimensions of a file.

use std::collections::{BTreeMap, BTreeSet};

use hdf5_reader::group::Group;
use hdf5_reader::{Dataset, Hdf5File};

use super::{NON_COORDINATE, Place, attribute, element};
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

struct Found {
    path: String,
    dataset: Dataset,
}

#[derive(Default)]
struct Walk {
    datasets: Vec<Found>,
    attrs: Vec<Attr>,
    unreadable: Vec<(String, String)>,
    groups: BTreeSet<u64>,
}

/// Reads the structure of a file.
pub(super) fn read(file: &Hdf5File, name: &str) -> Result<(Header, Vec<Place>), Error> {
    let root = file.root_group().map_err(|error| malformed(name, error.to_string()))?;
    let mut walk = Walk::default();
    walk.group(&root, "", 0).map_err(|error| malformed(name, error))?;
    let is_netcdf = root.attribute("_NCProperties").is_ok()
        || walk.datasets.iter().any(|found| found.dataset.attribute("_Netcdf4Dimid").is_ok());
    Ok(walk.header(if is_netcdf { "NetCDF-4" } else { "HDF5" }))
}

impl Walk {
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
                for item in attributes.iter().filter(|item| !attribute::is_internal(&item.name, false)) {
                    match attribute::convert(item) {
                        Ok(attr) => self.attrs.push(Attr { name: joined(&attr.name), value: attr.value }),
                        Err(reason) => self.unreadable.push((joined(&format!(":{}", item.name)), reason)),
                    }
                }
            }
            Err(error) => self.unreadable.push((joined(":attributes"), error.to_string())),
        }
        let (groups, datasets) = group.member_names().map_err(|error| error.to_string())?;
        for child in datasets {
            match group.dataset(&child) {
                Ok(dataset) => self.datasets.push(Found { path: joined(&child), dataset }),
                Err(error) => self.unreadable.push((joined(&child), error.to_string())),
            }
        }
        for child in groups {
            match group.group(&child) {
                Ok(inner) => self.group(&inner, &joined(&child), depth + 1)?,
                Err(error) => self.unreadable.push((joined(&child), error.to_string())),
            }
        }
        Ok(())
    }

    fn header(mut self, format: &str) -> (Header, Vec<Place>) {
        let scales = Scales::new(&self.datasets);
        let mut dims = DimTable::new();
        // Dimensions in the order of their numbers.
        for scale in scales.by_number() {
            dims.resolve(&scale.path, &[Some(&scale.path)], &[scale.len]);
        }
        let mut header = Header { format: format.to_owned(), attrs: self.attrs, ..Header::default() };
        let mut places = Vec::new();
        for Found { path, dataset } in self.datasets {
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
            let mut attrs = Vec::new();
            for item in
                dataset.attributes().iter().filter(|item| !attribute::is_internal(&item.name, is_scale))
            {
                match attribute::convert(item) {
                    Ok(attr) => attrs.push(attr),
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
            header.variables.push(Variable { name: path, kind, dims, shape, chunks, attrs });
            places.push(Place { dataset, swap });
        }
        header.dims = dims.into_dims(|name| scales.find(name).is_some_and(|scale| scale.unlimited));
        header.unreadable = self.unreadable;
        (header, places)
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
    fn new(datasets: &[Found]) -> Self {
        let mut paths = BTreeMap::new();
        for (position, Found { path, dataset }) in datasets.iter().enumerate() {
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
