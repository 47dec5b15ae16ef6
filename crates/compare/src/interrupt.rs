//! Ctrl-C: everything stops at the next wait, and cleans up after itself.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on these signals end nothing at once; a second one does.
pub(crate) fn listen() -> Result<(), Failure> {
    let asked = ASKED.get_or_init(Arc::default);
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let fail = |error| Failure::new(format!("signal {signal}: {error}"));
        // The kernel ends what we started together with us, so that the second one leaves nothing but a folder.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(asked))
            .map_err(fail)?;
        signal_hook::flag::register(signal, Arc::clone(asked)).map_err(fail)?;
    }
    Ok(())
}

/// Sleeps so long, or until somebody has had enough.
pub(crate) fn sleep(span: Duration) -> Result<(), Failure> {
    let until = Instant::now() + span;
    loop {
        if ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed)) {
            return Err(Failure::new("interrupted; everything that was started has been stopped"));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}
