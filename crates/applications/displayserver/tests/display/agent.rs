//! An agent between client and display: the display is lost in the middle of a picture, and the client notices nothing.
use stackline_core::named::NamedValue as _;
use stackline_display::machine::{CREDIT, FULL_SIZE};
use stackline_display::protocol::{DisplayAnswer, DisplayRequest, VERSION, write_request};
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::agent;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::send_level::{DisplaySendLevel, send};
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::stream::DisplayStream;
use stackline_testing::wait_until;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn listen() -> (DisplayListener, DisplayAddress) {
    let listener = DisplayListener::at(&DisplayAddress::Tcp("127.0.0.1:0".into())).unwrap();
    let address = listener.address();
    (listener, address)
}

fn pass(mut from: DisplayStream, mut to: DisplayStream) {
    let mut piece = [0; 4096];
    while let Ok(count) = from.read(&mut piece) {
        if count == 0 || to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    from.end();
    to.end();
}

/// A display that can be cut off: to its clients it is one that was started again, as it forgets who is gone.
struct Breakable {
    server: DisplayServer,
    address: DisplayAddress,
    open: Arc<Mutex<Vec<DisplayStream>>>,
}

impl Breakable {
    fn new() -> Self {
        let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
        let (own, behind) = listen();
        server.listen(own, |_| {});
        let (listener, address) = listen();
        let open = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&open);
        thread::spawn(move || {
            while let Ok(client) = listener.accept() {
                let display = behind.connect().unwrap();
                kept.lock().unwrap().push(client.again().unwrap());
                let (answers, back) = (display.again().unwrap(), client.again().unwrap());
                thread::spawn(move || pass(client, display));
                thread::spawn(move || pass(answers, back));
            }
        });
        Self {
            server,
            address,
            open,
        }
    }

    fn cut(&self) {
        self.open
            .lock()
            .unwrap()
            .drain(..)
            .for_each(|stream| stream.end());
    }

    fn drawn(&self) -> Vec<u8> {
        self.server
            .last(|client, display| display.draw(client, 1).unwrap().pixels().bytes().to_vec())
            .unwrap()
    }
}

fn through(display: &DisplayAddress, patience: Duration) -> DisplayAddress {
    known(display, patience, b"")
}

/// An agent for those who know a secret.
fn known(display: &DisplayAddress, patience: Duration, secret: &[u8]) -> DisplayAddress {
    let (listener, address) = listen();
    let (display, limits, secret) = (
        display.clone(),
        DisplayClientLimits::default(),
        secret.to_vec(),
    );
    let service = agent::DisplayAgentOptions {
        display,
        limits,
        patience,
        secret,
    };
    thread::spawn(move || agent::serve(&listener, &service, |_| {}));
    address
}

#[test]
fn pictures_come_through_cuts_as_they_were_drawn() {
    let display = Breakable::new();
    let address = through(&display.address, Duration::from_secs(20));
    for picture in pictures().iter().filter(|picture| picture.name != "short") {
        for (level, ..) in DisplaySendLevel::NAMED.iter().copied() {
            if level == DisplaySendLevel::Structured && picture.symbols.is_empty() {
                continue;
            }
            let draw = |address: &DisplayAddress, cuts: bool| {
                let mut client = DisplayClient::connect(address, b"secret").unwrap();
                client
                    .send(&DisplayRequest::CreateWindow(1, (800, 800), b"test"))
                    .unwrap();
                client
                    .send(&DisplayRequest::DisplayView(1, 100, (8, 8), FULL_SIZE))
                    .unwrap();
                client.send(&DisplayRequest::DefineSymbol(100)).unwrap();
                client.ask(&DisplayRequest::EndSymbol).unwrap();
                let cutter = cuts.then(|| {
                    display.cut();
                    let open = Arc::clone(&display.open);
                    thread::spawn(move || {
                        for _ in 0..3 {
                            thread::sleep(Duration::from_millis(7));
                            open.lock()
                                .unwrap()
                                .drain(..)
                                .for_each(|stream| stream.end());
                        }
                    })
                });
                send(&mut client, level, picture, 100).unwrap();
                let _ = cutter.map(|cutter| cutter.join().unwrap());
                client.sync(9).unwrap();
                display.drawn()
            };
            let (whole, cut) = (draw(&display.address, false), draw(&address, true));
            assert!(whole == cut, "{} at level {}", picture.name, level.name());
        }
    }
}

#[test]
fn a_display_that_stays_away_is_given_up_and_a_wrong_secret_is_reported() {
    let (listener, gone) = listen();
    drop(listener);
    let address = through(&gone, Duration::from_millis(300));
    assert!(DisplayClient::connect(&address, b"secret").is_err());
    let display = Breakable::new();
    // It is not asked for long, as it is no display that was lost.
    let address = through(&display.address, Duration::from_secs(100));
    assert!(DisplayClient::connect(&address, b"wrong").is_err());
}

/// Half as much again as a client may have on its way, to a display that takes nothing at first.
#[test]
fn who_sends_more_than_it_may_waits_for_the_display() {
    let (display, at) = listen();
    let address = through(&at, Duration::from_secs(20));
    let mut requests = Vec::new();
    write_request(&mut requests, &DisplayRequest::DeleteSymbol(1), false);
    let requests = requests.repeat(3 * CREDIT as usize / 2 / requests.len());
    let mut client = address.connect().unwrap();
    let all = requests.clone();
    let sends = thread::spawn(move || {
        let mut hello = Vec::new();
        write_request(
            &mut hello,
            &DisplayRequest::Hello {
                version: VERSION,
                token: b"",
            },
            false,
        );
        client.write_all(&hello).unwrap();
        client.write_all(&all).unwrap();
        client
    });
    let mut stream = display.accept().unwrap();
    let mut answers = Vec::new();
    let mut piece = vec![0; 64 << 10];
    let mut hello = [0; 10];
    stream.read_exact(&mut hello).unwrap();
    DisplayAnswer::Welcome {
        credit: CREDIT,
        client: 1,
    }
    .put(&mut answers);
    stream.write_all(&answers).unwrap();
    thread::sleep(Duration::from_millis(300));
    let mut came = 0;
    while came < requests.len() {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the agent has ended it after {came} bytes");
        came += count;
        answers.clear();
        DisplayAnswer::Credit(count as u32).put(&mut answers);
        stream.write_all(&answers).unwrap();
    }
    drop(sends.join().unwrap());
}

#[test]
fn a_client_that_connects_in_vain_gets_the_reason() {
    let why = |place: &DisplayAddress, secret: &[u8]| {
        DisplayClient::connect(place, secret).unwrap_err().message
    };
    let nowhere = through(
        &DisplayAddress::Tcp("127.0.0.1:1".into()),
        Duration::from_millis(1),
    );
    assert!(
        why(&nowhere, b"").ends_with("has no display: none answers at the address that it uses")
    );
    // A display omit the secret behind an agent with one, which only those pass who know it.
    let (listener, display) = listen();
    DisplayServer::new(DisplayClientLimits::default(), Vec::new()).listen(listener, |_| {});
    let place = known(&display, Duration::from_secs(10), b"secret");
    assert_eq!(why(&place, b"another"), "the display closed the connection");
    DisplayClient::connect(&place, b"secret")
        .unwrap()
        .sync(1)
        .unwrap();
    // A display of another version.
    let (listener, newer) = listen();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 64]);
        stream
            .write_all(&[65, 0, 0, 18, 0, 9, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 1])
            .unwrap();
    });
    assert!(why(&newer, b"").contains("it speaks version 9 of the protocol"));
}

#[test]
fn who_reads_no_answers_is_sent_away_and_has_no_place_at_the_display() {
    let (listener, display) = listen();
    let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
    server.listen(listener, |_| {});
    let mut client = through(&display, Duration::from_secs(10))
        .connect()
        .unwrap();
    let mut requests = Vec::new();
    write_request(
        &mut requests,
        &DisplayRequest::Hello {
            version: VERSION,
            token: b"",
        },
        false,
    );
    // Within a credit; their answers are five times as long.
    (0..120_000)
        .for_each(|number| write_request(&mut requests, &DisplayRequest::Sync(number), false));
    client.write_all(&requests).unwrap();
    wait_until("it comes to the display", || !server.displays().is_empty());
    wait_until("it has left the display", || server.displays().is_empty());
    thread::sleep(Duration::from_millis(500));
    assert!(
        server.displays().is_empty(),
        "the agent connected again for it"
    );
}
