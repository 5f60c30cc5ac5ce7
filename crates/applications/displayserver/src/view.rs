//! A display in a browser: a page, and a WebSocket that sends the pixels of all windows as they change and receives keys and the pointer.
//! Browsers need the secret, which is part of the address; pages of other origins are refused.
//!
//! A picture is sent as soon as something changes, and at most two before the first of them was shown: the page shows one per screen
//! refresh while the second waits there. So a round trip delays no picture, a slow browser sees fewer pictures, and nothing piles up.

mod browser_access;

use self::browser_access::{BrowserAccess, busy_response, text_response};
use crate::address::DisplayAddress;
use crate::listener::{DisplayListener, serve_streams};
use crate::server::DisplayServer;
use crate::stream::DisplayStream;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use stackline_core::error::Result;
use stackline_display::machine::{ClientId, DisplayMachine};
use stackline_display::pixels::{Pixels, palette};
use stackline_display::protocol::DisplayInput;
use stackline_guard::attempts::Attempts;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::http_answer::{SwitchedStream, answer_http_request};
use stackline_guard::secret::Secret;
use stackline_guard::timed_stream::hear_out;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

/// The limit on browsers that look on.
const MOST: usize = 16;
/// The limit on connections whose request has not come: a browser opens some ahead, and strangers may send nothing. When there are more,
/// the oldest is closed.
const ASKING: usize = 64;
/// The longest message from a browser, bytes.
const MESSAGE: usize = 4 << 10;
/// The time between two checks for changes while nothing changes.
const SELDOM: Duration = Duration::from_millis(16);
/// The time between two checks for changes while pictures are being sent.
const OFTEN: Duration = Duration::from_millis(4);
/// How long after a picture the next one is expected soon.
const LIVELY: Duration = Duration::from_millis(250);
/// The limit on pictures that are sent and not shown yet: one is drawn while the next is on its way.
const AHEAD: u32 = 2;
/// The limit on pixel bytes in a picture; the rest of larger changes goes with the next ones.
const PICTURE: usize = 4 << 20;
/// How long a browser may take to send its request, and to take a picture.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a browser has of a window.
#[derive(Debug, Default)]
struct BrowserWindowState {
    /// The window's count of drawings (`Window::drawn`) when it was last sent.
    drawn: u64,
    title: String,
    size: (i32, i32),
    /// A keyed hash of each row: 8 bytes per row are kept instead of its pixels, and clients cannot construct collisions.
    rows: Vec<u64>,
}

/// Shows a display to browsers at that address, in threads of its own. Returns the URL to open.
///
/// # Errors
/// If nothing can listen there.
pub fn show(server: &DisplayServer, at: &DisplayAddress, token: &Secret) -> Result<String> {
    let listener = DisplayListener::at(at)?;
    let address = url(listener.address(), &String::from_utf8_lossy(token.bytes()));
    let (asking, looking) = (
        ConnectionSlotPool::new(ASKING),
        ConnectionSlotPool::new(MOST),
    );
    let server = server.clone();
    let door = BrowserAccess::new(token.clone(), listener.address());
    let attempts = Attempts::default();
    let serve = move |stream: DisplayStream, stranger| {
        let opened = admitted(stream, &door, &attempts, &looking);
        drop::<ConnectionSlot>(stranger);
        if let Some((socket, _place)) = opened {
            look_on(&server, socket);
        }
    };
    thread::spawn(move || serve_streams(&listener, asking, serve));
    Ok(address)
}

/// The URL of a page that is served at that address.
#[must_use]
pub fn url(at: DisplayAddress, token: &str) -> String {
    match at.for_others() {
        DisplayAddress::Tcp(place) => format!("http://{place}/?{token}"),
        at => format!("{at}?{token}"),
    }
}

/// Answers a browser's request. If it opens the WebSocket, returns that and a slot among the viewers.
fn admitted(
    stream: DisplayStream,
    door: &BrowserAccess,
    attempts: &Attempts,
    looking: &Arc<ConnectionSlotPool>,
) -> Option<(SwitchedStream<DisplayStream>, ConnectionSlot)> {
    let (again, place) = (stream.again().ok()?, Cell::new(None));
    let opened = answer_request(stream, |request| {
        let answer = door.answer(request);
        if answer.is_wrong_secret
            && let Ok(mut stream) = again.again()
        {
            hear_out(&mut stream, attempts.failed(Instant::now()));
        }
        if answer.response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return answer.response;
        }
        match looking.enter() {
            Some(entered) => {
                place.set(Some(entered));
                answer.response
            }
            None => busy_response(&format!(
                "{MOST} browsers are connected, which is the maximum"
            )),
        }
    })?;
    Some((opened, place.take()?))
}

/// Tells a browser why it sees nothing, within a time limit.
pub(crate) fn refuse(stream: DisplayStream, why: &str) {
    answer_request(stream, |_| busy_response(why));
}

/// Reads one request of a browser and answers it. Returns the stream if the answer opens a WebSocket.
fn answer_request(
    stream: DisplayStream,
    answer: impl Fn(&Request<Incoming>) -> Response<String>,
) -> Option<SwitchedStream<DisplayStream>> {
    let opened = answer_http_request(stream, PATIENCE, answer, text_response)?;
    opened.stream.write_within(PATIENCE).ok()?;
    Some(opened)
}

/// Sends a browser the pictures until it goes.
fn look_on(server: &DisplayServer, opened: SwitchedStream<DisplayStream>) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let SwitchedStream { stream, read } = opened;
    BrowserViewer {
        server,
        socket: WebSocket::from_partially_read(stream, read, Role::Server, Some(config)),
        seen: BTreeMap::new(),
        rows: RandomState::new(),
        sent: Instant::now(),
        waits: 0,
    }
    .serve();
}

/// One browser that looks on.
struct BrowserViewer<'s> {
    server: &'s DisplayServer,
    socket: WebSocket<DisplayStream>,
    seen: BTreeMap<(ClientId, u32), BrowserWindowState>,
    /// The keyed hash for rows.
    rows: RandomState,
    /// When the last picture was sent.
    sent: Instant,
    /// Pictures that were sent and not shown yet.
    waits: u32,
}

impl BrowserViewer<'_> {
    fn serve(&mut self) {
        let colours = json!({ "palette": palette() }).to_string();
        if self.socket.send(Message::text(colours)).is_err() {
            return;
        }
        while self.step().is_some() {}
    }

    /// Sends changes if fewer than [`AHEAD`] pictures are on their way, and reads from the browser until the next check.
    fn step(&mut self) -> Option<()> {
        if self.waits < AHEAD {
            let changes = self.changes();
            if !changes.is_empty() {
                self.picture(changes)?;
            }
        }
        let pause = if self.sent.elapsed() < LIVELY {
            OFTEN
        } else {
            SELDOM
        };
        self.socket.get_ref().read_within(Some(pause)).ok()?;
        match self.socket.read() {
            Ok(Message::Text(text)) => self.takes(text.as_str()),
            Ok(Message::Close(_)) => {
                // The library has prepared the answer to the close frame (RFC 6455, 5.5.1).
                let _ = self.socket.flush();
                None
            }
            Ok(_) => Some(()),
            Err(tungstenite::Error::Io(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                Some(())
            }
            Err(error) => {
                self.ends(reason(&error)?);
                None
            }
        }
    }

    /// Closes the WebSocket with that code.
    fn ends(&mut self, code: CloseCode) {
        let _ = self.socket.close(Some(CloseFrame {
            code,
            reason: "".into(),
        }));
        let _ = self.socket.flush();
    }

    fn picture(&mut self, parts: Vec<Message>) -> Option<()> {
        (self.waits, self.sent) = (self.waits + 1, Instant::now());
        for message in parts
            .into_iter()
            .chain([Message::text(json!({ "end": true }).to_string())])
        {
            self.socket.write(message).ok()?;
        }
        self.socket.flush().ok()
    }

    /// Handles a browser's message. An invalid one ends the connection.
    fn takes(&mut self, text: &str) -> Option<()> {
        let taken = self.one(text);
        if taken.is_none() {
            self.ends(CloseCode::Policy);
        }
        taken
    }

    /// Handles a report that a picture was shown, or an input event.
    fn one(&mut self, text: &str) -> Option<()> {
        let said: Value = serde_json::from_str(text).ok()?;
        if said["shown"].as_bool() == Some(true) {
            self.waits = self.waits.saturating_sub(1);
            return Some(());
        }
        let client = ClientId(said["client"].as_u64()?);
        let window = u32::try_from(said["window"].as_u64()?).ok()?;
        let place = || {
            let of = |name: &str| {
                said[name]
                    .as_i64()
                    .and_then(|value| i16::try_from(value).ok())
            };
            Some((of("x")?, of("y")?))
        };
        let input = match said["what"].as_str()? {
            "key" => DisplayInput::Key(said["key"].as_str()?.parse::<char>().ok()?.into()),
            "move" => place().map(|(x, y)| DisplayInput::Move(x, y))?,
            "press" => place().map(|(x, y)| DisplayInput::Press(x, y))?,
            "release" => place().map(|(x, y)| DisplayInput::Release(x, y))?,
            _ => return Some(()),
        };
        self.server.input(client, window, input);
        Some(())
    }

    /// The changes that the browser has not seen: a list of the windows if it changed, and parts of their pixels. A display that is locked
    /// is skipped this time. Drawing is left to each client's own thread, so that no client delays a viewer of others.
    fn changes(&mut self) -> Vec<Message> {
        let displays = self.server.displays();
        let before = self.seen.len();
        self.seen
            .retain(|(client, _), _| displays.iter().any(|(id, _)| id == client));
        let mut is_new = self.seen.len() != before;
        let (mut parts, mut room) = (Vec::new(), PICTURE);
        for (client, display) in displays {
            let Ok(display) = display.try_lock() else {
                continue;
            };
            is_new |= self.windows(client, &display);
            if display.is_damaged(client) {
                self.server.wants(client);
            }
            for (_, number, drawn) in display.windows() {
                let window = (client, number);
                let Some(known) = self
                    .seen
                    .get_mut(&window)
                    .filter(|known| known.drawn != drawn.drawn)
                else {
                    continue;
                };
                let (part, is_all) = part(client, number, drawn.pixels(), known, &self.rows, room);
                if is_all {
                    known.drawn = drawn.drawn;
                }
                room = room.saturating_sub(part.as_ref().map_or(0, Vec::len));
                parts.extend(part.map(Message::binary));
            }
        }
        let list = is_new.then(|| Message::text(list(&self.seen)));
        list.into_iter().chain(parts).collect()
    }

    /// Records a client's windows, and returns whether they differ from those recorded before.
    fn windows(&mut self, client: ClientId, display: &DisplayMachine) -> bool {
        let now: BTreeMap<u32, _> = display
            .windows()
            .map(|(_, number, window)| (number, window))
            .collect();
        let before = self.seen.len();
        self.seen
            .retain(|(id, number), _| *id != client || now.contains_key(number));
        let mut is_new = self.seen.len() != before;
        for (number, window) in now {
            let known = self.seen.entry((client, number)).or_default();
            if known.size != window.pixels().size() || known.title != window.title {
                *known = BrowserWindowState {
                    size: window.pixels().size(),
                    title: window.title.clone(),
                    ..BrowserWindowState::default()
                };
                is_new = true;
            }
        }
        is_new
    }
}

/// The close code for a peer that violates the protocol (RFC 6455, 7.4.1); `None` if the connection is lost.
const fn reason(error: &tungstenite::Error) -> Option<CloseCode> {
    match error {
        tungstenite::Error::Capacity(_) => Some(CloseCode::Size),
        tungstenite::Error::Protocol(_) => Some(CloseCode::Protocol),
        tungstenite::Error::Utf8(_) => Some(CloseCode::Invalid),
        _ => None,
    }
}

fn list(seen: &BTreeMap<(ClientId, u32), BrowserWindowState>) -> String {
    let window = |((client, number), window): (&(ClientId, u32), &BrowserWindowState)| {
        let (width, height) = window.size;
        json!({ "client": client.0, "window": number, "title": window.title, "width": width, "height": height })
    };
    json!({ "windows": seen.iter().map(window).collect::<Vec<_>>() }).to_string()
}

/// The changed rows as a message: client 8, window 4, top 2, rows 2, then the pixels of as many rows as there is room for. Also whether
/// these are all. `None` if nothing changed.
fn part(
    client: ClientId,
    window: u32,
    pixels: &Pixels,
    seen: &mut BrowserWindowState,
    rows: &RandomState,
    room: usize,
) -> (Option<Vec<u8>>, bool) {
    let (bytes, (width, height)) = (pixels.bytes(), pixels.size());
    let (width, height) = (
        usize::try_from(width).unwrap_or(0),
        usize::try_from(height).unwrap_or(0),
    );
    if seen.size != pixels.size() {
        (seen.size, seen.rows) = (pixels.size(), Vec::new());
    }
    let now: Vec<u64> = bytes
        .chunks_exact(width.max(1))
        .map(|row| rows.hash_one(row))
        .collect();
    let differs = |row: &usize| seen.rows.get(*row) != now.get(*row);
    let Some((top, last)) = (0..height).find(differs).zip((0..height).rfind(differs)) else {
        return (None, true);
    };
    let most = (room / width.max(1)).min(last + 1 - top);
    let Some(sent) = bytes
        .get(top * width..(top + most) * width)
        .filter(|_| most > 0)
    else {
        return (None, false);
    };
    // Rows that were never sent are none that a row can be.
    seen.rows.resize(height, 0);
    seen.rows[top..top + most].copy_from_slice(&now[top..top + most]);
    let mut out = Vec::with_capacity(16 + sent.len());
    out.extend(client.0.to_be_bytes());
    out.extend(window.to_be_bytes());
    out.extend((top as u16).to_be_bytes());
    out.extend((most as u16).to_be_bytes());
    out.extend_from_slice(sent);
    (Some(out), top + most > last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::setting::host;

    #[test]
    fn a_page_is_where_others_can_open_it() {
        let opened = |at: &str| url(DisplayAddress::parse(at).unwrap(), "key");
        for all in ["0.0.0.0:8085", "[::]:8085"] {
            assert_eq!(opened(all), format!("http://{}:8085/?key", host()));
        }
        assert_eq!(opened("127.0.0.1:8085"), "http://127.0.0.1:8085/?key");
        assert_eq!(opened("[::1]:8085"), "http://[::1]:8085/?key");
        assert_eq!(opened("unix:/tmp/view"), "unix:/tmp/view?key");
    }

    #[test]
    fn only_rows_that_changed_go() {
        let mut pixels = Pixels::new(10, 8);
        let (mut seen, rows) = (BrowserWindowState::default(), RandomState::new());
        let mut part =
            |pixels: &Pixels, room: usize| part(ClientId(1), 2, pixels, &mut seen, &rows, room);
        let sent = |part: Option<Vec<u8>>| part.map(|part| (part[12..16].to_vec(), part.len()));
        // What there is no room for comes with the next picture.
        assert_eq!(part(&pixels, 9), (None, false));
        let (first, is_all) = part(&pixels, 55);
        assert_eq!(
            (sent(first), is_all),
            (Some((vec![0, 0, 0, 5], 16 + 50)), false)
        );
        let (rest, is_all) = part(&pixels, 55);
        assert_eq!(
            (sent(rest), is_all),
            (Some((vec![0, 5, 0, 3], 16 + 30)), true)
        );
        assert_eq!(part(&pixels, 100), (None, true));
        pixels.rectangle((2, 3), (4, 5), 7, 0);
        let (changed, is_all) = part(&pixels, 100);
        assert_eq!(
            (sent(changed), is_all),
            (Some((vec![0, 3, 0, 3], 16 + 30)), true)
        );
        assert_eq!(part(&pixels, 100), (None, true));
    }
}
