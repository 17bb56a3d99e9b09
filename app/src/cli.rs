//! The command line: nginx's letters, and `serve`, `shadow`, `import`, `purge`, `explain`, `top`, `bench`, `ladder`, `demo` and `capacity`.
//!
//! Arguments in, a [`Command`] out; nothing is opened or started here. Next: `main`, whose match carries it out.
//! [`described`] is the same line as data, for what is made of it: `man_page` and `completions`.

mod value;
mod files;
mod foreign;
mod bound;
mod bench;
mod capacity;
mod domain;
mod import;
mod ladder;
mod strangers;
mod top;
mod upstream;
mod front;
mod shadow;
#[cfg(test)]
mod tests;

pub use bench::{ArrivalsOption, Bench, BenchVerb, Compare, DataOrder, Load};
pub use capacity::Capacity;
pub use domain::Domains;
pub use front::Front;
pub use import::Import;
pub use ladder::{Demo, Ladder};
pub use shadow::ShadowUrl;
pub use strangers::{ClientAddress, PurgeBy};
pub use top::Top;
pub use upstream::UpstreamFlags;

use clap::error::{ContextKind, ErrorKind};
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use files::{DEFAULT_FILES, DEFAULT_PREFIX, options};
use millstream_conf::load::Options;
use millstream_net::terminal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug)]
pub enum Command {
    Version,
    Build,
    Test(Options, TestOutput),
    Signal(Options, SignalName),
    PrintConfig(ServeUrl),
    ServeUrl(ServeUrl),
    ShadowUrl(Box<ShadowUrl>),
    Purge(Options, Purge),
    Explain(Options, Explain),
    Top(Options, Top),
    Bench(Box<Bench>),
    Ladder(Ladder),
    Demo(Demo),
    Capacity(Capacity),
    Import(Import),
    Completions(Shell),
    Man(Vec<String>),
    /// `container …`: the rest of the line.
    Container(Box<Command>),
    /// No arguments, and this default configuration does not exist.
    Nothing(PathBuf),
    Run(Options),
}

/// What `-t` prints.
#[derive(Debug, Clone, Copy)]
pub struct TestOutput {
    /// `-T`: the files too.
    pub dump: bool,
    pub quiet: bool,
    /// `-v` with `-t`: what has no effect here, and why.
    pub verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SignalName {
    /// Fast stop.
    Stop,
    /// Graceful stop.
    Quit,
    /// Reopen the log files.
    Reopen,
    /// Reload the configuration.
    Reload,
}

/// The end of the help and of the manual page.
pub const EXAMPLES: &str = "\
millstream serve http://127.0.0.1:8000   puts a cache in front of an API
millstream -c nginx.conf -t               checks a configuration
millstream -c nginx.conf                  runs it";

/// First words of commands of nginx's image, or of one of ours written for another entry point.
const IMAGE_WORDS: [&str; 4] = ["container", "nginx", "nginx-debug", "millstream"];

#[derive(Parser)]
#[command(
    name = "millstream",
    about = "A caching reverse proxy and load balancer that reads nginx.conf",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES,
    term_width = terminal::columns(&std::io::stdout())
)]
struct Line {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The configuration file
    #[arg(short = 'c', value_name = "FILE", default_value = DEFAULT_FILES[0])]
    configuration: PathBuf,
    /// Resolve relative paths against this directory
    #[arg(short = 'p', value_name = "PREFIX", default_value = DEFAULT_PREFIX)]
    prefix: PathBuf,
    /// The error log, unless the configuration names one (`stderr` for the terminal)
    #[arg(short = 'e', value_name = "FILE")]
    error_log: Option<PathBuf>,
    /// Directives of the main context, read before the file
    #[arg(short = 'g', value_name = "DIRECTIVES")]
    globals: Option<String>,
    /// Check the configuration and exit (with -v, also list what has no effect)
    #[arg(short = 't')]
    test: bool,
    /// Check the configuration, print its files and exit
    #[arg(short = 'T')]
    dump: bool,
    /// With -t, print only errors
    #[arg(short = 'q')]
    quiet: bool,
    /// Print the version
    #[arg(short = 'v', long = "version", action = ArgAction::Count)]
    version: u8,
    /// Print the version and the built-in modules
    #[arg(short = 'V')]
    build: bool,
    /// Send a signal to the running process
    #[arg(short = 's', value_name = "SIGNAL")]
    signal: Option<SignalName>,
    /// Ignore unsupported nginx directives that affect only logs, speed or appearance
    #[arg(long)]
    lenient: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Put a cache in front of an API (without a URL, in front of an embedded demo API)
    Serve(Box<ServeUrl>),
    /// Observe an API's traffic and report what can be cached; cache nothing
    Shadow(Box<ShadowUrl>),
    /// Import an nginx configuration: check it, copy it, and report what differs
    Import(Import),
    /// Purge stored responses: URLs, prefixes, tags, or a whole zone
    Purge(Purge),
    /// Explain the response to a URL: key, variants, freshness, and causes
    Explain(Explain),
    /// Show the live dashboard in the terminal
    Top(Top),
    /// Load a server and measure throughput, latency, errors, and the bottleneck
    Bench(Box<Bench>),
    /// Measure the gain from each caching feature in front of your API
    Ladder(Ladder),
    /// Run the ladder in front of a simulated API, in about 45 seconds
    Demo(Demo),
    /// Measure whether another API server helps, directly and through the proxy
    Capacity(Capacity),
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or that of a command
    #[command(hide = true)]
    Man {
        /// The command
        command: Vec<String>,
    },
}

/// Where the running process is found.
#[derive(Debug, Clone, Args)]
pub struct Reach {
    /// The configuration of the running process, which names its control socket
    #[arg(short = 'c', value_name = "FILE", default_value = DEFAULT_FILES[0])]
    configuration: PathBuf,
    /// Resolve relative paths against this directory
    #[arg(short = 'p', id = "directory", value_name = "PREFIX", default_value = DEFAULT_PREFIX)]
    prefix: PathBuf,
    /// Directives of the main context that the process was started with
    #[arg(short = 'g', value_name = "DIRECTIVES")]
    globals: Option<String>,
    /// Use this API instead of the control socket: http://host:port/path or unix:/path.sock
    #[arg(long, value_name = "URL")]
    pub api: Option<String>,
    /// The token for the API
    #[arg(long, value_name = "TOKEN", env = "MILLSTREAM_API_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// `purge …`.
#[derive(Debug, Clone, Args)]
pub struct Purge {
    /// URLs to purge, with all variants; a trailing * makes a URL a prefix
    pub urls: Vec<String>,
    /// Purge all URLs with this prefix
    #[arg(long, value_name = "URL")]
    pub prefix: Vec<String>,
    /// Purge responses with this tag (Surrogate-Key, Cache-Tag, xkey, proxy_cache_tag)
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Purge this key, as proxy_cache_key builds it (with --zone)
    #[arg(long, value_name = "KEY")]
    pub key: Vec<String>,
    /// Purge only in this cache zone
    #[arg(long, value_name = "NAME")]
    pub zone: Option<String>,
    /// Purge everything in the zone (with --zone)
    #[arg(long)]
    pub all: bool,
    /// Mark responses stale instead of removing them
    #[arg(long)]
    pub soft: bool,
    /// Wait for all nodes (default), or only for this one
    #[arg(long, value_name = "all|here", default_value = "all", hide_default_value = true)]
    pub wait: NodesAwaited,
    #[command(flatten)]
    pub reach: Reach,
}

/// Which nodes a purge waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum NodesAwaited {
    All,
    Here,
}

/// `explain URL …`.
#[derive(Debug, Clone, Args)]
pub struct Explain {
    /// The URL
    pub url: String,
    /// Add a request field, such as 'Accept-Language: de'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// The method of the request
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reach: Reach,
}

/// `serve URL …`.
#[derive(Debug, Clone, Args)]
pub struct ServeUrl {
    #[command(flatten)]
    pub front: Front,
    #[command(flatten)]
    pub caching: Caching,
    /// Print the equivalent nginx.conf and exit
    #[arg(long)]
    pub print_config: bool,
}

/// What `serve` stores, and who may purge it.
#[derive(Debug, Clone, Args)]
pub struct Caching {
    /// Cache GET and HEAD responses without caching headers for this long, e.g. 1s
    #[arg(long, value_name = "TIME")]
    pub microcache: Option<String>,
    /// Query arguments that are not part of the cache key, such as utm_*,gclid,fbclid
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub ignore_args: Vec<String>,
    /// During a refresh, send the stale response for as long as it was fresh, but at most this long
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub stale: String,
    /// If the API fails, send the stale response for this long after it expired
    #[arg(long, default_value = "10m", value_name = "TIME")]
    pub stale_if_error: String,
    /// Memory for cached responses
    #[arg(long, default_value = "256m", value_name = "SIZE")]
    pub memory: String,
    /// Who may purge over HTTP: no one, programs on this machine (and all clients of a proxy on it), or clients with a token
    #[arg(long, default_value = "off", value_name = "off|local|token=FILE")]
    pub purge: PurgeBy,
    /// Share purges through Redis or Valkey: redis://HOST:6379, rediss://… or unix:PATH
    #[arg(long, value_name = "URL", requires = "cluster_secret")]
    pub cluster: Option<String>,
    /// File with the cluster's shared secret
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub cluster_secret: Option<PathBuf>,
}

/// Ends the process on a wrong command line, or if only help was requested.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Command {
    read(arguments).unwrap_or_else(|error| {
        // A closed terminal is no reason to say more.
        _ = error.print();
        // Scripts made for nginx know 1 for a wrong command line.
        std::process::exit(i32::from(error.use_stderr()))
    })
}

fn read(arguments: impl Iterator<Item = OsString>) -> Result<Command, clap::Error> {
    let arguments: Vec<OsString> = arguments.collect();
    // No command of the table: what follows is a whole line of its own, in which clap would see options of `container`.
    if let [program, verb, line @ ..] = arguments.as_slice()
        && verb == "container"
    {
        let words = line.iter().skip_while(|word| IMAGE_WORDS.iter().any(|known| *word == known));
        let line: Vec<OsString> = std::iter::once(program).chain(words).cloned().collect();
        return Ok(Command::Container(Box::new(read(line.into_iter())?)));
    }
    let is_bare = arguments.len() <= 1;
    let is_bench = arguments.get(1).is_some_and(|verb| verb == "bench");
    let line =
        Line::try_parse_from(verb_first(arguments)).map_err(|error| without_detour(error, is_bench))?;
    Ok(match meaning(line) {
        Command::Run(options) if is_bare => {
            let file = options.prefix.join(&options.main_file);
            if file.exists() { Command::Run(options) } else { Command::Nothing(file) }
        }
        command => command,
    })
}

/// Removes clap's advice to pass an unknown flag as a value: no URL and no file of ours begins with a hyphen.
fn without_detour(mut error: clap::Error, is_bench: bool) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
        if is_bench {
            foreign::explain(&mut error);
        }
    }
    error
}

/// Rewrites `-c FILE explain …` to `explain -c FILE …`, for users of nginx's options.
fn verb_first(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let letters = ["-c", "-p", "-g"];
    let pairs = arguments[1.min(arguments.len())..].chunks(2);
    let before = 2 * pairs.take_while(|pair| letters.iter().any(|letter| pair[0] == *letter)).count();
    let verb = 1 + before;
    if arguments.get(verb).is_some_and(|verb| ["explain", "purge", "top"].iter().any(|known| verb == known)) {
        arguments[1..=verb].rotate_right(1);
    }
    arguments
}

/// For completion scripts and manual pages.
pub fn described() -> clap::Command {
    Line::command()
}

/// Prints the help and fails: a service that was to start has not.
pub fn help(missing: &Path) -> ExitCode {
    let help = Line::command().render_help();
    eprintln!("{help}\nWithout arguments, millstream runs {}, which does not exist.", missing.display());
    ExitCode::FAILURE
}

fn meaning(line: Line) -> Command {
    match line.verb {
        Some(Verb::Serve(serve)) if serve.print_config => return Command::PrintConfig(*serve),
        Some(Verb::Serve(serve)) => return Command::ServeUrl(*serve),
        Some(Verb::Shadow(shadow)) => return Command::ShadowUrl(shadow),
        Some(Verb::Purge(purge)) => return Command::Purge(purge.reach.options(), purge),
        Some(Verb::Bench(bench)) => return Command::Bench(bench),
        Some(Verb::Explain(explain)) => return Command::Explain(explain.reach.options(), explain),
        Some(Verb::Top(top)) => return Command::Top(top.reach().options(), top),
        Some(Verb::Ladder(ladder)) => return Command::Ladder(ladder),
        Some(Verb::Demo(demo)) => return Command::Demo(demo),
        Some(Verb::Capacity(capacity)) => return Command::Capacity(capacity),
        Some(Verb::Import(import)) => return Command::Import(import),
        Some(Verb::Completions { shell }) => return Command::Completions(shell),
        Some(Verb::Man { command }) => return Command::Man(command),
        None => {}
    }
    if line.build {
        return Command::Build;
    }
    if line.version > 0 && !line.test && !line.dump {
        return Command::Version;
    }
    let options = Options {
        error_log: line.error_log,
        lenient: line.lenient,
        ..options(&line.prefix, line.configuration, line.globals)
    };
    if line.test || line.dump {
        let how = TestOutput { dump: line.dump, quiet: line.quiet, verbose: line.version > 0 };
        return Command::Test(options, how);
    }
    match line.signal {
        Some(name) => Command::Signal(options, name),
        None => Command::Run(options),
    }
}

impl Reach {
    fn options(&self) -> Options {
        // What the running process does not know it has said at its start; here it would only stand in the way.
        Options { lenient: true, ..options(&self.prefix, self.configuration.clone(), self.globals.clone()) }
    }
}
