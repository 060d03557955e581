//! The table of endpoints: what the router serves, what parameters are checked against, and what `/openapi.json` describes.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::admission::Work;
use crate::api;
use crate::failure::Failure;
use crate::params::Params;
use crate::reply::Reply;
use crate::state::Shared;

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The path, with parameters in braces.
    pub(crate) path: &'static str,
    /// The group.
    pub(crate) tag: &'static str,
    /// What it returns, in one sentence.
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// How it is run.
    pub(crate) run: Run,
    /// The media types of its responses; those of JSON with their schema.
    pub(crate) content: &'static [Content],
    pub(crate) handler: fn(&Call<'_>) -> Result<Reply, Failure>,
}

/// How an endpoint is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// At once: it reads nothing.
    Light,
    /// On a thread of its own, with a slot and a deadline.
    Work,
    /// As work, with responses that may be streamed: then with a slot for streams, and without a deadline.
    Stream,
}

/// A media type of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) schema: Option<fn(&mut SchemaGenerator) -> Schema>,
}

impl Content {
    pub(crate) const fn json<T: JsonSchema>() -> Self {
        Self { media_type: "application/json", schema: Some(SchemaGenerator::subschema_for::<T>) }
    }

    pub(crate) const fn other(media_type: &'static str) -> Self {
        Self { media_type, schema: None }
    }
}

/// A request that is worked on.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) state: &'a std::sync::Arc<Shared>,
    pub(crate) params: Params,
    pub(crate) headers: &'a axum::http::HeaderMap,
    pub(crate) work: &'a Work,
}

/// Where a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterLocation {
    Path,
    Query,
}

/// A parameter of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) place: ParameterLocation,
    pub(crate) kind: Kind,
    pub(crate) is_repeated: bool,
    pub(crate) is_required: bool,
    pub(crate) about: &'static str,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Texts with commas.
    List,
    /// The ID of a file.
    Id,
    Integer {
        min: u64,
        max: u64,
    },
    Number,
    Flag,
    OneOf(&'static [&'static str]),
}

impl Parameter {
    const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, place: ParameterLocation::Query, kind, is_repeated: false, is_required: false, about }
    }

    /// The ID of a file in the path.
    pub(crate) const fn id() -> Self {
        Self::new("id", Kind::Id, "The ID of the file, as in `/api/files`").in_path()
    }

    pub(crate) const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Text, about)
    }

    pub(crate) const fn list(name: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::List, about)
    }

    pub(crate) const fn integer(name: &'static str, min: u64, max: u64, about: &'static str) -> Self {
        Self::new(name, Kind::Integer { min, max }, about)
    }

    pub(crate) const fn number(name: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Number, about)
    }

    pub(crate) const fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Flag, about)
    }

    pub(crate) const fn one_of(
        name: &'static str,
        known: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Self::new(name, Kind::OneOf(known), about)
    }

    pub(crate) const fn in_path(mut self) -> Self {
        (self.place, self.is_required) = (ParameterLocation::Path, true);
        self
    }

    pub(crate) const fn repeated(mut self) -> Self {
        self.is_repeated = true;
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

/// All endpoints, by group.
pub(crate) const ALL: &[&[Endpoint]] = &[
    api::server::ENDPOINTS,
    api::files::ENDPOINTS,
    api::tet::ENDPOINTS,
    api::tgm::ENDPOINTS,
    api::tatami::ENDPOINTS,
    api::search::ENDPOINTS,
    api::reference::ENDPOINTS,
];
