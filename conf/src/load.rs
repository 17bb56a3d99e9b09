//! The door: a file or a text in, a checked configuration and every finding out.
//!
//! Nothing is read but the configuration's own files (certificates are only looked for), and nothing is started.
//! Next: `include`, then `configuration`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::configuration::{self, Defaults};
use crate::declared::Declared;
use crate::diagnostics::Diagnostics;
use crate::features;
use crate::features::logs;
use crate::files::{self, Access};
use crate::foreign;
use crate::include::{self, ConfPrefix};
use crate::model::{Configuration, ErrorForm, ErrorLog, Level, LogTarget};
use crate::parser;
use crate::parts::Parts;
use crate::reading::Reading;
use crate::slots;
use crate::source::Sources;
use crate::tree::Directive;

/// What the command line says about the configuration.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `-c`: the main file, relative to the prefix.
    pub main_file: PathBuf,
    /// `-p`: the base of relative paths.
    pub prefix: PathBuf,
    /// `-g`: directives of the main context, read before the file.
    pub globals: Option<String>,
    /// `-e`: the error log if the main level writes none; `stderr` is the standard error stream.
    pub error_log: Option<PathBuf>,
    /// `--lenient`: directives that nginx knows and Millstream does not are warnings.
    pub lenient: bool,
}

/// The result of loading a configuration.
#[derive(Debug, Default)]
pub struct Loaded {
    /// `None` if there is an error.
    pub configuration: Option<Configuration>,
    /// Every file that was read; the configuration has its own copy, so that it can outlive this.
    pub sources: Sources,
    pub diagnostics: Diagnostics,
    /// As far as it could be read, even if there are errors elsewhere.
    pub control_socket: Option<PathBuf>,
    pub parts: Parts,
}

impl Loaded {
    /// Without `parts`, which only `copy` needs and a process would otherwise hold for as long as it serves.
    #[must_use]
    pub fn to_serve(self) -> Loaded {
        Loaded { parts: Parts::default(), ..self }
    }
}

/// Reads a configuration from its files.
pub fn load(options: &Options) -> Loaded {
    let main_file = options.prefix.join(&options.main_file);
    let conf_prefix = ConfPrefix::of(&main_file);
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let mut tree = Vec::new();
    if let Some(globals) = &options.globals {
        // nginx puts a semicolon to the end where `-g` has none.
        let text = format!("{};", globals.trim_end().trim_end_matches(';'));
        tree = include::parse_text("command line", text, &conf_prefix, &mut sources, &mut diagnostics);
    }
    let Some(main) = include::read(&main_file, &conf_prefix, &mut sources, &mut diagnostics) else {
        // What such a file lacks is not known.
        let parts = Parts::default();
        return Loaded { configuration: None, sources, diagnostics, control_socket: None, parts };
    };
    tree.extend(main);
    let defaults = Defaults { error_log: default_error_log(options), control_socket: true };
    understand(tree, options, defaults, &conf_prefix, sources, diagnostics)
}

/// Reads a configuration from text; `name` stands for the file in messages. There is no default pid file, so
/// there is a `control_socket` only if the text writes one.
pub fn load_text(name: &str, text: &str, prefix: &Path) -> Loaded {
    let conf_prefix = ConfPrefix::new(prefix);
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let tree = include::parse_text(name, text, &conf_prefix, &mut sources, &mut diagnostics);
    let options = Options { prefix: prefix.to_path_buf(), ..Options::default() };
    let defaults = Defaults { error_log: default_error_log(&options), control_socket: false };
    understand(tree, &options, defaults, &conf_prefix, sources, diagnostics)
}

fn understand(
    mut tree: Vec<Directive>,
    options: &Options,
    defaults: Defaults,
    conf_prefix: &ConfPrefix,
    sources: Sources,
    mut diagnostics: Diagnostics,
) -> Loaded {
    let is_name = |word: &str| features::rows().any(|row| row.name == word);
    parser::split_unterminated(&mut tree, &sources, &mut diagnostics, &is_name);
    let mut reading = Reading {
        prefix: &options.prefix,
        conf_prefix,
        lenient: options.lenient,
        sources: &sources,
        diagnostics: &mut diagnostics,
        slots: slots::collect(&tree),
        used_zones: Vec::new(),
        dependent: Vec::new(),
        obeyed: HashSet::new(),
        written: foreign::written(&tree),
        defined_elsewhere: slots::defined_elsewhere(&tree),
        declared: Declared::default(),
        place: 0,
        parts: Parts::default(),
    };
    logs::declare_combined(&mut reading);
    let (main, mut http) = configuration::read(&tree, defaults, &mut reading);
    http.slots = std::mem::take(&mut reading.slots);
    let parts = Parts { tree, ..std::mem::take(&mut reading.parts) };
    let control_socket = main.control_socket.clone();
    diagnostics.leave_out_consequences(&sources);
    diagnostics.leave_out_repeats();
    diagnostics.recommend_lenient();
    let whole = (!diagnostics.has_errors()).then(|| Configuration { sources: sources.clone(), main, http });
    Loaded { configuration: whole, sources, diagnostics, control_socket, parts }
}

fn default_error_log(options: &Options) -> ErrorLog {
    let target = match &options.error_log {
        Some(path) if path.as_os_str() == "stderr" => LogTarget::Stderr,
        Some(path) => LogTarget::File(options.prefix.join(path)),
        None => LogTarget::File(options.prefix.join("logs/error.log")),
    };
    if let LogTarget::File(path) = &target {
        files::name(path, Access::Append(0));
    }
    ErrorLog { target, level: Level::Error, form: ErrorForm::Text }
}
