//! How a check asks, and what it keeps of a response: what it means, in bounded memory.
//!
//! The response is read through and stored nowhere. A body in gzip is compared decoded; another coding cannot be.

use super::experiment::CheckResult;
use crate::exchange::unserved::unserved;
use crate::exchange::{OpenedFill, Proxied};
use crate::request::Request;
use flate2::write::MultiGzDecoder;
use millstream_cache::{Entry, Follower};
use millstream_net::clock;
use millstream_shadow::{Content, ContentReader, Key};
use millstream_wire::{FieldId, Fields};
use std::io::Write;
use std::sync::Arc;

type Read = Result<Content, CheckResult>;

/// The response that was served.
pub(super) async fn stored(key: &Key, entry: &Arc<Entry>) -> Read {
    let head = entry.head();
    // Its times are of when it came.
    let came = u64::try_from(head.stored_at).unwrap_or(0);
    let mut reader = DecodedContent::begin(key, head.status, head.fields(), came)?;
    let mut body = entry.body().open(0..u64::MAX).await.map_err(|_| CheckResult::Unknown)?;
    while let Some(piece) = body.next().await {
        if !reader.feed(&piece.map_err(|_| CheckResult::Unknown)?)? {
            break;
        }
    }
    Ok(reader.finish())
}

/// What the upstream responds now.
pub(super) async fn ask(key: &Key, request: Request) -> Read {
    let read = async |opened| match opened {
        OpenedFill::Stream(follower, ..) => read(key, follower).await,
        // An error page would have been sent for it.
        OpenedFill::Ended(Proxied::Intercepted(status) | Proxied::Failed(status), _) => {
            let empty = || ContentReader::begin(key, status, std::iter::empty(), clock::unix_milliseconds());
            (statused(status).map(|()| empty().finish()), true)
        }
        OpenedFill::Ended(Proxied::Redirect(_), _) => (Err(CheckResult::Unknown), true),
        OpenedFill::Ended(..) => (Err(CheckResult::Failed), true),
    };
    unserved(request, None, read).await.unwrap_or(Err(CheckResult::Failed))
}

/// Also returns whether it has read all.
async fn read(key: &Key, mut follower: Follower) -> (Read, bool) {
    let head = follower.head().clone();
    let begun = statused(head.status)
        .and_then(|()| DecodedContent::begin(key, head.status, head.fields(), clock::unix_milliseconds()));
    let mut reader = match begun {
        Ok(reader) => reader,
        Err(result) => return (Err(result), false),
    };
    while let Some(piece) = follower.next().await {
        match piece.map_err(|_| CheckResult::Failed).and_then(|piece| reader.feed(&piece)) {
            Ok(true) => {}
            Ok(false) => return (Ok(reader.finish()), false),
            Err(result) => return (Err(result), false),
        }
    }
    (Ok(reader.finish()), true)
}

/// Of a failure nothing follows.
fn statused(status: u16) -> Result<(), CheckResult> {
    if matches!(status, 408 | 425 | 429 | 500..) { Err(CheckResult::Failed) } else { Ok(()) }
}

/// Decodes if it must.
struct DecodedContent {
    content: ContentReader,
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
}

impl DecodedContent {
    fn begin(key: &Key, status: u16, fields: Fields<'_>, now: u64) -> Result<DecodedContent, CheckResult> {
        let content = ContentReader::begin(key, status, fields.pairs(), now);
        let decoder = match fields.get(FieldId::ContentEncoding) {
            None => None,
            Some(coding) if coding.eq_ignore_ascii_case(b"identity") => None,
            Some(coding)
                if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") =>
            {
                Some(MultiGzDecoder::new(Vec::new()))
            }
            Some(_) => return Err(CheckResult::Unknown),
        };
        Ok(DecodedContent { content, decoder })
    }

    /// False once enough has been read.
    fn feed(&mut self, mut piece: &[u8]) -> Result<bool, CheckResult> {
        let Some(decoder) = &mut self.decoder else { return Ok(self.content.feed(piece)) };
        while !piece.is_empty() {
            // It takes no more than there is room for in a buffer of its own.
            match decoder.write(piece) {
                Ok(count @ 1..) => piece = &piece[count..],
                Ok(0) | Err(_) => return Err(CheckResult::Unknown),
            }
            let goes_on = self.content.feed(decoder.get_ref());
            decoder.get_mut().clear();
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(mut self) -> Content {
        if let Some(mut decoder) = self.decoder.take() {
            // A truncated body differs from a whole one by what is missing.
            _ = decoder.try_finish();
            self.content.feed(decoder.get_ref());
        }
        self.content.finish()
    }
}
