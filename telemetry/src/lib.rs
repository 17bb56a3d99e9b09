//! What Millstream says about itself: logs through one writer thread, counters per thread, Prometheus text.
//!
//! Floor 2: it knows the configuration's model and nothing above it, and it reads no clock of its own
//! ([`error_log::set_clock`]). Modules stand lowest floor first.
//! Next: [`log_writer`] for how a line reaches its file, [`metrics`] for the table of everything counted.

pub mod local_time;
pub mod about;
mod error_line;
pub mod syslog;
pub mod log_writer;
pub mod access_log;
pub mod recent_errors;
pub mod error_log;
pub mod histogram;
pub mod metrics;
pub mod manual;
