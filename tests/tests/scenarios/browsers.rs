//! `modern_browser`, `ancient_browser` and their variables.

use millstream_tests::server::Server;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        modern_browser_value new; ancient_browser_value old;
        server { listen 127.0.0.1:@PORT@;
            modern_browser msie 5.5; modern_browser gecko 1.0.0; modern_browser opera 9.0;
            modern_browser safari 413; modern_browser konqueror 3.0.99.1;
            location / { return 200 \"$modern_browser|$ancient_browser|$msie\"; }
            location /opera { modern_browser MSIE 5.5; return 200 \"$modern_browser|$ancient_browser|$msie\"; }
            location /unlisted { modern_browser unlisted; ancient_browser Links Lynx netscape4;
                return 200 \"$modern_browser|$ancient_browser|$msie\";
                location /unlisted/nested { modern_browser_value 2; return 200 \"$modern_browser|$ancient_browser|$msie\"; } }
            location /both { modern_browser unlisted; modern_browser gecko 1.8; ancient_browser gecko/2004;
                return 200 \"$modern_browser|$ancient_browser|$msie\"; }
            location /set { set $ancient_browser set; return 200 \"$modern_browser|$ancient_browser|$msie\"; }
        }
        server { listen 127.0.0.1:@PORT@; server_name bare; return 200 \"$modern_browser|$ancient_browser|$msie\"; }
    }";

const MSIE: &str = "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)";
const OLD_MSIE: &str = "Mozilla/4.0 (compatible; MSIE 5.0; Windows 98)";
const OPERA_AS_MSIE: &str = "Mozilla/4.0 (compatible; MSIE 6.0; X11; FreeBSD i386) Opera 7.50  [en]";
const FIREFOX: &str = "Mozilla/5.0 (X11; U; FreeBSD i386; en-US; rv:1.8.0.5) Gecko/20060729 Firefox/1.5.0.5";
const GECKO_BEFORE: &str = "Mozilla/5.0 (X11; U; Linux i686; en-US; rv:0.9.9) Gecko/20020610";
const SAFARI: &str =
    "Mozilla/5.0 (Macintosh; U; PPC Mac OS X; en) AppleWebKit/418 (KHTML, like Gecko) Safari/417.9.3";

/// Path, User-Agent if any, and the values of the three variables.
const CASES: &[(&str, Option<&str>, &str)] = &[
    ("/", Some(MSIE), "new||1"),
    ("/", Some(OLD_MSIE), "|old|1"),
    ("/", Some("Mozilla/4.0 (compatible; MSIE 5.5)"), "new||1"),
    ("/", Some("Mozilla/4.0 (compatible; MSIE 5.4.99)"), "|old|1"),
    ("/", Some("MSIE 6.0"), "|old|1"),
    ("/", Some("MSIE 6"), "|old|"),
    ("/", Some(OPERA_AS_MSIE), "|old|"),
    ("/", Some("Opera/9.01 (X11; FreeBSD 6 i386; U; en)"), "new||"),
    ("/", Some("Opera"), "|old|"),
    ("/", Some(FIREFOX), "new||"),
    ("/", Some(GECKO_BEFORE), "|old|"),
    ("/", Some(SAFARI), "new||"),
    (
        "/",
        Some("Mozilla/5.0 (SymbianOS/9.1; U; en-us) AppleWebKit/413 (KHTML, like Gecko) Safari/412"),
        "|old|",
    ),
    ("/", Some("Mozilla/5.0 (compatible; Konqueror/3.1; Linux)"), "new||"),
    ("/", Some("Mozilla/5.0 (compatible; Konqueror/3.0.99.0; Linux)"), "|old|"),
    ("/", Some("curl/8"), "|old|"),
    ("/", Some(""), "|old|"),
    ("/", None, "|old|"),
    ("/opera", Some(MSIE), "new||1"),
    ("/opera", Some(OPERA_AS_MSIE), "|old|"),
    ("/opera", Some("Opera/9.9"), "|old|"),
    ("/unlisted", Some(MSIE), "|old|1"),
    ("/unlisted", Some(FIREFOX), "new||"),
    ("/unlisted", Some("Lynx/2.8"), "|old|"),
    ("/unlisted", Some("curl/8"), "new||"),
    ("/unlisted", None, "new||"),
    ("/unlisted/nested", Some("curl/8"), "2||"),
    ("/unlisted/nested", Some("Links (2.1)"), "|old|"),
    ("/both", Some(GECKO_BEFORE), "|old|"),
    ("/both", Some(FIREFOX), "new||"),
    ("/both", Some("curl/8"), "new||"),
    ("/both", Some("gecko/2004"), "|old|"),
    ("/set", Some(MSIE), "new|set|1"),
];

#[test]
fn a_browser_is_modern_or_ancient_as_in_nginx() {
    let server = Server::start(SITE, &[]);
    let told = |host: &str, path: &str, agent: Option<&str>| {
        let agent = agent.map(|agent| ("User-Agent", agent));
        let fields: Vec<(&str, &str)> = [("Host", host)].into_iter().chain(agent).collect();
        server.get_with(path, &fields).text()
    };
    for (path, agent, expected) in CASES {
        assert_eq!(told("a", path, *agent), *expected, "{path} {agent:?}");
    }
    assert_eq!(told("bare", "/", Some(FIREFOX)), "|old|");
}
