//! quinn as a peer: one end of one transfer over one stream, from memory to memory.
//!
//! `quinn-peer receive ADDRESS BYTES` says `ready` once it listens; `quinn-peer send ADDRESS BYTES` connects. At the
//! end each says how many seconds it took, wall time and the processor's, from the open connection until the sender
//! knows that everything is there. Receivers compare every byte, after that.
//!
//! quinn gets what is good for it: CUBIC (its default), the packets the path carries from the beginning, socket buffers
//! of 4 MiB, the cheapest cipher suite, and its sender hands over memory that is not copied.

mod tls;

use bytes::Bytes;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use quinn::{
    Connection, Endpoint, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, TokioRuntime,
    TransportConfig,
};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn Error + Send + Sync>;

/// Longest UDP payload with an MTU of 1500 over IPv4.
const PACKET: u16 = 1472;
const SOCKET_BUFFER: usize = 4 << 20;
/// What a stream and a connection may have on their way.
const WINDOW: u32 = 8 << 20;
/// A peer that is silent for so long is gone.
const IDLE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, address, bytes] = &words[..] else {
        return Err("usage: quinn-peer receive|send ADDRESS BYTES".into());
    };
    let (address, bytes) = (address.parse()?, bytes.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match what.as_str() {
        "receive" => runtime.block_on(receive(address, bytes)),
        "send" => runtime.block_on(send(address, bytes)),
        _ => Err(format!("`{what}` is neither `receive` nor `send`").into()),
    }
}

async fn receive(address: SocketAddr, bytes: usize) -> Result<(), Failure> {
    let mut into = vec![1; bytes];
    let mut server = tls::server()?;
    server.transport_config(transport()?);
    let endpoint = endpoint(address, Some(server))?;
    println!("ready");
    let connection = endpoint
        .accept()
        .await
        .ok_or("no connection arrived")?
        .await?;
    let clock = Clock::start()?;
    let (mut back, mut stream) = connection.accept_bi().await?;
    stream.read_exact(&mut into).await?;
    back.write_all(&[1]).await?;
    clock.stop()?;
    connection.closed().await;
    endpoint.wait_idle().await;
    if into == pattern(bytes) {
        Ok(())
    } else {
        Err("other bytes came".into())
    }
}

async fn send(address: SocketAddr, bytes: usize) -> Result<(), Failure> {
    let data = Bytes::from(pattern(bytes));
    let mut client = tls::client()?;
    client.transport_config(transport()?);
    let endpoint = endpoint(SocketAddr::from(([0, 0, 0, 0], 0)), None)?;
    let connection: Connection = endpoint.connect_with(client, address, "peer")?.await?;
    let clock = Clock::start()?;
    let (mut stream, mut back) = connection.open_bi().await?;
    stream.write_chunk(data).await?;
    back.read_exact(&mut [0]).await?;
    clock.stop()?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

fn endpoint(address: SocketAddr, server: Option<quinn::ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&address.into())?;
    Ok(Endpoint::new(
        EndpointConfig::default(),
        server,
        socket.into(),
        Arc::new(TokioRuntime),
    )?)
}

fn transport() -> Result<Arc<TransportConfig>, Failure> {
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(PACKET);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(PACKET)
        .min_mtu(PACKET)
        .mtu_discovery_config(Some(mtu));
    transport
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .send_window(WINDOW.into());
    transport.max_idle_timeout(Some(IdleTimeout::try_from(IDLE)?));
    Ok(Arc::new(transport))
}

/// Bytes that every peer sends.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

struct Clock {
    wall: Instant,
    processor: f64,
}

impl Clock {
    fn start() -> Result<Self, Failure> {
        Ok(Self {
            processor: processor()?,
            wall: Instant::now(),
        })
    }

    fn stop(self) -> Result<(), Failure> {
        println!(
            "{} {}",
            self.wall.elapsed().as_secs_f64(),
            processor()? - self.processor
        );
        Ok(())
    }
}

/// Processor time of this process in seconds.
fn processor() -> Result<f64, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}
