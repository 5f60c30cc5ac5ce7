//! MySQL and MariaDB, protocol version 10: packets have a length and a sequence number. A command begins with a packet of number 0;
//! `answer` finds where its response ends. Where that cannot be known, as for unknown commands or packets that were not captured, the
//! response ends when the next command begins. After a TLS request the connection goes to [`tls`](super::tls); with compression it is
//! read by turns. After a gap over packet heads, it resumes at a command that begins a segment, unless the client had pipelined commands:
//! then nothing more is known. Rows and parameters are not read.

mod answer;

use super::pending_requests::{
    PendingExchange, PendingExchangeQueue, answer_begins, answer_ends, of_answer,
};
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::statement_texts::StatementTexts;
use super::tls::TlsDissector;
use super::turn_dissector::TurnDissector;
use super::{DissectorEvent, ExchangeKind, ExchangeRole, LONGEST_NAME, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use answer::{Abilities, ExpectedMysqlPacket, Means, number};
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::sql::{self, Backslash, Dialect, answer as answers};

/// The length of a packet's head in bytes: length and sequence number.
const HEAD: usize = 4;
/// The most bytes of a packet that are held.
const KEEP: usize = HEAD + 4 * LONGEST_NAME;
/// The longest body of a packet in bytes; a packet of this length continues in the next one.
const LONGEST: u64 = 0xff_ffff;
/// The length of the packet that asks for TLS, in bytes.
const TLS_REQUEST: u64 = HEAD as u64 + 32;
/// Capability flags of client and server.
const LONG_PASSWORD: u64 = 1;
const WITH_DATABASE: u64 = 1 << 3;
const COMPRESSED: u64 = 1 << 5 | 1 << 26;
const PROTOCOL_41: u64 = 1 << 9;
const TLS: u64 = 1 << 11;
const LONG_SECRET: u64 = 1 << 21;
const NO_EOF: u64 = 1 << 24;
const MAY_LACK_COLUMNS: u64 = 1 << 25;
const ATTRIBUTES: u64 = 1 << 27;
/// A capability flag of MariaDB, which has its own above the 32 of MySQL.
const MAY_KNOW_COLUMNS: u64 = 1 << (32 + 4);
/// Command codes.
const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const LONG_DATA: u8 = 0x18;
const CLOSE: u8 = 0x19;
const FETCH: u8 = 0x1c;
const BULK: u8 = 0xfa;
/// A statement id that means the statement prepared last.
const LAST_PREPARED: &[u8] = b"4294967295";

/// Whether a connection speaks MySQL: the server sends a greeting with its version first.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    if !opening.there.is_empty() {
        return ProtocolVerdict::No;
    }
    match *opening.back {
        [] => ProtocolVerdict::Perhaps,
        [_] | [_, 0..=1] | [_, 0..=1, 0] | [_, 0..=1, 0, 0] | [_, 0..=1, 0, 0, 10] => {
            ProtocolVerdict::Perhaps
        }
        [low, high @ 0..=1, 0, 0, 10, b'0'..=b'9', ..] if low > 30 || high > 0 => {
            ProtocolVerdict::Yes
        }
        _ => ProtocolVerdict::No,
    }
}

/// The dissector of one MySQL connection.
#[derive(Debug, Default)]
pub struct Mysql {
    dialogue: RecordDialogue,
    /// Whether the previous packet of each side had the greatest length and so continues.
    continues: [bool; 2],
    phase: MysqlPhase,
    /// The capabilities of the server, and after the login those of both sides.
    bits: u64,
    abilities: Abilities,
    /// Commands without a complete response, in order.
    waiting: PendingExchangeQueue<PendingMysqlCommand>,
    /// The command in progress.
    command: Option<OpenMysqlCommand>,
    texts: StatementTexts,
    /// The statement that the previous call prepared.
    prepared: Option<PreparedMysqlStatement>,
    /// The meaning of a backslash in strings, as the server last reported it; unknown after anything that may change it.
    backslash: Backslash,
    /// Whether a command came before the previous one was answered.
    pipelined: bool,
    /// Whether the client is sending a file (LOAD DATA LOCAL).
    file: bool,
    /// The offset behind the server's last packet.
    server_end: u64,
    /// Whether nothing more can be known.
    gone: bool,
}

/// What the next packets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MysqlPhase {
    /// Before the server's greeting.
    #[default]
    Greeting,
    /// Before the client's login.
    Login,
    Commands,
}

/// A command that is not complete.
#[derive(Clone, Copy, Debug)]
struct OpenMysqlCommand {
    exchange: u64,
    named: bool,
}

/// A statement that was prepared and not executed so far.
#[derive(Clone, Copy, Debug)]
struct PreparedMysqlStatement {
    exchange: u64,
    /// The statement id, once the server has said it.
    number: Option<u64>,
}

/// A command without a complete response.
#[derive(Clone, Debug, PartialEq)]
struct PendingMysqlCommand {
    exchange: u64,
    kind: ExchangeKind,
    expect: ExpectedMysqlPacket,
    answered: bool,
    /// The text of the statement that it prepares.
    text: Option<RedactedName>,
}

impl PendingExchange for PendingMysqlCommand {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }

    fn shrink(&mut self) -> Option<Bound> {
        self.text.take().map(|_| Bound::Statements)
    }
}

impl RecordProtocol for Mysql {
    const NAME: &'static str = "MySQL";
    const FOREIGN: &'static str = "it is not MySQL";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn name(&self) -> &'static str {
        match self.dialogue.inner() {
            None => Self::NAME,
            Some(_) if self.bits & TLS != 0 => "MySQL over TLS, alternating",
            Some(_) => "MySQL, compressed, alternating",
        }
    }

    fn extent(_: (), side: EventStreamDirection, head: &[u8]) -> Extent {
        extent(side, head)
    }

    /// Resumes at a command that begins a segment: since this client waits for each response, the server is idle then.
    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let lost = self.dialogue.is_lost(EventStreamDirection::There)
            && side == EventStreamDirection::There
            && !self.gone;
        if lost
            && matches!(*bytes, [1..=255, _, 0, 0, command, ..] if ExpectedMysqlPacket::from_command(command) != ExpectedMysqlPacket::Unknown)
        {
            self.dialogue.begin_anew();
            self.continues = [false; 2];
        }
    }

    /// Gives up until a command begins, and voids all commands that wait for a response.
    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let command = self.command.take().map(|command| command.exchange);
        let waiting = self.waiting.clear();
        let command = command.filter(|exchange| !waiting.contains(exchange));
        found.extend(
            waiting
                .into_iter()
                .chain(command)
                .map(|exchange| DissectorEvent::Void { exchange, why }),
        );
        self.dialogue.lose();
        self.continues = [false; 2];
        self.gone |= self.pipelined || self.phase != MysqlPhase::Commands;
        self.backslash = Backslash::Unknown;
        (self.file, self.prepared) = (false, None);
    }

    /// The head of a packet was read; for a client's packet, also the first byte of its body.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (head, at) = (records.held(), records.at());
        match (side, self.phase) {
            (_, MysqlPhase::Greeting) | (EventStreamDirection::There, MysqlPhase::Login) => {}
            (EventStreamDirection::There, MysqlPhase::Commands) => {
                if let &[_, _, _, 0, command] = head
                    && !self.continues[side as usize]
                    && !self.file
                {
                    self.command(command, at, found);
                }
            }
            (EventStreamDirection::Back, _) => self.answers(at, found),
        }
    }

    /// A packet is complete.
    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (at, end) = (records.at(), records.end());
        let length = end - at - HEAD as u64;
        let is_first = !std::mem::replace(&mut self.continues[side as usize], length == LONGEST);
        let held = if self.phase == MysqlPhase::Commands {
            Vec::new()
        } else {
            records.held().to_vec()
        };
        match (side, self.phase) {
            (EventStreamDirection::Back, MysqlPhase::Greeting) => self.greeting(&held, found),
            (EventStreamDirection::There, MysqlPhase::Greeting) => self.lose(Self::FOREIGN, found),
            (EventStreamDirection::There, MysqlPhase::Login) => self.login(&held, at, end, found),
            (EventStreamDirection::There, MysqlPhase::Commands) => {
                self.of_client(length, end, found)
            }
            (EventStreamDirection::Back, _) => {
                self.server_end = end;
                if is_first {
                    self.of_server(length, end, found);
                }
            }
        }
    }

    fn side_ended(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        if side == EventStreamDirection::Back {
            self.finish_unknown(found);
        }
    }
}

impl Mysql {
    /// A command begins.
    fn command(&mut self, command: u8, at: u64, found: &mut Vec<DissectorEvent>) {
        self.finish_unknown(found);
        let kind = match command {
            QUIT | LONG_DATA | CLOSE => ExchangeKind::OneWay,
            // COM_CHANGE_USER logs in anew.
            0x11 => ExchangeKind::Handshake,
            _ => ExchangeKind::Call,
        };
        let exchange = self.dialogue.begin_request(kind, at, found);
        self.command = Some(OpenMysqlCommand {
            exchange,
            named: false,
        });
        if kind != ExchangeKind::OneWay {
            self.note_prepared(command, exchange);
            self.wait(
                exchange,
                kind,
                ExpectedMysqlPacket::from_command(command),
                found,
            );
        }
    }

    /// Remembers a statement to be prepared: if it is executed next, both round trips are one request.
    fn note_prepared(&mut self, command: u8, exchange: u64) {
        match command {
            EXECUTE | BULK => {}
            PREPARE => {
                self.prepared = Some(PreparedMysqlStatement {
                    exchange,
                    number: None,
                })
            }
            _ => self.prepared = None,
        }
    }

    /// Adds a command that waits for its response.
    fn wait(
        &mut self,
        exchange: u64,
        kind: ExchangeKind,
        expect: ExpectedMysqlPacket,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.pipelined |= !self.waiting.is_empty();
        // Only the first and the last command can be of this kind: when another follows one, everything is given up here.
        let mut ends = self.waiting.front().into_iter().chain(self.waiting.back());
        let unknown = ends.any(|waiting| waiting.expect == ExpectedMysqlPacket::Unknown);
        self.waiting.push_back(PendingMysqlCommand {
            exchange,
            kind,
            expect,
            answered: false,
            text: None,
        });
        if unknown {
            self.lose("the end of its answer is unknown", found);
        }
    }

    /// Ends a response whose end cannot be known.
    fn finish_unknown(&mut self, found: &mut Vec<DissectorEvent>) {
        if self.waiting.front().is_some_and(|waiting| {
            waiting.answered && waiting.expect == ExpectedMysqlPacket::Unknown
        }) {
            self.whole(RedactedName::fixed("end unknown"), self.server_end, found);
        }
    }

    /// The response to the command that has waited longest begins.
    fn answers(&mut self, at: u64, found: &mut Vec<DissectorEvent>) {
        let Some(waiting) = self.waiting.front_mut() else {
            return;
        };
        let (exchange, kind) = (waiting.exchange, waiting.kind);
        if !std::mem::replace(&mut waiting.answered, true) {
            answer_begins(exchange, kind, at, found);
        }
    }

    /// The server's greeting is complete.
    fn greeting(&mut self, held: &[u8], found: &mut Vec<DissectorEvent>) {
        let mut fields = RecordFieldReader(&held[HEAD..]);
        let version = match fields.number(1) {
            Some(10) => fields.text(),
            Some(0xff) => {
                return self.dialogue.one_way(
                    ExchangeRole::Response,
                    answer::error(&held[HEAD..]),
                    found,
                );
            }
            _ => return self.lose(Self::FOREIGN, found),
        };
        self.dialogue
            .one_way(ExchangeRole::Response, answers::greeting(version), found);
        self.bits = greeting_bits(fields).unwrap_or(u64::MAX);
        self.phase = MysqlPhase::Login;
    }

    /// The client's login, or its request for TLS, is complete.
    fn login(&mut self, held: &[u8], at: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        let mut fields = RecordFieldReader(&held[HEAD..]);
        let Some(bits) = login_bits(&mut fields) else {
            return self.lose("its login was not captured", found);
        };
        if end - at == TLS_REQUEST && bits & TLS != 0 {
            self.bits &= bits;
            self.dialogue.one_way(
                ExchangeRole::Request,
                RedactedName::fixed("SSLRequest"),
                found,
            );
            return self.dialogue.hand_over(Box::<TlsDissector>::default());
        }
        self.bits &= bits & !TLS;
        self.abilities = Abilities {
            no_eof: self.bits & NO_EOF != 0,
            may_lack_columns: self.bits & MAY_LACK_COLUMNS != 0,
            may_know_columns: self.bits & MAY_KNOW_COLUMNS != 0,
            attributes: self.bits & ATTRIBUTES != 0,
        };
        self.phase = MysqlPhase::Commands;
        let (role, kind) = (ExchangeRole::Request, ExchangeKind::Handshake);
        let exchange = self.dialogue.begin_request(kind, at, found);
        found.push(DissectorEvent::named(
            exchange,
            role,
            login_name(fields, bits),
        ));
        found.push(DissectorEvent::ends(exchange, role, end));
        self.wait(exchange, kind, ExpectedMysqlPacket::Login, found);
    }

    /// A packet of a command, or of data that belongs to it, is complete.
    fn of_client(&mut self, length: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        self.file &= length > 0;
        let Some(command) = self.command else { return };
        if !command.named {
            let name = self.name_command(found);
            self.command = Some(OpenMysqlCommand {
                named: true,
                ..command
            });
            found.push(DissectorEvent::named(
                command.exchange,
                ExchangeRole::Request,
                name,
            ));
        }
        if length < LONGEST {
            let role = ExchangeRole::Request;
            found.push(DissectorEvent::ends(command.exchange, role, end));
            self.command = None;
            if !self.waiting.settle(command.exchange, found) {
                self.dialogue.lose_side(EventStreamDirection::Back);
            }
        }
    }

    /// The name of the command in progress.
    fn name_command(&mut self, found: &mut Vec<DissectorEvent>) -> RedactedName {
        let records = self.dialogue.records(EventStreamDirection::There);
        let (held, is_whole) = (
            records.held(),
            records.is_held_whole() && !self.continues[0],
        );
        let mut fields = RecordFieldReader(held.get(HEAD + 1..).unwrap_or_default());
        let dialect = Dialect::MySql(self.backslash);
        // All others may change `sql_mode`, and with it what a backslash means.
        if !matches!(held.get(HEAD), Some(&(PREPARE | CLOSE | LONG_DATA))) {
            self.backslash = Backslash::Unknown;
        }
        let statement =
            |fields: &mut RecordFieldReader<'_>| fields.little(4).unwrap_or(0).to_string();
        match held.get(HEAD).copied().unwrap_or(0) {
            QUERY => query_text(fields, self.abilities, dialect, is_whole),
            PREPARE => {
                let text = text_of(fields, dialect, is_whole);
                self.texts.learn(LAST_PREPARED, &text, found);
                let name = text.behind("PREPARE ");
                if let Some(waiting) = self.waiting.back_mut() {
                    waiting.text = Some(text);
                }
                name
            }
            EXECUTE | BULK => {
                let number = statement(&mut fields);
                let is_it = |prepared: &PreparedMysqlStatement| {
                    number.as_bytes() == LAST_PREPARED
                        || prepared.number.is_some_and(|own| own.to_string() == number)
                };
                if let (Some(prepared), Some(command)) =
                    (self.prepared.take().filter(is_it), self.command)
                {
                    found.push(DissectorEvent::GoesOn {
                        exchange: command.exchange,
                        of: prepared.exchange,
                    });
                }
                self.texts.name_of(number.as_bytes())
            }
            FETCH => self
                .texts
                .name_of(statement(&mut fields).as_bytes())
                .behind("FETCH "),
            CLOSE => {
                self.texts.forget(statement(&mut fields).as_bytes());
                RedactedName::fixed("CLOSE")
            }
            0x02 => RedactedName::identifier("USE ", fields.0),
            command => name_of_command(command),
        }
    }

    /// A packet of the server is complete.
    fn of_server(&mut self, length: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        let front = self.waiting.front();
        if front.is_some_and(|waiting| !waiting.answered) {
            // It had begun before the command came.
            return self.lose("it answers no known request", found);
        }
        let records = self.dialogue.records(EventStreamDirection::Back);
        let bytes = records.held().get(HEAD..).unwrap_or_default();
        let Some(waiting) = self.waiting.front_mut() else {
            return match bytes.first() {
                // The server ends the connection with an error.
                Some(0xff) => {
                    self.dialogue
                        .one_way(ExchangeRole::Response, answer::error(bytes), found)
                }
                _ => self.lose("it answers no known request", found),
            };
        };
        let (exchange, before) = (waiting.exchange, waiting.expect);
        let means = before.packet(bytes, length, self.abilities);
        // A login may be followed by statements that the server runs itself (`init_connect`).
        let says = self.bits & PROTOCOL_41 != 0 && before != ExpectedMysqlPacket::Login;
        let backslash = before
            .backslash(bytes, length, self.abilities)
            .filter(|_| says);
        if before == ExpectedMysqlPacket::Prepared
            && let (Some(text), Some(statement)) = (
                waiting.text.take(),
                RecordFieldReader(bytes.get(1..5).unwrap_or_default()).little(4),
            )
        {
            let number = statement.to_string();
            self.texts.learn(number.as_bytes(), &text, found);
            learn_number(&mut self.prepared, exchange, statement);
        }
        match means {
            Means::More(expect) => waiting.expect = expect,
            Means::Event => of_answer(
                DissectorEvent::Part {
                    exchange,
                    side: EventStreamDirection::Back,
                    at: end,
                },
                found,
            ),
            Means::File => (self.file, waiting.expect) = (true, ExpectedMysqlPacket::First),
            Means::Whole(status) => {
                let succeeded = status.kept() == "OK";
                self.whole(status, end, found);
                if let Some(backslash) = backslash.filter(|_| self.waiting.is_empty()) {
                    self.backslash = backslash;
                }
                if before == ExpectedMysqlPacket::Login && succeeded && self.bits & COMPRESSED != 0
                {
                    self.dialogue.hand_over(Box::new(TurnDissector::new(
                        "alternating",
                        EventStreamDirection::There,
                    )));
                }
            }
        }
    }

    /// The response to the command that has waited longest is complete.
    fn whole(&mut self, name: RedactedName, at: u64, found: &mut Vec<DissectorEvent>) {
        let Some(PendingMysqlCommand { exchange, .. }) = self.waiting.pop_front() else {
            return;
        };
        answer_ends(exchange, name, at, found);
        self.file = false;
    }
}

/// Remembers the id of the statement that an exchange prepared, if this is the one to be executed next.
fn learn_number(prepared: &mut Option<PreparedMysqlStatement>, exchange: u64, statement: u64) {
    if let Some(prepared) = prepared.as_mut().filter(|one| one.exchange == exchange) {
        prepared.number = Some(statement);
    }
}

/// The capability flags in a greeting, behind the server's version.
fn greeting_bits(mut fields: RecordFieldReader<'_>) -> Option<u64> {
    // The connection's id, the first part of the scramble, and a filler.
    fields.take(4 + 8 + 1)?;
    let low = fields.little(2)?;
    // The character set, then the status.
    fields.take(1)?;
    fields.take(2)?;
    let high = fields.little(2).unwrap_or(0);
    // The length of the scramble, and six reserved bytes.
    fields.take(1 + 6)?;
    let of_mariadb = fields
        .little(4)
        // MariaDB leaves this flag out where it uses four reserved bytes for its own.
        .filter(|_| low & LONG_PASSWORD == 0)
        .unwrap_or(0);
    Some(low | high << 16 | of_mariadb << 32)
}

/// The capability flags in a login; the user's name and more follow.
fn login_bits(fields: &mut RecordFieldReader<'_>) -> Option<u64> {
    let low = fields.little(2)?;
    if low & PROTOCOL_41 == 0 {
        // Before protocol 4.1 the largest packet has three bytes, and nothing is reserved.
        fields.take(3)?;
        return Some(low);
    }
    let high = fields.little(2)?;
    // The largest packet, the character set, and reserved bytes.
    fields.take(4 + 1 + 19)?;
    let of_mariadb = fields
        .little(4)
        .filter(|_| low & LONG_PASSWORD == 0)
        .unwrap_or(0);
    Some(low | high << 16 | of_mariadb << 32)
}

/// The name of a login: user and database.
fn login_name(mut fields: RecordFieldReader<'_>, bits: u64) -> RedactedName {
    let user = fields.text();
    let secret = if bits & LONG_SECRET != 0 {
        number(&mut fields)
    } else {
        fields.little(1)
    };
    let behind = secret.and_then(|length| fields.take(usize::try_from(length).ok()?));
    let database = behind
        .filter(|_| bits & WITH_DATABASE != 0)
        .map(|_| fields.text())
        .unwrap_or_default();
    answers::login(user, database, true)
}

/// The name of a query, whose text may have attributes before it.
fn query_text(
    mut fields: RecordFieldReader<'_>,
    abilities: Abilities,
    dialect: Dialect,
    is_whole: bool,
) -> RedactedName {
    if abilities.attributes {
        // The counts of parameters and of their sets: only without parameters the text is next.
        match (number(&mut fields), number(&mut fields)) {
            (Some(0), Some(_)) => {}
            _ => return RedactedName::fixed("query with attributes"),
        }
    }
    text_of(fields, dialect, is_whole)
}

/// The redacted text of a statement.
fn text_of(fields: RecordFieldReader<'_>, dialect: Dialect, is_whole: bool) -> RedactedName {
    if is_whole {
        sql::redact_statement(dialect, fields.0)
    } else {
        sql::redact_beginning(dialect, fields.0)
    }
}

fn name_of_command(command: u8) -> RedactedName {
    let name = match command {
        QUIT => "QUIT",
        0x04 => "FIELD LIST",
        0x05 => "CREATE DATABASE",
        0x06 => "DROP DATABASE",
        0x07 => "REFRESH",
        0x09 => "STATISTICS",
        0x0a => "PROCESS INFO",
        0x0c => "KILL",
        0x0d => "DEBUG",
        0x0e => "PING",
        0x11 => "CHANGE USER",
        0x12 | 0x1e => "BINLOG DUMP",
        0x15 => "REGISTER REPLICA",
        LONG_DATA => "LONG DATA",
        0x1a => "RESET STATEMENT",
        0x1b => "SET OPTION",
        0x1f => "RESET CONNECTION",
        _ => return RedactedName::number("command ", command.into()),
    };
    RedactedName::fixed(name)
}

/// The length of the packet that begins with these bytes.
fn extent(side: EventStreamDirection, head: &[u8]) -> Extent {
    let Some(length) = RecordFieldReader(head).little(3) else {
        return Extent::More;
    };
    // The first byte of a client's packet belongs to the head, since it may be a command.
    let whole = HEAD + usize::from(side == EventStreamDirection::There && length > 0);
    let keep = if side == EventStreamDirection::There {
        KEEP
    } else {
        HEAD + LONGEST_NAME
    };
    if head.len() < whole {
        Extent::More
    } else {
        Extent::Record {
            length: HEAD as u64 + length,
            keep,
        }
    }
}

#[cfg(test)]
mod tests;
