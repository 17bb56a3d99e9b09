//! What one level (http, server, location) says of a feature, and how it takes what it leaves open from the level above.
//!
//! `level!` makes the struct, every setting optional; lists count as one setting, so a level that writes one `add_header`
//! has none of the level above. `settings!` makes in addition the resolved data, with the defaults. A feature with a rule of its
//! own writes [`Feature`](super::Feature) by hand. Next: the features.

use crate::source::Span;

/// A value with its place, for errors found later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed<T> {
    pub value: T,
    pub span: Span,
}

impl<T> Placed<T> {
    pub fn nowhere(value: T) -> Self {
        Placed { value, span: Span::default() }
    }
}

impl From<Placed<u64>> for u64 {
    fn from(placed: Placed<u64>) -> u64 {
        placed.value
    }
}

/// The settings of one level, each optional; `inherit_open` takes those left open from the level above.
macro_rules! level {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: Option<$type>,)*
        }

        impl $name {
            pub(super) fn inherit_open(&mut self, above: &Self) {
                $(if self.$field.is_none() {
                    self.$field.clone_from(&above.$field);
                })*
            }
        }
    };
}
pub(crate) use level;

/// A feature whose settings are inherited one by one: `name: type = default`, with `type => resolved type`
/// where they differ; optionally `phases`, which says in which phases it acts.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident, $level:ident($place:ident, $reading:ident) {
            $($(#[$field_meta:meta])* $field:ident: $type:ty $(=> $made:ty)? = $default:expr,)*
        }
        $(phases |$settings:ident| $phases:expr)?
    ) => {
        $crate::features::templates::record! {
            $(#[$meta])*
            pub struct $name {
                $($(#[$field_meta])* pub $field: $crate::features::level::settings!(@made $type $(, $made)?),)*
            }
        }

        $crate::features::level::level! {
            pub struct $level { $($(#[$field_meta])* $field: $type,)* }
        }

        impl $crate::features::Feature for $level {
            type Settings = $name;

            fn inherit(&mut self, above: &Self) {
                self.inherit_open(above);
            }

            #[allow(unused_variables)]
            fn resolve(
                &self,
                $place: &$crate::features::Place<'_>,
                $reading: &mut $crate::reading::Reading<'_>,
            ) -> $name {
                $name { $($field: Option::clone(&self.$field).unwrap_or_else(|| $default).into(),)* }
            }

            $(fn phases($settings: &$name) -> $crate::features::phases::Phases {
                $phases
            })?
        }
    };
    (@made $type:ty) => { $type };
    (@made $type:ty, $made:ty) => { $made };
}
pub(crate) use settings;
