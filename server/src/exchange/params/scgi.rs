//! The head that a request in SCGI begins with.
//!
//! CONTENT_LENGTH is always there, and once: what the location says of it is what is sent anyway.

use super::super::request_head::{RequestFraming, RequestPlan, WrittenHead};
use millstream_conf::model::ScgiPass;
use millstream_net::buffers;
use millstream_wire::scgi;

pub(in crate::exchange) fn write(out: &mut Vec<u8>, plan: &RequestPlan<'_>, pass: &ScgiPass) -> WrittenHead {
    let mut pairs = buffers::take();
    super::each(plan, &pass.params, |name, value| {
        if name != b"CONTENT_LENGTH" {
            scgi::pair(&mut pairs, name, value);
        }
    });
    let length = match plan.framed {
        RequestFraming::Length(length) => length,
        RequestFraming::None | RequestFraming::Chunked => 0,
    };
    scgi::head(out, length, &pairs);
    buffers::give(pairs);
    WrittenHead { keep: false, upgrade: false }
}
