//! Accepts connections up to a limit, serves each with time limits, and runs the threads for that.

use super::answer::{self, Gateway};
use super::bounded_body::Bounded;
use super::limits::{self, Patience};
use super::memory_limit::Room;
use super::session::GatewaySessions;
use super::viewers::Viewers;
use super::write_timeout::Patient;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use stackline_core::error::{Error, Result};
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::serve;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::Write;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot};

/// Threads that serve connections. Two suffice: the work between two waits is short, and the system copies the blocks.
const THREADS: usize = 2;
/// Threads for blocking work: questions to the master, large pictures.
const BLOCKING: usize = limits::QUESTIONS + 4;
/// How long to wait before accepting again when the system has no room for another connection.
const REST: Duration = Duration::from_millis(50);

/// The options of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The address of the master.
    pub master: String,
    /// The time limits.
    pub patience: Patience,
    /// The limit on connections; the default is [`limits::CONNECTIONS`].
    pub connections: usize,
    /// Bytes that may be held for all clients together; the default is [`limits::ROOM`].
    pub room: u64,
}

/// A running gateway. It stops when this value is dropped.
#[derive(Debug)]
pub struct RunningGateway {
    address: SocketAddr,
    room: Arc<Room>,
    stop: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl RunningGateway {
    /// The address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The most bytes that were held for all clients at once.
    #[must_use]
    pub fn most_held(&self) -> u64 {
        self.room.peak()
    }

    /// The number of clients that were closed because they took nothing while others waited for memory.
    #[must_use]
    pub fn closed_for_room(&self) -> u64 {
        self.room.closed()
    }

    /// Stops the gateway: its connections are closed and its threads end.
    pub fn stop(&self) {
        let stop = self
            .stop
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((stop, thread)) = stop {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a gateway. The master may come later; until then answers say that it is not there.
///
/// # Errors
/// If it cannot listen.
pub fn start(options: GatewayOptions) -> Result<RunningGateway> {
    let listener = serve::listen_at(options.listen)?;
    let address = listener
        .local_addr()
        .map_err(|error| Error::environment(format!("cannot start the gateway: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(BLOCKING)
        .thread_name("gateway")
        .enable_all()
        .build()
        .map_err(|error| Error::environment(format!("cannot start the gateway: {error}")))?;
    let room = Room::new(options.room);
    let gateway_room = Arc::clone(&room);
    let (stop, stopped) = oneshot::channel();
    let work = move || {
        runtime.block_on(async move {
            // Registration fails only if the system has no room, and `accept` would fail for the same reason.
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            let listening = tokio::spawn(listen(listener, options, gateway_room));
            // An error means that the sender is gone, which also asks to stop.
            let _ = stopped.await;
            listening.abort();
        });
        runtime.shutdown_background();
    };
    let thread = thread::Builder::new().name("gateway".into()).spawn(work);
    let thread =
        thread.map_err(|error| Error::environment(format!("cannot start a thread: {error}")))?;
    Ok(RunningGateway {
        address,
        room,
        stop: Mutex::new(Some((stop, thread))),
    })
}

async fn listen(listener: TcpListener, options: GatewayOptions, room: Arc<Room>) {
    let patience = options.patience;
    let sessions = GatewaySessions::new(options.master, patience, Arc::clone(&room));
    let gateway = Arc::new(Gateway {
        sessions,
        viewers: Arc::new(Viewers::default()),
        room,
        pictures: Semaphore::new(limits::PICTURES),
        texts: Semaphore::new(limits::QUESTIONS),
    });
    let (places, refusals) = (
        ConnectionSlotPool::new(options.connections),
        Arc::new(Semaphore::new(limits::REFUSALS)),
    );
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let ended = Arc::new(Notify::new());
        let ends = Arc::clone(&ended);
        match places.enter_or_replace_idle(move || ends.notify_one()) {
            Some(place) => {
                tokio::spawn(serve(
                    stream,
                    Arc::clone(&gateway),
                    patience,
                    Arc::new(Mutex::new(place)),
                    ended,
                ));
            }
            None => {
                if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
                    tokio::spawn(async move {
                        refuse(stream).await;
                        drop(permit);
                    });
                }
            }
        }
    }
}

/// Serves one connection to its end, or until it has to give way. A request that is given up is dropped where it waits.
async fn serve(
    stream: TcpStream,
    gateway: Arc<Gateway>,
    patience: Patience,
    place: Arc<Mutex<ConnectionSlot>>,
    ended: Arc<Notify>,
) {
    let _ = stream.set_nodelay(true);
    let client = gateway.room.enter();
    let gone = client.has_to_go();
    let io = TokioIo::new(Patient::new(
        stream,
        patience.stall,
        client,
        Arc::clone(&place),
    ));
    let service = service_fn(|request| {
        let (gateway, place) = (Arc::clone(&gateway), Arc::clone(&place));
        async move {
            lock(&place).busy();
            let asked = tokio::time::timeout(patience.silence(), gateway.answer(request)).await;
            let answer = asked
                .unwrap_or_else(|_| answer::build_late_response())
                .map(|body| Bounded::new(body, patience.silence()));
            // While the client takes the body, that activity keeps the connection from being the idlest.
            lock(&place).idle();
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_headers(limits::HEADERS)
        .max_buf_size(limits::HEAD)
        .serve_connection(io, service);
    // The result does not matter: the client has what it got, or its connection was closed for others.
    let (mut connection, mut gone, mut ended) =
        (pin!(connection), pin!(gone), pin!(ended.notified()));
    poll_fn(|context| {
        let is_over = connection.as_mut().poll(context).is_ready()
            || gone.as_mut().poll(context).is_ready()
            || ended.as_mut().poll(context).is_ready();
        if is_over {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

fn lock(place: &Mutex<ConnectionSlot>) -> MutexGuard<'_, ConnectionSlot> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers a client with 503: the gateway has too many connections. It is written without hyper, whose connection would hold what the limit
/// is to save.
async fn refuse(stream: TcpStream) {
    let words = "503: the gateway has reached its connection limit\n";
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Retry-After: 1\r\nConnection: close\r\n\r\n{words}",
        words.len()
    );
    let Ok(mut stream) = stream.into_std() else {
        return;
    };
    // The send buffer is still empty, so there is room for this.
    let _ = stream.write_all(answer.as_bytes());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let Ok(mut stream) = TcpStream::from_std(stream) else {
        return;
    };
    // Closing a connection with unread bytes resets it, and the answer would be lost.
    let drain = async {
        let mut scratch = [0; 4096];
        while stream.read(&mut scratch).await.is_ok_and(|count| count > 0) {}
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), drain).await;
}
