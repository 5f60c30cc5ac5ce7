//! Measures the time that each part of an exchange of one packet takes: Table 2 of the paper, as far as it can be measured.

use super::{
    Halt, StandaloneProgram, StandaloneSample, StandaloneSetup, WARM_UP, both, elapsed, station,
};
use std::iter;

/// What the parts of a stop-and-wait exchange of one packet take, in seconds. Each includes one reading of the clock (some
/// 20 to 50 ns). The time that a frame is on the network is part of the call that sends it: on a virtual link the two cannot be
/// separated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopAndWaitCosts {
    /// The call that sends a data packet: C (copying) and T (transmission) at the sender's interface.
    pub send_data: StandaloneSample,
    /// Copying a data packet out of the memory shared with the kernel: C at the receiver's interface.
    pub take_data: StandaloneSample,
    /// The call that sends an acknowledgement: Ca (copying) and Ta (transmission).
    pub send_acknowledgement: StandaloneSample,
    /// Copying an acknowledgement out of the memory shared with the kernel: Ca.
    pub take_acknowledgement: StandaloneSample,
    /// The whole exchange, with no clock read in between. It may be less than the sum: a frame is in the other side's
    /// memory before the call that sends it has returned.
    pub observed: StandaloneSample,
}

impl StopAndWaitCosts {
    /// The sum of the parts' medians, in seconds.
    #[must_use]
    pub fn sum(&self) -> f64 {
        let parts = [
            self.send_data,
            self.take_data,
            self.send_acknowledgement,
            self.take_acknowledgement,
        ];
        parts.iter().map(|part| part.median).sum()
    }
}

/// Exchanges one packet [`StandaloneSetup::runs`] times with the parts timed, and as often without. [`StandaloneSetup::packets`] is
/// ignored.
///
/// # Errors
/// See [`elapsed`].
pub fn costs(setup: &StandaloneSetup<'_>) -> Result<StopAndWaitCosts, Halt> {
    let setup = StandaloneSetup {
        packets: 1,
        ..*setup
    };
    let turns = setup.runs.saturating_add(WARM_UP) as usize;
    let (mut near, mut far) = station::open_stations(&setup)?;
    near.take_times(turns);
    far.take_times(turns);
    let programs = iter::repeat_n(StandaloneProgram::StopAndWait, turns);
    let (near, far) = both(&setup, near, far, programs, |_, _| {})?;
    let [send_data, _, _, take_acknowledgement] = near.times(WARM_UP as usize);
    let [_, take_data, send_acknowledgement, _] = far.times(WARM_UP as usize);
    let observed = elapsed(&setup)?.stop_and_wait;
    Ok(StopAndWaitCosts {
        send_data,
        take_data,
        send_acknowledgement,
        take_acknowledgement,
        observed,
    })
}
