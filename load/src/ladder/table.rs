//! The result as text for a terminal: one line per step and party, then the sentences.
//!
//! Pure. Columns that nobody has anything to say in are left out. Next: `report::steps` for the page.

use super::result::{Climbed, Figures, Measure};
use crate::report::paragraph::wrapped;
use crate::report::quantity;
use std::fmt::Write;

/// The whole text.
pub fn text(climbed: &Climbed) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    _ = writeln!(
        out,
        "{}: {} in one go, {}, {}, {} threads, {} cores\n",
        climbed.url,
        quantity::duration(climbed.alone_milliseconds * 1000.0),
        climbed.rounds_told(),
        climbed.connections_told(),
        climbed.threads,
        climbed.cores
    );
    if let Some(cut) = climbed.cut_short {
        _ = writeln!(out, "{}\n", cut.words());
    }
    table(&mut out, climbed);
    for paragraphs in [&climbed.verdict, &climbed.notes] {
        if !paragraphs.is_empty() {
            out.push('\n');
        }
        for paragraph in paragraphs {
            out.push_str(&wrapped(paragraph, 0));
        }
    }
    out
}

/// A column: its heading, whether it stands to the right, and a cell's text.
type Column = (&'static str, bool, fn(&Measure, Option<&Figures>) -> String);

const COLUMNS: [Column; 13] = [
    ("step", false, |measure, _| measure.step.entry().title.to_owned()),
    ("", false, |measure, _| measure.party.map_or(String::new(), |party| party.name().to_owned())),
    ("requests/s", true, |_, figures| cell(figures, |f| quantity::rate(f.rate.median))),
    ("spread", true, |_, figures| cell(figures, spread)),
    ("times", true, |measure, figures| match (&measure.wrong, figures) {
        (Some(_), _) => "wrong".to_owned(),
        (None, figures) => cell(figures, |f| f.times.map_or(String::new(), quantity::factor)),
    }),
    ("p50", true, |_, figures| cell(figures, |f| quantity::duration(f.p50 as f64))),
    ("p99", true, |_, figures| cell(figures, |f| quantity::duration(f.p99 as f64))),
    ("errors", true, |_, figures| cell(figures, |f| quantity::count(f.errors.total()))),
    ("to the API", true, |_, figures| cell(figures, |f| f.reached.map_or(String::new(), quantity::count))),
    ("CPU µs proxy", true, |_, figures| cell(figures, |f| microseconds(f.cpu.proxy))),
    ("API", true, |_, figures| cell(figures, |f| microseconds(f.cpu.origin))),
    ("load", true, |_, figures| cell(figures, |f| microseconds(Some(f.cpu.generator)))),
    ("TIME_WAIT", true, |_, figures| cell(figures, |f| f.time_wait.map_or(String::new(), quantity::count))),
];

fn table(out: &mut String, climbed: &Climbed) {
    let rows: Vec<Vec<String>> = climbed
        .measures
        .iter()
        .map(|measure| COLUMNS.iter().map(|column| (column.2)(measure, measure.figures.as_ref())).collect())
        .collect();
    let used: Vec<usize> =
        (0..COLUMNS.len()).filter(|&place| rows.iter().any(|row| !row[place].is_empty())).collect();
    let width = |place: usize| {
        let widest = rows.iter().map(|row| row[place].chars().count()).max().unwrap_or(0);
        widest.max(COLUMNS[place].0.chars().count())
    };
    let widths: Vec<usize> = used.iter().map(|&place| width(place)).collect();
    let line = |out: &mut String, cells: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for (&place, &width) in used.iter().zip(&widths) {
            let cell = cells(place);
            let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if COLUMNS[place].1 { (gap, String::new()) } else { (String::new(), gap) };
            _ = write!(text, "{before}{cell}{after}  ");
        }
        _ = writeln!(out, "{}", text.trim_end());
    };
    line(out, &|place| COLUMNS[place].0.to_owned());
    for (measure, row) in climbed.measures.iter().zip(&rows) {
        match &measure.cannot {
            Some(why) => {
                let party = measure.party.map_or("", crate::peer::Party::name);
                _ = writeln!(out, "{:<1$}  cannot: {party} {why}", row[0], widths[0]);
            }
            None if measure.figures.is_none() => {
                let party = measure.party.map_or("", crate::peer::Party::name);
                _ = writeln!(out, "{:<1$}  not measured {party}", row[0], widths[0]);
            }
            None => line(out, &|place| row[place].clone()),
        }
    }
    floors(out, climbed);
}

/// What the marks of the table mean.
fn floors(out: &mut String, climbed: &Climbed) {
    let floors: Vec<(&Measure, &String)> = climbed
        .measures
        .iter()
        .filter_map(|measure| Some((measure, measure.figures.as_ref()?.floor.as_ref()?)))
        .collect();
    if let Some((_, why)) = floors.first() {
        let titles: Vec<&str> = floors.iter().map(|(measure, _)| measure.step.entry().title).collect();
        let mut titles = titles;
        titles.dedup();
        out.push('\n');
        out.push_str(&wrapped(
            &format!(
                "These figures are floors, because the generator could do no more: {} ({why}).",
                titles.join(
                    ", \
             "
                )
            ),
            0,
        ));
    }
}

fn cell(figures: Option<&Figures>, text: impl Fn(&Figures) -> String) -> String {
    figures.map_or(String::new(), text)
}

fn microseconds(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => quantity::count(value.round() as u64),
    }
}

/// Half the way from the least to the most, in percent of the median; one round has none.
fn spread(figures: &Figures) -> String {
    match figures.rate.half() {
        None => String::new(),
        Some(_) if figures.rounds == 1 => "-".to_owned(),
        Some(half) => format!("±{:.0} %", half * 100.0),
    }
}
