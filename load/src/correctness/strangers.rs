//! Requests of somebody else: whether a step gives one client what another one got.
//!
//! A cache that leaves a field out of its key wins every race and is wrong. So the API is asked directly as a few
//! strangers would; where it answers one of them differently, every step has to do the same, be it in a body or in a header
//! field (`telling_fields`). Where its bodies change by themselves, what they have in common is compared (`marks`); a
//! difference in what changes anyway cannot be seen.

use super::marks::Marks;
use super::{Direct, How, Standard, telling_fields};

/// A request as somebody else would send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// In which field it differs.
    pub field: String,
    /// All its further fields.
    pub fields: Vec<(String, String)>,
}

/// A stranger whom the API answers differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// Who.
    pub stranger: Stranger,
    /// What the API answers.
    pub answer: Direct,
    /// By which words, where bodies change by themselves and the status is the same.
    pub marks: Marks,
}

impl Telling {
    /// Why the API's answers are not to be cached as they are: it answers by the field and does not name it in `Vary` (RFC 9110 §12.5.5);
    /// `None`: it does.
    pub fn unnamed(&self, own: &Direct) -> Option<String> {
        let field = &self.stranger.field;
        let names = |value: &str| {
            value.split(',').any(|name| name.trim() == "*" || name.trim().eq_ignore_ascii_case(field))
        };
        if own.all("vary").chain(self.answer.all("vary")).any(names) {
            return None;
        }
        let by = match self.marks.fields.as_slice() {
            [] => field.clone(),
            fields => format!("{field} ({} differs)", fields.join(", ")),
        };
        let is_of_users = USERS.iter().any(|name| name.eq_ignore_ascii_case(field));
        Some(if is_of_users {
            format!(
                "The API's answers are personal and not to be cached as they are: it answers each user differently by {by} and \
                 says neither \"Cache-Control: private\" nor \"Vary: {field}\"."
            )
        } else {
            format!(
                "The API's answers are not to be cached as they are: it answers by {by} and does not say so, and a cache would give \
                 one client what another one got. What would help is \"Vary: {field}\"."
            )
        })
    }
}

/// Fields that say who asks.
const USERS: [&str; 3] = ["Cookie", "Authorization", "X-Api-Key"];

/// Whose request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The user's own.
    User,
    /// The stranger's.
    Stranger,
}

/// What asking the API as a stranger came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Apart {
    /// Nothing tells its answers from those to the user.
    No,
    /// It answers the stranger so, by these words where bodies change.
    Yes(Direct, Marks),
    /// It answers the user with another body than before, so bodies cannot be compared.
    Changed,
}

/// The most fields of the user's own that are tried without.
const MOST: usize = 8;

/// What clients differ in, and APIs answer by.
const FIELDS: [(&str, &str); 7] = [
    // A browser's: who can answer in nothing of it is not forbidden to.
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "tlh"),
    ("Cookie", "session=ladder-1"),
    ("Authorization", "Bearer ladder-1"),
    ("X-Api-Key", "ladder-1"),
    ("Origin", "https://ladder.invalid"),
    ("User-Agent", "Mozilla/5.0 (iPhone; like ladder)"),
];

/// Fields that say how a message is carried, not who asks for what.
const CARRIAGE: [&str; 6] =
    ["host", "connection", "content-length", "transfer-encoding", "content-type", "accept-encoding"];

/// The strangers to a request with these fields: one field more or another value, or one of its own left out.
pub fn strangers(fields: &[(String, String)]) -> Vec<Stranger> {
    let own = |name: &str| fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
    let is_carriage = |name: &str| CARRIAGE.iter().any(|carriage| name.eq_ignore_ascii_case(carriage));
    let without = |name: &str| -> Vec<(String, String)> {
        fields.iter().filter(|(field, _)| !field.eq_ignore_ascii_case(name)).cloned().collect()
    };
    let more = FIELDS.iter().filter(|(name, _)| !own(name)).map(|&(name, value)| {
        let mut all = fields.to_vec();
        all.push((name.to_owned(), value.to_owned()));
        Stranger { field: name.to_owned(), fields: all }
    });
    let less = fields.iter().filter(|(name, _)| !is_carriage(name)).take(MOST);
    more.chain(less.map(|(name, _)| Stranger { field: name.clone(), fields: without(name) })).collect()
}

/// From here on a status says that the server failed (RFC 9110 §15.6).
const FAILED: u16 = 500;
/// So often one that failed is asked again, before its failing is taken for its answer.
const FAILURES: u32 = 4;

/// In which order both ask where bodies change. What goes up and down in turn (a worker's name, a counter's last digit)
/// falls together with no part of it.
const TURNS: [Who; 8] = {
    use Who::{Stranger as S, User as U};
    [U, S, S, U, S, U, U, S]
};

/// Asks the API, through `ask`, whether a stranger gets another answer than the user's `own`. `None`: an answer did not come.
pub fn tell_apart(
    standard: &Standard,
    own: &Direct,
    ask: &mut dyn FnMut(Who) -> Option<Direct>,
) -> Option<Apart> {
    let is_as = |one: &Direct, other: &Direct| one.status == other.status && one.body == other.body;
    let mut ask = |who| steady(own, who, ask);
    let theirs = ask(Who::Stranger)?;
    if is_as(own, &theirs) && telling_fields::agree(own, &theirs) {
        return Some(Apart::No);
    }
    let again = ask(Who::User)?;
    if standard.how == How::Body && !is_as(own, &again) {
        return Some(Apart::Changed);
    }
    if standard.how == How::Body && !is_as(own, &theirs) {
        return Some(Apart::Yes(theirs, Marks::default()));
    }
    let second = ask(Who::Stranger)?;
    let fields = telling_fields::between([own, &again], [&theirs, &second]);
    if standard.how == How::Body {
        let marks = Marks::of_fields(fields);
        return Some(if marks.is_empty() { Apart::No } else { Apart::Yes(second, marks) });
    }
    if own.status != again.status || theirs.status != second.status {
        return Some(Apart::No);
    }
    if own.status != theirs.status {
        return Some(Apart::Yes(second, Marks::default()));
    }
    let mut marks = Marks::between(&own.body, &theirs.body);
    marks.seen_by_user(&again.body);
    marks.seen_by_stranger(&second.body);
    marks.fields = fields;
    for who in TURNS {
        if !marks.has_words() {
            break;
        }
        let answer = ask(who)?;
        match who {
            Who::User => marks.seen_by_user(&answer.body),
            Who::Stranger => marks.seen_by_stranger(&answer.body),
        }
    }
    Some(if marks.is_empty() { Apart::No } else { Apart::Yes(second, marks) })
}

/// An answer; one that fails where the user's own does not is asked for again, for an API that fails now and then fails
/// whoever asks.
fn steady(own: &Direct, who: Who, ask: &mut dyn FnMut(Who) -> Option<Direct>) -> Option<Direct> {
    let mut answer = ask(who)?;
    for _ in 0..FAILURES {
        if answer.status < FAILED || own.status >= FAILED {
            break;
        }
        answer = ask(who)?;
    }
    Some(answer)
}

/// Why what a step gave a stranger is wrong; `None`: nothing says that it is. `own` is what the API gives the user,
/// `meanwhile` what the step gives the user at the same time.
pub fn mixed_up(
    standard: &Standard,
    own: &Direct,
    meanwhile: Option<&Direct>,
    told: &Telling,
    given: &Direct,
) -> Option<String> {
    let field = &told.stranger.field;
    let of_another = |how: &str| {
        Some(format!(
            "who asks with another {field} gets{how} what somebody else got: the API answers by {field} and does not say \
             so in Vary"
        ))
    };
    let is_own = |one: &Direct| given.status == one.status && given.body == one.body;
    let by_fields = || {
        let name = telling_fields::of_user(&told.marks.fields, given, own, &told.answer)?;
        Some(format!(
            "who asks with another {field} gets somebody else's {name}: the API answers by {field} and does not say so in \
             Vary"
        ))
    };
    if given.status != told.answer.status || standard.how == How::Body {
        return match () {
            () if given.status == told.answer.status && given.body == told.answer.body => by_fields(),
            () if is_own(own) || (standard.how != How::Body && given.status == own.status) => of_another(""),
            () => Some(format!(
                "who asks with another {field} gets another answer than the API's ({})",
                given.status
            )),
        };
    }
    // The API does not answer the two alike, so the same bytes for both are one answer that was kept.
    let tells_bodies = told.marks.has_words() || told.marks.fields.is_empty();
    if tells_bodies && own.status == told.answer.status && meanwhile.is_some_and(is_own) {
        return of_another(", byte for byte,");
    }
    if told.marks.are_of_user(&given.body) { of_another("") } else { by_fields() }
}
