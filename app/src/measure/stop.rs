//! Ctrl-C, TERM and HUP: the first asks for an end in order, the second is one.

use super::end::End;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first of these signals sets; the second ends this process at once.
///
/// # Errors
/// The signals cannot be taken.
pub(super) fn on_signals() -> Result<Arc<AtomicBool>, End> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset.
        register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| register(signal, Arc::clone(&stop)))
            .map_err(|error| format!("signals cannot be taken: {error}"))?;
    }
    Ok(stop)
}
