//! The dashboard's page: three files out of the binary, which ask for nothing from elsewhere.
//!
//! No figure stands in them. What a browser may do with them is said in the head, strictly: no script and no style but these, no
//! frame around them. Next: `live`, which the page follows; `dashboard/dashboard.js`.

use millstream_server::client::Client;
use millstream_server::content::fixed;
use millstream_server::outcome::Outcome;
use millstream_server::request::Request;
use millstream_wire::Headers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asset {
    Page,
    Style,
    Script,
}

/// What the page may load and do (CSP level 3).
const POLICY: &[u8] =
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

impl Asset {
    pub(crate) fn named(name: &str) -> Option<Asset> {
        [Asset::Page, Asset::Style, Asset::Script].into_iter().find(|asset| asset.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Asset::Page => "",
            Asset::Style => "dashboard.css",
            Asset::Script => "dashboard.js",
        }
    }

    fn content(self) -> (&'static [u8], &'static str) {
        match self {
            Asset::Page => (b"text/html; charset=utf-8", include_str!("dashboard/page.html")),
            Asset::Style => (b"text/css; charset=utf-8", include_str!("dashboard/dashboard.css")),
            Asset::Script => (b"text/javascript; charset=utf-8", include_str!("dashboard/dashboard.js")),
        }
    }
}

pub(crate) async fn answer(request: &mut Request, client: &mut Client, asset: Asset) -> Outcome {
    let (media_type, content) = asset.content();
    let mut headers = Headers::default();
    headers.push(b"Content-Type", media_type);
    headers.push(b"Content-Security-Policy", POLICY);
    headers.push(b"X-Content-Type-Options", b"nosniff");
    headers.push(b"Referrer-Policy", b"no-referrer");
    headers.push(b"Cross-Origin-Opener-Policy", b"same-origin");
    headers.push(b"Cross-Origin-Resource-Policy", b"same-origin");
    // Another binary may have another page.
    headers.push(b"Cache-Control", b"no-store");
    fixed::whole(request, client, 200, &headers, content.as_bytes()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_for_nothing_from_elsewhere() {
        let all = [Asset::Page, Asset::Style, Asset::Script].map(|asset| asset.content().1);
        assert!(all.iter().map(|text| text.len()).sum::<usize>() < 100_000);
        for text in all {
            let elsewhere = [
                "https://",
                "src=\"http",
                "href=\"http",
                "fetch(\"http",
                "url(",
                "@import",
                "innerHTML",
                "eval(",
            ];
            assert!(elsewhere.iter().all(|what| !text.contains(what)));
        }
        assert!(!all[0].contains("style=") && !all[0].contains("<script>"), "the policy forbids it");
    }
}
