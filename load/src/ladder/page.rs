//! The result as rows of a page.
//!
//! Nothing is reckoned here; what a page looks like is `report::steps`'s to say.

use super::result::{Climbed, Figures, Measure};
use crate::report::quantity;
use crate::report::steps::{self, Page, Row};
use crate::step::Step;
use std::time::Duration;

/// The page's content.
pub fn page(climbed: &Climbed) -> Page {
    let mut rows: Vec<(Step, Row)> = Vec::new();
    for measure in &climbed.measures {
        if rows.last().is_none_or(|(step, _)| *step != measure.step) {
            let entry = measure.step.entry();
            let mark = climbed.mark(measure).map_or_else(String::new, |mark| format!(" ({mark})"));
            let row =
                Row { name: format!("{}{mark}", entry.title), what: entry.what.to_owned(), ..Row::default() };
            rows.push((measure.step, row));
        }
        if let Some((_, row)) = rows.last_mut() {
            row.measures.push(shown(measure));
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
            quantity::duration(climbed.alone_milliseconds * 1000.0)
        ),
        warnings,
        row: steps::RowName::Step,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        verdict: climbed.verdict.clone(),
        notes: climbed.notes.clone(),
    }
}

fn shown(measure: &Measure) -> steps::MeasuredParty {
    let named = steps::MeasuredParty {
        party: measure.party.map_or("the API", |party| party.title()).to_owned(),
        cannot: measure.cannot.clone(),
        wrong: measure.wrong.clone(),
        ..steps::MeasuredParty::default()
    };
    let Some(figures) = &measure.figures else {
        let cannot = named.cannot.or_else(|| Some("was not measured".to_owned()));
        return steps::MeasuredParty { cannot, ..named };
    };
    let time = |microseconds: f64| Duration::from_secs_f64(microseconds / 1e6);
    let Figures { rate, times, p50, p99, errors, reached, cpu, time_wait, .. } = figures;
    steps::MeasuredParty {
        rate: rate.median,
        low: rate.least,
        high: rate.most,
        factor: *times,
        p50: Duration::from_micros(*p50),
        p99: Duration::from_micros(*p99),
        origin_requests: *reached,
        bytes: Some(figures.bytes_read),
        errors: errors.total(),
        floor: figures.floor.clone(),
        cpu_proxy: cpu.proxy.map(time),
        cpu_origin: cpu.origin.map(time),
        cpu_generator: Some(time(cpu.generator)),
        time_wait: *time_wait,
        ..named
    }
}
