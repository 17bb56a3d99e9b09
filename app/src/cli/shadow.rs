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
    /// End after this time, such as 1h (default: until Ctrl-C)
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Recommend no lifetime with which more hits than this would have been stale
    #[arg(long, default_value = "0.1%", value_name = "SHARE", value_parser = share)]
    pub stale_budget: f64,
    /// Write the report as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the nginx.conf that caches what is proved safe, with its evidence, to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the report as an HTML page to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replay the GET and HEAD requests of this access log against a test API, and end (-: standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "domain")]
    pub log: Option<PathBuf>,
    /// At the end, measure with the ladder what caching the most valuable route gains
    #[arg(long)]
    pub prove: bool,
}
