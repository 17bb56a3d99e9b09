//! The ladder's words: what is gained by which step, which step is not worth it, and where nothing can be.

use super::wording::{count, factor};

/// A step must bring so many times the answers of the one before, else it is not worth it.
const WORTH: f64 = 1.1;
/// Below this a step costs something.
const LOSS: f64 = 0.9;
/// From one round alone a step must be so many times faster or slower than the one before for that to be told.
const BEYOND_CHANCE: f64 = 3.0;
/// Where a step takes so many times less of something than the one before, it spares it.
const SPARES: f64 = 2.0;
/// Fewer requests to the API, and fewer sockets, are no number to compare with.
const ENOUGH_REQUESTS: u64 = 10;
const ENOUGH_SOCKETS: u64 = 100;
/// Where this share of requests still reaches the API, its answers were not cached.
const NOT_CACHED: f64 = 0.9;

/// A step as it was measured.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ClimbedStep {
    /// Its name in sentences.
    pub name: String,
    /// Right answers per second, the median of the rounds.
    pub rate: f64,
    /// The lowest round.
    pub low: f64,
    /// The highest round.
    pub high: f64,
    /// Requests that reached the API, per answer; `None`: unknown.
    pub origin_share: Option<f64>,
    /// Requests that reached the API, and in how many seconds.
    pub reached: Option<(u64, f64)>,
    /// CPU microseconds of the proxy per answer.
    pub proxy_cpu: Option<f64>,
    /// Sockets left in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Whether it has a cache.
    pub is_cached: bool,
    /// Whether an answer was wrong: then it counts for nothing.
    pub wrong: bool,
    /// Whether it adds to what is served and is no attempt at speed (a log, TLS, HTTP/2): a loss is then its price.
    pub is_service: bool,
}

impl ClimbedStep {
    /// Whether it differs from another by more than chance makes of it.
    pub fn is_apart_from(&self, before: &ClimbedStep, rounds: u32) -> bool {
        if rounds == 1 {
            // A single round says nothing of chance; only what no chance brings about is told from it.
            return !(1.0 / BEYOND_CHANCE..BEYOND_CHANCE).contains(&(self.rate / before.rate));
        }
        self.low > before.high || self.high < before.low
    }
}

/// What else is known of a climb.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About<'a> {
    /// How often each step was measured.
    pub rounds: u32,
    /// Why the API's answers may not be stored; `None`: its header fields do not forbid it.
    pub uncacheable: Option<&'a str>,
    /// What would help against that.
    pub advice: Option<&'a str>,
}

/// The sentences for some steps in climbing order, the first being what all is compared with.
pub fn climb(steps: &[ClimbedStep], about: About<'_>) -> Vec<String> {
    let Some((first, others)) = steps.split_first() else { return Vec::new() };
    let right: Vec<&ClimbedStep> = steps.iter().filter(|step| !step.wrong && step.rate > 0.0).collect();
    let mut sentences = Vec::new();
    if first.rate <= 0.0 {
        return vec![format!("{} gave no correct answer, so there is nothing to compare with.", first.name)];
    }
    if steps.len() == 1 {
        return vec![format!("Only \"{}\" was measured: {} per second.", first.name, count(first.rate))];
    }
    if let Some(best) = right.iter().max_by(|one, other| one.rate.total_cmp(&other.rate)) {
        sentences.push(most(best, first, about.rounds));
    }
    sentences.extend(steps_apart(&right, about.rounds));
    sentences.extend(not_cached(&right, first, about));
    let wrong: Vec<String> = others.iter().filter(|step| step.wrong).map(|step| quoted(&step.name)).collect();
    if !wrong.is_empty() {
        sentences.push(format!(
            "These steps are not counted, because their answers were not the API's: {}.",
            listed(&wrong)
        ));
    }
    sentences
}

/// Which step gives most.
fn most(best: &ClimbedStep, first: &ClimbedStep, rounds: u32) -> String {
    let times = best.rate / first.rate;
    if times < WORTH || best.name == first.name {
        return format!("No step gives more than \"{}\" does: {} per second.", first.name, count(first.rate));
    }
    if !best.is_apart_from(first, rounds) {
        return format!(
            "No step gives more than \"{}\" by more than chance: {} per second, and {} at best.",
            first.name,
            count(first.rate),
            count(best.rate)
        );
    }
    let (answers, those) = if first.wrong { ("right answers", " right ones") } else { ("answers", "") };
    format!(
        "Most {answers} per second come with \"{}\": {}, {} times the {}{those} of \"{}\".",
        best.name,
        count(best.rate),
        factor(times),
        count(first.rate),
        first.name
    )
}

/// What each step brings over the one before, sorted into sentences.
fn steps_apart(right: &[&ClimbedStep], rounds: u32) -> Vec<String> {
    let (mut gains, mut sparing, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    let (mut losses, mut prices, mut unclear) = (Vec::new(), Vec::new(), Vec::new());
    for pair in right.windows(2) {
        let (before, step) = (pair[0], pair[1]);
        let times = step.rate / before.rate;
        let spared = spared(before, step);
        let told: String = spared.iter().map(|what| format!("; {what}")).collect();
        let as_before = match factor(times).as_str() {
            "1" => "as fast as".to_owned(),
            factor => format!("{factor} times"),
        };
        let text = format!("\"{}\" ({as_before} the step before{told})", step.name);
        let (is_apart, is_near) = (step.is_apart_from(before, rounds), (LOSS..WORTH).contains(&times));
        if times >= WORTH && is_apart {
            gains.push((times, text));
        } else if step.is_service && times < LOSS && is_apart {
            prices.push(text);
        } else if !spared.is_empty() {
            sparing.push(text);
        } else if times < LOSS && is_apart {
            losses.push(text);
        } else if rounds == 1 || !is_near {
            unclear.push(text);
        } else if !step.is_service {
            idle.push(text);
        }
    }
    gains.sort_by(|one, other| other.0.total_cmp(&one.0));
    let gains: Vec<String> = gains.into_iter().map(|(_, text)| text).collect();
    let not_told = match rounds {
        1 => "Inconclusive after one round (--rounds 3 shows what is chance): ",
        _ => "Inconclusive, because the rounds overlap (--rounds and --duration make it clearer): ",
    };
    let kinds = [
        ("Steps that give more: ", gains),
        ("Steps that save something: ", sparing),
        ("Steps that are not worth it here: ", idle),
        ("Steps that cost more than they give: ", losses),
        ("Steps that have a price: ", prices),
        (not_told, unclear),
    ];
    let told = kinds.into_iter().filter(|(_, steps)| !steps.is_empty());
    told.map(|(opening, steps)| format!("{opening}{}.", listed(&steps))).collect()
}

/// What a step takes less of than the one before: requests to the API, sockets, CPU. A log and TLS are there for other
/// things.
fn spared(before: &ClimbedStep, step: &ClimbedStep) -> Vec<String> {
    let mut spared = Vec::new();
    if step.is_service {
        return spared;
    }
    if let (Some((were, long)), Some((are, time))) = (before.reached, step.reached)
        && were >= ENOUGH_REQUESTS
        && long > 0.0
        && time > 0.0
    {
        let (were, now) = (were as f64 / long, are as f64 / time);
        // Fewer of as many: a step that is slower asks less often without sparing anything.
        let is_of_answers = were / before.rate >= SPARES * now / step.rate;
        if are == 0 {
            spared.push("no request reached the API".to_owned());
        } else if is_of_answers && were >= SPARES * now {
            spared.push(format!("{} times fewer requests reached the API", factor(were / now)));
        }
    }
    if let (Some(were), Some(are)) = (before.time_wait, step.time_wait)
        && were >= ENOUGH_SOCKETS
        && were as f64 >= SPARES * are as f64
    {
        spared.push(format!("{} sockets in TIME_WAIT instead of {}", count(are as f64), count(were as f64)));
    }
    if let (Some(were), Some(are)) = (before.proxy_cpu, step.proxy_cpu)
        && were >= SPARES * are
    {
        spared.push(format!("{are:.0} µs of the proxy's CPU per answer instead of {were:.0}"));
    }
    spared
}

/// Said plainly: what may not be cached gains nothing from any proxy.
fn not_cached(right: &[&ClimbedStep], first: &ClimbedStep, about: About<'_>) -> Option<String> {
    let mut cached = right.iter().filter(|step| step.is_cached).peekable();
    cached.peek()?;
    let is_asked = cached.all(|step| step.origin_share.is_some_and(|share| share >= NOT_CACHED));
    if !is_asked {
        return None;
    }
    let Some(why) = about.uncacheable else {
        return Some(
            "Nothing was stored, although the API's header fields allow it: every request reached the API, even with \
             a cache. What it \
             answers under load, or to a proxy, may say otherwise: in front of a configuration that --print gives, \
             X-Cache-Status and \"millstream explain\" tell."
                .to_owned(),
        );
    };
    let cached = right.iter().filter(|step| step.is_cached);
    let best = cached.max_by(|one, other| one.rate.total_cmp(&other.rate));
    let told = best.filter(|best| best.is_apart_from(first, about.rounds) || best.rate < WORTH * first.rate);
    let here = told
        .map_or_else(String::new, |best| format!("; here the factor was {}", factor(best.rate / first.rate)));
    let advice = about.advice.map_or_else(String::new, |advice| format!(" {advice}"));
    Some(format!(
        "The API's answers cannot be cached as they are ({why}): every request reached the API, even with a cache. \
         No proxy can make this faster{here}.{advice}"
    ))
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn listed(parts: &[String]) -> String {
    parts.join(", ")
}
