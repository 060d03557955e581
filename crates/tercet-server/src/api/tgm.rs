//! `.tgm` files: messages, objects, following.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tercet::core::tensor::{AxisSlice, IndexSlice, SelectionError};
use tercet::core::{DType, Progress, Selection, Span};
use tercet::raster::{self, Raster, axis_standard};
use tercet::tgm::precision::Candidate;
use tercet::tgm::{
    Entry as Metadata, File, FileChange, FollowEvent, FollowOptions, GlobalMetadata, Message, Object, Value,
};
use tercet::{Container, MessageFilter};

use super::tet::{COLORMAP, MAX, MapJson, limit, most, png_reply, raster_reply, split};
use super::{cached, opened, tagged, wrong_format};
use crate::admission::Work;
use crate::catalog::{Entry, Opened};
use crate::endpoint::{Call, Content, Endpoint, Parameter, Run};
use crate::failure::Failure;
use crate::reply::{BYTES, EVENTS, Reply, Sink};

/// The time between two looks at a growing file.
const INTERVAL: Duration = Duration::from_millis(200);
/// The names of objects that are coordinates of an axis.
const COORDINATES: [&str; 16] = [
    "lat",
    "latitude",
    "latitudes",
    "lon",
    "longitude",
    "longitudes",
    "lng",
    "x",
    "y",
    "time",
    "level",
    "pressure",
    "height",
    "depth",
    "frequency",
    "step",
];
/// The maximum number of keys that are named as columns.
const MAX_KEYS: usize = 16;

const MESSAGE: Parameter = Parameter::integer("message", 0, u64::MAX, "The number of the message").in_path();

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/tgm/{id}",
        tag: "messages",
        summary: "Messages of a .tgm file with their objects and metadata",
        parameters: &[
            Parameter::id(),
            Parameter::text("where", "Filter by metadata: `step >= 6 and name in (\"t\", \"z\")`"),
            Parameter::integer("offset", 0, u64::MAX, "Matching messages to skip"),
            Parameter::integer("limit", 0, 10_000, "Maximum number of messages [default: 200]"),
            Parameter::one_of("order", &["asc", "desc"], "First or last messages first [default: asc]"),
        ],
        run: Run::Work,
        content: &[Content::json::<MessagesJson>()],
        handler: messages,
    },
    Endpoint {
        path: "/api/tgm/{id}/follow",
        tag: "messages",
        summary: "New messages of a growing file, as server-sent events",
        parameters: &[
            Parameter::id(),
            Parameter::integer("after", 0, u64::MAX, "Start after this message [default: the last one]"),
        ],
        run: Run::Stream,
        content: &[Content::other("text/event-stream")],
        handler: follow,
    },
    Endpoint {
        path: "/api/tgm/{id}/{message}",
        tag: "messages",
        summary: "One message with all metadata and descriptors",
        parameters: &[Parameter::id(), MESSAGE],
        run: Run::Work,
        content: &[Content::json::<MessageDetailJson>()],
        handler: message,
    },
    Endpoint {
        path: "/api/tgm/{id}/{message}/{object}",
        tag: "messages",
        summary: "Values of an object",
        parameters: &[
            Parameter::id(),
            MESSAGE,
            Parameter::integer("object", 0, u64::MAX, "The number of the object").in_path(),
            Parameter::text("isel", "Select by position: `0=5`, `1=0..24`").repeated(),
            Parameter::one_of("format", &["json", "npy", "f32", "png"], "Media type [default: json]"),
            MAX,
            COLORMAP,
            Parameter::number("vmin", "Lower end of the colours"),
            Parameter::number("vmax", "Upper end of the colours"),
            Parameter::list("stretch", "Two percentiles as the ends of the colours [default: 0,100]"),
        ],
        run: Run::Work,
        content: &[
            Content::json::<ValuesJson>(),
            Content::other("application/octet-stream"),
            Content::other("image/png"),
        ],
        handler: values,
    },
];

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MessageList")]
struct MessagesJson {
    id: String,
    path: String,
    version: String,
    file_len: u64,
    /// The number of messages.
    total: u64,
    /// The number of matching messages, if it is known.
    matched: Option<u64>,
    offset: u64,
    /// Metadata keys of the listed messages whose values vary.
    keys: Vec<String>,
    messages: Vec<MessageJson>,
    gaps: Vec<Json>,
    cut_tail: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MessageRow")]
struct MessageJson {
    message: u64,
    offset: u64,
    length: u64,
    metadata: Map<String, Json>,
    objects: Vec<ObjectJson>,
    problem: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ObjectRow")]
struct ObjectJson {
    object: u64,
    name: Option<String>,
    dtype: &'static str,
    shape: Vec<u64>,
    encoding: String,
    stored_bytes: u64,
    raw_bytes: Option<u64>,
    metadata: Map<String, Json>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Message")]
struct MessageDetailJson {
    message: u64,
    offset: u64,
    length: u64,
    version: u16,
    metadata: Json,
    objects: Vec<ObjectDetailJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MessageObject")]
struct ObjectDetailJson {
    #[serde(flatten)]
    object: ObjectJson,
    descriptor: Json,
    hash: Option<String>,
    #[schemars(extend("enum" = super::CHECKSUM_STATES))]
    state: &'static str,
    units: Option<String>,
    /// The names of the axes, as far as the metadata or coordinates name them.
    dims: Vec<Option<String>>,
    /// The objects with the coordinates of the axes.
    coords: Vec<Option<AxisObjectJson>>,
    /// The axes of latitudes and longitudes.
    map: Option<MapJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AxisObject")]
struct AxisObjectJson {
    message: u64,
    object: u64,
    units: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ObjectValues")]
struct ValuesJson {
    name: Option<String>,
    dims: Vec<String>,
    shape: Vec<u64>,
    dtype: &'static str,
    units: Option<String>,
    values: Json,
}

/// The open `.tgm` file that the path names.
fn tgm(call: &Call<'_>) -> Result<(Arc<Entry>, Arc<Opened>, File), Failure> {
    let (entry, opened) = opened(call)?;
    match &opened.container {
        Container::Tgm(file) => {
            let file = file.clone();
            file.scan_with(call.work)?;
            Ok((entry, opened, file))
        }
        _ => Err(wrong_format(&entry, "a .tgm file")),
    }
}

fn messages(call: &Call<'_>) -> Result<Reply, Failure> {
    let (entry, opened, file) = tgm(call)?;
    let filter = call.params.get("where").map(|text| {
        MessageFilter::parse(text).map_err(|error| {
            let failure = Failure::request(error.to_string());
            match &error {
                tercet::MessageFilterError::Syntax(error) => {
                    let at = error.at.min(text.len());
                    failure.with_at("where", text, &(at..text.len().min(at + 1).max(at)))
                }
                _ => failure,
            }
        })
    });
    let filter = filter.transpose()?;
    cached(call, &opened.stamp, || {
        let total = file.message_count()?;
        let (offset, limit): (u64, u64) =
            (call.params.number("offset").unwrap_or(0), call.params.number("limit").unwrap_or(200));
        let is_reversed = call.params.get("order") == Some("desc");
        let number = |position: u64| if is_reversed { total - 1 - position } else { position };
        let mut listed = Vec::new();
        let mut matched = None;
        match &filter {
            None => {
                matched = Some(total);
                for position in offset..total.min(offset.saturating_add(limit)) {
                    call.work.check_deadline()?;
                    listed.push(listed_message(&file, number(position), None));
                }
            }
            Some(filter) => {
                let mut found = 0;
                let mut position = 0;
                while position < total && (listed.len() as u64) < limit {
                    call.work.check_deadline()?;
                    let one = number(position);
                    position += 1;
                    let chosen = match file.message(one) {
                        Ok(message) => filter.matching_objects(&message)?,
                        // What cannot be read cannot be excluded either.
                        Err(_) => Some(Vec::new()),
                    };
                    if let Some(objects) = chosen {
                        if found >= offset {
                            listed.push(listed_message(&file, one, Some(&objects)));
                        }
                        found += 1;
                    }
                }
                if position == total {
                    matched = Some(found);
                }
            }
        }
        let gaps = file.gaps()?;
        let gaps = gaps
            .iter()
            .map(|gap| serde_json::json!({ "span": gap.span, "kind": gap.kind, "problem": gap.to_string() }));
        Ok(Reply::json(&MessagesJson {
            id: entry.id.clone(),
            path: entry.path.clone(),
            version: opened.stamp.version(),
            file_len: file.len(),
            total,
            matched,
            offset,
            keys: varying(&listed),
            messages: listed,
            gaps: gaps.collect(),
            cut_tail: file.cut_tail()?.map(|cut| cut.to_string()),
        }))
    })
}

/// A message of a list, or the reason why it cannot be read.
fn listed_message(file: &File, number: u64, objects: Option<&[u64]>) -> MessageJson {
    let span = file.message_span(number).unwrap_or(Span::empty(0));
    let read = || -> Result<MessageJson, tercet::tgm::Error> {
        let message = file.message(number)?;
        let all: Vec<u64> = (0..message.object_count()).collect();
        let objects = objects
            .unwrap_or(&all)
            .iter()
            .map(|&index| object_json(&message, index))
            .collect::<Result<_, _>>()?;
        let (span, metadata) = (message.span(), message_metadata(message.metadata()));
        Ok(MessageJson {
            message: number,
            offset: span.start(),
            length: span.len(),
            metadata,
            objects,
            problem: None,
        })
    };
    read().unwrap_or_else(|error| MessageJson {
        message: number,
        offset: span.start(),
        length: span.len(),
        metadata: Map::new(),
        objects: Vec::new(),
        problem: Some(error.to_string()),
    })
}

fn plain(entry: &Metadata) -> Map<String, Json> {
    let own = entry.iter().filter(|(key, _)| *key != "_reserved_");
    own.map(|(key, value)| (key.clone(), value.to_json())).collect()
}

fn message_metadata(metadata: &GlobalMetadata) -> Map<String, Json> {
    plain(&metadata.extra)
}

fn object_metadata(metadata: &GlobalMetadata, object: u64) -> Map<String, Json> {
    let entry = usize::try_from(object).ok().and_then(|object| metadata.base.get(object));
    entry.map(plain).unwrap_or_default()
}

fn text_of(metadata: &GlobalMetadata, object: u64, key: &str) -> Option<String> {
    metadata.get_for_objects(&[object], key)?.as_text().map(str::to_owned)
}

fn object_json(message: &Message, index: u64) -> Result<ObjectJson, tercet::tgm::Error> {
    let object = message.object(index)?;
    Ok(described(message, &object))
}

fn described(message: &Message, object: &Object<'_>) -> ObjectJson {
    let (descriptor, metadata) = (object.descriptor(), message.metadata());
    ObjectJson {
        object: object.index(),
        name: text_of(metadata, object.index(), "name"),
        dtype: descriptor.dtype.name(),
        shape: descriptor.shape.clone(),
        encoding: Candidate::given(descriptor).to_string(),
        stored_bytes: object.stored_len(),
        raw_bytes: descriptor.elements().and_then(|elements| descriptor.dtype.byte_len(elements)),
        metadata: object_metadata(metadata, object.index()),
    }
}

/// Keys whose values are not all the same.
fn varying(messages: &[MessageJson]) -> Vec<String> {
    let mut values: BTreeMap<&str, (&Json, bool)> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let entries = messages.iter().flat_map(|message| {
        std::iter::once(&message.metadata).chain(message.objects.iter().map(|object| &object.metadata))
    });
    for (key, value) in entries.flatten().filter(|(_, value)| !value.is_object() && !value.is_array()) {
        if let Some((first, varies)) = values.get_mut(key.as_str()) {
            *varies |= *first != value;
        } else {
            order.push(key);
            values.insert(key, (value, false));
        }
    }
    let varying = order.into_iter().filter(|key| values.get(key).is_some_and(|(_, varies)| *varies));
    varying.take(MAX_KEYS).map(str::to_owned).collect()
}

/// A number of the path.
fn number(call: &Call<'_>, name: &str) -> Result<u64, Failure> {
    call.params.path(name).parse().map_err(|_| Failure::not_found(format!("no such {name}")))
}

fn read_message(call: &Call<'_>, file: &File) -> Result<Message, Failure> {
    let number = number(call, "message")?;
    let count = file.message_count()?;
    if number >= count {
        return Err(Failure::not_found(format!("no message {number}: the file has {count} messages")));
    }
    Ok(file.message(number)?)
}

fn message(call: &Call<'_>) -> Result<Reply, Failure> {
    let (_, opened, file) = tgm(call)?;
    let whole = opened.verified();
    let known = match &whole {
        None => "unverified",
        Some((true, _)) => "valid",
        Some((false, _)) => "damaged",
    };
    tagged(call, &format!("\"{}-{}-{known}\"", opened.stamp.version(), call.params.digest()), || {
        let message = read_message(call, &file)?;
        let mut axes = Axes::new(&message);
        // Coordinates that are written once are in the first or the last message.
        for number in [0, file.message_count()?.saturating_sub(1)] {
            // What cannot be read is shown without coordinates.
            if number != message.number()
                && let Ok(other) = file.message(number)
            {
                axes.add(&other);
            }
        }
        let mut objects = Vec::new();
        for object in message.objects() {
            call.work.check_deadline()?;
            let object = object?;
            let index = object.index();
            let dims = axes.names(&message, &object);
            let coords = axes.coordinates(&object, &dims);
            objects.push(ObjectDetailJson {
                object: described(&message, &object),
                descriptor: object.descriptor().to_value().to_json(),
                hash: object.frame().hash().map(|hash| format!("{hash:016x}")),
                state: state(&object, whole.as_ref()),
                units: text_of(message.metadata(), index, "units"),
                map: Axes::map(&coords),
                dims,
                coords: coords.into_iter().map(|axis| axis.map(AxisCoordinates::to_json)).collect(),
            });
        }
        let span = message.span();
        Ok(Reply::json(&MessageDetailJson {
            message: message.number(),
            offset: span.start(),
            length: span.len(),
            version: tercet::tgm::VERSION,
            metadata: message.metadata().to_value().to_json(),
            objects,
        }))
    })
}

/// What is known about the checksum of an object.
fn state(object: &Object<'_>, whole: Option<&(bool, Vec<Span>)>) -> &'static str {
    let span = object.frame().span;
    let is_in = |damaged: &Span| damaged.start() < span.end() && span.start() < damaged.end();
    match whole {
        Some((_, damaged)) if damaged.iter().any(is_in) => "damaged",
        _ if object.frame().hash().is_none() => "unprotected",
        Some((true, _)) => "ok",
        _ => "unverified",
    }
}

/// An object with one axis that has the name of coordinates.
struct AxisCoordinates {
    name: String,
    size: u64,
    message: u64,
    object: u64,
    units: Option<String>,
    standard: Option<&'static str>,
}

impl AxisCoordinates {
    fn to_json(&self) -> AxisObjectJson {
        AxisObjectJson { message: self.message, object: self.object, units: self.units.clone() }
    }
}

/// The coordinates of the axes of objects, and the names that the metadata gives to lengths.
struct Axes {
    coordinates: Vec<AxisCoordinates>,
    /// From the key `dim_names` of the message, if it is a map.
    lengths: Vec<(u64, String)>,
}

impl Axes {
    fn new(message: &Message) -> Self {
        let lengths = match message.metadata().extra.get("dim_names") {
            Some(Value::Map(entries)) => entries
                .iter()
                .filter_map(|(length, name)| {
                    let length = match length {
                        Value::Integer(length) => u64::try_from(*length).ok(),
                        other => other.as_text()?.parse().ok(),
                    };
                    Some((length?, name.as_text()?.to_owned()))
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut axes = Self { coordinates: Vec::new(), lengths };
        axes.add(message);
        axes
    }

    /// Adds the coordinates of a message, unless there are others with the same name.
    fn add(&mut self, message: &Message) {
        for object in message.objects().flatten() {
            let &[size] = &object.descriptor().shape[..] else { continue };
            let Some(name) = text_of(message.metadata(), object.index(), "name") else { continue };
            let is_new = !self.coordinates.iter().any(|known| known.name == name);
            if !is_new || !COORDINATES.contains(&name.to_lowercase().as_str()) {
                continue;
            }
            let units = text_of(message.metadata(), object.index(), "units");
            let standard = axis_standard(&name, units.as_deref(), false);
            let (message, object) = (message.number(), object.index());
            self.coordinates.push(AxisCoordinates { name, size, message, object, units, standard });
        }
    }

    /// The names of the axes of an object: those of its metadata, or else those of coordinates and lengths that fit one axis only.
    fn names(&self, message: &Message, object: &Object<'_>) -> Vec<Option<String>> {
        let shape = &object.descriptor().shape;
        let own = |key: &str| {
            let names = message.metadata().get_for_objects(&[object.index()], key)?.as_array()?;
            (names.len() == shape.len()).then(|| names.iter().map(|name| name.as_text().map(str::to_owned)))
        };
        let given = ["tercet.dims", "dims", "dim_names", "dimensions"].into_iter().find_map(own);
        if let Some(names) = given {
            return names.map(|name| name.filter(|name| !name.is_empty())).collect();
        }
        let name = text_of(message.metadata(), object.index(), "name");
        let is_own =
            |known: &&AxisCoordinates| shape[..] == [known.size] && Some(&known.name) == name.as_ref();
        if let Some(known) = self.coordinates.iter().find(is_own) {
            return vec![Some(known.name.clone())];
        }
        let mut names: Vec<Option<String>> = vec![None; shape.len()];
        let find = |standard| self.coordinates.iter().find(|known| known.standard == Some(standard));
        if let (Some(lat), Some(lon), [.., rows, columns]) = (find("lat"), find("lon"), &shape[..])
            && [lat.size, lon.size] == [*rows, *columns]
        {
            names[shape.len() - 2] = Some(lat.name.clone());
            names[shape.len() - 1] = Some(lon.name.clone());
        }
        for (axis, size) in shape.iter().enumerate() {
            let is_one_axis = shape.iter().filter(|other| *other == size).count() == 1;
            let coordinates = self.coordinates.iter().map(|known| (known.size, &known.name));
            let lengths = self.lengths.iter().map(|(length, name)| (*length, name));
            let fitting: Vec<&String> = coordinates
                .chain(lengths)
                .filter(|(length, _)| length == size)
                .map(|(_, name)| name)
                .collect();
            if let (None, true, [first, rest @ ..]) = (&names[axis], is_one_axis, &fitting[..])
                && rest.iter().all(|other| other == first)
            {
                names[axis] = Some((*first).clone());
            }
        }
        names
    }

    /// The coordinates of each axis. Those of an object are not its own.
    fn coordinates(&self, object: &Object<'_>, names: &[Option<String>]) -> Vec<Option<&AxisCoordinates>> {
        let shape = &object.descriptor().shape;
        if shape.len() < 2 {
            return vec![None; shape.len()];
        }
        let find = |(name, size): (&Option<String>, &u64)| {
            let name = name.as_ref()?;
            self.coordinates.iter().find(|known| known.name == *name && known.size == *size)
        };
        names.iter().zip(shape).map(find).collect()
    }

    /// The axes of latitudes and longitudes, if both have coordinates.
    fn map(coordinates: &[Option<&AxisCoordinates>]) -> Option<MapJson> {
        let of = |standard| {
            coordinates.iter().position(|known| known.is_some_and(|known| known.standard == Some(standard)))
        };
        of("lat").zip(of("lon")).map(|(lat, lon)| MapJson { lat, lon })
    }
}

fn values(call: &Call<'_>) -> Result<Reply, Failure> {
    let (_, opened, file) = tgm(call)?;
    cached(call, &opened.stamp, || {
        let message = read_message(call, &file)?;
        let index = number(call, "object")?;
        if index >= message.object_count() {
            let count = message.object_count();
            return Err(Failure::not_found(format!("no object {index}: the message has {count} objects")));
        }
        let object = message.object(index)?;
        let slices = slices(call)?;
        let chosen = Chosen::new(&slices, &object.descriptor().shape)?;
        let format = call.params.get("format").unwrap_or("json");
        let is_raster = matches!(format, "f32" | "png");
        let kept = chosen.kept_extents();
        let most = if is_raster { most(call, kept.len())? } else { vec![u64::MAX; kept.len()] };
        let extents: Vec<u64> = kept.iter().zip(&most).map(|(extent, most)| *extent.min(most)).collect();
        limit(call, &extents)?;
        call.work.check_deadline()?;
        // Bits cannot be selected by axis.
        let selection = chosen.selection.as_ref().filter(|_| object.descriptor().dtype != DType::Bitmask);
        let (tensor, slices) = match selection {
            Some(selection) => (object.decode_selection(selection)?.array, chosen.rest()),
            None => (object.decode()?, slices),
        };
        call.work.check_deadline()?;
        let name = text_of(message.metadata(), index, "name");
        let units = text_of(message.metadata(), index, "units");
        if is_raster {
            let raster = Raster::from_tensor(&tensor, &slices, &most).map_err(Failure::request)?;
            return match format {
                "png" => png_reply(call, &raster),
                _ => raster_reply(call, &raster, name.as_deref().unwrap_or("object"), units),
            };
        }
        if format == "npy" {
            let header = tercet::convert::npy::header(tensor.dtype(), &kept);
            let Some(mut bytes) = header else {
                return Err(Failure::request(format!("{} is not supported by NumPy", tensor.dtype())));
            };
            if slices.is_empty() {
                bytes.extend_from_slice(tensor.bytes());
            } else {
                bytes.extend(super::cells::bytes(&tensor, &slices).map_err(Failure::request)?);
            }
            return Ok(Reply::bytes(BYTES, bytes));
        }
        let exact = super::cells::numbers(&tensor, &slices).map_err(Failure::request)?;
        Ok(Reply::json(&ValuesJson {
            name,
            dims: chosen.kept().map(|axis| axis.to_string()).collect(),
            values: nested(&kept, &exact),
            shape: kept,
            dtype: tensor.dtype().name(),
            units,
        }))
    })
}

/// The slices of `isel`, by axis.
fn slices(call: &Call<'_>) -> Result<Vec<(usize, IndexSlice)>, Failure> {
    let mut slices: Vec<(usize, IndexSlice)> = Vec::new();
    for text in call.params.all("isel") {
        let (axis, positions) = split("isel", text)?;
        let slice = IndexSlice::parse(&positions.replace("..", ":"));
        let (Ok(axis), Some(slice)) = (axis.parse::<usize>(), slice) else {
            let message = format!("`isel`: invalid selection `{}`", crate::catalog::shown(text));
            return Err(Failure::request(message).with_hint("axes have numbers: `0=5`, `1=0..24`"));
        };
        if slices.iter().any(|(other, _)| *other == axis) {
            return Err(Failure::request(format!("axis {axis} is selected twice")));
        }
        slices.push((axis, slice));
    }
    Ok(slices)
}

/// The selected part of an object.
struct Chosen {
    /// The selected positions, in ascending order.
    axes: Vec<AxisSlice>,
    /// The same; `None` if it is the whole object or empty.
    selection: Option<Selection>,
    /// Axes in descending order.
    reversed: Vec<usize>,
    /// Axes of which one position is selected; they are not dimensions of the result.
    single: Vec<usize>,
}

impl Chosen {
    fn new(slices: &[(usize, IndexSlice)], shape: &[u64]) -> Result<Self, Failure> {
        let invalid = |error: SelectionError| Failure::request(error.to_string());
        let mut axes: Vec<AxisSlice> = shape.iter().map(|&extent| AxisSlice::full(extent)).collect();
        let (mut reversed, mut single) = (Vec::new(), Vec::new());
        for (axis, slice) in slices {
            let (Some(chosen), Some(&extent)) = (axes.get_mut(*axis), shape.get(*axis)) else {
                return Err(Failure::request(format!("there is no axis {axis}")));
            };
            let (resolved, is_reversed) = raster::positions(slice, *axis, extent).map_err(invalid)?;
            *chosen = resolved;
            if is_reversed {
                reversed.push(*axis);
            }
            if slice.is_single {
                single.push(*axis);
            }
        }
        let selection = Selection::new(axes.clone(), shape).ok();
        let selection = selection.filter(|selection| !selection.is_full(shape));
        Ok(Self { axes, selection, reversed, single })
    }

    /// The axes of the result.
    fn kept(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|axis| !self.single.contains(axis))
    }

    /// The extents of the result.
    fn kept_extents(&self) -> Vec<u64> {
        self.kept().map(|axis| self.axes[axis].count()).collect()
    }

    /// The slices of the selected part that reverse its axes and drop single positions.
    fn rest(&self) -> Vec<(usize, IndexSlice)> {
        let reverse = self.reversed.iter().map(|&axis| (axis, IndexSlice { step: -1, ..IndexSlice::FULL }));
        let first = IndexSlice { start: Some(0), is_single: true, ..IndexSlice::FULL };
        reverse.chain(self.single.iter().map(|&axis| (axis, first))).collect()
    }
}

/// Nested lists of values.
fn nested(shape: &[u64], values: &[Json]) -> Json {
    match shape {
        [] => values.first().cloned().unwrap_or(Json::Null),
        [_] => Json::Array(values.to_vec()),
        [extent, rest @ ..] => {
            let below = values.len().checked_div(usize::try_from(*extent).unwrap_or(0)).unwrap_or(0);
            Json::Array(values.chunks(below.max(1)).map(|part| nested(rest, part)).collect())
        }
    }
}

/// Ends when the client is gone or the server ends.
struct Following<'a> {
    sink: &'a Sink,
    work: Work,
}

impl Progress for Following<'_> {
    fn advance(&self, _bytes: u64) {}

    fn is_cancelled(&self) -> bool {
        self.sink.is_gone() || self.work.is_cancelled()
    }
}

fn follow(call: &Call<'_>) -> Result<Reply, Failure> {
    let (entry, _, file) = tgm(call)?;
    let path = call.state.catalog.path(&entry)?;
    let last_id = call.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<u64>().ok());
    let after = last_id.or_else(|| call.params.number("after"));
    let count = file.message_count()?;
    // The messages after that one.
    let last = after.map_or(0, |after| count.saturating_sub(after.saturating_add(1)));
    let work = call.work.without_deadline();
    let root = Arc::clone(call.state);
    Ok(Reply::stream(EVENTS, move |sink| {
        let options =
            FollowOptions::new().with_last(Some(last)).with_retry(true).with_interval(Some(INTERVAL));
        let mut follow = File::follow(path.as_path(), options);
        let following = Following { sink, work };
        let mut total = count;
        // The file as it was when the last message was read; it is opened again when it has more.
        let mut open: Option<File> = Some(file);
        loop {
            let event = match follow.next_event(&following) {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(_) if following.is_cancelled() => {
                    // The client is gone, or reads this and connects again.
                    let _ = sink.event(
                        "state",
                        None,
                        &serde_json::json!({ "state": "shutting_down", "total": total }),
                    );
                    return;
                }
                Err(error) => {
                    let problem = root.catalog.without_root(&error.to_string());
                    let _ = sink.event("error", None, &serde_json::json!({ "error": problem }));
                    return;
                }
            };
            let state = |state: &str, total: u64| {
                sink.event("state", None, &serde_json::json!({ "state": state, "total": total }))
            };
            let sent = match event {
                FollowEvent::Message(message) => {
                    total = total.max(message.number + 1);
                    if open.as_ref().is_none_or(|file| file.len() < message.span.end()) {
                        // Not by its path, which may lead out of the directory by now.
                        match root.catalog.message_file(&entry) {
                            Ok(file) => open = Some(file),
                            Err(failure) => {
                                let problem = root.catalog.without_root(&failure.message);
                                let _ = sink.event("error", None, &serde_json::json!({ "error": problem }));
                                return;
                            }
                        }
                    }
                    let known = open.as_ref().filter(|file| {
                        file.message_span(message.number).is_ok_and(|span| span == message.span)
                    });
                    let json = match known {
                        Some(file) => listed_message(file, message.number, None),
                        None => MessageJson {
                            message: message.number,
                            offset: message.span.start(),
                            length: message.span.len(),
                            metadata: message_metadata(&message.metadata),
                            objects: Vec::new(),
                            problem: None,
                        },
                    };
                    sink.event("message", Some(message.number), &json)
                }
                FollowEvent::Damaged { start, fault, .. } => {
                    let problem = fault.to_string();
                    sink.event("damaged", None, &serde_json::json!({ "offset": start, "problem": problem }))
                }
                FollowEvent::Skipped { span, .. } => sink.event(
                    "damaged",
                    None,
                    &serde_json::json!({ "span": span, "problem": "bytes that are not part of a message" }),
                ),
                FollowEvent::CaughtUp => state("caught_up", total),
                FollowEvent::Waiting { was_removed: true } => state("removed", total),
                FollowEvent::Waiting { was_removed: false } => state("waiting", total),
                FollowEvent::Changed { change, resumed } => {
                    open = None;
                    if !resumed {
                        total = 0;
                    }
                    state(if change == FileChange::Truncated { "truncated" } else { "replaced" }, total)
                }
                _ => Ok(()),
            };
            if sent.is_err() {
                return;
            }
        }
    })
    .with_header(header::CACHE_CONTROL, "no-store"))
}
