//! The page in a real browser: it shows what a client draws, keeps up with what changes, and sends keys and the pointer back.
use serde_json::{Value, json};
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::{DisplayInput, DisplayRequest};
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::view;
use stackline_guard::secret::Secret;
use stackline_testing::browser::Browser;
use std::time::{Duration, Instant};

/// Does something with the left button of the mouse.
fn mouse(browser: &mut Browser, kind: &str, (x, y): (f64, f64)) {
    let buttons = u8::from(kind != "mouseReleased");
    browser.mouse(
        kind,
        x,
        y,
        json!({ "button": "left", "buttons": buttons, "clickCount": 1 }),
    );
}

/// Where the first window's pixels are in the page.
fn place(browser: &mut Browser) -> (f64, f64) {
    let box_of = "JSON.stringify(document.querySelector('canvas').getBoundingClientRect())";
    let place: Value = serde_json::from_str(browser.eval(box_of).as_str().unwrap()).unwrap();
    (place["x"].as_f64().unwrap(), place["y"].as_f64().unwrap())
}

/// A pixel of the first window, as a script.
fn pixel(x: i32, y: i32) -> String {
    format!(
        "[...(document.querySelector('canvas')?.getContext('2d').getImageData({x}, {y}, 1, 1).data ?? [])].join()"
    )
}

const RECTANGLE: DisplayItem =
    DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (10, 20), (50, 60)).coloured(3);

/// A display, a client of it, and a browser that shows its page; nothing where there is no browser.
fn seen() -> Option<(DisplayServer, DisplayClient, Browser)> {
    let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
    let listener = DisplayListener::at(&DisplayAddress::Tcp("127.0.0.1:0".into())).unwrap();
    let address = listener.address();
    server.listen(listener, |_| {});
    let url = view::show(
        &server,
        &DisplayAddress::Tcp("127.0.0.1:0".into()),
        &Secret::new(b"0123456789abcdef".to_vec()).unwrap(),
    )
    .unwrap();
    let mut browser = Browser::start()?;
    browser.call("Page.navigate", json!({ "url": url }));
    Some((
        server,
        DisplayClient::connect(&address, b"").unwrap(),
        browser,
    ))
}

#[test]
fn a_browser_shows_what_is_drawn_keeps_up_and_answers() {
    let Some((server, mut client, mut browser)) = seen() else {
        return;
    };
    client
        .send(&DisplayRequest::CreateWindow(1, (400, 300), b"a title"))
        .unwrap();
    client.send(&DisplayRequest::DefineSymbol(7)).unwrap();
    client
        .send(&DisplayRequest::AddItem(RECTANGLE, b""))
        .unwrap();
    client.send(&DisplayRequest::EndSymbol).unwrap();
    client
        .ask(&DisplayRequest::DisplayView(1, 7, (0, 0), FULL_SIZE))
        .unwrap();
    // The palette's fourth colour, c9 2a 2a, within the rectangle, and white beside it.
    browser.until(&format!("{} === '201,42,42,255'", pixel(30, 40)));
    assert_eq!(browser.eval(&pixel(5, 5)), json!("255,255,255,255"));
    assert_eq!(
        browser.eval("document.querySelector('figcaption').textContent"),
        json!("a title")
    );

    // The pointer, where the picture is, and a key.
    let (left, top) = place(&mut browser);
    for kind in ["mousePressed", "mouseReleased"] {
        mouse(&mut browser, kind, (left + 30.5, top + 40.5));
    }
    let press = client.input().unwrap();
    assert_eq!(
        (press.input, press.hits),
        (DisplayInput::Press(30, 40), vec![(7, 1)])
    );
    assert_eq!(client.input().unwrap().input, DisplayInput::Release(30, 40));
    browser.call(
        "Input.dispatchKeyEvent",
        json!({ "type": "keyDown", "key": "q", "text": "q" }),
    );
    assert_eq!(
        client.input().unwrap().input,
        DisplayInput::Key(u32::from('q'))
    );

    // 1,000 items change sixty times a second: how many pictures of that a browser shows is measured, not judged, here.
    let mut items = vec![DisplayRequest::BeginBatch];
    items.push(DisplayRequest::DefineSymbol(7));
    let line = |id: u32, at: i16| {
        DisplayItem::drawn(DisplayItemKind::Vector, id, (at, 0), (at + 9, 4)).coloured(2)
    };
    items.extend((1..=1000).map(|id| DisplayRequest::AddItem(line(id, (id % 400) as i16), b"")));
    items.extend([
        DisplayRequest::EndSymbol,
        DisplayRequest::EndBatch,
        DisplayRequest::EditSymbol(7),
    ]);
    items
        .iter()
        .try_for_each(|request| client.send(request))
        .unwrap();
    client.sync(1).unwrap();
    // When each picture was shown, by the page's clock.
    browser.eval(
        "window.times = []; new MutationObserver(() => times.push(performance.now())).observe(document.body, { attributes: true })",
    );
    let begun = Instant::now();
    for frame in 0..180_u32 {
        client.send(&DisplayRequest::BeginBatch).unwrap();
        for id in 1..=1000 {
            let at = (id * 7 + frame * 3) % 390;
            let mut item = line(id, at as i16);
            item.y0 = (id % 290) as i16;
            client.send(&DisplayRequest::ChangeItem(item, b"")).unwrap();
        }
        client.ask(&DisplayRequest::EndBatch).unwrap();
        std::thread::sleep(
            (begun + Duration::from_micros(16_667) * (frame + 1))
                .saturating_duration_since(Instant::now()),
        );
    }
    let times = browser.eval("times");
    let times: Vec<f64> = times
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    assert!(times.len() > 10, "{times:?}");
    let rate = (times.len() - 1) as f64 / (times[times.len() - 1] - times[0]) * 1000.0;
    eprintln!(
        "{rate:.1} pictures a second, {} in all, while 1,000 items changed in each of 180",
        times.len()
    );
    client.sync(2).unwrap();
    let last = server.last(|client, display| {
        let drawn = display.draw(client, 1).unwrap().pixels();
        (0..300)
            .flat_map(|y| (0..400).map(move |x| (x, y)))
            .find(|at| drawn.at(*at) == Some(2))
            .unwrap()
    });
    let last = last.unwrap();
    browser.until(&format!("{} === '43,138,62,255'", pixel(last.0, last.1)));
}

/// In one picture, so that the page never sees that it was closed.
#[test]
fn a_window_made_again_is_another_with_its_title_and_its_pixels() {
    let Some((_server, mut client, mut browser)) = seen() else {
        return;
    };
    for (symbol, colour) in [(1, 2), (2, 3)] {
        client.send(&DisplayRequest::DefineSymbol(symbol)).unwrap();
        let all =
            DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (0, 0), (199, 99)).coloured(colour);
        client.send(&DisplayRequest::AddItem(all, b"")).unwrap();
        client.ask(&DisplayRequest::EndSymbol).unwrap();
    }
    client.send(&DisplayRequest::BeginBatch).unwrap();
    for (title, symbol, colour) in [
        ("first", 1, "43,138,62,255"),
        ("second", 1, "43,138,62,255"),
        ("second", 2, "201,42,42,255"),
    ] {
        client
            .send(&DisplayRequest::CreateWindow(
                1,
                (200, 100),
                title.as_bytes(),
            ))
            .unwrap();
        client
            .send(&DisplayRequest::DisplayView(1, symbol, (0, 0), FULL_SIZE))
            .unwrap();
        client.ask(&DisplayRequest::EndBatch).unwrap();
        browser.until(&format!("{} === '{colour}'", pixel(50, 50)));
        browser.until(&format!(
            "[...document.querySelectorAll('figcaption')].map((one) => one.textContent).join() === '{title}'"
        ));
        assert_eq!(
            browser.eval("document.querySelector('canvas').getAttribute('aria-label')"),
            json!(title)
        );
        client.send(&DisplayRequest::BeginBatch).unwrap();
        client.send(&DisplayRequest::CloseWindow(1)).unwrap();
    }
}

#[test]
fn a_release_is_reported_wherever_it_is_and_what_is_the_browsers_stays_there() {
    let Some((_server, mut client, mut browser)) = seen() else {
        return;
    };
    client.send(&DisplayRequest::DefineSymbol(7)).unwrap();
    client
        .send(&DisplayRequest::AddItem(
            DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (0, 0), (900, 900)),
            b"",
        ))
        .unwrap();
    client.send(&DisplayRequest::EndSymbol).unwrap();
    client
        .send(&DisplayRequest::CreateWindow(1, (200, 100), b"w"))
        .unwrap();
    client
        .ask(&DisplayRequest::DisplayView(1, 7, (0, 0), FULL_SIZE))
        .unwrap();
    browser.until("document.querySelector('canvas') !== null");
    let (left, top) = place(&mut browser);
    mouse(&mut browser, "mousePressed", (left + 5.5, top + 6.5));
    mouse(&mut browser, "mouseMoved", (left + 305.5, top - 7.5));
    mouse(&mut browser, "mouseReleased", (left + 310.5, top + 150.5));
    let mut next_input = || {
        client
            .input()
            .map(|event| (event.input, event.hits))
            .unwrap()
    };
    assert_eq!(next_input(), (DisplayInput::Press(5, 6), vec![(7, 1)]));
    assert_eq!(next_input(), (DisplayInput::Move(305, -8), vec![]));
    assert_eq!(next_input(), (DisplayInput::Release(310, 150), vec![]));
    // Who pressed elsewhere means something else.
    mouse(&mut browser, "mousePressed", (left + 310.5, top + 150.5));
    mouse(&mut browser, "mouseMoved", (left + 20.5, top + 20.5));
    mouse(&mut browser, "mouseReleased", (left + 20.5, top + 20.5));
    browser.eval("window.taken = []; addEventListener('keydown', (event) => taken.push(event.defaultPrevented))");
    browser.eval("document.querySelector('canvas').focus()");
    // Alt, Ctrl, Meta, none, Shift.
    for (key, modifiers) in [("r", 1), ("r", 2), ("c", 4), ("q", 0), ("Q", 8)] {
        let text = if matches!(modifiers, 0 | 8) { key } else { "" };
        let press = json!({ "type": "keyDown", "key": key, "text": text, "modifiers": modifiers });
        browser.call("Input.dispatchKeyEvent", press);
    }
    assert_eq!(
        [next_input().0, next_input().0],
        ['q', 'Q'].map(|key| DisplayInput::Key(u32::from(key)))
    );
    assert_eq!(
        browser.eval("taken"),
        json!([false, false, false, true, true])
    );
}
