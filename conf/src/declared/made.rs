//! Variables that a configuration makes out of others: each kind is a file below, listed in `makings!`.
//!
//! Plain data. What one reads may be made itself; what it comes to in the end is for [`reads`] to say, which every judgement about
//! who may share an answer has to ask. Before: `template`; next: `features/made`, which declares them; `millstream-server`'s
//! `made`, which evaluates them.

pub mod map;
pub mod geo;
pub mod split_clients;

use crate::source::Span;
use crate::template::{MadeId, Template, Variable};

#[derive(Debug)]
pub struct Made {
    /// Its name without the dollar, as written.
    pub name: Box<str>,
    pub span: Span,
    /// Evaluated at each read instead of once per request.
    pub volatile: bool,
    /// `None` if it could not be read.
    pub making: Option<Making>,
}

macro_rules! makings {
    ($($(#[$doc:meta])* $module:ident $kind:ident,)*) => {
        #[derive(Debug)]
        pub enum Making { $($(#[$doc])* $kind($module::$kind),)* }

        $(impl From<$module::$kind> for Making {
            fn from(own: $module::$kind) -> Making {
                Making::$kind(own)
            }
        })*

        impl Making {
            /// The input: what is looked up or hashed.
            pub fn source(&self) -> Option<&Template> {
                match self { $(Making::$kind(own) => own.source(),)* }
            }

            pub fn templates(&self) -> impl Iterator<Item = &Template> {
                let values = match self { $(Making::$kind(own) => own.values(),)* };
                self.source().into_iter().chain(values)
            }
        }
    };
}

makings! {
    map Map,
    geo Geo,
    split_clients SplitClients,
}

pub fn find(made: &[Made], id: MadeId) -> Option<&Made> {
    made.get(usize::from(id.0))
}

pub fn made_of<'t>(made: &'t [Made], variable: &'t Variable) -> Vec<&'t Variable> {
    let (mut seen, mut all) = (vec![false; made.len()], vec![variable]);
    let mut next = 0;
    while let Some(&variable) = all.get(next) {
        next += 1;
        let Variable::Made(id) = variable else { continue };
        let at = usize::from(id.0);
        if let Some(making) = made.get(at).and_then(|made| made.making.as_ref())
            && !std::mem::replace(&mut seen[at], true)
        {
            all.extend(making.templates().flat_map(Template::variables));
        }
    }
    all
}

pub fn reads<'t>(made: &'t [Made], template: &'t Template) -> Vec<&'t Variable> {
    template.variables().flat_map(|variable| made_of(made, variable)).collect()
}
