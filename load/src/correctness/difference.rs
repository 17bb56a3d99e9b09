//! What makes answers differ: traits of an answer, and those of them that tell two clients apart.
//!
//! An answer's traits are header fields that clients and caches act on, and its status and body: the body as a whole, or word by word where
//! bodies change by themselves. Those that are in all answers to the one client and in none to the other tell them apart; each answer that is
//! seen leaves the same or fewer. What is asked in which order is `strangers`'s to say.

use super::{How, values};
use crate::probe::Reply;
use std::collections::BTreeSet;

/// What clients and caches act on. A cached answer with another client's `Access-Control-Allow-Origin` is as wrong as one with another
/// client's body: a browser refuses it.
const FIELDS: [&str; 17] = [
    "Access-Control-Allow-Origin",
    "Access-Control-Allow-Credentials",
    "Access-Control-Allow-Headers",
    "Access-Control-Allow-Methods",
    "Access-Control-Expose-Headers",
    "Access-Control-Max-Age",
    "Cache-Control",
    "CDN-Cache-Control",
    "Content-Disposition",
    "Content-Language",
    "Content-Type",
    "Expires",
    "Link",
    "Location",
    "Set-Cookie",
    "Vary",
    "WWW-Authenticate",
];

/// Those among them that a proxy may make its own: it names itself in the one and its compression in the other.
const OF_PROXIES: [&str; 2] = ["Location", "Vary"];

/// Bytes of a body of which words are looked at.
const LOOKED_AT: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    Whole,
    Status,
    Word,
    /// A header field with all its values, or without any.
    Field(&'static str),
}

pub(super) type Traits = BTreeSet<(Aspect, Vec<u8>)>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// In all answers to the user's own request, in none to the stranger's.
    user: Traits,
    /// The other way round.
    stranger: Traits,
}

pub(super) fn traits(answer: &Reply, how: How) -> Traits {
    let mut traits = fields(answer);
    let status = answer.status.to_string().into_bytes();
    match how {
        How::Body => _ = traits.insert((Aspect::Whole, [status.as_slice(), &answer.body].concat())),
        How::StatusAndLength => {
            traits.insert((Aspect::Status, status));
            let text = &answer.body[..answer.body.len().min(LOOKED_AT)];
            // Runs of letters and digits; every byte above ASCII counts as a letter.
            let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
            let words = text.split(|byte| !is_letter(byte)).filter(|word| !word.is_empty());
            traits.extend(words.map(|word| (Aspect::Word, word.to_vec())));
        }
    }
    traits
}

fn fields(answer: &Reply) -> Traits {
    let field = |name: &'static str| {
        // Of a cookie the name alone, because each client gets a value of its own.
        let part = |value: &str| match name {
            "Set-Cookie" => value.split('=').next().unwrap_or(value).to_owned(),
            _ => value.to_owned(),
        };
        let all: String = values(answer, name).map(|value| part(value) + "\n").collect();
        (Aspect::Field(name), all.into_bytes())
    };
    FIELDS.into_iter().map(field).collect()
}

/// The first field that the API gives twice alike and a step gives otherwise.
pub fn changed(own: [&Reply; 2], given: &Reply) -> Option<&'static str> {
    let ([one, again], given) = (own.map(fields), fields(given));
    let mut changed = one.intersection(&again).filter(|field| !given.contains(*field));
    changed.find_map(|(aspect, _)| aspect.field().filter(|name| !OF_PROXIES.contains(name)))
}

impl Aspect {
    pub fn field(self) -> Option<&'static str> {
        if let Aspect::Field(name) = self { Some(name) } else { None }
    }
}

impl Difference {
    pub fn between(user: &Traits, stranger: &Traits) -> Difference {
        Difference {
            user: user.difference(stranger).cloned().collect(),
            stranger: stranger.difference(user).cloned().collect(),
        }
    }

    /// Takes away what a further answer, to the stranger or the user, shows to mean nothing.
    pub fn seen(&mut self, by_stranger: bool, traits: &Traits) {
        let (own, other) = match by_stranger {
            true => (&mut self.stranger, &mut self.user),
            false => (&mut self.user, &mut self.stranger),
        };
        own.retain(|one| traits.contains(one));
        other.retain(|one| !traits.contains(one));
    }

    /// By what they are told apart. A field that changes by itself for one of them tells nothing of the other.
    pub fn aspects(&self) -> BTreeSet<Aspect> {
        let of = |traits: &Traits| traits.iter().map(|(aspect, _)| *aspect).collect::<BTreeSet<Aspect>>();
        let (user, stranger) = (of(&self.user), of(&self.stranger));
        let tells = |aspect: &&Aspect| {
            !matches!(aspect, Aspect::Field(_)) || user.contains(*aspect) && stranger.contains(*aspect)
        };
        user.union(&stranger).filter(tells).copied().collect()
    }

    /// By what an answer to the stranger is one for the user: it has all of the user's and none of the stranger's.
    pub fn of_user(&self, given: &Traits) -> Option<Aspect> {
        let is_of_user = |aspect: &Aspect| {
            let is = |(other, _): &&(Aspect, Vec<u8>)| other == aspect;
            let (mut user, mut stranger) = (self.user.iter().filter(is), self.stranger.iter().filter(is));
            user.all(|one| given.contains(one)) && !stranger.any(|one| given.contains(one))
        };
        self.aspects().into_iter().find(is_of_user)
    }

    /// Whether the stranger's bodies differ among themselves, so that none of them is to be expected.
    pub fn varies(&self) -> bool {
        let has = |traits: &Traits| traits.iter().any(|(aspect, _)| *aspect == Aspect::Whole);
        has(&self.user) && !has(&self.stranger)
    }
}
