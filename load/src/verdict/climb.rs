//! The ladder's words: what is gained by which step, which step is not worth it, and where nothing can be.

use super::wording::{count, factor};

/// A step must bring so many times the answers of the one before, else it is not worth it.
const WORTH: f64 = 1.1;
/// Below this a step costs something.
const LOSS: f64 = 0.9;
/// Where this share of requests still reaches the API, its answers were not cached.
const NOT_CACHED: f64 = 0.9;

/// A step as it was measured.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Climbed {
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
    /// Whether it has a cache.
    pub is_cached: bool,
    /// Whether an answer was wrong: then it counts for nothing.
    pub wrong: bool,
    /// Whether it adds to what is served and is no attempt at speed (a log, TLS): a loss is then its price.
    pub is_service: bool,
}

/// The sentences for some steps in climbing order, the first being what all is compared with.
///
/// `uncacheable` is why the API's answers may not be stored, where that is known.
pub fn climb(steps: &[Climbed], uncacheable: Option<&str>) -> Vec<String> {
    let Some((first, _)) = steps.split_first() else { return Vec::new() };
    let right: Vec<&Climbed> = steps.iter().filter(|step| !step.wrong && step.rate > 0.0).collect();
    let mut sentences = Vec::new();
    if first.rate <= 0.0 {
        return vec![format!("{} gave no right answer, so there is nothing to compare with.", first.name)];
    }
    if steps.len() == 1 {
        return vec![format!(
            "Nothing but \"{}\" was measured: {} per second.",
            first.name,
            count(first.rate)
        )];
    }
    if let Some(best) = right.iter().max_by(|one, other| one.rate.total_cmp(&other.rate)) {
        let times = best.rate / first.rate;
        if times >= WORTH && best.name != first.name {
            sentences.push(format!(
                "Most answers per second come with \"{}\": {}, {} times the {} of \"{}\".",
                best.name,
                count(best.rate),
                factor(times),
                count(first.rate),
                first.name
            ));
        } else {
            sentences.push(format!(
                "No step gives more than \"{}\" does: {} per second.",
                first.name,
                count(first.rate)
            ));
        }
    }
    sentences.extend(steps_apart(&right));
    sentences.extend(not_cached(&right, first, uncacheable));
    let wrong: Vec<String> = steps.iter().filter(|step| step.wrong).map(|step| quoted(&step.name)).collect();
    if !wrong.is_empty() {
        sentences
            .push(format!("Not counted, because answers were not those of the API: {}.", listed(&wrong)));
    }
    sentences
}

/// What each step brings over the one before, sorted into sentences.
fn steps_apart(right: &[&Climbed]) -> Vec<String> {
    let (mut gains, mut idle, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    let (mut prices, mut unclear) = (Vec::new(), Vec::new());
    for pair in right.windows(2) {
        let (before, step) = (pair[0], pair[1]);
        let times = step.rate / before.rate;
        let text = format!("\"{}\" ({} times the step before)", step.name, factor(times));
        // Rounds that overlap say that the difference may be chance.
        let is_apart = step.low > before.high || step.high < before.low || step.low == step.high;
        if times >= WORTH && is_apart {
            gains.push((times, text));
        } else if times < LOSS && is_apart {
            if step.is_service { prices.push(text) } else { losses.push(text) }
        } else if !is_apart && !(LOSS..WORTH).contains(&times) {
            unclear.push(text);
        } else if !step.is_service {
            idle.push(text);
        }
    }
    gains.sort_by(|one, other| other.0.total_cmp(&one.0));
    let gains: Vec<String> = gains.into_iter().map(|(_, text)| text).collect();
    let kinds = [
        ("What brings something: ", gains),
        ("Not worth it here: ", idle),
        ("What costs more than it brings: ", losses),
        ("What it costs to have it: ", prices),
        ("Not to be told, for the rounds overlap (--rounds and --duration make it clearer): ", unclear),
    ];
    let told = kinds.into_iter().filter(|(_, steps)| !steps.is_empty());
    told.map(|(opening, steps)| format!("{opening}{}.", listed(&steps))).collect()
}

/// Said plainly: what may not be cached gains nothing from any proxy.
fn not_cached(right: &[&Climbed], first: &Climbed, uncacheable: Option<&str>) -> Option<String> {
    let mut cached = right.iter().filter(|step| step.is_cached).peekable();
    cached.peek()?;
    let is_asked = cached.all(|step| step.origin_share.is_some_and(|share| share >= NOT_CACHED));
    if !is_asked {
        return None;
    }
    let best = right.iter().map(|step| step.rate).fold(0.0, f64::max) / first.rate;
    let why = uncacheable.map_or_else(String::new, |why| format!(" ({why})"));
    Some(format!(
        "The API's answers cannot be cached as they are{why}: every request reached it, with a cache too. About 1 times is \
         all that any proxy can give then; here it was {}. What would help is a Cache-Control with a max-age on what is the \
         same for everybody.",
        factor(best)
    ))
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn listed(parts: &[String]) -> String {
    parts.join(", ")
}
