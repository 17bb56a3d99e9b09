//! A lifetime as an entry keeps it: in whole seconds, in 24 bytes instead of 64.
//!
//! It only makes small and large again; what a lifetime means is `policy`'s. Next: `entry`.

use crate::policy::{Lifetime, Needs, Revalidation, VaryRule};
use std::time::Duration;

/// No such window.
const NONE: u32 = u32::MAX;
const IMPLIED: u16 = 1;
const REQUIRED: u16 = 1 << 1;
const VARY_IGNORED: u16 = 1 << 2;
const ALWAYS_VALIDATE: u16 = 1 << 3;
/// Also of a public response, which meets the need of addresses anyway.
const VARY_ADDRESS: u16 = 1 << 8;
/// First bit of [`Needs`].
const NEEDS: u16 = 4;

#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptLifetime {
    fresh_until: i64,
    initial_age: u32,
    stale_while_revalidate: u32,
    stale_if_error: u32,
    flags: u16,
}

impl KeptLifetime {
    pub(crate) fn new(lifetime: Lifetime) -> KeptLifetime {
        let Lifetime {
            fresh_until,
            initial_age,
            stale_while_revalidate,
            stale_if_error,
            revalidation,
            vary,
            public,
            always_validate,
        } = lifetime;
        let mut flags = match revalidation {
            Revalidation::Free => 0,
            Revalidation::Implied => IMPLIED,
            Revalidation::Required => REQUIRED,
        };
        flags |= if vary.ignored { VARY_IGNORED } else { 0 };
        flags |= if vary.address { VARY_ADDRESS } else { 0 };
        flags |= u16::from(Needs::met_by(public, vary)) << NEEDS;
        flags |= if always_validate { ALWAYS_VALIDATE } else { 0 };
        KeptLifetime {
            fresh_until,
            initial_age: seconds(initial_age),
            stale_while_revalidate: stale_while_revalidate.map_or(NONE, seconds),
            stale_if_error: stale_if_error.map_or(NONE, seconds),
            flags,
        }
    }

    #[inline]
    pub(crate) fn meets(self, needs: Needs) -> bool {
        needs.are_met(self.met())
    }

    #[inline]
    fn met(self) -> u8 {
        (self.flags >> NEEDS) as u8 & 0xF
    }

    #[inline]
    fn has(self, vary: VaryRule, public: bool) -> bool {
        let bits = Needs::met_by(public, vary);
        self.met() & bits == bits
    }

    #[inline]
    pub(crate) fn whole(self) -> Lifetime {
        let public = self.has(VaryRule::default(), true);
        Lifetime {
            fresh_until: self.fresh_until,
            initial_age: Duration::from_secs(u64::from(self.initial_age)),
            stale_while_revalidate: window(self.stale_while_revalidate),
            stale_if_error: window(self.stale_if_error),
            revalidation: match self.flags & (IMPLIED | REQUIRED) {
                0 => Revalidation::Free,
                IMPLIED => Revalidation::Implied,
                _ => Revalidation::Required,
            },
            vary: VaryRule {
                ignored: self.flags & VARY_IGNORED != 0,
                origin: self.has(VaryRule { origin: true, ..VaryRule::default() }, false),
                unlisted: self.has(VaryRule { unlisted: true, ..VaryRule::default() }, false),
                address: self.flags & VARY_ADDRESS != 0,
            },
            public,
            always_validate: self.flags & ALWAYS_VALIDATE != 0,
        }
    }
}

/// Whole seconds, capped at 136 years.
fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(NONE).min(NONE - 1)
}

#[inline]
fn window(seconds: u32) -> Option<Duration> {
    (seconds != NONE).then(|| Duration::from_secs(u64::from(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_lifetime_of_whole_seconds_comes_back_as_it_was(
            fresh_until in any::<i64>(),
            age in any::<i32>(),
            windows in (option::of(any::<i32>()), option::of(any::<i32>())),
            revalidation in 0..3,
            marks in any::<(bool, bool, bool, bool, bool)>(),
        ) {
            let seconds = |seconds: i32| Duration::from_secs(u64::from(seconds.unsigned_abs()));
            let lifetime = Lifetime {
                fresh_until,
                initial_age: seconds(age),
                stale_while_revalidate: windows.0.map(seconds),
                stale_if_error: windows.1.map(seconds),
                revalidation: [Revalidation::Free, Revalidation::Implied, Revalidation::Required]
                    [revalidation as usize],
                vary: VaryRule {
                    ignored: marks.0,
                    origin: marks.2,
                    unlisted: marks.3,
                    address: marks.1,
                },
                public: marks.4,
                always_validate: marks.1,
            };
            prop_assert_eq!(KeptLifetime::new(lifetime).whole(), lifetime);
        }
    }

    #[test]
    fn a_lifetime_is_kept_in_24_bytes() {
        assert_eq!(size_of::<KeptLifetime>(), 24);
    }
}
