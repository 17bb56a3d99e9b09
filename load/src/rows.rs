//! Rows of a data file, and what is written with them: `{{name}}` in a URL, a field or a body.
//!
//! CSV with its names in the first line (RFC 4180, by the `csv` crate), or JSON lines, each an object. What is read has bounds
//! ([`ROWS`], [`BYTES`]), because all requests are made before the load. Every mistake has its place. Next: `target`.

#[cfg(test)]
mod tests;

use crate::plan::PlanError;
use crate::target::push_byte;
use fastrand::Rng;
use serde_json::{Map, Value};
use std::fmt;
use std::io::BufRead;

/// The most rows.
pub const ROWS: usize = 200_000;
/// The most bytes of a file. A row costs about a kilobyte and its request.
pub const BYTES: u64 = 64 << 20;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsFormat {
    /// Comma-separated, the names first.
    Csv,
    /// An object on each line.
    JsonLines,
}

/// A file's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    names: Vec<String>,
    /// Each with a value for each name.
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// Reads them all; `name` is the file's, for what is wrong.
    ///
    /// # Errors
    /// The first mistake, as `name:line:column: what`.
    pub fn read(name: &str, format: RowsFormat, file: impl BufRead) -> Result<Rows, PlanError> {
        let mut file = file.take(BYTES + 1);
        let rows = match format {
            RowsFormat::Csv => csv(name, &mut file),
            RowsFormat::JsonLines => json_lines(name, &mut file),
        };
        if file.limit() == 0 {
            let most = BYTES >> 20;
            return Err(PlanError(format!("{name} is larger than {most} MB, the most that is read")));
        }
        let rows = rows?;
        match rows.rows.len() {
            0 => Err(PlanError(format!("{name} has no row"))),
            count if count > ROWS => Err(too_many(name)),
            _ => Ok(rows),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none, which [`Rows::read`] refuses.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Places of as many as there are, each once, in an order that looks random and is the same each time.
    pub fn shuffled(count: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count as u32).collect();
        Rng::with_seed(count as u64).shuffle(&mut order);
        order
    }
}

fn too_many(name: &str) -> PlanError {
    PlanError(format!("{name} has more than {ROWS} rows, the most that are read"))
}

fn csv(name: &str, file: impl std::io::Read) -> Result<Rows, PlanError> {
    let mut reader = csv::Reader::from_reader(file);
    let told = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        PlanError(match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                // The first field that is too many, or that is missing.
                let field = (*len).min(*expected_len) + 1;
                format!(
                    "{name}:{line}: field {field}: the row has {len} fields and the first line {expected_len}"
                )
            }
            csv::ErrorKind::Utf8 { err, .. } => {
                format!("{name}:{line}: field {}: that is no UTF-8", err.field() + 1)
            }
            _ => format!("{name}:{line}: {error}"),
        })
    };
    let names: Vec<String> =
        reader.headers().map_err(told)?.iter().map(|name| name.trim().to_owned()).collect();
    for (place, own) in names.iter().enumerate() {
        if own.is_empty() || names[..place].contains(own) {
            let twice = format!("\"{own}\" is there already");
            let what = if own.is_empty() { "the column has no name" } else { twice.as_str() };
            return Err(PlanError(format!("{name}:1: field {}: {what}", place + 1)));
        }
    }
    let mut rows = Vec::new();
    for record in reader.into_records() {
        rows.push(record.map_err(told)?.iter().map(str::to_owned).collect());
        if rows.len() > ROWS {
            return Err(too_many(name));
        }
    }
    Ok(Rows { names, rows })
}

fn json_lines(name: &str, file: &mut impl BufRead) -> Result<Rows, PlanError> {
    let (mut names, mut rows): (Vec<String>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let at =
            |column: usize, what: &dyn fmt::Display| PlanError(format!("{name}:{number}:{column}: {what}"));
        if file.read_line(&mut line).map_err(|error| at(1, &error))? == 0 {
            break;
        }
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
            None => Err(at(1, &format!("it has no \"{wanted}\", which the first row has"))),
        });
        rows.push(row.collect::<Result<_, _>>()?);
        if rows.len() > ROWS {
            return Err(too_many(name));
        }
    }
    Ok(Rows { names, rows })
}

/// A text with `{{name}}` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The column with this place.
    Value(usize),
}

impl Template {
    /// Takes it apart; `what` names it for what is wrong.
    ///
    /// # Errors
    /// A name that the rows do not have, or that does not end, with its column.
    pub fn parse(what: &str, text: &str, rows: &Rows) -> Result<Template, PlanError> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(begin) = rest.find("{{") {
            let column = text[..text.len() - rest.len() + begin].chars().count() + 1;
            let at = |said: String| PlanError(format!("{what}, column {column}: {said}"));
            let inside = &rest[begin + 2..];
            let end = inside.find("}}").ok_or_else(|| at("{{ has no }}".to_owned()))?;
            let name = inside[..end].trim();
            let place = rows.names.iter().position(|own| own == name).ok_or_else(|| {
                at(format!("the data file has no \"{name}\"; it has {}", rows.names.join(", ")))
            })?;
            pieces.push(Piece::Text(rest[..begin].to_owned()));
            pieces.push(Piece::Value(place));
            rest = &inside[end + 2..];
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Template(pieces))
    }

    /// The text with a row's values, as they are.
    pub fn text(&self, rows: &Rows, row: usize) -> String {
        self.with(rows, row, |value, out| out.push_str(value))
    }

    /// The same where it is a URL: what no URL may have in it is written in percent.
    pub fn url(&self, rows: &Rows, row: usize) -> String {
        self.with(rows, row, |value, out| value.bytes().for_each(|byte| push_byte(out, byte)))
    }

    fn with(&self, rows: &Rows, row: usize, write: impl Fn(&str, &mut String)) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value(place) => write(&rows.rows[row][*place], &mut out),
            }
        }
        out
    }
}
