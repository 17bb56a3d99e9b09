//! The report as values, as JSON with a published schema, and what its plan does with a request.
//!
//! It contains names, counts, words of paths that five clients have used, and of values only usual ones. Before: `verdict`; next:
//! `words` and `configuration`, which print it.

mod values;

use crate::credentials;
use crate::dimension::{Dimension, Dimensions, Sort};
use crate::names;
use crate::plan::bits;
use crate::reason;
use crate::route::Route;
use crate::segment::{self, Fold, Segment};
use crate::shadow::{REST, Shadow};
use crate::simulation::EXPLICIT;
use crate::statistics::{Mix, ratio_interval};
use crate::verdict::{Keys, Reason, Verdict};
use serde::Serialize;
use values::{key_values, usual_fields, varies_by};

/// What this file is, and which version of it.
pub const SCHEMA: &str = "millstream.shadow/1";

/// Stale hits per hit that are allowed unless it is set: 0.1 %.
pub const STALE_BUDGET: f64 = 0.001;

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[cfg_attr(any(test, feature = "schema"), schemars(title = "A report of millstream shadow"))]
pub struct Report {
    /// What this file is, and which version of it.
    #[cfg_attr(any(test, feature = "schema"), schemars(extend("const" = SCHEMA)))]
    pub schema: &'static str,
    /// The version of Millstream.
    pub millstream: String,
    /// From the first request to the last response.
    pub duration_seconds: f64,
    /// Stale hits per hit that were allowed.
    pub stale_budget: f64,
    pub totals: Totals,
    /// Their numbers are those of the routes; empty if nobody named them.
    pub locations: Vec<String>,
    /// The most valuable ones first: requests times API time.
    pub routes: Vec<RouteReport>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Totals {
    pub requests: u64,
    /// Requests to paths that are not a route of their own: too new, too many, or not in normal form. They are not cached.
    pub requests_of_other_routes: u64,
    pub routes: u64,
    pub cached_routes: u64,
    pub api_seconds: f64,
    pub saved_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct RouteReport {
    /// A path, in which {id}, {uuid}, {hash} and {word} stand for segments.
    pub route: String,
    /// The number of the location that handles it.
    pub location: u32,
    /// GET and HEAD requests.
    pub requests: u64,
    /// Different clients in the sample, at the least.
    pub clients: u64,
    /// Time that the API took for all requests.
    pub api_seconds: f64,
    /// Null: do not cache.
    pub keep_seconds: Option<u32>,
    pub reason: String,
    /// What the traffic could not show about a route that can be cached; `reason` ends with it.
    pub note: Option<String>,
    /// Names such as `cookie session`, `query q`, `header accept-language`, `address`.
    pub varies_by: Vec<String>,
    /// Arguments that change nothing, such as `query utm_source`, or `query utm_*` if that is so of each one with this prefix.
    pub ignores: Vec<String>,
    /// Requests that carry one of these, or any other cookie that is neither in `shares` nor in `varies_by`, are passed on to the API.
    pub bypasses: Vec<String>,
    /// Credentials with which requests are not passed on: what they got is what requests without any credential got.
    pub shares: Vec<String>,
    /// Of these, those of one client: requests with them are served, but what the API sends to them is not stored.
    pub served_only: Vec<String>,
    /// Request fields that a response may depend on, with the values that several clients sent: requests with other values than these,
    /// or with another such field, are passed on. Accept, Accept-Language, Origin, and those that `$unlisted_fields` names.
    pub usual: Vec<UsualField>,
    /// Of what is in the key besides the URL, the values that several clients sent: requests with others are passed on. Null: with any.
    pub key_values: Option<KeyValues>,
    /// Harmless differences between responses to identical requests.
    pub noise: Vec<String>,
    /// Routes whose requests with unsafe methods were followed by changes.
    pub changed_by: Vec<String>,
    /// Simulated in the sample.
    pub would_be_hits: u64,
    /// Of these, those with an older response than the API gave.
    pub stale: u64,
    /// The mean age of the stale ones.
    pub stale_age_seconds: Option<f64>,
    /// Responses that another client would have got wrongly.
    pub leaks: u64,
    /// A 95 % interval for as many requests of other clients.
    pub hit_ratio: [f64; 2],
    pub saved_seconds: f64,
    /// What is missing for a verdict.
    pub needs: Option<Needs>,
    /// Whether the lifetime is that of the API's own header.
    #[serde(skip)]
    pub(crate) is_explicit: bool,
    /// Whether responses had a lifetime of their own.
    #[serde(skip)]
    pub(crate) has_explicit: bool,
    #[serde(skip)]
    pub(crate) segments: Vec<Segment>,
    /// What {word} stands for if it is cached, with a slash between several of one path; nothing else is.
    #[serde(skip)]
    pub(crate) words: Vec<String>,
    #[serde(skip)]
    pub(crate) selected: Vec<(Sort, String)>,
    #[serde(skip)]
    pub(crate) shared: Vec<(Sort, String)>,
    /// Those of `served_only`.
    #[serde(skip)]
    pub(crate) unstored: Vec<(Sort, String)>,
    #[serde(skip)]
    pub(crate) bypassed: Vec<(Sort, String)>,
    #[serde(skip)]
    pub(crate) ignored: Vec<String>,
}

/// A request field and its usual values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct UsualField {
    /// In lower case.
    pub field: String,
    /// The most frequent ones first; an empty one stands for requests without the field. Null: it has another one in each request, so
    /// any is usual.
    pub values: Option<Vec<String>>,
}

/// What is in the key, and its usual values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct KeyValues {
    /// As in `varies_by`.
    pub names: Vec<String>,
    /// The most frequent combinations first, with a value for each name: empty if requests do not have it.
    pub values: Vec<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Needs {
    /// More requests; 100,000 stands for many.
    pub requests: u64,
    /// More clients.
    pub clients: u64,
}

impl Needs {
    /// What proves, at the least, that credentials change nothing.
    const WITHOUT_CREDENTIALS: Needs =
        Needs { requests: credentials::ENOUGH as u64, clients: credentials::ENOUGH_CLIENTS as u64 };
}

impl Report {
    /// The verdicts on all that was seen. `budget`: stale hits per hit, such as [`STALE_BUDGET`].
    pub fn of(shadow: &Shadow, millstream: &str, budget: f64) -> Report {
        let mut keys: Vec<Keys<'_>> = shadow.routes.iter().map(|_| Keys::default()).collect();
        for entry in shadow.sample.entries.values() {
            keys[entry.route as usize].add(&shadow.routes[entry.route as usize], entry);
        }
        let mut routes: Vec<RouteReport> = (1..shadow.routes.len())
            .filter(|number| shadow.routes[*number].requests > 0)
            .filter_map(|number| route(shadow, number as u32, &keys[number], budget))
            .collect();
        strike_routes_of_their_own(&mut routes);
        routes.sort_by(|one, other| {
            let value = |route: &RouteReport| route.api_seconds;
            value(other).total_cmp(&value(one)).then_with(|| one.route.cmp(&other.route))
        });
        let listed: u64 = routes.iter().map(|route| route.requests).sum();
        let all: u64 = shadow.routes.iter().map(|route| route.requests).sum();
        let totals = Totals {
            requests: shadow.requests,
            requests_of_other_routes: all - listed,
            routes: routes.len() as u64,
            cached_routes: routes.iter().filter(|route| route.keep_seconds.is_some()).count() as u64,
            api_seconds: rounded(routes.iter().map(|route| route.api_seconds).sum()),
            saved_seconds: rounded(routes.iter().map(|route| route.saved_seconds).sum()),
        };
        Report {
            schema: SCHEMA,
            millstream: millstream.to_owned(),
            duration_seconds: shadow.last.saturating_sub(shadow.first) as f64 / 1_000.0,
            stale_budget: budget,
            totals,
            locations: Vec::new(),
            routes,
        }
    }

    /// With the names of the locations, by their numbers.
    pub fn naming(self, locations: Vec<String>) -> Report {
        Report { locations, ..self }
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The number in `routes` of the route that the recommended configuration applies to a path.
    pub fn route_of(&self, location: u32, path: &[u8]) -> Option<usize> {
        let segments: Vec<&[u8]> = path.strip_prefix(b"/")?.split(|byte| *byte == b'/').collect();
        let fits = |route: &RouteReport| route.location == location && route.fits(&segments);
        (0..self.routes.len())
            .filter(|number| fits(&self.routes[*number]))
            .min_by_key(|number| order(&self.routes[*number]))
    }
}

impl RouteReport {
    /// Whether the route, or its location if it is cached, is that of a path.
    fn fits(&self, path: &[&[u8]]) -> bool {
        let fits = self.segments.len() == path.len()
            && self.segments.iter().zip(path).all(|(segment, text)| fits(segment, text));
        if !fits || self.words.is_empty() {
            return fits;
        }
        let is_word = |place: &usize| self.segments[*place] == Segment::Any(Fold::Word);
        let words: Vec<&[u8]> = (0..path.len()).filter(is_word).map(|place| path[place]).collect();
        let words = words.join(&b'/');
        self.words.iter().any(|of| of.as_bytes() == words)
    }
}

/// A word that is a route of its own in its place is none of {word}.
fn strike_routes_of_their_own(routes: &mut [RouteReport]) {
    for number in 0..routes.len() {
        if routes[number].words.is_empty() {
            continue;
        }
        let segments = routes[number].segments.clone();
        let places: Vec<usize> =
            (0..segments.len()).filter(|place| segments[*place] == Segment::Any(Fold::Word)).collect();
        let is_known = |place: usize, word: &str| {
            routes.iter().any(|other| {
                other.location == routes[number].location
                    && other.segments.get(..place) == Some(&segments[..place])
                    && matches!(other.segments.get(place), Some(Segment::Word(of)) if **of == *word.as_bytes())
            })
        };
        let is_none =
            |words: &String| !words.split('/').zip(&places).any(|(word, place)| is_known(*place, word));
        let words: Vec<String> =
            routes[number].words.iter().filter(|words| is_none(words)).cloned().collect();
        if words.is_empty() {
            routes[number].keep_seconds = None;
            routes[number].note = None;
            routes[number].hit_ratio = [0.0, 0.0];
            routes[number].saved_seconds = 0.0;
            "all of its words are routes of their own".clone_into(&mut routes[number].reason);
        }
        routes[number].words = words;
    }
}

/// Arguments that are ignored, by name, or by the prefix if each one with it is.
fn ignored(dimensions: &Dimensions, mask: u64) -> Vec<String> {
    let list: Vec<&Dimension> = bits(mask).map(|number| &dimensions.list[number]).collect();
    let prefix = |dimension: &Dimension| names::campaign_prefix(&dimension.name);
    let is_whole = |prefix: usize| {
        let count = list.iter().filter(|of| names::campaign_prefix(&of.name) == Some(prefix)).count();
        count >= 2 && dimensions.with_campaign_prefix(prefix) == Some(count)
    };
    let name = |dimension: &&Dimension| match prefix(dimension).filter(|prefix| is_whole(*prefix)) {
        Some(prefix) => format!("{}*", names::CAMPAIGN_PREFIXES[prefix]),
        None => String::from_utf8_lossy(&dimension.name).into_owned(),
    };
    let mut names: Vec<String> = Vec::new();
    for name in list.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Of two routes that fit a path, the one with the more exact segment counts.
pub(crate) fn order(route: &RouteReport) -> Vec<u8> {
    let exactness = |segment: &Segment| match segment {
        Segment::Word(_) => 0,
        Segment::Any(fold) => 1 + *fold as u8,
    };
    route.segments.iter().map(exactness).collect()
}

pub(crate) fn fits(segment: &Segment, text: &[u8]) -> bool {
    match segment {
        Segment::Word(word) => **word == *text,
        Segment::Any(Fold::Word) => !text.is_empty() && segment::fold(text).is_none(),
        Segment::Any(fold) => segment::fold(text) == Some(*fold),
    }
}

#[cfg(any(test, feature = "schema"))]
pub fn schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(Report)).unwrap_or_default() + "\n"
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1_000.0).round() / 1_000.0
}

fn shown(shadow: &Shadow, number: u32) -> Option<(String, Vec<Segment>)> {
    let node = shadow.routes[number as usize].node;
    let segments = shadow.paths.segments(node, number)?;
    let may_be_shown = shadow.paths.may_be_shown(node);
    let label = |(segment, may): (&Segment, bool)| match may {
        true => format!("/{}", segment.label()),
        false => "/{hidden}".to_owned(),
    };
    let text: String = segments.iter().zip(may_be_shown).map(label).collect();
    Some((text, segments))
}

fn route(shadow: &Shadow, number: u32, keys: &Keys<'_>, budget: f64) -> Option<RouteReport> {
    let of = &shadow.routes[number as usize];
    let (label, segments) = shown(shadow, number)?;
    let is_of_words = segments.iter().any(|segment| matches!(segment, Segment::Any(Fold::Word)));
    let is_folded = segments.iter().any(|segment| matches!(segment, Segment::Any(_)));
    let verdict = Verdict::of(of, keys, is_folded, is_of_words, budget);
    let mean = of.milliseconds as f64 / f64::from(of.tally.sampled.max(1)) / 1_000.0;
    let api_seconds = rounded(of.requests as f64 * mean);
    let keep = verdict.keep;
    let words = match keep {
        Some((lifetime, _)) if is_of_words => keys.words(lifetime),
        _ => Vec::new(),
    };
    let hit_ratio = keep.map_or([0.0, 0.0], |(lifetime, _)| {
        hit_ratio(of, &keys.ratios(lifetime, is_of_words.then_some(&words)))
    });
    let ignored = ignored(&of.dimensions, verdict.plan.ignored);
    let label_of = |number: usize| of.dimensions.list[number].label();
    let named = |mask: u64| -> Vec<(Sort, String)> {
        bits(mask)
            .map(|number| &of.dimensions.list[number])
            .map(|dimension| (dimension.sort, String::from_utf8_lossy(&dimension.name).into_owned()))
            .collect()
    };
    let plan = verdict.plan;
    let passed = reason::carried(of);
    let found_leaks: u64 = verdict.findings.iter().map(|finding| finding.table.differing_with).sum();
    let is_personal = matches!(verdict.reason, Reason::Differs);
    let leaks = if is_personal { found_leaks } else { verdict.outcomes.leaks.max(u64::from(of.confirmed)) };
    let note = keep.and_then(|_| of.address_is_unseen());
    let reason = reason::sentence(of, &verdict, budget);
    Some(RouteReport {
        route: label,
        location: of.location,
        requests: of.requests,
        clients: u64::from(of.clients()),
        api_seconds,
        keep_seconds: keep.map(|(_, seconds)| seconds),
        reason: note.iter().fold(reason, |reason, note| format!("{reason}; {note}")),
        note,
        varies_by: varies_by(of, &verdict),
        ignores: ignored.iter().map(|name| format!("query {name}")).collect(),
        bypasses: bits(passed).map(label_of).collect(),
        shares: bits(plan.harmless).map(label_of).collect(),
        served_only: bits(plan.harmless & !plan.open).map(label_of).collect(),
        usual: keep.map_or_else(Vec::new, |_| usual_fields(of, &shadow.texts)),
        key_values: keep.and_then(|_| key_values(of, &shadow.texts)),
        noise: of.leniency.kinds().into_iter().map(str::to_owned).collect(),
        changed_by: causes(of).filter_map(|cause| Some(shown(shadow, cause)?.0)).collect(),
        would_be_hits: verdict.outcomes.hits,
        stale: verdict.outcomes.stale,
        stale_age_seconds: (verdict.outcomes.stale > 0)
            .then(|| rounded(verdict.outcomes.stale_age as f64 / verdict.outcomes.stale as f64 / 1_000.0)),
        leaks,
        hit_ratio,
        saved_seconds: rounded(api_seconds * f64::midpoint(hit_ratio[0], hit_ratio[1])),
        needs: needs(&verdict.reason),
        is_explicit: keep.is_some_and(|(lifetime, _)| lifetime == EXPLICIT),
        has_explicit: of.tally.explicit > 0,
        segments,
        words: words.iter().map(|words| String::from_utf8_lossy(words).into_owned()).collect(),
        selected: named(plan.selected),
        shared: named(plan.harmless),
        unstored: named(plan.harmless & !plan.open),
        bypassed: named(passed),
        ignored,
    })
}

fn needs(reason: &Reason) -> Option<Needs> {
    match *reason {
        Reason::Needs { requests, clients } => Some(Needs { requests, clients }),
        Reason::Credentials => Some(Needs::WITHOUT_CREDENTIALS),
        _ => None,
    }
}

/// The routes whose unsafe requests came before at least half of the changes.
fn causes(route: &Route) -> impl Iterator<Item = u32> {
    let changes = u64::from(route.changes.max(1));
    let is_one = move |(cause, count): &&(u32, u32)| {
        *cause != REST && *count >= 5 && u64::from(*count) * 10 >= changes * 5
    };
    route.hints.iter().filter(is_one).map(|(cause, _)| *cause)
}

fn hit_ratio(route: &Route, keys: &[(u32, u32)]) -> [f64; 2] {
    const MOST_STRANGERS: usize = 16_384;
    let mut list = keys.to_vec();
    list.extend(std::iter::repeat_n((1, 0), (route.strangers as usize).min(MOST_STRANGERS)));
    let plan = route.plan;
    let is_often_unusual = route.unusual.saturating_mul(50) > route.planned;
    let tells_apart =
        plan.selected != 0 || route.passed > 0 || plan.open != plan.harmless || is_often_unusual;
    let mix = Mix {
        clients: if tells_apart { route.clients() } else { 0 },
        passed: f64::from(route.passed + route.unusual) / f64::from(route.planned.max(1)),
        storing: f64::from(route.storing) / f64::from((route.planned - route.passed - route.unusual).max(1)),
        values: route.selection.len(),
    };
    ratio_interval(&list, mix).map(|ratio| (ratio * 10_000.0).round() / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request;
    use crate::hash::Key;

    /// The names of arguments that are all ignored, but for one.
    fn ignored_of(queries: &[&str], kept: &str) -> Vec<String> {
        let (key, mut dimensions) = (Key::from_seed(1), Dimensions::new());
        for query in queries {
            dimensions.read(&key, &request(Some(query), 1), std::iter::empty());
        }
        let mask = dimensions.mask(|of| of.sort == Sort::Argument && *of.name != *kept.as_bytes());
        ignored(&dimensions, mask)
    }

    #[test]
    fn a_prefix_stands_for_its_arguments_only_if_each_one_that_came_is_ignored() {
        const USUAL: &str = "utm_source=a&utm_medium=b&gclid=c&ref=d";
        assert_eq!(ignored_of(&[USUAL, USUAL], ""), ["utm_*", "gclid", "ref"]);
        assert_eq!(ignored_of(&[USUAL, USUAL], "utm_medium"), ["utm_source", "gclid", "ref"]);
        let once = ignored_of(&[USUAL, USUAL, "utm_id=1"], "");
        assert_eq!(once, ["utm_source", "utm_medium", "gclid", "ref"], "one that came once is not proved");
        assert_eq!(ignored_of(&["utm_source=a", "utm_source=a"], ""), ["utm_source"], "one needs no prefix");
    }
}
