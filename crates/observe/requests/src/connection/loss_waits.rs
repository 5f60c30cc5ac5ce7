//! What losses cost a message: the time until its delivery resumed, with overlapping times counted once, minus what the new bytes
//! that passed meanwhile take on average. A sender that goes on sending new bytes while it repairs a loss loses no time by it.

use super::stream_state::RequestStreamState;
use crate::stream_progress::StreamPointProgress;

/// The retransmissions of a message and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LossWaits {
    /// How many segments of the message were sent again.
    pub(super) segments: u64,
    /// How long they held the message up in all, ns.
    pub(super) ns: u64,
}

/// A time in which something that was lost was missing, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LossEpisode {
    since_ns: u64,
    until_ns: u64,
}

/// The bytes `from..end` of a message, and their progress at the point where it is seen how they pass.
#[derive(Clone, Copy)]
struct PassingMessage<'p> {
    progress: &'p StreamPointProgress,
    from: u64,
    end: u64,
    /// How long its sender had nothing to send, ns.
    paused_ns: u64,
}

impl PassingMessage<'_> {
    /// How many new bytes of the message passed during an episode.
    fn passed_in(&self, episode: LossEpisode) -> u64 {
        let end_at = |at_ns| self.progress.end_at(at_ns).clamp(self.from, self.end);
        // Bytes that the end of the episode released passed after it, so its last ns does not count.
        end_at(episode.until_ns.saturating_sub(1)).saturating_sub(end_at(episode.since_ns))
    }

    /// What an episode cost, ns: its duration minus what the new bytes that passed in it take on average, and all of the time after
    /// the message's last new byte.
    fn cost_ns(&self, episode: LossEpisode) -> u64 {
        let took_ns = episode.until_ns.saturating_sub(episode.since_ns);
        let ends = self
            .progress
            .moment_of(self.from)
            .zip(self.progress.whole(self.end));
        let Some((first, last)) = ends else {
            return took_ns;
        };
        let sending_ns = last
            .at_ns
            .saturating_sub(first.at_ns)
            .saturating_sub(self.paused_ns);
        let behind_ns = episode
            .until_ns
            .saturating_sub(last.at_ns.max(episode.since_ns));
        let bytes = u128::from(self.passed_in(episode));
        let usual = bytes * u128::from(sending_ns) / u128::from((self.end - self.from).max(1));
        let usual_ns = u64::try_from(usual).unwrap_or(u64::MAX);
        let within_ns = took_ns.saturating_sub(behind_ns).saturating_sub(usual_ns);
        within_ns.saturating_add(behind_ns)
    }
}

impl RequestStreamState {
    /// The receiver acknowledges all before `up_to`: drops segments that were sent again less than three quarters of a round trip
    /// before, as the acknowledgement cannot be for the second copy, so the first was not lost.
    pub(super) fn drop_needless(&mut self, up_to: u64, at_ns: u64, round_trip_ns: u64) {
        let soon_ns = round_trip_ns / 4 * 3;
        let is_needless = |(_, behind, again_ns, _): &(u64, u64, u64, u64)| {
            *behind <= up_to && at_ns.saturating_sub(*again_ns) < soon_ns
        };
        while self.again.back().is_some_and(is_needless) {
            self.again.pop_back();
        }
    }

    /// When bytes between two offsets were last sent again, ns.
    pub(super) fn last_again_ns(&self, from: u64, end: u64) -> Option<u64> {
        let again = self.again.iter();
        let of_these = again.filter(|(begin, behind, ..)| *begin < end && *behind > from);
        of_these.map(|(_, _, at_ns, _)| *at_ns).max()
    }

    /// How many segments between two offsets were sent again, and what these losses cost.
    pub(super) fn waits_for_losses(&self, from: u64, end: u64) -> LossWaits {
        let mut waits: Vec<LossEpisode> = self
            .again
            .iter()
            .filter(|(begin, behind, ..)| *begin < end && *behind > from)
            .map(|(_, _, at_ns, late_ns)| LossEpisode {
                since_ns: at_ns.saturating_sub(*late_ns),
                until_ns: *at_ns,
            })
            .collect();
        let segments = waits.len() as u64;
        waits.sort_unstable_by_key(|wait| wait.since_ns);
        let mut episodes: Vec<LossEpisode> = Vec::new();
        for wait in waits {
            match episodes.last_mut() {
                Some(last) if last.until_ns >= wait.since_ns => {
                    last.until_ns = last.until_ns.max(wait.until_ns);
                }
                _ => episodes.push(wait),
            }
        }
        let is_known = self.left.end() == 0 || self.farthest.end() >= end;
        let progress = if is_known { &self.farthest } else { &self.left };
        let message = PassingMessage {
            progress,
            from,
            end,
            paused_ns: self.paused_ns(from, end) + self.awaited_ns(from, end),
        };
        LossWaits {
            segments,
            ns: episodes
                .into_iter()
                .map(|episode| message.cost_ns(episode))
                .fold(0, u64::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A sender of 100 bytes a millisecond, and what it sends again: from which byte on, after how long.
    fn sender(pauses: &[(u64, u64)], again: &[(u64, u64)]) -> RequestStreamState {
        let mut state = RequestStreamState::default();
        let mut at_ms = 0;
        for part in 0..100 {
            at_ms += 1 + pauses
                .iter()
                .filter(|(behind, _)| *behind == part)
                .map(|(_, ms)| ms)
                .sum::<u64>();
            state.left.pass(100 * (part + 1), at_ms * MS, 0);
        }
        for (part, late_ms) in again {
            let first_ms = state
                .left
                .moment_of(100 * part)
                .map_or(0, |moment| moment.at_ns)
                / MS;
            let at_ns = (first_ms + late_ms) * MS;
            state
                .again
                .push_back((100 * part, 100 * (part + 1), at_ns, late_ms * MS));
        }
        state
    }

    fn cost_ms(state: &RequestStreamState) -> u64 {
        state.waits_for_losses(0, 10_000).ns / MS
    }

    #[test]
    fn what_is_mended_while_new_bytes_go_on_costs_nothing() {
        let state = sender(&[], &[(10, 20), (15, 20), (40, 20)]);
        assert_eq!(state.waits_for_losses(0, 10_000).segments, 3);
        // At each end less than what one new part takes may be lost.
        assert!(cost_ms(&state) <= 4, "{}", cost_ms(&state));
    }

    #[test]
    fn the_end_of_a_message_waits_for_all_of_it() {
        // Of the 30 ms that the last byte but five was missing, five were those of the rest.
        let late = cost_ms(&sender(&[], &[(95, 30)]));
        assert!((25..=26).contains(&late), "{late}");
        // Two that are missing at the same time are one wait.
        let both = cost_ms(&sender(&[], &[(95, 30), (96, 30)]));
        assert!((25..=27).contains(&both), "{both}");
    }

    #[test]
    fn a_sender_that_stands_still_meanwhile_loses_the_time() {
        let late = cost_ms(&sender(&[(50, 200)], &[(49, 201)]));
        assert!((199..=201).contains(&late), "{late}");
    }

    #[test]
    fn losses_all_the_time_cost_what_is_mended_behind_the_last_byte() {
        let again: Vec<(u64, u64)> = (0..100).map(|part| (part, 40)).collect();
        let late = cost_ms(&sender(&[], &again));
        assert!((40..=42).contains(&late), "{late}");
    }

    #[test]
    fn a_message_that_nobody_sent_again_waits_for_nothing() {
        assert_eq!(
            sender(&[(50, 200)], &[]).waits_for_losses(0, 10_000),
            LossWaits::default()
        );
        let of_others = sender(&[], &[(60, 200)]);
        assert_eq!(of_others.waits_for_losses(0, 5_000), LossWaits::default());
    }
}
