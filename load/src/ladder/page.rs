//! The result as a page: a bar for each step and party, and the figures of the text.
//!
//! Nothing is reckoned here; what a page looks like is `report::steps`'s to say.

use super::result::{Climbed, Measure};
use super::table;
use crate::report::quantity::{self, Bytes, Rate, Time};
use crate::report::steps::{Bar, Page, Row};
use crate::report::table::FigureTable;

/// The page's content.
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
    let mut warnings: Vec<String> = climbed.cut_short.map(|cut| cut.words()).into_iter().collect();
    if climbed.is_simulated {
        warnings.push(
            "The API is simulated: it shows the shape of the ladder, not what yours will do.".to_owned(),
        );
    }
    Page {
        title: format!("The ladder on {}", climbed.url),
        subtitle: format!(
            "{}: {} for each step, {}, {} cores; one request alone takes {}.",
            quantity::moment(climbed.began_unix_milliseconds),
            climbed.rounds_told(),
            climbed.connections_told(),
            climbed.cores,
            Time(climbed.alone_milliseconds * 1000.0)
        ),
        warnings,
        verdict: climbed.verdict.clone(),
        rows,
        tables: vec![figures(climbed), remarks(climbed), what(climbed)],
        notes: climbed.notes.clone(),
    }
}

fn party(measure: &Measure) -> String {
    measure.party.map_or("the API", |party| party.title()).to_owned()
}

fn bar(measure: &Measure) -> Bar {
    let (rates, told) = match &measure.figures {
        _ if measure.wrong.is_some() => (None, "wrong answers".to_owned()),
        None => (None, if measure.cannot.is_some() { "cannot" } else { "was not measured" }.to_owned()),
        Some(figures) => {
            let rate = &figures.rate;
            let floor = if figures.floor.is_some() { "≥ " } else { "" };
            let times =
                figures.times.map_or_else(String::new, |times| format!(" · {}", quantity::factor(times)));
            let told = format!("{floor}{}{times}", Rate(rate.median));
            (Some([rate.median, rate.least, rate.most]), told)
        }
    };
    Bar { party: party(measure), rates, told }
}

/// The table of the text, and the bytes that were read.
fn figures(climbed: &Climbed) -> FigureTable {
    let mut table = table::table(climbed);
    table.head.push("read");
    for (row, measure) in table.rows.iter_mut().zip(&climbed.measures) {
        let figures = measure.figures.as_ref().filter(|_| measure.cannot.is_none());
        row.extend(figures.map(|figures| Bytes(figures.bytes_read as f64).to_string()));
    }
    FigureTable { caption: "What each step brings and takes".to_owned(), ..table }
}

fn remarks(climbed: &Climbed) -> FigureTable {
    let told = |measure: &Measure| {
        let floor = measure.figures.as_ref().and_then(|figures| figures.floor.as_ref());
        let remarks = [
            ("wrong answers, so not counted: ", measure.wrong.as_ref()),
            ("cannot: ", measure.cannot.as_ref()),
            ("a floor, not a result: ", floor),
        ];
        let told = remarks.into_iter().filter_map(|(what, why)| Some(format!("{what}{}", why?)));
        vec![climbed.name(measure), party(measure), told.collect::<Vec<_>>().join("; ")]
    };
    FigureTable {
        caption: "What is to be said of them".to_owned(),
        head: vec!["by", "remark"],
        rows: climbed.measures.iter().map(told).filter(|cells| !cells[2].is_empty()).collect(),
        words: &[1, 2],
    }
}

fn what(climbed: &Climbed) -> FigureTable {
    let mut rows: Vec<Vec<String>> = climbed
        .measures
        .iter()
        .map(|measure| vec![climbed.name(measure), measure.step.entry().what.to_owned()])
        .collect();
    rows.dedup_by(|one, other| one[1] == other[1]);
    FigureTable {
        caption: "What each step is".to_owned(),
        head: vec!["what is different"],
        rows,
        words: &[1],
    }
}
