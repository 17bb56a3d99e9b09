//! The walk over every text with variables, so that what a configuration reads is known at load.
//!
//! `record!` makes the walk of a struct of all its fields, and a type without a walk of its own does not compile in one:
//! no template can be forgotten. Next: `Settings::templates`, which `millstream`'s `assemble` asks.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::declared::cache_zone::CacheZoneId;
use crate::declared::log::{LogFileId, LogGroupId};
use crate::declared::resolver::ResolverId;
use crate::declared::upstream::UpstreamId;
use crate::network::Network;
use crate::reading::TempPath;
use crate::regular_expression::Regex;
use crate::source::Span;
use crate::template::Template;

pub trait Templates {
    /// In no particular order.
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>);
}

impl Templates for Template {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        all.push(self);
    }
}

impl<T: Templates> Templates for Option<T> {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        self.iter().for_each(|one| one.templates(all));
    }
}

impl<T: Templates> Templates for [T] {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        self.iter().for_each(|one| one.templates(all));
    }
}

impl<T: Templates> Templates for Vec<T> {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        self.as_slice().templates(all);
    }
}

impl<T: Templates + ?Sized> Templates for Arc<T> {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        (**self).templates(all);
    }
}

impl<T: Templates + ?Sized> Templates for Box<T> {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        (**self).templates(all);
    }
}

impl<A: Templates, B: Templates> Templates for (A, B) {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        self.0.templates(all);
        self.1.templates(all);
    }
}

macro_rules! without_templates {
    ($($type:ty),* $(,)?) => {
        $(impl $crate::features::templates::Templates for $type {
            fn templates<'t>(&'t self, _: &mut Vec<&'t $crate::template::Template>) {}
        })*
    };
}
pub(crate) use without_templates;

without_templates!(
    bool,
    u8,
    u16,
    u32,
    u64,
    usize,
    String,
    str,
    &'static str,
    Duration,
    IpAddr,
    Network,
    PathBuf,
    Regex,
    Span,
    TempPath,
    CacheZoneId,
    LogFileId,
    LogGroupId,
    ResolverId,
    UpstreamId,
);

/// A struct of plain data whose templates are those of all its fields.
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $crate::features::templates::Templates for $name {
            fn templates<'t>(&'t self, all: &mut Vec<&'t $crate::template::Template>) {
                $($crate::features::templates::Templates::templates(&self.$field, all);)*
            }
        }
    };
}
pub(crate) use record;
