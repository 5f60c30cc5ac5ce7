//! The order of 1985: 64 packets of 1024 bytes by stop-and-wait, a sliding window and a blast, over a veth pair at an MTU of
//! 1500. A B A B in one run, medians printed. `cargo bench -p stackline-papers --bench order`, on a quiet machine; in a
//! network of its own, for which no rights are needed where users may make namespaces; a number as argument is how many
//! rounds.

#[path = "../../../worlds/transfer/benches/room/mod.rs"]
mod room;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use stackline_papers::blast::formulas::{BlastCostModel, BlastFigureProtocol};
use stackline_proto::blast::{self, BlastStrategy};
use stackline_testing::bench_arguments::BenchArguments;
use stackline_transfer::frames::{self, FrameCarrier};
use stackline_transfer::options::PacketWaiting;
use stackline_transfer::papers::standalone::{self, StandaloneSetup};
use stackline_transfer::{BlastChannel, BlastChannelOptions};
use std::error::Error;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

/// Whatever went wrong.
type Failure = Box<dyn Error + Send + Sync>;

const PACKETS: u32 = 64;
const PACKET: u32 = 1024;
/// Transfers of a round, of which the median counts.
const TRANSFERS: usize = 100;

fn main() -> Result<ExitCode, Failure> {
    let rounds: usize = BenchArguments::read().take_first_number().unwrap_or(5);
    if !room::is_inside() {
        let status = room::enter(&[&rounds.to_string()])?.status()?;
        return Ok(ExitCode::from(
            status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1),
        ));
    }
    table(rounds)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the times and their ratios, beside those of then.
fn table(rounds: usize) -> Result<(), Failure> {
    println!(
        "{PACKETS} packets of {PACKET} B, medians in us{:>26} {:>9} {:>9}",
        "saw", "window", "blast"
    );
    let then = [
        BlastFigureProtocol::StopAndWait,
        BlastFigureProtocol::SlidingWindow,
        BlastFigureProtocol::Blast,
    ];
    line(
        "two SUNs and 3-Com interfaces, 1985",
        then.map(|protocol| protocol.elapsed(&BlastCostModel::STANDALONE, PACKETS)),
    );
    let (mut bare, mut busy, mut asleep) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let elapsed = standalone::elapsed(&StandaloneSetup::new(
            "near",
            "far",
            PACKETS,
            TRANSFERS as u32,
        ))?;
        bare.push(elapsed.all().map(|sample| sample.median));
        busy.push(channels(PacketWaiting::Spin)?);
        asleep.push(channels(PacketWaiting::Block)?);
    }
    line("stand-alone programs, busy waiting", medians(&bare));
    line("channels over frames, busy waiting", medians(&busy));
    line("channels over frames, asleep", medians(&asleep));
    Ok(())
}

fn medians(rounds: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|column| median(rounds.iter().map(|round| round[column]).collect()))
}

fn line(what: &str, times: [f64; 3]) {
    let [saw, window, blast] = times.map(|time| time * 1e6);
    println!(
        "{what:<48} {saw:>9.1} {window:>9.1} {blast:>9.1}   {:.2} : {:.2} : 1",
        saw / blast,
        window / blast
    );
}

fn channels(waiting: PacketWaiting) -> Result<[f64; 3], Failure> {
    let of = |machine: blast::BlastOptions| BlastChannelOptions {
        waiting,
        ..BlastChannelOptions::from_blast(blast::BlastOptions {
            buffer: 0,
            ..machine
        })
    };
    let saw = channel(&of(blast::BlastOptions::saw(PACKET)))?;
    let window = channel(&of(blast::BlastOptions::window(PACKET, PACKETS)))?;
    let blast = channel(&of(blast::BlastOptions::blast(
        BlastStrategy::Selective,
        PACKET,
        PACKETS * PACKET,
    )))?;
    Ok([saw, window, blast])
}

/// The median time, in seconds, from handing all over to knowing that all has arrived.
fn channel(options: &BlastChannelOptions) -> Result<f64, Failure> {
    let data = vec![7; (PACKETS * PACKET) as usize];
    let far = FrameCarrier::listen("far", None, frames::FrameCarrierOptions::default())?;
    thread::scope(|scope| {
        let (length, data) = (data.len(), &data);
        let receiver = scope.spawn(move || -> Result<(), Failure> {
            pin(1)?;
            let mut channel = BlastChannel::answer(far, options)?;
            let mut into = vec![0; length];
            while channel.receive_into(&mut into)? > 0 {}
            Ok(())
        });
        let sender = scope.spawn(move || -> Result<f64, Failure> {
            pin(0)?;
            let mut channel = BlastChannel::connect_over(
                FrameCarrier::connect("near", frames::FrameCarrierOptions::default())?,
                options,
            )?;
            let mut times = Vec::with_capacity(TRANSFERS);
            for _ in 0..TRANSFERS {
                let begin = Instant::now();
                channel.send(data)?;
                times.push(begin.elapsed().as_secs_f64());
            }
            channel.close()?;
            Ok(median(times))
        });
        let time = sender.join().map_err(|_| "the sender panicked")??;
        receiver.join().map_err(|_| "the receiver panicked")??;
        Ok(time)
    })
}

/// Brings this thread to one of the processors it may run on.
fn pin(side: usize) -> Result<(), Failure> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let cores: Vec<usize> = (0..CpuSet::count())
        .filter(|&core| allowed.is_set(core).unwrap_or(false))
        .collect();
    let mut set = CpuSet::new();
    set.set(cores[side % cores.len()])?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// The median of figures.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
