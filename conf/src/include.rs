//! Reads the main file and splices every `include` into its place, at any level.
//!
//! The only part of the crate that reads files. Relative names and patterns hang on the main file's directory, as
//! in nginx; each file is read and parsed once however often it is included. Bounded in depth and in bytes.
//! Before: `parser`. Next: `directives/`, which sees one tree and never an `include`.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::diagnostics::Diagnostics;
use crate::files;
use crate::parser;
use crate::source::{FileId, Inclusion, Sources, Span};
use crate::suggest;
use crate::tree::Directive;

pub mod pattern;
mod state;
#[cfg(test)]
mod tests;

pub const MAX_DEPTH: usize = 64;

/// Most bytes of a configuration; a file included twice counts twice.
pub const MAX_BYTES: u64 = 64 << 20;

/// The directory of the main configuration file, nginx's base for relative `include` and certificate paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfPrefix(PathBuf);

impl ConfPrefix {
    pub fn of(main: &Path) -> Self {
        ConfPrefix(main.parent().unwrap_or(Path::new("/")).to_path_buf())
    }

    pub fn new(directory: impl Into<PathBuf>) -> Self {
        ConfPrefix(directory.into())
    }

    pub fn directory(&self) -> &Path {
        &self.0
    }

    pub fn resolve(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

/// What could be understood is returned beside the findings; `None` if the main file cannot be read, the only
/// finding then.
pub fn read(
    main: &Path,
    prefix: &ConfPrefix,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Directive>> {
    // The path is shown and printed by `-T`, where only an absolute one tells a file from other text.
    let path = std::path::absolute(main).unwrap_or_else(|_| main.to_path_buf());
    let text = match read_file(&path, MAX_BYTES) {
        Ok(Some(text)) => text,
        Ok(None) => {
            diagnostics.error_nowhere(format!("\"{}\" is greater than {MAX_BYTES} bytes", path.display()));
            return None;
        }
        Err(error) => {
            diagnostics.error_nowhere(failure("open", &path, &error));
            return None;
        }
    };
    let bytes = text.len() as u64;
    let file = sources.add(path.clone(), text);
    Some(Splicer::new(prefix, sources, diagnostics).whole(file, Some(path), bytes))
}

/// Parses text from no file (`-g`, or what `serve URL` wrote) and splices its includes. `name` stands for the
/// path in messages and must not be absolute: `dump` leaves such text out.
pub fn parse_text(
    name: &str,
    text: impl Into<Vec<u8>>,
    prefix: &ConfPrefix,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Vec<Directive> {
    let text = text.into();
    let bytes = text.len() as u64;
    if bytes > MAX_BYTES {
        diagnostics.error_nowhere(format!("the {name} is greater than {MAX_BYTES} bytes"));
        return Vec::new();
    }
    let file = sources.add(PathBuf::from(name), text);
    Splicer::new(prefix, sources, diagnostics).whole(file, None, bytes)
}

struct Parsed {
    file: FileId,
    tree: Vec<Directive>,
    bytes: u64,
}

struct Splicer<'a> {
    prefix: &'a ConfPrefix,
    sources: &'a mut Sources,
    diagnostics: &'a mut Diagnostics,
    parsed: HashMap<PathBuf, Parsed>,
    /// Outermost first.
    stack: Vec<PathBuf>,
    bytes: u64,
    /// Blocks open around the current directive, over all files.
    blocks: usize,
    /// Includes that had an error; each error of a file is reported once.
    reported: HashSet<Span>,
}

impl<'a> Splicer<'a> {
    fn new(prefix: &'a ConfPrefix, sources: &'a mut Sources, diagnostics: &'a mut Diagnostics) -> Self {
        Splicer {
            prefix,
            sources,
            diagnostics,
            parsed: HashMap::new(),
            stack: Vec::new(),
            bytes: 0,
            blocks: 0,
            reported: HashSet::new(),
        }
    }

    fn whole(mut self, file: FileId, path: Option<PathBuf>, bytes: u64) -> Vec<Directive> {
        self.bytes = bytes;
        self.stack.extend(path);
        let tree = parser::parse(file, self.sources, self.diagnostics);
        self.splice(tree)
    }

    fn splice(&mut self, tree: Vec<Directive>) -> Vec<Directive> {
        let mut spliced = Vec::with_capacity(tree.len());
        for mut directive in tree {
            if directive.name.text == "include" {
                self.include(&directive, &mut spliced);
                continue;
            }
            if let Some(block) = directive.block.take() {
                let mut block = self.block(block, directive.span);
                if directive.name.text == "upstream" {
                    self.restore(&mut block);
                }
                directive.block = Some(block);
            }
            spliced.push(directive);
        }
        spliced
    }

    fn block(&mut self, block: Vec<Directive>, span: Span) -> Vec<Directive> {
        // The parser bounds each file; files in each other's blocks could still build a tree without bound.
        if self.blocks >= 2 * parser::MAX_DEPTH {
            self.error(span, "blocks are nested too deep".to_string(), None);
            return Vec::new();
        }
        self.blocks += 1;
        let spliced = self.splice(block);
        self.blocks -= 1;
        spliced
    }

    fn include(&mut self, directive: &Directive, into: &mut Vec<Directive>) {
        let [name] = &*directive.args else {
            let help = "write one file name or pattern: include FILE;".to_string();
            let message = "invalid number of arguments in \"include\" directive".to_string();
            return self.error(directive.name.span, message, Some(help));
        };
        if directive.block.is_some() {
            let help = "write include FILE;".to_string();
            return self.error(directive.span, "directive \"include\" has no block".to_string(), Some(help));
        }
        let paths = match pattern::is_pattern(&name.text) {
            true => pattern::matches(self.prefix, &name.text).unwrap_or_else(|error| {
                self.error(name.span, failure("glob", Path::new(&name.text), &error), None);
                Vec::new()
            }),
            false => vec![self.prefix.resolve(&name.text)],
        };
        let files =
            paths.into_iter().filter_map(|path| self.file(path, &name.text, name.span, into)).collect();
        self.sources.note(Inclusion { span: name.span, written: name.text.clone(), files });
    }

    /// `None` if an error was reported.
    fn file(
        &mut self,
        path: PathBuf,
        written: &str,
        span: Span,
        into: &mut Vec<Directive>,
    ) -> Option<FileId> {
        if self.stack.contains(&path) {
            let help = "a file cannot include itself, not even through others".to_string();
            self.error(span, format!("\"{}\" is included recursively", path.display()), Some(help));
            return None;
        }
        if self.stack.len() >= MAX_DEPTH {
            self.error(span, format!("files are included deeper than {MAX_DEPTH}"), None);
            return None;
        }
        if !self.parsed.contains_key(&path) && !self.load(&path, written, span) {
            return None;
        }
        let parsed = &self.parsed[&path];
        if self.bytes + parsed.bytes > MAX_BYTES {
            self.too_much(span);
            return None;
        }
        self.bytes += parsed.bytes;
        let (file, tree) = (parsed.file, parsed.tree.clone());
        self.stack.push(path);
        into.extend(self.splice(tree));
        self.stack.pop();
        Some(file)
    }

    /// False if an error was reported.
    fn load(&mut self, path: &Path, written: &str, span: Span) -> bool {
        match read_file(path, MAX_BYTES - self.bytes) {
            Ok(Some(text)) => {
                let bytes = text.len() as u64;
                let file = self.sources.add(path.to_path_buf(), text);
                let tree = parser::parse(file, self.sources, self.diagnostics);
                self.parsed.insert(path.to_path_buf(), Parsed { file, tree, bytes });
                return true;
            }
            Ok(None) => self.too_much(span),
            Err(error) => {
                let help = missing_help(&error, path, written, self.prefix);
                self.error(span, failure("open", path, &error), help);
            }
        }
        false
    }

    fn too_much(&mut self, span: Span) {
        self.error(span, format!("the configuration is greater than {MAX_BYTES} bytes with this file"), None);
    }

    fn error(&mut self, span: Span, message: String, help: Option<String>) {
        if self.reported.insert(span) {
            self.diagnostics.error(span, message).help = help;
        }
    }
}

/// `None` if it has more than `most` bytes. The size is not queried first: the file may be a pipe.
fn read_file(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    files::open(path)?.take(most + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= most).then_some(text))
}

/// nginx's own words, which people and scripts know.
fn failure(call: &str, path: &Path, error: &io::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text);
    match error.raw_os_error() {
        Some(code) => format!("{call}() \"{}\" failed ({code}: {reason})", path.display()),
        None => format!("{call}() \"{}\" failed ({reason})", path.display()),
    }
}

/// Names the file that was most likely meant, else the directory that was searched.
fn missing_help(error: &io::Error, path: &Path, written: &str, prefix: &ConfPrefix) -> Option<String> {
    if error.kind() != io::ErrorKind::NotFound {
        return None;
    }
    let names: Vec<String> = std::fs::read_dir(path.parent()?)
        .into_iter()
        .flatten()
        .take(1000)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let name = path.file_name()?.to_str()?;
    if let Some(found) = suggest::nearest(name, names.iter().map(String::as_str)) {
        return Some(format!("did you mean \"{}\"?", Path::new(written).with_file_name(found).display()));
    }
    let relative = !Path::new(written).is_absolute();
    relative.then(|| format!("relative names are resolved in \"{}\"", prefix.directory().display()))
}
