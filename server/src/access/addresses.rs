//! `allow` and `deny`: the first rule that names the client's address decides.
//!
//! It is the address that `realip` found, where that is trusted. Next: `network`, which compares.

use super::{Opinion, Question, forbidden};
use crate::network::contains;
use crate::request::Request;
use millstream_conf::model::{Satisfy, Settings};

pub(super) fn judge(request: &mut Request, settings: &Settings) -> Result<Opinion, Question> {
    let remote = request.client();
    Ok(match settings.access.iter().find(|rule| contains(&rule.network, remote)) {
        None => Opinion::None,
        Some(rule) if rule.allows => Opinion::LetsIn,
        Some(_) => {
            // Where any check may let the client in, this one has not the last word.
            if settings.satisfy == Satisfy::All {
                forbidden(request);
            }
            Opinion::Refuses(403)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{AccessDecision, Weighing, judge};
    use crate::fixture::{admitted, worker};
    use millstream_net::Address;
    use std::rc::Rc;

    fn check(rules: &str, client: &str, expected: Result<(), u16>) {
        let worker = worker(&format!("server {{ listen 80; location / {{ {rules} }} }}"));
        let mut request = admitted(&worker, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let remote = match client.parse() {
            Ok(ip) => Address::Tcp(std::net::SocketAddr::new(ip, 4000)),
            Err(_) => Address::Unix(None),
        };
        Rc::get_mut(&mut request.connection).expect("nobody else holds it").remote = remote;
        let generation = request.generation.clone();
        let settings = &generation.http().location(request.route.location).settings;
        let entry = match judge(&mut request, settings, Weighing::default()) {
            AccessDecision::Granted => Ok(()),
            AccessDecision::Refused(status) => Err(status),
            AccessDecision::Asks(..) => panic!("addresses are known"),
        };
        assert_eq!(entry, expected, "{rules} {client}");
    }

    #[test]
    fn the_first_rule_that_names_a_client_decides() {
        let office = "deny 192.0.2.1; allow 192.0.2.0/24; allow 2001:db8::/32; allow unix:; deny all;";
        for (rules, client, expected) in [
            ("", "192.0.2.1", Ok(())),
            (office, "192.0.2.1", Err(403)),
            (office, "192.0.2.2", Ok(())),
            (office, "::ffff:192.0.2.2", Ok(())),
            (office, "::ffff:192.0.2.1", Err(403)),
            (office, "198.51.100.1", Err(403)),
            (office, "2001:db8::1", Ok(())),
            (office, "2001:db9::1", Err(403)),
            (office, "unix:", Ok(())),
            ("deny unix:;", "unix:", Err(403)),
            ("deny unix:;", "192.0.2.1", Ok(())),
            ("deny 192.0.2.1;", "192.0.2.2", Ok(())),
            ("allow 192.0.2.1;", "192.0.2.2", Ok(())),
            ("allow all; deny 192.0.2.1;", "192.0.2.1", Ok(())),
            ("deny 0.0.0.0/0;", "2001:db8::1", Ok(())),
            ("deny 0.0.0.0/0;", "192.0.2.1", Err(403)),
            ("deny ::/0;", "192.0.2.1", Ok(())),
            ("satisfy any; deny 192.0.2.1;", "192.0.2.1", Err(403)),
            ("satisfy any; allow 192.0.2.1; deny all;", "192.0.2.1", Ok(())),
        ] {
            check(rules, client, expected);
        }
    }
}
