//! Which field controls the caching of an answer: `CDN-Cache-Control` where it is there and valid, else `Cache-Control`.
//!
//! RFC 9213 §2.2: the targeted field takes the place of Cache-Control and Expires whole, and one that is empty or no
//! structured field counts for nothing. `proxy_ignore_headers Cache-Control` means both. Next: `judge`.

use millstream_conf::model::IgnoreHeaders;
use millstream_wire::cache_control::{self, CacheControl};
use millstream_wire::{FieldId, Fields, list};

#[derive(Debug, Clone, Copy)]
pub struct Governing<'a> {
    pub control: CacheControl<'a>,
    /// Cache-Control or CDN-Cache-Control.
    pub field: FieldId,
    /// Whether Expires counts if the directives give no lifetime.
    pub expires_counts: bool,
    answer: Fields<'a>,
}

pub fn governing<'a>(ignore: &IgnoreHeaders, answer: Fields<'a>) -> Governing<'a> {
    let of = |control, field, expires_counts| Governing { control, field, expires_counts, answer };
    if ignore.cache_control {
        return of(CacheControl::default(), FieldId::CacheControl, !ignore.expires);
    }
    if answer.has(FieldId::CdnCacheControl)
        && let Some(control) = cache_control::targeted(answer.all(FieldId::CdnCacheControl))
    {
        return of(control, FieldId::CdnCacheControl, false);
    }
    plain(ignore, answer)
}

fn plain<'a>(ignore: &IgnoreHeaders, answer: Fields<'a>) -> Governing<'a> {
    let control = cache_control::parse(answer.all(FieldId::CacheControl));
    Governing { control, field: FieldId::CacheControl, expires_counts: !ignore.expires, answer }
}

impl<'a> Governing<'a> {
    /// What Cache-Control and Expires say, whatever governs.
    pub fn plain(&self, ignore: &IgnoreHeaders) -> Governing<'a> {
        if self.field == FieldId::CacheControl { *self } else { plain(ignore, self.answer) }
    }

    /// The line of a directive, or the first.
    pub fn line(&self, directive: &str) -> &'a [u8] {
        let holds = |line: &&'a [u8]| {
            list::elements(line)
                .any(|element| list::pair(element).0.eq_ignore_ascii_case(directive.as_bytes()))
        };
        let mut lines = self.answer.all(self.field);
        lines.clone().find(holds).or_else(|| lines.next()).unwrap_or_default()
    }

    /// Whether a field is named by `no-cache="…"` or `private="…"`: such fields are not stored, the rest of
    /// the response may be (RFC 9111 §5.2.2.4, §5.2.2.7).
    pub fn excludes(&self, name: &[u8]) -> bool {
        self.excluded().any(|one| one.eq_ignore_ascii_case(name))
    }

    pub fn excluded(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.control.no_cache.names().chain(self.control.private.names())
    }

    pub fn excludes_any(&self) -> bool {
        self.excluded().next().is_some()
    }
}
