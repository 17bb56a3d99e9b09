//! `proxy_cache_ignore_args` and its kind: arguments of the query that are not part of the key.
//!
//! Before: `cache`, which has the row; next: `millstream-server`'s `caching/ignored_args`, which leaves them out.

use crate::features::pass::CommonLevel;
use crate::features::templates::without_templates;
use crate::reading::Reading;
use crate::tree::Directive;

/// A name of arguments, in which `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredArg(Box<[Box<[u8]>]>);

without_templates!(IgnoredArg);

impl IgnoredArg {
    pub fn new(text: &str) -> IgnoredArg {
        IgnoredArg(text.split('*').map(|piece| piece.as_bytes().into()).collect())
    }

    /// Case is ignored, as in `$arg_name`.
    pub fn names(&self, name: &[u8]) -> bool {
        let [first, middle @ .., last] = &*self.0 else {
            return self.0.first().is_some_and(|whole| whole.eq_ignore_ascii_case(name));
        };
        let fits = |piece: &[u8], of: &[u8]| of.eq_ignore_ascii_case(piece);
        let Some((start, mut rest)) = name.split_at_checked(first.len()) else { return false };
        let Some(end) = rest.len().checked_sub(last.len()) else { return false };
        if !fits(first, start) || !fits(last, &rest[end..]) {
            return false;
        }
        rest = &rest[..end];
        middle.iter().all(|piece| {
            let found = (0..=rest.len().saturating_sub(piece.len()))
                .find(|&at| rest[at..].get(..piece.len()).is_some_and(|of| fits(piece, of)));
            if let Some(at) = found {
                rest = &rest[at + piece.len()..];
            }
            found.is_some()
        })
    }
}

pub(in crate::features::pass) fn read(
    level: &mut CommonLevel,
    directive: &Directive,
    reading: &mut Reading<'_>,
) {
    let ignored = level.cache.ignored_args.get_or_insert_default();
    for word in &directive.args {
        match word.text.as_str() {
            "off" if directive.args.len() == 1 => {}
            text if text.is_empty() || text.contains(['$', '&', ';', '=', '?', ' ', ',']) => {
                reading
                    .error(word.span, format!("invalid name of an argument \"{text}\""))
                    .help("write names separated by spaces, such as utm_* gclid");
            }
            text => ignored.push(IgnoredArg::new(text)),
        }
    }
}
