//! The result as rows of a page.
//!
//! Nothing is reckoned here; what a page looks like is `report::steps`'s to say.

use super::result::{Climbed, Figures, Measure};
use crate::report::quantity;
use crate::report::steps::{self, Page, Row};
use std::time::Duration;

/// The page's content.
pub fn page(climbed: &Climbed) -> Page {
    let rows = climbed.measures.chunk_by(|one, other| one.step == other.step).map(|measures| {
        let entry = measures[0].step.entry();
        let mark = measures.iter().find_map(|measure| climbed.mark(measure));
        let mark = mark.map_or_else(String::new, |mark| format!(" ({mark})"));
        Row {
            name: format!("{}{mark}", entry.title),
            what: entry.what.to_owned(),
            expected: None,
            measures: measures.iter().map(shown).collect(),
        }
    });
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
        rows: rows.collect(),
        verdict: climbed.verdict.clone(),
        notes: climbed.notes.clone(),
    }
}

fn shown(measure: &Measure) -> steps::MeasuredParty {
    let time = |microseconds: f64| Duration::from_secs_f64(microseconds / 1e6);
    let party = measure.party.map_or("the API", |party| party.title()).to_owned();
    let (cannot, wrong) = (measure.cannot.clone(), measure.wrong.clone());
    let Some(figures) = &measure.figures else {
        let cannot = cannot.or_else(|| Some("was not measured".to_owned()));
        return steps::MeasuredParty { party, cannot, wrong, ..steps::MeasuredParty::default() };
    };
    let Figures { rate, times, p50, p99, errors, reached, cpu, time_wait, .. } = figures;
    steps::MeasuredParty {
        party,
        rate: rate.median,
        low: rate.least,
        high: rate.most,
        factor: *times,
        p50: Duration::from_micros(*p50),
        p99: Duration::from_micros(*p99),
        origin_requests: *reached,
        bytes: Some(figures.bytes_read),
        errors: errors.total(),
        wrong,
        floor: figures.floor.clone(),
        cannot,
        cpu_proxy: cpu.proxy.map(time),
        cpu_origin: cpu.origin.map(time),
        cpu_generator: Some(time(cpu.generator)),
        time_wait: *time_wait,
    }
}
