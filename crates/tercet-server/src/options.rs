//! Options of a server.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use subtle::ConstantTimeEq as _;

/// Options of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The maximum number of files that are kept open.
    pub cache: usize,
    /// The maximum number of requests that are worked on at a time; others are answered with 503.
    pub max_in_flight: usize,
    /// The deadline of a request.
    pub timeout: Duration,
    /// The maximum number of hits of a search.
    pub max_k: usize,
    /// The number of hits of a search without `k`.
    pub default_k: usize,
    /// The maximum number of words of a query.
    pub max_query_terms: usize,
    /// The maximum number of rows in a response.
    pub max_rows: u64,
    /// The maximum number of array elements in a response.
    pub max_values: u64,
    /// The maximum bytes of the text of a document in a response.
    pub max_document_bytes: usize,
    /// The time between two looks for new files.
    pub rescan: Duration,
    /// The host names that requests may name, besides those of the address.
    pub hosts: Vec<String>,
    /// The origins whose pages may read responses; `*` for all.
    pub origins: Vec<String>,
    /// The token that requests need.
    pub token: Option<Token>,
    /// The address that the server listens on, which requests may name as their host.
    pub address: Option<SocketAddr>,
    /// The maximum number of connections.
    pub max_connections: usize,
    /// The maximum number of downloads and event streams at a time.
    pub max_streams: usize,
    /// The time within which a client must send the head of a request.
    pub header_timeout: Duration,
    /// The time without progress after which a connection that does not read its response is closed.
    pub stall_timeout: Duration,
    /// The time that requests have to end after a signal.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache: 64,
            max_in_flight: 256,
            timeout: Duration::from_secs(2),
            max_k: 100,
            default_k: 10,
            max_query_terms: 64,
            max_rows: 10_000,
            max_values: 1 << 22,
            max_document_bytes: 1 << 20,
            rescan: Duration::from_secs(1),
            hosts: Vec::new(),
            origins: Vec::new(),
            token: None,
            address: None,
            max_connections: 4096,
            max_streams: 64,
            header_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(20),
            drain: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of open files.
    pub fn with_cache(mut self, files: usize) -> Self {
        self.cache = files;
        self
    }

    /// Sets the maximum number of requests at a time.
    pub fn with_max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = requests;
        self
    }

    /// Sets the deadline of a request.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum and the default number of hits.
    pub fn with_k(mut self, max: usize, default: usize) -> Self {
        (self.max_k, self.default_k) = (max, default.min(max));
        self
    }

    /// Sets the host names that requests may name.
    pub fn with_hosts(mut self, hosts: Vec<String>) -> Self {
        self.hosts = hosts;
        self
    }

    /// Sets the origins whose pages may read responses.
    pub fn with_origins(mut self, origins: Vec<String>) -> Self {
        self.origins = origins;
        self
    }

    /// Sets the token that requests need.
    pub fn with_token(mut self, token: Option<Token>) -> Self {
        self.token = token;
        self
    }

    /// Sets the address that the server listens on.
    pub fn with_address(mut self, address: Option<SocketAddr>) -> Self {
        self.address = address;
        self
    }

    /// Sets the time between two looks for new files.
    pub fn with_rescan(mut self, rescan: Duration) -> Self {
        self.rescan = rescan;
        self
    }

    /// Sets the timeouts of connections: for the head of a request, and without progress of a response.
    pub fn with_connection_timeouts(mut self, header: Duration, stall: Duration) -> Self {
        (self.header_timeout, self.stall_timeout) = (header, stall);
        self
    }

    /// Sets the time that requests have to end after a signal.
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Whether a request may name this host: with or without a port. With a token and no list of names any host may be named,
    /// because a page of another site cannot know the token.
    pub(crate) fn allows_host(&self, host: &str) -> bool {
        if self.token.is_some() && self.hosts.is_empty() {
            return true;
        }
        let name = without_port(host);
        if self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host))
        {
            return true;
        }
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.is_ok_and(|ip| ip.is_loopback() || self.address.is_some_and(|address| address.ip() == ip))
    }
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').map_or(host, |end| &host[..=end]);
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

/// A secret that requests must name. Only its hash is kept.
#[derive(Clone)]
pub struct Token {
    hash: [u8; 32],
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A token; `None` if it has fewer than 16 characters, or others than visible ASCII.
    pub fn new(secret: &str) -> Option<Self> {
        let is_usable = secret.len() >= 16 && secret.bytes().all(|byte| byte.is_ascii_graphic());
        is_usable.then(|| Self { hash: hash("token", secret) })
    }

    /// Whether a secret is the token. The time does not depend on the secret.
    pub(crate) fn matches(&self, secret: &str) -> bool {
        self.hash.ct_eq(&hash("token", secret)).into()
    }

    /// The value of the session cookie, derived from the token.
    pub(crate) fn cookie(&self) -> String {
        blake3::keyed_hash(&self.hash, b"tercet session cookie").to_hex().to_string()
    }

    /// Whether a session cookie is valid.
    pub(crate) fn matches_cookie(&self, value: &str) -> bool {
        self.cookie().as_bytes().ct_eq(value.as_bytes()).into()
    }
}

fn hash(purpose: &str, secret: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(purpose.as_bytes()).update(&[0]).update(secret.as_bytes());
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_and_never_printed() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.matches("0123456789abcdef"));
        assert!(!token.matches("0123456789abcdeF") && !token.matches(""));
        assert!(token.matches_cookie(&token.cookie()) && !token.matches_cookie("0123456789abcdef"));
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!(Token::new("short").is_none() && Token::new("0123456789abcde\n").is_none());
    }

    #[test]
    fn hosts_are_those_of_this_machine_or_named() {
        let options = Options::new().with_hosts(vec!["data.example".to_owned()]);
        for host in ["localhost", "localhost:8080", "127.0.0.1:80", "[::1]:8080", "[::1]", "DATA.example:443"]
        {
            assert!(options.allows_host(host), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "10.0.0.1", "[::2]"]
        {
            assert!(!options.allows_host(host), "{host}");
        }
        let bound = Options::new().with_address(Some("10.0.0.1:8080".parse().unwrap()));
        assert!(bound.allows_host("10.0.0.1:8080") && !bound.allows_host("10.0.0.2:8080"));
    }
}
