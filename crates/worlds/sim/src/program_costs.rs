//! The time that programs take of their host's processor.

use stackline_core::network::{NetworkHost, ProgramCosts};
use stackline_core::time::{Duration, Instant};

/// The costs of a host's programs, at the speed of its processor.
#[derive(Clone, Debug)]
pub struct HostWorkCosts {
    work: ProgramCosts,
    speed: f64,
}

impl HostWorkCosts {
    /// The costs of a host; `None` where its programs take no time.
    #[must_use]
    pub fn from_host(host: &NetworkHost) -> Option<Self> {
        (!host.work.is_nothing()).then(|| Self {
            work: host.work.clone(),
            speed: host.interface.speed(),
        })
    }

    /// The time of an operation on that many bytes.
    #[must_use]
    pub fn operation(&self, bytes: u64) -> Duration {
        self.scaled(self.work.operation_ns(bytes))
    }

    /// The time of that many further bytes of an operation that is under way.
    #[must_use]
    pub fn bytes(&self, bytes: u64) -> Duration {
        self.scaled(self.work.ns_per_byte * bytes as f64)
    }

    /// The time to pass a message between a program and its transport.
    #[must_use]
    pub fn message(&self) -> Duration {
        self.scaled(self.work.per_message.0 as f64)
    }

    /// The time of a switch from one program to another.
    #[must_use]
    pub fn switch(&self) -> Duration {
        self.scaled(self.work.per_switch.0 as f64)
    }

    /// Converts ns at the speed for which costs were measured to this host's speed.
    #[must_use]
    pub fn scaled(&self, ns: f64) -> Duration {
        Duration((ns / self.speed + 0.5) as u64)
    }

    /// When a program notices what has arrived at `now`: at once, or at its next poll.
    #[must_use]
    pub fn seen(&self, now: Instant) -> Instant {
        let Some(every) = self.work.polls.filter(|every| *every > Duration::ZERO) else {
            return now;
        };
        Instant(now.0.div_ceil(every.0) * every.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::NetworkInterface;

    #[test]
    fn costs_are_those_of_the_measured_speed_divided_by_its_own() {
        const MS: u64 = 1_000_000;
        let work = ProgramCosts {
            per_operation: Duration(2 * MS),
            ns_per_byte: 1e3,
            polls: Some(Duration(200 * MS)),
            ..ProgramCosts::default()
        };
        let interface = NetworkInterface {
            cpu_speed: Some(2.0),
            ..NetworkInterface::default()
        };
        let costs = HostWorkCosts::from_host(&NetworkHost {
            work,
            interface,
            ..NetworkHost::default()
        })
        .unwrap();
        assert_eq!(
            (costs.operation(1000), costs.bytes(1000)),
            (Duration(3 * MS / 2), Duration(MS / 2))
        );
        // Who looks now and then sees it at the next look.
        let seen = [0, 1, 200, 201].map(|at| costs.seen(Instant(at * MS)).0 / MS);
        assert_eq!(seen, [0, 200, 200, 400]);
        assert!(HostWorkCosts::from_host(&NetworkHost::default()).is_none());
    }
}
