//! Log files and log services being opened: at a start, at a reload, and for `-t`.
//!
//! One that cannot be opened is a finding. Before: `millstream-conf`'s `features/logs`; next: `millstream-telemetry`'s `log_writer`, which writes
//! them.

use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::files;
use millstream_conf::load::Loaded;
use millstream_conf::model::{Configuration, ErrorForm, ErrorLog, LogTarget, Main, PeerAddress, Syslog};
use millstream_net::{guarded_path, privileges};
use millstream_server::generation::SharedLogs;
use millstream_telemetry::error_log::{ErrorLogs, LeveledLog};
use millstream_telemetry::log_writer::{LogSink, LogWriter};
use millstream_telemetry::recent_errors::RecentErrors;
use millstream_telemetry::syslog::{Header, LogService};
use std::collections::BTreeSet;
use std::io;
use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::sync::Arc;

/// Tries to open every log with a fixed name.
pub fn probe(configuration: &Configuration, findings: &mut Diagnostics) {
    for target in targets(configuration) {
        match target {
            LogTarget::Stderr => {}
            LogTarget::File(path) => {
                files::append(path, 0o644).map_or_else(|error| no_log(path, &error, findings), drop);
            }
            LogTarget::Syslog(syslog) => {
                service(syslog).map_or_else(|error| no_service(syslog, &error, findings), drop);
            }
        }
    }
}

/// Warns if root starts a server with logs in another user's directory: a link there leads anywhere, so it is
/// followed only with the serving user's rights.
pub fn warn_of_folders(loaded: &mut Loaded) {
    let Some(configuration) = loaded.configuration.as_ref().filter(|_| privileges::may_change_user()) else {
        return;
    };
    let files = targets(configuration).filter_map(LogTarget::file);
    let folders: BTreeSet<&Path> = files.filter_map(Path::parent).collect();
    for folder in folders.into_iter().filter(|folder| guarded_path::is_of_another(folder)) {
        let what = format!(
            "the log directory {} is not owned by root: symbolic links in it are not followed with root's privileges",
            folder.display()
        );
        loaded
            .diagnostics
            .warning_nowhere(what)
            .help("change the owner of the directory to root; its log files may belong to the user");
    }
}

/// Sends complaints about logs to the first main error log that is a file, else to standard error in its
/// format.
pub fn report_to_main(main: &Main, log_writer: &LogWriter) {
    // It is open already, so this only finds it.
    let opened = |log: &ErrorLog| Some((log_writer.open(log.target.file()?, None).ok()?, log.form));
    match main.error_logs.iter().find_map(opened) {
        Some((sink, form)) => log_writer.report_to(Some(&sink), form),
        None => log_writer.report_to(None, main.error_logs.first().map_or(ErrorForm::Text, |log| log.form)),
    }
}

/// Targets of all logs with a fixed name.
pub fn targets(configuration: &Configuration) -> impl Iterator<Item = &LogTarget> {
    let http = &configuration.http;
    let own = http.locations.iter().flat_map(|location| location.settings.logs.error.iter());
    let error_logs = configuration.main.error_logs.iter().chain(own).map(|log| &log.target);
    http.log_files.iter().map(|log| &log.target).chain(error_logs)
}

fn no_log(path: &Path, error: &std::io::Error, findings: &mut Diagnostics) {
    findings
        .error_nowhere(format!("the log file {} cannot be opened: {error}", path.display()))
        .help("create the directory, set access_log or error_log to another file, or use access_log off");
}

/// A name is looked up once, as in nginx.
fn service(syslog: &Syslog) -> io::Result<LogService> {
    match &syslog.server {
        PeerAddress::Unix(path) => Ok(LogService::Unix(path.clone())),
        PeerAddress::Tcp(address) => Ok(LogService::Udp(*address)),
        PeerAddress::Name(name) => {
            let mut addresses = (name.host.as_str(), name.port).to_socket_addrs()?;
            addresses.next().map(LogService::Udp).ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }
}

fn no_service(syslog: &Syslog, error: &io::Error, findings: &mut Diagnostics) {
    let server = match &syslog.server {
        PeerAddress::Unix(path) => format!("unix:{}", path.display()),
        PeerAddress::Tcp(address) => address.to_string(),
        PeerAddress::Name(name) => name.host.clone(),
    };
    findings
        .error_nowhere(format!("host not found in syslog server \"{server}\": {error}"))
        .help("use the address of the log service, or server=unix:/dev/log");
}

pub struct Logs<'a> {
    pub log_writer: &'a Arc<LogWriter>,
    pub recent: &'a Arc<RecentErrors>,
    pub findings: &'a mut Diagnostics,
}

impl Logs<'_> {
    fn open(&mut self, target: &LogTarget, gzip: Option<u32>) -> Option<LogSink> {
        match target {
            LogTarget::Stderr => Some(self.log_writer.stderr()),
            LogTarget::File(path) => {
                let opened = self.log_writer.open(path, gzip);
                opened.map_err(|error| no_log(path, &error, self.findings)).ok()
            }
            LogTarget::Syslog(syslog) => {
                let opened = service(syslog).and_then(|service| self.log_writer.service(&service));
                opened.map_err(|error| no_service(syslog, &error, self.findings)).ok()
            }
        }
    }

    /// All that workers share.
    pub fn shared(&mut self, configuration: &Configuration) -> SharedLogs {
        let http = &configuration.http;
        let main = self.error_logs(&configuration.main.error_logs);
        let errors = http.locations.iter().map(|location| self.error_logs(&location.settings.logs.error));
        SharedLogs {
            main,
            errors: errors.collect(),
            files: http.log_files.iter().filter_map(|file| self.open(&file.target, file.gzip)).collect(),
            groups: http.log_groups.iter().map(|kept| self.log_writer.group(*kept)).collect(),
        }
    }

    fn error_logs(&mut self, logs: &[ErrorLog]) -> ErrorLogs {
        let mut opened = Vec::with_capacity(logs.len());
        for log in logs {
            let header = match &log.target {
                LogTarget::Syslog(syslog) => Some(Header::new(syslog)),
                LogTarget::File(_) | LogTarget::Stderr => None,
            };
            let sink = self.open(&log.target, None);
            opened.extend(sink.map(|sink| LeveledLog { sink, level: log.level, form: log.form, header }));
        }
        ErrorLogs::new(opened).kept_in(self.recent)
    }
}
