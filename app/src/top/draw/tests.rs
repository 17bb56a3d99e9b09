//! Whole screens as text, in the sizes that terminals have.

use super::super::events::Event;
use super::super::grid::Color;
use super::super::keys::Action;
use super::super::sample::shop;
use super::*;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use serde_json::{Value, json};

/// The screen, blanks at the ends of lines taken away.
fn drawn((width, height): (u16, u16), state: &State, view: &mut View) -> String {
    let mut grid = Grid::blank(width, height);
    screen(&mut grid, state, view, "http://127.0.0.1:8081", Palette::Plain);
    let line = |line: String| line.trim_end().to_owned() + "\n";
    grid.lines().map(|glyphs| line(glyphs.iter().map(|glyph| &*glyph.symbol).collect())).collect()
}

/// The shop with these keys pressed.
fn shown(size: (u16, u16), actions: &[Action]) -> String {
    let mut view = View::default();
    for action in actions {
        // What there is to go through is known when it has been drawn.
        drawn(size, &shop(), &mut view);
        view.act(*action);
    }
    drawn(size, &shop(), &mut view)
}

#[test]
fn twenty_four_lines_have_room_for_all() {
    let expected = "\
Millstream ● live  http://127.0.0.1:8081  0.1.0, process 4711, configuration 2
Requests/s 255  failed 0                To the API/s 10  without the cache 255
   ▁       ▂      ▁       ▂      ▁         ▁       ▂      ▁       ▂      ▁
  ▇░▄ ▁▂▄▆░░  ▁▃▅▇░▄ ▁▂▄▆░░  ▁▃▅▇░▄ ▁▂▄   ▇░▄ ▁▂▄▆░░  ▁▃▅▇░▄ ▁▂▄▆░░  ▁▃▅▇░▄ ▁▂▄
  ░░░▇░░▁░░░▆░▁░░░░░▁░░░░░▁▆░░░░░▁░▇░░░   ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
Median 0.70 ms  99 % 81 ms              From the cache 96 %
  ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃   ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   █████████████████████████████████████
  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁   █████████████████████████████████████
In 30 s, 207 requests reached the API; without the cache: 5,475.
1 Misses 2 Upstreams 3 Caches 4 Locations 5 Servers 6 Events 7 URLs
location         API time▼   count   each  cause                advice
location /items      2.4 s      30  80 ms  nothing was stored…  the first reque…
location /items     800 ms      10  80 ms  the client request…  write proxy_cac…
location /items     160 ms       2  80 ms  not stored: it set…  take Set-Cookie…






cause: nothing was stored that fits · advice: the first request must miss; store
responses for longer · defined in: /etc/nginx.conf:12:9
q quit  Tab 1-9 table  ↑↓ row  ←→ sort  r reverse  / filter  t 5 minutes
";
    assert_eq!(shown((80, 24), &[]), expected);
}

#[test]
fn what_has_no_room_in_its_row_stands_below_the_table() {
    let expected = "\
Millstream ● live  http://127.0.0.1:8081  0.1.0, process 471
Requests/s 255  failed 0      To the API/s 10 / 255
 ▅▅▅▂▃▄▅▆▃▃▄▄▅▄▂▃▄▅▆▂▃▄▅▅▄▂▃▄  ▅▅▅▂▃▄▅▆▃▃▄▄▅▄▂▃▄▅▆▂▃▄▅▅▄▂▃▄
Median 0.70 ms  99 % 81 ms    From the cache 96 %
 ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆  ████████████████████████████
30 s: 207 to the API, 5,475 without
1 2 Upstreams 3 4 5 6 7  by active
server         state                req/s   requests
10.0.0.1:8000  ● up                    10      12.9k
10.0.0.2:8000  ● unhealthy              0          7
10.0.0.3:8000  ● draining, backup       0          3


active: 1 · 5xx: 0 · failed: 1 · response: 80 ms · head: 78
ms · outages: 0 · ejections: 0 · upstream: api
q quit  Tab 1-9 table  ↑↓ row  ←→ sort  r reverse  / filter
";
    let actions = [Action::Table(1), Action::Down, Action::NextColumn, Action::Reverse];
    assert_eq!(shown((60, 16), &actions), expected);
}

#[test]
fn a_small_screen_keeps_the_words_and_the_table() {
    let expected = "\
Millstream ● live  http://127.0.0.1:8081
Requests/s 255 / 0  To the API/s 10
Median 0.70 ms      From the cache 96 %
30 s: 207 to the API, 5,475 without
1 2 3 4 Locations 5 6 7
name                 req/s▼   from cache
shop.example.com /…      10       99.7 %
shop.example.com /        0       92.0 %

name: shop.example.com /items ·
requests: 12.9k · to the API: 40 ·
q quit  Tab 1-9 table  ↑↓ row  ←→ sort
";
    assert_eq!(shown((40, 12), &[Action::Table(3)]), expected);
    let expected = "\
Millstream ● live  h
1 2 3 4 5 Servers 6
name
shop.example.com
q quit
";
    assert_eq!(shown((20, 5), &[Action::Table(4)]), expected);
}

#[test]
fn a_filter_and_an_order_out_of_sight_are_said() {
    let typed = [Action::Table(3), Action::PreviousColumn, Action::PreviousColumn, Action::Filter];
    let letters = "ITEMS".chars().map(Action::Type);
    let mut actions: Vec<Action> = typed.into_iter().chain(letters).collect();
    let expected = "\
1 2 3 4 Locations 5 6 7  by sent
name                      req/s   from cache   requests
shop.example.com /items      10       99.7 %      12.9k


Filter: ITEMS▏ Enter keep  Esc clear
";
    let below = |text: String| text.lines().skip(4).map(|line| line.to_owned() + "\n").collect::<String>();
    assert_eq!(below(shown((60, 10), &actions)), expected);
    actions.extend([Action::Type('?'), Action::Done]);
    let expected = "\
1 2 3 4 Locations 5 6 7  by sent filter: ITEMS?
name    req/s   from cache   requests   to the API   median
no rows match the filter


q quit  Tab 1-9 table  ↑↓ row  ←→ sort  r reverse  / filter
";
    assert_eq!(below(shown((60, 10), &actions)), expected);
}

#[test]
fn while_the_server_is_away_its_last_figures_stay() {
    let mut state = shop();
    state.link = Link::Away("disconnected, reconnecting: nobody listens at 127.0.0.1:8081".to_owned());
    let text = drawn((80, 24), &state, &mut View::default());
    assert!(
        text.starts_with("Millstream disconnected, reconnecting: nobody listens at 127.0.0.1:8081\n"),
        "{text}"
    );
    assert!(text.contains("location /items"));
}

#[test]
fn every_size_of_every_table_can_be_drawn() {
    let mut hostile = shop();
    hostile.take(Event::Second(json!({
        "second": [u64::MAX, -1, "x", {}, u64::MAX, u64::MAX, 1.5, null],
        "tables": {
            "upstreams": { "": { "peers": [{}, 5, { "server": "é".repeat(500), "state": 7, "requests": -1 }] }, "a": [] },
            "caches": { "": { "hit": { "responses": 1e300 } } }, "server_zones": { "日本": { "requests": "many" } },
            "location_zones": [], "misses": [{ "requests": { "": null } }, 3],
        },
        "notes": [{}, { "at": 1e300, "text": "…".repeat(999) }, "x"],
    })));
    for state in [&State::default(), &shop(), &hostile] {
        let mut view = View::default();
        for size in (0..40).flat_map(|height| [0, 1, 3, 19, 80, 200].map(|width| (width, height))) {
            view.act(Action::NextTable);
            view.act(Action::PreviousColumn);
            drawn(size, state, &mut view);
        }
    }
}

#[test]
fn letters_that_take_two_places_keep_columns_in_line() {
    let zone = json!({ "requests": 5 });
    let mut state = State::default();
    state.take(Event::Second(json!({ "tables": { "server_zones": { "日本語": zone, "abc": zone } } })));
    let mut view = View::default();
    view.act(Action::Table(4));
    let text = drawn((50, 6), &state, &mut view);
    let expected = "\
name    req/s▼   requests   median   99 %   5xx
abc          –          5        –      –     –
日本語       –          5        –      –     –
";
    let lines: String = text.lines().skip(2).take(3).map(|line| line.to_owned() + "\n").collect();
    assert_eq!(lines, expected);
}

#[test]
fn colours_are_among_sixteen_and_none_where_none_are_wanted() {
    let colours = |palette| {
        let (mut grid, mut view) = (Grid::blank(80, 24), View::default());
        view.act(Action::Table(1));
        screen(&mut grid, &shop(), &mut view, "", palette);
        let styles = grid.lines().flatten().map(|glyph| glyph.style);
        let used: Vec<Color> =
            styles.flat_map(|style| [style.foreground, style.background]).flatten().collect();
        used
    };
    assert_eq!(colours(Palette::Plain), []);
    let used = colours(Palette::Sixteen);
    // A peer that is up, one that is drained, one that fails; both kinds of bars.
    for colour in [Color::Green, Color::Yellow, Color::Red, Color::Cyan, Color::DarkGray] {
        assert!(used.contains(&colour), "{colour:?}");
    }
    assert!(used.iter().all(|colour| matches!(*colour as u8, 30..=37 | 90..=97)));
}

/// The names in frames, so that what is made up gets far.
const NAMES: &str = "second names rows tables notes at requests upstreams peers caches server_zones location_zones misses urls url \
    time location name origin_time not_stored count text responses 5xx cache hit memory bytes";

/// Anything that JSON can say.
fn anything() -> impl Strategy<Value = Value> {
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    let name =
        move || prop_oneof![prop::sample::select(names.clone()).prop_map(str::to_owned), any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        name().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inside| {
        prop_oneof![
            prop::collection::vec(inside.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name(), inside, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_server_sends_can_be_drawn(told in prop::collection::vec(anything(), 1..4), size in (0_u16..120, 0_u16..40)) {
        let (mut state, mut view) = (State::default(), View::default());
        for (index, told) in told.into_iter().enumerate() {
            state.take(if index == 0 { Event::History(told) } else { Event::Second(told) });
            for _ in 0..6 {
                view.act(Action::NextTable);
                drawn(size, &state, &mut view);
            }
        }
        super::super::snapshot::snapshot(&state, "");
    }
}

#[test]
fn urls_are_listed_with_what_their_misses_cost() {
    let text = shown((100, 24), &[Action::Table(6)]);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("shop.example.com/")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].starts_with("shop.example.com/items ") && rows[0].contains("900 ms"), "{text}");
    assert!(rows[0].contains("100 ms") && rows[1].contains("150 ms"), "{text}");
    assert!(rows.iter().all(|row| row.ends_with("location /items")), "{text}");
}
