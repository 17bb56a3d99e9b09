//! Where text came from: the files of a configuration, kept whole so that every span can be shown again.
//!
//! A span is an offset pair into one file; line and column are computed only when a person is told about it.
//! Next: `diagnostics`, which prints spans; `lexer`, which makes them.

use std::path::PathBuf;

/// In order of first inclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A half-open byte range in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The full path, or a name such as `command line` for text from no file.
    pub path: PathBuf,
    /// nginx files need not be UTF-8.
    pub text: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inclusion {
    /// The word of the name or pattern.
    pub span: Span,
    pub written: String,
    pub files: Vec<FileId>,
}

/// In order of first inclusion (the order `-T` prints them in).
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
    inclusions: Vec<Inclusion>,
}

/// Both numbers count from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Sources {
    pub fn add(&mut self, path: PathBuf, text: Vec<u8>) -> FileId {
        self.files.push(SourceFile { path, text });
        FileId(u32::try_from(self.files.len() - 1).expect("includes are bounded far below u32::MAX"))
    }

    pub fn note(&mut self, inclusion: Inclusion) {
        self.inclusions.push(inclusion);
    }

    /// Once for each time that its file was included.
    pub fn inclusions(&self) -> &[Inclusion] {
        &self.inclusions
    }

    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Of a span's first byte.
    pub fn position(&self, span: Span) -> Position {
        let before = &self.file(span.file).text[..span.start as usize];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        Position { line: line as u32, column: (before.len() - line_start + 1) as u32 }
    }

    /// The line of a span's first byte, without its line end.
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
