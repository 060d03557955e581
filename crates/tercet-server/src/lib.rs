//! HTTP server over `.tet`, `.tgm` and `.tatami` files: `tercet serve` and `tercet view`.
//!
//! ```text
//! request ──▶ guard ──▶ parameters ──▶ admission ──▶ handler ──▶ library ──▶ reply
//!             host,     checked by     a slot and    blocking    positional
//!             token,    the table of   a deadline    thread      reads
//!             log       endpoints
//! ```
//!
//! [`router`] is testable without a socket:
//!
//! ```
//! use tercet_server::{Options, State, router};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! let state = State::open(directory.path(), Options::new())?;
//! let router: axum::Router = router(state);
//! # Ok::<(), tercet_server::OpenError>(())
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `options.rs` | limits, addresses, names, token |
//! | `state.rs` | what all requests share |
//! | `catalog.rs` | the listed files below the root, their IDs, and which of them are open |
//! | `index.rs` | the search segments as one index |
//! | `admission.rs` | slots, deadlines, cancellation |
//! | `endpoint.rs` | the table of endpoints: paths, parameters, documentation |
//! | `params.rs` | parameters of a request, checked against the table |
//! | `api/` | one file for each group of endpoints |
//! | `reply.rs`, `failure.rs` | responses and errors |
//! | `router.rs` | the axum router, and what applies to every request: host, token, headers, log |
//! | `net.rs` | listener, timeouts of connections, graceful end |
//! | `openapi.rs`, `metrics.rs`, `log.rs`, `page.rs` | description, Prometheus text, log lines, the page |

mod admission;
mod api;
mod catalog;
mod endpoint;
mod failure;
mod index;
pub mod log;
mod metrics;
mod net;
mod openapi;
mod options;
mod page;
mod params;
mod reply;
mod router;
mod state;

pub use net::{ServeError, Server};
pub use options::{Options, Token};
pub use router::router;
pub use state::{OpenError, Overview, State};

/// Reads what a client controls before any work begins, for tests with arbitrary input: a value of the path, a query string, headers.
/// Returns the number of endpoints that accept the parameters.
#[doc(hidden)]
pub fn read_untrusted(path: &str, query: &str, headers: &axum::http::HeaderMap) -> usize {
    let options = Options::new().with_hosts(vec!["data.example".to_owned()]);
    for value in headers.values().filter_map(|value| value.to_str().ok()) {
        let _ = options.allows_host(value);
        let _ = api::requested(value, 1 << 20);
    }
    let _ = api::matches_tag(headers, "\"0123456789ab\"");
    let _ = api::reference::check(&options, query);
    params::accepting(path, query)
}
