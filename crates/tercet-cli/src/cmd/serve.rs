//! `tercet serve`, `tatami serve`, `tercet view`: files over HTTP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tercet::core::num::counted;
use tercet_server::{Options, ServeError, Server, State, Token, log};
use tercet_tui::{Ended, TuiError};

use crate::cmd::tet::plot::colors;
use crate::failure::{Failure, Outcome};
use crate::output::display_path;
use crate::ui::{Ui, is_interrupted, leave_time_to_end};

/// The environment variable with the token.
const TOKEN: &str = "TERCET_TOKEN";

/// The time between two looks at signals.
const LOOK: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Examples:
  tercet serve archive                            on http://127.0.0.1:8080/, for this machine only
  tercet serve archive --addr 127.0.0.1:0         on a free port
  tercet serve crawl --max-in-flight 8 --timeout 500ms
  tercet serve archive --addr 0.0.0.0:8080 --token-file token --host data.example.org

The page is at `/`, the description of the interface at `/openapi.json`, counters for Prometheus at `/metrics`. New, replaced \
and removed files are found without a restart. SIGINT and SIGTERM end the server when its requests are answered; a second \
signal ends it at once.";

/// The arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory to serve, with its subdirectories; or a single file
    #[arg(value_name = "DIR")]
    path: PathBuf,
    #[command(flatten)]
    options: ServeArgs,
}

#[derive(Debug, clap::Args)]
struct ServeArgs {
    /// Address to listen on. Addresses that other machines can reach need a token
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = parse_address)]
    addr: SocketAddr,
    /// Maximum number of open files, and of open search segments
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    cache: u32,
    /// Maximum number of concurrent requests; others are answered with 503
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_in_flight: u32,
    /// Deadline of a request: `500ms`, `2s`, `1m30s`
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    timeout: Duration,
    /// Maximum number of hits of a search
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_k: u32,
    /// Number of hits of a search without `k`
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    default_k: u32,
    /// File with the token that requests must send, of at least 16 characters; or set `TERCET_TOKEN`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Additional host name of the server, for the check of the Host header. Repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Allow cross-origin requests (CORS) from this origin: `https://example.org`, or `*`. Repeatable
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,
    /// Log requests on standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogArg::Text)]
    log: LogArg,
    /// Time for requests to finish after a signal
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    drain: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LogArg {
    Text,
    Json,
    Off,
}

const VIEW_EXAMPLES: &str = "\
Examples:
  tercet view era5.tet          print a URL for the browser; Ctrl-C ends it
  tercet view run.tgm --open    open the browser
  tercet view archive --tui     browse in the terminal; ? lists the keys";

/// The arguments of `view`.
#[derive(Debug, clap::Args)]
#[command(after_help = VIEW_EXAMPLES)]
pub(crate) struct ViewArgs {
    /// File to show, or directory
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Open the URL in the browser
    #[arg(long)]
    open: bool,
    /// Browse in the terminal. Nothing is served
    #[arg(long, conflicts_with_all = ["open", "port"])]
    tui: bool,
    /// Port to listen on [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// `tercet serve`: every format.
pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (server, state) = args.bind(out)?;
    let overview = state.overview();
    let (name, address) = (display_path(&args.path), server.address());
    let files = counted(overview.files as u64, "file");
    out.line(format_args!("serving {files} of {name} at http://{address}/"))?;
    if let Some((path, problem)) = &overview.problem {
        out.note(format_args!("warning: {}: {problem}", tercet::core::escape::name(path)))?;
    }
    serve(server, out)
}

/// `tatami serve`: search segments only, with the output of the format's own program.
pub(crate) fn run_tatami(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (server, state) = args.bind(out)?;
    let (overview, name) = (state.overview(), display_path(&args.path));
    if let Some(path) = state.files_without_index().first() {
        let path = display_path(&args.path.join(path));
        let failure = Failure::request(format!("open cluster: tatami: {path} is not a search segment"));
        return Err(failure.with_hint("`tercet serve` serves files of any kind"));
    }
    if overview.segments == 0 {
        return Err(Failure::request(format!("no .tatami files found under {name}")));
    }
    let (shards, docs, address) = (overview.segments, overview.documents, server.address());
    let (cache, most) = (args.options.cache, args.options.max_in_flight);
    out.line(format_args!("opening {shards} shards under {name}"))?;
    out.line(format_args!(
        "serving {docs} docs across {shards} shards on {address} (cache={cache}, max-in-flight={most})"
    ))?;
    serve(server, out)
}

/// `tercet view`: one file.
pub(crate) fn view(args: &ViewArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.tui {
        return browse(&args.path, out);
    }
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), args.port);
    // The user waits, and no one else is served.
    let options = Options::new().with_timeout(Duration::from_mins(1)).with_address(Some(address));
    let state = open(&args.path, options)?;
    let overview = state.overview();
    if overview.files == 0 {
        let name = display_path(&args.path);
        return Err(Failure::request(format!("{name}: there is no .tet, .tgm or .tatami file")));
    }
    let server = bind(state, address)?;
    let url = match &overview.file {
        Some(file) => format!("http://{}/#/file/{file}", server.address()),
        None => format!("http://{}/", server.address()),
    };
    out.line(&url)?;
    if args.open {
        open_browser(&url, out)?;
    }
    serve(server, out)
}

/// `tercet view --tui`: the terminal browser.
fn browse(path: &Path, out: &mut Ui) -> Result<Outcome, Failure> {
    out.must_not_be_json("view --tui")?;
    out.finish()?;
    // The browser restores the terminal before the program ends.
    leave_time_to_end();
    let options = tercet_tui::Options::new().with_colors(colors());
    match tercet_tui::run(path, options, &is_interrupted) {
        Ok(Ended::Quit) => Ok(Outcome::Done),
        Ok(Ended::Interrupted) => Err(Failure::Interrupted),
        Err(TuiError::Path(error)) => {
            Err(Failure::io(&format!("{}: cannot be read", display_path(path)), &error))
        }
        Err(TuiError::Terminal(error)) => Err(Failure::io("the terminal cannot be used", &error)),
        Err(error) => Err(Failure::request(error.to_string())
            .with_hint("without `--tui`, `tercet view` prints a URL for the browser")),
    }
}

impl Args {
    fn bind(&self, out: &mut Ui) -> Result<(Server, State), Failure> {
        let args = &self.options;
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let options = Options::new()
            .with_cache(count(args.cache))
            .with_max_in_flight(count(args.max_in_flight))
            .with_timeout(args.timeout)
            .with_k(count(args.max_k), count(args.default_k))
            .with_token(self.token()?)
            .with_hosts(args.host.clone())
            .with_origins(args.cors.clone())
            .with_address(Some(args.addr))
            .with_drain(args.drain);
        let format = match args.log {
            LogArg::Text => Some(log::Format::Text),
            LogArg::Json => Some(log::Format::Json),
            LogArg::Off => None,
        };
        if let Some(format) = format.filter(|_| !out.is_quiet()) {
            log::install(format, std::io::stderr);
        }
        let state = open(&self.path, options)?;
        Ok((bind(state.clone(), args.addr)?, state))
    }

    fn token(&self) -> Result<Option<Token>, Failure> {
        let text = match &self.options.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::io(&format!("{}: cannot be read", display_path(path)), &error)
                })?;
                Some(text)
            }
            None => std::env::var(TOKEN).ok().filter(|token| !token.is_empty()),
        };
        let Some(text) = text else { return Ok(None) };
        let invalid = || {
            let message = "invalid token: at least 16 visible ASCII characters are needed";
            Failure::request(message).with_hint("make one with `openssl rand -hex 32`")
        };
        Token::new(text.trim()).map(Some).ok_or_else(invalid)
    }
}

fn open(path: &Path, options: Options) -> Result<State, Failure> {
    State::open(path, options).map_err(|error| {
        use std::error::Error as _;
        let what = format!("{}: cannot be served", display_path(path));
        match error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>()) {
            Some(cause) => Failure::io(&what, cause),
            None => Failure::io(&what, &std::io::ErrorKind::Other.into()),
        }
    })
}

fn bind(state: State, address: SocketAddr) -> Result<Server, Failure> {
    Server::bind(state, address).map_err(failure)
}

fn failure(error: ServeError) -> Failure {
    match error {
        ServeError::TokenRequired(_) => Failure::request(error.to_string())
            .with_hint("set TERCET_TOKEN or `--token-file FILE`, or listen on 127.0.0.1"),
        ServeError::Bind(address, error) => Failure::io(&format!("cannot listen on {address}"), &error),
        ServeError::Runtime(error) => Failure::io("cannot start the server", &error),
    }
}

/// Serves until a signal.
fn serve(server: Server, out: &mut Ui) -> Result<Outcome, Failure> {
    out.finish()?;
    leave_time_to_end();
    let signal = async {
        while !is_interrupted() {
            tokio::time::sleep(LOOK).await;
        }
        // It is printed before the requests have ended.
        let _ = out.line("shutting down").and_then(|()| out.finish());
    };
    server.run(signal).map_err(failure)?;
    Ok(Outcome::Done)
}

/// Opens the browser of the desktop. Without one, the URL is printed already.
fn open_browser(url: &str, out: &mut Ui) -> Result<(), Failure> {
    let (program, first): (_, &[&str]) = if cfg!(windows) {
        ("cmd", &["/c", "start", ""])
    } else if cfg!(target_os = "macos") {
        ("open", &[])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(first).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) => out.note(format_args!("warning: cannot run {program}: {error}; open the URL yourself")),
    }
}

/// `HOST:PORT`; `:PORT` is all addresses.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    let found = full.to_socket_addrs().map_err(|error| format!("{error}; expected HOST:PORT"))?;
    // A name may have several addresses.
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(|address| !address.is_ipv4());
    found.first().copied().ok_or_else(|| "the name has no address".to_owned())
}

/// A duration of numbers with units, as in Go: `1m30s`, `1.5s`, `300ms`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("invalid time `{text}`; expected a number with a unit, like `500ms`, `2s` or `1m30s`");
    let (mut rest, mut total) = (text, 0.0);
    if text.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        total += number * unit;
        rest = &rest[end..];
    }
    Duration::try_from_secs_f64(total).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, millis) in
            [("2s", 2000), ("500ms", 500), ("1m30s", 90_000), ("1.5s", 1500), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "2", "s", "0s", "-1s", "1x", "1s2", "1..5s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_have_a_port() {
        assert_eq!(parse_address(":8080"), Ok("0.0.0.0:8080".parse().unwrap()));
        assert_eq!(parse_address("[::1]:80"), Ok("[::1]:80".parse().unwrap()));
        assert!(parse_address("127.0.0.1").is_err());
    }
}
