//! Directives of the main context: the process, its workers, its user and its files.
//!
//! Values are noted, never acted on. Next: `millstream`'s `running` and `account`, which act on them.

use std::path::PathBuf;
use std::time::Duration;

use super::context::{Context, EVERYWHERE, HTTP, MAIN};
use super::logs::{self, ErrorLog};
use super::{Apply, MANY, Row, idle, often, once};
use crate::parts::PathUse;
use crate::reading::{Reading, parameter};
use crate::tree::Directive;

/// Threads, here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerProcesses {
    Number(u32),
    /// The cores the process may use, affinity and cgroup quota included.
    Auto,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// `None` = the user's own group.
    pub group: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Main {
    pub worker_processes: WorkerProcesses,
    /// Client and upstream connections of one worker at a time.
    pub worker_connections: u32,
    pub worker_rlimit_nofile: Option<u64>,
    /// `None` waits as long as it takes.
    pub worker_shutdown_timeout: Option<Duration>,
    pub user: Option<User>,
    pub pid: PathBuf,
    /// Of the main level; the default is the prefix's `logs/error.log` or what `-e` gave.
    pub error_logs: Vec<ErrorLog>,
    pub daemon: bool,
    pub multi_accept: bool,
    /// `thread_pool default threads=`: threads for the disk and for compression.
    pub blocking_threads: Option<u32>,
    /// The API for this machine's administrator. Its listener and server are among the others of the http
    /// block.
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

const MOST_THREADS: u64 = 1024;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("worker_processes", MAIN, (1, 1), "number | auto", "1",
        "The number of workers, which are threads of one process. With `auto`, there is one per core that the process may use, within its cgroup \
        quota.",
        Apply::Main(worker_processes)),
    once("worker_rlimit_nofile", MAIN, (1, 1), "number", "",
        "Sets the limit on open files (RLIMIT_NOFILE) of the process. By default, the limit is raised to what `worker_connections` needs, at most to \
        the hard limit.",
        Apply::Main(|main, d, r| main.worker_rlimit_nofile = r.number(&d.args[0], 1, u64::MAX))),
    once("worker_shutdown_timeout", MAIN, (1, 1), "time", "",
        "The maximum time that a graceful stop waits for connections before it closes them. It also limits how long connections opened before a \
        reload remain open after it. By default, there is no limit.",
        Apply::Main(|main, d, r| {
            main.worker_shutdown_timeout = r.duration(&d.args[0]).filter(|time| !time.is_zero());
        })),
    once("user", MAIN, (1, 2), "user [group]", "",
        "The user and group of the process after its ports are open. If the group is omitted, the user's primary group is used.",
        Apply::Main(|main, d, _| {
            let group = d.args.get(1).map(|word| word.text.clone());
            main.user = Some(User { name: d.args[0].text.clone(), group });
        })),
    once("pid", MAIN, (1, 1), "file", "logs/nginx.pid",
        "The file with the process id. It is created once all listeners are open.",
        Apply::Main(|main, d, r| main.pid = r.named_path(&d.args[0], &d.args[0].text, PathUse::Pid))),
    once("daemon", MAIN, (1, 1), "on | off", "on",
        "Runs the process in the background.",
        Apply::Main(|main, d, r| main.daemon = r.flag(&d.args[0]).unwrap_or(true))),
    often("error_log", MAIN, (1, 3), "file | stderr | syslog:server=address[,parameter=value] [level] [json]", "logs/error.log error",
        "Sets the error log and the minimum level of its messages: debug, info, notice, warn, error, crit, alert or emerg. With `json`, each line is \
        an object.",
        Apply::Main(|main, d, r| main.error_logs.extend(logs::error_log(d, r)))),
    often("include", EVERYWHERE, (1, 1), "file | mask", "",
        "Includes another file, or all files that match a mask such as `conf.d/*.conf`. A relative path is relative to the directory of the main \
        file.",
        Apply::Spliced),
    once("events", MAIN, (0, 0), "{ … }", "",
        "The block for connection handling. It is required, but may be empty.",
        Apply::Block(Context::Events)),
    once("http", MAIN, (0, 0), "{ … }", "",
        "The block for HTTP servers.",
        Apply::Block(Context::Http)),
    often("load_module", MAIN, (1, 1), "file", "",
        "Loads a module.",
        Apply::Idle("nginx modules are not loaded; a directive of a module is reported where it is used")),
    idle("master_process", MAIN, (1, 1), "on | off",
        "Starts workers as processes separate from a master.",
        "there is one process, whose workers are threads"),
    idle("worker_cpu_affinity", MAIN, (1, MANY), "mask … | auto [mask]",
        "Binds workers to cores.",
        "the operating system schedules the threads; start the program under taskset to restrict its cores"),
    idle("worker_priority", MAIN, (1, 1), "number",
        "The nice value of workers.",
        "the process keeps the nice value it was started with"),
    idle("worker_rlimit_core", MAIN, (1, 1), "size",
        "The maximum size of a worker's core file.",
        "the process keeps the limit it was started with"),
    idle("ssl_object_cache_inheritable", MAIN, (1, 1), "on | off",
        "Keeps certificates, keys and CA files that have not changed across a reload.",
        "a reload reads each file once; sessions and tickets survive it"),
    often("thread_pool", MAIN, (2, 3), "name threads=number [max_queue=number]", "default threads=6",
        "The number of threads in the pool named `default`, which reads and writes files and compresses large responses. A change takes effect at a \
        restart. Other pools are not used; `max_queue` has no effect, because work waits if the queue is full.",
        Apply::Main(thread_pool)),
    idle("pcre_jit", MAIN, (1, 1), "on | off",
        "Compiles regular expressions to machine code.",
        "the regular expression engine has no such switch"),
    idle("lock_file", MAIN, (1, 1), "file",
        "The prefix of lock files.",
        "the workers share one process and need no lock files"),
    idle("timer_resolution", MAIN, (1, 1), "interval",
        "How often the clock is read.",
        "reading the clock costs no system call"),
    often("env", MAIN, (1, 1), "variable[=value]", "",
        "Environment variables that are kept for workers.",
        Apply::Idle("the process keeps the environment it was started with")),
    idle("server_names_hash_max_size", HTTP, (1, 1), "size",
        "The maximum size of the hash table of server names.",
        "hash tables grow as needed"),
    idle("server_names_hash_bucket_size", HTTP, (1, 1), "size",
        "The bucket size of the hash table of server names.",
        "hash tables grow as needed"),
    idle("variables_hash_max_size", HTTP, (1, 1), "size",
        "The maximum size of the hash table of variables.",
        "variables are resolved when the configuration is read"),
    idle("variables_hash_bucket_size", HTTP, (1, 1), "size",
        "The bucket size of the hash table of variables.",
        "variables are resolved when the configuration is read"),
];

fn thread_pool(main: &mut Main, d: &Directive, r: &mut Reading<'_>) {
    let mut threads = None;
    for word in &d.args[1..] {
        match parameter(word) {
            Some(("threads", number)) => threads = r.number(&number, 1, MOST_THREADS),
            Some(("max_queue", number)) => _ = r.number(&number, 0, u64::MAX),
            _ => r.not_one_of(word, &["threads=", "max_queue="]),
        }
    }
    if d.args[0].text == "default" {
        main.blocking_threads = threads.and_then(|number| u32::try_from(number).ok());
    }
}

fn worker_processes(main: &mut Main, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "auto" {
        main.worker_processes = WorkerProcesses::Auto;
    } else if let Some(number) = reading.number(word, 1, 1024) {
        main.worker_processes = WorkerProcesses::Number(number as u32);
    }
}
