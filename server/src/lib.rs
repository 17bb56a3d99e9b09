//! The request path: a connection's bytes in, an answer out, a line in the log.
//!
//! A cache hit goes connection → route → cached and is written at once, without allocating; everything else
//! is one boxed future per request. Modules stand lowest floor first; `phase` is the page to read.
//! Nothing here opens sockets or files of its own accord: `net` and `cache` do.

pub mod html;
pub mod tries;
pub mod trace;
pub mod time_text;
pub mod date_format;
pub mod loop_lag;
pub mod route;
pub mod shows;
pub mod slots;
pub mod limit_zone;
pub mod open_files;
pub mod recorder;
pub mod status_zones;
pub mod shadow_zone;
pub mod verified;
pub mod clusters;
pub mod variable_name;
pub mod left_out;
pub mod reads;
pub mod generation;
pub mod worker;
pub mod cache_report;
pub mod browser;
pub mod remembered;
pub mod judged;
pub mod page;
pub mod request;
pub mod no_one;
pub mod url_text;
pub mod counting;
pub mod basic_credential;
pub mod network;
pub mod forwarded;
pub mod realip;
pub mod sender;
pub mod sent_target;
pub mod redirect;
pub mod client_certificate;
pub mod watched;
pub mod variables;
pub mod shown;
pub mod symlinks;
pub mod failure;
pub mod grpc_status;
pub mod intercepted;
pub mod admission;
pub mod restart;
pub mod rewrite;
pub mod try_files;
pub mod chosen_zone;
pub mod imagined;
pub mod location_text;
pub mod tracing;
pub mod limits;
pub mod filter;
pub mod client;
pub mod caching;
pub mod representation;
pub mod access_log;
pub mod access;
pub mod right;
pub mod outcome;
pub mod exchange;
pub mod health;
pub mod cached;
pub mod content;
pub mod phase;
pub mod drive;
pub mod connection;
#[cfg(test)]
mod fixture;
