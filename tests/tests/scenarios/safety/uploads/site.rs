//! A random site: routes of one to three steps, each of which leads to the next in one of the ways there are.

use std::fmt::Write as _;

use millstream_tests::application::Speaks;

use super::super::random::Random;
use super::applications::{Applications, Does, Protocol};

const ROUTES: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leads {
    Named,
    Uri,
}

/// One `proxy_pass` or the like.
#[derive(Debug)]
pub struct Step {
    protocol: Protocol,
    /// Through a relay that speaks HTTP/2.
    is_http2: bool,
    servers: Vec<Does>,
    is_streamed: bool,
    is_cached: bool,
    /// `error_page … =`: the status is the page's.
    is_overridden: bool,
    leads: Leads,
    buffer: &'static str,
    in_file_only: bool,
}

#[derive(Debug)]
pub struct Route {
    steps: Vec<Step>,
    /// `client_max_body_size`, if it is less than what is uploaded.
    pub limit: Option<usize>,
    tries_files: bool,
    asks: bool,
}

pub struct Site {
    pub routes: Vec<Route>,
}

impl Site {
    pub fn of(seed: u64) -> Site {
        let mut random = Random::new(seed ^ 0x51_7e);
        let may_cache = random.percent(50);
        Site { routes: (0..ROUTES).map(|_| Route::of(may_cache, &mut random)).collect() }
    }

    pub fn path(&self, route: usize) -> String {
        format!("/r{route}/")
    }

    pub fn configuration(&self, applications: &Applications) -> String {
        let mut text = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
http {
    access_log off; client_body_temp_path @DIR@/bodies; proxy_cache_path @DIR@/cache keys_zone=zone:8m;
    recursive_error_pages on; client_max_body_size 4m;
"
        .to_owned();
        let (mut upstreams, mut locations) = (String::new(), String::new());
        for (number, route) in self.routes.iter().enumerate() {
            route.write(number, applications, &mut upstreams, &mut locations);
        }
        let allowed = applications.port(None, Does::Answers);
        let _ = write!(
            text,
            "{upstreams}    server {{ listen 127.0.0.1:@PORT@; http2 on;
        location = /allowed {{ internal; proxy_pass_request_body off; proxy_pass_request_headers off; proxy_pass http://127.0.0.1:{allowed}; }}
{locations}    }}\n{}}}\n",
            applications.relays()
        );
        text
    }

    pub fn text(&self, route: usize, applications: &Applications) -> String {
        let (mut upstreams, mut locations) = (String::new(), String::new());
        self.routes[route].write(route, applications, &mut upstreams, &mut locations);
        format!("{:#?}\n{upstreams}{locations}", self.routes[route])
    }
}

impl Route {
    fn of(may_cache: bool, random: &mut Random) -> Route {
        let count = random.weighted(&[(3, 1), (5, 2), (2, 3)]);
        Route {
            steps: (0..count).map(|at| Step::of(at + 1 == count, may_cache, random)).collect(),
            limit: random.percent(15).then(|| random.one(&[10, 5_000, 60_000])),
            tries_files: random.percent(15),
            asks: random.percent(15),
        }
    }

    /// Whether a page may be requested, for which there may be no body.
    pub fn has_page(&self) -> bool {
        self.steps.iter().rev().skip(1).any(|step| step.leads == Leads::Uri)
    }

    /// Whether a server that was given the whole body leads to a page that cannot be given it again.
    pub fn accelerates_streamed(&self) -> bool {
        let leading = self.steps.iter().rev().skip(1);
        self.steps.iter().any(|step| step.is_streamed)
            && leading.clone().any(|step| step.servers == [Does::Accelerates] && step.leads == Leads::Uri)
    }

    pub fn is_cached(&self) -> bool {
        self.steps.iter().any(|step| step.is_cached)
    }

    /// Whether the client must be told so, if some server must have responded; `None` if none must.
    pub fn must_answer(&self) -> Option<bool> {
        if self.steps.iter().any(|step| step.is_streamed) {
            return None;
        }
        let mut is_told = true;
        for step in &self.steps {
            if step.servers.contains(&Does::Answers) {
                return Some(is_told);
            }
            is_told &= step.is_overridden || step.servers == [Does::Accelerates];
        }
        None
    }

    fn write(
        &self,
        number: usize,
        applications: &Applications,
        upstreams: &mut String,
        locations: &mut String,
    ) {
        let first = if self.tries_files { format!("@r{number}_0") } else { format!("/r{number}/") };
        if self.tries_files {
            let _ = writeln!(locations, "        location /r{number}/ {{ try_files /nothing {first}; }}");
        }
        let mut name = first;
        for (at, step) in self.steps.iter().enumerate() {
            let next = (at + 1 < self.steps.len()).then(|| match step.leads {
                Leads::Named => format!("@r{number}_{}", at + 1),
                Leads::Uri => format!("/r{number}_{}", at + 1),
            });
            let _ = write!(locations, "        location {name} {{");
            if at == 0 {
                let limit = self.limit.map(|limit| format!(" client_max_body_size {limit};"));
                locations.push_str(&limit.unwrap_or_default());
                locations.push_str(if self.asks { " auth_request /allowed;" } else { "" });
            } else if name.starts_with('/') {
                locations.push_str(" internal;");
            }
            step.write(&format!("r{number}_{at}"), next.as_deref(), applications, upstreams, locations);
            name = next.unwrap_or_default();
        }
    }
}

impl Step {
    fn of(is_last: bool, may_cache: bool, random: &mut Random) -> Step {
        let protocol = random.weighted(&[
            (6, None),
            (2, Some(Speaks::FastCgi)),
            (1, Some(Speaks::Uwsgi)),
            (1, Some(Speaks::Scgi)),
        ]);
        let failing = [Does::Fails, Does::Closes, Does::FailsEarly, Does::ClosesEarly, Does::Refuses];
        let servers = match random.below(10) {
            0 if !is_last => vec![Does::Moves],
            1 | 2 if !is_last => vec![Does::Accelerates],
            3..=6 if !is_last => (0..1 + random.below(3)).map(|_| random.one(&failing)).collect(),
            _ => {
                let mut servers: Vec<Does> = (0..random.below(3)).map(|_| random.one(&failing)).collect();
                servers.push(Does::Answers);
                servers
            }
        };
        Step {
            protocol,
            is_http2: protocol.is_none() && random.percent(30),
            servers,
            is_streamed: random.percent(35),
            is_cached: may_cache && protocol.is_none() && random.percent(30),
            is_overridden: random.percent(70),
            leads: if random.percent(60) { Leads::Named } else { Leads::Uri },
            buffer: random.one(&["1k", "8k", "16k", "1m"]),
            in_file_only: random.percent(15),
        }
    }

    fn write(
        &self,
        name: &str,
        next: Option<&str>,
        applications: &Applications,
        upstreams: &mut String,
        locations: &mut String,
    ) {
        let _ = write!(upstreams, "    upstream {name} {{");
        for does in &self.servers {
            let port = match self.is_http2 {
                true => applications.relay(*does),
                false => applications.port(self.protocol, *does),
            };
            let _ = write!(upstreams, " server 127.0.0.1:{port} max_fails=0;");
        }
        upstreams.push_str(" }\n");
        let of = match self.protocol {
            None => "proxy",
            Some(Speaks::FastCgi) => "fastcgi",
            Some(Speaks::Uwsgi) => "uwsgi",
            Some(Speaks::Scgi) => "scgi",
        };
        let scheme = if self.protocol.is_none() { "http://" } else { "" };
        let mut line = |text: String| locations.push_str(&(" ".to_owned() + &text));
        line(format!("client_body_buffer_size {};", self.buffer));
        if self.in_file_only {
            line("client_body_in_file_only clean;".to_owned());
        }
        line(format!("{of}_pass {scheme}{name}; {of}_intercept_errors on;"));
        line(format!("{of}_request_buffering {};", if self.is_streamed { "off" } else { "on" }));
        // Behind a relay that is what it says of an application that closes.
        let also = if self.is_http2 { "http_502 " } else { "" };
        line(format!("{of}_next_upstream error timeout invalid_header {also}http_503 non_idempotent;"));
        if self.is_http2 {
            line("proxy_http_version 2;".to_owned());
        }
        match self.protocol {
            None => line(format!("proxy_set_header X-Next {};", next.unwrap_or("-"))),
            Some(_) => line(format!(
                "{of}_param REQUEST_METHOD $request_method; {of}_param CONTENT_LENGTH $content_length; {of}_param X_NEXT {};",
                next.unwrap_or("-")
            )),
        }
        if self.is_cached {
            line(format!(
                "proxy_cache zone; proxy_cache_methods POST; proxy_cache_key {name}|$request_body; proxy_cache_valid 200 1m;"
            ));
        }
        if let Some(next) = next {
            let equals = if self.is_overridden { " =" } else { "" };
            line(format!("error_page 307 400 408 413 500 502 503 504{equals} {next};"));
        }
        locations.push_str(" }\n");
    }
}
