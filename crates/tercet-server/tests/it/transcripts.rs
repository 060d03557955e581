//! The requests that were recorded from the existing server.

use tercet_server::Options;
use tercet_testkit::golden;

use crate::support::Served;

/// Replaces the time, which differs.
fn without_time(body: &str) -> String {
    let Some((before, after)) = body.split_once("\"took_ms\":") else { return body.to_owned() };
    let end = after.find(',').unwrap_or(after.len());
    format!("{before}\"took_ms\":0{}", &after[end..])
}

#[tokio::test]
async fn answers_equal_the_recorded_ones() {
    let Some(golden) = golden("tatami") else { return };
    let manifest = std::fs::read_to_string(golden.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let http = &manifest["http"];
    assert_eq!(http["server_args"][5], "50");
    let served = Served::with(&golden.join("cluster"), Options::new().with_k(50, 10));
    let mut compared = 0;
    for request in http["requests"].as_array().unwrap() {
        let text = |name: &str| request[name].as_str().unwrap();
        // The page is an addition.
        if text("path") == "/" {
            continue;
        }
        let answer = served.send(text("method"), text("path"), &[]).await;
        let place = format!("{} {}", text("method"), text("path"));
        assert_eq!(answer.status.as_u16(), request["status"].as_u64().unwrap() as u16, "{place}");
        assert_eq!(answer.header("content-type"), text("content_type"), "{place}");
        assert_eq!(without_time(answer.text()), text("body"), "{place}");
        compared += 1;
    }
    assert_eq!(compared, http["requests"].as_array().unwrap().len() - 1);
}

#[tokio::test]
async fn parameters_are_checked_in_the_order_of_the_existing_server() {
    let Some(golden) = golden("tatami") else { return };
    let served = Served::new(&golden.join("cluster"));
    for (path, status, body) in [
        ("/search?k=0", 400, "{\"error\":\"missing query parameter q\"}\n"),
        ("/search?q=a&k=", 200, ""),
        ("/search?q=a&k=+3", 400, "{\"error\":\"k must be an integer\"}\n"),
        ("/search?q=a&k=99999999999999999999", 400, "{\"error\":\"k must be an integer\"}\n"),
        ("/search?q=a&k=101", 400, "{\"error\":\"k must be at most 100\"}\n"),
        ("/search?q=a&other=1", 200, ""),
    ] {
        let answer = served.get(path).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text());
        assert!(body.is_empty() || answer.text() == body, "{path}: {}", answer.text());
    }
}
