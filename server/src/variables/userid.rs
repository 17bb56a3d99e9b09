//! `userid`: the ids of visitors, in cookies and as `$uid_got` and `$uid_set`.
//!
//! An id tells visitors apart and proves nothing: it can be guessed, as nginx's can. Before: `request/identity`; next: `filter/head`, which
//! sends the cookie.

use super::{Found, tell, value};
use crate::request::{GivenId, Request, VisitorCookie, VisitorId};
use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use millstream_conf::model::{CookieLife, Level, UserId, UserIdMode};
use millstream_net::{Address, clock};
use millstream_wire::{FieldId, date, target};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Characters of a cookie with its id; padding or a mark follows.
const LENGTH: usize = 22;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Distinguishes this process from earlier ones, by time and process id as in nginx.
static START: LazyLock<u32> = LazyLock::new(|| {
    let fiftieths = u32::from(clock::wall().milliseconds) * 50;
    fiftieths << 16 | std::process::id() & 0xffff
});
static GIVEN: AtomicU32 = AtomicU32::new(0);
/// The last number of the first id in version 2, and the count until it repeats.
const FIRST_V2: u32 = 0x0303_0302;
const ROUND_V2: u32 = (u32::MAX - FIRST_V2) / 0x100 + 1;

pub(super) fn append_got(request: &Request, out: &mut Vec<u8>) -> Found {
    let Some(settings) = settings(request) else { return Found::Nothing };
    came(request, settings).id.map_or(Found::Nothing, |id| named(settings, &id, out))
}

pub(super) fn append_set(request: &Request, out: &mut Vec<u8>) -> Found {
    let Some(settings) = settings(request) else { return Found::Nothing };
    given(request, settings).map_or(Found::Nothing, |given| named(settings, &given.id, out))
}

/// And P3P; `None` if none is sent.
pub fn cookie(request: &Request) -> Option<(Vec<u8>, &str)> {
    if request.descent.wanted.is_some() {
        return None;
    }
    let settings = settings(request)?;
    let given = given(request, settings)?;
    let mut text = [settings.name.as_bytes(), b"="].concat();
    if given.is_new {
        text.extend_from_slice(BASE64.encode(given.id).as_bytes());
    } else {
        text.extend_from_slice(&came(request, settings).text[..LENGTH]);
        text.extend_from_slice(b"==");
    }
    if let Some(mark) = settings.mark {
        let at = text.len() - 2;
        text[at] = mark;
    }
    if let Some(life) = settings.life {
        text.extend_from_slice(b"; expires=");
        match life {
            CookieLife::Max => text.extend_from_slice(b"Thu, 31-Dec-37 23:55:55 GMT"),
            CookieLife::For(life) => {
                let seconds = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
                text.extend(date::format_cookie(clock::wall().seconds.saturating_add(seconds)));
            }
        }
    }
    text.extend_from_slice(settings.attributes.as_bytes());
    Some((text, &settings.p3p))
}

fn settings(request: &Request) -> Option<&UserId> {
    let http = request.generation.http();
    let location = if request.descent.wanted.is_some() {
        request.visitor().location.get()
    } else {
        request.route.location
    };
    http.location(location).settings.userid.as_deref()
}

fn came<'r>(request: &'r Request, settings: &UserId) -> &'r VisitorCookie {
    request.visitor().came.get_or_init(|| read(request, settings.name.as_bytes()))
}

fn read(request: &Request, name: &[u8]) -> VisitorCookie {
    let cookie = request.fields().all(FieldId::Cookie).find_map(|line| target::cookie(line, name));
    let id = cookie.and_then(|cookie| {
        let Some(text) = cookie.get(..LENGTH) else {
            let shown = cookie.escape_ascii();
            tell(request, Level::Error, format_args!("client sent too short userid cookie \"{shown}\""));
            return None;
        };
        let end = text.iter().position(|byte| *byte == b'=').unwrap_or(LENGTH);
        let Ok(bytes) = BASE64.decode(&text[..end]) else {
            let shown = cookie.escape_ascii();
            tell(request, Level::Error, format_args!("client sent invalid userid cookie \"{shown}\""));
            return None;
        };
        let mut id = [0; 16];
        id.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        // As in nginx an id without its last part is none.
        (id[12..] != [0; 4]).then_some(id)
    });
    VisitorCookie { id, text: cookie.unwrap_or_default().into() }
}

/// A new id, or the received one with another mark; `None` if none is sent.
fn given(request: &Request, settings: &UserId) -> Option<GivenId> {
    if settings.mode == UserIdMode::Log {
        return None;
    }
    let visitor = request.visitor();
    if let Some(given) = visitor.given.get() {
        return *given;
    }
    // A `map` that makes `$uid_reset` may read `$uid_set`, so nothing is held meanwhile.
    let decided = decide(request, settings, came(request, settings));
    *visitor.given.get_or_init(|| decided)
}

fn decide(request: &Request, settings: &UserId, cookie: &VisitorCookie) -> Option<GivenId> {
    let Some(came) = cookie.id else {
        return Some(GivenId { id: fresh(request, settings), is_new: true });
    };
    let reset = value(&settings.reset, request);
    if reset.is_empty() || reset == b"0" {
        let is_marked =
            settings.mark.is_none_or(|mark| cookie.text.get(LENGTH..LENGTH + 2) == Some(&[mark, b'=']));
        return (!is_marked).then_some(GivenId { id: came, is_new: false });
    }
    if reset == b"log" {
        let mut shown = Vec::new();
        named(settings, &came, &mut shown);
        let shown = String::from_utf8_lossy(&shown).into_owned();
        tell(request, Level::Notice, format_args!("userid cookie \"{shown}\" was reset"));
    }
    Some(GivenId { id: fresh(request, settings), is_new: true })
}

/// Service, time, process and counter.
fn fresh(request: &Request, settings: &UserId) -> VisitorId {
    let count = GIVEN.fetch_add(1, Ordering::Relaxed);
    let now = clock::wall().seconds as u32;
    let parts = if settings.mode == UserIdMode::V1 {
        let last = 1u32.wrapping_add(count.wrapping_mul(0x100));
        [settings.service.unwrap_or(0), now, *START, last].map(u32::to_ne_bytes)
    } else {
        let service = match (settings.service, &request.connection.local) {
            (Some(service), _) => service.to_be_bytes(),
            (None, Address::Tcp(SocketAddr::V4(v4))) => v4.ip().octets(),
            (None, Address::Tcp(SocketAddr::V6(v6))) => {
                let [.., a, b, c, d] = v6.ip().octets();
                [a, b, c, d]
            }
            (None, Address::Unix(_)) => [0; 4],
        };
        let last = FIRST_V2 + count % ROUND_V2 * 0x100;
        [service, now.to_be_bytes(), START.to_be_bytes(), last.to_be_bytes()]
    };
    let mut id = [0; 16];
    id.copy_from_slice(parts.as_flattened());
    id
}

/// `uid=` and four hexadecimal numbers in this machine's byte order, as in nginx.
fn named(settings: &UserId, id: &VisitorId, out: &mut Vec<u8>) -> Found {
    out.extend_from_slice(settings.name.as_bytes());
    out.push(b'=');
    for part in id.as_chunks::<4>().0 {
        _ = write!(out, "{:08X}", u32::from_ne_bytes(*part));
    }
    Found::Value
}
