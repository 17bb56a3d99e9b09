//! The result as text for a terminal: the answer, one line per step and party, then the other sentences.
//!
//! Pure. Columns that nobody has anything to say in are left out. Next: `report::steps` for the page.

use super::result::{Climbed, Figures, Measure};
use crate::report::aligned::aligned;
use crate::report::paragraph::wrapped;
use crate::report::quantity;

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
    out += &table(climbed);
    out.extend(floors(climbed).map(|words| format!("\n{}", wrapped(&words, 0))));
    for paragraphs in [others, &climbed.notes] {
        out.extend((!paragraphs.is_empty()).then_some('\n'));
        out.extend(paragraphs.iter().map(|paragraph| wrapped(paragraph, 0)));
    }
    out
}

/// A column: its heading, and a cell's text; empty where there is nothing to say.
type Column = (&'static str, fn(&Figures) -> Option<String>);

/// Behind step and party.
const COLUMNS: [Column; 11] = [
    ("requests/s", |f| Some(quantity::rate(f.rate.median))),
    // Half the way from the least to the most, in percent of the median; one round has none.
    ("spread", |f| match f.rate.half()? {
        _ if f.rounds == 1 => Some("-".to_owned()),
        half => Some(format!("±{:.0} %", half * 100.0)),
    }),
    (TIMES, |f| f.times.map(quantity::factor)),
    ("p50", |f| Some(quantity::duration(f.p50 as f64))),
    ("p99", |f| Some(quantity::duration(f.p99 as f64))),
    ("errors", |f| Some(quantity::count(f.errors.total()))),
    ("to the API", |f| f.reached.map(quantity::count)),
    ("CPU µs proxy", |f| f.cpu.proxy.map(microseconds)),
    ("API", |f| f.cpu.origin.map(microseconds)),
    ("load", |f| Some(microseconds(f.cpu.generator))),
    ("TIME_WAIT", |f| f.time_wait.map(quantity::count)),
];

const TIMES: &str = "times";

fn table(climbed: &Climbed) -> String {
    let row = |measure: &Measure| {
        let mark = climbed.mark(measure).map_or_else(String::new, |mark| format!(" ({mark})"));
        let step = format!("{}{mark}", measure.step.entry().title);
        let party = measure.party.map_or("", crate::peer::Party::name);
        let figures = match (&measure.cannot, &measure.figures) {
            (Some(why), _) => return vec![step, format!("cannot: {party} {why}")],
            (None, None) => return vec![step, format!("not measured {party}")],
            (None, Some(figures)) => figures,
        };
        let cell = |(heading, cell): &Column| match (&measure.wrong, *heading) {
            (Some(_), TIMES) => "wrong".to_owned(),
            _ => cell(figures).unwrap_or_default(),
        };
        [step, party.to_owned()].into_iter().chain(COLUMNS.iter().map(cell)).collect()
    };
    let head = ["step", ""].into_iter().chain(COLUMNS.iter().map(|(heading, _)| *heading)).map(str::to_owned);
    let mut lines: Vec<Vec<String>> = vec![head.collect()];
    lines.extend(climbed.measures.iter().map(row));
    // Columns that nobody has anything to say in are left out.
    let is_whole = |line: &&mut Vec<String>| line.len() > 2;
    for place in (1..COLUMNS.len() + 2).rev() {
        if lines[1..].iter().all(|line| line.len() == 2 || line[place].is_empty()) {
            lines.iter_mut().filter(is_whole).for_each(|line| _ = line.remove(place));
        }
    }
    let has_parties = lines[0].get(1).is_some_and(String::is_empty);
    aligned(&lines, 1 + usize::from(has_parties))
}

/// What stands at the figures that the generator limits.
fn floors(climbed: &Climbed) -> Option<String> {
    let floor =
        |measure: &Measure| Some((measure.step.entry().title, measure.figures.as_ref()?.floor.clone()?));
    let (mut titles, mut why): (Vec<&str>, Vec<String>) = climbed.measures.iter().filter_map(floor).unzip();
    titles.dedup();
    let why = why.drain(..).next()?;
    Some(format!(
        "These figures are floors, because the generator could do no more: {} ({why}).",
        titles.join(", ")
    ))
}

fn microseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { quantity::count(value.round() as u64) }
}
