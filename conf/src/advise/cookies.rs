//! The cookie of the first client is stored for all: `proxy_ignore_headers Set-Cookie;` without hiding it.

use super::Cached;
use crate::reading::Reading;

/// Hiding the cookie would end the sessions it carries, so that is not suggested.
pub(super) fn advise(of: &Cached<'_>, reading: &mut Reading<'_>) {
    let exchange = &of.written.exchange;
    let Some(ignored) = exchange.ignore_headers.filter(|ignored| ignored.value.set_cookie) else { return };
    if exchange.hide_headers.iter().flatten().any(|name| name == "set-cookie") {
        return;
    }
    let ignore = of.family.directive("ignore_headers");
    reading
        .diagnostics
        .warning(
            ignored.span,
            "a cookie that is set for one client is stored with the response and sent to every other client",
        )
        .help(format!(
            "remove Set-Cookie from {ignore}: responses that set a cookie then reach only their client"
        ))
        .once();
}
