//! The cookie of whoever asked first is stored for everybody: `proxy_ignore_headers Set-Cookie;` without hiding it.

use super::Cached;
use crate::reading::Reading;

/// Warns of a location that stores the cookie of whoever asked first.
pub(super) fn advise(of: &Cached<'_>, reading: &mut Reading<'_>) {
    let exchange = &of.written.exchange;
    let Some(ignored) = exchange.ignore_headers.filter(|ignored| ignored.value.set_cookie) else { return };
    if exchange.hide_headers.iter().flatten().any(|name| name == "set-cookie") {
        return;
    }
    let hide = of.family.directive("hide_header");
    reading
        .diagnostics
        .warning(
            ignored.span,
            "a cookie that is set for one client is stored with the answer and given to everybody",
        )
        .help(format!("write {hide} Set-Cookie; beside it, or take Set-Cookie out"))
        .once();
}
