//! `auth_request`: another service says whether a request is let in, by the status of its answer.
//!
//! Here is what is asked and what the answer means; asking is a subrequest (`drive/subrequest`).

use super::{Opinion, Question, challenge};
use crate::failure;
use crate::request::Request;
use crate::rewrite;
use crate::variables::personal::shown_by;
use crate::variables::value;
use millstream_conf::model::{AuthRequest, Level, Settings};

pub(super) fn judge(_: &mut Request, settings: &Settings) -> Result<Opinion, Question> {
    if settings.auth_request.uri.is_some() { Err(Question::Service) } else { Ok(Opinion::None) }
}

/// `answer`: the head of the subrequest's response as it would have been sent.
pub fn heard(request: &mut Request, settings: &AuthRequest, subrequest: &Request, answer: &[u8]) -> Opinion {
    // Also of a refusal, for the page that tells it.
    for (target, template) in &settings.set {
        rewrite::set(request, *target, &value(template, subrequest), shown_by(template, subrequest));
    }
    match subrequest.sent.status {
        200..=299 => Opinion::LetsIn,
        401 => {
            challenges(answer).for_each(|how| challenge(request, how));
            Opinion::Refuses(401)
        }
        403 => Opinion::Refuses(403),
        status => {
            failure::log(request, Level::Error, format_args!("auth request unexpected status: {status}"));
            Opinion::Refuses(500)
        }
    }
}

fn challenges(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    const NAME: &[u8] = b"www-authenticate:";
    head.split(|&byte| byte == b'\n').filter_map(|line| {
        let (name, rest) = line.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then(|| rest.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_challenge_of_a_head_is_found() {
        let head = b"HTTP/1.1 401 x\r\nWWW-Authenticate: Basic realm=\"a\"\r\nX-WWW-Authenticate: no\r\nwww-authenticate:Bearer\r\n\r\n";
        let found: Vec<&[u8]> = challenges(head).collect();
        assert_eq!(found, [&b"Basic realm=\"a\""[..], b"Bearer"]);
    }
}
