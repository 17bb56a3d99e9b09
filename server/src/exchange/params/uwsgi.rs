//! The packet that a request in uwsgi begins with.

use super::super::request_head::{RequestPlan, WrittenHead};
use crate::client::ClientFailure;
use millstream_conf::model::UwsgiPass;
use millstream_wire::uwsgi::Packet;

/// `HeadTooLarge` if the parameters exceed the protocol's limit.
pub(in crate::exchange) fn write(
    out: &mut Vec<u8>,
    plan: &RequestPlan<'_>,
    pass: &UwsgiPass,
) -> Result<WrittenHead, ClientFailure> {
    let mut packet = Packet::begin(out, [pass.modifier1, pass.modifier2]);
    super::each(plan, &pass.params, |name, value| packet.pair(name, value));
    packet.text(pass.string.as_bytes());
    let written = WrittenHead { keep: false, upgrade: false };
    if packet.end() { Ok(written) } else { Err(ClientFailure::HeadTooLarge) }
}
