//! Turns open exchanges of a TCP connection into finished ones: with the times of their messages, and why they have no answer
//! (`void`).

use super::open_exchange::RequestRound;
use super::*;

/// The reason for a missing answer if the server closed the connection.
const SERVER_CLOSED: &str = "the server closed its connection";
/// The reason for a missing answer if the server reset the connection.
const SERVER_RESET: &str = "the server reset its connection";

/// A connection that was idle for this long between its set-up and its first request was opened in advance, ns: its set-up is no
/// part of the request.
const OPENED_AHEAD_NS: u64 = 1_000_000_000;

/// Removes the set-up from an exchange whose connection was opened long before its first request, as connection pools do.
pub(crate) fn part_from_idle_set_up(exchange: &mut Exchange) {
    let ends = [exchange.connect, exchange.handshake].into_iter().flatten();
    let ready = ends.map(|(_, last)| last).max();
    let idle = ready
        .zip(exchange.asked_ns())
        .map_or(0, |(ready, asked)| asked.saturating_sub(ready));
    if idle >= OPENED_AHEAD_NS {
        (exchange.lookup, exchange.connect, exchange.handshake) = (None, None, None);
        exchange.connect_again = 0;
    }
}

/// How an exchange ended: its kind, why nothing more is known (`void`), and when its client gave it up, ns.
struct ExchangeOutcome {
    kind: ExchangeKind,
    void: Option<&'static str>,
    gave_up: Option<u64>,
    /// Whether the answer came after its client had stopped waiting; it is dropped then.
    is_too_late: bool,
}

/// Whether an answer was never read, and came after a moment or not at all.
fn is_behind(answer: Option<&ExchangeMessage>, at_ns: u64) -> bool {
    answer.is_some_and(|answer| {
        let came = answer.arrived.or(answer.left);
        answer.read.is_none() && came.is_none_or(|(first, _)| first > at_ns)
    })
}

/// The reason for an incomplete answer.
const CUT_OFF: &str = "its answer was cut off";
/// How parsers begin the reason for a message that its connection did not bring to its end.
const ENDED: &str = "the connection ended in the middle of";

impl RequestConnection {
    /// Makes room for a new exchange: reports the oldest of those that are complete; if none is, the oldest of all.
    pub(super) fn make_room(&mut self, done: &mut Vec<Exchange>) {
        // Called at `MOST_OPEN`, which is twice as many.
        let many = self.open.len() - GO_ON;
        let whole = self
            .open
            .iter()
            .filter(|(_, open)| open.is_whole())
            .map(|(at, _)| *at)
            .take(many);
        let mut over: Vec<u64> = whole.collect();
        if over.is_empty()
            && let Some(oldest) = self.open.void_oldest(TOO_MANY_OPEN)
        {
            over.push(oldest);
            self.left_out.add(Bound::Open, 1);
        }
        self.finish_exchanges(over, true, done);
    }

    /// Reports exchanges by number. `early`: whether it was not waited for that their answers are read.
    pub(super) fn finish_exchanges(
        &mut self,
        over: Vec<u64>,
        early: bool,
        done: &mut Vec<Exchange>,
    ) {
        // If packets of one side only were captured, its exchanges are not reported.
        let one_way = self.is_one_way();
        for number in over {
            if let Some(open) = self.open.remove(number).filter(|_| !one_way) {
                self.left_out
                    .add(Bound::Unread, u64::from(early && self.is_unread(&open)));
                self.finish(number, open, done);
            }
        }
        self.forget();
    }

    /// Builds the finished exchange and adds it to `done`.
    fn finish(&mut self, number: u64, open: OpenRequestExchange, done: &mut Vec<Exchange>) {
        let asks = open.asks;
        let rounds = self.rounds(&open);
        let at = |round: &RequestRound, role: ExchangeRole, direction| {
            round.begins[role as usize]
                .map(|from| self.message(direction, from, round.ends[role as usize]))
        };
        let said = |round: &RequestRound| at(round, ExchangeRole::Request, asks);
        let answered = |round: &RequestRound| {
            let answer = at(round, ExchangeRole::Response, other(asks))?;
            let asked = said(round).and_then(|request| request.arrived.or(request.left));
            let own = &self.directions[other(asks) as usize];
            Some(ExchangeMessage {
                paused_ns: asked.map_or(answer.paused_ns, |(_, asked_ns)| {
                    own.paused_after(answer.from, answer.end, asked_ns)
                }),
                ..answer
            })
        };
        let request = rounds.first().and_then(said);
        let response = rounds.last().and_then(answered);
        let turns = rounds
            .iter()
            .zip(rounds.iter().skip(1))
            .filter_map(|(before, next)| answered(before).zip(said(next)))
            .collect();
        let outcome = self.outcome(&open, request.as_ref(), response.as_ref());
        // The set-up belongs to the request that was asked first, which need not be the one that is answered first.
        let is_first = self.is_first && !self.open.has_earlier(number);
        let connect = self.syn_ns.zip(self.established_ns).filter(|_| is_first);
        let mut exchange = Exchange {
            flow: self.flow,
            number,
            kind: outcome.kind,
            protocol: self
                .conversation
                .protocol_of(outcome.kind, number)
                .unwrap_or("alternating"),
            exact: self.conversation.is_exact(),
            name: open.name,
            status: open.status,
            context: open.context,
            client: self.ends[asks as usize].clone(),
            server: self.ends[1 - asks as usize].clone(),
            seen_at: self.seen_at,
            reversed: asks == EventStreamDirection::Back,
            request: request.unwrap_or_default(),
            response: response.filter(|_| !outcome.is_too_late),
            turns,
            parts: open.parts,
            lookup: self.lookup.filter(|_| is_first),
            connect,
            connect_again: if is_first { self.syn_again } else { 0 },
            handshake: None,
            round_trip_ns: self.round_trip_ns.or(self.least_ack_ns),
            void: outcome.void,
            is_unopened: false,
            gave_up: outcome.gave_up,
        };
        self.has_answers |= exchange.kind == ExchangeKind::Call
            && (exchange.response.is_some() || exchange.gave_up.is_some());
        self.add_handshake(&mut exchange, is_first);
        part_from_idle_set_up(&mut exchange);
        done.push(exchange);
    }

    /// The round trips (rounds) of an exchange. What the client said before it had the previous answer is merged into the round of
    /// that answer.
    fn rounds(&self, open: &OpenRequestExchange) -> Vec<RequestRound> {
        let mut rounds = vec![open.first];
        for (_, next) in &open.later {
            let Some(before) = rounds.last_mut() else {
                break;
            };
            let answered = before.begins[1]
                .zip(before.ends[1])
                .and_then(|(from, end)| self.message(other(open.asks), from, Some(end)).came_ns());
            let asked = next.begins[0]
                .and_then(|from| self.message(open.asks, from, next.ends[0]).handed_ns());
            match answered.zip(asked) {
                Some((answered, asked)) if answered <= asked => rounds.push(*next),
                _ => {
                    before.ends = next.ends;
                    before.begins[1] = before.begins[1].or(next.begins[1]);
                }
            }
        }
        rounds
    }

    /// How an exchange ended: whether it was answered, and why not.
    fn outcome(
        &self,
        open: &OpenRequestExchange,
        request: Option<&ExchangeMessage>,
        response: Option<&ExchangeMessage>,
    ) -> ExchangeOutcome {
        let (kind, asks, last) = (open.kind, open.asks, open.last());
        let is_cut = last.ends[1].is_none() && kind != ExchangeKind::OneWay;
        let mut void = open.void.or_else(|| {
            is_cut.then_some(if last.begins[1].is_some() {
                CUT_OFF
            } else {
                UNANSWERED
            })
        });
        let too_late = self
            .hung_up(asks)
            .filter(|hung_up| kind == ExchangeKind::Call && is_behind(response, *hung_up));
        if too_late.is_some() {
            void = Some(UNANSWERED);
        }
        let is_unmet =
            kind == ExchangeKind::Call && last.ends[0].is_some() && void.is_some_and(is_unanswered);
        let ended_by_server = self.ended_by_server(asks);
        let closed = ended_by_server
            .map(|(at_ns, _)| at_ns)
            .or(self.directions[asks as usize].closed_ns);
        let of_stream = (void == Some(RESET_BEFORE)).then_some(open.over_ns);
        let has_begun = is_cut && last.begins[1].is_some() && kind == ExchangeKind::Call;
        let was_cut = has_begun && void.is_some_and(|why| why.starts_with(ENDED) || why == CUT_OFF);
        if was_cut {
            void = Some(CUT_OFF);
        }
        // A client that asks on a connection that is closed already learns that when it asks.
        let asked = request.and_then(|request| request.left.or(request.arrived));
        let asked_ns = asked.map_or(0, |(_, last)| last);
        let gave_up = of_stream
            .or(too_late)
            .or(closed)
            .filter(|_| is_unmet || was_cut)
            .map(|at_ns| at_ns.max(asked_ns));
        if let Some((_, why)) = ended_by_server
            && is_unmet
            && of_stream.or(too_late).is_none()
        {
            void = Some(why);
        }
        let until = gave_up.unwrap_or(self.last_ns);
        let wants_none =
            is_unmet && request.is_some_and(|request| self.wants_no_answer(asks, request, until));
        let is_too_late = too_late.is_some();
        if wants_none {
            return ExchangeOutcome {
                kind: ExchangeKind::OneWay,
                void: None,
                gave_up: None,
                is_too_late,
            };
        }
        let is_open = |why: &str| why == CUT_OFF || why.starts_with(ENDED) || is_unanswered(why);
        if self.is_cut_by_observer && kind == ExchangeKind::Call && void.is_some_and(is_open) {
            void = Some(UNDER_WAY);
        }
        ExchangeOutcome {
            kind,
            void,
            gave_up: gave_up.filter(|_| void != Some(UNDER_WAY)),
            is_too_late,
        }
    }

    /// If the asked side closed or reset the connection before the other did: when the other side heard it, and the reason for a
    /// missing answer.
    fn ended_by_server(&self, asks: EventStreamDirection) -> Option<(u64, &'static str)> {
        let (client, server) = (
            &self.directions[asks as usize],
            &self.directions[1 - asks as usize],
        );
        let at_ns = server.closed_ns?;
        let is_first = client.closed_ns.is_none_or(|closed_ns| at_ns <= closed_ns);
        let why = if server.reset_ns.is_some() {
            SERVER_RESET
        } else {
            SERVER_CLOSED
        };
        is_first.then_some((server.end_arrived_ns.unwrap_or(at_ns), why))
    }

    /// Collects the times of handshakes; the first call after them (`is_first`) gets them.
    fn add_handshake(&mut self, exchange: &mut Exchange, is_first: bool) {
        if exchange.kind == ExchangeKind::Handshake {
            let span = exchange.asked_ns().zip(exchange.end_ns());
            self.handshake = span.map(|(from, to)| {
                self.handshake
                    .map_or((from, to), |(first, last)| (first.min(from), last.max(to)))
            });
        } else if exchange.kind == ExchangeKind::Call && is_first {
            exchange.handshake = self.handshake;
            self.is_first = false;
        }
    }

    /// Whether the program has not read the end of an exchange's answer yet. Its socket must be observed and its side still open.
    pub(super) fn is_unread(&self, open: &OpenRequestExchange) -> bool {
        let Some(end) = open.last().ends[1].filter(|_| open.void.is_none()) else {
            return false;
        };
        let reads = open.asks as usize;
        let direction = &self.directions[1 - reads];
        self.sockets[reads]
            && self.directions[reads].closed_ns.is_none()
            && direction.read.end() < end
    }

    /// How many exchanges are open.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether more than [`MOST_UNREAD`] exchanges are open: then it is not waited for that answers are read.
    pub(super) fn is_behind(&self) -> bool {
        self.open.len() > MOST_UNREAD
    }

    /// Whether a message of an unknown protocol expects no answer: its sender goes on sending until it closes and the other side
    /// never says anything, or it sends the message last and closes before an answer could come.
    pub(super) fn wants_no_answer(
        &self,
        side: EventStreamDirection,
        request: &ExchangeMessage,
        until: u64,
    ) -> bool {
        let other = &self.directions[1 - side as usize];
        let is_silent = other.left.end() == 0 && other.arrived.progress().end() == 0;
        let sent = request.left.or(request.arrived);
        // A message after the first one in an unanswered stream continues that stream, so the time counts from the stream's
        // beginning.
        let goes_on = sent.is_some_and(|(first, last)| {
            let first = if request.from > 0 {
                self.first_ns
            } else {
                first
            };
            until.saturating_sub(last) <= last.saturating_sub(first)
        });
        let round_trip_ns = self.round_trip_ns.or(self.least_ack_ns).unwrap_or(0);
        let leaves = self.directions[side as usize].closed_ns == Some(until)
            && sent.is_some_and(|(_, last)| until.saturating_sub(last) < round_trip_ns);
        !self.conversation.is_exact() && ((is_silent && goes_on) || leaves)
    }

    /// When a side closed the connection, ns, if it also reset it: it accepts no data any more.
    pub(super) fn hung_up(&self, side: EventStreamDirection) -> Option<u64> {
        let own = &self.directions[side as usize];
        own.closed_ns.filter(|_| own.reset_ns.is_some())
    }

    /// The failed attempt to set the connection up, as an exchange; `None` if it was set up or has data.
    pub(crate) fn unopened(&self) -> Option<Exchange> {
        let asked = self
            .syn_ns
            .filter(|_| self.established_ns.is_none() && !self.has_data())?;
        let answers = &self.directions[EventStreamDirection::Back as usize];
        // If the server sent something other than a reset, the connection was not refused; only its SYN-ACK did not arrive where it
        // is seen.
        if answers.position.is_some() && answers.reset_ns.is_none() {
            return None;
        }
        let request = ExchangeMessage {
            left: Some((asked, asked)),
            again: self.syn_again,
            ..ExchangeMessage::default()
        };
        Some(Exchange {
            flow: self.flow,
            number: 0,
            kind: ExchangeKind::Call,
            protocol: "TCP",
            exact: true,
            name: RedactedName::default(),
            status: RedactedName::default(),
            context: None,
            client: self.ends[0].clone(),
            server: self.ends[1].clone(),
            seen_at: self.seen_at,
            reversed: false,
            request,
            response: None,
            turns: Vec::new(),
            parts: 0,
            lookup: self.lookup,
            connect: None,
            connect_again: self.syn_again,
            handshake: None,
            round_trip_ns: None,
            void: Some(if answers.reset_ns.is_some() {
                "its connection was refused"
            } else {
                "nothing answered its connection"
            }),
            is_unopened: true,
            gave_up: answers.end_arrived_ns.or(answers.reset_ns),
        })
    }

    /// The times at which the bytes `from..end` of a direction passed each point, and what held them up. Without `end`, all bytes so
    /// far.
    pub(super) fn message(
        &self,
        direction: EventStreamDirection,
        from: u64,
        end: Option<u64>,
    ) -> ExchangeMessage {
        let own = &self.directions[direction as usize];
        let end = end
            .unwrap_or_else(|| own.left.end().max(own.arrived.progress().end()))
            .max(from);
        let pair = |progress: &StreamPointProgress| {
            Some((progress.moment_of(from)?.at_ns, progress.whole(end)?.at_ns))
        };
        let arrived = pair(own.arrived.progress());
        let read = own.read.whole(end);
        let losses = own.waits_for_losses(from, end);
        // If its receiver is not observed, the message has left for good when its last retransmission has left.
        let is_receiver_seen = self.ends[1 - direction as usize].host.is_some();
        let mended_ns = own.last_again_ns(from, end).filter(|_| !is_receiver_seen);
        let left = pair(&own.left).map(|(first, last)| (first, last.max(mended_ns.unwrap_or(0))));
        let (first_ns, last_ns) = left.or(arrived).unwrap_or_default();
        // What waited since before the message began did not wait for its own acknowledgement.
        let held = own.held.iter().filter(|(behind, _, since)| {
            *behind > from && *behind <= end && *since >= first_ns && !own.is_nagle_off
        });
        let overlap =
            |since: u64, until: u64| until.min(last_ns).saturating_sub(since.max(first_ns));
        let sum = |all: u64, ns: u64| all.saturating_add(ns);
        let full = own
            .full
            .iter()
            .map(|(since, until)| overlap(*since, *until));
        let window_ns = full
            .chain(own.full_since.map(|since| overlap(since, last_ns)))
            .fold(0, sum);
        ExchangeMessage {
            from,
            end,
            written: pair(&own.written),
            left,
            arrived,
            read: read.map(|moment| moment.at_ns),
            threads: (
                own.written
                    .moment_of(from)
                    .map_or(0, |moment| moment.thread),
                read.map_or(0, |moment| moment.thread),
            ),
            late_ns: late_ns(
                &own.arrived.progress().between(from, end),
                &own.read.between(from, end),
            ),
            again: losses.segments,
            again_ns: losses.ns,
            held_ns: held
                .map(|(_, at_ns, since)| at_ns.saturating_sub(*since))
                .fold(0, sum),
            window_ns,
            paused_ns: own.paused_ns(from, end),
            awaited_ns: own.awaited_ns(from, end),
            stalled_ns: own.stalled_ns(from, end),
            behind_ns: own.behind_ns(from),
        }
    }
}
