//! Rows of a data file, and what is written with them: `{{name}}` in a URL, a field or a body.
//!
//! CSV with its names in the first line (RFC 4180, by the `csv` crate, which takes an open quote's field to the file's end), or JSON lines, each an object. What is read has bounds
//! ([`ROWS`], [`BYTES`]), because all requests are made before the load. Every mistake has its place. Next: `plan`.

#[cfg(test)]
mod tests;

use millstream_load::target::escaped;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, Read};

pub const ROWS: usize = 200_000;
/// Bytes of a file. A row costs about a kilobyte, and its request.
pub const BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsFormat {
    Csv,
    JsonLines,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// `name` is for errors: `name:line:column: what`.
    pub fn read(name: &str, format: RowsFormat, file: impl BufRead) -> Result<Rows, String> {
        let mut file = file.take(BYTES + 1);
        let rows = match format {
            RowsFormat::Csv => csv(name, &mut file),
            RowsFormat::JsonLines => json_lines(name, &mut file),
        };
        if file.limit() == 0 {
            let most = BYTES >> 20;
            return Err(format!("{name} is larger than {most} MB, the maximum"));
        }
        let rows = rows?;
        match rows.rows.len() {
            0 => Err(format!("{name} has no rows")),
            count if count > ROWS => Err(format!("{name} has more than {ROWS} rows, the maximum")),
            _ => Ok(rows),
        }
    }

    /// At least one, each with a value for each name.
    pub fn all(&self) -> &[Vec<String>] {
        &self.rows
    }
}

/// Reads one row beyond the limit, to detect it.
fn csv(name: &str, mut file: impl Read) -> Result<Rows, String> {
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|error| format!("{name} cannot be read: {error}"))?;
    if let Some((line, field)) = open_quote(&text) {
        return Err(format!("{name}:{line}: field {field}: the quote is not closed"));
    }
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let told = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        let what = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len: first, len, .. } => {
                // The first field that is too many, or that is missing.
                format!(
                    "field {}: the row has {len} fields, but the first line has {first}",
                    len.min(first) + 1
                )
            }
            csv::ErrorKind::Utf8 { err, .. } => format!("field {}: invalid UTF-8", err.field() + 1),
            _ => error.to_string(),
        };
        format!("{name}:{line}: {what}")
    };
    let names: Vec<String> =
        reader.headers().map_err(told)?.iter().map(|name| name.trim().to_owned()).collect();
    for (place, own) in names.iter().enumerate() {
        let what = match own.as_str() {
            "" => "the column has no name".to_owned(),
            own if names[..place].iter().any(|name| name == own) => format!("duplicate column \"{own}\""),
            _ => continue,
        };
        return Err(format!("{name}:1: field {}: {what}", place + 1));
    }
    let row = |record: Result<csv::StringRecord, _>| Ok(record?.iter().map(str::to_owned).collect());
    let rows = reader.into_records().take(ROWS + 1).map(row).collect::<Result<_, _>>().map_err(told)?;
    Ok(Rows { names, rows })
}

/// Line and field of an unclosed quote (RFC 4180 §2): the rest would be one field.
fn open_quote(text: &[u8]) -> Option<(usize, usize)> {
    let (mut line, mut field, mut is_first, mut open) = (1, 1, true, None);
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        line += usize::from(*byte == b'\n');
        match (byte, open) {
            // Two of them are one of the field's own.
            (b'"', Some(_)) if bytes.next_if_eq(&&b'"').is_some() => {}
            (b'"', Some(_)) => open = None,
            (b'"', None) if is_first => open = Some((line, field)),
            (b',', None) => field += 1,
            (b'\n', None) => field = 1,
            _ => {}
        }
        is_first = open.is_none() && matches!(byte, b',' | b'\n');
    }
    open
}

fn json_lines(name: &str, file: impl BufRead) -> Result<Rows, String> {
    let (mut names, mut rows): (Vec<String>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(file.lines()) {
        let at = |column: usize, what: &dyn fmt::Display| format!("{name}:{number}:{column}: {what}");
        let line = line.map_err(|error| at(1, &error))?;
        if line.trim().is_empty() {
            continue;
        }
        let object: Map<String, Value> = serde_json::from_str(&line).map_err(|error| {
            let what = error.to_string();
            at(error.column().max(1), &what.split(" at line ").next().unwrap_or(&what))
        })?;
        if rows.is_empty() {
            names = object.keys().cloned().collect();
        }
        let row = names.iter().map(|wanted| match object.get(wanted) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value) => Ok(value.to_string()),
            None => Err(at(1, &format!("\"{wanted}\" is missing, which the first row has"))),
        });
        rows.push(row.collect::<Result<_, _>>()?);
        if rows.len() > ROWS {
            break;
        }
    }
    Ok(Rows { names, rows })
}

/// The first text between these braces that looks like a column's name, with the braces.
pub fn name_in<'a>(text: &'a str, (open, close): (&str, &str)) -> Option<&'a str> {
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | ' ');
    text.match_indices(open).find_map(|(begin, _)| {
        let inside = &text[begin + open.len()..];
        let name = &inside[..inside.find(close)?];
        let is_name = !name.is_empty() && name.chars().all(is_of_name);
        is_name.then(|| &text[begin..][..open.len() + name.len() + close.len()])
    })
}

/// Literal pieces, each followed by the column of a value, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<(String, Option<usize>)>);

impl Template {
    /// `what` names the text in errors.
    pub fn parse(what: &str, text: &str, rows: &Rows) -> Result<Template, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(begin) = rest.find("{{") {
            let column = text[..text.len() - rest.len() + begin].chars().count() + 1;
            let at = |said: String| format!("{what}, column {column}: {said}");
            let inside = &rest[begin + 2..];
            let end = inside.find("}}").ok_or_else(|| at("{{ has no }}".to_owned()))?;
            let name = inside[..end].trim();
            let place = rows.names.iter().position(|own| own == name).ok_or_else(|| {
                at(format!("the data file has no \"{name}\"; it has {}", rows.names.join(", ")))
            })?;
            pieces.push((rest[..begin].to_owned(), Some(place)));
            rest = &inside[end + 2..];
        }
        pieces.push((rest.to_owned(), None));
        Ok(Template(pieces))
    }

    pub fn has_names(&self) -> bool {
        self.0.len() > 1
    }

    pub fn text(&self, row: &[String]) -> String {
        self.with(row, |value| Cow::Borrowed(value))
    }

    /// As a URL: percent-encodes what a URL may not contain.
    pub fn url(&self, row: &[String]) -> String {
        self.with(row, |value| Cow::Owned(escaped(value.as_bytes())))
    }

    fn with(&self, row: &[String], written: fn(&str) -> Cow<'_, str>) -> String {
        let value = |place: usize| written(&row[place]);
        let pieces = self
            .0
            .iter()
            .flat_map(|(text, place)| [Cow::Borrowed(text.as_str()), place.map_or(Cow::Borrowed(""), value)]);
        pieces.collect()
    }
}
