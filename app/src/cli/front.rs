//! The flags of whatever stands in front of an API: `serve` and `shadow`.
//!
//! Plain data out of words. Next: `crate::serve_url`, which makes an nginx.conf of them.

use super::{ClientAddress, Domains, UpstreamFlags};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub struct Front {
    /// The API: http://host:port, https://host or unix:/path.sock; several URLs share the load
    pub urls: Vec<String>,
    /// Listen on a port, address:port or unix:/path
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: String,
    #[command(flatten)]
    pub domains: Domains,
    #[command(flatten)]
    pub upstream: UpstreamFlags,
    /// Serve the dashboard on a port, address:port or off (default: 127.0.0.1:8081 if free)
    #[arg(long, value_name = "ADDRESS")]
    pub dashboard: Option<String>,
    /// Also allow this address or network to read the dashboard and /metrics (repeatable)
    #[arg(long, value_name = "ADDRESS")]
    pub dashboard_allow: Vec<String>,
    /// Allow requests with Authorization: Bearer TOKEN to read the dashboard and purge through it
    #[arg(long, env = "MILLSTREAM_API_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub dashboard_token: Option<String>,
    /// Worker threads: a number or auto
    #[arg(long, default_value = "auto", value_name = "N")]
    pub workers: String,
    /// Maximum connections of each worker, including those to the API
    #[arg(long, default_value = "4096", value_name = "N")]
    pub connections: String,
    /// Maximum size of a request body; 0 for no limit
    #[arg(long, default_value = "128m", value_name = "SIZE")]
    pub max_body: String,
    /// Maximum size of the header of a request or response
    #[arg(long, default_value = "64k", value_name = "SIZE")]
    pub max_head: String,
    /// Timeout for connecting to the API
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub connect_timeout: String,
    /// Timeout between two reads from the API, and for an idle WebSocket
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub read_timeout: String,
    /// Timeout between two writes to the API
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub send_timeout: String,
    /// Timeout between two reads from or writes to a client
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub client_timeout: String,
    /// Trust X-Forwarded-For, -Proto, -Host and X-Real-IP from this proxy: address, network or unix:
    #[arg(long, value_name = "ADDRESS")]
    pub trust_proxy: Vec<String>,
    /// Send the client's address to the API (different addresses then share only public responses), or hide it
    #[arg(long, default_value = "send", value_name = "send|hide")]
    pub client_address: ClientAddress,
    /// If started by root, serve as this user (default: nobody)
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Write an access log to this file
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
}
