//! The description of the API, made from the table of endpoints.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::endpoint::{ALL, Endpoint, Kind, Parameter, ParameterLocation};
use crate::failure::ErrorBody;

/// The `OpenAPI` 3.1 document.
pub(crate) fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let error = generator.subschema_for::<ErrorBody<'static>>();
    let mut paths = Map::new();
    for endpoint in ALL.iter().copied().flatten() {
        let mut content = Map::new();
        for media in endpoint.content {
            let schema = media.schema.map(|schema| schema(&mut generator).to_value());
            let media_object = schema.map_or_else(|| json!({}), |schema| json!({ "schema": schema }));
            content.insert(media.media_type.to_owned(), media_object);
        }
        let failed = |about: &str| json!({ "description": about, "content": { "application/json": { "schema": error } } });
        let mut responses = Map::new();
        let is_session = endpoint.path == "/api/session";
        let ok = if is_session { "204" } else { "200" };
        responses.insert(
            ok.to_owned(),
            if is_session {
                json!({ "description": endpoint.summary })
            } else {
                json!({ "description": endpoint.summary, "content": content })
            },
        );
        for (status, about) in statuses(endpoint) {
            let content =
                if is_plain(endpoint.path) { json!({ "description": about }) } else { failed(about) };
            responses.insert((*status).to_owned(), content);
        }
        let operation = json!({
            "operationId": operation_id(endpoint.path),
            "tags": [endpoint.tag],
            "summary": endpoint.summary,
            "parameters": endpoint.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "responses": responses,
        });
        let method = if is_session { "post" } else { "get" };
        paths.insert(endpoint.path.to_owned(), json!({ method: operation }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tercet",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Search, arrays, messages and tables of the files below a directory.",
            "license": { "name": "MIT OR Apache-2.0" }
        },
        "servers": [{ "url": "/" }],
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": generator.take_definitions(true)
        },
        "security": [{}, { "token": [] }],
        "paths": paths
    })
}

/// Endpoints whose errors have no JSON body of this API.
fn is_plain(path: &str) -> bool {
    matches!(path, "/readyz" | "/search")
}

fn statuses(endpoint: &Endpoint) -> &'static [(&'static str, &'static str)] {
    const WORK: &[(&str, &str)] = &[
        ("206", "A range of the bytes"),
        ("304", "The response that the client has is current"),
        ("400", "The request is invalid"),
        ("401", "A token is required"),
        ("403", "The Host header has an unknown name"),
        ("404", "There is no such file, dataset, message, object or document"),
        ("405", "The method is not supported"),
        ("409", "The file has another format"),
        ("416", "The file has no such range"),
        ("422", "The file is damaged, exceeds a limit, or needs a feature that is not supported"),
        ("500", "The file cannot be read"),
        ("503", "The server is at capacity, or is shutting down"),
        ("504", "The request exceeded the deadline"),
    ];
    const LIGHT: &[(&str, &str)] = &[
        ("304", "The response that the client has is current"),
        ("400", "The request is invalid"),
        ("401", "A token is required"),
        ("403", "The Host header has an unknown name"),
        ("404", "There is no such file"),
        ("405", "The method is not supported"),
        ("503", "The server is shutting down"),
    ];
    if endpoint.run == crate::endpoint::Run::Light { LIGHT } else { WORK }
}

fn operation_id(path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        Kind::Text | Kind::List => json!({ "type": "string", "maxLength": 4096 }),
        Kind::Id => json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" }),
        Kind::Integer { min, max: u64::MAX } => json!({ "type": "integer", "minimum": min }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::OneOf(known) => json!({ "type": "string", "enum": known }),
    };
    let schema = if parameter.is_repeated { json!({ "type": "array", "items": schema }) } else { schema };
    let place = if parameter.place == ParameterLocation::Path { "path" } else { "query" };
    json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": schema,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types of the page are generated from `web/openapi.json`: `UPDATE_OPENAPI=1` writes it, `node types.mjs` the types.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "tests read real files")]
    fn the_page_has_the_types_of_this_description() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/openapi.json");
        let now = format!("{:#}\n", document());
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(path, &now).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap();
        assert!(
            stored == now,
            "web/openapi.json is not current: set UPDATE_OPENAPI=1, then run `node types.mjs` in web/"
        );
    }

    #[test]
    fn every_endpoint_is_described() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        assert_eq!(paths.len(), ALL.iter().map(|group| group.len()).sum::<usize>());
        let ids: std::collections::BTreeSet<_> = paths
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
            .map(|op| op["operationId"].to_string())
            .collect();
        assert_eq!(ids.len(), paths.len());
        // Every parameter of a path is in its table, and every reference leads somewhere.
        for (path, item) in paths {
            let operation = item.as_object().unwrap().values().next().unwrap();
            for name in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
                let parameters = operation["parameters"].as_array().unwrap();
                assert!(
                    parameters.iter().any(|known| known["name"] == name && known["in"] == "path"),
                    "{path}"
                );
            }
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
