//! A server of iperf3: one test at a time, as its own server has it, over TCP or UDP, in both directions.

mod streams;

use super::contract::{SILENCE, StreamServer};
use crate::iperf3_messages::{
    COOKIE, Iperf3Parameters, Iperf3Results, Iperf3Stream, read_json, read_state, state, stream_id,
    write_json,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use streams::{StreamDirection, StreamTally, TestStreams, UdpStreams};

/// Most streams of a test in one direction.
const STREAMS_MOST: u64 = 128;
/// How long a client may take to open its streams.
const OPENING: Duration = Duration::from_secs(10);
/// How long after the time of a test its end may come.
const GRACE: Duration = Duration::from_secs(30);
/// The longest test.
const TEST_LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Most bytes of a block.
const BLOCK_MOST: u64 = 1 << 20;

/// The server, and the test that it has.
#[derive(Default)]
pub(super) struct Iperf3Service(Mutex<Option<OpenTest>>);

/// A stream of a test, numbered by when it came.
struct NumberedStream {
    number: u64,
    stream: TcpStream,
}

/// A test whose streams may come.
struct OpenTest {
    cookie: [u8; COOKIE],
    streams: SyncSender<NumberedStream>,
}

impl StreamServer for Iperf3Service {
    fn serve(&self, mut stream: TcpStream, number: u64) -> io::Result<()> {
        let mut cookie = [0; COOKIE];
        stream.read_exact(&mut cookie)?;
        let Some(streams) = self.enter(cookie, &stream, number)? else {
            return Ok(());
        };
        let end = carry_out(&mut stream, &streams);
        // Before the client learns that its test is over: it may begin the next one at once.
        *self.open() = None;
        let concluded = end.and_then(|end| match end {
            TestEnd::ResultsExchanged => conclude(&mut stream),
            TestEnd::ClientGaveUp => Ok(()),
        });
        if concluded.is_err() {
            // It may have left, too.
            let _ = stream.write_all(&[state::SERVER_TERMINATE]);
        }
        concluded
    }
}

impl Iperf3Service {
    fn open(&self) -> MutexGuard<'_, Option<OpenTest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a test; the streams of it come out of the channel. `None` for a stream of the present test, and for a client that is one
    /// too many.
    fn enter(
        &self,
        cookie: [u8; COOKIE],
        mut stream: &TcpStream,
        number: u64,
    ) -> io::Result<Option<Receiver<NumberedStream>>> {
        let mut open = self.open();
        if let Some(test) = &*open {
            if test.cookie == cookie {
                let stream = stream.try_clone()?;
                let _ = test.streams.try_send(NumberedStream { number, stream });
            } else {
                stream.write_all(&[state::ACCESS_DENIED])?;
            }
            return Ok(None);
        }
        let (sender, streams) = sync_channel(2 * STREAMS_MOST as usize);
        *open = Some(OpenTest {
            cookie,
            streams: sender,
        });
        Ok(Some(streams))
    }
}

/// How a test ended.
enum TestEnd {
    ResultsExchanged,
    ClientGaveUp,
}

/// Carries out a test, as the client on the control connection asks, up to the exchange of results.
fn carry_out(control: &mut TcpStream, streams: &Receiver<NumberedStream>) -> io::Result<TestEnd> {
    control.write_all(&[state::PARAM_EXCHANGE])?;
    let asked: Iperf3Parameters = read_json(control)?;
    let directions = directions(&asked)?;
    let test = if asked.udp {
        let at = control.local_addr()?;
        let udp = UdpStreams::bind(at)?;
        control.write_all(&[state::CREATE_STREAMS])?;
        TestStreams::Udp(udp.accept(directions.len(), OPENING)?)
    } else {
        control.write_all(&[state::CREATE_STREAMS])?;
        TestStreams::Tcp(opened(streams, directions.len())?)
    };
    control.write_all(&[state::TEST_START])?;
    let begun = Instant::now();
    let running = test.start(&directions, &asked)?;
    control.write_all(&[state::TEST_RUNNING])?;
    let longest = Duration::from_secs(asked.time.saturating_add(asked.omit));
    let longest = if asked.time == 0 {
        TEST_LONGEST
    } else {
        longest + GRACE
    };
    control.set_read_timeout(Some(longest.min(TEST_LONGEST)))?;
    let ended = read_state(control);
    // Ending the threads takes a while that belongs to no test.
    let seconds = begun.elapsed().as_secs_f64();
    let tallies = running.end();
    match ended? {
        state::TEST_END => {}
        state::CLIENT_TERMINATE => return Ok(TestEnd::ClientGaveUp),
        other => return Err(io::Error::other(format!("the state {other}"))),
    }
    control.set_read_timeout(Some(SILENCE))?;
    control.write_all(&[state::EXCHANGE_RESULTS])?;
    let _: Iperf3Results = read_json(control)?;
    write_json(control, &results(&tallies, seconds))?;
    Ok(TestEnd::ResultsExchanged)
}

/// Says that the test is over, and hears that the client is content.
fn conclude(control: &mut TcpStream) -> io::Result<()> {
    control.write_all(&[state::DISPLAY_RESULTS])?;
    match read_state(control)? {
        state::IPERF_DONE => Ok(()),
        other => Err(io::Error::other(format!("the state {other}"))),
    }
}

/// The streams of a test, in the order in which the client opened them: their threads may have read the cookies in another.
fn opened(streams: &Receiver<NumberedStream>, count: usize) -> io::Result<Vec<TcpStream>> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let come = (0..count).map(|_| streams.recv_timeout(OPENING).map_err(late));
    let mut come = come.collect::<io::Result<Vec<NumberedStream>>>()?;
    come.sort_by_key(|stream| stream.number);
    Ok(come.into_iter().map(|stream| stream.stream).collect())
}

/// What the server does on each stream, in the order in which clients open them.
fn directions(asked: &Iperf3Parameters) -> io::Result<Vec<StreamDirection>> {
    let streams = asked.parallel.max(1);
    if streams > STREAMS_MOST || asked.len > BLOCK_MOST || (asked.udp && asked.len > 65_507) {
        return Err(io::Error::other("more than this server does"));
    }
    let all = |direction| std::iter::repeat_n(direction, streams as usize);
    let (there, back) = (all(StreamDirection::Receive), all(StreamDirection::Send));
    Ok(match (asked.bidirectional, asked.reverse) {
        (true, _) => there.chain(back).collect(),
        (false, true) => back.collect(),
        (false, false) => there.collect(),
    })
}

/// What the server says of its end.
fn results(tallies: &[StreamTally], seconds: f64) -> Iperf3Results {
    let streams = tallies.iter().zip(0..).map(|(tally, place)| Iperf3Stream {
        id: stream_id(place),
        bytes: tally.bytes,
        retransmits: tally.retransmits,
        jitter: tally.jitter_s,
        errors: tally.missing,
        packets: tally.packets,
        start_time: 0.0,
        end_time: seconds,
    });
    let has_senders = tallies.iter().any(|tally| tally.retransmits >= 0);
    Iperf3Results {
        sender_has_retransmits: if has_senders { 1 } else { -1 },
        congestion_used: tallies.iter().find_map(|tally| tally.congestion.clone()),
        streams: streams.collect(),
        ..Iperf3Results::default()
    }
}
