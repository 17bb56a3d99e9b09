//! `gunzip`: an answer that comes coded, for a client that does not take it so.
//!
//! Before: `coding`, which says what a client takes; next: `chain`.

use super::body::{BodyFilter, Draft};
use super::coding;
use crate::request::Request;
use flate2::write::MultiGzDecoder;
use millstream_wire::{Coding, FieldId};
use std::io::Write;

/// Begins, where the answer is coded with gzip and the client does not take that.
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
    fn take(&mut self, _: &Request, piece: &[u8], out: &mut Vec<u8>) {
        if self.is_broken || piece.is_empty() {
            return;
        }
        self.took_any = true;
        self.is_broken = self.decoder.write_all(piece).and_then(|()| self.decoder.flush()).is_err();
        out.append(self.decoder.get_mut());
    }

    fn end(&mut self, _: &Request, out: &mut Vec<u8>) -> bool {
        if self.took_any && !self.is_broken {
            self.is_broken = self.decoder.try_finish().is_err();
            out.append(self.decoder.get_mut());
        }
        !self.is_broken
    }
}
