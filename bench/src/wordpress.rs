//! `cargo xtask bench wordpress`: a blog through PHP-FPM with `fastcgi_cache`, Millstream and nginx on the same file.
//!
//! First the pages of both are compared, asked for twice, so that the second is a hit where there can be one; then the blog's
//! first page and a post are loaded in turns.

mod site;

use std::fmt::Write;

use millstream_load::rank::median;
use millstream_tests::client::{Answer, Client};
use millstream_tests::process::cpu_time;

use crate::peers::{self, Started};
use crate::product::Product;
use crate::{Options, Programs, wrk};
use site::Site;

const HOST: (&str, &str) = ("Host", "blog.example");
/// Pages besides the posts: a list, searches, feeds, redirects, files, refused and missing pages.
const PAGES: &[&str] = &[
    "/",
    "/page/2/",
    "/?s=post",
    "/?p=1",
    "/index.php",
    "/post-1",
    "/category/uncategorized/",
    "/2026/01/",
    "/feed/",
    "/wp-sitemap.xml",
    "/wp-json/wp/v2/posts?per_page=20",
    "/wp-login.php",
    "/wp-admin/",
    "/xmlrpc.php",
    "/wp-includes/css/dashicons.min.css",
    "/wp-includes/js/none.js",
    "/wp-content/none.php",
    "/no-such-post/",
];
const POSTS: usize = 20;
const LOADED: [&str; 2] = ["/", "/post-7/"];
/// The bar: a multiple of nginx's request rate.
const BAR: f64 = 1.5;
/// Fields that both must send alike: none about the server's name, the framing or the age.
const FIELDS: [&str; 8] =
    ["location", "content-type", "link", "x-cache", "cache-control", "expires", "x-redirect-by", "allow"];

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let site = Site::start()?;
    let servers = [Product::Millstream, Product::Nginx]
        .map(|product| peers::on_site(product, "bench/conf/wordpress.conf", site.folder(), programs));
    let [ours, nginx] = servers;
    let (ours, nginx) = (ours?, nginx?);
    let mut text = String::new();
    if let Some(version) = programs.nginx.as_deref().and_then(|path| Product::Nginx.version_of(path)) {
        let _ = writeln!(text, "- {version}");
    }
    let (compared, different) = compare(&ours, &nginx)?;
    let _ = writeln!(
        text,
        "\n### WordPress through PHP-FPM with `fastcgi_cache`\n\n`cargo xtask bench wordpress`: of {compared} answers {} are not nginx's.\n",
        different.len()
    );
    different.iter().for_each(|line| _ = writeln!(text, "- {line}"));
    text.push_str(
        "| page | server | requests/s | CPU us a request | times nginx's requests/s | of its CPU |\n",
    );
    text.push_str("| --- | --- | ---: | ---: | ---: | ---: |\n");
    let mut holds = different.is_empty();
    for page in LOADED {
        let (faster, rows) = load(page, options, &ours, &nginx)?;
        text.push_str(&rows);
        holds &= faster >= BAR;
    }
    let _ = writeln!(
        text,
        "\n{}: the same answers, and {BAR} times nginx's requests a second",
        if holds { "pass" } else { "**FAIL**" }
    );
    if holds { Ok(text) } else { Err(text) }
}

/// How many responses were compared, and those that differ.
fn compare(ours: &Started, nginx: &Started) -> Result<(usize, Vec<String>), String> {
    let posts = (1..=POSTS).map(|number| format!("/post-{number}/"));
    let pages: Vec<String> = PAGES.iter().map(|page| (*page).to_owned()).chain(posts).collect();
    let mut different = Vec::new();
    for page in pages.iter().chain(&pages) {
        let (one, other) = (asked(ours, page)?, asked(nginx, page)?);
        let is_built_in = one.status >= 400 && one.field("x-cache").is_none();
        let mut what = Vec::new();
        if one.status != other.status {
            what.push(format!("status {} for {}", one.status, other.status));
        }
        // The built-in pages of errors name their server.
        if !is_built_in && without_nonces(&one.body) != without_nonces(&other.body) {
            what.push(format!("a body of {} bytes for {}", one.body.len(), other.body.len()));
        }
        for field in FIELDS {
            let at = |answer: &Answer, port: u16| {
                answer.field(field).map(|value| value.replace(&format!(":{port}"), ""))
            };
            let (mine, theirs) = (at(&one, ours.port), at(&other, nginx.port));
            if mine != theirs {
                what.push(format!("{field} {mine:?} for {theirs:?}"));
            }
        }
        if !what.is_empty() {
            different.push(format!("{page}: {}", what.join(", ")));
        }
    }
    Ok((pages.len() * 2, different))
}

fn asked(server: &Started, page: &str) -> Result<Answer, String> {
    let mut client = Client::connect(server.port).map_err(|error| error.to_string())?;
    client.get_with(page, &[HOST]).map_err(|error| format!("{page}: {error}"))
}

/// Blanks nonces: ten hexadecimal digits soon after the word.
fn without_nonces(body: &[u8]) -> Vec<u8> {
    const DIGITS: usize = 10;
    let mut body = body.to_vec();
    let places: Vec<usize> =
        (body.windows(5).enumerate()).filter(|(_, word)| word == b"nonce").map(|(at, _)| at).collect();
    for place in places {
        let end = body.len().min(place + 40);
        let is_number = |part: &[u8]| part.iter().all(u8::is_ascii_hexdigit);
        if let Some(at) = body[place..end].windows(DIGITS).position(is_number) {
            body[place + at..place + at + DIGITS].fill(b'0');
        }
    }
    body
}

fn load(page: &str, options: &Options, ours: &Started, nginx: &Started) -> Result<(f64, String), String> {
    let mut rates = [Vec::new(), Vec::new()];
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        for (at, server) in [ours, nginx].into_iter().enumerate() {
            let url = format!("http://127.0.0.1:{}{page}", server.port);
            let before = cpu_time(server.id());
            let run = wrk::run(&url, &["Host: blog.example"], 100, options.duration)?;
            if run.errors > 0 {
                return Err(format!("{page}: {} errors of {}", run.errors, server.product.name()));
            }
            let used = cpu_time(server.id()) - before;
            rates[at].push(run.requests_per_second);
            costs[at].push(used.as_micros() as f64 / run.requests.max(1) as f64);
        }
    }
    let [our_rate, rate] = rates.map(median);
    let [our_cost, cost] = costs.map(median);
    let rows = format!(
        "| {page} | Millstream | {our_rate:.0} | {our_cost:.1} | {:.2} | {:.2} |\n| {page} | nginx | {rate:.0} | {cost:.1} | 1 | 1 |\n",
        our_rate / rate,
        our_cost / cost
    );
    Ok((our_rate / rate, rows))
}

#[cfg(test)]
mod tests {
    use super::without_nonces;

    #[test]
    fn numbers_for_one_use_are_blanked_and_nothing_else() {
        let page = b"a \"nonce\":\"0a1b2c3d4e\" name=\"_wpnonce\" value=\"1234567890\" deadbeef00 nonce none"
            .as_slice();
        let blanked =
            b"a \"nonce\":\"0000000000\" name=\"_wpnonce\" value=\"0000000000\" deadbeef00 nonce none"
                .as_slice();
        assert_eq!(without_nonces(page), blanked);
    }
}
