//! The options of an IMP: its processor, its buffers, its timers, and the routing rule of its year.

use stackline_core::network::ImpSettings;
use stackline_core::time::Duration;

/// A type of machine: its speed, and the cycles that its work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpHardware {
    /// The time of a memory cycle, ns; 0 is infinitely fast.
    pub cycle_ns: u64,
    /// The cycles that its work takes.
    pub costs: ImpCycleCosts,
}

/// What an IMP's work costs, in processor cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpCycleCosts {
    /// Receiving a frame from a line.
    pub line_in: u64,
    /// Processing a packet: finding its route and a buffer.
    pub task: u64,
    /// Sending a frame on a line.
    pub line_out: u64,
    /// Reading a word of a packet from a host, in hundredths of a cycle.
    pub host_in_word: u64,
    /// Giving a word of a message to a host, in hundredths of a cycle.
    pub host_out_word: u64,
    /// Processing an entry of a routing message.
    pub routing_entry: u64,
}

impl ImpCycleCosts {
    /// Of BBN 2499, section 2.2.1.1 and 2.1.1: a 516 is saturated by 1 Mbit/s of full packets over lines (1160 cycles a packet); to a
    /// dead host a word costs it 7.8 cycles beside the generator's 25, to itself 37 beside 45 (Table 3A). How the 1160 divide into
    /// coming, looking and going is not printed. Going leaves the line idle between packets: 300 cycles are what 190 kbit/s over a line of
    /// 230.4 (2.2.1.6) and BBN's own program of September 1973 allow.
    pub const PRINTED: Self = Self {
        line_in: 660,
        task: 200,
        line_out: 300,
        host_in_word: 460,
        host_out_word: 2922,
        routing_entry: 4,
    };
}

impl ImpHardware {
    /// Honeywell 516: 1.0 us a cycle (2.2.1.1).
    pub const H516: Self = Self {
        cycle_ns: 1000,
        costs: ImpCycleCosts::PRINTED,
    };
    /// Honeywell 316: 1.6 us.
    pub const H316: Self = Self {
        cycle_ns: 1600,
        costs: ImpCycleCosts::PRINTED,
    };
    /// A 316 that serves terminals too: 2.2 us in effect.
    pub const TIP: Self = Self {
        cycle_ns: 2200,
        costs: ImpCycleCosts::PRINTED,
    };
    /// A machine whose work takes no time.
    pub const FREE: Self = Self {
        cycle_ns: 0,
        costs: ImpCycleCosts::PRINTED,
    };

    /// The time that `cycles` cycles take.
    #[must_use]
    pub const fn time(&self, cycles: u64) -> Duration {
        Duration(self.cycle_ns.saturating_mul(cycles))
    }
}

/// How routes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// January 1973: a line's delay is 4 plus its queue's length; the least delay that neighbours report is used at once.
    January,
    /// September 1973: a line's delay is 4 plus its busy channels; a route that gets worse is held for three ticks.
    September,
}

/// The options of an IMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpOptions {
    /// Its processor.
    pub machine: ImpHardware,
    /// Reassembly buffers, in messages of eight packets: 3 with 12K of memory, 10 with 16K (2.2.1.4).
    pub reassembly: u32,
    /// Store-and-forward buffers: the most packets on their way through it.
    pub store_and_forward: u32,
    /// The most messages under way from one IMP to another (2.3).
    pub window: u32,
    /// Channels of a line: each holds one packet that waits or is not acknowledged (2.2.1.5: 8, formerly 30).
    pub channels: u16,
    /// Channels of a satellite line (2.1.2: 32).
    pub satellite_channels: u16,
    /// The time after which an unacknowledged packet is sent again.
    pub again_after: Duration,
    /// The time after which an unacknowledged packet is sent again on a satellite line.
    pub satellite_again_after: Duration,
    /// How often a packet is sent before the line is declared down.
    pub most_tries: u32,
    /// How routes are found.
    pub rule: Rule,
    /// The interval of routing messages.
    pub tick: Duration,
    /// An IMP this many hops away, or more, counts as unreachable.
    pub most_hops: u16,
    /// Whether buffers are requested before a message of several packets is sent.
    pub reservation: bool,
    /// How long an RFNM waits for buffers for the sender's next message (RFC 442, RFC 619).
    pub rfnm_waits: Duration,
    /// How long a source IMP keeps an allocation that it does not use.
    pub allocation_kept: Duration,
    /// How long a host may take to accept a message.
    pub host_patience: Duration,
    /// The time after which a source IMP queries the fate of a message.
    pub query_after: Duration,
    /// Whether a message of several packets is answered once its host has the first of them, as BBN's program of September 1973 did
    /// (measured in an emulator), and not once it has all: a host that stops in between loses the rest, which nothing reports.
    pub answers_first: bool,
    /// Buffers for messages of one packet at a destination.
    pub pending: u32,
    /// Hellos without answer after which a line is down.
    pub misses: u32,
    /// Good ticks after which it is up again.
    pub good: u32,
    /// Blocks that describe messages in reassembly; `None`: without limit. The lockup of RFC 626 came from a lack of them.
    pub reassembly_blocks: Option<u32>,
}

impl Default for ImpOptions {
    /// A 516 with 12K of memory in January 1973.
    fn default() -> Self {
        Self {
            machine: ImpHardware::H516,
            reassembly: ImpSettings::ROOM,
            store_and_forward: ImpSettings::BUFFERS,
            window: ImpSettings::WINDOW,
            channels: ImpSettings::CHANNELS,
            satellite_channels: ImpSettings::SATELLITE_CHANNELS,
            again_after: ImpSettings::AGAIN_AFTER,
            satellite_again_after: Duration(800_000_000),
            most_tries: 200,
            rule: Rule::January,
            tick: ImpSettings::ROUTING_EVERY,
            most_hops: 22,
            reservation: true,
            rfnm_waits: Duration(1_000_000_000),
            allocation_kept: Duration(125_000_000),
            host_patience: Duration(30_000_000_000),
            query_after: Duration(34_000_000_000),
            answers_first: false,
            pending: 8,
            misses: 5,
            good: 60,
            reassembly_blocks: None,
        }
    }
}

impl ImpOptions {
    /// What the formula of section 2.1.3 assumes: processors, window, buffers and channels without limit.
    pub const UNBOUNDED: Self = Self {
        machine: ImpHardware::FREE,
        reassembly: u32::MAX / 16,
        store_and_forward: u32::MAX / 2,
        window: 1 << 20,
        channels: 2048,
        satellite_channels: 2048,
        again_after: Duration(3_600_000_000_000),
        satellite_again_after: Duration(3_600_000_000_000),
        most_tries: 200,
        rule: Rule::January,
        tick: Duration(640_000_000),
        most_hops: 255,
        reservation: false,
        rfnm_waits: Duration(1_000_000_000),
        allocation_kept: Duration(125_000_000),
        host_patience: Duration(30_000_000_000),
        query_after: Duration(3_600_000_000_000),
        answers_first: false,
        pending: 8,
        misses: 5,
        good: 60,
        reassembly_blocks: None,
    };
}
