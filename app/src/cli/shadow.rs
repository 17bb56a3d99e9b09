//! The flags of `shadow`.
//!
//! Plain data out of words; what they mean together is `crate::shadow`'s to say.

use super::Front;
use super::value::{share, time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `shadow URL …`.
#[derive(Debug, Clone, Args)]
pub struct ShadowUrl {
    #[command(flatten)]
    pub front: Front,
    /// Stop after this time, such as 1h (default: at Ctrl-C)
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Recommend only lifetimes with at most this share of stale hits
    #[arg(long, default_value = "0.1%", value_name = "SHARE", value_parser = share)]
    pub stale_budget: f64,
    /// Write the report as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the recommended nginx.conf to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the report as an HTML page to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replay an access log against a test API, then exit (-: standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "domain")]
    pub log: Option<PathBuf>,
    /// Repeat some GET requests without credentials and compare the responses
    #[arg(long)]
    pub probe: bool,
    /// At the end, run the ladder on the most valuable route
    #[arg(long)]
    pub prove: bool,
}
