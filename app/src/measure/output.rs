//! Where the reports go: text to standard output, JSON and a page to files, of which `-` is standard output.
//!
//! The files are opened before anything is measured, so that a wrong path costs no measuring, and written after it: until
//! then what was in them stays.

use super::end::End;
use millstream_load::report::steps::Page;
use millstream_net::terminal;
use std::cell::OnceCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Output {
    json: Option<Place>,
    html: Option<Place>,
    exports: Vec<Place>,
    lost: OnceCell<io::Error>,
}

#[derive(Debug)]
enum Place {
    Standard,
    File(Report),
}

/// A report's file; one that was created for it but never written is removed on drop.
#[derive(Debug)]
struct Report {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl Output {
    /// Fails if both reports would go to standard output.
    pub fn open(json: Option<&Path>, html: Option<&Path>) -> Result<Output, End> {
        let (json, html) = (json.map(Place::open).transpose()?, html.map(Place::open).transpose()?);
        let output = Output { json, html, exports: Vec::new(), lost: OnceCell::new() };
        match (&output.json, &output.html) {
            (Some(Place::Standard), Some(Place::Standard)) => {
                Err("only one report can be written to standard output: JSON or HTML".to_owned().into())
            }
            _ => Ok(output),
        }
    }

    /// Adds a file, if named; fails if two would go to standard output.
    pub fn export(&mut self, path: Option<&Path>) -> Result<(), End> {
        let Some(path) = path else { return Ok(()) };
        if path == "-" && self.takes_standard_output() {
            return Err("only one report can be written to standard output".to_owned().into());
        }
        self.exports.push(Place::open(path)?);
        Ok(())
    }

    pub fn write_exports(&mut self, texts: impl Iterator<Item = String>) -> Result<(), End> {
        self.exports.iter_mut().zip(texts).try_for_each(|(place, text)| place.write(&text))
    }

    fn takes_standard_output(&self) -> bool {
        let places = [&self.json, &self.html].into_iter().flatten().chain(&self.exports);
        places.into_iter().any(|place| matches!(place, Place::Standard))
    }

    pub fn columns(&self) -> usize {
        match self.takes_standard_output() {
            true => terminal::columns(&io::stderr()),
            false => terminal::columns(&io::stdout()),
        }
    }

    /// Folded for a terminal, see [`Output::put_whole`].
    pub fn put(&self, text: &str) {
        self.put_whole(&terminal::folded(text, self.columns()));
    }

    pub fn put_page(&self, page: &Page, is_verbose: bool) {
        self.put(&if is_verbose { page.text(self.columns()) } else { page.brief(self.columns()) });
    }

    /// On standard output, or on standard error if a report takes that. [`Output::write`] and [`Output::end`]
    /// report a failure.
    pub fn put_whole(&self, text: &str) {
        let text = terminal::visible(text);
        let put = if self.takes_standard_output() {
            io::stderr().write_all(text.as_bytes())
        } else {
            to_standard_output(text.as_bytes())
        };
        if let Err(error) = put {
            // The first one is kept.
            _ = self.lost.set(error);
        }
    }

    pub fn write(&mut self, json: impl FnOnce() -> String, html: impl FnOnce() -> String) -> Result<(), End> {
        self.json.as_mut().map_or(Ok(()), |place| place.write(&json()))?;
        self.html.as_mut().map_or(Ok(()), |place| place.write(&html()))?;
        self.end()
    }

    /// Fails if text for the user was lost.
    pub fn end(&self) -> Result<(), End> {
        self.lost.get().map_or(Ok(()), |error| Err(unwritable(Path::new("standard output"), error)))
    }
}

/// A closed pipe is no error.
fn to_standard_output(bytes: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

impl Place {
    fn open(path: &Path) -> Result<Place, End> {
        if path == "-" {
            return Ok(Place::Standard);
        }
        let is_new = !path.exists();
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| unwritable(path, &error))?;
        Ok(Place::File(Report { path: path.to_owned(), file, is_new }))
    }

    fn write(&mut self, text: &str) -> Result<(), End> {
        match self {
            Place::Standard => to_standard_output(text.as_bytes())
                .map_err(|error| unwritable(Path::new("standard output"), &error)),
            Place::File(report) => report.write(text).map_err(|error| unwritable(&report.path, &error)),
        }
    }
}

impl Report {
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.is_new = false;
        // A pipe or a terminal has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.is_new {
            // Gone already is as good.
            _ = std::fs::remove_file(&self.path);
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> End {
    format!("{} cannot be written: {error}", path.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_what_it_had_until_there_is_a_report() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (folder.path().join("old.json"), folder.path().join("new.html"));
        std::fs::write(&old, "a longer text than the next").expect("written");
        drop(Output::open(Some(&old), Some(&new)).expect("opened"));
        assert_eq!(std::fs::read_to_string(&old).expect("there"), "a longer text than the next");
        assert!(!new.exists(), "nothing was measured, so nothing is left");
        let mut output = Output::open(Some(&old), Some(&new)).expect("opened");
        output.write(|| "{}".to_owned(), || "<p>".to_owned()).expect("written");
        assert_eq!(std::fs::read_to_string(&old).expect("there"), "{}");
        assert_eq!(std::fs::read_to_string(&new).expect("there"), "<p>");
    }

    #[test]
    fn what_cannot_be_written_is_said_before_anything_is_measured() {
        let said = |json: &str, html: Option<&Path>| match Output::open(Some(Path::new(json)), html) {
            Err(End::Wrong(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(said("/no/such/folder/a.json", None).starts_with("/no/such/folder/a.json cannot be written"));
        assert!(
            said("-", Some(Path::new("-"))).starts_with("only one report can be written to standard output")
        );
    }
}
