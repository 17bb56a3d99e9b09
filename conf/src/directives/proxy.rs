//! Directives of proxying: what is sent to the upstream, what comes back, and when another server is asked.
//!
//! Next: `proxy_pass`; `proxy_cache`; `resolve`, which applies the defaults.

use super::failures::words;
use super::headers::is_field_name;
use super::proxy_pass::proxy_pass;
use super::{Apply, HTTP_SERVER_LOCATION, LOCATION, MANY, Row, idle, often, once};
use crate::inherit::{Level, RedirectRule};
use crate::model::{HttpVersion, Redirect, SetHeader};
use crate::reading::Reading;
use crate::tree::{Directive, Word};

const REUSED: &str =
    "what goes upstream is written anew from what was read, in buffers that grow as they need to";

/// The rows of this family.
pub const ROWS: &[Row] = &[
    once(
        "proxy_pass",
        LOCATION,
        (1, 1),
        "URL",
        "",
        "Passes requests on: to the name of an upstream, `host:port` or `unix:/path`, each after `http://`. A URI part stands in \
         for the part of the request's URI that the location's prefix matched; without one the URI goes on as it came. With \
         variables the whole value is the URL.",
        Apply::Level(proxy_pass),
    ),
    once(
        "proxy_http_version",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "1.0 | 1.1 | 2",
        "1.1",
        "The HTTP version spoken to the upstream. With `2` there is a warning, and 1.1 is spoken.",
        Apply::Level(http_version),
    ),
    often(
        "proxy_set_header",
        HTTP_SERVER_LOCATION,
        (2, 2),
        "field value",
        "Host $proxy_host; Connection \"\"",
        "Sets a field of the request to the upstream; an empty value removes it. A level that writes one has none of the level \
         above, but the two defaults hold wherever the field is not set.",
        Apply::Level(set_header),
    ),
    often(
        "proxy_hide_header",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "field",
        "",
        "A field of the upstream's answer that the client does not get, beside Date, Server, X-Pad and X-Accel-….",
        Apply::Level(|l, d, r| {
            if is_field_name(&d.args[0], r) {
                l.proxy_hide_headers.get_or_insert_default().push(d.args[0].text.to_ascii_lowercase());
            }
        }),
    ),
    often(
        "proxy_pass_header",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "field",
        "",
        "A field that would be hidden and is passed on nevertheless.",
        Apply::Level(|l, d, r| {
            if is_field_name(&d.args[0], r) {
                l.proxy_pass_headers.get_or_insert_default().push(d.args[0].text.to_ascii_lowercase());
            }
        }),
    ),
    often(
        "proxy_redirect",
        HTTP_SERVER_LOCATION,
        (1, 2),
        "default | off | redirect replacement",
        "default",
        "Rewrites the Location and Refresh fields of answers: a prefix, or with `~` and `~*` what an expression matches. `default` \
         turns the URL of the `proxy_pass` into the location's.",
        Apply::Level(redirect),
    ),
    once(
        "proxy_method",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "method",
        "",
        "The method sent to the upstream in place of the client's.",
        Apply::Level(|l, d, r| l.proxy_method = Some(r.template(&d.args[0]))),
    ),
    once(
        "proxy_buffering",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "on",
        "Whether an answer is read as fast as the upstream sends it, however slow the client is.",
        Apply::Level(|l, d, r| l.proxy_buffering = r.flag(&d.args[0])),
    ),
    once(
        "proxy_request_buffering",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "on",
        "Whether a request's body is read whole before the upstream is asked.",
        Apply::Level(|l, d, r| l.proxy_request_buffering = r.flag(&d.args[0])),
    ),
    once(
        "proxy_buffer_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "4k",
        "The head of an answer must fit into this; else the client gets 502.",
        Apply::Level(|l, d, r| l.proxy_buffer_size = r.memory_size(&d.args[0])),
    ),
    once(
        "proxy_buffers",
        HTTP_SERVER_LOCATION,
        (2, 2),
        "number size",
        "8 4k",
        "How much of one answer is held in memory beside that.",
        Apply::Level(|l, d, r| l.proxy_buffers = r.pieces(&d.args, 2)),
    ),
    once(
        "proxy_max_temp_file_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "1024m",
        "How much of an answer goes to a temporary file while the client is slower than the upstream; 0 = nothing.",
        Apply::Level(|l, d, r| {
            l.proxy_max_temp_file_size = r.offset(&d.args[0]).map(|size| (size, d.args[0].span))
        }),
    ),
    once(
        "proxy_temp_path",
        HTTP_SERVER_LOCATION,
        (1, 4),
        "path [level1 [level2 [level3]]]",
        "",
        "The directory for such files, which must be usable by `user`; only its last part is made where it is missing. The levels \
         are accepted and not needed: the files have no names. Where none is written: `proxy_temp` below the prefix if \
         that is there already, else $TMPDIR, `/var/tmp`, `/tmp`, `/dev/shm`, the first that can be used.",
        Apply::Level(|l, d, r| l.proxy_temp_path = r.temp_path(&d.args)),
    ),
    once(
        "proxy_upgrade",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Passes a client's wish for another protocol (`Upgrade`, as of WebSocket) to the upstream and, once that agrees, all bytes both \
         ways. Such a request goes past the cache. Other requests are not touched, so it can stand where everything is \
         proxied. `h2c` is not passed on: nobody could look into it. After 101 a connection ends when nothing moved for \
         `proxy_read_timeout`.",
        Apply::Level(|l, d, r| l.proxy_upgrade = r.flag(&d.args[0])),
    ),
    once(
        "proxy_connect_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "60s",
        "How long connecting to an upstream server may take.",
        Apply::Level(|l, d, r| l.proxy_connect_timeout = r.duration(&d.args[0])),
    ),
    once(
        "proxy_send_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "60s",
        "How long an upstream server may pause between two reads of a request.",
        Apply::Level(|l, d, r| l.proxy_send_timeout = r.duration(&d.args[0])),
    ),
    once(
        "proxy_read_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "60s",
        "How long an upstream server may pause between two pieces of an answer.",
        Apply::Level(|l, d, r| l.proxy_read_timeout = r.duration(&d.args[0])),
    ),
    often(
        "proxy_next_upstream",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | \
         non_idempotent | off …",
        "error timeout",
        "When the next server is asked. Requests whose method is not idempotent are sent once, unless `non_idempotent` is there.",
        Apply::Level(|l, d, r| l.proxy_next_upstream = Some(words(l.proxy_next_upstream, d, r))),
    ),
    once(
        "proxy_next_upstream_tries",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "number",
        "0",
        "How many servers are asked at most; 0 = all.",
        Apply::Level(|l, d, r| {
            l.proxy_next_upstream_tries =
                r.number(&d.args[0], 0, u64::from(u32::MAX)).map(|tries| tries as u32);
        }),
    ),
    once(
        "proxy_next_upstream_timeout",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "time",
        "0",
        "How long the next server is still asked; 0 = always.",
        Apply::Level(|l, d, r| l.proxy_next_upstream_timeout = r.duration(&d.args[0])),
    ),
    once(
        "proxy_intercept_errors",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether `error_page` holds for the upstream's own answers from 300 on.",
        Apply::Level(|l, d, r| l.proxy_intercept_errors = r.flag(&d.args[0])),
    ),
    once(
        "proxy_ignore_client_abort",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether the upstream's answer is read to its end after the client has gone.",
        Apply::Level(|l, d, r| l.proxy_ignore_client_abort = r.flag(&d.args[0])),
    ),
    idle(
        "proxy_busy_buffers_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "How much may be on its way to the client while an answer is read.",
        "what has been read is sent on at once; proxy_buffers is the bound",
    ),
    idle(
        "proxy_temp_file_write_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "How much is written to a temporary file at once.",
        "temporary files are written by threads of their own, so a large write holds nobody up",
    ),
    idle(
        "proxy_headers_hash_max_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "The largest hash table of request fields.",
        REUSED,
    ),
    idle(
        "proxy_headers_hash_bucket_size",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "The bucket size of the hash table of request fields.",
        REUSED,
    ),
    idle(
        "proxy_send_lowat",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "The low-water mark of sockets to upstream servers.",
        "the system this runs on has no such mark for sending",
    ),
];

/// Servers that speak HTTP/2 nearly always speak HTTP/1.1 as well; one that does not answers nothing, and is noticed.
fn http_version(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "2" {
        reading
            .diagnostics
            .warning(word.span, "Millstream does not speak HTTP/2 to upstreams (yet); HTTP/1.1 is used")
            .help("write proxy_http_version 1.1;")
            .once();
        level.proxy_http_version = Some(HttpVersion::Http11);
        return;
    }
    const VERSIONS: [HttpVersion; 2] = [HttpVersion::Http10, HttpVersion::Http11];
    level.proxy_http_version = reading.one_of(word, &["1.0", "1.1"]).map(|index| VERSIONS[index]);
}

fn set_header(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let [name, word] = &directive.args[..] else { return };
    // The level has one, whatever becomes of it.
    level.proxy_set_headers.get_or_insert_default();
    if let Some(bare) = name.text.strip_suffix(':') {
        colon_in_name(level, &Reading::part(name, bare), word, reading);
        return;
    }
    let value = reading.template(word);
    if is_field_name(name, reading) {
        let name = name.text.clone();
        level.proxy_set_headers.get_or_insert_default().push(SetHeader { name, value });
    }
}

/// nginx puts a colon of its own behind the name, so that the one written there begins the value. Without a value there is
/// no field to send.
fn colon_in_name(level: &mut Level, name: &Word, word: &Word, reading: &mut Reading<'_>) {
    if word.text.is_empty() {
        reading.diagnostics.idle(
            name.span,
            "\"proxy_set_header\" has no effect here: no field has a colon in its name, so there is none to remove",
        );
        return;
    }
    let value = reading.template(&Reading::part(word, format!(": {}", word.text)));
    if is_field_name(name, reading) {
        reading
            .diagnostics
            .warning(
                name.span,
                format!("the colon becomes a part of the value: \"{0}: : …\" is sent", name.text),
            )
            .help(format!("write {} without a colon", name.text));
        let name = name.text.clone();
        level.proxy_set_headers.get_or_insert_default().push(SetHeader { name, value });
    }
}

fn redirect(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let first = &directive.args[0];
    let written = level.proxy_redirects.as_ref();
    let off = directive.args.len() == 1 && first.text == "off";
    // An empty list is an `off`, which stands alone.
    if written.is_some_and(|rules| off || rules.is_empty()) {
        reading
            .error(directive.span, "\"proxy_redirect\" directive is duplicate")
            .help("proxy_redirect off stands alone in its block; keep it or the others");
        return;
    }
    let rules = level.proxy_redirects.get_or_insert_default();
    let Some(second) = directive.args.get(1) else {
        if reading.one_of(first, &["default", "off"]) == Some(0) {
            rules.push(RedirectRule::Default(directive.span));
        }
        return;
    };
    let to = reading.template(second);
    if let Some(source) = first.text.strip_prefix('~') {
        let (source, ignore_case) = match source.strip_prefix('*') {
            Some(source) => (source, true),
            None => (source, false),
        };
        if let Some(from) = reading.regex(first, source, ignore_case) {
            rules.push(RedirectRule::Pair(Redirect::Regex { from, to }));
        }
    } else {
        let from = reading.template(first);
        rules.push(RedirectRule::Pair(Redirect::Prefix { from, to }));
    }
}
