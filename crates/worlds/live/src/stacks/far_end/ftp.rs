//! `ftp`: a client of FTP servers (RFC 959, RFC 2428). Each file has a connection of its own beside that of the commands.

use super::byte_stream::FarEndStream;
use super::login::FarEndLogin;
use super::socket::{FarEndListener, FarEndSocket};
use super::tls::TlsTrust;
use super::tls_options::{TLS_OPTIONS, UPGRADE_NEEDS, UPGRADE_OPTIONS};
use super::tls_start::TlsStart;
use super::words::percent_decoded_text;
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::error::{Error, Result};
use stackline_core::catalogue::{
    OptionKind, OptionTable, PacketContent, ServiceMapping, StackFacts, StackTable,
};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use stackline_proto::ftp::{
    FtpReply, FtpReplyLines, FtpReplyMistake, extended_port_command, port_command,
    read_extended_passive, read_passive,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const FTP_TABLE: StackTable = StackTable {
    name: "ftp_file",
    scheme: Some("ftp"),
    // A call is a NOOP.
    least_unit: 0,
    summary: "client of an FTP server (RFC 959): gets and puts the file of the address, as in ftp://127.0.0.1/pub/file",
    options: &FTP_OPTIONS,
    needs: UPGRADE_NEEDS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, with TLS AUTH TLS and its handshake, USER, PASS, with TLS PBSZ 0 and PROT P, TYPE I
RPCCall -> NOOP, recv of the reply
StartBulkGet -> none
AwaitDataIndication -> recv of the file on a connection of its own, with EPSV (or PASV), RETR and connect, whenever one ends
StopBulkGet -> close of that connection, recv of the reply
StartBulkPut -> EPSV (or PASV), STOR, connect
DataRequest -> send of the whole unit on that connection
StopBulkPut -> close of that connection, recv of the reply: the server has it all
DisconnectRequest -> QUIT, close",
    ),
    // The data are on other connections than the one that is known.
    facts: StackFacts {
        packets: PacketContent::Unknown,
        ..TABLE.facts
    },
    ..TABLE
};

pub(crate) static FTP: FarEndStack = FarEndStack {
    table: &FTP_TABLE,
    port: Some(21),
    tls: TlsStart::Within(|_, stack| Ok(stack.flag("tls").then(|| TlsTrust::in_options(stack)))),
    client: |address, stack| Ok(Box::new(FtpClient::new(address, stack, false)?)),
};

pub(crate) static FTPS: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "ftps",
        scheme: None,
        summary: "client of an FTP server over TLS from the first byte on; `ftp_file` with `tls` changes to it once connected (RFC 4217)",
        options: &FTPS_OPTIONS,
        needs: &[],
        ..FTP_TABLE
    },
    port: Some(990),
    tls: TlsStart::Within(|_, stack| Ok(Some(TlsTrust::in_options(stack)))),
    client: |address, stack| Ok(Box::new(FtpClient::new(address, stack, true)?)),
};

const FTP_OPTIONS: [OptionTable; 13] = StackTable::joined(&UPGRADE_OPTIONS, &[MODE]);
const FTPS_OPTIONS: [OptionTable; 12] = StackTable::joined(&TLS_OPTIONS, &[MODE]);

const MODE: OptionTable = OptionTable::new(
    "mode",
    OptionKind::Word(&["passive", "active"]),
    "passive",
    "passive: the client opens the connections for files (EPSV, PASV); active: the server does (EPRT, PORT)",
);

/// The longest line of a reply, bytes.
const LONGEST_LINE: usize = 16 << 10;
/// How long a server may take to say why it refused a file's handshake.
const REASON: Duration = Duration::from_secs(1);

/// How the connection for a file comes about, agreed upon before its command.
enum FtpDataPath {
    Connected(Box<FarEndSocket>),
    Listening(FarEndListener),
}

struct FtpClient {
    path: String,
    login: FarEndLogin,
    is_active: bool,
    /// Whether TLS, if there is any, comes before anything else.
    is_implicit: bool,
    /// Whether the server knows EPSV and EPRT.
    is_extended: bool,
    /// The connection for a file.
    data: Option<FarEndStream>,
    /// The memory of the one before.
    spare: Option<FarEndStream>,
    /// Whether a file has been moved.
    has_files: bool,
    /// Bytes of the present file, and of the last one that was received completely.
    present: u64,
    last_file: u64,
}

impl FtpClient {
    /// `is_implicit` says whether TLS comes before anything else.
    fn new(address: &FarEndAddress, stack: &Stack, is_implicit: bool) -> Result<Self> {
        let path = address.path.strip_prefix('/').unwrap_or(&address.path);
        let path = percent_decoded_text(path)?;
        let login = FarEndLogin::from_environment("FTP_USER", "FTP_PASSWORD");
        for (word, what) in [
            (Some(&path), "the path of the address"),
            (login.user.as_ref(), "FTP_USER"),
            (login.password.as_ref(), "FTP_PASSWORD"),
        ] {
            if word.is_some_and(|word| word.contains(char::is_control)) {
                return Err(Error::input(format!("{what} has control characters")));
            }
        }
        Ok(Self {
            path,
            login,
            is_active: stack.word("mode") == Some("active"),
            is_implicit,
            is_extended: true,
            data: None,
            spare: None,
            has_files: false,
            present: 0,
            last_file: 0,
        })
    }

    /// Receives a reply, which may have several lines.
    fn reply(&self, stream: &mut FarEndStream) -> Result<FtpReply> {
        let mut lines = FtpReplyLines::default();
        loop {
            let end = stream.require_line(LONGEST_LINE, "a reply of a server of FTP")?;
            let line = &stream.unused()[..end];
            let taken = lines.take(line);
            let text = match taken {
                Ok(Some(_)) => self.login.shown(line),
                _ => String::new(),
            };
            stream.take(end + 2);
            match taken {
                Ok(Some(code)) => return Ok(FtpReply { code, text }),
                Ok(None) => {}
                Err(FtpReplyMistake::NoCode) => {
                    return Err(unexpected(stream, "sent a line that is not of FTP"));
                }
                Err(FtpReplyMistake::TooLong) => {
                    return Err(unexpected(stream, "sent a reply that is too long"));
                }
            }
        }
    }

    /// Sends a command and receives the reply to it, whatever it is.
    fn ask(&self, stream: &mut FarEndStream, command: &str) -> Result<FtpReply> {
        if !stream.unused().is_empty() {
            // It may say why it leaves.
            let reply = self.reply(stream)?;
            return Err(refused(stream, "a command", &reply));
        }
        // A server that has left may have said why.
        stream.send(command.as_bytes())?;
        self.reply(stream)
    }

    /// The same, where a refusal is an error. `what` is the command without its secrets.
    fn demand(&self, stream: &mut FarEndStream, command: &str, what: &str) -> Result<FtpReply> {
        let reply = self.ask(stream, command)?;
        if reply.is_refusal() {
            return Err(refused(stream, what, &reply));
        }
        Ok(reply)
    }

    /// Agrees with the server on a connection for a file, in the newer form if it knows that.
    fn agree(&mut self, stream: &mut FarEndStream) -> Result<FtpDataPath> {
        if self.is_active {
            return self.agree_actively(stream);
        }
        if self.is_extended {
            let reply = self.ask(stream, "EPSV\r\n")?;
            if !reply.is_refusal() {
                let port = read_extended_passive(&reply.text);
                let port = port.ok_or_else(|| unexpected(stream, "names no port for files"))?;
                return Ok(FtpDataPath::Connected(Box::new(
                    stream.socket().connect_beside(port)?,
                )));
            }
            if !reply.is_unknown() || stream.server().is_ipv6() {
                return Err(refused(stream, "EPSV", &reply));
            }
            self.is_extended = false;
        }
        let reply = self.demand(stream, "PASV\r\n", "PASV")?;
        let place = read_passive(&reply.text);
        let place = place.ok_or_else(|| unexpected(stream, "names no port for files"))?;
        let (host, port) = (*place.ip(), place.port());
        if IpAddr::V4(host) != stream.server().ip() {
            let server = stream.server();
            let message =
                format!("the FTP server at {server} wants files to go over another host, {host}");
            return Err(Error::measurement(message).hint(
                "behind network address translation the server has to know its outer address (vsftpd: `pasv_address`)",
            ));
        }
        Ok(FtpDataPath::Connected(Box::new(
            stream.socket().connect_beside(port)?,
        )))
    }

    /// Tells the server where it may connect to.
    fn agree_actively(&mut self, stream: &mut FarEndStream) -> Result<FtpDataPath> {
        let listener = stream.socket().listen_beside()?;
        let address = listener.address();
        if self.is_extended {
            let command = extended_port_command(address);
            let reply = self.ask(stream, &format!("{command}\r\n"))?;
            if !reply.is_refusal() {
                return Ok(FtpDataPath::Listening(listener));
            }
            if !reply.is_unknown() || address.is_ipv6() {
                return Err(refused(stream, "EPRT", &reply));
            }
            self.is_extended = false;
        }
        if let SocketAddr::V4(address) = address {
            let command = port_command(address);
            self.demand(stream, &format!("{command}\r\n"), "PORT")?;
        }
        Ok(FtpDataPath::Listening(listener))
    }

    /// Opens the connection for a file, by `RETR` or `STOR`.
    fn open_file(&mut self, stream: &mut FarEndStream, verb: &str) -> Result<()> {
        if self.path.is_empty() {
            return Err(Error::input("the address names no file")
                .hint("write it as the path: \"ftp://127.0.0.1/pub/file\""));
        }
        let agreed = self.agree(stream)?;
        let command = format!("{verb} {}\r\n", self.path);
        let reply = self.demand(stream, &command, verb)?;
        if !matches!(reply.code, 125 | 150) {
            return Err(unexpected(
                stream,
                &format!("replies to {verb} with {}", reply.text),
            ));
        }
        let socket = match agreed {
            FtpDataPath::Connected(socket) => *socket,
            FtpDataPath::Listening(listener) => stream.socket().accept_beside(&listener)?,
        };
        let mut data = FarEndStream::over_socket(socket, self.spare.take());
        if let Err(error) = data.start_tls_as(stream) {
            return Err(self.find_reason(stream, error));
        }
        self.data = Some(data);
        (self.has_files, self.present) = (true, 0);
        Ok(())
    }

    /// Why the server ended the connection for a file within its handshake: it says so on that of the commands.
    fn find_reason(&self, stream: &mut FarEndStream, error: Error) -> Error {
        let reply = stream.within(REASON, |stream| self.reply(stream));
        match reply {
            Ok(reply) if reply.is_refusal() => refused(stream, "the TLS of a file", &reply),
            _ => error,
        }
    }

    /// Begins with TLS, if that is asked for.
    fn start_tls(&self, stream: &mut FarEndStream) -> Result<()> {
        // Servers accept a session for files only from the connection of their commands.
        stream.keep_own_sessions();
        if self.is_implicit {
            return stream.start_tls().map_err(|error| match error.hint {
                Some(_) => error,
                None => error.hint("`ftp://` is without TLS from the first byte on; `over ftp_file(tls)` changes to it later"),
            });
        }
        let reply = self.ask(stream, "AUTH TLS\r\n")?;
        if reply.code == 234 {
            return stream.start_tls();
        }
        let server = stream.server();
        let message = format!("the FTP server at {server} has no TLS: {}", reply.text);
        Err(Error::measurement(message)
            .hint("omit `tls`, or enable it there (vsftpd: `ssl_enable`)"))
    }

    /// Receives the reply after a file.
    fn end_file(&self, stream: &mut FarEndStream, verb: &str) -> Result<()> {
        let reply = self.reply(stream)?;
        if reply.is_refusal() {
            return Err(refused(stream, verb, &reply));
        }
        Ok(())
    }

    /// Receives more of the present file. False at its end.
    fn receive_more(&mut self, stream: &mut FarEndStream) -> Result<bool> {
        let Some(data) = &mut self.data else {
            return Ok(false);
        };
        if !data.unused().is_empty() || data.receive_more(usize::MAX, "a file")? {
            return Ok(true);
        }
        if data.is_truncated() {
            return Err(data.cut_short("a file"));
        }
        // The server replies when this end has closed, too.
        data.close();
        data.socket().end()?;
        self.spare = self.data.take();
        self.end_file(stream, "RETR")?;
        self.last_file = self.present;
        Ok(false)
    }
}

impl FarEndProtocol for FtpClient {
    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        if self.is_implicit && stream.wants_tls() {
            self.start_tls(stream)?;
        }
        let mut greeting = self.reply(stream)?;
        if greeting.code < 200 {
            greeting = self.reply(stream)?;
        }
        if greeting.is_refusal() {
            return Err(refused(stream, "a connection", &greeting));
        }
        if stream.wants_tls() {
            self.start_tls(stream)?;
        }
        let user = self.login.user.as_deref().unwrap_or("anonymous");
        let mut reply = self.demand(stream, &format!("USER {user}\r\n"), "USER")?;
        if reply.code == 331 {
            let password = match (&self.login.user, &self.login.password) {
                (_, Some(password)) => password,
                (None, None) => "stackline@",
                (Some(_), None) => {
                    let message = format!("the FTP server at {} wants a password", stream.server());
                    return Err(Error::measurement(message)
                        .hint("set FTP_PASSWORD in the environment of the initiator's agent"));
                }
            };
            reply = self.demand(stream, &format!("PASS {password}\r\n"), "PASS")?;
        }
        if reply.code >= 300 {
            return Err(refused(stream, "the login", &reply));
        }
        if stream.has_tls() {
            // RFC 4217, 8 and 9.
            self.demand(stream, "PBSZ 0\r\n", "PBSZ")?;
            self.demand(stream, "PROT P\r\n", "PROT P")?;
        }
        self.demand(stream, "TYPE I\r\n", "TYPE I").map(drop)
    }

    fn close(&mut self, stream: &mut FarEndStream) {
        let _ = stream.send(b"QUIT\r\n");
    }

    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        if !request.is_empty() {
            return Err(
                Error::input("a call to an FTP server is a NOOP, which carries no data")
                    .hint("write `rr 0`; `bulk_get` and `bulk_put` move files"),
            );
        }
        self.demand(stream, "NOOP\r\n", "NOOP").map(drop)
    }

    fn start_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        match direction {
            // The first file begins when it is wanted, as those after it do.
            BulkDirection::Get => Ok(()),
            BulkDirection::Put => self.open_file(stream, "STOR"),
        }
    }

    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        if let Some(data) = &mut self.data
            && data.send(unit)?
        {
            return Ok(());
        }
        // A server that takes nothing more says why on the connection of the commands.
        self.spare = self.data.take();
        self.end_file(stream, "STOR")?;
        Err(stream.cut_short("a put"))
    }

    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        let mut wanted = bytes;
        while wanted > 0 {
            if self.data.is_none() {
                self.open_file(stream, "RETR")?;
            }
            if !self.receive_more(stream)? {
                if self.last_file == 0 {
                    let message = format!("the file `{}` of the FTP server is empty", self.path);
                    return Err(Error::measurement(message).hint("name a file that has bytes"));
                }
                continue;
            }
            if let Some(data) = &mut self.data {
                let here = wanted.min(data.unused().len() as u64);
                data.take(here as usize);
                wanted -= here;
                self.present += here;
            }
        }
        Ok(())
    }

    fn stop_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        let Some(mut data) = self.data.take() else {
            return Ok(());
        };
        match direction {
            BulkDirection::Put if data.has_tls() => {
                data.close();
                // What comes until the server closes, too, are tickets for the next file's session.
                data.finish_sending()?;
                self.end_file(stream, "STOR")
            }
            BulkDirection::Put => {
                data.socket().end_sending()?;
                drop(data);
                self.end_file(stream, "STOR")
            }
            BulkDirection::Get => {
                // The server says either that the file is complete or that it was given up: both end it.
                drop(data);
                self.reply(stream).map(drop)
            }
        }
    }

    fn transport(&self, stream: &FarEndStream) -> Option<TransportRecord> {
        // Files have connections of their own, of which nothing is known any more.
        stream.transport().filter(|_| !self.has_files)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        match self.last_file {
            0 => BTreeMap::new(),
            bytes => BTreeMap::from([("file".to_string(), format!("{bytes} B"))]),
        }
    }
}

/// The error of a reply that refuses something.
fn refused(stream: &FarEndStream, what: &str, reply: &FtpReply) -> Error {
    let error = Error::measurement(format!(
        "the FTP server at {} answers {what} with {}",
        stream.server(),
        reply.text
    ));
    match reply.code {
        400.. if is_about_tls(&reply.text) && !stream.has_tls() => {
            error.hint("`over ftp_file(tls)` asks for TLS")
        }
        421 => error.hint("the server limits its clients, or the time that they are silent: use fewer pairs"),
        425 => error.hint(
            "the server could not open the connection for the file: with `mode = active` a firewall between may forbid it, so write \
             `mode = passive`",
        ),
        430 | 530 | 332 | 532 => {
            error.hint("set FTP_USER and FTP_PASSWORD in the environment of the initiator's agent")
        }
        450 | 550 | 553 => error.hint("check the path of the address, and that this user may read it (`bulk_put`: write it)"),
        452 | 552 => error.hint("the server has no room for the file"),
        _ => error,
    }
}

/// Whether the words of a refusal ask for TLS: no code says that alone.
fn is_about_tls(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["encrypt", "tls", "ssl"]
        .iter()
        .any(|word| text.contains(word))
}

fn unexpected(stream: &FarEndStream, what: &str) -> Error {
    Error::measurement(format!("the server at {} {what}", stream.server()))
        .hint("is it an FTP server?")
}
