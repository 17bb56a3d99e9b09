//! Requests of somebody else: whether a step gives one client what another one got.
//!
//! A cache that leaves a field out of its key wins every race and is wrong. So the API is asked directly as a few
//! strangers would; where it answers one of them differently, every step has to do the same.

use super::{Direct, How, Standard};

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
}

/// The most fields of the user's own that are tried without.
const MOST: usize = 8;

/// What clients differ in, and APIs answer by.
const FIELDS: [(&str, &str); 5] = [
    ("Accept-Language", "tlh"),
    ("Cookie", "session=ladder-1"),
    ("Authorization", "Bearer ladder-1"),
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

/// Whether what the API answers a stranger is another answer; `None` also where its answers differ in any case.
pub fn telling(standard: &Standard, own: &Direct, stranger: Stranger, answer: Direct) -> Option<Telling> {
    let differs = answer.status != own.status || answer.body != own.body;
    (standard.how == How::Body && differs).then_some(Telling { stranger, answer })
}

/// Why what a step gave a stranger is wrong; `None`: it is what the API gives.
pub fn mixed_up(own: &Direct, told: &Telling, given: &Direct) -> Option<String> {
    if given.status == told.answer.status && given.body == told.answer.body {
        return None;
    }
    let field = &told.stranger.field;
    if given.status == own.status && given.body == own.body {
        return Some(format!(
            "who asks with another {field} gets what somebody else got: the API answers by {field} and does not say so \
             in Vary"
        ));
    }
    Some(format!("who asks with another {field} gets another answer than the API's ({})", given.status))
}
