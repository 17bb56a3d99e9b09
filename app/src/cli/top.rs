//! `top …`: which dashboard, or which process.

use super::{DEFAULT_FILES, DEFAULT_PREFIX, Reach};
use clap::Args;
use std::path::PathBuf;

/// `top …`.
#[derive(Debug, Clone, Args)]
pub struct Top {
    /// The dashboard: http://host:port or a port (default: the running process, or http://127.0.0.1:8081)
    #[arg(value_name = "URL", conflicts_with = "control")]
    pub url: Option<String>,
    /// Use the control socket of the process instead
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// The token for the dashboard
    #[arg(long, value_name = "TOKEN", env = "MILLSTREAM_API_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Print the current figures as plain text and exit (the default without a terminal)
    #[arg(long)]
    pub once: bool,
    /// The configuration of the running process, which names its control socket
    #[arg(short = 'c', value_name = "FILE", default_value = DEFAULT_FILES[0])]
    configuration: PathBuf,
    /// Resolve relative paths against this directory
    #[arg(short = 'p', id = "directory", value_name = "PREFIX", default_value = DEFAULT_PREFIX)]
    prefix: PathBuf,
    /// Directives of the main context that the process was started with
    #[arg(short = 'g', value_name = "DIRECTIVES")]
    globals: Option<String>,
}

impl Top {
    /// Whether the command line names a configuration, and thereby a process.
    pub fn names_configuration(&self) -> bool {
        self.configuration.as_os_str() != DEFAULT_FILES[0] || self.prefix.as_os_str() != DEFAULT_PREFIX
    }

    pub fn reach(&self) -> Reach {
        Reach {
            configuration: self.configuration.clone(),
            prefix: self.prefix.clone(),
            globals: self.globals.clone(),
            api: None,
            token: self.token.clone(),
        }
    }
}
