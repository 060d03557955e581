//! HTTP clients, shared by the process so that connections are reused.

use std::net::ToSocketAddrs as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::RemoteError;
use crate::error::root_cause;
use crate::http_client::redirect_policy;

/// The number of shared clients. Each combination of options has one; further combinations get a client of their own.
const MAX_CLIENTS: usize = 8;

/// The client for these options.
pub(crate) fn client(connect_timeout: Duration, is_loopback: bool) -> Result<reqwest::Client, RemoteError> {
    static CLIENTS: Mutex<Vec<((Duration, bool), reqwest::Client)>> = Mutex::new(Vec::new());
    let key = (connect_timeout, is_loopback);
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(options, _)| *options == key) {
        return Ok(client.clone());
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("tercet/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect_policy())
        .referer(false)
        .dns_resolver(Arc::new(SystemResolver))
        .connect_timeout(connect_timeout);
    if is_loopback {
        builder = builder.no_proxy();
    }
    let client =
        builder.build().map_err(|error| RemoteError::Configuration { detail: root_cause(&error) })?;
    if clients.len() < MAX_CLIENTS {
        clients.push((key, client.clone()));
    }
    Ok(client)
}

/// The resolver of the operating system, on a thread per lookup. The resolver of the HTTP library panics where a thread
/// cannot be started.
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let (send, receive) = tokio::sync::oneshot::channel();
            let lookup = move || {
                // The caller sets the port. Sending fails if the request was given up.
                let found = (name.as_str(), 0).to_socket_addrs();
                let _ = send.send(found.map(Iterator::collect::<Vec<_>>));
            };
            thread::Builder::new().name("tercet-dns".to_owned()).spawn(lookup)?;
            let found = receive.await??;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
