//! Requests of somebody else: whether a step gives one client what another one got.
//!
//! A cache that leaves a field out of its key wins every race and is wrong. So the API is asked directly as a few
//! strangers would; where it answers one of them differently, every step has to do the same. By what answers differ, and what of it cannot
//! be seen, is `difference`'s to say.

use super::difference::{Aspect, Difference, traits};
use super::{How, values};
use crate::probe::Reply;

type Fields = Vec<(String, String)>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    pub field: String,
    pub answer: Reply,
    pub difference: Difference,
}

const USERS: [&str; 3] = ["Cookie", "Authorization", "X-Api-Key"];

impl Telling {
    pub fn is_of_users(&self) -> bool {
        USERS.into_iter().any(|name| name.eq_ignore_ascii_case(&self.field))
    }

    /// Whether `proxy_cache_vary unlisted` keeps the responses apart, as far as the API says nothing of caching. Of programs it keeps
    /// only phones apart, and users are not its matter.
    pub fn is_kept_apart(&self) -> bool {
        !self.is_of_users() && !self.field.eq_ignore_ascii_case("User-Agent")
    }

    /// What is to be known where responses are kept apart by the field although the API does not name it.
    pub fn kept_apart(&self) -> String {
        let field = &self.field;
        format!(
            "The API's responses depend on {field}, and its Vary does not name it. Millstream's steps separate them (proxy_cache_vary unlisted), \
             as serve --microcache does; any other cache needs \"Vary: {field}\"."
        )
    }

    /// Why the API's answers are not to be cached as they are: it answers by the field and does not name it in `Vary` (RFC 9110 §12.5.5);
    /// `None`: it does.
    pub fn unnamed(&self, own: &Reply) -> Option<String> {
        let field = &self.field;
        let is = |name: &str| name.eq_ignore_ascii_case(field);
        let names = |value: &str| value.split(',').map(str::trim).any(|name| name == "*" || is(name));
        if values(own, "vary").chain(values(&self.answer, "vary")).any(names) {
            return None;
        }
        let aspects = self.difference.aspects();
        let fields: Vec<&str> = aspects.iter().filter_map(|aspect| aspect.field()).collect();
        let by = match fields.as_slice() {
            [] => field.clone(),
            fields => format!("{field} ({} differs)", fields.join(", ")),
        };
        Some(if self.is_of_users() {
            format!(
                "The API's responses are personal and must not be cached as they are: they differ by {by}, and have neither \"Cache-Control: \
                private\" nor \"Vary: {field}\"."
            )
        } else {
            format!(
                "The API's responses must not be cached as they are: they differ by {by} without \"Vary\", and a cache would send one client another \
                client's response. \"Vary: {field}\" would help."
            )
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    User,
    Stranger,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Apart {
    /// Nothing tells its answers from those to the user.
    No,
    /// It answers the stranger so, and this tells the two apart.
    Yes(Reply, Difference),
    /// It answers the user with another body than before, so bodies cannot be compared.
    Changed,
}

const MOST: usize = 8;

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

/// The strangers to a request with these fields, each by the field in which it differs, with all its own: one more or with another value, or
/// one of the user's own left out.
pub fn strangers(fields: &[(String, String)]) -> Vec<(String, Fields)> {
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    let more = FIELDS.iter().filter(|(name, _)| !fields.iter().any(|(own, _)| is(own, name)));
    let more = more.map(|&(name, value)| {
        let field = (name.to_owned(), value.to_owned());
        (name.to_owned(), fields.iter().cloned().chain([field]).collect())
    });
    let less = fields.iter().filter(|(name, _)| !CARRIAGE.iter().any(|carriage| is(carriage, name)));
    let less = less
        .take(MOST)
        .map(|(name, _)| (name.clone(), fields.iter().filter(|(own, _)| !is(own, name)).cloned().collect()));
    more.chain(less).collect()
}

/// From here on a status says that the server failed (RFC 9110 §15.6).
const FAILED: u16 = 500;
/// So often one that failed is asked again, before its failing is taken for its answer.
const FAILURES: u32 = 4;

/// In which order both ask once the stranger has, each twice, and where words are compared six times. What goes up and down in turn (a
/// worker's name, a counter's last digit) falls together with no part of it.
const TURNS: [Who; 10] = {
    use Who::{Stranger as S, User as U};
    [U, S, U, S, S, U, S, U, U, S]
};
/// So many of them where no words are.
const FEW: usize = 2;

/// Asks the API, through `ask`, whether a stranger gets another answer than the user's `own`. `None`: an answer did not come.
pub fn tell_apart(how: How, own: &Reply, ask: &mut dyn FnMut(Who) -> Option<Reply>) -> Option<Apart> {
    let mut answer = steady(own, Who::Stranger, ask)?;
    let mut difference = Difference::between(&traits(own, how), &traits(&answer, how));
    for (turn, who) in TURNS.into_iter().enumerate() {
        let aspects = difference.aspects();
        let are_words = aspects.contains(&Aspect::Word) && !aspects.contains(&Aspect::Status);
        if aspects.is_empty() || turn >= FEW && !are_words {
            break;
        }
        let further = steady(own, who, ask)?;
        difference.seen(who == Who::Stranger, &traits(&further, how));
        match who {
            Who::User if how == How::Body && !is_same(own, &further) => return Some(Apart::Changed),
            Who::User => {}
            Who::Stranger => answer = further,
        }
    }
    Some(if difference.aspects().is_empty() { Apart::No } else { Apart::Yes(answer, difference) })
}

/// An answer; one that fails where the user's own does not is asked for again, for an API that fails now and then fails
/// whoever asks.
fn steady(own: &Reply, who: Who, ask: &mut dyn FnMut(Who) -> Option<Reply>) -> Option<Reply> {
    let (mut answer, mut further) = (ask(who)?, 0..FAILURES);
    while answer.status >= FAILED && own.status < FAILED && further.next().is_some() {
        answer = ask(who)?;
    }
    Some(answer)
}

/// Why what a step gave a stranger is wrong; `None`: nothing says that it is. `meanwhile` is what the step gives the user at the same time.
pub fn mixed_up(how: How, meanwhile: Option<&Reply>, told: &Telling, given: &Reply) -> Option<String> {
    let (field, difference) = (&told.field, &told.difference);
    let is_another = given.status != told.answer.status
        || how == How::Body && given.body != told.answer.body && !difference.varies();
    // The API does not answer the two alike, so the same bytes for both are one answer that was kept.
    let is_kept =
        difference.aspects().contains(&Aspect::Word) && meanwhile.is_some_and(|one| is_same(one, given));
    let what = match difference.of_user(&traits(given, how)) {
        Some(Aspect::Whole | Aspect::Status) => " the response of another client".to_owned(),
        _ if is_another => {
            let status = given.status;
            return Some(format!(
                "a request with another {field} gets a different response than from the API ({status})"
            ));
        }
        _ if is_kept => ", byte for byte, the response of another client".to_owned(),
        Some(Aspect::Word) => " the response of another client".to_owned(),
        Some(Aspect::Field(name)) => format!(" the {name} of another client"),
        None => return None,
    };
    Some(format!(
        "a request with another {field} gets{what}: the API's response depends on {field}, and its Vary does not name it"
    ))
}

fn is_same(one: &Reply, other: &Reply) -> bool {
    one.status == other.status && one.body == other.body
}
