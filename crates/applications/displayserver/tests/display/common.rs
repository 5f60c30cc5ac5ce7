//! What tests of a display's transports share: a display that is served, a picture drawn as a client of its own, that clients have gone;
//! of programs on terminals, that one ends.
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::DisplayRequest;
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::send_level::{DisplayPicture, DisplaySendLevel, send};
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::terminal::{self, TerminalServiceOptions};
use stackline_guard::secret::Secret;
use stackline_testing::wait_until;
use std::thread;

/// A display at that address; where it is.
pub(crate) fn served(server: &DisplayServer, at: &str) -> DisplayAddress {
    let listener = DisplayListener::at(&DisplayAddress::parse(at).unwrap()).unwrap();
    let address = listener.address();
    server.listen(listener, |_| {});
    address
}

/// A display that anybody draws on.
pub(crate) fn display() -> DisplayServer {
    DisplayServer::new(DisplayClientLimits::default(), Vec::new())
}

/// What lets somebody to a terminal.
pub(crate) const WORD: &[u8] = b"open sesame";

/// The same as a secret.
pub(crate) fn word() -> Secret {
    Secret::new(WORD.to_vec()).unwrap()
}

/// A program on terminals there, for those who know the word; where it is.
pub(crate) fn terminals(at: &str, program: &[impl ToString]) -> DisplayAddress {
    let listener = DisplayListener::at(&DisplayAddress::parse(at).unwrap()).unwrap();
    let address = listener.address();
    let service = TerminalServiceOptions {
        program: program.iter().map(ToString::to_string).collect(),
        secret: Some(word()),
    };
    thread::spawn(move || terminal::serve(&listener, service, |_| {}));
    address
}

/// A client that has drawn a picture at a level, and what its window shows.
pub(crate) fn drawn(
    server: &DisplayServer,
    address: &DisplayAddress,
    picture: &DisplayPicture,
    level: DisplaySendLevel,
) -> (DisplayClient, Vec<u8>) {
    let mut client = DisplayClient::connect(address, b"").unwrap();
    client
        .send(&DisplayRequest::CreateWindow(1, (800, 800), b"test"))
        .unwrap();
    client
        .send(&DisplayRequest::DisplayView(1, 100, (8, 8), FULL_SIZE))
        .unwrap();
    client.send(&DisplayRequest::DefineSymbol(100)).unwrap();
    client.ask(&DisplayRequest::EndSymbol).unwrap();
    send(&mut client, level, picture, 100).unwrap();
    client.sync(3).unwrap();
    let pixels = server
        .last(|id, display| display.draw(id, 1).unwrap().pixels().bytes().to_vec())
        .unwrap();
    (client, pixels)
}

/// Waits until the display has no clients any more.
pub(crate) fn all_gone(server: &DisplayServer) {
    wait_until("its clients are gone", || server.displays().is_empty());
}

/// A program that says its number and reads nothing, on a terminal that is set so.
pub(crate) fn deaf(terminal: &str) -> [String; 3] {
    [
        "sh".into(),
        "-c".into(),
        format!("stty {terminal}; echo $$.; exec sleep 60"),
    ]
}

/// 200 KiB of lines.
pub(crate) fn many_lines() -> Vec<u8> {
    b"0123456789abcde\n".repeat(12_800)
}

/// The number that such a program says, when all of it has come.
pub(crate) fn number(said: &str) -> String {
    let digits: String = said
        .split('.')
        .next()
        .unwrap()
        .chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.chars().rev().collect()
}

/// Whether a process is there, and no zombie.
pub(crate) fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

/// Waits until a process has ended.
pub(crate) fn has_ended(pid: &str, why: &str) {
    wait_until(format_args!("the program has ended {why}"), || !runs(pid));
}
