//! Ctrl-C, TERM and HUP: the first asks for an end in order, each further one with less patience.
//!
//! A thread of its own takes them, so that they are heard whatever the others wait for.

use super::end::End;
use millstream_load::stop::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;
use std::thread;

/// The second signal ends the process at once, if nothing was started that would be left behind.
pub(super) const SECOND: usize = 2;
/// With processes and directories to clean up the third does; the second hurries.
pub(super) const THIRD: usize = 3;

/// The first signal requests a stop, the second an urgent one; number `last` ends the process on the spot.
pub(super) fn on_signals(last: usize) -> Result<Stop, End> {
    let failed = |error| format!("cannot handle signals: {error}");
    let stop = Stop::new().map_err(failed)?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let heard = stop.clone();
    let listen = move || {
        for (count, signal) in (1..).zip(signals.forever()) {
            match count {
                count if count >= last => exit(128 + signal),
                1 => heard.ask(),
                _ => heard.press(),
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(failed)?;
    Ok(stop)
}
