//! The display in a browser: a page, and a WebSocket that brings it the pixels of all windows as they change and takes keys and the
//! pointer back. Whoever asks needs the secret that the address holds; pages of other origins are sent away.
//!
//! A picture goes as soon as something changed, and two at most before the first of them was shown: the page shows one at each of the
//! screen's, the second waits there for the next. So a way there and back costs no picture, a slow browser sees fewer, and nothing piles up.

use crate::address::Address;
use crate::listener::Listener;
use crate::server::Server;
use crate::stream::Stream;
use serde_json::{Value, json};
use stackline_core::error::Result;
use stackline_display::machine::{ClientId, Display};
use stackline_display::pixels::{Pixels, palette};
use stackline_display::protocol::Input;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::StatusCode;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket, accept_hdr_with_config};

const PAGE: &str = include_str!("view.html");
/// The page asks nobody but this server, and runs nothing but its own script.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";
/// Browsers at once, at most.
const MOST: usize = 16;
/// The longest request of a browser, and the longest message.
const HEAD: usize = 8 << 10;
/// See `HEAD`.
const MESSAGE: usize = 4 << 10;
/// Between two looks at what changed, where nothing does.
const SELDOM: Duration = Duration::from_millis(16);
/// The same while pictures come.
const OFTEN: Duration = Duration::from_millis(4);
/// How long after a picture the next is expected soon.
const LIVELY: Duration = Duration::from_millis(250);
/// Pictures that go before the first of them was shown: one is drawn while the next is on its way.
const AHEAD: u32 = 2;
/// How long a browser may take to say what it wants, and to take a picture.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one browser has of a window.
#[derive(Debug, Default)]
struct Seen {
    /// Its count of drawings (`Window::drawn`) when it was seen last.
    drawn: u64,
    title: String,
    size: (i32, i32),
    bytes: Vec<u8>,
}

/// Shows a display to browsers at that place from now on, in threads of its own. The address to open.
///
/// # Errors
/// When nothing can listen there.
pub fn show(server: &Server, at: &Address, token: &str) -> Result<String> {
    let listener = Listener::at(at)?;
    let address = match listener.address() {
        Address::Tcp(address) => format!("http://{address}/?{token}"),
        other => format!("{other}?{token}"),
    };
    let (server, token, count) = (server.clone(), token.to_owned(), Arc::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        loop {
            let Ok(stream) = listener.accept() else {
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let (server, token, count) = (server.clone(), token.clone(), Arc::clone(&count));
            thread::spawn(move || {
                if count.fetch_add(1, Ordering::Relaxed) < MOST {
                    let _ = visit(&server, stream, &token);
                }
                count.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(address)
}

/// A browser asks for the page or for the pictures: which, its first bytes say, and those are left for whoever answers.
fn visit(server: &Server, stream: Stream, token: &str) -> std::io::Result<()> {
    stream.read_within(Some(PATIENCE))?;
    stream.write_within(PATIENCE)?;
    let mut stream = Replayed::read(stream)?;
    let head = String::from_utf8_lossy(&stream.head).to_ascii_lowercase();
    if !head.contains("upgrade: websocket") {
        return page(&mut stream, token);
    }
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    #[expect(clippy::result_large_err, reason = "the library's own form of an answer")]
    let judge = |request: &Request, response: Response| {
        if may_look_on(request, token) {
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = StatusCode::FORBIDDEN;
        Err(refusal)
    };
    if let Ok(socket) = accept_hdr_with_config(stream, judge, Some(config)) {
        Viewer { server, socket, seen: BTreeMap::new(), sent: Instant::now(), waits: 0 }.serve();
    }
    Ok(())
}

/// A stream whose first bytes were read already.
#[derive(Debug)]
struct Replayed {
    stream: Stream,
    head: Vec<u8>,
    at: usize,
}

impl Replayed {
    /// Reads the head of a request.
    fn read(mut stream: Stream) -> std::io::Result<Self> {
        let mut head = Vec::new();
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            let mut piece = [0; 1024];
            let count = stream.read(&mut piece)?;
            if count == 0 || head.len() + count > HEAD {
                return Err(std::io::Error::other("no request"));
            }
            head.extend_from_slice(&piece[..count]);
        }
        Ok(Self { stream, head, at: 0 })
    }
}

impl Read for Replayed {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let rest = self.head.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return self.stream.read(into);
        }
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for Replayed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The page itself says nothing of the display: it needs no secret, but gets none either.
fn page(stream: &mut Replayed, token: &str) -> std::io::Result<()> {
    let head = String::from_utf8_lossy(&stream.head).into_owned();
    let line = head.lines().next().unwrap_or_default();
    let path = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    let (status, body) = match path.split_once('?').unwrap_or((path, "")) {
        ("/", said) if said == token => ("200 OK", PAGE),
        ("/", _) => ("403 Forbidden", "the address lacks the secret: open the one that the server prints\n"),
        _ => ("404 Not Found", "there is one page here, /\n"),
    };
    let kind = if status.starts_with("200") { "text/html" } else { "text/plain" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nContent-Security-Policy: {POLICY}\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Whether a browser may look on: its page is from here, and it knows the secret.
fn may_look_on(request: &Request, token: &str) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let origin = header("origin").strip_prefix("http://").unwrap_or_default();
    let is_own = !origin.is_empty() && origin == header("host");
    is_own && request.uri().path() == "/pixels" && request.uri().query() == Some(token)
}

/// One browser.
struct Viewer<'s> {
    server: &'s Server,
    socket: WebSocket<Replayed>,
    seen: BTreeMap<(ClientId, u32), Seen>,
    /// When the last picture went.
    sent: Instant,
    /// Pictures that are on their way and were not shown yet.
    waits: u32,
}

impl Viewer<'_> {
    fn serve(&mut self) {
        let colours = json!({ "palette": palette() }).to_string();
        if self.socket.send(Message::text(colours)).is_err() {
            return;
        }
        while self.step().is_some() {}
    }

    /// Sends what changed, if no more than one is on its way, and reads what the browser says until the next look.
    fn step(&mut self) -> Option<()> {
        if self.waits < AHEAD {
            let changes = self.changes();
            if !changes.is_empty() {
                self.picture(changes)?;
            }
        }
        let pause = if self.sent.elapsed() < LIVELY { OFTEN } else { SELDOM };
        self.socket.get_ref().stream.read_within(Some(pause)).ok()?;
        match self.socket.read() {
            Ok(Message::Text(text)) => self.takes(text.as_str()),
            Ok(Message::Close(_)) => None,
            Ok(_) => Some(()),
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                Some(())
            }
            Err(_) => None,
        }
    }

    fn picture(&mut self, parts: Vec<Message>) -> Option<()> {
        (self.waits, self.sent) = (self.waits + 1, Instant::now());
        for message in parts.into_iter().chain([Message::text(json!({ "end": true }).to_string())]) {
            self.socket.write(message).ok()?;
        }
        self.socket.flush().ok()
    }

    /// What a browser says: a picture is shown, or somebody pressed something.
    fn takes(&mut self, text: &str) -> Option<()> {
        let said: Value = serde_json::from_str(text).ok()?;
        if said["shown"].as_bool() == Some(true) {
            self.waits = self.waits.saturating_sub(1);
            return Some(());
        }
        let client = ClientId(said["client"].as_u64()?);
        let window = u32::try_from(said["window"].as_u64()?).ok()?;
        let place = || {
            let of = |name: &str| said[name].as_i64().and_then(|value| i16::try_from(value).ok());
            Some((of("x")?, of("y")?))
        };
        let input = match said["what"].as_str()? {
            "key" => Input::Key(said["key"].as_str()?.chars().next()? as u32),
            "move" => place().map(|(x, y)| Input::Move(x, y))?,
            "press" => place().map(|(x, y)| Input::Press(x, y))?,
            "release" => place().map(|(x, y)| Input::Release(x, y))?,
            _ => return Some(()),
        };
        self.server.input(client, window, input);
        Some(())
    }

    /// What of all windows is not seen yet: a list of them where that changed, and parts of their pixels. A display that is busy is left
    /// for the next time.
    fn changes(&mut self) -> Vec<Message> {
        let displays = self.server.displays();
        let before = self.seen.len();
        self.seen.retain(|(client, _), _| displays.iter().any(|(id, _)| id == client));
        let mut is_new = self.seen.len() != before;
        let mut parts = Vec::new();
        for (client, display) in displays {
            let Ok(mut display) = display.try_lock() else { continue };
            is_new |= self.windows(client, &display);
            for window in self.seen.keys().filter(|(id, _)| *id == client).copied().collect::<Vec<_>>() {
                let Some((drawn, known)) = display.draw(client, window.1).zip(self.seen.get_mut(&window)) else {
                    continue;
                };
                if known.drawn != drawn.drawn {
                    known.drawn = drawn.drawn;
                    parts.extend(part(window, drawn.pixels(), known).map(Message::binary));
                }
            }
        }
        let list = is_new.then(|| Message::text(list(&self.seen)));
        list.into_iter().chain(parts).collect()
    }

    /// Whether a client's windows are others than were seen; they are known from now on.
    fn windows(&mut self, client: ClientId, display: &Display) -> bool {
        let now: BTreeMap<u32, _> = display.windows().map(|(_, number, window)| (number, window)).collect();
        let before = self.seen.len();
        self.seen.retain(|(id, number), _| *id != client || now.contains_key(number));
        let mut is_new = self.seen.len() != before;
        for (number, window) in now {
            let known = self.seen.entry((client, number)).or_default();
            if known.size != window.pixels().size() || known.title != window.title {
                *known = Seen { size: window.pixels().size(), title: window.title.clone(), ..Seen::default() };
                is_new = true;
            }
        }
        is_new
    }
}

fn list(seen: &BTreeMap<(ClientId, u32), Seen>) -> String {
    let window = |((client, number), window): (&(ClientId, u32), &Seen)| {
        let (width, height) = window.size;
        json!({ "client": client.0, "window": number, "title": window.title, "width": width, "height": height })
    };
    json!({ "windows": seen.iter().map(window).collect::<Vec<_>>() }).to_string()
}

/// The rows that changed, as a message: client 8, window 4, top 2, rows 2, then their pixels. None where nothing did.
fn part((client, window): (ClientId, u32), pixels: &Pixels, seen: &mut Seen) -> Option<Vec<u8>> {
    let (now, (width, height)) = (pixels.bytes(), pixels.size());
    if seen.size != (width, height) {
        (seen.size, seen.bytes) = ((width, height), Vec::new());
    }
    let row = width as usize;
    let (top, bottom) = if seen.bytes.len() == now.len() {
        let pairs = || now.chunks(row).zip(seen.bytes.chunks(row));
        (pairs().position(|(now, then)| now != then)?, pairs().rposition(|(now, then)| now != then)?)
    } else {
        (0, height as usize - 1)
    };
    let rows = now.get(top * row..(bottom + 1) * row)?;
    if seen.bytes.len() == now.len() {
        seen.bytes.get_mut(top * row..(bottom + 1) * row)?.copy_from_slice(rows);
    } else {
        seen.bytes = now.to_vec();
    }
    let mut out = Vec::with_capacity(16 + rows.len());
    out.extend(client.0.to_be_bytes());
    out.extend(window.to_be_bytes());
    out.extend((top as u16).to_be_bytes());
    out.extend(((bottom - top + 1) as u16).to_be_bytes());
    out.extend_from_slice(rows);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_that_changed_go() {
        let mut pixels = Pixels::new(10, 8);
        let (mut seen, window) = (Seen::default(), (ClientId(1), 2));
        assert_eq!(part(window, &pixels, &mut seen).unwrap().len(), 16 + 80);
        assert_eq!(part(window, &pixels, &mut seen), None);
        pixels.rectangle((2, 3), (4, 5), 7, 0);
        let sent = part(window, &pixels, &mut seen).unwrap();
        assert_eq!((&sent[12..16], sent.len()), (&[0, 3, 0, 3][..], 16 + 30));
        assert_eq!(part(window, &pixels, &mut seen), None);
    }
}
