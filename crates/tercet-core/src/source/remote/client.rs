//! Connections that are kept.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::RemoteError;
use super::error::cause_of;
use super::guard::redirects;

/// Clients that are kept, so that their connections are used again. Who needs more makes new connections.
const KEPT: usize = 8;

/// A client of these properties, as far as possible the one that was used before.
pub(super) fn client(connect_timeout: Duration, is_loopback: bool) -> Result<reqwest::Client, RemoteError> {
    static CLIENTS: Mutex<Vec<((Duration, bool), reqwest::Client)>> = Mutex::new(Vec::new());
    let key = (connect_timeout, is_loopback);
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(kept, _)| *kept == key) {
        return Ok(client.clone());
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("tercet/", env!("CARGO_PKG_VERSION")))
        .redirect(redirects())
        .referer(false)
        .connect_timeout(connect_timeout);
    if is_loopback {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(|error| RemoteError::Configuration { detail: cause_of(&error) })?;
    if clients.len() < KEPT {
        clients.push((key, client.clone()));
    }
    Ok(client)
}
