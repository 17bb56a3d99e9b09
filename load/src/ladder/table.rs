//! The result as text for a terminal: the answer, one line per step and party, then the other sentences.
//!
//! Pure. Columns that nobody has anything to say in are left out. Next: `report::steps` for the page.

use super::result::{Climbed, Figures, Measure};
use crate::report::paragraph::wrapped;
use crate::report::quantity;
use crate::report::table::FigureTable;

/// The whole text.
pub fn text(climbed: &Climbed) -> String {
    let mut out = climbed.cut_short.map_or_else(String::new, |cut| format!("{}\n\n", cut.words()));
    let (answer, others) = climbed.verdict.split_at(climbed.verdict.len().min(1));
    out.extend(answer.iter().map(|answer| wrapped(answer, 0) + "\n"));
    out += &format!(
        "{}: {} in one go, {}, {}, {} threads, {} cores\n\n",
        climbed.url,
        quantity::duration(climbed.alone_milliseconds * 1000.0),
        climbed.rounds_told(),
        climbed.connections_told(),
        climbed.threads,
        climbed.cores
    );
    out += &table(climbed).text(0);
    out.extend(floors(climbed).map(|words| format!("\n{}", wrapped(&words, 0))));
    for paragraphs in [others, &climbed.notes] {
        out.extend((!paragraphs.is_empty()).then_some('\n'));
        out.extend(paragraphs.iter().map(|paragraph| wrapped(paragraph, 0)));
    }
    out
}

/// A column: its heading, and a cell's text. The first two stand to the left.
type Column = (&'static str, fn(&Measure, Option<&Figures>) -> String);

const COLUMNS: [Column; 13] = [
    ("step", |measure, _| measure.step.entry().title.to_owned()),
    ("", |measure, _| measure.party.map_or(String::new(), |party| party.name().to_owned())),
    ("requests/s", |_, figures| cell(figures, |f| quantity::rate(f.rate.median))),
    ("spread", |_, figures| cell(figures, spread)),
    ("times", |measure, figures| match (&measure.wrong, figures) {
        (Some(_), _) => "wrong".to_owned(),
        (None, figures) => cell(figures, |f| f.times.map_or(String::new(), quantity::factor)),
    }),
    ("p50", |_, figures| cell(figures, |f| quantity::duration(f.p50 as f64))),
    ("p99", |_, figures| cell(figures, |f| quantity::duration(f.p99 as f64))),
    ("errors", |_, figures| cell(figures, |f| quantity::count(f.errors.total()))),
    ("to the API", |_, figures| cell(figures, |f| f.reached.map_or(String::new(), quantity::count))),
    ("CPU µs proxy", |_, figures| cell(figures, |f| microseconds(f.cpu.proxy))),
    ("API", |_, figures| cell(figures, |f| microseconds(f.cpu.origin))),
    ("load", |_, figures| cell(figures, |f| microseconds(Some(f.cpu.generator)))),
    ("TIME_WAIT", |_, figures| cell(figures, |f| f.time_wait.map_or(String::new(), quantity::count))),
];

/// A row for each step and party.
pub(super) fn table(climbed: &Climbed) -> FigureTable {
    let cells = |measure: &Measure| -> Vec<String> {
        COLUMNS.iter().map(|column| column.1(measure, measure.figures.as_ref())).collect()
    };
    let rows: Vec<Vec<String>> = climbed.measures.iter().map(cells).collect();
    let is_used = |place: &usize| rows.iter().any(|row| !row[*place].is_empty());
    let used: Vec<usize> = (1..COLUMNS.len()).filter(is_used).collect();
    let row = |(measure, row): (&Measure, &Vec<String>)| {
        let party = measure.party.map_or("", crate::peer::Party::name);
        let mut line = vec![climbed.name(measure)];
        match &measure.cannot {
            Some(why) => line.push(format!("cannot: {party} {why}")),
            None if measure.figures.is_none() => line.push(format!("not measured {party}")),
            None => line.extend(used.iter().map(|&place| row[place].clone())),
        }
        line
    };
    FigureTable {
        caption: COLUMNS[0].0.to_owned(),
        head: used.iter().map(|&place| COLUMNS[place].0).collect(),
        rows: climbed.measures.iter().zip(&rows).map(row).collect(),
        words: if used.first() == Some(&1) { &[1] } else { &[] },
    }
}

/// What stands at the figures that the generator limits.
fn floors(climbed: &Climbed) -> Option<String> {
    let floors = climbed
        .measures
        .iter()
        .filter_map(|measure| Some((measure, measure.figures.as_ref()?.floor.as_ref()?)));
    let floors: Vec<(&Measure, &String)> = floors.collect();
    let (_, why) = floors.first()?;
    let mut titles: Vec<&str> = floors.iter().map(|(measure, _)| measure.step.entry().title).collect();
    titles.dedup();
    Some(format!(
        "These figures are floors, because the generator could do no more: {} ({why}).",
        titles.join(", ")
    ))
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
