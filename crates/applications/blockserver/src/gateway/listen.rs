//! Connections: accepted up to a number, each with its patience; the threads they are served by.

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

/// Threads that serve connections: what they do between two waits is short, and blocks are copied by the system.
const THREADS: usize = 2;
/// Threads of what blocks: questions to the master, large pictures.
const BLOCKING: usize = limits::QUESTIONS + 4;
/// How long the system is left alone when it has no room for another connection.
const REST: Duration = Duration::from_millis(50);

/// How a gateway is to be.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where the master is.
    pub master: String,
    /// How patient it is.
    pub patience: Patience,
    /// Connections at once; [`limits::CONNECTIONS`] unless chosen otherwise.
    pub connections: usize,
    /// Bytes that are held for all clients together; [`limits::ROOM`] unless chosen otherwise.
    pub room: u64,
}

/// A gateway that runs. It ends with this value.
#[derive(Debug)]
pub struct RunningGateway {
    address: SocketAddr,
    room: Arc<Room>,
    stop: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl RunningGateway {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The most bytes that were held for all clients at once.
    #[must_use]
    pub fn most_held(&self) -> u64 {
        self.room.peak()
    }

    /// Clients that were closed because they took nothing while others waited for room.
    #[must_use]
    pub fn closed_for_room(&self) -> u64 {
        self.room.closed()
    }

    /// Ends it: its connections are closed, its threads go.
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

/// Starts a gateway. Its master may come later: until then answers say that it is not there.
///
/// # Errors
/// When it cannot listen.
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
            // What is not registered is no listener: the system has no room, which `accept` would say too.
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            let listening = tokio::spawn(listen(listener, options, gateway_room));
            // Said, or there is nobody left to say it.
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
            // Its body keeps it from being the idlest as long as the client takes it.
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
    // How it ended matters to nobody: the client has what it got. Or others wait for the room that it does not give back.
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

/// Tells that there are too many connections.
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
    // It is empty yet, so there is room for this.
    let _ = stream.write_all(answer.as_bytes());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let Ok(mut stream) = TcpStream::from_std(stream) else {
        return;
    };
    // Closed with something unread, a connection is reset, and the answer with it.
    let drain = async {
        let mut scratch = [0; 4096];
        while stream.read(&mut scratch).await.is_ok_and(|count| count > 0) {}
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), drain).await;
}
