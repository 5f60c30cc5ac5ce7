//! Sends blocks as blasts (Zwaenepoel 1985): the head of a block goes over the TCP connection, its data as a blast beside it, directly from
//! the server's memory into the client's. The next block begins when the client has all of this one, so a round trip lies between two.
//!
//! The server's state machine decides which block is next; `stackline_transfer` handles retransmission.

use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::BlockHead;
use stackline_core::time::Duration;
use stackline_guard::stop::StopSwitch;
use stackline_transfer::{
    BlastChannel, BlastChannelListener, BlastChannelOptions, Error, Interrupt,
};
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// How long a side may take or send nothing in the middle of a block.
const PATIENCE: Duration = Duration(60_000_000_000);

fn options(session: u128) -> BlastChannelOptions {
    let mut options = BlastChannelOptions {
        token: session.to_be_bytes(),
        ..BlastChannelOptions::default()
    };
    options.blast.patience = PATIENCE;
    options
}

fn failed(error: Error) -> std::io::Error {
    match error {
        Error::Io(_, error) => error,
        other => std::io::Error::new(ErrorKind::BrokenPipe, other.to_string()),
    }
}

/// The server's end of the blasts to one client.
#[derive(Debug)]
pub(crate) struct BlockBlastSender {
    channel: BlastChannel,
}

impl BlockBlastSender {
    /// Connects to the port where a client waits, until the client goes or `stop` is set.
    ///
    /// # Errors
    /// If nobody answers there.
    pub(crate) fn open(
        to: SocketAddr,
        session: u128,
        connection: &TcpStream,
        stop: &StopSwitch,
    ) -> std::io::Result<Self> {
        let (connection, stop) = (connection.try_clone()?, stop.clone());
        let interrupt = Interrupt::new(move || stop.is_stopped() || is_closed(&connection));
        let options = BlastChannelOptions {
            interrupt: Some(interrupt),
            ..options(session)
        };
        Ok(Self {
            channel: BlastChannel::connect(to, &options).map_err(failed)?,
        })
    }

    /// Sends a block; when this returns, the client has it.
    ///
    /// # Errors
    /// If the client is lost, or takes nothing for a minute.
    pub(crate) fn block(
        &mut self,
        mut connection: &TcpStream,
        head: &BlockHead,
        data: &[u8],
    ) -> std::io::Result<()> {
        connection.write_all(&Message::from(head.clone()).bytes())?;
        self.channel.send(data).map_err(failed)
    }
}

/// Whether the other side has closed the connection.
fn is_closed(connection: &TcpStream) -> bool {
    use nix::sys::socket::{MsgFlags, recv};
    use std::os::fd::AsRawFd as _;
    let looked = recv(
        connection.as_raw_fd(),
        &mut [0],
        MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT,
    );
    !matches!(
        looked,
        Ok(1) | Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR)
    )
}

/// The port where a client waits for a server's blasts.
pub(crate) struct Landing {
    listener: BlastChannelListener,
}

impl Landing {
    /// Listens on a free port of that address.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn open(at: IpAddr, session: u128) -> std::io::Result<Self> {
        Ok(Self {
            listener: BlastChannelListener::bind(SocketAddr::new(at, 0), &options(session))
                .map_err(failed)?,
        })
    }

    /// The port number.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn port(&self) -> std::io::Result<u16> {
        Ok(self.listener.local().map_err(failed)?.port())
    }

    /// Waits for the server, until `over` returns true.
    ///
    /// # Errors
    /// If `over` returned true.
    pub(crate) fn accept(
        mut self,
        over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> std::io::Result<Landed> {
        self.listener.interrupted_by(Interrupt::new(over));
        let channel = self.listener.accept().map_err(failed)?;
        Ok(Landed {
            channel,
            _listener: self.listener,
        })
    }
}

/// The client's end of the blasts from one server.
pub(crate) struct Landed {
    channel: BlastChannel,
    /// The connection has a socket of its own; the listener is kept so that its port stays in use.
    _listener: BlastChannelListener,
}

impl Landed {
    /// Fills `into` with the data of the next block.
    ///
    /// # Errors
    /// If the server is lost, or sends nothing for a minute.
    pub(crate) fn block(&mut self, into: &mut [u8]) -> std::io::Result<()> {
        match self.channel.receive_into(into).map_err(failed)? {
            got if got == into.len() => Ok(()),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}
