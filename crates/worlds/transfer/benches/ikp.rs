//! Send-Receive-Reply beside a bare exchange of datagrams on connected sockets, and V's page read, on loopback: rounds of
//! each in turn in one run, medians printed, processor time of both sides beside wall time.
//!
//! `cargo bench -p stackline-transfer --bench ikp [-- ROUNDS [PART OF A NAME]]`. With the variable `ONE_CORE` set both sides
//! share a core: waking the other side costs least then, and what a system call costs shows most.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use stackline_transfer::ikp::{
    IkpClientSegments, IkpTransferOptions, IkpUdpClient, IkpUdpServer, Protocol,
};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Instant;

type Failure = Box<dyn Error + Send + Sync>;

/// Calls in a round, those before the clock starts, and bytes of a small message.
const CALLS: usize = 500;
const WARMING: usize = 20;
const SMALL: usize = 32;
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Processor time of this thread in microseconds.
fn cpu() -> Result<f64, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64)
}

fn pin(core: usize) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(if std::env::var_os("ONE_CORE").is_some() {
        0
    } else {
        core
    })?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Something that is called again and again, and its server's thread, which returns the processor time it took.
struct Pair {
    call: Box<dyn FnMut() -> Result<(), Failure>>,
    end: Box<dyn FnOnce() -> Result<(), Failure>>,
    server: JoinHandle<Result<f64, Failure>>,
}

/// One measurement, set up again for each round.
struct Rival {
    name: &'static str,
    make: Box<dyn Fn() -> Result<Pair, Failure>>,
    times: Vec<f64>,
    client: f64,
    server: f64,
}

impl Rival {
    fn new(name: &'static str, make: impl Fn() -> Result<Pair, Failure> + 'static) -> Self {
        Self {
            name,
            make: Box::new(make),
            times: Vec::new(),
            client: 0.0,
            server: 0.0,
        }
    }

    fn round(&mut self) -> Result<(), Failure> {
        let mut pair = (self.make)()?;
        for _ in 0..WARMING {
            (pair.call)()?;
        }
        let before = cpu()?;
        for _ in 0..CALLS {
            let begin = Instant::now();
            (pair.call)()?;
            self.times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        self.client += (cpu()? - before) / CALLS as f64;
        (pair.end)()?;
        self.server +=
            pair.server.join().map_err(|_| "a server panicked")?? / (CALLS + WARMING) as f64;
        Ok(())
    }
}

fn serve(
    work: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> JoinHandle<Result<f64, Failure>> {
    thread::spawn(move || {
        pin(1)?;
        work()?;
        cpu()
    })
}

/// `send` and `recv` on connected sockets, nothing else.
fn bare() -> Result<Pair, Failure> {
    let [near, far] = [UdpSocket::bind(LOOPBACK)?, UdpSocket::bind(LOOPBACK)?];
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    let server = serve(move || {
        let mut message = [0; SMALL];
        while far.recv(&mut message)? > 0 {
            far.send(&message)?;
        }
        Ok(())
    });
    let ends = near.try_clone()?;
    let mut message = [0; SMALL];
    let call = move || {
        near.send(&message)?;
        near.recv(&mut message)?;
        Ok(())
    };
    let end = move || Ok(ends.send(&[]).map(|_| ())?);
    Ok(Pair {
        call: Box::new(call),
        end: Box::new(end),
        server,
    })
}

/// The same with a server of anybody, as that of Send-Receive-Reply is: `recvfrom` and `sendto`.
fn bare_of_anybody() -> Result<Pair, Failure> {
    let [near, far] = [UdpSocket::bind(LOOPBACK)?, UdpSocket::bind(LOOPBACK)?];
    near.connect(far.local_addr()?)?;
    let server = serve(move || {
        let mut message = [0; SMALL];
        loop {
            let (bytes, from) = far.recv_from(&mut message)?;
            if bytes == 0 {
                return Ok(());
            }
            far.send_to(&message, from)?;
        }
    });
    let ends = near.try_clone()?;
    let mut message = [0; SMALL];
    let call = move || {
        near.send(&message)?;
        near.recv(&mut message)?;
        Ok(())
    };
    let end = move || Ok(ends.send(&[]).map(|_| ())?);
    Ok(Pair {
        call: Box::new(call),
        end: Box::new(end),
        server,
    })
}

/// A call that reads a page of so many bytes by MoveTo; none for a bare Send-Receive-Reply.
fn ikp(page: usize, protocol: Protocol) -> Result<Pair, Failure> {
    let options = IkpTransferOptions::new(protocol);
    let mut server = IkpUdpServer::bind(LOOPBACK, &options)?;
    let address = server.local()?;
    let server = serve(move || {
        let pages = vec![7; page];
        loop {
            let mut request = server.receive()?;
            if request.message() == b"end" {
                return Ok(request.reply(b"")?);
            }
            request.move_to(0, &pages)?;
            request.reply(&[1; SMALL])?;
        }
    });
    let mut client = IkpUdpClient::connect(address, &options)?;
    let (mut into, mut reply) = (vec![0; page], [0; SMALL]);
    let call = move || {
        Ok(client
            .send(
                &[1; SMALL],
                IkpClientSegments::writable(&mut into),
                &mut reply,
            )
            .map(|_| ())?)
    };
    let end = move || {
        let mut client = IkpUdpClient::connect(address, &IkpTransferOptions::default())?;
        Ok(client
            .send(b"end", IkpClientSegments::none(), &mut [])
            .map(|_| ())?)
    };
    Ok(Pair {
        call: Box::new(call),
        end: Box::new(end),
        server,
    })
}

fn quantile(times: &mut [f64], part: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times[((times.len() - 1) as f64 * part) as usize]
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let rounds = arguments
        .first()
        .map_or(Ok(20_u32), |rounds| rounds.parse())?;
    let part = arguments.get(1).map_or("", String::as_str);
    let long = Protocol {
        packet: 1440,
        ..Protocol::once()
    };
    pin(0)?;
    let once = Protocol::once();
    let mut rivals = vec![
        Rival::new("bare datagrams, 32 B", bare),
        Rival::new("bare datagrams, 32 B, of anybody", bare_of_anybody),
        Rival::new("Send-Receive-Reply, 32 B", move || ikp(0, once)),
        Rival::new("page of 1 KiB by MoveTo", move || ikp(1 << 10, once)),
        Rival::new("page of 64 KiB by MoveTo", move || ikp(64 << 10, once)),
        Rival::new("page of 64 KiB, packets of 1440 B", move || {
            ikp(64 << 10, long)
        }),
    ];
    rivals.retain(|rival| rival.name.contains(part));
    for _ in 0..rounds {
        for rival in &mut rivals {
            rival.round()?;
        }
    }
    let rounds = f64::from(rounds);
    println!(
        "{:36} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "us", "median", "p10", "p90", "client", "server"
    );
    for mut rival in rivals {
        let [median, p10, p90] = [0.5, 0.1, 0.9].map(|part| quantile(&mut rival.times, part));
        let (client, server) = (rival.client / rounds, rival.server / rounds);
        println!(
            "{:36} {median:9.2} {p10:9.2} {p90:9.2} {client:9.2} {server:9.2}",
            rival.name
        );
    }
    Ok(())
}
