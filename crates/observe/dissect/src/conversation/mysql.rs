//! MySQL and MariaDB, version 10 of their protocol: packets of a length and a number. A command has a packet of number 0; where its
//! answer ends is told by `answer`. Where that cannot be known, as of commands we do not know and of packets of which nothing was
//! seen, the answer is whole when the next command begins. What is said in TLS goes to [`tls`](super::tls), what is compressed by
//! turns. After lengths that were not seen it goes on with a command at the beginning of a segment, unless the client pipelined
//! before: then nothing more is known. Rows and parameters are not looked at.

mod answer;

use super::records::{Extent, Fields, Input, Records, Skipped, Taken};
use super::texts::Texts;
use super::tls::Tls;
use super::turns::Turns;
use super::waiting::{Queue, Waits, of_answer};
use super::{Dissector, Found, Kind, LONGEST_NAME, Name, Role, renumber};
use crate::conversation::opening::{Opening, Verdict};
use crate::left_out::Bound;
use answer::{Abilities, Expect, Means, number};
use stackline_events::unit::Direction;
use stackline_redact::sql::{self, Backslash, Dialect, answer as answers};

/// A length and a number.
const HEAD: usize = 4;
/// Bytes of a packet that are held, at most.
const KEEP: usize = HEAD + 4 * LONGEST_NAME;
/// Bytes of a packet's body, at most; one of so many goes on in the next packet.
const LONGEST: u64 = 0xff_ffff;
/// Bytes of the packet that asks for TLS.
const TLS_REQUEST: u64 = HEAD as u64 + 32;
/// What both sides can do, by the bit.
const LONG_PASSWORD: u64 = 1;
const WITH_DATABASE: u64 = 1 << 3;
const COMPRESSED: u64 = 1 << 5 | 1 << 26;
const PROTOCOL_41: u64 = 1 << 9;
const TLS: u64 = 1 << 11;
const LONG_SECRET: u64 = 1 << 21;
const NO_EOF: u64 = 1 << 24;
const MAY_LACK_COLUMNS: u64 = 1 << 25;
const ATTRIBUTES: u64 = 1 << 27;
/// The same of MariaDB, above those.
const MAY_KNOW_COLUMNS: u64 = 1 << (32 + 4);
/// Commands.
const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const LONG_DATA: u8 = 0x18;
const CLOSE: u8 = 0x19;
const BULK: u8 = 0xfa;
/// A statement's number that means the one prepared last.
const LAST_PREPARED: &[u8] = b"4294967295";

/// Whether a connection speaks it: the server greets, with its version.
pub(super) fn recognise(opening: &Opening<'_>) -> Verdict {
    if !opening.there.is_empty() {
        return Verdict::No;
    }
    match *opening.back {
        [] => Verdict::Perhaps,
        [_] | [_, 0..=1] | [_, 0..=1, 0] | [_, 0..=1, 0, 0] | [_, 0..=1, 0, 0, 10] => {
            Verdict::Perhaps
        }
        [low, high @ 0..=1, 0, 0, 10, b'0'..=b'9', ..] if low > 30 || high > 0 => Verdict::Yes,
        _ => Verdict::No,
    }
}

/// One connection.
#[derive(Debug, Default)]
pub struct Mysql {
    sides: [Side; 2],
    phase: Phase,
    /// What the server can do, then what both can.
    bits: u64,
    abilities: Abilities,
    /// Commands that are not answered yet, in their order.
    waiting: Queue<Waiting>,
    next: u64,
    /// The command that is not whole.
    command: Option<Command>,
    texts: Texts,
    /// What a back-slash in a string is, as the server said it last; not known once something was sent that may change it.
    backslash: Backslash,
    /// A command came before the one before it was answered.
    pipelined: bool,
    /// The client sends a file.
    file: bool,
    /// Behind the last byte of the server.
    server_end: u64,
    /// Nothing more will be known.
    gone: bool,
    /// What is said in TLS or compressed, and how many exchanges were before it.
    inner: Option<Box<dyn Dissector>>,
    before_inner: u64,
}

#[derive(Debug, Default)]
struct Side {
    records: Records,
    /// The packet before was of the greatest length.
    continues: bool,
    /// Nothing is known until a command begins.
    lost: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Before the server's greeting.
    #[default]
    Greeting,
    /// Before the client's answer to it.
    Login,
    Commands,
}

/// A command that is not whole.
#[derive(Clone, Copy, Debug)]
struct Command {
    exchange: u64,
    named: bool,
}

/// A command that is not answered yet.
#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    exchange: u64,
    kind: Kind,
    expect: Expect,
    answered: bool,
    /// The text of a statement that is prepared.
    text: Option<Name>,
}

impl Waits for Waiting {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }

    fn shrink(&mut self) -> Option<Bound> {
        self.text.take().map(|_| Bound::Statements)
    }
}

impl Dissector for Mysql {
    fn bytes(&mut self, side: Direction, at: u64, bytes: &[u8], found: &mut Vec<Found>) {
        self.find_again(side, bytes);
        let mut input = Input { at, bytes };
        loop {
            if self.inner.is_some() {
                return self.within(
                    |inner, found| inner.bytes(side, input.at, input.bytes, found),
                    found,
                );
            }
            let own = &mut self.sides[side as usize];
            if own.lost {
                return;
            }
            match own.records.next(&mut input, |head| extent(side, head)) {
                None => return,
                Some(Taken::Head) => self.headed(side, found),
                Some(Taken::Whole) => self.packet(side, found),
                Some(Taken::Wrong) => self.lose("it is not MySQL", found),
            }
        }
    }

    fn unseen(&mut self, side: Direction, at: u64, count: u64, found: &mut Vec<Found>) {
        if self.inner.is_some() {
            return self.within(|inner, found| inner.unseen(side, at, count, found), found);
        }
        let own = &mut self.sides[side as usize];
        if own.lost {
            return;
        }
        let skipped = own.records.unseen(count);
        if matches!(skipped, Skipped::Whole | Skipped::Beyond) {
            self.packet(side, found);
        }
        if matches!(skipped, Skipped::Beyond | Skipped::Lost) {
            self.lose("bytes of it were not captured", found);
        }
    }

    fn end(&mut self, side: Direction, at: u64, found: &mut Vec<Found>) {
        if self.inner.is_some() {
            return self.within(|inner, found| inner.end(side, at, found), found);
        }
        let own = &self.sides[side as usize];
        if !own.lost && !own.records.is_between() {
            self.lose("the connection ended within it", found);
        }
        if side == Direction::Back {
            self.finish_unknown(found);
        }
    }

    fn protocol(&self) -> &'static str {
        match &self.inner {
            None => "MySQL",
            Some(_) if self.bits & TLS != 0 => "MySQL in TLS, by turns",
            Some(_) => "MySQL, compressed, by turns",
        }
    }

    fn is_exact(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| inner.is_exact())
    }
}

impl Mysql {
    /// A command at the beginning of a segment, of a client that waits for each answer, finds the server idle.
    fn find_again(&mut self, side: Direction, bytes: &[u8]) {
        let lost = self.sides[0].lost && side == Direction::There && !self.gone;
        if lost
            && matches!(*bytes, [1..=255, _, 0, 0, command, ..] if Expect::of(command) != Expect::Unknown)
        {
            self.sides = Default::default();
        }
    }

    /// Nothing is known until a command begins, and nothing of what waits for an answer.
    fn lose(&mut self, why: &'static str, found: &mut Vec<Found>) {
        let command = self.command.take().map(|command| command.exchange);
        let waiting = self.waiting.clear();
        let command = command.filter(|exchange| !waiting.contains(exchange));
        found.extend(
            waiting
                .into_iter()
                .chain(command)
                .map(|exchange| Found::Void { exchange, why }),
        );
        self.sides = Default::default();
        self.sides.iter_mut().for_each(|side| side.lost = true);
        self.gone |= self.pipelined || self.phase != Phase::Commands;
        self.backslash = Backslash::Unknown;
        self.file = false;
    }

    /// The head of a packet is whole.
    fn headed(&mut self, side: Direction, found: &mut Vec<Found>) {
        let own = &self.sides[side as usize];
        let (head, at) = (own.records.held(), own.records.at());
        match (side, self.phase) {
            (_, Phase::Greeting) | (Direction::There, Phase::Login) => {}
            (Direction::There, Phase::Commands) => {
                if let &[_, _, _, 0, command] = head
                    && !own.continues
                    && !self.file
                {
                    self.command(command, at, found);
                }
            }
            (Direction::Back, _) => self.answers(at, found),
        }
    }

    /// A command begins.
    fn command(&mut self, command: u8, at: u64, found: &mut Vec<Found>) {
        self.finish_unknown(found);
        let kind = match command {
            QUIT | LONG_DATA | CLOSE => Kind::OneWay,
            0x11 => Kind::Handshake,
            _ => Kind::Call,
        };
        let exchange = self.next;
        self.next += 1;
        found.push(Found::Begins {
            exchange,
            role: Role::Request,
            kind,
            side: Direction::There,
            at,
        });
        self.command = Some(Command {
            exchange,
            named: false,
        });
        if kind != Kind::OneWay {
            self.wait(exchange, kind, Expect::of(command), found);
        }
    }

    fn wait(&mut self, exchange: u64, kind: Kind, expect: Expect, found: &mut Vec<Found>) {
        self.pipelined |= !self.waiting.is_empty();
        // One in the middle was the last one when the next came, or is the first.
        let mut ends = self.waiting.front().into_iter().chain(self.waiting.back());
        let unknown = ends.any(|waiting| waiting.expect == Expect::Unknown);
        self.waiting.push_back(Waiting {
            exchange,
            kind,
            expect,
            answered: false,
            text: None,
        });
        if unknown {
            self.lose("where its answer ends is not known", found);
        }
    }

    /// An answer of which the end cannot be known is whole.
    fn finish_unknown(&mut self, found: &mut Vec<Found>) {
        if self
            .waiting
            .front()
            .is_some_and(|waiting| waiting.answered && waiting.expect == Expect::Unknown)
        {
            self.whole(Name::fixed("end not known"), self.server_end, found);
        }
    }

    /// What the server says answers what waits longest.
    fn answers(&mut self, at: u64, found: &mut Vec<Found>) {
        let Some(waiting) = self.waiting.front_mut() else {
            return;
        };
        let (exchange, kind) = (waiting.exchange, waiting.kind);
        if !std::mem::replace(&mut waiting.answered, true) {
            of_answer(
                Found::Begins {
                    exchange,
                    role: Role::Response,
                    kind,
                    side: Direction::Back,
                    at,
                },
                found,
            );
        }
    }

    /// A packet is whole.
    fn packet(&mut self, side: Direction, found: &mut Vec<Found>) {
        let own = &mut self.sides[side as usize];
        let (at, end) = (own.records.at(), own.records.end());
        let length = end - at - HEAD as u64;
        let is_first = !std::mem::replace(&mut own.continues, length == LONGEST);
        let held = if self.phase == Phase::Commands {
            Vec::new()
        } else {
            own.records.held().to_vec()
        };
        match (side, self.phase) {
            (Direction::Back, Phase::Greeting) => self.greeting(&held, at, end, found),
            (Direction::There, Phase::Greeting) => self.lose("it is not MySQL", found),
            (Direction::There, Phase::Login) => self.login(&held, at, end, found),
            (Direction::There, Phase::Commands) => self.of_client(length, end, found),
            (Direction::Back, _) => {
                self.server_end = end;
                if is_first {
                    self.of_server(length, at, end, found);
                }
            }
        }
    }

    fn greeting(&mut self, held: &[u8], at: u64, end: u64, found: &mut Vec<Found>) {
        let mut fields = Fields(&held[HEAD..]);
        let version = match fields.number(1) {
            Some(10) => fields.text(),
            Some(0xff) => {
                return self.one_way(
                    Direction::Back,
                    answer::error(&held[HEAD..]),
                    at,
                    end,
                    found,
                );
            }
            _ => return self.lose("it is not MySQL", found),
        };
        self.one_way(Direction::Back, answers::greeting(version), at, end, found);
        self.bits = greeting_bits(fields).unwrap_or(u64::MAX);
        self.phase = Phase::Login;
    }

    /// The client's answer to the greeting.
    fn login(&mut self, held: &[u8], at: u64, end: u64, found: &mut Vec<Found>) {
        let mut fields = Fields(&held[HEAD..]);
        let Some(bits) = login_bits(&mut fields) else {
            return self.lose("its login was not captured", found);
        };
        if end - at == TLS_REQUEST && bits & TLS != 0 {
            self.bits &= bits;
            self.one_way(Direction::There, Name::fixed("SSLRequest"), at, end, found);
            return self.goes_on_in(Box::<Tls>::default());
        }
        self.bits &= bits & !TLS;
        self.abilities = Abilities {
            no_eof: self.bits & NO_EOF != 0,
            may_lack_columns: self.bits & MAY_LACK_COLUMNS != 0,
            may_know_columns: self.bits & MAY_KNOW_COLUMNS != 0,
            attributes: self.bits & ATTRIBUTES != 0,
        };
        let exchange = self.next;
        self.next += 1;
        self.phase = Phase::Commands;
        let (role, side, kind) = (Role::Request, Direction::There, Kind::Handshake);
        found.push(Found::Begins {
            exchange,
            role,
            kind,
            side,
            at,
        });
        found.push(Found::Named {
            exchange,
            role,
            name: login_name(fields, bits),
        });
        found.push(Found::Ends {
            exchange,
            role,
            side,
            at: end,
        });
        self.wait(exchange, kind, Expect::Login, found);
    }

    /// A packet of a command, or what belongs to one.
    fn of_client(&mut self, length: u64, end: u64, found: &mut Vec<Found>) {
        self.file &= length > 0;
        let Some(command) = self.command else { return };
        if !command.named {
            let name = self.name_command(found);
            self.command = Some(Command {
                named: true,
                ..command
            });
            found.push(Found::Named {
                exchange: command.exchange,
                role: Role::Request,
                name,
            });
        }
        if length < LONGEST {
            let (role, side) = (Role::Request, Direction::There);
            found.push(Found::Ends {
                exchange: command.exchange,
                role,
                side,
                at: end,
            });
            self.command = None;
            if !self.waiting.settle(command.exchange, found) {
                self.sides[1].lost = true;
            }
        }
    }

    fn name_command(&mut self, found: &mut Vec<Found>) -> Name {
        let records = &self.sides[0].records;
        let (held, is_whole) = (
            records.held(),
            records.is_held_whole() && !self.sides[0].continues,
        );
        let mut fields = Fields(held.get(HEAD + 1..).unwrap_or_default());
        let dialect = Dialect::MySql(self.backslash);
        if !matches!(held.get(HEAD), Some(&(PREPARE | CLOSE | LONG_DATA))) {
            self.backslash = Backslash::Unknown;
        }
        let statement = |fields: &mut Fields<'_>| fields.little(4).unwrap_or(0).to_string();
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
            EXECUTE | BULK => self.texts.of(statement(&mut fields).as_bytes()),
            CLOSE => {
                self.texts.forget(statement(&mut fields).as_bytes());
                Name::fixed("CLOSE")
            }
            0x02 => Name::identifier("USE ", fields.0),
            command => name_of_command(command),
        }
    }

    fn of_server(&mut self, length: u64, at: u64, end: u64, found: &mut Vec<Found>) {
        if self
            .waiting
            .front()
            .is_some_and(|waiting| !waiting.answered)
        {
            // It had begun before that was asked.
            return self.lose("nothing asked for it", found);
        }
        let bytes = self.sides[1].records.held().get(HEAD..).unwrap_or_default();
        let Some(waiting) = self.waiting.front_mut() else {
            return match bytes.first() {
                // The server ends the connection.
                Some(0xff) => self.one_way(Direction::Back, answer::error(bytes), at, end, found),
                _ => self.lose("nothing asked for it", found),
            };
        };
        let (exchange, before) = (waiting.exchange, waiting.expect);
        let means = before.packet(bytes, length, self.abilities);
        // A login is followed by what servers do at its beginning (`init_connect`).
        let says = self.bits & PROTOCOL_41 != 0 && before != Expect::Login;
        let backslash = before
            .backslash(bytes, length, self.abilities)
            .filter(|_| says);
        if before == Expect::Prepared
            && let (Some(text), Some(statement)) = (
                waiting.text.take(),
                Fields(bytes.get(1..5).unwrap_or_default()).little(4),
            )
        {
            self.texts
                .learn(statement.to_string().as_bytes(), &text, found);
        }
        match means {
            Means::More(expect) => waiting.expect = expect,
            Means::Event => of_answer(
                Found::Part {
                    exchange,
                    side: Direction::Back,
                    at: end,
                },
                found,
            ),
            Means::File => (self.file, waiting.expect) = (true, Expect::First),
            Means::Whole(status) => {
                let succeeded = status.kept() == "OK";
                self.whole(status, end, found);
                if let Some(backslash) = backslash.filter(|_| self.waiting.is_empty()) {
                    self.backslash = backslash;
                }
                if before == Expect::Login && succeeded && self.bits & COMPRESSED != 0 {
                    self.goes_on_in(Box::new(Turns::new("by turns", Direction::There)));
                }
            }
        }
    }

    /// The answer to what waits longest is whole.
    fn whole(&mut self, name: Name, at: u64, found: &mut Vec<Found>) {
        let Some(Waiting { exchange, .. }) = self.waiting.pop_front() else {
            return;
        };
        let (role, side) = (Role::Response, Direction::Back);
        of_answer(
            Found::Named {
                exchange,
                role,
                name,
            },
            found,
        );
        of_answer(
            Found::Ends {
                exchange,
                role,
                side,
                at,
            },
            found,
        );
        self.file = false;
    }

    /// A packet that answers nothing and is not answered.
    fn one_way(&mut self, side: Direction, name: Name, at: u64, end: u64, found: &mut Vec<Found>) {
        let role = if side == Direction::There {
            Role::Request
        } else {
            Role::Response
        };
        let (exchange, kind) = (self.next, Kind::OneWay);
        self.next += 1;
        found.push(Found::Begins {
            exchange,
            role,
            kind,
            side,
            at,
        });
        found.push(Found::Named {
            exchange,
            role,
            name,
        });
        found.push(Found::Ends {
            exchange,
            role,
            side,
            at: end,
        });
    }

    /// The rest is said in another protocol.
    fn goes_on_in(&mut self, inner: Box<dyn Dissector>) {
        (self.inner, self.before_inner) = (Some(inner), self.next);
    }

    /// What is found there, with numbers behind those of the exchanges before it.
    fn within(
        &mut self,
        pass: impl FnOnce(&mut dyn Dissector, &mut Vec<Found>),
        found: &mut Vec<Found>,
    ) {
        let from = found.len();
        if let Some(inner) = &mut self.inner {
            pass(inner.as_mut(), found);
        }
        renumber(&mut found[from..], self.before_inner);
    }
}

/// What a server can do, behind its version.
fn greeting_bits(mut fields: Fields<'_>) -> Option<u64> {
    fields.take(4 + 8 + 1)?;
    let low = fields.little(2)?;
    fields.take(1)?;
    fields.take(2)?;
    let high = fields.little(2).unwrap_or(0);
    fields.take(1 + 6)?;
    let of_mariadb = fields
        .little(4)
        .filter(|_| low & LONG_PASSWORD == 0)
        .unwrap_or(0);
    Some(low | high << 16 | of_mariadb << 32)
}

/// What a client can do; what is left is its name and more.
fn login_bits(fields: &mut Fields<'_>) -> Option<u64> {
    let low = fields.little(2)?;
    if low & PROTOCOL_41 == 0 {
        fields.take(3)?;
        return Some(low);
    }
    let high = fields.little(2)?;
    fields.take(4 + 1 + 19)?;
    let of_mariadb = fields
        .little(4)
        .filter(|_| low & LONG_PASSWORD == 0)
        .unwrap_or(0);
    Some(low | high << 16 | of_mariadb << 32)
}

/// Who logs in, and to which database.
fn login_name(mut fields: Fields<'_>, bits: u64) -> Name {
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

/// The text of a query, which may have attributes before it.
fn query_text(
    mut fields: Fields<'_>,
    abilities: Abilities,
    dialect: Dialect,
    is_whole: bool,
) -> Name {
    if abilities.attributes {
        match (number(&mut fields), number(&mut fields)) {
            (Some(0), Some(_)) => {}
            _ => return Name::fixed("query with attributes"),
        }
    }
    text_of(fields, dialect, is_whole)
}

fn text_of(fields: Fields<'_>, dialect: Dialect, is_whole: bool) -> Name {
    if is_whole {
        sql::statement(dialect, fields.0)
    } else {
        sql::beginning(dialect, fields.0)
    }
}

fn name_of_command(command: u8) -> Name {
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
        0x1c => "FETCH",
        0x1f => "RESET CONNECTION",
        _ => return Name::number("command ", command.into()),
    };
    Name::fixed(name)
}

fn extent(side: Direction, head: &[u8]) -> Extent {
    let Some(length) = Fields(head).little(3) else {
        return Extent::More;
    };
    // The first byte of a client's packet may be a command.
    let whole = HEAD + usize::from(side == Direction::There && length > 0);
    let keep = if side == Direction::There {
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
