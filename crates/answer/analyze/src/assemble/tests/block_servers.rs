//! Blocks of disk servers: complete, from a cache, discarded by a newer list, or lost.

use super::*;

#[test]
fn the_blocks_of_two_servers() {
    let made = lifelines(&table(MAGIC), None, &LifelineOptions::default());
    let points: Vec<String> = made
        .points
        .iter()
        .map(|point| format!("{}@{}", point.keyword, point.host))
        .collect();
    let path = "app_send@app server_in@s1 server_in@s2 start_read@s1 start_read@s2 end_read@s1 end_read@s2 start_write@s1 start_write@s2 app_receive@app";
    assert_eq!(points.join(" "), path);
    assert_eq!(
        drawn(&made),
        "\
1 [s1] app_send@app:10000 server_in@s1:10008 start_read@s1:10013 end_read@s1:10035 start_write@s1:10043 app_receive@app:10066 = complete
2 [s2] app_send@app:10000 server_in@s2:10009 start_read@s2:10014 end_read@s2:10036 start_write@s2:10044 app_receive@app:10067 = complete
3 [s1] app_send@app:10200 server_in@s1:10208 start_write@s1:10214 app_receive@app:10237 = cache hit
4 [s1] app_send@app:10200 server_in@s1:10208 start_read@s1:10213 = flushed after start_read@s1
5 [s1] app_send@app:10200 server_in@s1:10208 start_read@s1:10213 end_read@s1:10235 = flushed after end_read@s1
6 [s2] app_send@app:10200 server_in@s2:10208 start_read@s2:10213 end_read@s2:10235 start_write@s2:10243 = never arrived after start_write@s2
1 [s1] app_send@app:10400 server_in@s1:10408 start_read@s1:10413 end_read@s1:10435 start_write@s1:10443 app_receive@app:10466 = complete
8 [s2] app_send@app:10400 server_in@s2:10409 start_read@s2:10414 end_read@s2:10436 start_write@s2:10444 app_receive@app:10467 = complete
7 [s1] app_send@app:10470 server_in@s1:10478 = unfinished after server_in@s1
"
    );
}

#[test]
fn a_read_that_takes_no_time_is_a_cache_hit() {
    let mut log = String::new();
    for (block, read_ms) in [(1, 22), (2, 20), (3, 0), (4, 23)] {
        let at = |ms: u32| format!("{}; {}", block, ms * 1_000_000);
        for (point, host, ms) in [
            ("app_send", "app", 0),
            ("server_in", "s", 8),
            ("start_read", "s", 13),
            ("end_read", "s", 13 + read_ms),
        ] {
            let _ = writeln!(log, "{point}; {host}; {}; {block}", at(ms));
        }
        let _ = writeln!(log, "app_receive; app; {}; {block}", at(60));
    }
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    let outcomes: Vec<LifelineOutcome> = made.lines.iter().map(|line| line.outcome).collect();
    assert_eq!(
        outcomes,
        [
            LifelineOutcome::Complete,
            LifelineOutcome::Complete,
            LifelineOutcome::CacheHit,
            LifelineOutcome::Complete
        ]
    );
}

/// Blocks of the block server as its sessions write them: unit, whether a read is on the way, what the message says.
fn blocks(of: &[(u32, bool, &str)]) -> Vec<String> {
    let mut log = String::new();
    for (unit, read, source) in of {
        let at = |ms: u32| f64::from(ms) * 1e6;
        let mut point = |keyword: &str, host: &str, ms: u32| {
            let _ = writeln!(
                log,
                "{keyword}; {host}; {unit}; {}; {unit}; 7; 1; 1; 49152; {source}",
                at(ms)
            );
        };
        point("TV_REQ_TILE", "app", 0);
        point("DPSS_SERV_IN", "s", 8);
        if *read {
            point("DPSS_START_READ", "s", 13);
            point("DPSS_END_READ", "s", 35);
        }
        point("DPSS_START_WRITE", "s", 40);
        // The end of a connection's last write is not reported.
        if *unit != of.len() as u32 {
            point("DPSS_END_WRITE", "s", 41);
        }
        point("TV_RECV_TILE", "app", 60);
    }
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    made.lines.iter().map(|line| word(line.outcome)).collect()
}

fn word(outcome: LifelineOutcome) -> String {
    match outcome {
        LifelineOutcome::Complete => "complete".into(),
        LifelineOutcome::CacheHit => "cache hit".into(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_block_is_a_cache_hit_where_its_message_says_so() {
    let (hit, miss) = ("cache hit", "complete");
    let none = [
        (1, true, "disk"),
        (2, true, "disk"),
        (3, true, "disk"),
        (4, true, "disk"),
    ];
    assert_eq!(blocks(&none), [miss; 4]);
    let all = [
        (1, false, "memory"),
        (2, false, "memory"),
        (3, false, "memory"),
    ];
    assert_eq!(blocks(&all), [hit; 3]);
    let half = [
        (1, true, "disk"),
        (2, false, "memory"),
        (3, false, "memory"),
        (4, true, "disk"),
    ];
    assert_eq!(blocks(&half), [miss, hit, hit, miss]);
    let last = [(1, true, "disk"), (2, true, "disk"), (3, false, "memory")];
    assert_eq!(blocks(&last), [miss, miss, hit]);
    let first = [(1, false, "memory"), (2, true, "disk")];
    assert_eq!(blocks(&first), [hit, miss]);
    let unsaid = [(1, true, ""), (2, true, ""), (3, false, ""), (4, true, "")];
    assert_eq!(
        blocks(&unsaid)[2],
        hit,
        "found by what it left out, as in others' logs"
    );
}
