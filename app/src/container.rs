//! `millstream container ARGUMENTS…`, the entry point of the image: what whoever swaps nginx's image for this one relies on,
//! then what the arguments say.
//!
//! Templates of sites become their configurations, by the environment variables of nginx's image (`NGINX_ENVSUBST_…`). What is written
//! here is read by the check or the start that follows, and never by a reload. Next: `template`, which fills one.

mod template;
#[cfg(test)]
mod tests;

use crate::cli::Command;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::regular_expression;
use millstream_conf::source::Span;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Variables of nginx's image, each with the default if it is unset or empty.
const TEMPLATES: (&str, &str) = ("NGINX_ENVSUBST_TEMPLATE_DIR", "/etc/nginx/templates");
const SUFFIX: (&str, &str) = ("NGINX_ENVSUBST_TEMPLATE_SUFFIX", ".template");
const OUTPUT: (&str, &str) = ("NGINX_ENVSUBST_OUTPUT_DIR", "/etc/nginx/conf.d");
const STREAM_SUFFIX: (&str, &str) = ("NGINX_ENVSUBST_STREAM_TEMPLATE_SUFFIX", ".stream-template");
const FILTER: (&str, &str) = ("NGINX_ENVSUBST_FILTER", "");
const QUIET: (&str, &str) = ("NGINX_ENTRYPOINT_QUIET_LOGS", "");

const MAX_TEMPLATE_BYTES: u64 = 1 << 20;
const MAX_ENTRIES: usize = 4096;
/// Depth of directories, so that circular links end.
const MAX_DEPTH: usize = 8;
const MAX_TOLD: usize = 10;

/// Prepares the files for a start or check of a configuration, and prints what it did. `false`: it failed.
pub fn prepare(command: &Command) -> bool {
    if !matches!(command, Command::Run(_) | Command::Test(..)) {
        return true;
    }
    let environment = Environment::of(std::env::vars_os());
    match render(&environment) {
        Ok(told) => {
            let is_quiet = !environment.text(QUIET).is_empty();
            for line in told.iter().filter(|line| !is_quiet || line.starts_with("[warn]")) {
                eprintln!("millstream: {line}");
            }
            true
        }
        Err(message) => {
            eprintln!("millstream: [emerg] {message}");
            false
        }
    }
}

struct Environment(BTreeMap<String, Vec<u8>>);

impl Environment {
    fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Environment {
        let named = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_vec())));
        Environment(named.collect())
    }

    fn text(&self, (name, without): (&str, &str)) -> String {
        let value = self.0.get(name).filter(|value| !value.is_empty());
        value.map_or_else(|| without.to_owned(), |value| String::from_utf8_lossy(value).into_owned())
    }

    fn folder(&self, name: (&str, &str)) -> PathBuf {
        PathBuf::from(OsString::from_vec(match self.0.get(name.0) {
            Some(value) if !value.is_empty() => value.clone(),
            _ => name.1.into(),
        }))
    }

    fn admitted(&self) -> Result<BTreeMap<&str, &[u8]>, String> {
        let filter = self.text(FILTER);
        let mut findings = Diagnostics::default();
        let Some(expression) = regular_expression::compile(&filter, false, Span::default(), &mut findings)
        else {
            let why = findings.sorted().first().map_or_else(String::new, |found| found.message.clone());
            return Err(format!("{}: {why}", FILTER.0));
        };
        let mut admitted = BTreeMap::new();
        for (name, value) in &self.0 {
            let is_met = expression.is_match(name.as_bytes());
            if is_met.map_err(|_| {
                format!("{}: \"{filter}\" reached its backtracking limit for {name}", FILTER.0)
            })? {
                admitted.insert(name.as_str(), value.as_slice());
            }
        }
        Ok(admitted)
    }
}

fn render(environment: &Environment) -> Result<Vec<String>, String> {
    let (from, into) = (environment.folder(TEMPLATES), environment.folder(OUTPUT));
    let (suffix, of_streams) = (environment.text(SUFFIX), environment.text(STREAM_SUFFIX));
    let mut told = Vec::new();
    if !from.is_dir() {
        return Ok(told);
    }
    let variables = environment.admitted()?;
    for path in files_below(&from)? {
        // No file name is left of one that is the suffix alone.
        let is_named = |suffix: &str| {
            path.to_string_lossy().strip_suffix(suffix).is_some_and(|rest| !rest.ends_with('/'))
        };
        if is_named(&of_streams) {
            told.push(format!(
                "[warn] {}: template ignored: the `stream` block is not supported",
                path.display()
            ));
        } else if is_named(&suffix) {
            let filled = template::fill(&read(&path)?, |name| variables.get(name).copied())
                .map_err(|error| format!("{}:{error}", path.display()))?;
            for lacking in filled.lacking.iter().take(MAX_TOLD) {
                told.push(format!("[warn] {}:{lacking}", path.display()));
            }
            let target = target(&path, &from, &into, suffix.len());
            write(&target, &filled.text)?;
            told.push(format!("created {} from {}", target.display(), path.display()));
        }
    }
    Ok(told)
}

/// The output path: the same place as below the template's directory, without the suffix.
fn target(path: &Path, from: &Path, into: &Path, suffix: usize) -> PathBuf {
    let below = path.strip_prefix(from).unwrap_or(path);
    let mut bytes = below.as_os_str().to_owned().into_vec();
    bytes.truncate(bytes.len().saturating_sub(suffix));
    into.join(OsString::from_vec(bytes))
}

/// Every file below a directory, sorted. Follows links, but skips names with a leading dot: a mounted
/// ConfigMap has its files once more in such directories.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut entries = 0;
    while let Some((folder, depth)) = folders.pop() {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(format!("{}: more than {MAX_ENTRIES} files and folders", folder.display()));
            }
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            match fs::metadata(&path) {
                Ok(found) if found.is_file() => files.push(path),
                Ok(found) if found.is_dir() && depth == MAX_DEPTH => {
                    return Err(format!("{}: more than {MAX_DEPTH} nested folders", path.display()));
                }
                Ok(found) if found.is_dir() => folders.push((path, depth + 1)),
                Ok(_) => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut text = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(MAX_TEMPLATE_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_TEMPLATE_BYTES {
        return Err(format!("{}: the template is larger than {MAX_TEMPLATE_BYTES} bytes", path.display()));
    }
    Ok(text)
}

fn write(path: &Path, text: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| {
        let name = OUTPUT.0;
        format!(
            "{}: {error}; mount a folder there that the user of the container can write to, or set {name} to one",
            path.display()
        )
    })
}
