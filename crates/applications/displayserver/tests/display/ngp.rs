//! The network graphics protocol on streams: the same pictures with fewer bytes, what outlives connections and displays, who speaks something else.

use crate::common;
use stackline_core::named::NamedValue as _;
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::DisplayRequest;
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::agent;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::send_level::{DisplayPicture, DisplaySendLevel, send};
use stackline_displayserver::server::DisplayServer;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn served(at: &str) -> (DisplayServer, DisplayAddress) {
    let server = common::display();
    let address = common::served(&server, at);
    (server, address)
}

/// A way to a display which counts the bytes that pass it, and can be cut.
struct Path {
    begins: String,
    bytes: Arc<AtomicU64>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Path {
    fn to(address: &DisplayAddress) -> Self {
        let to = address.to_string().trim_start_matches("ngp:").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let path = Self {
            begins: listener.local_addr().unwrap().to_string(),
            bytes: Arc::default(),
            open: Arc::default(),
        };
        let (counts, open) = (Arc::clone(&path.bytes), Arc::clone(&path.open));
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let display = TcpStream::connect(&to).unwrap();
                open.lock().unwrap().push(display.try_clone().unwrap());
                pass(
                    client.try_clone().unwrap(),
                    display.try_clone().unwrap(),
                    Some(Arc::clone(&counts)),
                );
                pass(display, client, None);
            }
        });
        path
    }

    /// Bytes towards the display so far.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn cut(&self) {
        self.open
            .lock()
            .unwrap()
            .drain(..)
            .for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, counts: Option<Arc<AtomicU64>>) {
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            if let Some(counts) = &counts {
                counts.fetch_add(count as u64, Ordering::Relaxed);
            }
            if to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

fn picture(name: &str) -> DisplayPicture {
    pictures()
        .into_iter()
        .find(|picture| picture.name == name)
        .unwrap()
}

/// Draws it as a client of its own; what the display shows.
fn draw(
    server: &DisplayServer,
    address: &DisplayAddress,
    picture: &DisplayPicture,
    level: DisplaySendLevel,
) -> Vec<u8> {
    common::drawn(server, address, picture, level).1
}

#[test]
fn pictures_are_the_same_at_every_level_and_the_second_time_they_are_named() {
    let (server, plain) = served("127.0.0.1:0");
    let (other, ngp) = served("ngp:127.0.0.1:0");
    let path = Path::to(&ngp);
    let through = DisplayAddress::parse(&format!("ngp:{}", path.begins)).unwrap();
    for name in ["vectors", "rectangles"] {
        let picture = picture(name);
        for (level, ..) in DisplaySendLevel::NAMED.iter().copied() {
            if level == DisplaySendLevel::Structured && picture.symbols.is_empty() {
                continue;
            }
            let expected = draw(&server, &plain, &picture, level);
            let sent = [0, 1].map(|_| {
                let before = path.bytes();
                assert!(
                    draw(&other, &through, &picture, level) == expected,
                    "{name} at level {}",
                    level.name()
                );
                path.bytes() - before
            });
            if matches!(level, DisplaySendLevel::Batched) {
                // An address remembers what was sent under it, and the display what it got.
                assert!(sent[1] < 500, "{name} at level {}: {sent:?}", level.name());
            }
        }
    }
    for below in ["ngp:pup:127.0.0.1:0", "ngp:unix:/tmp/stackline-ngp-test"] {
        let (other, ngp) = served(below);
        let picture = picture("rectangles");
        let expected = draw(&server, &plain, &picture, DisplaySendLevel::Batched);
        assert!(
            draw(&other, &ngp, &picture, DisplaySendLevel::Batched) == expected,
            "{below}"
        );
    }
}

#[test]
fn an_agent_gives_the_picture_again_by_name_and_whole_where_the_display_has_forgotten() {
    let (server, ngp) = served("ngp:127.0.0.1:0");
    let path = Path::to(&ngp);
    let to = DisplayAddress::parse(&format!("ngp:{}", path.begins)).unwrap();
    let listener = DisplayListener::at(&DisplayAddress::parse("127.0.0.1:0").unwrap()).unwrap();
    let place = listener.address();
    let (limits, patience) = (DisplayClientLimits::default(), Duration::from_secs(10));
    let service = agent::DisplayAgentOptions {
        display: to,
        limits,
        patience,
        secret: Vec::new(),
    };
    thread::spawn(move || agent::serve(&listener, &service, |_| {}));
    let picture = picture("vectors");
    let expected = draw(&server, &ngp, &picture, DisplaySendLevel::Batched);
    let mut client = DisplayClient::connect(&place, b"").unwrap();
    client
        .send(&DisplayRequest::CreateWindow(1, (800, 800), b"test"))
        .unwrap();
    client
        .send(&DisplayRequest::DisplayView(1, 100, (8, 8), FULL_SIZE))
        .unwrap();
    send(&mut client, DisplaySendLevel::Batched, &picture, 100).unwrap();
    client.sync(3).unwrap();
    // What the agent gives again is told from what was sent: as items of one definition it is another one, the first time.
    for round in 0..3 {
        let before = path.bytes();
        path.cut();
        client.sync(4 + round).unwrap();
        let shown = server
            .last(|id, display| display.draw(id, 1).unwrap().pixels().bytes().to_vec())
            .unwrap();
        assert!(shown == expected, "round {round}");
        let sent = path.bytes() - before;
        assert!(round == 0 || sent < 1000, "round {round}: {sent} bytes");
    }
}

#[test]
fn nobody_listens_for_the_newest_changes_alone() {
    let error =
        DisplayListener::at(&DisplayAddress::parse("ngp-newest:127.0.0.1:0").unwrap()).unwrap_err();
    assert!(error.message.contains("the client chooses"), "{error}");
    assert!(error.hint.unwrap().contains("listen on ngp:127.0.0.1:0"));
}

#[test]
fn a_client_of_another_protocol_gets_the_reason() {
    let (_server, plain) = served("127.0.0.1:0");
    let error = DisplayAddress::parse(&format!("ngp:{plain}"))
        .unwrap()
        .connect()
        .unwrap_err();
    assert!(
        error.message.contains("no display answers at ngp:"),
        "{error}"
    );
    let (_server, ngp) = served("ngp:127.0.0.1:0");
    let plain = DisplayAddress::parse(ngp.to_string().trim_start_matches("ngp:")).unwrap();
    assert!(DisplayClient::connect(&plain, b"").is_err());
    for wrong in [
        "ngp:",
        "ngp:tty",
        "ngp:ikp:127.0.0.1:1",
        "ngp:ngp:127.0.0.1:1",
    ] {
        assert!(
            DisplayAddress::parse(wrong)
                .unwrap_err()
                .contains("a stream must follow `ngp:`"),
            "{wrong}"
        );
    }
}

/// A way to a display on a unix socket that counts what passes, and lets nothing pass while it is locked.
fn locked(address: &DisplayAddress) -> (DisplayAddress, Arc<AtomicU64>, Arc<Mutex<()>>) {
    let to = address.to_string().trim_start_matches("ngp:").to_owned();
    let place = std::env::temp_dir().join(format!("stackline-newest-{}", std::process::id()));
    let _ = std::fs::remove_file(&place);
    let (listener, bytes, lock) = (
        UnixListener::bind(&place).unwrap(),
        Arc::<AtomicU64>::default(),
        Arc::default(),
    );
    let (counts, gate) = (Arc::clone(&bytes), Arc::<Mutex<()>>::clone(&lock));
    let name = format!("ngp-newest:unix:{}", place.display());
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = std::fs::remove_file(place);
        let mut display = TcpStream::connect(to).unwrap();
        let (mut answers, mut back) = (display.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut answers, &mut back));
        let mut piece = [0; 512];
        while let Ok(count @ 1..) = client.read(&mut piece) {
            drop(gate.lock().unwrap());
            counts.fetch_add(count as u64, Ordering::Relaxed);
            display.write_all(&piece[..count]).unwrap();
        }
    });
    (DisplayAddress::parse(&name).unwrap(), bytes, lock)
}

#[test]
fn changes_that_wait_are_replaced_by_the_newest_and_the_picture_is_the_same_at_last() {
    const CHANGES: u32 = 20_000;
    let (server, address) = served("ngp:127.0.0.1:0");
    let line =
        |at: u32| DisplayItem::drawn(DisplayItemKind::Vector, 1, ((at % 100) as i16, 0), (50, 99));
    // A line that is seen, and open to changes: six requests.
    let begin = |address: &DisplayAddress| {
        let mut client = DisplayClient::connect(address, b"").unwrap();
        client
            .send(&DisplayRequest::CreateWindow(1, (100, 100), b""))
            .unwrap();
        client.send(&DisplayRequest::DefineSymbol(1)).unwrap();
        client.send(&DisplayRequest::AddItem(line(0), b"")).unwrap();
        client.send(&DisplayRequest::EndSymbol).unwrap();
        client
            .send(&DisplayRequest::DisplayView(1, 1, (0, 0), FULL_SIZE))
            .unwrap();
        client.ask(&DisplayRequest::EditSymbol(1)).unwrap();
        client
    };
    let change = |client: &mut DisplayClient, changes: std::ops::Range<u32>| {
        changes.for_each(|at| {
            client
                .send(&DisplayRequest::ChangeItem(line(at), b""))
                .unwrap()
        });
        client.flush().unwrap();
    };
    let shown = |client: &mut DisplayClient| {
        client.sync(1).unwrap();
        server
            .last(|id, display| display.draw(id, 1).unwrap().pixels().bytes().to_vec())
            .unwrap()
    };
    let (newest, bytes, gate) = locked(&address);
    let mut client = begin(&newest);
    let (locked, before) = (gate.lock().unwrap(), bytes.load(Ordering::Relaxed));
    // Nothing passes, and the client does not wait for it.
    change(&mut client, 0..CHANGES);
    drop(locked);
    let seen = shown(&mut client);
    let passed = bytes.load(Ordering::Relaxed) - before;
    assert!(passed < 50_000, "{passed} of {} bytes", 24 * CHANGES);
    // The display has counted all of them.
    let refused = client.ask(&DisplayRequest::DeleteSymbol(9)).unwrap_err();
    assert!(
        refused
            .message
            .contains(&format!("request {}:", 6 + CHANGES + 2)),
        "{refused}"
    );
    drop(client);
    let mut plain = begin(&address);
    change(&mut plain, CHANGES - 1..CHANGES);
    assert!(seen == shown(&mut plain));
}
