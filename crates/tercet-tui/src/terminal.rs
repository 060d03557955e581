//! [`run`]: the terminal, its events, signals and panics.

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal as _, Stdout};
use std::panic;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use tercet::plot::Colors;

use crate::app::{App, Effect, Event};
use crate::draw::draw;
use crate::work::{Lane, Workers};

/// The time between two looks at signals, and at results while nothing is read.
const IDLE: Duration = Duration::from_millis(50);
/// The time between two looks at results while something is read.
const BUSY: Duration = Duration::from_millis(8);

/// Options of [`run`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The colors that the terminal has.
    pub colors: Colors,
}

impl Options {
    /// No colors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the colors that the terminal has.
    pub fn with_colors(mut self, colors: Colors) -> Self {
        self.colors = colors;
        self
    }
}

/// How the browser ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a key.
    Quit,
    /// By a signal.
    Interrupted,
}

/// The error of [`run`].
#[derive(Debug)]
#[non_exhaustive]
pub enum TuiError {
    /// Standard input or output is no terminal.
    NotATerminal,
    /// The file or directory cannot be read.
    Path(io::Error),
    /// The terminal cannot be used.
    Terminal(io::Error),
    /// A thread cannot be started.
    Thread(io::Error),
}

impl fmt::Display for TuiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotATerminal => "the terminal browser needs a terminal as standard input and output",
            Self::Path(_) => "cannot be read",
            Self::Terminal(_) => "the terminal cannot be used",
            Self::Thread(_) => "a thread cannot be started",
        })
    }
}

impl Error for TuiError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotATerminal => None,
            Self::Path(error) | Self::Terminal(error) | Self::Thread(error) => Some(error),
        }
    }
}

/// Shows a file or a directory in the terminal until the user quits or `is_interrupted` returns true.
///
/// The terminal is restored when it returns, and when it panics.
pub fn run(path: &Path, options: Options, is_interrupted: &dyn Fn() -> bool) -> Result<Ended, TuiError> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(TuiError::NotATerminal);
    }
    let is_directory = std::fs::metadata(path).map_err(TuiError::Path)?.is_dir();
    let mut workers = Workers::start().map_err(TuiError::Thread)?;
    let screen = Screen::enter().map_err(TuiError::Terminal)?;
    let ended = browse(path, is_directory, options, is_interrupted, &mut workers);
    drop(screen);
    ended.map_err(TuiError::Terminal)
}

fn browse(
    path: &Path,
    is_directory: bool,
    options: Options,
    is_interrupted: &dyn Fn() -> bool,
    workers: &mut Workers,
) -> io::Result<Ended> {
    let mut terminal: Terminal<CrosstermBackend<Stdout>> =
        Terminal::new(CrosstermBackend::new(io::stdout()))?;
    let size = terminal.size()?;
    let (mut app, effects) =
        App::new(path.to_owned(), is_directory, (size.width, size.height), options.colors);
    follow(effects, workers);
    let mut is_changed = true;
    loop {
        if is_interrupted() {
            return Ok(Ended::Interrupted);
        }
        if is_changed {
            terminal.draw(|frame| draw(frame, &app))?;
            is_changed = false;
        }
        let mut events = Vec::new();
        // All waiting keys are handled before the next drawing.
        let mut patience = if app.is_any_busy() { BUSY } else { IDLE };
        while events.len() < 64 && event::poll(patience)? {
            patience = Duration::ZERO;
            match event::read()? {
                event::Event::Key(key) => events.push(Event::Key(key)),
                event::Event::Resize(width, height) => events.push(Event::Resize(width, height)),
                _ => {}
            }
        }
        while let Some(done) = workers.next_result() {
            events.push(Event::Done(done));
        }
        if app.is_busy(Lane::Long) {
            events.push(Event::Progress(workers.progress(Lane::Long)));
        }
        for event in events {
            is_changed = true;
            if follow(app.update(event), workers) {
                return Ok(Ended::Quit);
            }
        }
    }
}

/// Does what the state asks for; returns whether to quit.
fn follow(effects: Vec<Effect>, workers: &mut Workers) -> bool {
    let mut quits = false;
    for effect in effects {
        match effect {
            Effect::Start(lane, number, job) => workers.start_job(lane, number, job),
            Effect::Cancel(lane) => workers.cancel(lane),
            Effect::Quit => quits = true,
        }
    }
    quits
}

/// The type of panic hooks.
type Hook = dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync;

/// The alternate screen in raw mode; left when it is dropped.
struct Screen {
    previous: Arc<Hook>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        let previous: Arc<Hook> = Arc::from(panic::take_hook());
        let (ui, next) = (thread::current().id(), Arc::clone(&previous));
        panic::set_hook(Box::new(move |info| {
            // A panic of a worker is shown as an error of its work.
            if thread::current().id() == ui {
                restore();
                next(info);
            }
        }));
        let screen = Self { previous };
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        if !thread::panicking() {
            let previous = Arc::clone(&self.previous);
            panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}

/// Makes the terminal what it was. There is nothing to do about an error.
fn restore() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
