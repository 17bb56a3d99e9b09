//! The property that makes a shared cache safe, tried on the real binary with random requests, answers and configurations.
//!
//! **An answer that the API made for one request is given to another request only if all of this holds:**
//!
//! 1. Both are GET or HEAD, or both are QUERY with the same content (RFC 10008), have the same key, and so, where the key
//!    names a credential, the same credential.
//! 2. The answer sets no cookie, or `proxy_ignore_headers Set-Cookie` is in force, or it says `private="set-cookie"` and is
//!    given without it (RFC 9111 §5.2.2.7).
//! 3. Its Cache-Control has neither `no-store` nor `private`, or `proxy_ignore_headers Cache-Control` is in force, or it
//!    says itself by X-Accel-Expires that it is to be stored (nginx's order of who decides). Where `private` or
//!    `no-cache` name fields, the answer may be given, and those fields are not (RFC 9111 §5.2.2.4, §5.2.2.7).
//! 4. If the request it was made for carried Authorization, its Cache-Control has `public`, `must-revalidate` or
//!    `s-maxage` (RFC 9111 §3.5), or the key names the credential; the user's name alone is none.
//! 5. Both requests have the same value in every field that its Vary names, and Vary is not `*` (RFC 9111 §4.1), or
//!    `proxy_ignore_headers Vary` is in force.
//!
//! "Given" is whatever way it takes: from memory, read along while it arrives, stale, or confirmed by the API. "Same
//! request" is told by a number that each carries, so also two requests of one client are held to it. Cookie is no
//! credential to RFC 9111: who wants it to be one puts it into the key or sends Vary, and 1 and 5 then hold.
//!
//! `judge` can fail: the last test tells it of another configuration or another answer than there was, once for each rule.
//! Taking out of `cache/src/policy.rs` the check of Set-Cookie, of Authorization, of `private`, of `no-store` or of
//! `Vary: *` was tried, and out of `cache/src/vary.rs` what a request says in a field: each makes the property fail within
//! the first cases.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_tests::client::{Answer, Client};
use millstream_tests::origin::{Origin, Request, Step};
use millstream_tests::server::Server;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

#[derive(Debug, Clone, Copy, Default)]
struct Conf {
    ignores_set_cookie: bool,
    ignores_cache_control: bool,
    ignores_vary: bool,
    key: Names,
    /// `proxy_cache_valid any`.
    valid: bool,
    /// Stale responses, refreshed in the background and confirmed by the API.
    stale: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Names {
    #[default]
    Nothing,
    Authorization,
    /// The name that a Basic credential claims, which proves nothing and is empty for any other scheme.
    User,
    Cookie,
}

impl Conf {
    fn all() -> Vec<Conf> {
        let keys = [Names::Nothing, Names::Authorization, Names::User, Names::Cookie];
        (0..32 * keys.len())
            .map(|number| Conf {
                ignores_set_cookie: number & 1 != 0,
                ignores_cache_control: number & 2 != 0,
                ignores_vary: number & 4 != 0,
                valid: number & 8 != 0,
                stale: number & 16 != 0,
                key: keys[number / 32],
            })
            .collect()
    }

    fn location(&self, number: usize) -> String {
        let mut text = format!(
            "location /{number}/ {{ proxy_pass http://api; proxy_cache zone; proxy_cache_methods GET QUERY; "
        );
        let credential = match self.key {
            Names::Nothing => "",
            Names::Authorization => "$http_authorization",
            Names::User => "$remote_user",
            Names::Cookie => "$http_cookie",
        };
        text.push_str(&format!("proxy_cache_key $uri{credential}; "));
        let ignored: String = [
            (self.ignores_set_cookie, " Set-Cookie"),
            (self.ignores_cache_control, " Cache-Control Expires"),
            (self.ignores_vary, " Vary"),
        ]
        .into_iter()
        .filter_map(|(ignored, fields)| ignored.then_some(fields))
        .collect();
        if !ignored.is_empty() {
            text.push_str(&format!("proxy_ignore_headers{ignored}; "));
        }
        if self.valid {
            text.push_str("proxy_cache_valid any 10m; ");
        }
        if self.stale {
            text.push_str("proxy_cache_use_stale updating; proxy_cache_background_update on; proxy_cache_revalidate on; ");
        }
        text + "}\n"
    }
}

#[derive(Debug, Clone)]
struct Ask {
    method: &'static str,
    content: &'static str,
    object: u8,
    authorization: Option<&'static str>,
    cookie: Option<&'static str>,
    language: Option<&'static str>,
    together: bool,
}

impl Ask {
    fn field(&self, name: &str) -> Option<&'static str> {
        match name {
            "authorization" => self.authorization,
            "cookie" => self.cookie,
            "accept-language" => self.language,
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
struct Plan {
    status: u16,
    cache_control: Option<&'static str>,
    x_accel_expires: Option<&'static str>,
    vary: Option<&'static str>,
    sets_cookie: bool,
    confirms: bool,
    /// In two parts, so that others can read along.
    slow: bool,
}

#[derive(Debug, Clone)]
struct Made {
    ask: usize,
    plan: Plan,
}

/// Requests to one location, and the API's responses, in order.
#[derive(Debug, Clone)]
struct Round {
    location: usize,
    asks: Vec<Ask>,
    plans: Vec<Plan>,
}

fn rounds(locations: usize) -> impl Strategy<Value = Round> {
    let ask = (
        prop_oneof![
            16 => Just(("GET", "")),
            1 => Just(("HEAD", "")),
            1 => Just(("POST", "")),
            3 => Just(("QUERY", "one")),
            1 => Just(("QUERY", "two")),
        ],
        0u8..2,
        // a:1 and a:2 are two clients that claim one name.
        select(vec![None, Some("Basic YTox"), Some("Basic YToy"), Some("Bearer one"), Some("Bearer two")]),
        select(vec![None, Some("session=a"), Some("session=b")]),
        select(vec![None, Some("de"), Some("fr")]),
        any::<bool>(),
    );
    let ask = ask.prop_map(|((method, content), object, authorization, cookie, language, together)| Ask {
        method,
        content,
        object,
        authorization,
        cookie,
        language,
        together,
    });
    let cache_controls = vec![
        None,
        Some("max-age=60"),
        Some("public, max-age=60"),
        Some("s-maxage=60"),
        Some("max-age=60, must-revalidate"),
        Some("private, max-age=60"),
        Some("Private=\"x-thing\", max-age=60"),
        Some("private=\"set-cookie\", max-age=60"),
        Some("no-cache=\"x-thing\", max-age=60"),
        Some("max-age=60, no-store"),
        Some("no-cache, max-age=60"),
        Some("max-age=0, stale-while-revalidate=60"),
        Some("public, max-age=0, stale-while-revalidate=60"),
    ];
    let varies = vec![
        None,
        None,
        Some("Accept-Language"),
        Some("Cookie"),
        Some("Authorization"),
        Some("accept-language, COOKIE"),
        Some("*"),
        Some("Accept-Language, *"),
    ];
    let plan = (
        select(vec![200, 200, 200, 301, 404, 500]),
        select(cache_controls),
        select(vec![None, None, None, Some("60"), Some("0")]),
        select(varies),
        prop::bool::weighted(0.25),
        any::<bool>(),
        any::<bool>(),
    );
    let plan =
        plan.prop_map(|(status, cache_control, x_accel_expires, vary, sets_cookie, confirms, slow)| Plan {
            status,
            cache_control,
            x_accel_expires,
            vary,
            sets_cookie,
            confirms,
            slow,
        });
    (0..locations, vec(ask, 2..14), vec(plan, 1..4)).prop_map(|(location, asks, plans)| Round {
        location,
        asks,
        plans,
    })
}

#[derive(Default)]
struct Api {
    number: usize,
    plans: Vec<Plan>,
    made: HashMap<usize, Made>,
    count: usize,
}

impl Api {
    fn answer(&mut self, request: &Request) -> Vec<Step> {
        let mut parts = request.target().split('/').skip(2);
        let number = parts.next().and_then(|part| part.parse().ok());
        let ask = request.field("x-ask").and_then(|text| text.parse().ok());
        let (Some(ask), true) = (ask, number == Some(self.number)) else {
            // A refresh of an earlier round that nobody waits for.
            return millstream_tests::origin::answer(503, &[], b"");
        };
        let plan = self.plans[self.count % self.plans.len()].clone();
        let id = self.count;
        self.count += 1;
        if plan.confirms && request.field("if-none-match").is_some() {
            return vec![Step::Send(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec())];
        }
        self.made.insert(id, Made { ask, plan: plan.clone() });
        let body = format!("answer {id:06} {}", "x".repeat(2000));
        let mut head = format!("HTTP/1.1 {} Made\r\nContent-Length: {}\r\n", plan.status, body.len());
        head.push_str(&format!("X-Id: {id}\r\nX-Thing: {id}\r\nETag: \"{id}\"\r\nLocation: /elsewhere\r\n"));
        for (name, value) in [
            ("Cache-Control", plan.cache_control),
            ("X-Accel-Expires", plan.x_accel_expires),
            ("Vary", plan.vary),
        ] {
            head.push_str(&value.map(|value| format!("{name}: {value}\r\n")).unwrap_or_default());
        }
        if plan.sets_cookie {
            head.push_str(&format!("Set-Cookie: session={id}\r\n"));
        }
        let (first, rest) = body.split_at(1000);
        let first = format!("{head}\r\n{first}").into_bytes();
        let mut steps = vec![Step::Send(first), Step::Send(rest.into())];
        if plan.slow {
            steps.insert(1, Step::Pause(Duration::from_millis(3)));
        }
        steps
    }
}

struct World {
    server: Server,
    api: Arc<Mutex<Api>>,
    confs: Vec<Conf>,
    _origin: Origin,
}

impl World {
    fn start() -> World {
        let api = Arc::new(Mutex::new(Api::default()));
        let shared = Arc::clone(&api);
        let origin = Origin::start(move |request| shared.lock().expect("no answer panics").answer(request));
        let confs = Conf::all();
        let locations: String =
            confs.iter().enumerate().map(|(number, conf)| conf.location(number)).collect();
        let template = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http {
            access_log off;
            proxy_cache_path @DIR@/cache levels=1:2 keys_zone=zone:1m;
            upstream api { server @ORIGIN@; keepalive 8; }
            server { listen 127.0.0.1:@PORT@; @LOCATIONS@ }
        }";
        let server = Server::start(template, &[("ORIGIN", &origin.address()), ("LOCATIONS", &locations)]);
        World { server, api, confs, _origin: origin }
    }

    fn play(&self, round: &Round) -> Vec<Given> {
        let number = {
            let mut api = self.api.lock().expect("no answer panics");
            *api = Api { number: api.number + 1, plans: round.plans.clone(), ..Api::default() };
            api.number
        };
        let mut given = Vec::new();
        let mut first = 0;
        while first < round.asks.len() {
            let behind = round.asks[first + 1..].iter().take_while(|ask| ask.together).count();
            let end = first + 1 + behind;
            std::thread::scope(|scope| {
                let clients: Vec<_> =
                    (first..end).map(|at| scope.spawn(move || self.ask(round, number, at))).collect();
                given.extend(clients.into_iter().map(|client| client.join().expect("a client ends")));
            });
            first = end;
        }
        given
    }

    fn ask(&self, round: &Round, number: usize, at: usize) -> Given {
        let ask = &round.asks[at];
        let path = format!("/{}/{number}/{}", round.location, ask.object);
        let text = at.to_string();
        let mut fields = vec![("X-Ask", text.as_str())];
        fields.extend(ask.authorization.map(|value| ("Authorization", value)));
        fields.extend(ask.cookie.map(|value| ("Cookie", value)));
        fields.extend(ask.language.map(|value| ("Accept-Language", value)));
        let mut client: Client = self.server.client();
        let answer = match ask.method {
            "QUERY" => query(&mut client, &path, &fields, ask.content),
            method => client.request(method, &path, &fields),
        };
        let answer = answer.expect("an answer, whole");
        Given { ask: at, answer }
    }

    fn made(&self) -> HashMap<usize, Made> {
        self.api.lock().expect("no answer panics").made.clone()
    }
}

fn query(client: &mut Client, path: &str, fields: &[(&str, &str)], content: &str) -> std::io::Result<Answer> {
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = content.len();
    client.send(format!(
        "QUERY {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n{fields}\r\n\
         {content}"
    ))?;
    client.answer()
}

#[derive(Debug, Clone)]
struct Given {
    ask: usize,
    answer: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Against {
    Mixed,
    Key,
    SetCookie,
    CacheControl,
    Authorization,
    Vary,
}

fn judge(conf: &Conf, asks: &[Ask], made: &HashMap<usize, Made>, given: &Given) -> Result<(), Against> {
    let Some(id) = given.answer.field("x-id") else {
        // The proxy's own page, of a failure.
        return Ok(());
    };
    let made = id.parse().ok().and_then(|id: usize| made.get(&id)).ok_or(Against::Mixed)?;
    let taker = &asks[given.ask];
    let body = format!("answer {:06} ", id.parse::<usize>().unwrap_or_default());
    let cookie = given.answer.field("set-cookie");
    if taker.method != "HEAD" && !given.answer.text().starts_with(&body)
        || cookie.is_some_and(|cookie| cookie != format!("session={id}"))
    {
        return Err(Against::Mixed);
    }
    if made.ask == given.ask {
        return Ok(());
    }
    let (maker, plan) = (&asks[made.ask], &made.plan);
    let names = |word: &str| plan.cache_control.is_some_and(|control| has(control, word));
    let asked_for = |ask: &Ask| match ask.method {
        "GET" | "HEAD" => Some(None),
        "QUERY" => Some(Some(ask.content)),
        _ => None,
    };
    let same = asked_for(maker).is_some() && asked_for(maker) == asked_for(taker);
    let same_credential = match conf.key {
        Names::Nothing => true,
        Names::User => user(maker) == user(taker),
        Names::Authorization => maker.authorization == taker.authorization,
        Names::Cookie => maker.cookie == taker.cookie,
    };
    if !(same && maker.object == taker.object && same_credential) {
        return Err(Against::Key);
    }
    let control = plan.cache_control.unwrap_or_default().to_lowercase();
    let kept_back = |field: &str| control.contains(&format!("=\"{field}\""));
    let without_it = kept_back("set-cookie") && !conf.ignores_cache_control && cookie.is_none();
    if plan.sets_cookie && !conf.ignores_set_cookie && !without_it {
        return Err(Against::SetCookie);
    }
    let told = conf.ignores_cache_control || plan.x_accel_expires == Some("60");
    let whole = |word: &str| names(word) && !control.contains(&format!("{word}=\""));
    let leaks = ["set-cookie", "x-thing"]
        .into_iter()
        .any(|field| kept_back(field) && given.answer.field(field).is_some());
    if (whole("no-store") || whole("private") || leaks) && !told {
        return Err(Against::CacheControl);
    }
    let shareable = names("public") || names("must-revalidate") || names("s-maxage");
    if maker.authorization.is_some() && !shareable && conf.key != Names::Authorization {
        return Err(Against::Authorization);
    }
    let differs =
        |name: &str| name == "*" || maker.field(name).unwrap_or("") != taker.field(name).unwrap_or("");
    let vary = plan.vary.unwrap_or_default().to_lowercase();
    let mut names = vary.split(',').map(str::trim).filter(|name| !name.is_empty());
    if !conf.ignores_vary && names.any(differs) {
        return Err(Against::Vary);
    }
    Ok(())
}

fn user(ask: &Ask) -> bool {
    ask.authorization.is_some_and(|credential| credential.starts_with("Basic"))
}

fn has(control: &str, directive: &str) -> bool {
    control
        .split(',')
        .any(|part| part.split('=').next().unwrap_or_default().trim().eq_ignore_ascii_case(directive))
}

#[test]
fn no_answer_is_given_to_a_request_that_neither_configuration_nor_rfc_gives_it_to() {
    skip_on_nginx!("it shares answers to credentials");
    let world = World::start();
    let config = ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() };
    let shared = std::cell::Cell::new(0);
    let outcome = TestRunner::new(config).run(&rounds(world.confs.len()), |round| {
        let given = world.play(&round);
        let (made, conf) = (world.made(), &world.confs[round.location]);
        for one in &given {
            let judged = judge(conf, &round.asks, &made, one);
            prop_assert_eq!(judged, Ok(()), "{:?} {:?} of {:?}", conf, one, made);
            let own = one.answer.field("x-id").and_then(|id| made.get(&id.parse().ok()?));
            shared.set(shared.get() + usize::from(own.is_some_and(|made| made.ask != one.ask)));
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(shared.get() > 200, "only {} answers were shared: this says little", shared.get());
}

/// Two requests of two clients, of which the second is given the first one's response at a matching location.
fn shared(world: &World, conf: impl Fn(&Conf) -> bool, first: Ask, second: Ask, plan: Plan) -> Round {
    let location = world.confs.iter().position(conf).expect("there is such a location");
    let round = Round { location, asks: vec![first, second], plans: vec![plan] };
    let given = world.play(&round);
    let (made, conf) = (world.made(), &world.confs[location]);
    let ids: Vec<_> = given.iter().map(|one| one.answer.field("x-id")).collect();
    assert_eq!(ids, [Some("0"), Some("0")], "the answer was to be shared: {round:?}");
    for one in &given {
        assert_eq!(judge(conf, &round.asks, &made, one), Ok(()), "{round:?}");
    }
    round
}

#[test]
fn the_judge_notices_each_answer_that_is_given_against_the_rules() {
    skip_on_nginx!();
    let world = World::start();
    let ask = Ask {
        method: "GET",
        content: "",
        object: 0,
        authorization: None,
        cookie: None,
        language: None,
        together: false,
    };
    let plan = Plan {
        status: 200,
        cache_control: Some("public, max-age=60"),
        x_accel_expires: None,
        vary: None,
        sets_cookie: false,
        confirms: false,
        slow: false,
    };
    let judged = |conf: Conf, round: &Round, plan: &Plan| {
        let made = HashMap::from([(0, Made { ask: 0, plan: plan.clone() })]);
        let head = "HTTP/1.1 200 OK\r\nX-Id: 0\r\nContent-Length: 14";
        let answer = Answer {
            status: 200,
            head: head.into(),
            fields: vec![("X-Id".into(), "0".into())],
            body: b"answer 000000 ".to_vec(),
        };
        judge(&conf, &round.asks, &made, &Given { ask: 1, answer })
    };
    let plainly = |conf: &Conf| !conf.ignores_cache_control && !conf.stale && conf.key == Names::Nothing;

    // Each time the answer was rightly shared by what the location says, and the judge is told of one that does not.
    let cookie = Plan { sets_cookie: true, ..plan.clone() };
    let ignores = |conf: &Conf| plainly(conf) && conf.ignores_set_cookie;
    let round = shared(&world, ignores, ask.clone(), ask.clone(), cookie.clone());
    assert_eq!(judged(Conf::default(), &round, &cookie), Err(Against::SetCookie));

    let private = Plan { cache_control: Some("private"), ..plan.clone() };
    let ignores = |conf: &Conf| conf.ignores_cache_control && conf.valid && conf.key == Names::Nothing;
    let round = shared(&world, ignores, ask.clone(), ask.clone(), private.clone());
    assert_eq!(judged(Conf::default(), &round, &private), Err(Against::CacheControl));

    let vary = Plan { vary: Some("Accept-Language"), ..plan.clone() };
    let german = Ask { language: Some("de"), ..ask.clone() };
    let ignores = |conf: &Conf| plainly(conf) && conf.ignores_vary;
    let round = shared(&world, ignores, ask.clone(), german, vary.clone());
    assert_eq!(judged(Conf::default(), &round, &vary), Err(Against::Vary));

    let query = Ask { method: "QUERY", content: "one", ..ask.clone() };
    let mut round = shared(&world, plainly, query.clone(), query, plan.clone());
    round.asks[1].content = "two";
    assert_eq!(judged(Conf::default(), &round, &plan), Err(Against::Key));
    round.asks[1] = ask.clone();
    assert_eq!(judged(Conf::default(), &round, &plan), Err(Against::Key));

    let known = Ask { authorization: Some("Basic YTox"), ..ask.clone() };
    let round = shared(&world, plainly, known.clone(), ask.clone(), plan.clone());
    let silent = Plan { cache_control: Some("max-age=60"), ..plan.clone() };
    assert_eq!(judged(Conf::default(), &round, &silent), Err(Against::Authorization));
    let keyed = Conf { key: Names::Authorization, ..Conf::default() };
    assert_eq!(judged(keyed, &round, &plan), Err(Against::Key));
}
