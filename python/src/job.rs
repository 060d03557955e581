//! Long work: without the interpreter lock, stopped by signals, with reports of progress.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use tercet::core::progress::{Counter, Progress};

use crate::error::internal;

/// How often signals are handled and progress is reported.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs work on another thread. Signals and errors of the callback stop it; the callback gets the bytes processed so far.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Progress) -> T + Send,
) -> PyResult<T> {
    let counter = Counter::default();
    let (sender, mut receiver) = mpsc::channel();
    let report = |counter: &Counter| match callback {
        Some(callback) => callback.call1((counter.done(),)).map(drop),
        None => Ok(()),
    };
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, || {
            // The receiver waits until the sender is gone.
            let _ = sender.send(work(&counter));
        });
        started.map_err(internal)?;
        let mut raised = None;
        loop {
            let receiver = &mut receiver;
            match py.detach(move || receiver.recv_timeout(INTERVAL)) {
                Ok(result) => {
                    if let Some(raised) = raised {
                        return Err(raised);
                    }
                    report(&counter)?;
                    return Ok(result);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(internal("the work ended without a result"));
                }
                Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                    if let Err(error) = py.check_signals().and_then(|()| report(&counter)) {
                        counter.cancel();
                        raised = Some(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    })
}
