//! Several measurements beside each other, in a terminal and as a page: the steps of a ladder, or servers alone and together.
//!
//! `ladder` and `capacity` say what stands there; nothing here knows how it was measured. Bars begin at 0 and are as long as their
//! figures: a step that gains nothing must look like it, and a wrong answer has no length.

use super::page::{escape, figure, page, paragraphs, section, warning};
use super::quantity::plural;
use super::table::FigureTable;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    pub title: String,
    pub subtitle: String,
    /// What the reader must not overlook, such as that the origin is simulated.
    pub warnings: Vec<String>,
    /// What it comes to, a paragraph each.
    pub answer: Vec<String>,
    /// Commands by which the reader has what the answer recommends.
    pub commands: Vec<String>,
    /// How that is known and what else it means, a paragraph each.
    pub verdict: Vec<String>,
    /// The picture: from the first to the last.
    pub rows: Vec<Row>,
    /// The same in figures; the first is the one for a terminal, too.
    pub tables: Vec<FigureTable>,
    /// On the manner of measuring, a paragraph each.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub name: String,
    /// Requests per second that were to be expected; drawn as a mark.
    pub expected: Option<f64>,
    /// One for each party, the product first.
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bar {
    /// Who: `Millstream`, `nginx`.
    pub party: String,
    /// The median, the lowest and the highest requests per second of the rounds; `None`: there is nothing that counts.
    pub rates: Option<[f64; 3]>,
    pub told: String,
}

/// The most remarks of a brief report.
const BULLETS: usize = 5;

/// Colours of the parties in order of their first appearance; whoever comes later has the last one.
const CLASSES: [&str; 5] = ["first", "second", "third", "fourth", "other"];

impl Page {
    /// For a terminal of so many columns: the answer and how to have it, the figures that have room beside each other, and what
    /// must be known first. Paragraphs are one line each.
    pub fn brief(&self, columns: usize) -> String {
        let reasons = self.verdict.iter().chain(&self.notes);
        let bullets: String = reasons.clone().take(BULLETS).map(|text| format!("  - {text}\n")).collect();
        let left = reasons.skip(BULLETS).count() as u64;
        let table = self.tables.first();
        let more = match (left, table.is_some_and(|table| table.is_wider_than(columns))) {
            (0, false) => String::new(),
            (0, true) => "With --verbose: all figures.\n".to_owned(),
            (left, false) => format!("With --verbose: {}.\n", plural(left, "further remark")),
            (left, true) => format!("With --verbose: all figures and {}.\n", plural(left, "further remark")),
        };
        let table = table.map_or_else(String::new, |table| table.first_block(0, columns));
        joined([self.head(), self.subject(), table, bullets, more])
    }

    /// The same with everything.
    pub fn text(&self, columns: usize) -> String {
        let table = self.tables.first().map_or_else(String::new, |table| table.text(0, columns));
        joined([self.head(), self.subject(), table, lines(&self.verdict), lines(&self.notes)])
    }

    fn head(&self) -> String {
        let commands: String = self.commands.iter().map(|command| format!("    {command}\n")).collect();
        let commands = if commands.is_empty() { commands } else { format!("To set it up:\n\n{commands}") };
        joined([lines(&self.answer) + &lines(&self.warnings), commands])
    }

    fn subject(&self) -> String {
        format!("{}\n{}\n", self.title, self.subtitle)
    }

    pub fn html(&self) -> String {
        let mut body: String = self.warnings.iter().map(|text| warning(text)).collect();
        let verdict = paragraphs(self.answer.iter().chain(&self.verdict).map(String::as_str));
        if !verdict.is_empty() {
            body += &format!("<section class=\"verdict\" aria-label=\"Verdict\">{verdict}</section>");
        }
        if self.rows.is_empty() && self.tables.is_empty() {
            body += &paragraphs(["Nothing was measured."]);
        }
        if !self.rows.is_empty() {
            body += &(bars(&self.rows) + &section("The same in figures"));
        }
        body.extend(self.tables.iter().map(FigureTable::html));
        body += &paragraphs(self.notes.iter().map(String::as_str));
        page(&self.title, &self.title, &self.subtitle, &body)
    }
}

fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text}\n")).collect()
}

/// With an empty line between parts that are not empty.
fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn bars(rows: &[Row]) -> String {
    let all = || rows.iter().flat_map(|row| &row.bars);
    let mut parties: Vec<&str> = Vec::new();
    for bar in all() {
        if !parties.contains(&bar.party.as_str()) {
            parties.push(&bar.party);
        }
    }
    let class = |party: &str| {
        let place = parties.iter().position(|other| *other == party).unwrap_or(0);
        CLASSES[place.min(CLASSES.len() - 1)]
    };
    let rates = all().filter_map(|bar| bar.rates).flatten().chain(rows.iter().filter_map(|row| row.expected));
    let most = rates.fold(1e-9, f64::max);
    let percent = |value: f64| value / most * 100.0;
    let bar = |row: &Row, bar: &Bar| {
        // A single party needs no name at each bar.
        let name = if parties.len() > 1 { escape(&bar.party) } else { String::new() };
        let (mut track, bad) = match bar.rates {
            Some([rate, ..]) => {
                let (class, width) = (class(&bar.party), percent(rate));
                (format!("<i class=\"bar {class}\" style=\"width:{width:.1}%\"></i>"), "")
            }
            None => ("<i class=\"void\"></i>".to_owned(), " bad"),
        };
        // A spread of a pixel or two would only look like a fault of the bar.
        if let Some([_, low, high]) = bar.rates
            && percent(high - low) >= 0.5
        {
            let (left, width) = (percent(low), percent(high - low));
            track += &format!("<i class=\"spread\" style=\"left:{left:.1}%;width:{width:.1}%\"></i>");
        }
        if let Some(expected) = row.expected {
            track += &format!("<i class=\"expected\" style=\"left:{:.1}%\"></i>", percent(expected));
        }
        let told = escape(&bar.told);
        format!(
            "<span>{name}</span><span class=\"track\">{track}</span><span class=\"figure{bad}\">{told}</span>"
        )
    };
    let group = |row: &Row| {
        let bars: String = row.bars.iter().map(|each| bar(row, each)).collect();
        format!("<b style=\"grid-row:span {}\">{}</b>{bars}", row.bars.len().max(1), escape(&row.name))
    };
    let told = |row: &Row| {
        let told = row.bars.iter().map(|bar| format!("{} {}", bar.party, bar.told));
        format!("{}: {}", row.name, told.collect::<Vec<_>>().join(", "))
    };
    let mut legend: Vec<(&str, &str)> = parties.iter().map(|party| (class(party), *party)).collect();
    if rows.iter().any(|row| row.expected.is_some()) {
        legend.push(("error", "expected"));
    }
    let picture: String = rows.iter().map(group).collect();
    let description = rows.iter().map(told).collect::<Vec<_>>().join("; ");
    figure(("steps", "Requests per second"), &legend, ("bars", &picture), &description, "")
}
