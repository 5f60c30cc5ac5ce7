//! One end of a TELNET connection (RFC 854): separates data from commands, and negotiates options by RFC 1143's method, which cannot loop.
//!
//! ```text
//! ask(option, whose, on)  asks for an option to be on or off; the other end may refuse
//! send(data)              sends data of the terminal or the program
//! receive(bytes, data)    reads bytes that came: their data, and the commands among it
//! output()                takes the bytes to be sent
//! resize(columns, rows)   sets the size of the user's terminal
//! resized()               takes the size of the other end's terminal, if it has changed
//! ```
//! It knows no terminal and no program. The known options are binary transmission (RFC 856), echo (RFC 857), suppress go-ahead (RFC 858)
//! and the window size (RFC 1073); all others are refused, and their subnegotiations are skipped.

use alloc::vec::Vec;

// Bytes of the protocol (RFC 854): IAC begins a command, SB and SE enclose a subnegotiation.
const IAC: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
const SB: u8 = 250;
const SE: u8 = 240;

/// The role of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TelnetRole {
    /// The end of the person at a terminal.
    User,
    /// The end of the program.
    Server,
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TelnetOption {
    /// Eight-bit data without conversion of line ends (RFC 856).
    Binary,
    /// The sender of the option sends back the characters that it receives (RFC 857).
    Echo,
    /// No go-aheads are sent: either end may send at any time (RFC 858).
    SuppressGoAhead,
    /// The user's end reports the size of its terminal (RFC 1073).
    WindowSize,
}

impl TelnetOption {
    /// All known options.
    pub const ALL: [Self; 4] = [
        Self::Binary,
        Self::Echo,
        Self::SuppressGoAhead,
        Self::WindowSize,
    ];

    const fn code(self) -> u8 {
        match self {
            Self::Binary => 0,
            Self::Echo => 1,
            Self::SuppressGoAhead => 3,
            Self::WindowSize => 31,
        }
    }

    const fn place(self) -> usize {
        self as usize
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|option| option.code() == code)
    }
}

/// Whose option it is: this end's or the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This end's: it says WILL and WONT, the other DO and DONT.
    Own,
    /// The other end's: it says WILL and WONT, this end DO and DONT.
    Other,
}

/// A command that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TelnetCommand {
    /// Interrupt the program.
    Interrupt,
    /// Discard the output of the program up to its next prompt.
    AbortOutput,
    /// Is anybody there?
    AreYouThere,
    /// Erase the last character.
    EraseCharacter,
    /// Erase the last line.
    EraseLine,
    /// The break key.
    Break,
    /// Go-ahead: it is this end's turn to send.
    GoAhead,
    /// The data mark of a Synch: data before it may be dropped.
    Mark,
}

impl TelnetCommand {
    /// All commands with their codes.
    const ALL: [(u8, Self); 8] = [
        (249, Self::GoAhead),
        (248, Self::EraseLine),
        (247, Self::EraseCharacter),
        (246, Self::AreYouThere),
        (245, Self::AbortOutput),
        (244, Self::Interrupt),
        (243, Self::Break),
        (242, Self::Mark),
    ];
}

/// The state of an option (RFC 1143, section 7): on, off, or asked for; then also whether the opposite is to be asked after the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TelnetOptionState {
    #[default]
    Off,
    On,
    WantOff {
        then_on: bool,
    },
    WantOn {
        then_off: bool,
    },
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TelnetReadState {
    #[default]
    Data,
    /// A carriage return has come, and its second byte is next.
    Return,
    /// IAC has come, and the command is next.
    Command,
    /// WILL, WONT, DO or DONT: its option is next.
    Option(u8),
    /// Inside a subnegotiation; true if the last byte was IAC.
    Within(bool),
}

/// Bytes of a subnegotiation that are kept: the option (1), columns (2), rows (2), and one more that shows that it is too long.
const LOOKED_AT: usize = 6;

/// One end of a TELNET connection.
#[derive(Clone, Debug)]
pub struct Telnet {
    role: TelnetRole,
    /// The states of this end's options and of the other end's, in the order of [`TelnetOption::ALL`].
    own: [TelnetOptionState; 4],
    other: [TelnetOptionState; 4],
    reading: TelnetReadState,
    /// The beginning of the present subnegotiation.
    within: Vec<u8>,
    /// Columns and rows of the terminal here, if there is one.
    size: Option<(u16, u16)>,
    /// Columns and rows of the other end's terminal, if it reported them since [`Telnet::resized`] was called last.
    resized: Option<(u16, u16)>,
    /// The last byte in `out` is a carriage return whose second byte (line feed or 0) is not known yet.
    returns: bool,
    /// Bytes to be sent.
    out: Vec<u8>,
}

impl Telnet {
    /// An end at the beginning of a connection: all options are off.
    #[must_use]
    pub const fn new(role: TelnetRole) -> Self {
        Self {
            role,
            own: [TelnetOptionState::Off; 4],
            other: [TelnetOptionState::Off; 4],
            reading: TelnetReadState::Data,
            within: Vec::new(),
            size: None,
            resized: None,
            returns: false,
            out: Vec::new(),
        }
    }

    /// Whether an option is in force.
    #[must_use]
    pub fn is_on(&self, option: TelnetOption, whose: Whose) -> bool {
        let state = self.state(option, whose);
        // An option that is being turned off stays on until the other end confirms.
        matches!(
            state,
            TelnetOptionState::On | TelnetOptionState::WantOff { .. }
        )
    }

    /// Whether a request about an option is still unanswered.
    #[must_use]
    pub fn is_asked(&self, option: TelnetOption, whose: Whose) -> bool {
        matches!(
            self.state(option, whose),
            TelnetOptionState::WantOn { .. } | TelnetOptionState::WantOff { .. }
        )
    }

    /// Whether characters are sent one by one and echoed by the other end; otherwise lines are sent.
    #[must_use]
    pub fn is_by_character(&self) -> bool {
        self.is_on(TelnetOption::Echo, Whose::Other)
            && self.is_on(TelnetOption::SuppressGoAhead, Whose::Other)
    }

    /// Sets the size of the terminal here, and reports it to the other end if that wants to know.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.size = Some((columns, rows));
        if self.is_on(TelnetOption::WindowSize, Whose::Own) {
            self.say_size();
        }
    }

    /// Takes the columns and rows of the other end's terminal, if it has reported them since the last call.
    pub const fn resized(&mut self) -> Option<(u16, u16)> {
        self.resized.take()
    }

    /// Sends the size of the terminal; an IAC in it is doubled.
    fn say_size(&mut self) {
        let Some((columns, rows)) = self.size else {
            return;
        };
        self.out.extend([IAC, SB, TelnetOption::WindowSize.code()]);
        for byte in [columns.to_be_bytes(), rows.to_be_bytes()]
            .into_iter()
            .flatten()
        {
            self.out
                .extend(core::iter::repeat_n(byte, 1 + usize::from(byte == IAC)));
        }
        self.out.extend([IAC, SE]);
    }

    /// Handles a complete subnegotiation.
    fn negotiated(&mut self) {
        if let [31, a, b, c, d] = self.within[..]
            && self.is_on(TelnetOption::WindowSize, Whose::Other)
        {
            self.resized = Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
        }
        self.within.clear();
    }

    /// Keeps a byte of a subnegotiation.
    fn within(&mut self, byte: u8) -> TelnetReadState {
        if self.within.len() < LOOKED_AT {
            self.within.push(byte);
        }
        TelnetReadState::Within(false)
    }

    /// Asks for an option to be on or off; if a request is unanswered, the new wish is asked after the answer.
    pub fn ask(&mut self, option: TelnetOption, whose: Whose, on: bool) {
        let state = self.state(option, whose);
        let next = match (state, on) {
            (TelnetOptionState::Off, true) => {
                self.say(option, whose, true);
                TelnetOptionState::WantOn { then_off: false }
            }
            (TelnetOptionState::On, false) => {
                self.say(option, whose, false);
                TelnetOptionState::WantOff { then_on: false }
            }
            (TelnetOptionState::WantOn { .. }, _) => TelnetOptionState::WantOn { then_off: !on },
            (TelnetOptionState::WantOff { .. }, _) => TelnetOptionState::WantOff { then_on: on },
            (same, _) => same,
        };
        self.set(option, whose, next);
    }

    /// Puts data into the output, with IACs doubled and, unless binary, line ends converted.
    pub fn send(&mut self, data: &[u8]) {
        let binary = self.is_on(TelnetOption::Binary, Whose::Own);
        for byte in data {
            if core::mem::take(&mut self.returns) && *byte != b'\n' {
                self.out.push(0);
            }
            match byte {
                255 => self.out.extend([IAC, IAC]),
                b'\r' if !binary => {
                    self.out.push(b'\r');
                    self.returns = true;
                }
                // The user's line feed ends a line; a program's line feed only moves down and stays as it is.
                b'\n'
                    if !binary
                        && self.role == TelnetRole::User
                        && self.out.last() != Some(&b'\r') =>
                {
                    self.out.extend(*b"\r\n");
                }
                other => self.out.push(*other),
            }
        }
    }

    /// Puts a command into the output.
    pub fn command(&mut self, command: TelnetCommand) {
        if let Some((code, _)) = TelnetCommand::ALL
            .into_iter()
            .find(|(_, known)| *known == command)
        {
            self.out.extend([IAC, code]);
        }
    }

    /// Takes the bytes to be sent. A carriage return at the end is completed as a single one (with a 0).
    pub fn output(&mut self) -> Vec<u8> {
        if core::mem::take(&mut self.returns) {
            self.out.push(0);
        }
        core::mem::take(&mut self.out)
    }

    /// Whether there is something to be sent.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.returns || !self.out.is_empty()
    }

    /// Reads bytes that came: appends their data to `data`, and returns the commands, each with the length of `data` where it stood.
    pub fn receive(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Vec<(usize, TelnetCommand)> {
        let mut commands = Vec::new();
        for byte in bytes {
            self.reading = match (self.reading, *byte) {
                (TelnetReadState::Data, IAC) => TelnetReadState::Command,
                (TelnetReadState::Data, b'\r')
                    if !self.is_on(TelnetOption::Binary, Whose::Other) =>
                {
                    TelnetReadState::Return
                }
                (TelnetReadState::Data, other) => {
                    data.push(other);
                    TelnetReadState::Data
                }
                (TelnetReadState::Return, next) => self.after_return(next, data),
                (TelnetReadState::Command, IAC) => {
                    data.push(IAC);
                    TelnetReadState::Data
                }
                (TelnetReadState::Command, SB) => {
                    self.within.clear();
                    TelnetReadState::Within(false)
                }
                (TelnetReadState::Command, verb @ WILL..=DONT) => TelnetReadState::Option(verb),
                (TelnetReadState::Command, code) => {
                    let known = TelnetCommand::ALL
                        .into_iter()
                        .find(|(known, _)| *known == code);
                    commands.extend(known.map(|(_, known)| (data.len(), known)));
                    TelnetReadState::Data
                }
                (TelnetReadState::Option(verb), code) => {
                    self.handle_option(verb, code);
                    TelnetReadState::Data
                }
                (TelnetReadState::Within(true), SE) => {
                    self.negotiated();
                    TelnetReadState::Data
                }
                (TelnetReadState::Within(false), IAC) => TelnetReadState::Within(true),
                (TelnetReadState::Within(_), other) => self.within(other),
            };
        }
        commands
    }

    /// The byte after a carriage return: together a line end, or a single return.
    fn after_return(&mut self, next: u8, data: &mut Vec<u8>) -> TelnetReadState {
        match (next, self.role) {
            // RFC 1123, 3.3.1: for a server, CR LF is the key that ends a line, as CR 0 is.
            (b'\n', TelnetRole::Server) => data.push(b'\r'),
            (b'\n', TelnetRole::User) => data.extend(*b"\r\n"),
            (0, _) => data.push(b'\r'),
            (IAC, _) => {
                data.push(b'\r');
                return TelnetReadState::Command;
            }
            (b'\r', _) => {
                data.push(b'\r');
                return TelnetReadState::Return;
            }
            (other, _) => data.extend([b'\r', other]),
        }
        TelnetReadState::Data
    }

    /// Handles WILL, WONT, DO or DONT from the other end.
    fn handle_option(&mut self, verb: u8, code: u8) {
        let whose = if matches!(verb, WILL | WONT) {
            Whose::Other
        } else {
            Whose::Own
        };
        let on = matches!(verb, WILL | DO);
        let Some(option) = TelnetOption::from_code(code) else {
            if on {
                self.out
                    .extend([IAC, if whose == Whose::Other { DONT } else { WONT }, code]);
            }
            return;
        };
        let next = match (self.state(option, whose), on) {
            (TelnetOptionState::Off, true) => {
                let agrees = self.agrees(option, whose);
                self.say(option, whose, agrees);
                if agrees {
                    TelnetOptionState::On
                } else {
                    TelnetOptionState::Off
                }
            }
            (TelnetOptionState::On, false) => {
                self.say(option, whose, false);
                TelnetOptionState::Off
            }
            // The answer to a request; if the opposite is wanted in the meantime, it is asked for.
            (TelnetOptionState::WantOn { then_off: true }, true) => {
                self.say(option, whose, false);
                TelnetOptionState::WantOff { then_on: false }
            }
            (TelnetOptionState::WantOn { .. }, true) => TelnetOptionState::On,
            (TelnetOptionState::WantOn { .. }, false) => TelnetOptionState::Off,
            (TelnetOptionState::WantOff { then_on: true }, false) => {
                self.say(option, whose, true);
                TelnetOptionState::WantOn { then_off: false }
            }
            // WILL in answer to DONT is an error of the other end; the option is on if it is wanted again.
            (TelnetOptionState::WantOff { then_on }, true) if then_on => TelnetOptionState::On,
            (TelnetOptionState::WantOff { .. }, _) => TelnetOptionState::Off,
            (same, _) => same,
        };
        self.set(option, whose, next);
        if option == TelnetOption::WindowSize
            && whose == Whose::Own
            && next == TelnetOptionState::On
        {
            self.say_size();
        }
    }

    /// Whether this end agrees to an option: only servers echo, and only an end with a terminal reports its size.
    const fn agrees(&self, option: TelnetOption, whose: Whose) -> bool {
        match (option, whose, self.role) {
            (TelnetOption::Echo, Whose::Own, role) => matches!(role, TelnetRole::Server),
            (TelnetOption::Echo, Whose::Other, role) => matches!(role, TelnetRole::User),
            (TelnetOption::WindowSize, Whose::Own, _) => self.size.is_some(),
            (TelnetOption::WindowSize, Whose::Other, role) => matches!(role, TelnetRole::Server),
            _ => true,
        }
    }

    fn say(&mut self, option: TelnetOption, whose: Whose, on: bool) {
        let verb = match (whose, on) {
            (Whose::Own, true) => WILL,
            (Whose::Own, false) => WONT,
            (Whose::Other, true) => DO,
            (Whose::Other, false) => DONT,
        };
        self.out.extend([IAC, verb, option.code()]);
    }

    const fn state(&self, option: TelnetOption, whose: Whose) -> TelnetOptionState {
        match whose {
            Whose::Own => self.own[option.place()],
            Whose::Other => self.other[option.place()],
        }
    }

    const fn set(&mut self, option: TelnetOption, whose: Whose, state: TelnetOptionState) {
        match whose {
            Whose::Own => self.own[option.place()] = state,
            Whose::Other => self.other[option.place()] = state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lets both ends speak until neither has anything to say; how often they spoke.
    fn settle(user: &mut Telnet, server: &mut Telnet) -> usize {
        let (mut turns, mut data) = (0, Vec::new());
        loop {
            let (there, back) = (user.output(), server.output());
            if there.is_empty() && back.is_empty() {
                assert!(data.is_empty());
                return turns;
            }
            turns += 1;
            server.receive(&there, &mut data);
            user.receive(&back, &mut data);
        }
    }

    #[test]
    fn a_program_that_echoes_is_agreed_with_in_a_turn_each() {
        let (mut user, mut server) = (
            Telnet::new(TelnetRole::User),
            Telnet::new(TelnetRole::Server),
        );
        server.ask(TelnetOption::Echo, Whose::Own, true);
        server.ask(TelnetOption::SuppressGoAhead, Whose::Own, true);
        assert_eq!(server.clone().output(), [255, 251, 1, 255, 251, 3]);
        assert_eq!(settle(&mut user, &mut server), 2);
        assert!(user.is_by_character() && server.is_on(TelnetOption::Echo, Whose::Own));
        server.ask(TelnetOption::Echo, Whose::Own, false);
        settle(&mut user, &mut server);
        assert!(!user.is_by_character());
    }

    /// RFC 1073.
    #[test]
    fn the_size_of_a_persons_terminal_is_known_at_the_other_end() {
        let (mut user, mut server) = (
            Telnet::new(TelnetRole::User),
            Telnet::new(TelnetRole::Server),
        );
        server.ask(TelnetOption::WindowSize, Whose::Other, true);
        user.resize(255, 24);
        let mut data = Vec::new();
        user.receive(&server.output(), &mut data);
        let said = user.output();
        assert_eq!(
            said,
            [255, 251, 31, 255, 250, 31, 0, 255, 255, 0, 24, 255, 240]
        );
        said.chunks(2)
            .for_each(|piece| drop(server.receive(piece, &mut data)));
        assert_eq!(
            (server.resized(), server.resized()),
            (Some((255, 24)), None)
        );
        user.resize(80, 25);
        server.receive(&user.output(), &mut data);
        assert_eq!(server.resized(), Some((80, 25)));
        // Nobody asked this one; and who has no terminal says so.
        let mut stranger = Telnet::new(TelnetRole::Server);
        stranger.receive(&said[3..], &mut data);
        assert_eq!((stranger.resized(), data.len()), (None, 0));
        let mut display = Telnet::new(TelnetRole::User);
        display.receive(&[255, 253, 31], &mut data);
        assert_eq!(display.output(), [255, 252, 31]);
    }

    #[test]
    fn what_is_not_known_is_refused_once() {
        let mut user = Telnet::new(TelnetRole::User);
        let mut data = Vec::new();
        // WILL and DO of 24 (terminal type), then WONT and DONT, which say what holds.
        user.receive(
            &[
                255, 251, 24, 255, 253, 24, 255, 252, 24, 255, 254, 24, 255, 253, 1,
            ],
            &mut data,
        );
        assert_eq!(user.output(), [255, 254, 24, 255, 252, 24, 255, 252, 1]);
    }

    #[test]
    fn ends_of_lines_are_a_networks_terminal() {
        let mut user = Telnet::new(TelnetRole::User);
        user.send(b"a\nb\r\nc\rd");
        user.send(b"\r");
        assert_eq!(user.output(), b"a\r\nb\r\nc\r\0d\r\0");
        let mut program = Telnet::new(TelnetRole::Server);
        program.send(b"a\nb\r\nc\rd");
        assert_eq!(program.output(), b"a\nb\r\nc\r\0d");
        let mut server = Telnet::new(TelnetRole::Server);
        let mut data = Vec::new();
        let commands = server.receive(
            b"a\r\nb\r\0c\xff\xf4\xff\xff\xff\xfa\x18\x01\xff\xf0d",
            &mut data,
        );
        assert_eq!(
            (data, commands),
            (
                b"a\rb\rc\xffd".to_vec(),
                alloc::vec![(5, TelnetCommand::Interrupt)]
            )
        );
    }

    proptest! {
        #[test]
        fn binary_data_arrives_as_it_is_in_any_pieces(data: Vec<u8>, size in 1..9_usize) {
            let (mut user, mut server) = (Telnet::new(TelnetRole::User), Telnet::new(TelnetRole::Server));
            user.ask(TelnetOption::Binary, Whose::Own, true);
            settle(&mut user, &mut server);
            data.chunks(size).for_each(|piece| user.send(piece));
            let mut came = Vec::new();
            for piece in user.output().chunks(size) {
                server.receive(piece, &mut came);
            }
            prop_assert_eq!(came, data);
        }

        #[test]
        fn no_wishes_make_two_ends_talk_for_ever(wishes in prop::collection::vec((any::<bool>(), 0..4_usize, any::<bool>(), any::<bool>()), 0..40)) {
            let (mut user, mut server) = (Telnet::new(TelnetRole::User), Telnet::new(TelnetRole::Server));
            for (is_user, option, own, on) in &wishes {
                let end = if *is_user { &mut user } else { &mut server };
                end.ask(TelnetOption::ALL[*option], if *own { Whose::Own } else { Whose::Other }, *on);
            }
            prop_assert!(settle(&mut user, &mut server) <= 8);
            for option in TelnetOption::ALL {
                prop_assert_eq!(user.is_on(option, Whose::Own), server.is_on(option, Whose::Other));
                prop_assert_eq!(user.is_on(option, Whose::Other), server.is_on(option, Whose::Own));
            }
        }

        #[test]
        fn a_stranger_gets_no_more_than_it_sends(bytes: Vec<u8>) {
            let mut server = Telnet::new(TelnetRole::Server);
            let mut data = Vec::new();
            server.receive(&bytes, &mut data);
            prop_assert!(server.output().len() <= bytes.len() && data.len() <= bytes.len());
        }
    }
}
