//! Progress on standard error, for work that takes a while.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tercet::core::Progress;

use super::is_interrupted;
use crate::render::human_size;

/// Delay before a bar appears.
const PATIENCE: Duration = Duration::from_millis(500);

/// A progress bar for long work, or a byte counter if the total is unknown. Also reports cancellation by Ctrl-C.
#[derive(Debug)]
pub(crate) struct Bar {
    what: &'static str,
    total: u64,
    done: AtomicU64,
    started: Instant,
    visible: bool,
    shown: OnceLock<ProgressBar>,
}

impl Bar {
    pub(super) fn new(what: &'static str, total: u64, visible: bool) -> Self {
        let (done, started) = (AtomicU64::new(0), Instant::now());
        Self { what, total, done, started, visible, shown: OnceLock::new() }
    }

    fn draw(&self, done: u64) -> ProgressBar {
        let (total, template) = match self.total {
            0 => (None, "{msg} {binary_bytes} {speed} {elapsed}"),
            total => (Some(total), "{msg} [{bar:20}] {binary_bytes}/{binary_total_bytes} {speed} {left}"),
        };
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            let style = style.with_key("speed", write_speed).with_key("left", write_time_left);
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(self.what);
        let bar = bar.with_elapsed(self.started.elapsed()).with_position(done);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar
    }
}

/// Bytes per second since the start. The estimate of `indicatif` covers the last moments only and counts the bytes
/// before the bar appeared as if they took no time.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn speed(state: &ProgressState) -> f64 {
    state.pos() as f64 / state.elapsed().as_secs_f64().max(1e-3)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded for people")]
fn write_speed(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A progress bar that cannot be written is not an error.
    let _ = write!(out, "{}/s", human_size(speed(state) as u64));
}

#[expect(clippy::cast_precision_loss, reason = "rounded to seconds")]
fn write_time_left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let left = state.len().unwrap_or(0).saturating_sub(state.pos()) as f64 / speed(state).max(1.0);
    let _ = write!(out, "{left:.0} s left");
}

impl Progress for Bar {
    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if self.visible && self.started.elapsed() > PATIENCE {
            self.shown.get_or_init(|| self.draw(done)).set_position(done);
        }
    }

    fn is_cancelled(&self) -> bool {
        is_interrupted()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.shown.get() {
            bar.finish_and_clear();
        }
    }
}
