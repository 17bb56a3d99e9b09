//! Header blocks: heads of answers, interim ones, trailers.
//!
//! A head whose block is octet for octet the one before, and depends on no table, means the same and is not decoded again.

use super::{Multiplex, Told};
use crate::exchange::{Broken, HEAD};
use millstream_wire::Method;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h2::error_code::ErrorCode::{self, ProtocolError};
use millstream_wire::h2::field_rules::{FieldsError, decode_trailers};
use millstream_wire::h2::response::decode_response;

#[derive(Debug, Clone, Copy)]
pub(super) struct HeadMeaning {
    status: u16,
    announced: Option<u64>,
}

impl Multiplex {
    /// A whole header block: a head, or trailers.
    #[inline]
    pub(super) fn headers(&mut self, stream: u32, block: &[u8], end: bool, now: u64) -> Told {
        let place = self.opened(stream)?;
        if place.is_some_and(|place| self.streams[place].coming.status != 0) {
            return self.trailers(place, block, end);
        }
        // Also of a stream that is gone: the table has to follow (RFC 9113 §4.3).
        let meaning = match self.meaning(block) {
            Ok(meaning) => meaning,
            Err(error) => return self.bad_fields(place, error),
        };
        let Some(place) = place else { return Ok(None) };
        let open = &mut self.streams[place];
        match (meaning.status, end) {
            // Interim ones are passed over (RFC 9110 §15.2); 101 is none of HTTP/2 (RFC 9113 §8.6).
            (100 | 102..=199, false) => return Ok(None),
            (100..=199, _) => return self.malformed(place, ProtocolError, "an invalid interim response"),
            _ => {}
        }
        (open.coming.status, open.coming.first_byte) = (meaning.status, now);
        open.announced = meaning.announced.filter(|_| !open.coming.is_head);
        if let Some(kept) = &mut self.kept_answer {
            kept.head(self.fields.view(), open.announced);
        }
        Ok(if end { self.ended(place) } else { None })
    }

    fn trailers(&mut self, place: Option<usize>, block: &[u8], end: bool) -> Told {
        self.last_meaning = None;
        if let Err(error) = decode_trailers(&mut self.decoder, block, &HEAD) {
            return self.bad_fields(place, error);
        }
        let Some(place) = place else { return Ok(None) };
        if !end {
            return self.malformed(place, ProtocolError, "trailers before the end");
        }
        Ok(self.ended(place))
    }

    #[inline]
    fn meaning(&mut self, block: &[u8]) -> Result<HeadMeaning, FieldsError> {
        if let Some(meaning) = self.last_meaning
            && self.last == block
        {
            return Ok(meaning);
        }
        let was_empty = self.decoder.table_size() == 0;
        self.last_meaning = None;
        let status = decode_response(&mut self.decoder, block, &mut self.fields, &HEAD)?;
        // As a body of CGI one of HTTP/2 ends with its stream, or where its length says so.
        let framing = framing::cgi(Method::Get, status, self.fields.view());
        let framing = framing.map_err(|error| FieldsError::Malformed(error.what()))?;
        let announced = if let Framing::Length(length) = framing { Some(length) } else { None };
        let meaning = HeadMeaning { status, announced };
        if was_empty && self.decoder.table_size() == 0 {
            self.last.clear();
            self.last.extend_from_slice(block);
            self.last_meaning = Some(meaning);
        }
        Ok(meaning)
    }

    fn bad_fields(&mut self, place: Option<usize>, error: FieldsError) -> Told {
        let what = match error {
            FieldsError::Compression(what) => return Err(Broken(ErrorCode::CompressionError, what)),
            FieldsError::Malformed(what) => what,
            FieldsError::TooLarge => "a head that is too large",
        };
        place.map_or(Ok(None), |place| self.malformed(place, ProtocolError, what))
    }
}
