//! The API asked as somebody else: whom it answers differently, and what of that could not be told.
//!
//! Bounded in time: where the API is slow, the strangers that are left over are named. Next: `correctness::strangers`, which
//! judges; `measuring`, which asks each step the same.

use super::direct::{self, Known};
use crate::correctness::{self, Apart, How, Keeps, Stranger, Telling, Who};
use crate::plan::Target;
use crate::probe::{self, ProbeError};
use crate::stop::Stop;
use crate::target::{self, Ask, Permission};
use crate::unmeasured::Unmeasured;
use millstream_net::clock;
use std::time::Duration;

/// What asking as all strangers may take.
const ALL: Duration = Duration::from_secs(20);

/// Requests that a stranger takes where nothing is different: its own, and with changing bodies two more.
const OF_BODY: u32 = 1;
const OF_WORDS: u32 = 3;

/// Why bodies are no longer compared.
const CHANGED: &str = "The API's own body changed while it was asked";

/// What is said where bodies change by themselves.
const ONLY_WORDS: &str = "Whether the API answers other clients differently was judged by the status and by the words that stay the \
                          same in its bodies. A difference in what changes with every request anyway cannot be told: a cache \
                          that mixes clients up there goes unnoticed.";

/// Asks as each stranger, and keeps those whom the API answers differently.
///
/// # Errors
/// [`Unmeasured::Stopped`].
pub(super) fn ask_as_strangers(
    known: &mut Known,
    ask: &Ask,
    may: Permission,
    stop: &Stop,
) -> Result<(), Unmeasured> {
    if known.caching.keeps == Keeps::No {
        return Ok(());
    }
    let all = correctness::strangers(&ask.fields);
    if !gone_through(known, &all, ask, may, stop)? {
        known.standard = correctness::loose(&known.own, &known.own, CHANGED);
        // With what is left of it: bodies are not compared any more, so nothing can change once again.
        gone_through(known, &all, ask, may, stop)?;
    }
    known.personal = known.strangers.iter().filter_map(|(telling, _)| telling.unnamed(&known.own)).collect();
    if known.standard.how == How::StatusAndLength {
        known.notes.push(ONLY_WORDS.to_owned());
    }
    Ok(())
}

/// Whether all could be gone through: `false`, the API's body has changed meanwhile.
fn gone_through(
    known: &mut Known,
    all: &[Stranger],
    ask: &Ask,
    may: Permission,
    stop: &Stop,
) -> Result<bool, Unmeasured> {
    let requests = if known.standard.how == How::Body { OF_BODY } else { OF_WORDS };
    let each = known.alone() * requests;
    let (began, mut left_out) = (clock::now(), Vec::new());
    known.strangers.clear();
    for stranger in all {
        if clock::now() - began + each > ALL {
            left_out.push(stranger.field.as_str());
            continue;
        }
        let ask = Ask { fields: stranger.fields.clone(), ..ask.clone() };
        // Resolved anew, it may be another of several addresses, which would answer for itself.
        let Ok(mut target) = target::resolve(&ask, may) else { continue };
        target.addresses.clone_from(&known.target.addresses);
        match apart(known, &target, stop)? {
            Some(Apart::Yes(answer, marks)) => {
                let telling = Telling { stranger: stranger.clone(), answer, marks };
                known.strangers.push((telling, target));
            }
            Some(Apart::Changed) => return Ok(false),
            Some(Apart::No) => {}
            None => left_out.push(&stranger.field),
        }
    }
    if !left_out.is_empty() {
        known.notes.push(format!(
            "Whether the API answers by these fields was not found out, for it is too slow to ask or gave no answer: {}. A \
             cache that mixes clients up by one of them goes unnoticed.",
            left_out.join(", ")
        ));
    }
    Ok(true)
}

/// From now on bodies are not compared: the API's own turned out to differ. Those whom it answers differently are asked for
/// anew, for other things must tell now.
///
/// # Errors
/// [`Unmeasured::Stopped`].
pub(super) fn loosen(known: &mut Known, stop: &Stop) -> Result<(), Unmeasured> {
    known.standard = correctness::loose(&known.own, &known.own, CHANGED);
    for (telling, target) in std::mem::take(&mut known.strangers) {
        if let Some(Apart::Yes(answer, marks)) = apart(known, &target, stop)? {
            known.strangers.push((Telling { answer, marks, ..telling }, target));
        }
    }
    if known.caching.keeps != Keeps::No && !known.notes.iter().any(|note| note == ONLY_WORDS) {
        known.notes.push(ONLY_WORDS.to_owned());
    }
    Ok(())
}

/// Whether a stranger gets another answer than the user.
fn apart(known: &Known, stranger: &Target, stop: &Stop) -> Result<Option<Apart>, Unmeasured> {
    let mut is_stopped = false;
    let found = correctness::tell_apart(&known.standard, &known.own, &mut |who| {
        let target = match who {
            Who::User => &known.target,
            Who::Stranger => stranger,
        };
        let told = probe::once_unless(stop, target, direct::PATIENCE, direct::LARGEST);
        is_stopped |= matches!(told, Err(ProbeError::Stopped));
        told.ok().map(direct::seen)
    });
    if is_stopped { Err(Unmeasured::Stopped) } else { Ok(found) }
}
