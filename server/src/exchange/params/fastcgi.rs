//! The beginning of a request in FastCGI, and its parameters.

use super::super::request_head::{RequestPlan, WrittenHead};
use millstream_conf::model::FastCgiPass;
use millstream_net::buffers;
use millstream_wire::fastcgi::{Kind, encode};

pub(in crate::exchange) fn write(
    out: &mut Vec<u8>,
    plan: &RequestPlan<'_>,
    pass: &FastCgiPass,
) -> WrittenHead {
    encode::begin(out, pass.keep_conn);
    let mut pairs = buffers::take();
    super::each(plan, &pass.params, |name, value| encode::pair(&mut pairs, name, value));
    encode::stream(out, Kind::Params, &pairs);
    buffers::give(pairs);
    WrittenHead { keep: pass.keep_conn, upgrade: false }
}
