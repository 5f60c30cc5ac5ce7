//! Clients of a display: the four levels draw the same, no client holds up another, the end of a display is said.

use crate::support::{drawn, served, window};
use stackline_core::named::NamedValue as _;
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_display::machine::{DisplayMachine, FULL_SIZE};
use stackline_display::protocol::{DisplayInput, DisplayRequest};
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::send_level::{DisplaySendLevel, send};
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::stream::DisplayStream;
use stackline_testing::wait_until;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

#[test]
fn one_client_too_many_is_refused_with_the_reason() {
    let (server, address) = served("");
    let clients: Vec<DisplayClient> = (0..64)
        .map(|_| DisplayClient::connect(&address, b"").unwrap())
        .collect();
    let error = DisplayClient::connect(&address, b"").unwrap_err();
    assert!(
        error.message.ends_with("has reached its client limit") && error.hint.is_some(),
        "{error:?}"
    );
    drop(clients);
    // They go one by one.
    wait_until("its clients are gone", || server.displays().is_empty());
    DisplayClient::connect(&address, b"").unwrap();
}

#[test]
fn every_level_draws_the_same() {
    for picture in pictures() {
        let mut all = Vec::new();
        for (level, ..) in DisplaySendLevel::NAMED
            .iter()
            .copied()
            .filter(|(level, ..)| {
                *level != DisplaySendLevel::Structured || !picture.symbols.is_empty()
            })
        {
            let (server, address) = served("");
            let mut client = DisplayClient::connect(&address, b"").unwrap();
            window(&mut client);
            send(&mut client, level, &picture, 100).unwrap();
            all.push(drawn(&server));
        }
        assert!(all[0].iter().any(|pixel| *pixel != 0), "{}", picture.name);
        assert!(
            all.windows(2).all(|pair| pair[0] == pair[1]),
            "{}",
            picture.name
        );
    }
}

#[test]
fn a_client_sends_no_more_than_it_may_and_a_million_items_arrive() {
    let (server, address) = served("");
    let mut client = DisplayClient::connect(&address, b"").unwrap();
    window(&mut client);
    client.send(&DisplayRequest::DefineSymbol(100)).unwrap();
    for id in 1..=1_000_000 {
        client
            .send(&DisplayRequest::AddItem(
                DisplayItem::drawn(DisplayItemKind::Vector, id, (1, 1), (9, 9)),
                b"",
            ))
            .unwrap();
    }
    client.ask(&DisplayRequest::EndSymbol).unwrap();
    let memory = server.last(|client, display| display.memory(client));
    assert_eq!(memory, Some(20_000_000));
    let error = client.ask(&DisplayRequest::EndSymbol).unwrap_err();
    assert!(
        error.message.contains("unknown symbol"),
        "{}",
        error.message
    );
}

#[test]
fn the_display_ends_and_its_clients_say_so() {
    let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
    let directory = std::env::temp_dir().join(format!("stackline-display-{}", std::process::id()));
    let address = DisplayAddress::Unix(directory.clone());
    server.listen(DisplayListener::at(&address).unwrap(), |_| {});
    let mut stream = address.connect().unwrap();
    // Half a message and then nothing: others are served meanwhile.
    stream.write_all(&[1, 0, 0]).unwrap();
    let mut client = DisplayClient::connect(&address, b"").unwrap();
    window(&mut client);
    assert!(matches!(stream, DisplayStream::Unix(_)));
    std::fs::remove_file(directory).unwrap();
    let error = address.connect().unwrap_err();
    assert!(
        error.message.contains("no display answers")
            && error.hint.unwrap().contains("display serve")
    );
}

/// However slowly somebody says who he is, and whatever he makes the display draw: others are served.
#[test]
fn who_is_slow_or_draws_without_end_holds_nobody_up() {
    let (server, address) = served("");
    let mut slow = address.connect().unwrap();
    slow.write_all(&[1, 0, 0]).unwrap();
    let mut greedy = DisplayClient::connect(&address, b"").unwrap();
    greedy
        .send(&DisplayRequest::CreateWindow(1, (4096, 4096), b"all"))
        .unwrap();
    greedy.send(&DisplayRequest::DefineSymbol(1)).unwrap();
    for id in 1..=1000 {
        let all =
            DisplayItem::drawn(DisplayItemKind::Rectangle, id, (0, 0), (4095, 4095)).stippled(1);
        greedy.send(&DisplayRequest::AddItem(all, b"")).unwrap();
    }
    greedy.send(&DisplayRequest::EndSymbol).unwrap();
    greedy.send(&DisplayRequest::DefineSymbol(2)).unwrap();
    for id in 1..=3990 {
        greedy
            .send(&DisplayRequest::AddItem(
                DisplayItem::call(id, 1, 0, 0),
                b"",
            ))
            .unwrap();
    }
    greedy.send(&DisplayRequest::EndSymbol).unwrap();
    greedy
        .send(&DisplayRequest::DisplayView(1, 2, (0, 0), FULL_SIZE))
        .unwrap();
    let error = greedy.sync(1).unwrap_err();
    assert!(
        error.message.contains("the rest is omitted"),
        "{}",
        error.message
    );
    // Who came first may have been entered last: the one with a window is meant.
    let displays = server.displays();
    let is_cut = |display: &DisplayMachine| display.windows().any(|(.., window)| !window.items.1);
    assert!(
        displays
            .iter()
            .any(|(_, display)| is_cut(&display.lock().unwrap()))
    );
    let mut other = DisplayClient::connect(&address, b"").unwrap();
    window(&mut other);
    drop(slow);
}

/// Input for a client that does not read is counted and not kept, and whoever looks on goes on.
#[test]
fn input_does_not_wait_for_a_client_that_does_not_read() {
    let (server, address) = served("");
    let mut client = DisplayClient::connect(&address, b"").unwrap();
    window(&mut client);
    let id = server.last(|client, _| client).unwrap();
    for _ in 0..200_000 {
        server.input(id, 1, DisplayInput::Move(5, 5));
    }
    // Keys come once there is room again, and the first one that does tells what was dropped.
    let (seen, keys) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(Ordering::Relaxed) {
                server.input(id, 1, DisplayInput::Key(1));
                keys.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let (mut count, mut dropped) = (0, 0);
        loop {
            let event = client.input().unwrap();
            (count, dropped) = (count + 1, dropped + event.dropped);
            if event.input == DisplayInput::Key(1) {
                break;
            }
        }
        seen.store(true, Ordering::Relaxed);
        // The kernels of both ends keep no more than some ten thousand, however their sender takes turns with this one.
        let all = 200_001..=200_001 + keys.load(Ordering::Relaxed);
        assert!(
            all.contains(&(count + dropped)) && dropped > 100_000,
            "{count} {dropped} {all:?}"
        );
    });
}
