//! Several measurements beside each other as a page: the steps of a ladder, or servers alone and together.
//!
//! `ladder` and `capacity` fill plain rows; nothing here knows how they were measured. Bars begin at 0 and are as long as their
//! figures: a step that gains nothing must look like it, and a wrong answer has no length.

use super::page::{escape, figure, page, paragraphs, table, warning};
use super::quantity::{bytes, count, factor, rate, took};
use std::time::Duration;

/// What the page shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// One line: what was measured.
    pub title: String,
    /// A sentence on how.
    pub subtitle: String,
    /// What the reader must not overlook, such as that the origin is simulated.
    pub warnings: Vec<String>,
    /// What a row is.
    pub row: RowName,
    /// From the first to the last.
    pub rows: Vec<Row>,
    /// What it means, a paragraph each.
    pub verdict: Vec<String>,
    /// On the manner of measuring, a paragraph each.
    pub notes: Vec<String>,
}

/// What a row of a page is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowName {
    /// A step of the ladder, each on top of the one before.
    #[default]
    Step,
    /// A case of its own.
    Case,
}

/// A step, or a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// A few words.
    pub name: String,
    /// One sentence: what is different in this step.
    pub what: String,
    /// Requests per second that were to be expected; drawn as a mark.
    pub expected: Option<f64>,
    /// One for each party, the product first.
    pub measures: Vec<MeasuredParty>,
}

/// What one party did in a step. Medians over the rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredParty {
    /// Who: `Millstream`, `nginx`.
    pub party: String,
    /// Requests per second.
    pub rate: f64,
    /// The lowest rate of the rounds.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Times the first step; `None`: not to be told.
    pub factor: Option<f64>,
    /// The median latency.
    pub p50: Duration,
    /// Its 99th percentile.
    pub p99: Duration,
    /// Requests that reached the origin.
    pub origin_requests: Option<u64>,
    /// Bytes read.
    pub bytes: Option<u64>,
    /// Requests that came to nothing good.
    pub errors: u64,
    /// Why the answers are wrong and the figures do not count.
    pub wrong: Option<String>,
    /// Why the rate is only a floor.
    pub floor: Option<String>,
    /// Why the party cannot do this step; there are no figures then.
    pub cannot: Option<String>,
    /// CPU time per answer that the proxy took.
    pub cpu_proxy: Option<Duration>,
    /// The same of the origin.
    pub cpu_origin: Option<Duration>,
    /// The same of the generator.
    pub cpu_generator: Option<Duration>,
    /// Sockets in TIME_WAIT that were left behind.
    pub time_wait: Option<u64>,
}

/// A column: its name, and its cell of a row and a measure; empty where it has none.
type FigureColumn = (&'static str, fn(&Row, &MeasuredParty) -> String);

/// What a step brought. Columns that are empty in all rows are left out.
const GAINS: [FigureColumn; 8] = [
    ("By", |_, measure| measure.party.clone()),
    ("Requests/s", |_, measure| if measure.counts() { measure.told_rate() } else { "–".to_owned() }),
    // Of a single round there is no lowest and no highest.
    ("Lowest – highest", |_, measure| match measure.counts() && measure.high > measure.low {
        true => format!("{} – {}", rate(measure.low), rate(measure.high)),
        false => String::new(),
    }),
    ("Factor", |_, measure| optional(measure.factor.filter(|_| measure.counts()), factor)),
    ("Expected/s", |row, _| optional(row.expected, rate)),
    ("Median", |_, measure| measure.latency(measure.p50)),
    ("99%", |_, measure| measure.latency(measure.p99)),
    ("Errors", |_, measure| if measure.cannot.is_some() { String::new() } else { count(measure.errors) }),
];

/// What it took.
const COSTS: [FigureColumn; 7] = [
    ("By", |_, measure| measure.party.clone()),
    ("Reached the origin", |_, measure| optional(measure.origin_requests, count)),
    ("Read", |_, measure| optional(measure.bytes, |value| bytes(value as f64))),
    ("CPU per answer: proxy", |_, measure| optional(measure.cpu_proxy, took)),
    ("origin", |_, measure| optional(measure.cpu_origin, took)),
    ("generator", |_, measure| optional(measure.cpu_generator, took)),
    ("Left in TIME_WAIT", |_, measure| optional(measure.time_wait, count)),
];

/// Colours of the parties in order of their first appearance; whoever comes later has the last one.
const CLASSES: [&str; 5] = ["first", "second", "third", "fourth", "other"];

/// The page.
pub fn html(content: &Page) -> String {
    let texts = |texts: &[String]| paragraphs(texts.iter().map(String::as_str));
    let mut body: String = content.warnings.iter().map(|text| warning(text)).collect();
    if !content.verdict.is_empty() {
        let verdict = texts(&content.verdict);
        body += &format!("<section class=\"verdict\" aria-label=\"Verdict\">{verdict}</section>");
    }
    if content.rows.is_empty() {
        body.push_str("<p>Nothing was measured.</p>");
    } else {
        body.push_str(&bars(content));
        body.push_str(&tables(content));
    }
    page(&content.title, &content.title, &content.subtitle, &(body + &texts(&content.notes)))
}

impl MeasuredParty {
    /// Whether its rate may be drawn.
    fn counts(&self) -> bool {
        self.wrong.is_none() && self.cannot.is_none()
    }

    fn told_rate(&self) -> String {
        format!("{}{}", if self.floor.is_some() { "≥ " } else { "" }, rate(self.rate))
    }

    /// What stands beside its bar.
    fn told(&self) -> String {
        match (&self.cannot, &self.wrong) {
            (Some(_), _) => "cannot".to_owned(),
            (None, Some(_)) => "wrong answers".to_owned(),
            _ => self.told_rate() + "/s" + &optional(self.factor, |times| format!(" · {}", factor(times))),
        }
    }

    fn latency(&self, value: Duration) -> String {
        if self.counts() && !value.is_zero() { took(value) } else { String::new() }
    }

    /// What is to be said of it besides its figures.
    fn remark(&self) -> String {
        let remarks = [
            ("wrong answers, so not counted: ", &self.wrong),
            ("cannot: ", &self.cannot),
            ("a floor, not a result: ", &self.floor),
        ];
        let told = remarks.iter().filter_map(|(what, why)| why.as_ref().map(|why| format!("{what}{why}")));
        told.collect::<Vec<_>>().join("; ")
    }
}

fn optional<Value>(value: Option<Value>, text: impl Fn(Value) -> String) -> String {
    value.map(text).unwrap_or_default()
}

/// Requests per second as horizontal bars: a group for each row, a bar for each party.
fn bars(page: &Page) -> String {
    let measures = || page.rows.iter().flat_map(|row| &row.measures);
    let mut parties: Vec<&str> = Vec::new();
    for measure in measures() {
        if !parties.contains(&measure.party.as_str()) {
            parties.push(&measure.party);
        }
    }
    let class = |party: &str| {
        let place = parties.iter().position(|other| *other == party).unwrap_or(0);
        CLASSES[place.min(CLASSES.len() - 1)]
    };
    let rates = measures().filter(|measure| measure.counts()).map(|measure| measure.rate.max(measure.high));
    let most = rates.chain(page.rows.iter().filter_map(|row| row.expected)).fold(0.0, f64::max).max(1e-9);
    let percent = |value: f64| value / most * 100.0;
    let bar = |row: &Row, measure: &MeasuredParty| {
        let (party, told) = (escape(&measure.party), escape(&measure.told()));
        // A single party needs no name at each bar.
        let name = if parties.len() > 1 { party.as_str() } else { "" };
        let mut track = match measure.counts() {
            true => format!(
                "<i class=\"bar {}\" style=\"width:{:.1}%\"></i>",
                class(&measure.party),
                percent(measure.rate)
            ),
            false => "<i class=\"void\"></i>".to_owned(),
        };
        // A spread of a pixel or two would only look like a fault of the bar.
        let (low, spread) = (percent(measure.low), percent(measure.high - measure.low));
        if measure.counts() && spread >= 0.5 {
            track += &format!("<i class=\"spread\" style=\"left:{low:.1}%;width:{spread:.1}%\"></i>");
        }
        if let Some(expected) = row.expected {
            track += &format!("<i class=\"expected\" style=\"left:{:.1}%\"></i>", percent(expected));
        }
        let bad = if measure.counts() { "" } else { " bad" };
        format!(
            "<span>{name}</span><span class=\"track\">{track}</span><span class=\"figure{bad}\">{told}</span>"
        )
    };
    let group = |row: &Row| {
        let bars: String = row.measures.iter().map(|measure| bar(row, measure)).collect();
        format!("<b style=\"grid-row:span {}\">{}</b>{bars}", row.measures.len().max(1), escape(&row.name))
    };
    let told = |row: &Row| {
        let told = row.measures.iter().map(|measure| format!("{} {}", measure.party, measure.told()));
        format!("{}: {}", row.name, told.collect::<Vec<_>>().join(", "))
    };
    let mut legend: Vec<(&str, &str)> = parties.iter().map(|party| (class(party), *party)).collect();
    if page.rows.iter().any(|row| row.expected.is_some()) {
        legend.push(("error", "expected"));
    }
    let picture: String = page.rows.iter().map(group).collect();
    let description = page.rows.iter().map(told).collect::<Vec<_>>().join("; ");
    figure(("steps", "Requests per second"), &legend, ("bars", &picture), &description, "")
}

fn tables(content: &Page) -> String {
    let (heading, word) = match content.row {
        RowName::Step => ("Step", "step"),
        RowName::Case => ("Case", "case"),
    };
    let pairs: Vec<(&Row, &MeasuredParty)> =
        content.rows.iter().flat_map(|row| row.measures.iter().map(move |measure| (row, measure))).collect();
    // Of the columns those that say anything; nothing where none says more than who.
    let figures = |caption: &str, columns: &[FigureColumn]| {
        let says =
            |(_, cell): &&FigureColumn| pairs.iter().any(|(row, measure)| !cell(row, measure).is_empty());
        let shown: Vec<&FigureColumn> = columns.iter().filter(says).collect();
        let line = |(row, measure): &(&Row, &MeasuredParty)| {
            std::iter::once(row.name.clone())
                .chain(shown.iter().map(|(_, cell)| cell(row, measure)))
                .collect()
        };
        let head: Vec<&str> = std::iter::once(heading).chain(shown.iter().map(|(name, _)| *name)).collect();
        let lines: Vec<Vec<String>> = pairs.iter().map(line).collect();
        if shown.len() < 2 { String::new() } else { table(caption, &head, &lines, &[1]) }
    };
    let remarks: Vec<Vec<String>> = pairs
        .iter()
        .map(|(row, measure)| vec![row.name.clone(), measure.party.clone(), measure.remark()])
        .filter(|cells| !cells[2].is_empty())
        .collect();
    let what = content.rows.iter().filter(|row| !row.what.is_empty());
    let what: Vec<Vec<String>> = what.map(|row| vec![row.name.clone(), row.what.clone()]).collect();
    [
        "<h2>The same in figures</h2>",
        &figures(&format!("What each {word} brings"), &GAINS),
        &table("What is to be said of them", &[heading, "By", "Remark"], &remarks, &[1, 2]),
        &figures("What it takes", &COSTS),
        &table(&format!("What each {word} is"), &[heading, "What is different"], &what, &[1]),
    ]
    .concat()
}
