//! The state machine with real files, drawn on a terminal in memory. Jobs are done at once.
#![allow(clippy::disallowed_methods, reason = "tests write real files")]

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tercet::core::progress::{Counter, NoProgress};
use tercet::core::{DType, TensorView};
use tercet::plot::Colors;
use tercet::tatami::search::{Document, SegmentBuilder, SegmentOptions};
use tercet::tatami::{Column, Field, Schema, Type, Values};
use tercet::{tatami, tet, tgm};

use crate::app::{App, Effect, Event, Focus};
use crate::draw::draw;
use crate::read::{CANCELLED, Files, Job, Reply};
use crate::views::View;
use crate::work::{Done, Lane};

/// A directory with a file of each format, and names that could disturb a terminal.
fn sample() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::DirBuilder::new().create(&data).unwrap();
    let mut layout = tet::Layout::new();
    let t2m = layout.dataset("t2m", DType::F32, [3, 4, 6], [1, 4, 6]).unwrap();
    layout.dims(t2m, ["time", "lat", "lon"]).unwrap();
    let days = ["2026-01-01", "2026-01-02", "2026-01-03"].map(str::to_owned).to_vec();
    layout.labels(t2m, "time", days).unwrap();
    layout.attr(t2m, "units", "K").unwrap();
    layout.attr(t2m, "comment", "bad\u{1b}[2J\u{202e}\u{200b}\u{9b}end").unwrap();
    let hostile = layout.dataset("x\u{202e}y\u{200b}", DType::F64, [5], [5]).unwrap();
    let mut writer =
        tet::Writer::create(data.join("weather.tet"), layout, tet::WriterOptions::new()).unwrap();
    let values: Vec<f32> = (0u8..72).map(|n| 270.0 + f32::from(n)).collect();
    writer.array(t2m, TensorView::from_slice(&[3, 4, 6], &values).unwrap()).unwrap();
    writer.array(hostile, TensorView::from_slice(&[5], &[1.0, 2.0, 4.0, 8.0, 16.0f64]).unwrap()).unwrap();
    writer.finish().unwrap();

    let mut writer = tgm::Writer::create(data.join("run.tgm"), tgm::WriterOptions::new()).unwrap();
    for step in 0u8..3 {
        let mut metadata = tgm::GlobalMetadata::default();
        metadata.extra.insert("step".into(), u64::from(step).into());
        let mut entry = tgm::Entry::default();
        entry.insert("name".into(), "wind".into());
        metadata.base.push(entry);
        let descriptor = tgm::DataObjectDescriptor::new(DType::F32, [4, 4]);
        let payload: Vec<u8> = (0u8..16).flat_map(|n| f32::from(n + step).to_le_bytes()).collect();
        writer.message(&metadata, &[(&descriptor, &payload)], &tgm::EncodeOptions::new()).unwrap();
    }
    writer.finish().unwrap();

    let fields = vec![Field::new("city", Type::String), Field::new("people", Type::Int64)];
    let path = directory.path().join("cities.tatami");
    let mut writer =
        tatami::Writer::create(path, Schema::new(fields).unwrap(), tatami::WriterOptions::new()).unwrap();
    let names: Vec<String> = (0..1000).map(|n| format!("city {}", n % 7)).collect();
    let people: Vec<i64> = (0..1000).collect();
    let columns = [
        Column::new(Values::Bytes(names.iter().map(String::as_str).collect())),
        Column::new(Values::Int64(people)),
    ];
    writer.append(&columns).unwrap();
    writer.finish().unwrap();

    let path = directory.path().join("notes.tatami");
    let mut builder = SegmentBuilder::create(path, SegmentOptions::new()).unwrap();
    for (id, title, body) in [
        ("a", "Borrow\u{202e}ing", "the borrow checker makes memory safety a matter of types"),
        ("b", "Collector", "a collector frees memory that no one owns\u{9b}31m"),
        ("c", "Other", "nothing of the kind"),
    ] {
        builder
            .add(&Document::new("https://example.org/", title).with_id(id).with_body(body.as_bytes()))
            .unwrap();
    }
    builder.finish().unwrap();
    directory
}

/// The browser without a terminal.
struct Browser {
    app: App,
    files: Files,
    quits: bool,
    jobs: Vec<Job>,
}

impl Browser {
    fn new(path: &Path, size: (u16, u16)) -> Self {
        let (app, effects) = App::new(path.to_owned(), path.is_dir(), size, Colors::None);
        let mut browser = Self { app, files: Files::default(), quits: false, jobs: Vec::new() };
        browser.follow(effects);
        browser
    }

    fn follow(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Start(lane, number, job) => {
                    let reply = self.files.run(&job, &NoProgress);
                    self.jobs.push(job);
                    let effects = self.app.update(Event::Done(Done { lane, number, reply }));
                    self.follow(effects);
                }
                Effect::Cancel(_) => {}
                Effect::Quit => self.quits = true,
            }
        }
    }

    fn key(&mut self, code: KeyCode) -> &mut Self {
        let effects = self.app.update(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        self.follow(effects);
        self
    }

    fn keys(&mut self, text: &str) -> &mut Self {
        text.chars().for_each(|c| {
            self.key(KeyCode::Char(c));
        });
        self
    }

    /// Moves to a line of the tree.
    fn select(&mut self, label: &str) -> &mut Self {
        let found = self.app.tree.nodes.iter().position(|node| node.label == label);
        let at = found.unwrap_or_else(|| panic!("no `{label}` in {:#?}", self.app.tree.nodes));
        self.app.focus = Focus::Tree;
        while self.app.tree.cursor != at {
            self.key(if self.app.tree.cursor < at { KeyCode::Down } else { KeyCode::Up });
        }
        self
    }

    fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        let effects = self.app.update(Event::Resize(width, height));
        self.follow(effects);
        self
    }

    fn screen(&self) -> String {
        let mut terminal = Terminal::new(TestBackend::new(self.app.size.0, self.app.size.1)).unwrap();
        terminal.draw(|frame| draw(frame, &self.app)).unwrap();
        let buffer = terminal.backend().buffer();
        let width = usize::from(buffer.area.width).max(1);
        let symbols: Vec<&str> = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
        symbols.chunks(width).map(|line| line.concat().trim_end().to_owned() + "\n").collect()
    }

    fn shows(&self, texts: &[&str]) {
        let screen = self.screen();
        for text in texts {
            assert!(screen.contains(text), "no `{text}` in\n{screen}");
        }
    }
}

#[test]
fn the_tree_lists_files_datasets_messages_and_columns() {
    let directory = sample();
    let mut browser = Browser::new(directory.path(), (140, 40));
    browser.shows(&["▸ data/", "cities.tatami", "notes.tatami", "? help"]);
    browser.select("data/").key(KeyCode::Right);
    browser.select("weather.tet").key(KeyCode::Right);
    browser.shows(&["t2m", "float32 3×4×6", "datasets", "chunks"]);
    browser.select("t2m");
    browser.shows(&["axis time", "2026-01-01 … 2026-01-03", "units"]);
    browser.select("run.tgm").key(KeyCode::Enter);
    browser.select("message 1").key(KeyCode::Enter);
    browser.shows(&["step", "wind", "float32 4×4"]);
    browser.select("cities.tatami").key(KeyCode::Right);
    browser.select("people");
    browser.shows(&["null values", "min", "999", "1,000 rows"]);
    // Left goes to the file, and closes it.
    browser.key(KeyCode::Left).key(KeyCode::Left);
    assert!(!browser.screen().contains("people"));
}

#[test]
fn a_single_file_is_expanded() {
    let directory = sample();
    let browser = Browser::new(&directory.path().join("data/weather.tet"), (100, 30));
    assert_eq!(browser.app.tree.cursor, 1);
    browser.shows(&["▾ weather.tet", "t2m", "3×4×6"]);
}

#[test]
fn slices_are_drawn_and_moved_by_sliders() {
    let directory = sample();
    let mut browser = Browser::new(&directory.path().join("data/weather.tet"), (110, 40));
    browser.select("t2m").key(KeyCode::Enter);
    browser.shows(&["2026-01-01 (0 of 3)", "viridis", "[K]", "@"]);
    let first = browser.screen();
    browser.key(KeyCode::Right);
    browser.shows(&["2026-01-02 (1 of 3)"]);
    assert_ne!(browser.screen(), first);
    browser.key(KeyCode::End).key(KeyCode::Right);
    browser.shows(&["2026-01-03 (2 of 3)"]);
    let slice = browser.jobs.last().unwrap();
    assert!(
        matches!(slice, Job::Slice { fixed, plane, .. } if *fixed == [(0, 2)] && *plane == [1, 2]),
        "{slice:?}"
    );
    // The time becomes an axis of the picture, the latitude a slider.
    browser.key(KeyCode::Char('a')).key(KeyCode::Char('c')).key(KeyCode::Char('s'));
    browser.shows(&["lat (0 of 4)", "plasma, 2–98 %"]);
    // With colors there are two values in a character.
    browser.app.colors = Colors::True;
    browser.shows(&["▀"]);
}

#[test]
fn series_and_objects_are_drawn() {
    let directory = sample();
    let mut browser = Browser::new(&directory.path().join("data/weather.tet"), (110, 40));
    browser.select("x\\u{202e}y\\u{200b}").key(KeyCode::Enter);
    browser.shows(&["(position)"]);
    let mut browser = Browser::new(&directory.path().join("data/run.tgm"), (110, 40));
    browser.select("message 2").key(KeyCode::Enter).select("wind").key(KeyCode::Enter);
    browser.shows(&["wind (message 2, object 0)", "axis 1", "@"]);
}

#[test]
fn tables_are_scrolled_and_filtered() {
    let directory = sample();
    let mut browser = Browser::new(&directory.path().join("cities.tatami"), (110, 40));
    browser.select("table").key(KeyCode::Enter);
    browser.shows(&["city", "people", "city 6", "1,000 rows"]);
    browser.key(KeyCode::End);
    browser.shows(&["999 city 5"]);
    // Only rows near the visible ones were read.
    let read: u64 =
        browser.jobs.iter().map(|job| if let Job::Rows { limit, .. } = job { *limit } else { 0 }).sum();
    assert!(read < 500, "{read}");
    browser.keys("fpeople >= 990 and city = \"city 3\"").key(KeyCode::Enter);
    browser.shows(&["where people >= 990", "city 3", "997", "2 of 1,000 rows"]);
    browser.keys("f nonsense").key(KeyCode::Enter);
    browser.shows(&["where people", "nonsense"]);
    let View::Table(view) = &browser.app.view else { panic!("a table was expected") };
    assert!(view.problem.is_some());
    // A filter that is removed shows all rows again.
    let control = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
    browser.keys("f");
    browser.app.update(Event::Key(control));
    browser.key(KeyCode::Enter);
    browser.shows(&["city 0", "1,000 rows"]);
}

#[test]
fn documents_are_searched_while_typing() {
    let directory = sample();
    let mut browser = Browser::new(directory.path(), (110, 40));
    browser.select("notes.tatami").keys("/memory");
    browser.shows(&["/ memory", "2 of 3 documents", "Borrow\\u{202e}ing", "Collector"]);
    browser.keys(" AND (");
    let View::Search(view) = &browser.app.view else { panic!("a search was expected") };
    assert!(view.problem.is_some() && view.found.is_none());
    for _ in 0..6 {
        browser.key(KeyCode::Backspace);
    }
    browser.key(KeyCode::Enter).key(KeyCode::Down).key(KeyCode::Enter);
    let View::Document(view) = &browser.app.view else { panic!("a document was expected") };
    let marked: Vec<&str> =
        view.lines.iter().flatten().filter(|piece| piece.1).map(|piece| piece.0.as_str()).collect();
    assert_eq!(marked, ["memory"]);
    browser.key(KeyCode::Esc);
    browser.shows(&["2 of 3 documents"]);
    // In a directory, all segments are searched; `q` is a letter of the query.
    let root = browser.app.tree.nodes[0].label.clone();
    browser.select(&root).keys("/q");
    assert!(!browser.quits);
    browser.key(KeyCode::Backspace).keys("types");
    browser.shows(&["1 of 3 documents"]);
    browser.select("cities.tatami").keys("/");
    browser.shows(&["not a search segment"]);
}

#[test]
fn bytes_are_shown_and_files_verified() {
    let directory = sample();
    let path = directory.path().join("data/weather.tet");
    let mut browser = Browser::new(&path, (110, 40));
    browser.keys("b");
    browser.shows(&["bytes of weather.tet", "superblock", "magic"]);
    browser.key(KeyCode::Tab).keys("v");
    browser.shows(&["verify weather.tet", "valid"]);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = directory.path().join("damaged.tet");
    let mut browser = Browser::new(directory.path(), (110, 40));
    browser.keys("v");
    browser.shows(&["select a file first"]);
    std::fs::write(&damaged, bytes).unwrap();
    let mut browser = Browser::new(&damaged, (110, 40));
    browser.keys("v");
    browser.shows(&["fails verification", "✗"]);
}

#[test]
fn help_lists_keys_and_quitting_works() {
    let directory = sample();
    let mut browser = Browser::new(directory.path(), (110, 40));
    browser.keys("?");
    browser.shows(&["Ctrl+C", "byte layout of the file"]);
    browser.keys("q");
    assert!(!browser.quits, "any key closes the help");
    browser.keys("q");
    assert!(browser.quits);
    let mut browser = Browser::new(directory.path(), (110, 40));
    let effects = browser.app.update(Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    assert_eq!(effects, [Effect::Quit]);
}

#[test]
fn names_from_files_do_not_reach_the_terminal_unescaped() {
    let directory = sample();
    let mut browser = Browser::new(&directory.path().join("data/weather.tet"), (120, 40));
    browser.select("t2m");
    browser.shows(&["bad\\u{1b}[2J\\u{202e}"]);
    let mut screens = browser.screen();
    browser.select("x\\u{202e}y\\u{200b}").key(KeyCode::Enter);
    screens += &browser.screen();
    let mut browser = Browser::new(&directory.path().join("notes.tatami"), (120, 40));
    browser.keys("/memory");
    screens += &browser.screen();
    let View::Search(view) = &browser.app.view else { panic!("a search was expected") };
    assert_eq!(view.found.as_ref().map(|found| found.hits.len()), Some(2));
    browser.key(KeyCode::Down).key(KeyCode::Enter);
    screens += &browser.screen();
    let is_bad = |c: char| {
        (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
    };
    assert_eq!(screens.chars().find(|c| is_bad(*c)), None, "{screens}");
}

#[test]
fn terminals_may_have_any_size() {
    let directory = sample();
    let path = directory.path();
    let mut browsers: Vec<Browser> = Vec::new();
    let mut open = |name: &str, keys: &dyn Fn(&mut Browser)| {
        let mut browser = Browser::new(&path.join(name), (100, 30));
        keys(&mut browser);
        browsers.push(browser);
    };
    open("", &|_| {});
    open("", &|browser| {
        browser.keys("?");
    });
    open("data/weather.tet", &|browser| {
        browser.select("t2m").key(KeyCode::Enter);
    });
    open("data/weather.tet", &|browser| {
        browser.select("x\\u{202e}y\\u{200b}").key(KeyCode::Enter);
    });
    open("data/weather.tet", &|browser| {
        browser.keys("b");
    });
    open("data/weather.tet", &|browser| {
        browser.keys("v");
    });
    open("cities.tatami", &|browser| {
        browser.select("table").key(KeyCode::Enter).keys("fpeople < 5");
    });
    open("cities.tatami", &|browser| {
        browser.select("table").key(KeyCode::Enter).keys("fpeople < 5").key(KeyCode::Enter);
    });
    open("notes.tatami", &|browser| {
        browser.keys("/memory");
    });
    open("notes.tatami", &|browser| {
        browser.keys("/memory").key(KeyCode::Enter).key(KeyCode::Enter);
    });
    for browser in &mut browsers {
        for (width, height) in
            [(1, 1), (2, 2), (3, 3), (1, 50), (200, 1), (71, 4), (72, 3), (80, 24), (300, 100)]
        {
            for colors in [Colors::None, Colors::True] {
                browser.app.colors = colors;
                browser.resize(width, height).screen();
                for focus in [Focus::Tree, Focus::Attributes, Focus::View] {
                    browser.app.focus = focus;
                    browser.screen();
                }
            }
        }
    }
}

#[test]
fn without_colors_nothing_is_colored() {
    use ratatui::style::Color;
    let directory = sample();
    let mut browser = Browser::new(&directory.path().join("data/weather.tet"), (110, 40));
    browser.select("t2m").key(KeyCode::Enter);
    for _ in 0..2 {
        let mut terminal = Terminal::new(TestBackend::new(110, 40)).unwrap();
        terminal.draw(|frame| draw(frame, &browser.app)).unwrap();
        let cells = terminal.backend().buffer().content();
        assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        browser.keys("v");
    }
}

#[test]
fn replaced_and_cancelled_work_changes_nothing() {
    let directory = sample();
    let mut browser = Browser::new(&directory.path().join("data/weather.tet"), (110, 40));
    browser.select("t2m");
    let started = browser.app.update(Event::Key(KeyEvent::new(KeyCode::Char('v'), KeyModifiers::NONE)));
    let [Effect::Start(Lane::Long, number, job)] = started.as_slice() else { panic!("{started:?}") };
    assert!(browser.app.is_busy(Lane::Long));
    browser.app.update(Event::Progress(4096));
    browser.shows(&["verifying… 4.0 KiB read; Esc cancels"]);
    assert_eq!(
        browser.app.update(Event::Key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE))),
        [Effect::Cancel(Lane::Long)]
    );
    assert!(!browser.app.is_any_busy());
    // The result comes after all.
    let reply = browser.files.run(job, &NoProgress);
    assert!(matches!(reply, Ok(Reply::Verified(_))));
    browser.app.update(Event::Done(Done { lane: Lane::Long, number: *number, reply }));
    assert!(matches!(browser.app.view, View::Start));
    // Work that is cancelled before it starts, and while it runs.
    let cancelled = Counter::default();
    cancelled.cancel();
    assert_eq!(browser.files.run(job, &cancelled).err().as_deref(), Some(CANCELLED));
}

#[test]
fn replaced_files_are_read_again() {
    let directory = sample();
    let path = directory.path().join("data/weather.tet");
    let mut browser = Browser::new(&path, (110, 40));
    browser.shows(&["t2m"]);
    let other = directory.path().join("other.tet");
    let mut layout = tet::Layout::new();
    let id = layout.dataset("replacement", DType::F32, [2], [2]).unwrap();
    let mut writer = tet::Writer::create(&other, layout, tet::WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&[2], &[1.0f32, 2.0]).unwrap()).unwrap();
    writer.finish().unwrap();
    std::fs::rename(&other, &path).unwrap();
    browser.select("weather.tet").key(KeyCode::Left).key(KeyCode::Right);
    browser.shows(&["replacement"]);
    // A file that is gone is an error, and the browser goes on.
    std::fs::remove_file(&path).unwrap();
    browser.select("replacement").key(KeyCode::Enter);
    browser.shows(&["weather.tet: No such file"]);
}

#[test]
fn workers_do_jobs_and_can_be_replaced() {
    use crate::work::Workers;
    use std::time::{Duration, Instant};
    let directory = sample();
    let path = directory.path().join("data/weather.tet");
    let mut workers = Workers::start().unwrap();
    for number in 1..=20 {
        workers.start_job(Lane::Long, number, Job::Verify(path.clone()));
    }
    let started = Instant::now();
    // Earlier jobs are skipped or cancelled, the last one is done.
    let last = loop {
        assert!(started.elapsed() < Duration::from_mins(1), "no result");
        match workers.next_result() {
            Some(done) if done.number == 20 => break done,
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(matches!(last.reply, Ok(Reply::Verified(_))), "{last:?}");
    assert!(workers.progress(Lane::Long) > 0);
}
