//! The control connection of FTP (RFC 959): lines of commands, each answered in order by a reply of one or more lines that begin with three
//! digits. Preliminary replies (1xx) are passed over, so a transfer takes until its last reply; its data is on a connection of its own.
//! After an accepted AUTH TLS (RFC 4217) the rest is TLS.

use super::pending_requests::{PendingExchange, PendingExchangeQueue};
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::Extent;
use super::text_lines::{is_too_long, line_extent, number, words_of};
use super::tls::TlsDissector;
use super::{DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;

/// The commands of RFC 959, 2228, 2389, 2428, 2640, 3659 and 7151, and what clients use besides.
const COMMANDS: [&str; 54] = [
    "USER", "PASS", "ACCT", "CWD", "CDUP", "SMNT", "QUIT", "REIN", "PORT", "PASV", "TYPE", "STRU",
    "MODE", "RETR", "STOR", "STOU", "APPE", "ALLO", "REST", "RNFR", "RNTO", "ABOR", "DELE", "RMD",
    "MKD", "PWD", "LIST", "NLST", "SITE", "SYST", "STAT", "HELP", "NOOP", "AUTH", "ADAT", "PROT",
    "PBSZ", "CCC", "MIC", "CONF", "ENC", "FEAT", "OPTS", "EPRT", "EPSV", "LANG", "MDTM", "MLST",
    "MLSD", "SIZE", "HOST", "CLNT", "XPWD", "XCWD",
];
/// The commands with which a client begins.
const OPENERS: [&str; 7] = ["USER", "AUTH", "FEAT", "HOST", "CLNT", "OPTS", "SYST"];
/// The reply by which a server begins.
const READY: &[u8] = b"220";
/// From this reply code on, a command is answered; lower ones are preliminary.
const ANSWERED: u64 = 200;
/// The reply code that accepts AUTH.
const ACCEPTED: u64 = 234;

/// Whether a connection speaks FTP: the server is ready first, and the client's first command is one of FTP. Mail servers greet alike.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    if opening.back.is_empty() {
        return match opening.there.is_empty() {
            true => ProtocolVerdict::Perhaps,
            false => ProtocolVerdict::No,
        };
    }
    match ProtocolVerdict::begins(opening.back, READY) {
        ProtocolVerdict::Yes => begins_with_command(opening.there),
        verdict => verdict,
    }
}

fn begins_with_command(there: &[u8]) -> ProtocolVerdict {
    let end = there.iter().position(u8::is_ascii_whitespace);
    let word = there[..end.unwrap_or(there.len())].to_ascii_uppercase();
    let is_begun = OPENERS
        .iter()
        .any(|known| known.as_bytes().starts_with(&word));
    match (end, command_of(&OPENERS, &word), is_begun) {
        (Some(_), Some(_), _) => ProtocolVerdict::Yes,
        (None, _, true) => ProtocolVerdict::Perhaps,
        _ => ProtocolVerdict::No,
    }
}

/// The dissector of one FTP control connection.
#[derive(Debug, Default)]
pub struct Ftp {
    dialogue: RecordDialogue,
    waiting: PendingExchangeQueue<PendingCommand>,
    /// The reply of several lines that has begun.
    reply: Option<FtpReply>,
    /// Whether the server has said that it is ready.
    is_greeted: bool,
}

/// A command that waits for its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PendingCommand {
    exchange: u64,
    /// Whether it asks for TLS.
    is_auth: bool,
}

impl PendingExchange for PendingCommand {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }
}

/// A reply whose last line has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FtpReply {
    code: u64,
    /// The stream offset of its first line.
    at: u64,
}

impl RecordProtocol for Ftp {
    const NAME: &'static str = "FTP";
    const FOREIGN: &'static str = "it is not FTP";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn name(&self) -> &'static str {
        match self.dialogue.inner() {
            None => Self::NAME,
            Some(_) => "FTP over TLS, alternating",
        }
    }

    fn extent(_: (), _: EventStreamDirection, head: &[u8]) -> Extent {
        line_extent(head, |_| Some(0))
    }

    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let begins = match side {
            EventStreamDirection::There => {
                let word = words_of(bytes).next().unwrap_or_default();
                command_of(&COMMANDS, &word.to_ascii_uppercase()).is_some()
            }
            EventStreamDirection::Back => FtpReplyLine::read(bytes).is_some(),
        };
        if self.dialogue.is_lost(side) && begins {
            self.dialogue.begin_side_anew(side);
        }
    }

    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        if side == EventStreamDirection::There {
            let at = self.dialogue.records(side).at();
            let exchange = self.dialogue.begin_request(ExchangeKind::Call, at, found);
            self.waiting.push_back(PendingCommand {
                exchange,
                is_auth: false,
            });
        }
    }

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        match side {
            EventStreamDirection::There => self.command(found),
            EventStreamDirection::Back => self.reply_line(found),
        }
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let is_long = |side| is_too_long(self.dialogue.records(side).held());
        if why == Self::FOREIGN
            && (is_long(EventStreamDirection::There) || is_long(EventStreamDirection::Back))
        {
            found.push(DissectorEvent::LeftOut(Bound::Head, 1));
        }
        let waiting = self.waiting.clear().into_iter();
        found.extend(waiting.map(|exchange| DissectorEvent::Void { exchange, why }));
        self.dialogue.lose();
        self.reply = None;
    }
}

impl Ftp {
    /// A line of the client is complete. Arguments are names of files, of users, and passwords: they are left out.
    fn command(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::There);
        let word = words_of(records.held()).next().unwrap_or_default();
        let command = command_of(&COMMANDS, &word.to_ascii_uppercase());
        let end = records.end();
        let Some(last) = self.waiting.back_mut() else {
            return;
        };
        last.is_auth = command == Some("AUTH");
        let exchange = last.exchange;
        let name = RedactedName::fixed(command.unwrap_or("unknown command"));
        found.push(DissectorEvent::named(exchange, ExchangeRole::Request, name));
        found.push(DissectorEvent::ends(exchange, ExchangeRole::Request, end));
        if !self.waiting.settle(exchange, found) {
            self.dialogue.lose_side(EventStreamDirection::Back);
        }
    }

    /// A line of the server is complete.
    fn reply_line(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::Back);
        let (line, at, end) = (
            FtpReplyLine::read(records.held()),
            records.at(),
            records.end(),
        );
        let reply = match (self.reply, line) {
            // Lines within a reply may be any text until its code stands before a space.
            (Some(reply), Some(line)) if line.is_last && line.code == reply.code => reply,
            (Some(_), _) | (None, None) => return,
            (None, Some(line)) if line.is_last => FtpReply {
                code: line.code,
                at,
            },
            (None, Some(line)) => {
                self.reply = Some(FtpReply {
                    code: line.code,
                    at,
                });
                return;
            }
        };
        self.reply = None;
        self.replied(reply, end, found);
    }

    /// A reply is complete.
    fn replied(&mut self, reply: FtpReply, end: u64, found: &mut Vec<DissectorEvent>) {
        let name = RedactedName::number("", reply.code);
        if !self.is_greeted {
            self.is_greeted = true;
            if self.waiting.is_empty() || reply.code == 220 {
                return self.dialogue.one_way(ExchangeRole::Response, name, found);
            }
        }
        if reply.code < ANSWERED {
            return;
        }
        // Without a command, the server says why it closes the connection.
        let Some(command) = self.waiting.pop_front() else {
            return self.dialogue.one_way(ExchangeRole::Response, name, found);
        };
        let (exchange, role) = (command.exchange, ExchangeRole::Response);
        found.push(DissectorEvent::begins(
            exchange,
            role,
            ExchangeKind::Call,
            reply.at,
        ));
        found.push(DissectorEvent::named(exchange, role, name));
        found.push(DissectorEvent::ends(exchange, role, end));
        if command.is_auth && reply.code == ACCEPTED {
            self.dialogue.hand_over(Box::<TlsDissector>::default());
        }
    }
}

/// A line that begins with a reply code.
#[derive(Clone, Copy, Debug)]
struct FtpReplyLine {
    code: u64,
    /// Whether the code stands before a space and not before a hyphen.
    is_last: bool,
}

impl FtpReplyLine {
    fn read(line: &[u8]) -> Option<Self> {
        let code = line
            .get(..3)
            .filter(|code| code.iter().all(u8::is_ascii_digit))?;
        let code = number(code).filter(|code| (100..600).contains(code))?;
        let is_last = match line.get(3)? {
            b' ' | b'\r' | b'\n' => true,
            b'-' => false,
            _ => return None,
        };
        Some(Self { code, is_last })
    }
}

/// The known command that equals an upper-case word.
fn command_of(known: &[&'static str], word: &[u8]) -> Option<&'static str> {
    known.iter().copied().find(|known| known.as_bytes() == word)
}

#[cfg(test)]
mod tests;
