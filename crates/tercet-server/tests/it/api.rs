//! The endpoints of arrays, messages, tables and search.

use serde_json::{Value, json};
use tercet::core::DType;
use tercet::tatami::search::FieldValue;
use tercet::tatami::{Column, Field, Scalar, Schema, Type, Values};
use tercet::{tatami, tgm};
use tercet_server::Options;

use crate::support::{Served, documents, documents_with, sample};

#[tokio::test]
async fn the_list_says_what_there_is() {
    let directory = sample();
    let served = Served::new(directory.path());
    let info = served.json("/api/info").await;
    assert_eq!((&info["files"], &info["search"]["documents"]), (&json!(4), &json!(3)), "{info}");
    let files = served.json("/api/files").await;
    let paths: Vec<_> =
        files["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["cities.tatami", "data/run.tgm", "data/weather.tet", "notes.tatami"]);
    assert_eq!(files["files"][2]["summary"], "3 datasets");
    assert_eq!(files["files"][3]["documents"], 3);
    let some = served.json("/api/files?format=tatami&searchable=true").await;
    assert_eq!((&some["total"], &some["files"][0]["name"]), (&json!(1), &json!("notes.tatami")));
    assert_eq!(served.json("/api/files?match=WEATHER").await["total"], 1);
    // The list is asked for again and again.
    let answer = served.get("/api/files").await;
    let again = served.send("GET", "/api/files", &[("if-none-match", answer.header("etag"))]).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
}

#[tokio::test]
async fn arrays_are_described_and_read() {
    let directory = sample();
    let served = Served::new(directory.path());
    let id = served.id("data/weather.tet").await;
    let file = served.json(&format!("/api/tet/{id}")).await;
    let t2m = &file["datasets"][0];
    assert_eq!((&t2m["name"], &t2m["units"], &t2m["dtype"]), (&json!("t2m"), &json!("K"), &json!("float32")));
    assert_eq!(t2m["map"], json!({ "lat": 1, "lon": 2 }));
    let time = &t2m["axes"][0];
    assert_eq!(
        (&time["kind"], &time["standard"], &time["first"]),
        (&json!("times"), &json!("time"), &json!("2026-01-01"))
    );
    assert_eq!(t2m["axes"][1]["last"], 30.0);
    assert_eq!(file["datasets"][1]["is_coordinate"], true);

    let series = served.json(&format!("/api/tet/{id}/t2m?isel=lat=0&isel=lon=1")).await;
    assert_eq!(series["values"], json!([271.0, 291.0, 311.0]));
    assert_eq!(series["coords"]["time"], json!(["2026-01-01", "2026-01-02", "2026-01-03"]));
    assert_eq!(series["coords"]["lat"], 60.0);
    let labelled = served.json(&format!("/api/tet/{id}/t2m?sel=lat=50&sel=lon=20&sel=time=2026-01-01")).await;
    assert_eq!((&labelled["values"], &labelled["dims"]), (&Value::Null, &json!([])), "the missing value");
    let mean = served.json(&format!("/api/tet/{id}/t2m?op=mean&over=lat,lon")).await;
    assert_eq!(mean["values"][1], 299.5);
    let both = served.json(&format!("/api/tet/{id}/t2m?op=min,max")).await;
    assert_eq!((&both[0]["values"], &both[1]["values"]), (&json!(270.0), &json!(329.0)));
    let coords = served.json(&format!("/api/tet/{id}/t2m/coords/lat?offset=1&limit=2")).await;
    assert_eq!((&coords["values"], &coords["kind"]), (&json!([50.0, 40.0]), &json!("numbers")));
}

#[tokio::test]
async fn arrays_have_other_forms() {
    let directory = sample();
    let served = Served::new(directory.path());
    let id = served.id("data/weather.tet").await;
    let answer = served.get(&format!("/api/tet/{id}/t2m?isel=time=0&format=f32")).await;
    let facts: Value = serde_json::from_str(answer.header("tercet-array")).unwrap();
    assert_eq!(
        (&facts["shape"], &facts["missing"], &facts["exact"]),
        (&json!([4, 5]), &json!(1), &json!(true))
    );
    assert_eq!((&facts["min"], &facts["max"], &facts["units"]), (&json!(270), &json!(289), &json!("K")));
    let values: Vec<f32> = answer.body.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert_eq!((values.len(), values[6], values[7].is_nan()), (20, 276.0, true));
    let means = served.get(&format!("/api/tet/{id}/t2m?isel=time=1&format=f32&max=2,1")).await;
    let facts: Value = serde_json::from_str(means.header("tercet-array")).unwrap();
    assert_eq!(
        (&facts["shape"], &facts["selected"], &facts["exact"]),
        (&json!([2, 1]), &json!([4, 5]), &json!(false))
    );
    let values: Vec<f32> = means.body.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert_eq!(values, [294.5, 304.5]);

    let npy = served.get(&format!("/api/tet/{id}/t2m?isel=time=2&format=npy")).await;
    assert!(npy.body.starts_with(b"\x93NUMPY"));
    let rows = |answer: &crate::support::Answer| {
        assert_eq!(answer.header("content-type"), "application/vnd.apache.arrow.stream", "{}", answer.text());
        let source = tercet::core::source::Memory::new("rows", answer.body.clone());
        let options = tercet::arrow::Options::default();
        let format = tercet::arrow::Format::ArrowStream;
        let mut reader =
            tercet::arrow::TableReader::open(std::sync::Arc::new(source), format, &options, None).unwrap();
        let fields = reader.table().schema().fields();
        let names: Vec<String> = fields.iter().map(|field| field.name.to_string()).collect();
        (names, reader.next().unwrap().unwrap())
    };
    let slice = served.get(&format!("/api/tet/{id}/t2m?isel=lat=1&isel=lon=1..3&format=arrow")).await;
    let (names, columns) = rows(&slice);
    assert_eq!(names, ["time", "lon", "value"]);
    let text = |column: usize, row: usize| columns[column].scalar(row).unwrap().to_string();
    assert_eq!([text(0, 2), text(1, 3), text(2, 4)], ["`2026-01-02`", "20", "316"]);
    let means = served.get(&format!("/api/tet/{id}/t2m?op=mean,max&over=lat,lon&format=arrow")).await;
    let (names, columns) = rows(&means);
    assert_eq!((names.as_slice(), columns[2].len()), (&["time", "mean", "max"].map(str::to_owned)[..], 3));
    assert_eq!(columns[2].scalar(2).unwrap().to_string(), "329");
    for query in
        ["axes=false&stretch=2,98&colormap=magma", "axes=false&max=2", "width=400", "vmin=200&vmax=300"]
    {
        let png = served.get(&format!("/api/tet/{id}/t2m?isel=time=0&format=png&{query}")).await;
        assert_eq!(
            (png.status.as_u16(), png.header("content-type")),
            (200, "image/png"),
            "{query}: {:?}",
            png.body
        );
        assert!(png.body.starts_with(b"\x89PNG"), "{query}");
    }
}

#[tokio::test]
async fn chunks_have_a_state() {
    let directory = sample();
    let served = Served::new(directory.path());
    let id = served.id("data/weather.tet").await;
    let chunks = served.json(&format!("/api/tet/{id}/t2m/chunks")).await;
    assert_eq!((&chunks["counts"], &chunks["listed"]), (&json!([3, 1, 1]), &json!(3)));
    assert_eq!(chunks["state"], json!(["unverified", "unverified", "unverified"]));
    assert_eq!(
        (&chunks["min"][0], &chunks["max"][2], &chunks["missing"]),
        (&json!(270), &json!(329), &json!([1, 0, 0]))
    );
    // One chunk is damaged.
    let path = directory.path().join("data/weather.tet");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = chunks["offset_bytes"][1].as_u64().unwrap() as usize;
    bytes[at + 3] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    served.state.rescan();
    let one = served.json(&format!("/api/tet/{id}/t2m/chunks?isel=time=1..3&verify=true")).await;
    assert_eq!((&one["number"], &one["state"]), (&json!([1, 2]), &json!(["damaged", "ok"])));
    assert!(one["errors"][0].as_str().unwrap().contains("checksum"), "{one}");
    // What was found is remembered.
    let all = served.json(&format!("/api/tet/{id}/t2m/chunks")).await;
    assert_eq!(all["state"], json!(["unverified", "damaged", "ok"]));
    // Values of it are an error, never wrong.
    let answer = served.get(&format!("/api/tet/{id}/t2m?isel=time=1")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["code"]),
        (422, &json!("corrupt")),
        "{}",
        answer.text()
    );
    assert!(!answer.text().contains(directory.path().to_str().unwrap()), "{}", answer.text());
    let report = served.json(&format!("/api/files/{id}/verify")).await;
    assert_eq!(report["report"]["ok"], false);
    let outline = served.json(&format!("/api/files/{id}/outline")).await;
    let states = outline["states"].as_array().unwrap();
    assert!(states.iter().any(|state| state["state"] == "damaged" && state["start"] == at), "{states:?}");
    assert!(outline["outline"]["parts"].as_array().unwrap().len() > 2);
}

#[tokio::test]
async fn messages_are_listed_filtered_and_read() {
    let directory = sample();
    let served = Served::new(directory.path());
    let id = served.id("data/run.tgm").await;
    let list = served.json(&format!("/api/tgm/{id}")).await;
    assert_eq!((&list["total"], &list["matched"], &list["keys"]), (&json!(3), &json!(3), &json!(["step"])));
    assert_eq!(list["messages"][1]["objects"][0]["name"], "t");
    assert_eq!(list["messages"][1]["metadata"]["step"], 1);
    let some =
        served.json(&format!("/api/tgm/{id}?where=step%3E0+and+name%3D%22t%22&order=desc&limit=1")).await;
    assert_eq!((&some["messages"][0]["message"], &some["matched"]), (&json!(2), &Value::Null));
    let all = served.json(&format!("/api/tgm/{id}?where=step%3E0&offset=1")).await;
    assert_eq!((&all["messages"][0]["message"], &all["matched"]), (&json!(2), &json!(2)));
    let one = served.json(&format!("/api/tgm/{id}/1")).await;
    assert_eq!((&one["objects"][0]["units"], &one["objects"][0]["shape"]), (&json!("K"), &json!([2, 3])));
    let values = served.json(&format!("/api/tgm/{id}/1/0")).await;
    assert_eq!(values["values"], json!([[10.0, 11.0, 12.0], [13.0, 14.0, 15.0]]));
    let row = served.json(&format!("/api/tgm/{id}/1/0?isel=0=1&isel=1=0:3:2")).await;
    assert_eq!((&row["values"], &row["dims"]), (&json!([13.0, 15.0]), &json!(["1"])));
    let floats = served.get(&format!("/api/tgm/{id}/2/0?format=f32&isel=0=0")).await;
    assert_eq!(floats.body, [20.0f32, 21.0, 22.0].map(f32::to_le_bytes).concat());
    assert!(served.get(&format!("/api/tgm/{id}/2/0?format=npy")).await.body.starts_with(b"\x93NUMPY"));
    // The selection applies to every format; `npy` has the shape of what is selected.
    for (query, shape, values) in [
        ("isel=1=1..3", "(2, 2)", &[21.0f32, 22.0, 24.0, 25.0][..]),
        ("isel=0=1", "(3,)", &[23.0, 24.0, 25.0]),
        ("isel=0=::-1&isel=1=0", "(2,)", &[23.0, 20.0]),
    ] {
        let npy = served.get(&format!("/api/tgm/{id}/2/0?format=npy&{query}")).await;
        let header = String::from_utf8_lossy(&npy.body[..128]).into_owned();
        assert!(header.contains(&format!("'shape': {shape}")), "{query}: {header}");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(npy.body[128..], bytes, "{query}");
        let floats = served.get(&format!("/api/tgm/{id}/2/0?format=f32&{query}")).await;
        assert_eq!(floats.body, bytes, "{query}");
    }
    assert!(served.get(&format!("/api/tgm/{id}/2/0?format=png")).await.body.starts_with(b"\x89PNG"));
    for path in ["3", "x", "0/1", "99999999999999999999"] {
        assert_eq!(served.get(&format!("/api/tgm/{id}/{path}")).await.status.as_u16(), 404, "{path}");
    }
    let wrong = served.get(&format!("/api/tgm/{id}?where=step+%3D%3D%3D+1")).await;
    assert_eq!((wrong.status.as_u16(), &wrong.json()["at"]["parameter"]), (400, &json!("where")));
}

#[tokio::test]
async fn objects_have_axes_and_coordinates() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grid.tgm");
    let object = |name: &str, units: &str, shape: &[u64]| {
        let mut entry = tgm::Entry::default();
        entry.insert("name".into(), name.into());
        entry.insert("units".into(), units.into());
        let len: u64 = shape.iter().product();
        let payload: Vec<u8> = (0..len).flat_map(|n| (n as f32).to_le_bytes()).collect();
        (entry, tgm::DataObjectDescriptor::new(DType::F32, shape.to_vec()), payload)
    };
    let mut writer = tgm::Writer::create(&path, tgm::WriterOptions::new()).unwrap();
    let mut write = |objects: Vec<(tgm::Entry, tgm::DataObjectDescriptor, Vec<u8>)>,
                     extra: &[(&str, tgm::Value)]| {
        let mut metadata = tgm::GlobalMetadata::default();
        metadata.extra.extend(extra.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        metadata.base.extend(objects.iter().map(|(entry, ..)| entry.clone()));
        let parts: Vec<_> =
            objects.iter().map(|(_, descriptor, payload)| (descriptor, &payload[..])).collect();
        writer.message(&metadata, &parts, &tgm::EncodeOptions::new()).unwrap();
    };
    let (lat, lon) = (object("lat", "degrees_north", &[2]), object("longitude", "degrees_east", &[3]));
    write(vec![lat, lon, object("t", "K", &[2, 3])], &[]);
    let mut named = object("p", "Pa", &[4, 3]);
    named.0.insert("dim_names".into(), tgm::Value::Array(vec!["level".into(), "longitude".into()]));
    let lengths = tgm::Value::Map(vec![("7".into(), "band".into())]);
    let square = object("q", "1", &[2, 2]);
    write(
        vec![object("t", "K", &[7, 2, 3]), named, square, object("s", "1", &[5])],
        &[("dim_names", lengths)],
    );
    writer.finish().unwrap();
    let served = Served::new(directory.path());
    let id = served.id("grid.tgm").await;
    let first = served.json(&format!("/api/tgm/{id}/0")).await;
    let (lat, t) = (&first["objects"][0], &first["objects"][2]);
    assert_eq!((&lat["dims"], &lat["coords"], &lat["map"]), (&json!(["lat"]), &json!([null]), &Value::Null));
    assert_eq!((&t["dims"], &t["map"]), (&json!(["lat", "longitude"]), &json!({ "lat": 0, "lon": 1 })));
    let coords = |message: u64, object: u64, units: &str| json!({ "message": message, "object": object, "units": units });
    assert_eq!(t["coords"], json!([coords(0, 0, "degrees_north"), coords(0, 1, "degrees_east")]));
    assert_eq!(t["state"], "unverified");
    // Coordinates of the first message are those of the others, too.
    let second = served.json(&format!("/api/tgm/{id}/1")).await;
    let dims: Vec<_> = second["objects"].as_array().unwrap().iter().map(|object| &object["dims"]).collect();
    let expected = [
        json!(["band", "lat", "longitude"]),
        json!(["level", "longitude"]),
        json!([null, null]),
        json!([null]),
    ];
    assert_eq!(dims, expected.iter().collect::<Vec<_>>());
    assert_eq!(second["objects"][0]["map"], json!({ "lat": 1, "lon": 2 }));
    let p = &second["objects"][1];
    assert_eq!((&p["coords"], &p["map"]), (&json!([null, coords(0, 1, "degrees_east")]), &Value::Null));
    // After a verification the state is known, also to a client that has the message.
    let before = served.get(&format!("/api/tgm/{id}/1")).await;
    served.json(&format!("/api/files/{id}/verify")).await;
    let tag = before.header("etag").to_owned();
    let after = served.send("GET", &format!("/api/tgm/{id}/1"), &[("if-none-match", &tag)]).await;
    assert_eq!((after.status.as_u16(), &after.json()["objects"][0]["state"]), (200, &json!("ok")));
    let mut bytes = std::fs::read(&path).unwrap();
    let payload = tgm::File::open(&path).unwrap().message(1).unwrap().object(1).unwrap().payload_span();
    let at = payload.start() as usize;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    served.state.rescan();
    let report = served.json(&format!("/api/files/{id}/verify")).await;
    assert_eq!(report["report"]["ok"], false);
    let damaged = served.json(&format!("/api/tgm/{id}/1")).await;
    let states: Vec<_> =
        damaged["objects"].as_array().unwrap().iter().map(|object| &object["state"]).collect();
    assert_eq!(states.iter().filter(|state| **state == "damaged").count(), 1, "{states:?}");
    assert!(states.iter().all(|state| **state != "ok"), "{states:?}");
}

#[tokio::test]
async fn tables_have_rows_and_statistics() {
    let directory = sample();
    let served = Served::new(directory.path());
    let id = served.id("cities.tatami").await;
    let table = served.json(&format!("/api/tatami/{id}")).await;
    assert_eq!((&table["rows"], &table["columns"][0]["name"]), (&json!(1000), &json!("name")));
    assert_eq!(table["columns"][1]["max"], "9223372036854775807");
    let rows = served.json(&format!("/api/tatami/{id}/rows?offset=5&limit=2&columns=people,share")).await;
    assert_eq!(rows["rows"], json!([["9223372036854775807", 1.25], [6, "NaN"]]));
    assert_eq!((&rows["total"], &rows["matched"]), (&json!(1000), &json!(1000)));
    let some = served
        .json(&format!("/api/tatami/{id}/rows?where=name%3D%22city+3%22&limit=2&offset=1&count=true"))
        .await;
    assert_eq!((&some["matched"], &some["rows"][0][1]), (&json!(143), &json!(10)));
    let arrow = served.get(&format!("/api/tatami/{id}/rows?format=arrow&limit=3")).await;
    assert_eq!(arrow.header("content-type"), "application/vnd.apache.arrow.stream");
    assert!(arrow.body.len() > 100);
    let names = served.json(&format!("/api/tatami/{id}/columns/name")).await;
    assert_eq!(
        (&names["distinct"], &names["top"][0]),
        (&json!(7), &json!({ "value": "city 0", "count": 143 }))
    );
    let numbers = served.json(&format!("/api/tatami/{id}/columns/people?where=people%3C10")).await;
    assert_eq!(
        (&numbers["rows"], &numbers["sum"], &numbers["mean"]),
        (&json!(9), &json!(40), &json!(40.0 / 9.0))
    );
    assert_eq!(numbers["histogram"]["counts"].as_array().unwrap().len(), 20);
    let wrong = served.get(&format!("/api/tatami/{id}/rows?where=poeple%3D1")).await;
    let body = wrong.json();
    assert_eq!(
        (wrong.status.as_u16(), &body["at"]),
        (400, &json!({ "parameter": "where", "start": 0, "end": 6 }))
    );
    assert_eq!(body["hint"], "did you mean `people`?");
    assert_eq!(served.get(&format!("/api/tatami/{id}/columns/other")).await.status.as_u16(), 404);
    assert_eq!(served.get(&format!("/api/tet/{id}")).await.status.as_u16(), 409);
}

#[tokio::test]
async fn histograms_of_many_numbers_count_all() {
    let directory = tempfile::tempdir().unwrap();
    let schema = Schema::new(vec![Field::new("n", Type::Int64)]).unwrap();
    let path = directory.path().join("many.tatami");
    let mut writer = tatami::Writer::create(path, schema, tatami::WriterOptions::new()).unwrap();
    writer.append(&[Column::new(Values::Int64((0..100_000).collect()))]).unwrap();
    writer.finish().unwrap();
    let served = Served::new(directory.path());
    let id = served.id("many.tatami").await;
    let found = served.json(&format!("/api/tatami/{id}/columns/n?where=n%3E%3D20000")).await;
    let counts = found["histogram"]["counts"].as_array().unwrap();
    let sum: u64 = counts.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((sum, &found["histogram"]["edges"][0]), (80_000, &json!(20000.0)));
    assert!(counts.iter().all(|count| (3_999..=4_001).contains(&count.as_u64().unwrap())), "{counts:?}");
}

#[tokio::test]
async fn facets_that_cannot_be_counted_are_notes() {
    let directory = tempfile::tempdir().unwrap();
    let field = |name: &str, kind: Type| Field::new(name, kind).with_nulls();
    let path = |name: &str| directory.path().join(name);
    let text = |text: &str| FieldValue::from(Scalar::Bytes(text.as_bytes().to_vec()));
    documents_with(
        &path("a.tatami"),
        vec![field("lang", Type::String), field("year", Type::String)],
        &[text("en"), text("2026")],
    );
    documents_with(
        &path("b.tatami"),
        vec![field("lang", Type::String), field("year", Type::Int64)],
        &[text("de"), Scalar::Int64(2026).into()],
    );
    documents(&path("c.tatami"), &[("c", "C", "memory")]);
    let served = Served::new(directory.path());
    // Only what every search can count is offered.
    let info = served.json("/api/info").await;
    assert_eq!(info["search"]["facets"], json!(["lang"]));
    assert_eq!(info["search"]["sorts"], json!(["score", "title", "url", "norm_body", "lang"]));
    let found = served.json("/api/search?q=memory&facets=lang,year").await;
    assert_eq!((&found["matches"], found["facets"].as_array().unwrap().len()), (&json!(3), 1));
    let lang = &found["facets"][0];
    assert_eq!((&lang["field"], &lang["missing"]), (&json!("lang"), &json!(1)));
    assert_eq!(found["notes"], json!(["column `year` has different types, so its values are not counted"]));
    // Of the chosen files none may have a column that the page asks for.
    let plain = served.id("c.tatami").await;
    let found = served.json(&format!("/api/search?q=memory&facets=lang&in={plain}")).await;
    assert_eq!((&found["matches"], &found["facets"]), (&json!(1), &json!([])));
    assert_eq!(found["notes"], json!(["no searched file has the column `lang`"]));
    let sorted = served.json("/api/search?q=memory&sort=-title").await;
    assert_eq!(sorted["results"][0]["title"], "Title");
    assert_eq!(served.get("/api/search?q=memory&facets=langs").await.status.as_u16(), 400);
}

#[tokio::test]
async fn documents_are_found_and_marked() {
    let directory = sample();
    let served = Served::new(directory.path());
    let found = served.json("/api/search?q=memory").await;
    assert_eq!((&found["matches"], &found["matches_exact"]), (&json!(2), &json!(true)), "{found}");
    let ids: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["doc_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    let hit = found["results"].as_array().unwrap().iter().find(|hit| hit["doc_id"] == "b").unwrap();
    let html = hit["snippet"]["html"].as_str().unwrap();
    assert!(html.contains("<mark>memory</mark>") && html.contains("&lt;script&gt;"), "{html}");
    let (text, mark) = (hit["snippet"]["text"].as_str().unwrap(), &hit["snippet"]["marks"][0]);
    let units: Vec<u16> = text.encode_utf16().collect();
    let part = &units[mark[0].as_u64().unwrap() as usize..mark[1].as_u64().unwrap() as usize];
    assert_eq!(String::from_utf16(part).unwrap(), "memory");
    let second = served.json("/api/search?q=memory&limit=1&offset=1").await;
    assert_eq!(second["results"][0]["doc_id"], found["results"][1]["doc_id"]);
    let filtered = served.json("/api/search?q=*&where=doc_id%3D%22c%22").await;
    assert_eq!(filtered["results"][0]["title"], "Other");
    let none = served.json("/api/search?q=turtle").await;
    assert_eq!((&none["results"], &none["notes"][0]), (&json!([]), &json!("no document contains `turtle`")));
    let suggested = served.json("/suggest?q=open+mem").await;
    assert_eq!(
        suggested["suggestions"][0],
        json!({ "text": "open memory", "term": "memory", "documents": 2 })
    );
    let document = served.json("/doc/a?q=memory").await;
    assert_eq!(document["title"]["html"], "<mark>Memory</mark> &amp; &lt;b&gt;safety&lt;/b&gt;");
    assert_eq!((&document["hits"], &document["body"]["truncated"]), (&json!(2), &json!(false)));
    let cut = served.json("/doc/a?max=3").await;
    assert_eq!((&cut["body"]["text"], &cut["body"]["truncated"]), (&json!("the"), &json!(true)));
    assert_eq!(served.get("/doc/zzz").await.status.as_u16(), 404);
    let wrong = served.get("/api/search?q=memory+(safety").await;
    assert_eq!((wrong.status.as_u16(), &wrong.json()["at"]["start"]), (400, &json!(7)));
}

#[tokio::test]
async fn concurrent_answers_equal_single_ones() {
    let directory = sample();
    let lang = Field::new("lang", Type::String).with_nulls();
    let value = FieldValue::from(Scalar::Bytes(b"en".to_vec()));
    documents_with(&directory.path().join("more.tatami"), vec![lang], &[value]);
    let served = Served::with(directory.path(), Options::new().with_cache(1).with_max_in_flight(1000));
    let (tet, table) = (served.id("data/weather.tet").await, served.id("cities.tatami").await);
    let paths: Vec<String> = (0..40)
        .map(|n| match n % 5 {
            0 => format!("/api/tet/{tet}/t2m?isel=time={}&format=f32", n % 3),
            1 => format!("/api/tatami/{table}/rows?offset={}&columns=name", n * 7),
            2 => "/search?q=memory+safety&k=3".to_owned(),
            3 => format!("/api/search?q=memory&facets=lang&sort=-title&offset={}", n % 2),
            _ => format!("/doc/{}?q=memory", ["a", "b", "c"][n % 3]),
        })
        .collect();
    // Only the time differs.
    let stable = |body: Vec<u8>| {
        let mut json: Value = serde_json::from_slice(&body).unwrap_or_else(|_| json!(body));
        if let Some(json) = json.as_object_mut() {
            json.remove("took_ms");
            json.remove("timing");
        }
        json
    };
    let mut single = Vec::new();
    for path in &paths {
        let answer = served.get(path).await;
        assert_eq!(answer.status.as_u16(), 200, "{path}");
        single.push(stable(answer.body));
    }
    let served = std::sync::Arc::new(served);
    let tasks: Vec<_> = paths
        .iter()
        .cloned()
        .map(|path| {
            let served = std::sync::Arc::clone(&served);
            tokio::spawn(async move { served.get(&path).await.body })
        })
        .collect();
    for (task, expected) in tasks.into_iter().zip(single) {
        assert_eq!(stable(task.await.unwrap()), expected);
    }
}
