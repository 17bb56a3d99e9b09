//! `gunzip`: an answer that comes coded, for a client that does not take it so.
//!
//! Before: `coding`, which says what a client takes; next: `chain`.

use super::body::{BodyFilter, Draft, ENOUGH, Taken};
use super::coding;
use crate::request::Request;
use flate2::write::MultiGzDecoder;
use millstream_wire::{Coding, FieldId};
use std::io::Write;

pub(super) fn begin(request: &Request, draft: &mut Draft) -> Option<Box<dyn BodyFilter>> {
    let settings = &request.location().settings;
    let is_gzip = |value: &[u8]| value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip");
    // Of a part nobody can decode what comes before.
    if !settings.gunzip.enabled
        || draft.status == 206
        || !draft.headers.view().get(FieldId::ContentEncoding).is_some_and(is_gzip)
        || coding::takes(request, Coding::Gzip, draft.headers.view())
    {
        return None;
    }
    draft.headers.remove(FieldId::ContentEncoding);
    if settings.gzip.vary && !coding::varies(draft.headers.view()) {
        draft.headers.push(b"Vary", b"Accept-Encoding");
    }
    draft.resize();
    draft.weaken();
    Some(Box::new(Gunzip { decoder: MultiGzDecoder::new(Vec::new()), is_broken: false, took_any: false }))
}

struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    is_broken: bool,
    took_any: bool,
}

impl BodyFilter for Gunzip {
    fn take(&mut self, _: &Request, piece: &mut &[u8], is_last: bool, out: &mut Vec<u8>) -> Taken {
        while !piece.is_empty() && !self.is_broken {
            if out.len() >= ENOUGH {
                return Taken::Some;
            }
            self.took_any = true;
            // It takes no more than there is room for in a buffer of its own.
            match self.decoder.write(piece) {
                Ok(count @ 1..) => *piece = &piece[count..],
                Ok(0) | Err(_) => self.is_broken = true,
            }
            out.append(self.decoder.get_mut());
        }
        // What follows something broken is read to its end all the same.
        *piece = &[];
        if self.took_any && !self.is_broken {
            let whole = if is_last { self.decoder.try_finish() } else { self.decoder.flush() };
            self.is_broken = whole.is_err();
            out.append(self.decoder.get_mut());
        }
        if is_last && self.is_broken { Taken::Broken } else { Taken::All }
    }
}
