//! The beginning of a request as it goes out, in the words of whichever protocol is spoken.

use super::request_head::{self, RequestFraming, RequestPlan, WrittenHead};
use super::{params, report};
use crate::client::ClientFailure;
use millstream_conf::model::{HttpVersion, Protocol};
use millstream_upstream::Speaker;

pub(super) fn write(
    out: &mut Vec<u8>,
    plan: &RequestPlan<'_>,
    peer: &str,
) -> Result<(Speaker, WrittenHead), ClientFailure> {
    Ok(match &plan.proxy.protocol {
        Protocol::Http(http) if http.http_version == HttpVersion::Http2 => {
            let method = http.method.as_ref();
            (Speaker::Http2, request_head::write_block(out, plan, method, http.passes_trailers))
        }
        Protocol::Grpc(_) => (Speaker::Http2, request_head::write_block(out, plan, None, true)),
        Protocol::Http(http) => {
            let speaker = Speaker::http1(plan.framed == RequestFraming::Chunked);
            (speaker, request_head::write(out, plan, http))
        }
        Protocol::FastCgi(fastcgi) => {
            let url = report::url(plan.request, plan.proxy, peer, None);
            let complaints = report::complaints(plan.request, fastcgi, &url);
            (Speaker::fastcgi(complaints), params::write_fastcgi(out, plan, fastcgi))
        }
        Protocol::Uwsgi(uwsgi) => (Speaker::Cgi, params::write_uwsgi(out, plan, uwsgi)?),
        Protocol::Scgi(scgi) => (Speaker::Cgi, params::write_scgi(out, plan, scgi)),
    })
}
