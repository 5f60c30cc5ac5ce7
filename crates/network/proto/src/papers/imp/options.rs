//! What is chosen of an IMP: its processor, its memory, the rules of its time.

use stackline_core::network::ImpSettings;
use stackline_core::time::Duration;

/// A type of machine: how fast, and what packets cost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpHardware {
    /// A cycle of its memory, ns; 0 is infinitely fast.
    pub cycle_ns: u64,
    /// What things cost it, in cycles.
    pub costs: ImpCycleCosts,
}

/// Cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpCycleCosts {
    /// A frame comes over a line.
    pub line_in: u64,
    /// A packet is looked at: where it goes, and whether there is room.
    pub task: u64,
    /// A frame is put on a line.
    pub line_out: u64,
    /// A word of a packet comes from a host, in hundredths.
    pub host_in_word: u64,
    /// A word of a message goes to a host, in hundredths.
    pub host_out_word: u64,
    /// An entry of a routing message.
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
    /// One that costs no time.
    pub const FREE: Self = Self {
        cycle_ns: 0,
        costs: ImpCycleCosts::PRINTED,
    };

    /// The time of so many cycles.
    #[must_use]
    pub const fn time(&self, cycles: u64) -> Duration {
        Duration(self.cycle_ns.saturating_mul(cycles))
    }
}

/// How the way of a packet is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// January 1973: delay is the queue's length and 4, the least of what neighbours say wins at once.
    January,
    /// September 1973: a line's delay is 4 and its busy channels; who gets worse is held for three ticks.
    September,
}

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpOptions {
    /// Its processor.
    pub machine: ImpHardware,
    /// Messages of eight packets that it has room to put together: 3 with 12K of memory, 10 with 16K (2.2.1.4).
    pub reassembly: u32,
    /// Packets on their way through it, at most.
    pub store_and_forward: u32,
    /// Messages under way from one IMP to another, at most (2.3).
    pub window: u32,
    /// Packets that a line has or waits for: one a channel, at most (2.2.1.5: 8, formerly 30).
    pub channels: u16,
    /// The same of a satellite link (2.1.2: 32).
    pub satellite_channels: u16,
    /// A packet without acknowledgement goes again after this.
    pub again_after: Duration,
    /// The same over a satellite link.
    pub satellite_again_after: Duration,
    /// A packet goes again so often, then the line is down.
    pub most_tries: u32,
    /// How ways are found.
    pub rule: Rule,
    /// How often routing is sent.
    pub tick: Duration,
    /// An IMP so many hops away cannot be reached.
    pub most_hops: u16,
    /// Whether room is asked for before a message is sent.
    pub reservation: bool,
    /// How long the answer to a message waits for room for the next (R442, R619).
    pub rfnm_waits: Duration,
    /// How long room that nobody uses is kept by who was given it.
    pub allocation_kept: Duration,
    /// How long a host may take to accept a message.
    pub host_patience: Duration,
    /// After this what became of a message is asked.
    pub query_after: Duration,
    /// Whether a message of several packets is answered once its host has the first of them, as BBN's program of September 1973 did
    /// (measured in an emulator), and not once it has all: a host that stops in between loses the rest, which nothing reports.
    pub answers_first: bool,
    /// Messages of one packet that wait for room at their destination, at most.
    pub pending: u32,
    /// Hellos without answer after which a line is down.
    pub misses: u32,
    /// Good ones after which it is up again.
    pub good: u32,
    /// Blocks that say what is being put together: none is needed where absent. RFC 626's lockup came for want of them.
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
    /// What the formula of section 2.1.3 takes for granted: processors, window, room and channels without limit.
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
