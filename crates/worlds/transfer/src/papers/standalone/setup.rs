//! The parameters of the stand-alone programs (interfaces, number of packets, number of runs), the three programs, and the statistics of
//! their elapsed times.

use std::time::Duration;

/// Most packets of a transfer.
pub(super) const MOST: u32 = 512;
/// Bytes of data in a packet.
pub const DATA: usize = 1024;
/// The three programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandaloneProgram {
    /// Each packet is sent when the last one has been acknowledged.
    StopAndWait,
    /// Packets are sent one after the other, acknowledgements taken as they come: the window never closes.
    SlidingWindow,
    /// All packets are sent, the last one is acknowledged.
    Blast,
}

impl StandaloneProgram {
    /// All of them, the slowest of 1985 first.
    pub const ALL: [Self; 3] = [Self::StopAndWait, Self::SlidingWindow, Self::Blast];

    /// The program's name for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StopAndWait => "stop-and-wait",
            Self::SlidingWindow => "sliding window",
            Self::Blast => "blast",
        }
    }

    /// Whether data packet `index` of `packets` is acknowledged.
    pub(super) const fn acknowledges(self, index: u32, packets: u32) -> bool {
        !matches!(self, Self::Blast) || index + 1 == packets
    }
}

/// How many transfers of how many packets are run, and over which interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandaloneSetup<'a> {
    /// The interface that sends data.
    pub sender: &'a str,
    /// The interface that receives the data: the other end of a veth pair, or `lo` again.
    pub receiver: &'a str,
    /// Packets of 1024 bytes in a transfer: 1 to 512 (no frame may be lost for want of room in the kernel).
    pub packets: u32,
    /// Transfers of each program that are measured.
    pub runs: u32,
    /// How long a transfer may take: after that, a missing acknowledgement halts it.
    pub patience: Duration,
}

impl<'a> StandaloneSetup<'a> {
    /// `runs` transfers of `packets` packets each, with a patience of one second.
    #[must_use]
    pub const fn new(sender: &'a str, receiver: &'a str, packets: u32, runs: u32) -> Self {
        Self {
            sender,
            receiver,
            packets,
            runs,
            patience: Duration::from_secs(1),
        }
    }
}

/// Statistics of a number of times, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StandaloneSample {
    /// The number of times.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1); 0 for fewer than two.
    pub sd: f64,
    /// The shortest.
    pub min: f64,
    /// The median: a few times that the scheduler made longer do not move it.
    pub median: f64,
    /// The longest.
    pub max: f64,
}

impl StandaloneSample {
    /// The statistics of these times, in seconds; all zero if there are none.
    #[must_use]
    pub fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (times.first(), times.last()) else {
            return Self::default();
        };
        let n = times.len();
        let mean = times.iter().sum::<f64>() / n as f64;
        let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
        let sd = if n > 1 {
            (squares / (n - 1) as f64).sqrt()
        } else {
            0.0
        };
        let median = f64::midpoint(times[(n - 1) / 2], times[n / 2]);
        Self {
            n,
            mean,
            sd,
            min,
            median,
            max,
        }
    }
}
