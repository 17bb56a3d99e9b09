//! The main and events contexts.
//!
//! What the process is, not what it serves. Next: `millstream`'s `running`, which acts on it.

use super::log::ErrorLog;
use std::path::PathBuf;
use std::time::Duration;

/// `worker_processes`: here, threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerProcesses {
    /// That many.
    Number(u32),
    /// The cores the process may use, affinity and cgroup quota included.
    Auto,
}

/// `user name [group]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The group's; the user's own where none was written.
    pub group: Option<String>,
}

/// The main and events contexts.
#[derive(Debug, Clone)]
pub struct Main {
    /// `worker_processes`, default 1.
    pub worker_processes: WorkerProcesses,
    /// `worker_connections`, default 512: client and upstream connections of one worker at a time.
    pub worker_connections: u32,
    /// `worker_rlimit_nofile`.
    pub worker_rlimit_nofile: Option<u64>,
    /// `worker_shutdown_timeout`; `None` waits as long as it takes.
    pub worker_shutdown_timeout: Option<Duration>,
    /// `user`; `None` where none was written.
    pub user: Option<User>,
    /// `pid`.
    pub pid: PathBuf,
    /// `error_log`s of the main level; the default is the prefix's `logs/error.log` or what `-e` said.
    pub error_logs: Vec<ErrorLog>,
    /// `daemon`, default on.
    pub daemon: bool,
    /// `multi_accept`, default off.
    pub multi_accept: bool,
    /// `thread_pool default threads=`: threads for the disk and for compression; `None` where none was written.
    pub blocking_threads: Option<u32>,
    /// `control_socket`: where the API for this machine's administrator is; `None` = nowhere. Its listener and server
    /// are among the others of the http block.
    pub control_socket: Option<PathBuf>,
}

impl Default for Main {
    fn default() -> Self {
        Main {
            worker_processes: WorkerProcesses::Number(1),
            worker_connections: 512,
            worker_rlimit_nofile: None,
            worker_shutdown_timeout: None,
            user: None,
            pid: PathBuf::from("logs/nginx.pid"),
            error_logs: Vec::new(),
            daemon: true,
            multi_accept: false,
            blocking_threads: None,
            control_socket: None,
        }
    }
}
