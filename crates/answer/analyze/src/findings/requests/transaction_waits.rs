//! Database statements that wait for the transaction of another connection (a row lock, or a pool without a free connection): each time one is answered, that connection has
//! just ended its transaction, which had begun before the statement came.

use crate::findings::requests::request::TracedRequest;
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// A statement that waited for a transaction is answered within this time after the transaction's end, ns.
const RIGHT_AFTER_NS: u64 = 3_000_000;
/// The least number of statements answered so.
const HABIT: usize = 3;
/// The least share of the waiting statements that must be answered so.
const OFTEN: f64 = 0.6;
/// How many times as many as expected by chance must be answered so: transactions end often at a busy server.
const BEYOND_CHANCE: f64 = 3.0;
/// The protocols of databases with transactions.
const DATABASES: [&str; 2] = ["PostgreSQL", "MySQL"];

/// The transaction that statements wait for.
pub(super) struct TransactionWait {
    /// The index of the first request that ended such a transaction and is of the program that most of them are of.
    pub(super) ends_with: usize,
    /// Whether most of those requests come from the same program as the statements that waited.
    pub(super) is_of_same_program: bool,
    /// Whether what they wait for is a connection of a pool: their server hands statements on to another one, or they are statements that no
    /// row lock holds up.
    pub(super) is_for_pool: bool,
    /// The number of statements that were answered right after the end of a transaction.
    pub(super) hits: usize,
    /// The number of statements examined.
    pub(super) waits: usize,
}

impl TransactionWait {
    /// The confidence of the finding.
    pub(super) fn confidence(&self) -> f64 {
        let share = self.hits as f64 / self.waits.max(1) as f64;
        // Few hits may still be chance: each one halves the doubt.
        let known = 1.0 - 0.5_f64.powi(i32::try_from(self.hits).unwrap_or(i32::MAX).min(10));
        (0.5 + 0.4 * share * known).min(0.9)
    }
}

/// A transaction that has ended.
struct EndedTransaction {
    /// The flow of its connection.
    flow: u32,
    /// When it began, reference time.
    from_ns: u64,
    /// When its last statement reached the server, reference time.
    to_ns: u64,
    /// The index of the request that ended it.
    ended_by: usize,
}

/// The transaction of another connection that the statements in these rows (time, row) wait for; `None` if they do not.
pub(super) fn find_transaction_wait(
    all: &[TracedRequest],
    rows: &[(i64, u32)],
) -> Option<TransactionWait> {
    let by_row: BTreeMap<u32, usize> = all
        .iter()
        .enumerate()
        .map(|(at, one)| (one.row, at))
        .collect();
    let waiting: Vec<&TracedRequest> = rows
        .iter()
        .filter_map(|(_, row)| Some(&all[*by_row.get(row)?]))
        .filter(|one| DATABASES.contains(&one.protocol.as_str()))
        .collect();
    let server = waiting.first()?;
    let transactions = transactions(all, server);
    let mut found: Vec<(usize, bool)> = Vec::new();
    let (mut chance, mut waits) = (0.0, 0);
    for one in &waiting {
        let Some((from_ns, to_ns)) = one.at_server().filter(|(from_ns, to_ns)| to_ns > from_ns)
        else {
            continue;
        };
        waits += 1;
        let others = transactions.iter().filter(|other| other.flow != flow(one));
        let within = others.filter(|other| other.to_ns > from_ns && other.to_ns <= to_ns);
        let held: Vec<&EndedTransaction> =
            within.filter(|other| other.from_ns <= from_ns).collect();
        chance += (held.len() as f64 * RIGHT_AFTER_NS as f64 / (to_ns - from_ns) as f64).min(1.0);
        let last = held.into_iter().max_by_key(|other| other.to_ns);
        if let Some(last) =
            last.filter(|last| to_ns - last.to_ns <= RIGHT_AFTER_NS + without_core_ns(one))
        {
            let is_of_same = all[last.ended_by].programs.0 == one.programs.0;
            found.push((last.ended_by, is_of_same));
        }
    }
    let hits = found.len();
    let is_habit = hits >= HABIT && hits as f64 >= OFTEN * f64::from(waits);
    let of_same_program = found.iter().filter(|(_, is_of_same)| *is_of_same).count();
    let is_of_same_program = 2 * of_same_program > hits;
    let is_usual = |(_, is_of_same): &&(usize, bool)| *is_of_same == is_of_same_program;
    let (ends_with, _) = *found.iter().find(is_usual)?;
    (is_habit && hits as f64 >= BEYOND_CHANCE * chance).then_some(TransactionWait {
        ends_with,
        is_of_same_program,
        is_for_pool: is_pool(all, &waiting) || waiting.iter().all(|one| takes_no_lock(&one.name)),
        hits,
        waits: usize::try_from(waits).unwrap_or(hits),
    })
}

/// Whether the server of statements hands them on to another server, as a pool of connections does, and had not done so while they waited.
fn is_pool(all: &[TracedRequest], waiting: &[&TracedRequest]) -> bool {
    let Some(statement) = waiting.first() else {
        return false;
    };
    let is_onward = |one: &&TracedRequest| {
        one.client == statement.server
            && one.programs.0 == statement.programs.1
            && one.protocol == statement.protocol
            && !one.programs.0.is_empty()
    };
    let onward: Vec<&TracedRequest> = all.iter().filter(is_onward).collect();
    let waits_onward = |one: &&&TracedRequest| {
        let half_ns = one.end_ns.saturating_sub(one.begin_ns()) / 2;
        onward.iter().any(|onward| {
            let (begin_ns, end_ns) = (onward.begin_ns(), onward.end_ns.min(one.end_ns));
            begin_ns >= one.begin_ns()
                && end_ns.saturating_sub(begin_ns) > half_ns
                && onward.name == one.name
        })
    };
    let longest = waiting.iter().take(MOST_LOOKED_AT);
    !onward.is_empty() && longest.filter(waits_onward).count() * 2 < waiting.len()
}

/// Of this many waiting statements it is looked at what their server handed on meanwhile.
const MOST_LOOKED_AT: usize = 64;

/// Whether a statement waits for no row lock: it only begins a transaction or sets a variable.
fn takes_no_lock(name: &str) -> bool {
    let is_harmless = |statement: &str| {
        let verb = statement.split_whitespace().next().unwrap_or_default();
        ["BEGIN", "START", "SET", "SHOW"]
            .iter()
            .any(|word| verb.eq_ignore_ascii_case(word))
    };
    let mut statements = name.split(';').map(str::trim);
    !name.contains('…') && statements.all(|one| one.is_empty() || is_harmless(one))
}

/// How long the thread that answers a statement was ready to run without a core, ns.
fn without_core_ns(statement: &TracedRequest) -> u64 {
    let work = statement.work.unwrap_or_default();
    (work.runnable + work.observer).max(0).unsigned_abs()
}

/// The transactions at a server: each lasts from the first statement of its connection after the previous transaction to the statement that
/// ends it.
fn transactions(all: &[TracedRequest], server: &TracedRequest) -> Vec<EndedTransaction> {
    let is_there = |one: &TracedRequest| {
        one.is_call
            && one.protocol == server.protocol
            && one.server == server.server
            && one.port == server.port
    };
    let mut by_flow: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate().filter(|(_, one)| is_there(one)) {
        by_flow.entry(flow(one)).or_default().push(at);
    }
    let mut found = Vec::new();
    for (flow, mut statements) in by_flow {
        statements.sort_by_key(|at| all[*at].begin_ns());
        let mut begun_ns: Option<u64> = None;
        for at in statements {
            let one = &all[at];
            let Some((from_ns, _)) = one.at_server() else {
                continue;
            };
            match (ends_transaction(&one.name), begun_ns) {
                (true, Some(begun)) => {
                    found.push(EndedTransaction {
                        flow,
                        from_ns: begun,
                        to_ns: from_ns,
                        ended_by: at,
                    });
                    begun_ns = None;
                }
                (true, None) => {}
                (false, begun) => begun_ns = Some(begun.unwrap_or(from_ns)),
            }
        }
    }
    found
}

fn ends_transaction(name: &str) -> bool {
    let verb = name.split([' ', ';']).next().unwrap_or_default();
    ["COMMIT", "ROLLBACK", "END", "ABORT"]
        .iter()
        .any(|word| verb.eq_ignore_ascii_case(word))
}

fn flow(request: &TracedRequest) -> u32 {
    unit_ids::parts(request.unit).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::{RequestServerWork, RequestTimes};

    const MS: u64 = 1_000_000;

    fn statement(flow: u32, name: &str, begin_ms: u64, end_ms: u64) -> TracedRequest {
        let ns = ((end_ms - begin_ms) * MS) as i64;
        TracedRequest {
            unit: unit_ids::unit(flow, begin_ms),
            row: (begin_ms * 10 + u64::from(flow)) as u32,
            is_call: true,
            protocol: "PostgreSQL".into(),
            name: name.into(),
            end_ns: end_ms * MS,
            times: Some(RequestTimes {
                total: ns,
                work: ns,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        }
    }

    /// One connection holds a row for 250 ms, another waits for it and is answered so much later, so often.
    fn held(rounds: u64, later_ms: u64) -> Vec<TracedRequest> {
        let round = |at: u64| {
            let begin = 1_000 * (at + 1);
            [
                statement(1, "BEGIN", begin, begin + 1),
                statement(1, "update stock set q=q-?", begin + 2, begin + 3),
                statement(
                    2,
                    "update stock set q=q+?",
                    begin + 10,
                    begin + 250 + later_ms,
                ),
                statement(1, "COMMIT", begin + 250, begin + 251),
            ]
        };
        (0..rounds).flat_map(round).collect()
    }

    fn found(all: &[TracedRequest]) -> Option<(usize, usize)> {
        let slow = all.iter().filter(|one| one.name.contains('+'));
        let rows: Vec<(i64, u32)> = slow.map(|one| (1, one.row)).collect();
        find_transaction_wait(all, &rows).map(|wait| (wait.hits, wait.waits))
    }

    #[test]
    fn a_statement_that_is_answered_when_another_transaction_ends_waited_for_it() {
        assert_eq!(found(&held(10, 1)), Some((10, 10)));
        assert_eq!(found(&held(2, 1)), None, "twice is no habit");
        assert_eq!(found(&held(10, 40)), None, "it goes on for long after that");
    }

    #[test]
    fn what_begins_a_transaction_waits_for_a_connection_of_a_pool() {
        let is_for_pool = |all: &[TracedRequest]| {
            let slow = all.iter().filter(|one| one.name.contains('+'));
            let rows: Vec<(i64, u32)> = slow.map(|one| (1, one.row)).collect();
            find_transaction_wait(all, &rows).unwrap().is_for_pool
        };
        let mut all = held(10, 1);
        assert!(!is_for_pool(&all));
        for one in all.iter_mut().filter(|one| one.name.contains('+')) {
            one.name = "SET a = '+'".into();
        }
        assert!(is_for_pool(&all));
        for one in all.iter_mut().filter(|one| one.name.contains('+')) {
            one.name = "BEGIN; UPDATE stock SET n = n + ?".into();
        }
        assert!(!is_for_pool(&all), "an update waits for a row");
        // A server that hands statements on to another.
        let mut all = held(10, 1);
        for one in &mut all {
            one.server = "pool".into();
            one.programs = ("app".into(), "pgbouncer".into());
        }
        let onward = TracedRequest {
            client: "pool".into(),
            programs: ("pgbouncer".into(), "postgres".into()),
            ..statement(9, "select ?", 5, 6)
        };
        all.push(onward);
        assert!(is_for_pool(&all));
        // It has handed on what waits: then that waits behind it.
        let waiting = all.iter().filter(|one| one.name.contains('+'));
        let onward: Vec<TracedRequest> = waiting
            .map(|one| TracedRequest {
                client: "pool".into(),
                server: "db".into(),
                programs: ("pgbouncer".into(), "postgres".into()),
                row: one.row + 5,
                ..one.clone()
            })
            .collect();
        let all = [all, onward].concat();
        let slow = all
            .iter()
            .filter(|one| one.name.contains('+') && one.server == "pool");
        let rows: Vec<(i64, u32)> = slow.map(|one| (1, one.row)).collect();
        assert!(!find_transaction_wait(&all, &rows).unwrap().is_for_pool);
    }

    #[test]
    fn a_statement_without_a_core_is_answered_later() {
        let mut all = held(10, 40);
        for one in all.iter_mut().filter(|one| one.name.contains('+')) {
            one.work = Some(RequestServerWork {
                runnable: 39 * MS as i64,
                ..RequestServerWork::default()
            });
        }
        assert_eq!(found(&all), Some((10, 10)));
    }

    #[test]
    fn a_transaction_that_began_later_holds_nothing_before() {
        let mut all = held(10, 1);
        for one in all
            .iter_mut()
            .filter(|one| one.name == "BEGIN" || one.name.contains('-'))
        {
            one.end_ns += 100 * MS;
        }
        assert_eq!(found(&all), None);
    }

    #[test]
    fn frequent_short_transactions_end_by_chance() {
        // A statement of 250 ms beside one connection that commits each 2 ms.
        let slow = |at: u64| statement(2, "update stock set q=q+?", 1_000 * at, 1_000 * at + 250);
        let quick = |at: u64| {
            [
                statement(1, "select ?", 1_000 + 2 * at, 1_000 + 2 * at),
                statement(1, "COMMIT", 1_001 + 2 * at, 1_001 + 2 * at),
            ]
        };
        let mut all: Vec<TracedRequest> = (1..11).map(slow).collect();
        all.extend((0..5_000).flat_map(quick));
        assert_eq!(found(&all), None);
    }
}
