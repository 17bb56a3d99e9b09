//! Variables that the configuration makes out of others: evaluated when first read, and remembered for the request.
//!
//! Before: `conf`'s `declared/made`, `remembered`; next: the ways to make one, a file each.

mod geo;
mod map;
mod split_clients;

use super::{Found, tell};
use crate::remembered::RememberedId;
use crate::request::Request;
use crate::shows::Shows;
use millstream_conf::model::{Level, MadeId, Making};

pub(super) fn append(id: MadeId, request: &Request, out: &mut Vec<u8>) -> Found {
    let remembered = RememberedId::Made(id);
    if request.route.made.append(remembered, out).is_some() {
        return Found::Value;
    }
    let generation = request.generation.clone();
    let Some(made) = generation.http().made.get(usize::from(id.0)) else { return Found::Nothing };
    let Some(making) = &made.making else { return Found::Nothing };
    if !request.route.made.begin(remembered) {
        tell(request, Level::Error, format_args!("cycle while evaluating variable \"{}\"", made.name));
        return Found::Nothing;
    }
    let start = out.len();
    match making {
        Making::Map(map) => map::append(map, request, out),
        Making::Geo(geo) => geo::append(geo, request, out),
        Making::SplitClients(split) => split_clients::append(split, request, out),
    }
    match made.volatile {
        true => request.route.made.end(),
        // What it shows is found by what it is made of.
        false => request.route.made.end_with(Some(&out[start..]), Shows::NOTHING),
    }
    Found::Value
}
