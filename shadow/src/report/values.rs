//! What a report lists of the values that a route varies by.
//!
//! Before: `usual`, `selection`; next: `report`.

use super::{KeyValues, UsualField};
use crate::dimension::Sort;
use crate::plan::bits;
use crate::route::Route;
use crate::usual::{self, Texts};
use crate::verdict::Verdict;

/// The fields that may matter, with their usual values.
pub(super) fn usual_fields(route: &Route, texts: &Texts) -> Vec<UsualField> {
    let of_route = route.dimensions.list.iter().enumerate().filter(|(_, of)| of.sort == Sort::Field);
    let mut missing = usual::NEGOTIATING.to_vec();
    let mut fields: Vec<UsualField> = Vec::new();
    for (number, dimension) in of_route {
        let field = String::from_utf8_lossy(&dimension.name).into_owned();
        missing.retain(|name| **name != *field);
        if dimension.may_matter && dimension.has_variable() {
            let values = || route.usual.of(number, texts).into_iter().map(str::to_owned).collect();
            fields.push(UsualField { field, values: (!dimension.is_unique()).then(values) });
        }
    }
    let absent = |name: &str| UsualField { field: name.to_owned(), values: Some(vec![String::new()]) };
    fields.extend(missing.into_iter().map(absent));
    fields.sort_by(|one, other| one.field.cmp(&other.field));
    fields
}

pub(super) fn key_values(route: &Route, texts: &Texts) -> Option<KeyValues> {
    let mask = route.listed();
    let selected = bits(route.plan.selected).enumerate();
    let (places, listed): (Vec<usize>, Vec<usize>) =
        selected.filter(|(_, number)| mask & (1 << number) != 0).unzip();
    let names = listed.iter().map(|number| route.dimensions.list[*number].label()).collect();
    let text = |(number, value): (&usize, &u32)| route.usual.text(*number, *value, texts).map(str::to_owned);
    let values = route.selection.usual(&places);
    let values = values.iter().filter_map(|values| listed.iter().zip(values).map(text).collect()).collect();
    (mask != 0).then_some(KeyValues { names, values })
}

/// What responses differ by, and what selects among them; each once.
pub(super) fn varies_by(route: &Route, verdict: &Verdict) -> Vec<String> {
    let found = verdict.findings.iter().map(|finding| finding.dimension);
    let mut labels: Vec<String> = Vec::new();
    for label in found.chain(bits(verdict.plan.selected)).map(|number| route.dimensions.list[number].label())
    {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}
