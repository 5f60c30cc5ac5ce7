//! The causes of the time that a request lies unread at its server: the server handles others, its thread does something else, or the cause
//! is unknown.

use super::RequestAccounts;
use crate::findings::requests::cause_costs::RequestCause;
use crate::findings::requests::request::{RequestTimes, TracedRequest, server_name};

impl RequestAccounts<'_> {
    /// The causes of the time that a request lay unread at the server, ns.
    pub(super) fn unread(
        &self,
        request: &TracedRequest,
        times: RequestTimes,
    ) -> Vec<(RequestCause, i64)> {
        let others = self.unread_while_others(request, times);
        let Some(wait) = request.wait else {
            let away = times.unread - others;
            return vec![(RequestCause::Queued, others), (RequestCause::Away, away)];
        };
        let of_machine = [
            (RequestCause::NoCore, wait.runnable),
            (RequestCause::Stopped, wait.stopped),
            (RequestCause::Collect, wait.collect),
            (RequestCause::Observer, wait.observer),
        ];
        let does = [
            (RequestCause::Compute, wait.cpu),
            (RequestCause::Disk, wait.disk),
            (RequestCause::ChildProcess, wait.child),
            // A thread without work waits at a lock, perhaps for a time, until another hands it a request.
            (RequestCause::Away, wait.lock + wait.sleep),
        ];
        let sum = |parts: &[(RequestCause, i64)]| parts.iter().map(|(_, ns)| ns).sum::<i64>();
        let (machine_ns, busy) = (sum(&of_machine), sum(&does));
        // Work of the thread while the server has other requests is done for those.
        let for_others = busy.min(others);
        let rest = (times.unread - machine_ns - busy).max(0);
        let queued = (others - for_others - machine_ns).clamp(0, rest);
        let own = |(cause, ns): (RequestCause, i64)| {
            let of_own = i128::from(ns) * i128::from(busy - for_others) / i128::from(busy.max(1));
            (cause, of_own as i64)
        };
        let unknown = [
            (RequestCause::Queued, for_others + queued),
            (RequestCause::Away, rest - queued),
        ];
        of_machine
            .into_iter()
            .chain(does.map(own))
            .chain(unknown)
            .collect()
    }

    /// How much of the time that a request lay unread its server had other requests, ns.
    fn unread_while_others(&self, request: &TracedRequest, times: RequestTimes) -> i64 {
        let Some((read, _)) = request.at_server().filter(|_| times.unread > 0) else {
            return 0;
        };
        let from = read.saturating_sub(times.unread as u64);
        let spans = self
            .working
            .get(&server_name(request))
            .map_or(&[][..], Vec::as_slice);
        let (mut busy, mut until) = (0, from);
        for (begin, end, unit) in spans.iter().take_while(|(begin, ..)| *begin < read) {
            if *unit != request.unit && *end > until {
                busy += end.min(&read).saturating_sub(*begin.max(&until));
                until = (*end).min(read);
            }
        }
        i64::try_from(busy)
            .unwrap_or(times.unread)
            .min(times.unread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestServerWork;
    use std::collections::HashMap;

    const MS: i64 = 1_000_000;

    /// A request of a program that ends at so many ms: unread, worked on and sent for so long.
    fn request(
        unit: i64,
        program: &str,
        end_ms: i64,
        [unread, work, sending]: [i64; 3],
    ) -> TracedRequest {
        TracedRequest {
            unit,
            is_call: true,
            client: "here".into(),
            server: "here".into(),
            programs: ("curl".into(), program.into()),
            end_ns: (end_ms * MS) as u64,
            times: Some(RequestTimes {
                total: (unread + work + sending) * MS,
                unread: unread * MS,
                work: work * MS,
                sending: sending * MS,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        }
    }

    /// What the second of some requests, which lies unread for 50 ms, waits for, in ms.
    fn waits(all: &[TracedRequest]) -> Vec<(RequestCause, i64)> {
        let accounts = RequestAccounts::on_network(all, None, HashMap::new());
        let parts = accounts.unread(&all[1], all[1].times.unwrap());
        let parts = parts.into_iter().map(|(cause, ns)| (cause, ns / MS));
        parts.filter(|(_, ms)| *ms > 0).collect()
    }

    fn thread(cpu: i64, lock: i64, socket: i64) -> Option<RequestServerWork> {
        Some(RequestServerWork {
            cpu: cpu * MS,
            lock: lock * MS,
            socket: socket * MS,
            ..RequestServerWork::default()
        })
    }

    #[test]
    fn a_server_that_has_one_request_at_a_time_handles_no_other() {
        // Of another program of the same host is the one that is made for it.
        let alone = |wait| {
            let unread = TracedRequest {
                wait,
                ..request(2, "gunicorn", 160, [50, 10, 0])
            };
            waits(&[request(1, "nginx", 170, [0, 80, 0]), unread])
        };
        assert_eq!(alone(None), [(RequestCause::Away, 50)]);
        // A pool's thread waits for work, and runs a little.
        let pool = alone(thread(4, 46, 0));
        assert_eq!(pool, [(RequestCause::Compute, 4), (RequestCause::Away, 46)]);
    }

    #[test]
    fn a_worker_that_sends_an_answer_handles_that() {
        let unread = TracedRequest {
            wait: thread(2, 0, 48),
            ..request(2, "gunicorn", 160, [50, 10, 0])
        };
        let large = request(1, "gunicorn", 150, [0, 10, 90]);
        assert_eq!(waits(&[large, unread]), [(RequestCause::Queued, 50)]);
    }
}
