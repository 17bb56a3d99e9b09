//! Carries out a script, instruction by instruction, to its end or to what answers.
//!
//! An `if` that holds puts the request into the location of its block; the script that goes on is still the same, so of
//! several that hold the last one's settings stay, as in nginx.

use super::condition::{self, Truth};
use super::file_test::FileTest;
use super::replacement::{self, Replaced};
use super::value;
use crate::failure;
use crate::request::{Arguments, Request};
use crate::shows::Shows;
use crate::variables::personal::{client_is_shown_by_all, shown_by};
use millstream_conf::model::{
    Condition, Goal, Handler, Instruction, Level, LocationId, PassTarget, Settable, Settings, Template, Then,
};
use millstream_conf::size;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paused {
    pub owner: LocationId,
    pub at: usize,
    /// Whether the URI was changed, so that the location must be selected again.
    pub changed: bool,
    /// Whether captures are escaped in values: in nginx until a `rewrite` has matched.
    pub escapes: bool,
    /// Whether a true `if` had its own content handler.
    pub has_handler: bool,
    pub answer: Option<bool>,
}

impl Paused {
    pub fn at_start(owner: LocationId) -> Self {
        Paused { owner, at: 0, changed: false, escapes: true, has_handler: false, answer: None }
    }

    #[must_use]
    pub fn answered(self, answer: bool) -> Self {
        Paused { answer: Some(answer), ..self }
    }
}

#[derive(Debug)]
pub(super) enum Ran {
    End { changed: bool },
    Return(usize),
    Redirect(u16, Vec<u8>),
    Status(u16),
    Test(FileTest, Paused),
}

pub(super) fn run(request: &mut Request, from: Paused) -> Ran {
    let generation = request.generation.clone();
    let script = &generation.http().location(from.owner).settings.rewrite.script;
    let mut now = from;
    while let Some(instruction) = script.get(now.at) {
        now.at = match instruction {
            Instruction::Set { target, value } => {
                let shows = shown_by(value, request);
                set(request, *target, &value::of(value, request, now.escapes), shows);
                now.at + 1
            }
            Instruction::If { condition, otherwise, location } => {
                let block = script.get(now.at + 1..*otherwise).unwrap_or_default();
                note_decision(request, condition, block, *location);
                match condition::judge(condition, request, now.escapes, now.answer.take()) {
                    Ok(Truth::Holds) => {
                        if let Some(id) = location {
                            request.enter(*id);
                            now.has_handler |= !serves_files(request);
                        }
                        now.at + 1
                    }
                    Ok(Truth::Fails) => *otherwise,
                    Ok(Truth::Ask(test)) => return Ran::Test(test, now),
                    Err(status) => return Ran::Status(status),
                }
            }
            Instruction::Rewrite(rule) => match replacement::apply(rule, request) {
                Ok(Replaced::Nothing) => now.at + 1,
                Ok(Replaced::Redirect(status, url)) => return Ran::Redirect(status, url),
                Ok(Replaced::Uri(Then::Break)) => {
                    request.route.is_outside = true;
                    return ended(request, now, false);
                }
                Ok(Replaced::Uri(Then::Last)) => return Ran::End { changed: true },
                Ok(Replaced::Uri(Then::Next)) => {
                    (now.changed, now.escapes) = (true, false);
                    now.at + 1
                }
                Err(status) => return Ran::Status(status),
            },
            Instruction::Return(_) => return Ran::Return(now.at),
            Instruction::Break => {
                request.route.is_outside |= now.changed;
                return ended(request, now, false);
            }
        };
    }
    ended(request, now, now.changed)
}

/// Notes that a condition decides which block runs: variables it sets reveal the condition's inputs, and so
/// does the routing, if the block changes it.
fn note_decision(
    request: &mut Request,
    condition: &Condition,
    block: &[Instruction],
    location: Option<LocationId>,
) {
    let shows = client_is_shown_by_all(condition.reads().flat_map(Template::variables), request);
    if shows == Shows::NOTHING {
        return;
    }
    for instruction in block {
        if let Instruction::Set { target: Settable::Slot(number), .. } = instruction {
            request.route.slots.decide(*number, shows);
        }
    }
    let generation = request.generation.clone();
    let settings = |id: LocationId| &generation.http().location(id).settings;
    if block.iter().any(|instruction| leads_on(instruction, request))
        || location.is_some_and(|id| leads_elsewhere(settings(id), settings(request.route.location)))
    {
        request.route.shows.way |= shows;
    }
}

fn leads_on(instruction: &Instruction, request: &Request) -> bool {
    match instruction {
        Instruction::Set { target: Settable::Arguments, .. } | Instruction::Break => true,
        Instruction::Rewrite(rule) => matches!(rule.goal, Goal::Uri { .. }),
        // What is answered here is stored nowhere, unless an error page leads on.
        Instruction::Return(answer) => has_page(request, answer.status),
        Instruction::Set { .. } | Instruction::If { .. } => false,
    }
}

fn has_page(request: &Request, status: u16) -> bool {
    request.location().settings.error_pages.iter().any(|page| page.status == status)
}

/// Whether two levels pass requests on differently, or have another `root`.
fn leads_elsewhere(one: &Settings, other: &Settings) -> bool {
    fn way(settings: &Settings) -> Option<(&PassTarget, Option<&str>)> {
        settings.pass().map(|pass| (&pass.target, pass.http().and_then(|http| http.uri.as_deref())))
    }
    way(one) != way(other) || one.files.root.path != other.files.root.path
}

/// After an `if` with an upstream and a later one without a handler, the last one's settings apply: nginx
/// fails there, and what was meant for an upstream must not be sent as a file.
fn ended(request: &Request, now: Paused, changed: bool) -> Ran {
    if !changed && now.has_handler && serves_files(request) { Ran::Status(500) } else { Ran::End { changed } }
}

fn serves_files(request: &Request) -> bool {
    matches!(request.location().settings.content, Handler::Files)
}

pub fn set(request: &mut Request, target: Settable, value: &[u8], shows: Shows) {
    match target {
        Settable::Slot(number) => request.route.slots.set(number, value, shows),
        Settable::Arguments => {
            request.route.arguments = Arguments::Replaced(value.to_vec());
            request.route.is_rewritten = true;
            request.route.shows.query |= shows;
        }
        // As in nginx a text that is no size changes nothing.
        Settable::LimitRate => match std::str::from_utf8(value).ok().and_then(|text| size(text).ok()) {
            Some(rate) => request.reply.limit_rate = Some(rate),
            None => {
                let text = String::from_utf8_lossy(value);
                failure::log(request, Level::Error, format_args!("invalid $limit_rate \"{text}\""));
            }
        },
    }
}
