//! The result for people: the figures of each step and party as a bar and in a table, beside the sentences.
//!
//! Nothing is reckoned here; what it looks like, in a terminal and on a page, is `report::steps`'s to say.

use super::gain;
use super::result::{Climbed, Figures, Measure};
use crate::correctness::How;
use crate::peer::Party;
use crate::report::quantity::{Bytes, Count, Number, Quantity, Rate, Share, Time, Times, moment, plural};
use crate::report::steps::{Bar, Page, Row};
use crate::report::table::{FigureTable, row};

pub fn page(climbed: &Climbed) -> Page {
    let mut rows: Vec<Row> = Vec::new();
    for measure in &climbed.measures {
        let name = climbed.name(measure);
        if measure.party.is_none() || rows.last().is_none_or(|row| row.name != name) {
            rows.push(Row { name, ..Row::default() });
        }
        if let Some(row) = rows.last_mut() {
            row.bars.push(bar(measure));
        }
    }
    let simulated = climbed.is_simulated.then(|| {
        "The API is simulated: the ladder shows typical proportions, not the figures of your API.".to_owned()
    });
    // A cache sends one of them to several clients.
    let unique = (climbed.compared == How::StatusAndLength && gain::recommended(climbed).is_some()).then(|| {
        "The API's responses to the same request differ from each other: store them only if one client may get the response to another's \
         request (a list with the time of its making, but not a new cart, a form's token or a number that counts once)."
            .to_owned()
    });
    let (answer, verdict) = climbed.verdict.split_at(climbed.verdict.len().min(1));
    let (began, alone) = (moment(climbed.began_unix_milliseconds), Time(climbed.alone_milliseconds * 1e3));
    let (rounds, connections) = (climbed.rounds_told(), climbed.connections_told());
    let (threads, cores) = (plural(climbed.threads.into(), "thread"), climbed.cores);
    Page {
        title: format!("The ladder on {}", climbed.url),
        subtitle: format!(
            "{began}: {rounds} for each step, {connections}, {threads}, {cores} cores; one request alone takes {alone}."
        ),
        warnings: climbed
            .cut_short
            .map(|cut| cut.words())
            .into_iter()
            .chain(simulated)
            .chain(unique)
            .collect(),
        answer: answer.to_vec(),
        commands: Vec::new(),
        verdict: verdict.to_vec(),
        rows,
        tables: vec![figures(climbed), what(climbed)],
        notes: climbed.notes.clone(),
    }
}

fn bar(measure: &Measure) -> Bar {
    let (rates, told) = match &measure.figures {
        _ if measure.wrong.is_some() => (None, "wrong responses".to_owned()),
        None => (None, if measure.cannot.is_some() { "cannot" } else { "not measured" }.to_owned()),
        Some(figures) => {
            let rate = &figures.rate;
            let floor = if figures.floor.is_some() { "≥ " } else { "" };
            let times = figures.times.map_or_else(String::new, |times| format!(" · ×{}", Times(times)));
            (Some([rate.median, rate.least, rate.most]), format!("{floor}{}{times}", Rate(rate.median)))
        }
    };
    Bar { party: measure.party.map_or("the API", Party::title).to_owned(), rates, told }
}

type Column = (&'static str, fn(&Measure, &Figures) -> String);

const COLUMNS: [Column; 13] = [
    ("", |measure, _| measure.party.map_or("", Party::name).to_owned()),
    ("requests/s", |_, of| Number(of.rate.median).to_string()),
    ("spread", |_, of| match of.rate.half() {
        Some(_) if of.rounds == 1 => "-".to_owned(),
        half => half.map_or_else(String::new, |half| format!("±{}", Share(half))),
    }),
    ("speedup", |measure, of| match measure.wrong {
        Some(_) => "wrong".to_owned(),
        None => of.times.map_or_else(String::new, |times| format!("×{}", Times(times))),
    }),
    ("p50", |_, of| Time(of.p50 as f64).to_string()),
    // Of a round, as `Latency::tells`.
    ("p99", |_, of| known((of.answers >= 100 * u64::from(of.rounds)).then_some(Time(of.p99 as f64)))),
    ("errors", |_, of| Count(of.errors.total()).to_string()),
    ("to the API", |_, of| known(of.reached.map(Count))),
    ("CPU µs proxy", |_, of| known(of.cpu.proxy.map(Number))),
    ("API", |_, of| known(of.cpu.origin.map(Number))),
    ("load", |_, of| Number(of.cpu.generator).to_string()),
    ("TIME_WAIT", |_, of| known(of.time_wait.map(Count))),
    ("read", |_, of| Bytes(of.bytes_read as f64).to_string()),
];

fn known(quantity: Option<Quantity>) -> String {
    quantity.map_or_else(String::new, |quantity| quantity.to_string())
}

/// A row for each step and party; columns that nobody has anything to say in are left out.
fn figures(climbed: &Climbed) -> FigureTable {
    let cells = |measure: &Measure| -> Option<Vec<String>> {
        let figures = measure.figures.as_ref().filter(|_| measure.cannot.is_none())?;
        Some(COLUMNS.iter().map(|(_, cell)| cell(measure, figures)).collect())
    };
    let all: Vec<Option<Vec<String>>> = climbed.measures.iter().map(cells).collect();
    let is_used = |place: &usize| all.iter().flatten().any(|cells| !cells[*place].is_empty());
    let used: Vec<usize> = (0..COLUMNS.len()).filter(is_used).collect();
    let told = |(measure, cells): (&Measure, &Option<Vec<String>>)| {
        let party = measure.party.map_or("", Party::name);
        let cells = match (&measure.cannot, cells) {
            (None, Some(cells)) => used.iter().map(|&place| cells[place].clone()).collect(),
            (Some(why), _) => vec![format!("cannot: {party} {why}")],
            (None, None) => vec![format!("not measured {party}")],
        };
        row(climbed.name(measure), cells)
    };
    let head: Vec<&str> = used.iter().map(|&place| COLUMNS[place].0).collect();
    let words: &[usize] = if used.first() == Some(&0) { &[1] } else { &[] };
    FigureTable::of("step", &head, words, climbed.measures.iter().zip(&all).map(told))
}

fn what(climbed: &Climbed) -> FigureTable {
    let told = |measure: &Measure| row(climbed.name(measure), [measure.step.entry().what]);
    let mut rows: Vec<Vec<String>> = climbed.measures.iter().map(told).collect();
    rows.dedup_by(|one, other| one[1] == other[1]);
    FigureTable::of("Steps", &["what is different"], &[1], rows)
}
