//! gRPC's health protocol: the message that asks about a service, and what is made of the answer.
//!
//! The protocol is <https://github.com/grpc/grpc/blob/master/doc/health-checking.md>. Next: `health`, which asks.

use prost::Message;

pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";

#[derive(Clone, PartialEq, Message)]
struct ServiceQuestion {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct ServiceAnswer {
    #[prost(int32, tag = "1")]
    status: i32,
}

const STATES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const SERVING: i32 = 1;

/// An empty name means the server itself.
pub(super) fn message(service: &str) -> Vec<u8> {
    ServiceQuestion { service: service.to_owned() }.encode_to_vec()
}

/// By code, reason and message. The error ends a sentence.
pub(super) fn judge(wanted: u32, (code, reason): (u32, &str), message: Option<&[u8]>) -> Result<(), String> {
    if code != wanted {
        let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        return Err(format!("the gRPC status is {code}{reason}"));
    }
    // A server that is to refuse the call has no more to say.
    if wanted != 0 {
        return Ok(());
    }
    let message = message.ok_or("the response has no message")?;
    let answer = ServiceAnswer::decode(message)
        .map_err(|error| format!("the response has an invalid message: {error}"))?;
    if answer.status == SERVING {
        return Ok(());
    }
    let state = usize::try_from(answer.status).ok().and_then(|number| STATES.get(number));
    Err(match state {
        Some(state) => format!("the service is {state}"),
        None => format!("the service's state is {}", answer.status),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_well_that_serves_or_whose_call_ends_with_the_wanted_code() {
        let serving: &[u8] = &[8, 1];
        for (wanted, outcome, message, expected) in [
            (0, (0, ""), Some(serving), Ok(())),
            (0, (0, ""), Some(&[8, 2][..]), Err("the service is NOT_SERVING")),
            (0, (0, ""), Some(&[8, 3]), Err("the service is SERVICE_UNKNOWN")),
            // A state that is not written is the first.
            (0, (0, ""), Some(&[]), Err("the service is UNKNOWN")),
            (0, (0, ""), Some(&[8, 9]), Err("the service's state is 9")),
            // What later versions add to the message is no mistake.
            (0, (0, ""), Some(&[8, 1, 0x12, 1, b'x']), Ok(())),
            (0, (0, ""), None, Err("the response has no message")),
            (0, (5, "no such service"), None, Err("the gRPC status is 5 (no such service)")),
            (0, (12, ""), None, Err("the gRPC status is 12")),
            (12, (12, ""), None, Ok(())),
            (12, (0, ""), Some(serving), Err("the gRPC status is 0")),
        ] {
            let found = judge(wanted, outcome, message);
            assert_eq!(found, expected.map_err(str::to_owned), "{wanted} {outcome:?} {message:?}");
        }
        assert!(judge(0, (0, ""), Some(&[8])).is_err(), "a message that is cut");
    }

    #[test]
    fn a_question_names_its_service() {
        assert_eq!(message(""), b"");
        assert_eq!(message("shop"), b"\x0a\x04shop");
    }
}
