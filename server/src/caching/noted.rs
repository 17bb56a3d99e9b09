//! The lines with what no field of a request says and responses vary by. They have no field's name and are not passed on.
//!
//! Before: `left_out`. Next: `keyed`.

use crate::left_out::ReadVariable;
use crate::request::Request;
use crate::variables;
use millstream_conf::model::ProxyCache;
use millstream_net::buffers;
use millstream_wire::field::Field;
use millstream_wire::{FieldId, Span};
use std::borrow::Cow;

/// Appends a line for each that is neither empty nor in the key, and for the blocks that have led here.
pub(super) fn append(request: &mut Request, cache: &ProxyCache) {
    let generation = request.generation.clone();
    let left_out = &generation.shared.left_out;
    let (own, location) = (request.server().own, request.route.location);
    if let Some(block) = left_out.block(own, location) {
        add(request, b"=block", &escaped(&block));
    }
    let mut read = left_out.variables(own, location, request.descent.is_internal).peekable();
    if read.peek().is_none() {
        return;
    }
    // What is read here is not read yet: a later location may read another value, and captures are the last expression's.
    let apart = request.route.apart();
    let kept = std::mem::replace(&mut request.route, apart);
    let mut value = buffers::take();
    for ReadVariable { note, variable } in read {
        if cache.key.variables().any(|named| named == variable) {
            continue;
        }
        value.clear();
        variables::append(variable, request, &mut value);
        if !value.is_empty() {
            add(request, note, &escaped(&value));
        }
    }
    buffers::give(value);
    request.route = kept;
}

pub(super) fn add(request: &mut Request, name: &[u8], value: &[u8]) {
    let mut append = |text: &[u8]| {
        let start = request.received.bytes.len();
        request.received.bytes.extend_from_slice(text);
        Span::new(start, request.received.bytes.len())
    };
    let (name, value) = (append(name), append(value));
    request.received.head.fields.push(Field::new(FieldId::Other, name, value));
}

/// Without line ends, which separate notes where they are compared.
fn escaped(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.iter().any(|byte| matches!(byte, b'\n' | b'\\')) {
        return value.into();
    }
    value.escape_ascii().collect::<Vec<u8>>().into()
}
