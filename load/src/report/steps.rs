//! Several measurements beside each other as a page: the steps of a ladder, or servers alone and together.
//!
//! Draws only what the rows say: a row that is not there is not drawn, and a wrong answer has no length. The rows are
//! `measures`, the picture is `bars`.

pub use super::measures::{MeasuredParty, Page, Row, RowName};

use super::bars::bars;
use super::drawing::escape;
use super::page::{page, table, warning};
use super::quantity::{bytes, count, duration, factor, rate};

/// The page.
pub fn html(content: &Page) -> String {
    let mut body = format!(
        "<header><h1>{}</h1><p class=\"soft\">{}</p></header>",
        escape(&content.title),
        escape(&content.subtitle)
    );
    for text in &content.warnings {
        body.push_str(&warning(text));
    }
    if !content.verdict.is_empty() {
        body.push_str("<section class=\"verdict\" aria-label=\"Verdict\">");
        body.push_str(&paragraphs(&content.verdict));
        body.push_str("</section>");
    }
    if content.rows.is_empty() {
        body.push_str("<p>Nothing was measured.</p>");
    } else {
        body.push_str(&bars(content));
        body.push_str(&tables(content));
    }
    body.push_str(&paragraphs(&content.notes));
    page(&content.title, &body)
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p>{}</p>", escape(text))).collect()
}

/// A column: its name, and its cell of a row and a measure; empty where it has none.
type FigureColumn = (&'static str, fn(&Row, &MeasuredParty) -> String);

fn optional<Value>(value: Option<Value>, text: impl Fn(Value) -> String) -> String {
    value.map(text).unwrap_or_default()
}

/// What a step brought. Columns that are empty in all rows are left out.
const GAINS: [FigureColumn; 8] = [
    ("By", |_, measure| measure.party.clone()),
    ("Requests/s", |_, measure| {
        let at_least = if measure.floor.is_some() { "≥ " } else { "" };
        if measure.counts() { format!("{at_least}{}", rate(measure.rate)) } else { "–".to_owned() }
    }),
    ("Lowest – highest", |_, measure| {
        // Of a single round there is no lowest and no highest.
        if measure.counts() && measure.high > measure.low {
            format!("{} – {}", rate(measure.low), rate(measure.high))
        } else {
            String::new()
        }
    }),
    ("Factor", |_, measure| optional(measure.factor.filter(|_| measure.counts()), factor)),
    ("Expected/s", |row, _| optional(row.expected, rate)),
    ("Median", |_, measure| latency(measure, measure.p50)),
    ("99%", |_, measure| latency(measure, measure.p99)),
    ("Errors", |_, measure| if measure.cannot.is_some() { String::new() } else { count(measure.errors) }),
];

/// What it took.
const COSTS: [FigureColumn; 7] = [
    ("By", |_, measure| measure.party.clone()),
    ("Reached the origin", |_, measure| optional(measure.origin_requests, count)),
    ("Read", |_, measure| optional(measure.bytes, |value| bytes(value as f64))),
    ("CPU per answer: proxy", |_, measure| optional(measure.cpu_proxy, cpu)),
    ("origin", |_, measure| optional(measure.cpu_origin, cpu)),
    ("generator", |_, measure| optional(measure.cpu_generator, cpu)),
    ("Left in TIME_WAIT", |_, measure| optional(measure.time_wait, count)),
];

/// What is to be said of a measure besides its figures.
fn remark(measure: &MeasuredParty) -> String {
    let remarks = [
        ("wrong answers, so not counted: ", &measure.wrong),
        ("cannot: ", &measure.cannot),
        ("a floor, not a result: ", &measure.floor),
    ];
    let told = remarks.iter().filter_map(|(what, why)| why.as_ref().map(|why| format!("{what}{why}")));
    told.collect::<Vec<_>>().join("; ")
}

fn latency(measure: &MeasuredParty, value: u64) -> String {
    if measure.counts() && value > 0 { duration(value as f64) } else { String::new() }
}

fn cpu(microseconds: f64) -> String {
    duration((microseconds * 10.0).round() / 10.0)
}

fn tables(content: &Page) -> String {
    let pairs: Vec<(&Row, &MeasuredParty)> =
        content.rows.iter().flat_map(|row| row.measures.iter().map(move |measure| (row, measure))).collect();
    let mut html = String::from("<h2>The same in figures</h2>");
    let (row, word) = (content.row, content.row.word());
    html.push_str(&figures(row, &format!("What each {word} brings"), &pairs, &GAINS));
    let remarks: Vec<Vec<String>> = pairs
        .iter()
        .map(|(row, measure)| vec![row.name.clone(), measure.party.clone(), remark(measure)])
        .filter(|cells| !cells[2].is_empty())
        .collect();
    if !remarks.is_empty() {
        html.push_str(&table(
            "What is to be said of them",
            &[row.heading(), "By", "Remark"],
            &remarks,
            &[1, 2],
        ));
    }
    html.push_str(&figures(row, "What it takes", &pairs, &COSTS));
    let what: Vec<Vec<String>> = content
        .rows
        .iter()
        .filter(|row| !row.what.is_empty())
        .map(|row| vec![row.name.clone(), row.what.clone()])
        .collect();
    if !what.is_empty() {
        let head = [row.heading(), "What is different"];
        html.push_str(&table(&format!("What each {word} is"), &head, &what, &[1]));
    }
    html
}

/// A table of those columns that say anything; nothing where none says more than who.
fn figures(
    row: RowName,
    caption: &str,
    pairs: &[(&Row, &MeasuredParty)],
    columns: &[FigureColumn],
) -> String {
    let says = |cell: &fn(&Row, &MeasuredParty) -> String| {
        pairs.iter().any(|(row, measure)| !cell(row, measure).is_empty())
    };
    let shown: Vec<&FigureColumn> = columns.iter().filter(|(_, cell)| says(cell)).collect();
    if shown.len() < 2 {
        return String::new();
    }
    let head: Vec<&str> = std::iter::once(row.heading()).chain(shown.iter().map(|(name, _)| *name)).collect();
    let rows: Vec<Vec<String>> = pairs
        .iter()
        .map(|(row, measure)| {
            std::iter::once(row.name.clone())
                .chain(shown.iter().map(|(_, cell)| cell(row, measure)))
                .collect()
        })
        .collect();
    table(caption, &head, &rows, &[1])
}
