//! Further columns of documents: filters, facets, sorting, tests in queries, merges.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::search::{
    AnalyzerChoice, Document, FieldValue, MergeOptions, Query, SearchOptions, SearchRequest, Searcher,
    Segment, SegmentBuilder, SegmentOptions, SortBy, merge,
};
use tercet_tatami::{Expr, Field, File, Provenance, ReadOptions, Scalar, Type, WriterOptions};

fn fields() -> Vec<Field> {
    vec![
        Field::new("lang", Type::String),
        Field::new("price", Type::Float64),
        Field::new("year", Type::Int64),
        Field::list("tags", Type::String),
        Field::new("sold", Type::Bool),
    ]
}

fn text(value: &str) -> Scalar {
    Scalar::Bytes(value.as_bytes().to_vec())
}

fn values(number: i64) -> Vec<FieldValue> {
    if number % 7 == 6 {
        return Vec::new();
    }
    let tags = ["red", "green", "blue"].iter().take(usize::try_from(number % 4).unwrap());
    vec![
        text(["de", "en", "fr"][usize::try_from(number % 3).unwrap()]).into(),
        Scalar::Float64(number as f64 / 2.0).into(),
        if number % 5 == 0 { FieldValue::Null } else { Scalar::Int64(2000 + number % 10).into() },
        FieldValue::List(tags.map(|tag| text(tag).into()).collect()),
        Scalar::Bool(number % 2 == 0).into(),
    ]
}

fn built(numbers: std::ops::Range<i64>) -> Vec<u8> {
    let writer = WriterOptions::new().with_provenance(Provenance::Off);
    let options = SegmentOptions::new()
        .with_writer(writer)
        .with_analyzer(AnalyzerChoice::Fixed("standard".parse().unwrap()))
        .with_fields(fields());
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    for number in numbers {
        let (url, values) = (format!("u/{number:03}"), values(number));
        let document = Document::new(&url, "").with_id(&url).with_body(b"lamp").with_values(&values);
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap().written.output
}

fn opened(bytes: Vec<u8>) -> Segment {
    let source = Arc::new(Memory::new("segment", bytes));
    File::from_source(source, ReadOptions::new()).unwrap().segment().unwrap().unwrap()
}

/// The numbers of the documents that satisfy a test.
fn expected(numbers: std::ops::Range<i64>, test: impl Fn(&[FieldValue]) -> bool) -> Vec<i64> {
    numbers.filter(|number| test(&values(*number))).collect()
}

fn found(segments: &[Segment], query: &str) -> Vec<i64> {
    let cluster = tercet_tatami::search::Cluster::new(segments);
    let options = SearchOptions::new(1000);
    let (hits, _) = cluster.find(&Query::parse(query).unwrap(), &options, None).unwrap();
    let mut out: Vec<i64> =
        hits.iter().map(|hit| String::from_utf8_lossy(&hit.doc_id)[2..].parse().unwrap()).collect();
    out.sort_unstable();
    out
}

/// A test of the values of a document.
type Test<'a> = &'a dyn Fn(&[FieldValue]) -> bool;

#[test]
fn queries_test_columns() {
    let at = |values: &[FieldValue], at: usize| values.get(at).cloned().unwrap_or_default();
    let is = |value: &FieldValue, text: &str| *value == FieldValue::Scalar(self::text(text));
    let price = |values: &[FieldValue]| match at(values, 1) {
        FieldValue::Scalar(Scalar::Float64(price)) => Some(price),
        _ => None,
    };
    let year = |values: &[FieldValue]| match at(values, 2) {
        FieldValue::Scalar(Scalar::Int64(year)) => Some(year),
        _ => None,
    };
    let parts = [opened(built(0..40)), opened(built(40..90))];
    let one = [opened(built(0..90))];
    let cases: [(&str, Test<'_>); 16] = [
        ("price:[10 TO 20]", &|values| price(values).is_some_and(|price| (10.0..=20.0).contains(&price))),
        ("price:{10 TO 20}", &|values| price(values).is_some_and(|price| price > 10.0 && price < 20.0)),
        ("price:[10 TO 20}", &|values| price(values).is_some_and(|price| (10.0..20.0).contains(&price))),
        ("price:[* TO 3.5]", &|values| price(values).is_some_and(|price| price <= 3.5)),
        ("price:{30 TO *]", &|values| price(values).is_some_and(|price| price > 30.0)),
        ("price:>=30", &|values| price(values).is_some_and(|price| price >= 30.0)),
        ("price:<1", &|values| price(values).is_some_and(|price| price < 1.0)),
        ("year:2003", &|values| year(values) == Some(2003)),
        ("year:*", &|values| year(values).is_some()),
        ("-year:*", &|values| year(values).is_none()),
        ("lang:de", &|values| is(&at(values, 0), "de")),
        ("lang:\"de\"", &|values| is(&at(values, 0), "de")),
        ("lang:f*", &|values| is(&at(values, 0), "fr")),
        ("tags:blue", &|values| matches!(at(values, 3), FieldValue::List(tags) if tags.len() == 3)),
        ("sold:true", &|values| at(values, 4) == FieldValue::Scalar(Scalar::Bool(true))),
        ("+lamp +lang:en -year:[2001 TO 2005]", &|values| {
            is(&at(values, 0), "en") && year(values).is_none_or(|year| !(2001..=2005).contains(&year))
        }),
    ];
    for (query, test) in cases {
        let expected = expected(0..90, test);
        assert!(!expected.is_empty(), "{query}");
        assert_eq!(found(&one, query), expected, "{query}");
        assert_eq!(found(&parts, query), expected, "{query} in two segments");
    }
}

#[test]
fn tests_that_cannot_be_made_are_errors() {
    let segment = opened(built(0..9));
    let fails = |query: &str| {
        let query = Query::parse(query).unwrap();
        segment.find(&query, &SearchOptions::new(9)).unwrap_err().to_string()
    };
    let unknown = fails("colour:red");
    assert!(
        unknown.contains("unknown field `colour` (fields: title, body, anchor, url; columns: lang, price")
    );
    assert!(fails("price:cheap").contains("invalid value `cheap` for column `price`: expected a number"));
    assert!(fails("sold:maybe").contains("expected true or false"));
    for (query, reason) in [
        ("price:[10 20]", "invalid range"),
        ("price:[10 TO", "unterminated range"),
        ("price:[1 TO 2 TO 3]", "invalid range"),
        ("price:[a TOM]", "invalid range"),
        ("title:[a TO b]", "field `title` has no ranges"),
        ("lang:de^2", "no boost"),
        ("lang:(de fr)", "a group cannot have a column"),
        ("price:>", "missing value after `price:>`"),
    ] {
        assert!(Query::parse(query).unwrap_err().to_string().contains(reason), "{query}");
    }
}

#[test]
fn facets_and_orders_use_columns() {
    let searcher = Searcher::new(vec![opened(built(0..40)), opened(built(40..90))]).unwrap();
    let request = SearchRequest::new(Query::parse("lamp").unwrap())
        .with_facets(vec!["lang".into(), "tags".into()], 10)
        .with_sort(Some(SortBy::descending("price")));
    let response = searcher.search(&request).unwrap();
    let count = |test: &dyn Fn(&[FieldValue]) -> bool| expected(0..90, test).len() as u64;
    for (at, facet) in response.facets.iter().enumerate() {
        for value in &facet.values {
            let expected = count(&|values| match values.get(if at == 0 { 0 } else { 3 }) {
                Some(FieldValue::Scalar(one)) => *one == value.value,
                Some(FieldValue::List(tags)) => tags.contains(&value.value.clone().into()),
                _ => false,
            });
            assert_eq!(value.documents, expected, "{value:?}");
        }
        assert_eq!(facet.values.len(), 3);
    }
    assert_eq!(response.facets[0].missing, count(&|values| values.is_empty()));
    let empty = |values: &[FieldValue]| match values.get(3) {
        Some(FieldValue::List(tags)) => tags.is_empty(),
        _ => true,
    };
    assert_eq!(response.facets[1].missing, count(&empty));
    assert_eq!(response.hits[0].stored.doc_id, "u/089");
    let filter = Expr::col("price").lt(1.0);
    let response = searcher.search(&request.clone().with_filter(Some(filter))).unwrap();
    assert_eq!(response.total.unwrap().documents, 2);
}

/// Members of which some have no column of a query, a filter or an order: it is null there.
#[test]
fn members_may_lack_columns() {
    let plain = |analyzer: &str, ids: &[&str]| {
        let analyzer = AnalyzerChoice::Fixed(analyzer.parse().unwrap());
        let options = SegmentOptions::new().with_analyzer(analyzer);
        let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
        for id in ids {
            builder.add(&Document::new(id, "").with_id(id).with_body(b"a lamp")).unwrap();
        }
        opened(builder.finish().unwrap().written.output)
    };
    // The first member has no columns, and the last one has another analyzer.
    let segments = vec![plain("standard", &["p/1", "p/2"]), opened(built(0..20)), plain("german", &["g/1"])];
    let searcher = Searcher::new(segments).unwrap();
    let lamp = || SearchRequest::new(Query::parse("lamp").unwrap()).with_limit(100);
    let ids = |request: &SearchRequest| -> Vec<String> {
        let found = searcher.search(request).unwrap();
        assert_eq!(found.total.unwrap().documents, found.hits.len() as u64);
        assert!(found.hits.iter().all(|hit| hit.highlight.as_ref().unwrap().marks.len() <= 1));
        found.hits.into_iter().map(|hit| hit.stored.doc_id).collect()
    };
    let sorted = |request: &SearchRequest| {
        let mut ids = ids(request);
        ids.sort_unstable();
        ids
    };
    let numbered = |test: &dyn Fn(&[FieldValue]) -> bool| -> Vec<String> {
        expected(0..20, test).into_iter().map(|number| format!("u/{number:03}")).collect()
    };
    let with_absent = |mut some: Vec<String>| {
        some.extend(["g/1", "p/1", "p/2"].map(str::to_owned));
        some.sort_unstable();
        some
    };
    let is_german = |values: &[FieldValue]| values.first() == Some(&text("de").into());
    let price = |values: &[FieldValue]| match values.get(1) {
        Some(FieldValue::Scalar(Scalar::Float64(price))) => Some(*price),
        _ => None,
    };
    let query = |text: &str| SearchRequest::new(Query::parse(text).unwrap()).with_limit(100);
    let others = with_absent(numbered(&|values| !is_german(values)));
    assert_eq!(sorted(&query("lamp -lang:de")), others);
    let cheap = numbered(&|values| price(values).is_some_and(|price| price <= 3.0));
    assert!(!cheap.is_empty());
    assert_eq!(sorted(&query("+lamp +price:[0 TO 3]")), cheap);
    for (filter, expected) in [
        ("price <= 3", cheap.clone()),
        ("not price > 3", cheap.clone()),
        ("price is null", with_absent(numbered(&|values| price(values).is_none()))),
        ("price is null or price <= 3", {
            with_absent(numbered(&|values| price(values).is_none_or(|price| price <= 3.0)))
        }),
        ("price is null and url = 'g/1'", vec!["g/1".to_owned()]),
    ] {
        let filter = Expr::parse(filter).unwrap();
        assert_eq!(sorted(&lamp().with_filter(Some(filter.clone()))), expected, "{filter:?}");
    }
    let by_price = ids(&lamp().with_sort(Some(SortBy::descending("price"))));
    assert_eq!((by_price[0].as_str(), by_price[17].as_str()), ("u/019", "u/000"));
    assert_eq!(by_price[18..], ["p/1", "p/2", "u/006", "u/013", "g/1"]);
    let (schema, _) = searcher.schema().unwrap();
    assert!(schema.index_of("price").is_some() && schema.index_of("doc_id") == Some(0));
    // A column that no member has.
    for request in [
        query("+lamp +colour:red"),
        lamp().with_filter(Some(Expr::col("colour").eq("red"))),
        lamp().with_sort(Some(SortBy::ascending("colour"))),
    ] {
        let error = searcher.search(&request).unwrap_err().to_string();
        assert!(error.contains("`colour`"), "{error}");
    }
}

#[test]
fn columns_are_merged_and_must_have_their_type() {
    let parts = [opened(built(0..40)), opened(built(40..90))];
    let options = MergeOptions::default().with_writer(WriterOptions::new().with_provenance(Provenance::Off));
    let merged = merge(&parts, Cursor::new(Vec::new()), options, &NoProgress).unwrap();
    assert!(merged.written.output == built(0..90));
    let options = SegmentOptions::new().with_fields(fields());
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    let wrong = [FieldValue::Null, text("12").into()];
    let error = builder.add(&Document::new("u", "").with_values(&wrong)).unwrap_err();
    assert!(error.to_string().contains("a value of column `price` has another type"), "{error}");
}
