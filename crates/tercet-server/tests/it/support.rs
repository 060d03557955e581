//! A served directory, and requests to it.

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tercet::core::{DType, TensorView};
use tercet::tatami::search::{Document, FieldValue, SegmentBuilder, SegmentOptions};
use tercet::tatami::{Column, Field, Schema, Type, Values};
use tercet::{tatami, tet, tgm};
use tercet_server::{Options, State, router};
use tower::ServiceExt as _;

/// A served directory.
pub(crate) struct Served {
    pub(crate) state: State,
    pub(crate) router: Router,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Served {
    pub(crate) fn new(path: &Path) -> Self {
        Self::with(path, Options::new())
    }

    pub(crate) fn with(path: &Path, options: Options) -> Self {
        let state = State::open(path, options).unwrap();
        let router = router(state.clone());
        Self { state, router }
    }

    /// Sends a request with further headers.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost:8080");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[]).await
    }

    /// The JSON of a successful response.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
        answer.json()
    }

    /// The ID of a listed file.
    pub(crate) async fn id(&self, path: &str) -> String {
        let files = self.json("/api/files").await;
        let found = files["files"].as_array().unwrap().iter().find(|file| file["path"] == path);
        found.unwrap_or_else(|| panic!("{path} is not in {files}"))["id"].as_str().unwrap().to_owned()
    }
}

/// A directory with a file of each format.
pub(crate) fn sample() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("data")).unwrap();
    arrays(&directory.path().join("data/weather.tet"));
    messages(&directory.path().join("data/run.tgm"), 0..3);
    table(&directory.path().join("cities.tatami"));
    documents(
        &directory.path().join("notes.tatami"),
        &[
            ("a", "Memory & <b>safety</b>", "the borrow checker makes memory safety a matter of types"),
            ("b", "Collector", "a collector frees <script>alert(1)</script> memory that no one owns"),
            ("c", "Other", "nothing of the kind"),
        ],
    );
    directory
}

/// 3 times of a grid of 4 latitudes and 5 longitudes; one value is missing.
pub(crate) fn arrays(path: &Path) {
    let mut layout = tet::Layout::new();
    let t2m = layout.dataset("t2m", DType::F32, [3, 4, 5], [1, 4, 5]).unwrap();
    layout.dims(t2m, ["time", "lat", "lon"]).unwrap();
    layout
        .labels(t2m, "time", ["2026-01-01", "2026-01-02", "2026-01-03"].map(str::to_owned).to_vec())
        .unwrap();
    layout.attr(t2m, "units", "K").unwrap();
    let lat = layout.dataset("lat", DType::F64, [4], [4]).unwrap();
    layout.dims(lat, ["lat"]).unwrap();
    layout.attr(lat, "units", "degrees_north").unwrap();
    let lon = layout.dataset("lon", DType::F64, [5], [5]).unwrap();
    layout.dims(lon, ["lon"]).unwrap();
    layout.attr(lon, "units", "degrees_east").unwrap();
    let mut writer = tet::Writer::create(path, layout, tet::WriterOptions::new()).unwrap();
    let mut values: Vec<f32> = (0..60).map(|n| 270.0 + n as f32).collect();
    values[7] = f32::NAN;
    writer.array(t2m, TensorView::from_slice(&[3, 4, 5], &values).unwrap()).unwrap();
    writer.array(lat, TensorView::from_slice(&[4], &[60.0, 50.0, 40.0, 30.0]).unwrap()).unwrap();
    writer.array(lon, TensorView::from_slice(&[5], &[0.0, 10.0, 20.0, 30.0, 40.0]).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// Messages with steps.
pub(crate) fn messages(path: &Path, steps: std::ops::Range<u64>) {
    let mut writer = tgm::Writer::create(path, tgm::WriterOptions::new()).unwrap();
    for step in steps {
        let (metadata, descriptor, payload) = message(step);
        writer.message(&metadata, &[(&descriptor, &payload)], &tgm::EncodeOptions::new()).unwrap();
    }
    writer.finish().unwrap();
}

/// A message of a 2×3 grid.
pub(crate) fn message(step: u64) -> (tgm::GlobalMetadata, tgm::DataObjectDescriptor, Vec<u8>) {
    let mut metadata = tgm::GlobalMetadata::default();
    metadata.extra.insert("step".into(), step.into());
    let mut entry = tgm::Entry::default();
    entry.insert("name".into(), "t".into());
    entry.insert("units".into(), "K".into());
    metadata.base.push(entry);
    let descriptor = tgm::DataObjectDescriptor::new(DType::F32, [2, 3]);
    let payload = (0..6).flat_map(|n| (step as f32 * 10.0 + n as f32).to_le_bytes()).collect();
    (metadata, descriptor, payload)
}

/// 1,000 rows.
pub(crate) fn table(path: &Path) {
    let fields = vec![
        Field::new("name", Type::String),
        Field::new("people", Type::Int64),
        Field::new("share", Type::Float64),
    ];
    let schema = Schema::new(fields).unwrap();
    let mut writer = tatami::Writer::create(path, schema, tatami::WriterOptions::new()).unwrap();
    let names: Vec<String> = (0..1000).map(|n| format!("city {}", n % 7)).collect();
    let people: Vec<i64> = (0..1000).map(|n| if n == 5 { i64::MAX } else { n }).collect();
    let share: Vec<f64> = (0..1000).map(|n| if n == 6 { f64::NAN } else { f64::from(n) / 4.0 }).collect();
    let columns = [
        Column::new(Values::Bytes(names.iter().map(String::as_str).collect())),
        Column::new(Values::Int64(people)),
        Column::new(Values::Float64(share)),
    ];
    writer.append(&columns).unwrap();
    writer.finish().unwrap();
}

/// A search segment.
pub(crate) fn documents(path: &Path, documents: &[(&str, &str, &str)]) {
    let mut builder = SegmentBuilder::create(path, SegmentOptions::new().with_overwrite(true)).unwrap();
    for (id, title, body) in documents {
        let url = format!("https://example.org/{id}");
        let document = Document::new(&url, title).with_id(id).with_body(body.as_bytes());
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap();
}

/// A search segment of a document with further columns.
pub(crate) fn documents_with(path: &Path, fields: Vec<Field>, values: &[FieldValue]) {
    let options = SegmentOptions::new().with_overwrite(true).with_fields(fields);
    let mut builder = SegmentBuilder::create(path, options).unwrap();
    let url = format!("https://example.org/{}", path.display());
    let document = Document::new(&url, "Title").with_body(b"memory").with_values(values);
    builder.add(&document).unwrap();
    builder.finish().unwrap();
}
