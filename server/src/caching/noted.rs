//! The lines with what no field of a request says and responses vary by. They have no field's name and are not passed on.
//!
//! Before: `left_out`. Next: `keyed`.

use crate::left_out::ReadVariable;
use crate::request::Request;
use crate::variables;
use millstream_conf::model::ProxyCache;
use millstream_net::buffers;
use std::borrow::Cow;

/// Appends a line for each that is neither empty nor in the key, and for the blocks that have led here.
pub(super) fn append(request: &mut Request, cache: &ProxyCache) {
    let generation = request.generation.clone();
    let left_out = &generation.shared.reads.left_out;
    let (own, location) = (request.server().own, request.route.location);
    if let Some(block) = left_out.block(own, location) {
        request.received.append_field(b"=block", &escaped(&block));
    }
    let is_in_key = |read: &&ReadVariable| cache.key.variables().any(|named| *named == read.variable);
    let read = left_out.variables(own, location, request.descent.is_internal);
    let read = read.filter(|read| !is_in_key(read));
    // What is read here is not read yet: a later location may read another value, and captures are the last expression's.
    let kept = read.clone().any(ReadVariable::is_remembered).then(|| {
        let apart = request.route.apart();
        std::mem::replace(&mut request.route, apart)
    });
    let mut value = buffers::take();
    for ReadVariable { note, variable } in read {
        value.clear();
        variables::append(variable, request, &mut value);
        if !value.is_empty() {
            request.received.append_field(note, &escaped(&value));
        }
    }
    buffers::give(value);
    if let Some(kept) = kept {
        request.route = kept;
    }
}

/// Without line ends, which separate notes where they are compared.
fn escaped(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.iter().any(|byte| matches!(byte, b'\n' | b'\\')) {
        return value.into();
    }
    value.escape_ascii().collect::<Vec<u8>>().into()
}
