//! Counters of the server, for `/stats` and `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::state::Shared;

/// The upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];

/// Counters of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Searches that were admitted.
    pub(crate) searches: AtomicU64,
    /// Requests that were answered with 503 because all slots were taken.
    pub(crate) rejected: AtomicU64,
    pub(crate) timed_out: AtomicU64,
    pub(crate) canceled: AtomicU64,
    /// Searches that failed.
    pub(crate) failed: AtomicU64,
    /// Open connections.
    pub(crate) connections: AtomicU64,
    /// Searches that are worked on.
    pub(crate) searching: AtomicU64,
    requests: Mutex<BTreeMap<(&'static str, u16), Times>>,
}

/// How long requests took.
#[derive(Debug, Default)]
struct Times {
    count: u64,
    seconds: f64,
    buckets: [u64; BUCKETS.len()],
}

impl Metrics {
    pub(crate) fn record(&self, endpoint: &'static str, status: u16, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let times = requests.entry((endpoint, status)).or_default();
        times.count += 1;
        times.seconds += seconds;
        for (bucket, bound) in times.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    /// The counters in the text format of Prometheus.
    pub(crate) fn to_text(&self, shared: &Shared) -> String {
        let mut out = String::new();
        let snapshot = shared.catalog.snapshot();
        let (segments, documents) = crate::index::SearchSets::size(shared);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let count = |len: usize| len as u64;
        let single = [
            ("gauge", "tercet_in_flight", "Requests that are worked on", count(shared.slots.taken())),
            (
                "gauge",
                "tercet_max_in_flight",
                "Maximum of requests at a time",
                count(shared.options.max_in_flight),
            ),
            ("gauge", "tercet_streams", "Downloads and event streams", count(shared.streams.taken())),
            ("gauge", "tercet_connections", "Open connections", load(&self.connections)),
            ("gauge", "tercet_files", "Listed files and collections", count(snapshot.entries.len())),
            ("gauge", "tercet_open_files", "Open files", count(shared.catalog.open_count())),
            ("gauge", "tercet_open_segments", "Open search segments", count(shared.searches.open_count())),
            (
                "counter",
                "tercet_opened_segments_total",
                "Search segments that were opened",
                shared.searches.opened_count(),
            ),
            ("gauge", "tercet_segments", "Search segments", segments),
            ("gauge", "tercet_documents", "Documents of the search segments", documents),
            ("counter", "tercet_searches_total", "Admitted searches", load(&self.searches)),
            (
                "counter",
                "tercet_rejected_total",
                "Requests rejected by admission control",
                load(&self.rejected),
            ),
            (
                "counter",
                "tercet_timed_out_total",
                "Requests that exceeded the deadline",
                load(&self.timed_out),
            ),
            (
                "counter",
                "tercet_canceled_total",
                "Requests whose client closed the connection",
                load(&self.canceled),
            ),
            ("counter", "tercet_failed_total", "Searches that failed", load(&self.failed)),
        ];
        for (kind, name, about, value) in single {
            // Writing to a String cannot fail.
            let _ = write!(out, "# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        let name = "tercet_request_duration_seconds";
        let _ = write!(out, "# HELP {name} Duration of requests\n# TYPE {name} histogram\n");
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((path, status), times) in requests.iter() {
            let labels = format!("path=\"{path}\",status=\"{status}\"");
            for (bucket, bound) in times.buckets.iter().zip(BUCKETS) {
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}");
            }
            let (count, seconds) = (times.count, times.seconds);
            let _ = write!(
                out,
                "{name}_bucket{{{labels},le=\"+Inf\"}} {count}\n{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}\n"
            );
        }
        out
    }
}
