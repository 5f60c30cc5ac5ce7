//! TCP connections that carry messages: the greeting on both sides, and sending messages.
//!
//! Whatever a peer sends, a connection takes no more memory than the longest message allowed there. A greeting that is not complete within
//! [`limits::GREETING_TIME`], however slowly its bytes come, ends the connection.

mod receiver;

use crate::key::generate_nonce;
use nix::sys::socket::{MsgFlags, send};
pub use receiver::{BlockMessageReceiver, Incoming};
use socket2::{SockRef, TcpKeepalive};
use stackline_blocks::limits;
use stackline_blocks::wire::VERSION;
use stackline_blocks::wire::handshake::{
    BlockHello, BlockPeerRole, BlockWriteKey, MAGIC, Prove, Welcome,
};
use stackline_blocks::wire::master_messages::BlockRequestRefused;
use stackline_blocks::wire::message::{Message, Why};
use stackline_core::error::{Error, Result};
use stackline_guard::deadline::Deadline;
use std::io::{self, IoSlice, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// The most memory that a connection keeps for the next message, bytes.
const KEPT: usize = 64 << 10;
/// After what silence TCP keep-alive checks whether the master's machine is still there.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// How long connecting to one address may take.
const CONNECTING: Duration = Duration::from_secs(5);

/// Why nothing more comes from a connection.
#[derive(Debug)]
pub enum BlockConnectionEnd {
    /// The peer closed it between two messages.
    Closed,
    /// Nothing came within the read timeout.
    Silent,
    /// It failed, or the peer sent something that is not a message.
    Broken(String),
}

impl From<io::Error> for BlockConnectionEnd {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl std::fmt::Display for BlockConnectionEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("the peer closed the connection"),
            Self::Silent => f.write_str("the peer sent nothing"),
            Self::Broken(words) => f.write_str(words),
        }
    }
}

/// Sends messages on a connection.
#[derive(Debug)]
pub struct BlockMessageSender {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl BlockMessageSender {
    const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn message(&mut self, message: &Message) -> io::Result<()> {
        self.with_data(message, &[])
    }

    /// Sends several messages at once.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn messages(&mut self, messages: &[Message]) -> io::Result<()> {
        self.buffer.clear();
        messages
            .iter()
            .for_each(|message| message.put(&mut self.buffer));
        let sent = self.stream.write_all(&self.buffer);
        if self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
        sent
    }

    /// Sends a message followed by data, which is not copied.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn with_data(&mut self, message: &Message, data: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        message.put(&mut self.buffer);
        let (head, mut done) = (self.buffer.len(), 0);
        while done < head + data.len() {
            let parts = [
                IoSlice::new(&self.buffer[done.min(head)..]),
                IoSlice::new(&data[done.saturating_sub(head)..]),
            ];
            match self.stream.write_vectored(&parts) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes the connection writable only while fewer than `unsent` bytes have not left.
    ///
    /// # Errors
    /// If the system has no such option.
    pub fn wake_below(&self, unsent: u32) -> io::Result<()> {
        // Linux wakes a writer at half of this value.
        SockRef::from(&self.stream).set_tcp_notsent_lowat(2 * unsent)
    }

    /// The TCP connection.
    #[must_use]
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

/// The receiving and the sending half of a connection.
pub type BlockConnectionHalves = (BlockMessageReceiver, BlockMessageSender);

/// For tests: the sending half of a connection without a greeting.
#[cfg(test)]
pub(crate) const fn sender(stream: TcpStream) -> BlockMessageSender {
    BlockMessageSender::new(stream)
}

fn halves(stream: TcpStream) -> io::Result<BlockConnectionHalves> {
    let sending = stream.try_clone()?;
    Ok((
        BlockMessageReceiver::new(stream),
        BlockMessageSender::new(sending),
    ))
}

/// Sets the sizes of a connection's buffers, if they are given, and disables Nagle's algorithm.
fn tune(stream: &TcpStream, send: Option<usize>, receive: Option<usize>) -> io::Result<()> {
    // Small requests wait for answers: Nagle's algorithm would hold them up.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    if let Some(bytes) = send {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = receive {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

/// Connects in that role, and completes the greeting.
///
/// # Errors
/// If nobody answers, or the other side speaks another version or does not hold the key.
pub fn connect(
    address: &str,
    role: BlockPeerRole,
    key: Option<&BlockWriteKey>,
    receive_buffer: Option<usize>,
) -> Result<BlockConnectionHalves> {
    let failed = |error: io::Error| cannot_be_reached(address, &error);
    if role.proves() && key.is_none() {
        return Err(no_key());
    }
    let stream = reach(address)?;
    tune(&stream, None, receive_buffer).map_err(failed)?;
    if matches!(role, BlockPeerRole::Client | BlockPeerRole::Loader) {
        // Without keep-alive, a client that asks nothing would not notice that the master's machine went down.
        let alive = TcpKeepalive::new()
            .with_time(KEEPALIVE)
            .with_interval(Duration::from_secs(1))
            .with_retries(3);
        SockRef::from(&stream)
            .set_tcp_keepalive(&alive)
            .map_err(failed)?;
    }
    stream
        .set_write_timeout(Some(limits::GREETING_TIME))
        .map_err(failed)?;
    let (mut receiver, mut sender) = halves(stream).map_err(failed)?;
    let deadline = Deadline::within(limits::GREETING_TIME);
    let ours = generate_nonce().map_err(failed)?;
    sender
        .message(
            &BlockHello {
                magic: MAGIC,
                version: VERSION,
                role,
                nonce: ours,
            }
            .into(),
        )
        .map_err(failed)?;
    let answer = receiver.message_by(&deadline, limits::LONGEST_GREETING);
    let welcome = welcome_of(answer, address)?;
    if welcome.version != VERSION {
        let words = format!(
            "it speaks version {}, but this program speaks {VERSION}",
            welcome.version
        );
        return Err(refusal(address, Why::Version, &words));
    }
    // The accepting side proves first: one who lacks the key gets no proof.
    if let Some(key) = key.filter(|_| role.proves()) {
        if !key.verifies(&welcome.proof, true, role, &ours, &welcome.nonce) {
            return Err(refusal(address, Why::Key, "the keys differ"));
        }
        let proof = key.proof(false, role, &ours, &welcome.nonce);
        sender.message(&Prove { proof }.into()).map_err(failed)?;
    }
    receiver.stream.set_read_timeout(None).map_err(failed)?;
    receiver.stream.set_write_timeout(None).map_err(failed)?;
    Ok((receiver, sender))
}

/// Connects to the first of the addresses that answers.
fn reach(address: &str) -> Result<TcpStream> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| {
            Error::input(format!("{address} is not a valid address: {error}"))
                .hint("write HOST:PORT, as in 10.0.0.5:7480")
        })?
        .collect();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut stream = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(connected) => {
                stream = Some(connected);
                break;
            }
            Err(error) => last = error,
        }
    }
    stream
        .ok_or(last)
        .map_err(|error| cannot_be_reached(address, &error))
}

/// The other side's greeting, or the error that explains why there is none.
fn welcome_of(
    answer: std::result::Result<Message, BlockConnectionEnd>,
    address: &str,
) -> Result<Welcome> {
    match answer {
        Ok(Message::Welcome(welcome)) => Ok(welcome),
        Ok(Message::Refused(refused)) => {
            Err(refusal(address, Why::from_number(refused.why), &refused.words))
        }
        Err(BlockConnectionEnd::Silent) => Err(silent_peer_error(address)),
        Err(BlockConnectionEnd::Closed) => {
            Err(Error::environment(format!("{address} closed the connection without answering")).hint(
                "check that this is the port that `stackline blocks master` prints; if so, the master may have too many connections",
            ))
        }
        Ok(_) | Err(_) => {
            Err(Error::environment(format!(
                "the server at {address} is not a block server"
            ))
            .hint("use the port that `stackline blocks master` prints"))
        }
    }
}

fn cannot_be_reached(address: &str, error: &io::Error) -> Error {
    Error::environment(format!("cannot reach {address}: {error}"))
        .hint("check that the server is running there and that this is its address")
}

/// The error for a peer that accepts a connection and says nothing.
pub(crate) fn silent_peer_error(address: &str) -> Error {
    Error::environment(format!("{address} accepts connections but does not answer"))
        .hint("it may be stopped or overloaded; try again")
}

/// The error if a key is needed and there is none.
#[must_use]
pub fn no_key() -> Error {
    Error::input("a key is needed to write blocks or to join as a server")
        .hint("create one with `stackline blocks key` and copy its file to the other hosts, or name one with --key FILE")
}

fn refusal(address: &str, why: Why, words: &str) -> Error {
    let error = Error::environment(format!("{address} refused the connection: {words}"));
    match why {
        Why::Version => error.hint("run the same version of stackline on both sides"),
        Why::Key => error.hint(
            "give the master, servers and loaders the same key file (`stackline blocks key`)",
        ),
        Why::Limit => error.hint("try again, or close other clients first"),
        _ => error,
    }
}

/// Completes the greeting on an accepted connection. Returns the peer's role and both halves.
///
/// # Errors
/// [`BlockConnectionEnd`], also if the peer was refused.
pub fn accept_connection(
    stream: TcpStream,
    key: Option<&BlockWriteKey>,
    send_buffer: Option<usize>,
) -> Result<(BlockPeerRole, BlockConnectionHalves), BlockConnectionEnd> {
    let deadline = Deadline::within(limits::GREETING_TIME);
    stream.set_write_timeout(Some(limits::GREETING_TIME))?;
    tune(&stream, send_buffer, None)?;
    let (mut receiver, mut sender) = halves(stream)?;
    let Message::Hello(hello) = receiver.message_by(&deadline, limits::LONGEST_GREETING)? else {
        return refuse(
            &mut sender,
            Why::Malformed,
            "a connection must begin with HELLO",
        );
    };
    if hello.magic != MAGIC {
        return Err(BlockConnectionEnd::Broken(
            "the peer speaks a different protocol".into(),
        ));
    }
    if hello.version != VERSION {
        let words = format!(
            "the listening side speaks version {VERSION}, the connecting side {}",
            hello.version
        );
        return refuse(&mut sender, Why::Version, &words);
    }
    let (role, theirs) = (hello.role, hello.nonce);
    let ours = generate_nonce()?;
    let proof = key
        .filter(|_| role.proves())
        .map(|key| key.proof(true, role, &theirs, &ours));
    if role.proves() && proof.is_none() {
        return refuse(
            &mut sender,
            Why::Key,
            "the listening side has no key, so it accepts no writes",
        );
    }
    sender.message(
        &Welcome {
            version: VERSION,
            nonce: ours,
            proof: proof.unwrap_or_default(),
        }
        .into(),
    )?;
    if let Some(key) = key.filter(|_| role.proves()) {
        let Message::Prove(prove) = receiver.message_by(&deadline, limits::LONGEST_GREETING)?
        else {
            return refuse(&mut sender, Why::Malformed, "a key proof was expected");
        };
        if !key.verifies(&prove.proof, false, role, &theirs, &ours) {
            return refuse(&mut sender, Why::Key, "the keys differ");
        }
    }
    receiver.stream.set_read_timeout(None)?;
    receiver.stream.set_write_timeout(None)?;
    Ok((role, (receiver, sender)))
}

/// Tells the peer why the connection ends, if that fits into the send buffer, and shuts the connection down, which wakes threads that wait
/// for it.
pub(crate) fn send_away(stream: &TcpStream, words: &str) {
    let refused = BlockRequestRefused {
        request: 0,
        why: Why::Limit as u8,
        words: words.to_owned(),
    };
    // One who does not read must not hold up this thread.
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let _ = send(stream.as_raw_fd(), &Message::from(refused).bytes(), flags);
    let _ = stream.shutdown(Shutdown::Both);
}

fn refuse<T>(
    sender: &mut BlockMessageSender,
    why: Why,
    words: &str,
) -> Result<T, BlockConnectionEnd> {
    let refused = BlockRequestRefused {
        request: 0,
        why: why as u8,
        words: words.to_owned(),
    };
    let _ = sender.message(&refused.into());
    Err(BlockConnectionEnd::Broken(words.to_owned()))
}
