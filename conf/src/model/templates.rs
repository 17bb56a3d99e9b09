//! Every text with variables of a location, so that what a configuration reads is known at load.
//!
//! A new setting that holds a template belongs in this list, or what it reads is thrown away before it is evaluated.
//! Before: `location`, `proxy`, `cache`; next: `millstream`'s `assemble`, which asks.

use super::cache::ProxyCache;
use super::location::{Expires, ReturnBody, Settings};
use super::proxy::{Proxy, ProxyTarget, Redirect, Store};
use super::template::Template;

impl Settings {
    /// All templates that are evaluated for requests of this location, in no particular order.
    pub fn templates(&self) -> Vec<&Template> {
        let mut all = vec![&self.root];
        all.extend(&self.index);
        all.extend(self.error_pages.iter().map(|page| &page.uri));
        all.extend(self.add_headers.iter().map(|field| &field.value));
        for log in self.access_logs.iter() {
            all.push(&log.format.template);
            all.extend(&log.condition);
        }
        if let Some(ReturnBody::Text(text) | ReturnBody::Url(text)) =
            self.returns.as_ref().map(|rule| &rule.body)
        {
            all.push(text);
        }
        if let Expires::Variable(value, _) = &self.expires {
            all.push(value);
        }
        all.extend(self.purge_at.iter().map(|place| &place.key));
        if let Some(proxy) = &self.proxy {
            of_proxy(proxy, &mut all);
        }
        all
    }
}

fn of_proxy<'a>(proxy: &'a Proxy, all: &mut Vec<&'a Template>) {
    if let ProxyTarget::Variables(url) = &proxy.pass.target {
        all.push(url);
    }
    all.extend(proxy.set_headers.iter().map(|field| &field.value));
    for redirect in &proxy.redirects {
        match redirect {
            Redirect::Prefix { from, to } => all.extend([from, to]),
            Redirect::Regex { to, .. } => all.push(to),
        }
    }
    all.extend(&proxy.method);
    if let Store::Path(path) = &proxy.store {
        all.push(path);
    }
    if let Some(cache) = &proxy.cache {
        of_cache(cache, all);
    }
}

fn of_cache<'a>(cache: &'a ProxyCache, all: &mut Vec<&'a Template>) {
    all.push(&cache.key);
    all.extend(cache.bypass.iter().chain(&cache.no_cache).chain(&cache.tags).chain(&cache.purge));
}
