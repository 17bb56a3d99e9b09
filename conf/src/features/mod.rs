//! Everything that a configuration can say, one file a feature.
//!
//! A feature's file holds its rows in the table of directives, what one level may say of it and how that is inherited, what comes of
//! it with nginx's defaults, and the templates in it. `features!` lists them: it makes [`Level`], [`Settings`] and
//! [`ServerSettings`], inheritance, resolution, the walk over templates and the manual's order. Blocks that are no levels (main, events,
//! upstream, a server's own directives) have rows of their own kinds here too. Next: `row`, the features; `block`, which checks a
//! block against the table.

pub mod context;
pub mod phases;
pub mod templates;
pub mod level;
pub mod right;
pub mod logs;
pub mod main;
pub mod events;
pub mod upstream;
pub mod cache_zone;
pub mod made;
pub mod map;
pub mod geo;
pub mod split_clients;
pub mod http2;
pub mod listen;
pub mod location;
pub mod client_header;
pub mod tls;
pub mod client_certificate;
pub mod acme;
pub mod rewrite;
pub mod error_pages;
pub mod recursive_error_pages;
pub mod redirects;
pub mod files;
pub mod symlinks;
pub mod autoindex;
pub mod random_index;
pub mod builtin_content;
pub mod open_file_cache;
pub mod internal;
pub mod try_files;
pub mod types;
pub mod browser;
pub mod status_zone;
pub mod keepalive;
pub mod client_body;
pub mod send;
pub mod lingering;
pub mod headers;
pub mod trailers;
pub mod charset_map;
pub mod charset;
pub mod dashboard;
pub mod api;
pub mod forwarded;
pub mod realip;
pub mod ranges;
pub mod slice;
pub mod gzip;
pub mod gunzip;
pub mod sub_filter;
pub mod addition;
pub mod ssi;
pub mod brotli;
pub mod zstd;
pub mod resolver;
pub mod limit_rate;
pub mod pass;
pub mod dav;
pub mod purge_at;
pub mod health_match;
pub mod health_check;
pub mod limit;
pub mod limit_req;
pub mod limit_conn;
pub mod access;
pub mod auth_basic;
pub mod auth_delay;
pub mod auth_request;
pub mod satisfy;
pub mod mirror;
pub mod post_action;
pub mod early_hints;
pub mod shadow;
pub mod secure_link;
pub mod valid_referers;
pub mod userid;
pub mod otel;
pub mod cluster;
mod row;
mod written;

pub use crate::reading::Need;
use crate::reading::Reading;
use crate::template::{Template, Variable};
pub use row::{Apply, MANY, Repeat, Row, Words};
pub use written::Written;

use api::Api;
use builtin_content::BuiltinContent;
use context::Context;
use location::LocationMatch;
use pass::Pass;
use pass::cache::usage::ProxyCache;
use phases::Phases;
use purge_at::PurgeAt;
use row::{idle, often, once};
use std::sync::Arc;
use templates::Templates;

pub trait Feature: Clone + Default {
    type Settings;

    fn inherit(&mut self, above: &Self);

    /// Applies the defaults, and checks what needs the whole level.
    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> Self::Settings;

    /// The phases before the content in which it acts.
    fn phases(_: &Self::Settings) -> Phases {
        Phases::NONE
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub level: &'a Level,
    pub matches: &'a LocationMatch,
}

macro_rules! features {
    (
        rows { $($(#[$other_doc:meta])* $other:ident $other_title:literal,)* }
        server { $($(#[$server_doc:meta])* $server:ident $server_title:literal $server_level:ident,)* }
        content { $($(#[$content_doc:meta])* $content:ident $content_title:literal $content_level:ident $handler:ident($what:ty),)* }
        location { $($(#[$doc:meta])* $name:ident $title:literal $level:ident,)* }
    ) => {
        #[derive(Debug, Clone, Default)]
        pub struct Level {
            $($(#[$server_doc])* pub $server: $server::$server_level,)*
            $($(#[$content_doc])* pub $content: $content::$content_level,)*
            $($(#[$doc])* pub $name: $name::$level,)*
            /// Directives in force that decide about the cache, the outermost level's first.
            pub written: Vec<Written>,
        }

        #[derive(Debug, Clone)]
        pub struct ServerSettings {
            $($(#[$server_doc])* pub $server: <$server::$server_level as Feature>::Settings,)*
        }

        #[derive(Debug, Clone)]
        pub struct Settings {
            $($(#[$doc])* pub $name: <$name::$level as Feature>::Settings,)*
            pub content: Handler,
            /// The phases before the content in which any feature acts.
            pub phases: Phases,
        }

        /// What responds in a location, unless a `return` or `rewrite` does first.
        #[derive(Debug, Clone)]
        pub enum Handler {
            $($(#[$content_doc])* $handler($what),)*
            Files,
        }

        impl Templates for Handler {
            fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
                match self {
                    $(Handler::$handler(what) => what.templates(all),)*
                    Handler::Files => {}
                }
            }
        }

        impl Level {
            pub fn inherit(&mut self, above: &Level) {
                self.inherit_written(above);
                $(self.$server.inherit(&above.$server);)*
                $(self.$content.inherit(&above.$content);)*
                $(self.$name.inherit(&above.$name);)*
            }

            pub fn server_settings(&self, reading: &mut Reading<'_>) -> ServerSettings {
                let place = Place { level: self, matches: &LocationMatch::Server };
                ServerSettings { $($server: self.$server.resolve(&place, reading),)* }
            }

            pub fn settings(&self, matches: &LocationMatch, reading: &mut Reading<'_>) -> Settings {
                let place = Place { level: self, matches };
                $(let $name = self.$name.resolve(&place, reading);)*
                let phases = Phases::NONE$(.or($name::$level::phases(&$name)))*;
                Settings { $($name,)* content: self.handler(&place, reading), phases }
            }

            /// The first that the level names; all are checked for errors.
            fn handler(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> Handler {
                let content = None$(.or(self.$content.resolve(place, reading).map(Handler::$handler)))*;
                content.unwrap_or(Handler::Files)
            }
        }

        impl Settings {
            /// Templates evaluated for requests of this location, in no particular order.
            pub fn templates(&self) -> Vec<&Template> {
                let mut all = Vec::new();
                $(self.$name.templates(&mut all);)*
                self.content.templates(&mut all);
                all
            }
        }

        const SECTIONS: &[(&str, &[Row])] = &[
            $(($other_title, $other::ROWS),)*
            $(($server_title, $server::ROWS),)*
            $(($content_title, $content::ROWS),)*
            $(($title, $name::ROWS),)*
        ];
    };
}

features! {
    rows {
        main "Process",
        events "Events",
        listen "Listening and choosing a server",
        location "Locations and fixed responses",
        upstream "Upstream groups",
        map "Defined variables",
        geo "Defined variables",
        split_clients "Defined variables",
        charset_map "Response fields",
        health_match "Upstream groups",
        dashboard "API",
        acme "Certificates by ACME",
        cluster "Clusters",
    }
    server {
        /// `client_header_*`, `merge_slashes`.
        client_header "Client side" ClientHeaderLevel,
        http2 "HTTP/2 and HTTP/3" Http2Level,
        /// `None` without a certificate.
        tls "TLS" TlsLevel,
        client_certificate "TLS" ClientCertificateLevel,
    }
    content {
        /// `proxy_pass` and its family: the upstream, through the cache where that is on.
        pass "Proxying" PassLevel Pass(Arc<Pass>),
        /// `api`: this location is the API.
        api "API" ApiLevel Api(Api),
        /// `stub_status` and the like.
        builtin_content "Locations and fixed responses" BuiltinContentLevel Builtin(BuiltinContent),
        /// `proxy_cache_purge ZONE KEY`: every request here purges.
        purge_at "Purging" PurgeAtLevel Purge(Arc<PurgeAt>),
    }
    location {
        rewrite "Rewriting" RewriteLevel,
        error_pages "Locations and fixed responses" ErrorPageLevel,
        recursive_error_pages "Locations and fixed responses" RecursiveErrorPagesLevel,
        redirects "Locations and fixed responses" RedirectsLevel,
        files "Locations and fixed responses" FilesLevel,
        /// `None` if all links are followed.
        symlinks "Locations and fixed responses" SymlinksLevel,
        autoindex "Locations and fixed responses" AutoindexLevel,
        random_index "Locations and fixed responses" RandomIndexLevel,
        dav "Locations and fixed responses" DavLevel,
        open_file_cache "Locations and fixed responses" OpenFileCacheLevel,
        internal "Locations and fixed responses" InternalLevel,
        mirror "Locations and fixed responses" MirrorLevel,
        post_action "Locations and fixed responses" PostActionLevel,
        try_files "Locations and fixed responses" TryFilesLevel,
        types "Locations and fixed responses" TypesLevel,
        browser "Client side" BrowserLevel,
        status_zone "Locations and fixed responses" StatusZoneLevel,
        keepalive "Client side" KeepaliveLevel,
        client_body "Client side" ClientBodyLevel,
        send "Client side" SendLevel,
        lingering "Client side" LingeringLevel,
        headers "Response fields" HeadersLevel,
        resolver "Name resolution" ResolverLevel,
        charset "Response fields" CharsetLevel,
        trailers "Response fields" TrailersLevel,
        early_hints "Response fields" EarlyHintsLevel,
        /// Whether it is on, where a request is passed on and not cached.
        shadow "Shadow" ShadowLevel,
        limit_req "Limits" LimitReqLevel,
        limit_conn "Limits" LimitConnLevel,
        limit_rate "Limits" LimitRateLevel,
        access "Access" AccessLevel,
        auth_basic "Access" AuthBasicLevel,
        auth_request "Access" AuthRequestLevel,
        auth_delay "Access" AuthDelayLevel,
        satisfy "Access" SatisfyLevel,
        secure_link "Access" SecureLinkLevel,
        /// `None` if every referer is valid.
        valid_referers "Access" ValidReferersLevel,
        /// `None` if it is off.
        userid "Client side" UserIdLevel,
        forwarded "Trusted proxies" ForwardedLevel,
        /// `None` if no proxy is trusted.
        realip "Trusted proxies" RealipLevel,
        ranges "Ranges and conditional requests" RangesLevel,
        /// In bytes; 0 = off.
        slice "Ranges and conditional requests" SliceLevel,
        gzip "Compression" GzipLevel,
        brotli "Compression" BrotliLevel,
        zstd "Compression" ZstdLevel,
        gunzip "Compression" GunzipLevel,
        sub_filter "Modifying bodies" SubFilterLevel,
        addition "Modifying bodies" AdditionLevel,
        ssi "Modifying bodies" SsiLevel,
        health_check "Upstream groups" HealthCheckLevel,
        logs "Logs" LogsLevel,
        otel "Tracing" OtelLevel,
    }
}

impl Settings {
    pub fn pass(&self) -> Option<&Pass> {
        match &self.content {
            Handler::Pass(pass) => Some(pass),
            _ => None,
        }
    }

    pub fn cache(&self) -> Option<&ProxyCache> {
        self.pass()?.cache.as_ref()
    }

    /// Whether anything but the replacement of a `rewrite` reads `$1` to `$9`.
    pub fn reads_captures(&self) -> bool {
        let mut replacements = Vec::new();
        for instruction in self.rewrite.script.iter() {
            if let rewrite::Instruction::Rewrite(rewrite) = instruction {
                rewrite.templates(&mut replacements);
            }
        }
        self.templates().into_iter().any(|template| {
            template.variables().any(|variable| matches!(variable, Variable::Capture(_)))
                && !replacements.iter().any(|other| std::ptr::eq(*other, template))
        })
    }

    /// Those [`templates`](Settings::templates) that a stored response may depend on: not those of logs and traces, of what is
    /// added to every response, and of the cache itself.
    pub fn templates_before_storing(&self) -> Vec<&Template> {
        let mut others = Vec::new();
        self.logs.templates(&mut others);
        self.otel.templates(&mut others);
        self.headers.templates(&mut others);
        self.trailers.templates(&mut others);
        self.cache().into_iter().for_each(|cache| cache.templates(&mut others));
        let mut all = self.templates();
        all.retain(|template| !others.iter().any(|other| std::ptr::eq(*other, *template)));
        all
    }
}

/// Every heading of the manual once; rows of the prefix families stand last.
pub fn sections() -> Vec<(&'static str, Vec<&'static Row>)> {
    let mut sections: Vec<(&str, Vec<&Row>)> = Vec::new();
    for (title, rows) in SECTIONS.iter().chain(pass::SECTIONS.iter().copied().flatten()) {
        match sections.iter_mut().find(|(known, _)| known == title) {
            Some((_, known)) => known.extend(rows.iter()),
            None => sections.push((title, rows.iter().collect())),
        }
    }
    sections
}

pub fn rows() -> impl Iterator<Item = &'static Row> {
    let families = pass::SECTIONS.iter().copied().flatten();
    SECTIONS.iter().chain(families).flat_map(|(_, rows)| rows.iter())
}

pub fn find(name: &str, context: Context) -> Option<&'static Row> {
    rows().find(|row| row.name == name && row.contexts.has(context))
}

impl Level {
    /// What an `if` takes besides inherited settings: who responds in the enclosing location.
    pub fn inherit_content(&mut self, around: &Level, reading: &mut Reading<'_>) {
        self.pass.inherit_target(&around.pass, reading);
        if self.pass.draft.is_none() {
            self.api.own = around.api.own;
            self.builtin_content = around.builtin_content;
        }
    }
}
