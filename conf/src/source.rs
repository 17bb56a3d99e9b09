//! Where text came from: the files of a configuration, kept whole so that every span can be shown again.
//!
//! A span is an offset pair into one file; line and column are computed only when a person is told about it.
//! Next: `diagnostics`, which prints spans; `lexer`, which makes them.

use std::path::PathBuf;

/// A file of the configuration, in order of first inclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A half-open byte range in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// One file as it was read.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The full path, or a name such as `command line` for text that came from no file.
    pub path: PathBuf,
    /// Its bytes; nginx files need not be UTF-8.
    pub text: Vec<u8>,
}

/// One `include`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inclusion {
    /// The name or pattern, as the word that it is.
    pub span: Span,
    /// It, as it is written.
    pub written: String,
    /// The files that it brought.
    pub files: Vec<FileId>,
}

/// All files read for one configuration, in order of first inclusion (the order `-T` prints them in).
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
    inclusions: Vec<Inclusion>,
}

/// A place as people write it; both numbers count from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

impl Sources {
    /// Adds a file and returns its id.
    pub fn add(&mut self, path: PathBuf, text: Vec<u8>) -> FileId {
        self.files.push(SourceFile { path, text });
        FileId(u32::try_from(self.files.len() - 1).expect("includes are bounded far below u32::MAX"))
    }

    /// Notes an `include`.
    pub fn note(&mut self, inclusion: Inclusion) {
        self.inclusions.push(inclusion);
    }

    /// Every `include`, once for each time that its file was included.
    pub fn inclusions(&self) -> &[Inclusion] {
        &self.inclusions
    }

    /// The file of an id that this value gave out.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All files, in order of first inclusion.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Line and column of a span's first byte.
    pub fn position(&self, span: Span) -> Position {
        let before = &self.file(span.file).text[..span.start as usize];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        Position { line: line as u32, column: (before.len() - line_start + 1) as u32 }
    }

    /// The line that holds a span's first byte, without its line end.
    pub fn line(&self, span: Span) -> &[u8] {
        let text = &self.file(span.file).text;
        let start = text[..span.start as usize].iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let end = text[start..].iter().position(|&b| b == b'\n').map_or(text.len(), |i| start + i);
        text[start..end].strip_suffix(b"\r").unwrap_or(&text[start..end])
    }

    /// `file:line:col` of a span's first byte.
    pub fn locate(&self, span: Span) -> String {
        let at = self.position(span);
        format!("{}:{}:{}", self.file(span.file).path.display(), at.line, at.column)
    }
}
