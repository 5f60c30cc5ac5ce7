//! Nothing is left out at a bound without a count: every constant that bounds what reads foreign traffic is a row of
//! `stackline_dissect::left_out`, or stands here with the reason why nothing is lost at it; and each row has its case in a test that
//! goes one beyond it.

use crate::tree;
use stackline_requests::Bound;
use std::fs;
use std::path::{Path, PathBuf};

/// What reads foreign traffic.
const READERS: [&str; 4] = ["dissect/src", "requests/src", "exchange/src", "trace/src"];
/// Words in names of constants that are bounds.
const WORDS: [&str; 12] = [
    "MOST", "LONGEST", "LARGEST", "DEEPEST", "KEEP", "WAITING", "SAMPLES", "ENOUGH", "REPORTED",
    "BATCH", "LIMIT", "MAX",
];
/// Constants at which nothing is lost without a count, by file: why.
const OTHERS: &[(&str, &str, &str)] = &[
    (
        "request_spans.rs",
        "DEEPEST",
        "requests that were made for one another; what is further has a trace of its own",
    ),
    (
        "probe_metrics.rs",
        "MOST_REASONS",
        "reasons of our own failures with a series of their own; those of all others are counted as `other`",
    ),
    (
        "probe_metrics.rs",
        "LONGEST_REASON",
        "the words of a label; the failure itself is counted",
    ),
    (
        "foreign_network.rs",
        "LONGEST",
        "bytes of a network's text; a longer one is refused",
    ),
    (
        "network_text.rs",
        "MOST_NODES",
        "hosts and switches of a network; one with more is refused",
    ),
    (
        "network_text.rs",
        "MOST_LINKS",
        "links of a network; one with more is refused",
    ),
    (
        "mininet.rs",
        "MOST_HOSTS",
        "an argument of a topology; a larger one is refused",
    ),
    (
        "python_calls.rs",
        "LONGEST_CALL",
        "bytes of a call; a longer one is refused",
    ),
    (
        "netem.rs",
        "DEFAULT_LIMIT",
        "netem's own default, which is printed",
    ),
    (
        "encapsulation.rs",
        "DEEPEST",
        "headers of links and tunnels that are looked through; a packet with more is counted as not read",
    ),
    (
        "proxy_header.rs",
        "LONGEST_LINE",
        "the protocol's: a longer line is no header of a proxy",
    ),
    (
        "fragments.rs",
        "LONGEST",
        "RFC 791, 3.1: a longer packet cannot be; its fragments are counted as not read",
    ),
    (
        "packet_copies.rs",
        "MOST",
        "packets of ten milliseconds among which copies are found; one that is not found counts as sent again",
    ),
    (
        "goodput_series.rs",
        "MOST",
        "intervals of a series; when more would be needed, each two become one",
    ),
    (
        "connection_accounts.rs",
        "MOST_SERIES",
        "directions whose goodput over time is kept; the totals of all others are",
    ),
    (
        "exchange_builder.rs",
        "BATCH",
        "connections that are looked up at a time; each that gives way is counted",
    ),
    (
        "protocol_recognition.rs",
        "ENOUGH",
        "bytes after which a protocol is decided; all of them go to its dissector",
    ),
    (
        "dns.rs",
        "LONGEST",
        "RFC 1035, 2.3.4: a longer name is no DNS",
    ),
    ("dns.rs", "KEEP", "a head and the longest question"),
    (
        "open_exchange.rs",
        "MOST_ROUNDS",
        "what goes on for longer is another request",
    ),
    ("answer.rs", "LONGEST_EOF", "the protocol's"),
    (
        "mysql.rs",
        "KEEP",
        "what a name is made of; a name that fills its room is counted",
    ),
    (
        "mysql.rs",
        "LONGEST",
        "the protocol's: a longer packet goes on in the next",
    ),
    (
        "messages.rs",
        "KEEP",
        "what a name is made of; a name that fills its room is counted",
    ),
    ("messages.rs", "LONGEST", "the protocol's"),
    ("messages.rs", "LONGEST_FIRST", "the protocol's"),
    (
        "session_secrets.rs",
        "LONGEST",
        "no secret is longer; the line is none",
    ),
    ("tls.rs", "LONGEST_RECORD", "RFC 5246, 6.2.3"),
    (
        "tls.rs",
        "LONGEST_FLIGHT",
        "records that may be a last flight; what is none is data",
    ),
    (
        "value.rs",
        "MOST_WORDS",
        "names are made of the first words",
    ),
    (
        "binary.rs",
        "KEEP",
        "what a name is made of; a name that fills its room is counted",
    ),
    (
        "mongodb.rs",
        "KEEP",
        "what a name is made of; a name that fills its room is counted",
    ),
    ("mongodb.rs", "LONGEST", "the protocol's"),
    (
        "socks_set_up.rs",
        "LONGEST",
        "what is longer is not a set-up, and all of it goes to its dissector",
    ),
    (
        "amqp.rs",
        "KEEP",
        "what a name is made of; a name that fills its room is counted",
    ),
    ("amqp.rs", "LONGEST", "what announces more is not AMQP"),
    (
        "kafka.rs",
        "KEEP",
        "what a name is made of; a name that fills its room is counted",
    ),
    (
        "mqtt.rs",
        "KEEP",
        "what a name is made of; a name that fills its room is counted",
    ),
    ("kafka.rs", "LONGEST", "what announces more is not Kafka"),
    (
        "kafka.rs",
        "LONGEST_FIRST",
        "what begins with more is not recognised as Kafka",
    ),
    (
        "kafka.rs",
        "LARGEST_FIRST",
        "what begins with more is not recognised as Kafka",
    ),
    ("value.rs", "MOST", "what announces more is no RESP"),
    ("reading.rs", "BATCH", "events that are given at a time"),
    ("reading.rs", "WAITING", "packets that are read ahead"),
    (
        "packet_words.rs",
        "MOST_STREAMS",
        "texts that are made anew",
    ),
    (
        "survey.rs",
        "MOST_MARKS",
        "a sample: the clock's error is stated",
    ),
    (
        "connection_accounts.rs",
        "WAITING",
        "a sample of round trips",
    ),
    (
        "connection_accounts.rs",
        "SAMPLES",
        "a sample of which the median is taken",
    ),
    ("lib.rs", "REPORTED", "mistakes in words; all are counted"),
    (
        "access.rs",
        "REPORTED",
        "mistakes in words; all are counted",
    ),
    (
        "netlogger.rs",
        "LONGEST",
        "a longer line is counted among what could not be read",
    ),
    ("slices.rs", "MOST_LANES", "it writes, and merges lanes"),
    (
        "server_logs.rs",
        "LARGEST",
        "a larger log is refused with words",
    ),
    (
        "format.rs",
        "LARGEST",
        "a larger file is refused with words",
    ),
    (
        "packet_header.rs",
        "LONGEST_ID",
        "RFC 9000, 17.2: a longer id is none of these versions",
    ),
    (
        "stream_calls.rs",
        "KEEP",
        "a question of DNS, which comes first",
    ),
    (
        "quic_datagrams.rs",
        "MOST_IDS",
        "what is sent to a further id is found by its two ends as long as these stay",
    ),
    (
        "http3.rs",
        "MOST_ONE_WAY",
        "RFC 9114, 6.2: three say something of header fields; further ones carry no request",
    ),
    (
        "http3.rs",
        "MOST_BLOCKED",
        "a message has two blocks; one that has more is known without its further ones",
    ),
    (
        "collector.rs",
        "MOST_TIMES",
        "what is beyond has all its events, and the median of the others stands for it",
    ),
    (
        "analysis_queue.rs",
        "MOST_BYTES",
        "where more waits, it is analysed before more is read",
    ),
    (
        "call_packets.rs",
        "MOST",
        "a connection more is counted as a lost record",
    ),
    (
        "call_packets.rs",
        "MOST_UNREAD",
        "bytes for which zeros stand; what is more is a hole in the stream, which is said",
    ),
    (
        "connect_attempts.rs",
        "MOST_ATTEMPTS",
        "a refused connection more counts as another program's",
    ),
    (
        "transfer_counters.rs",
        "MOST_SAMPLES",
        "samples of a connection; when more come, every second one goes, and their sums stay",
    ),
    (
        "transfer_counters.rs",
        "MOST_CONNECTIONS",
        "connections of which the kernel's counters are kept; transfers of others have none",
    ),
    (
        "followed_threads.rs",
        "MOST_LISTS",
        "times that a list is read again until none is new",
    ),
    (
        "setting.rs",
        "MOST_NAMESPACES",
        "how many are not looked at is a note of the trace",
    ),
    (
        "import.rs",
        "LARGEST_SECRETS",
        "a larger file of secrets is refused with words",
    ),
    (
        "watch_metrics.rs",
        "MOST_SERIES",
        "values beyond are counted by a metric of their own",
    ),
    (
        "watch_metrics.rs",
        "LONGEST_LABEL",
        "a name is cut; the series is there",
    ),
    (
        "connection_series.rs",
        "MOST_PROCESSES",
        "processes with series of their own; the others are summed in one",
    ),
    (
        "connection_series.rs",
        "MOST_REMEMBERED",
        "processes among the others, whose own sums begin at 0 again",
    ),
];
/// Where cases are: what goes one beyond a bound.
const CASES: [&str; 10] = [
    "dissect/src/quic/dissector/tests.rs",
    "dissect/src/fragments.rs",
    "dissect/src/left_out/bound_cases.rs",
    "dissect/src/conversation/tls/decryption/tests.rs",
    "requests/src/exchange_builder/bounds_tests.rs",
    "requests/src/connection/tests.rs",
    "exchange/src/capture/bounds_tests.rs",
    "requests/src/collector.rs",
    "trace/src/recorder.rs",
    "trace/src/thread_directory.rs",
];

/// Files of a folder that are no tests.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match path.is_dir() {
            true if name == "tests" => {}
            true => sources(&path, into),
            false if ["tests.rs", "testing.rs", "cases.rs", "bounds.rs"].contains(&name) => {}
            false => into.push(path),
        }
    }
}

/// Each constant of a file that is a number: its name, and what it is.
fn numbers(text: &str) -> Vec<(String, String)> {
    let constant = |line: &str| {
        let (_, rest) = line.split_once("const ")?;
        let (name, rest) = rest.split_once(": ")?;
        let (kind, value) = rest.split_once(" = ")?;
        let is_number = ["usize", "u64", "u32", "u16", "i64"].contains(&kind);
        is_number.then(|| (name.to_owned(), value.trim_end_matches(';').to_owned()))
    };
    text.lines().filter_map(constant).collect()
}

#[test]
fn every_bound_is_a_row_of_the_table_or_loses_nothing() {
    let mut files = Vec::new();
    READERS
        .iter()
        .for_each(|folder| sources(&tree::in_crate(folder), &mut files));
    assert!(files.len() > 60);
    let (mut wrong, mut met) = (Vec::new(), vec![false; OTHERS.len()]);
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let own = file.file_name().unwrap().to_str().unwrap();
        for (name, value) in numbers(&text) {
            if !WORDS
                .iter()
                .any(|word| name.split('_').any(|part| part == *word))
                || value.contains("Bound::")
            {
                continue;
            }
            match OTHERS
                .iter()
                .position(|(file, other, _)| (*file, *other) == (own, &name[..]))
            {
                Some(at) => met[at] = true,
                None if value.contains("MOST_OPEN") => {}
                None => wrong.push(format!("{}: {name} = {value}", file.display())),
            }
        }
        // A bound without a name would be none of the table.
        let literal = |line: &&str| {
            let bare = |mark: &str| {
                line.split(mark)
                    .skip(1)
                    .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            };
            let is_large = |mark: &str| {
                line.split(mark)
                    .skip(1)
                    .any(|rest| rest.chars().take_while(char::is_ascii_digit).count() > 2)
            };
            bare(".truncate(")
                || is_large("len() < ")
                || is_large("len() >= ")
                || is_large("len() > ")
        };
        let bare = text
            .split("#[cfg(test)]")
            .next()
            .unwrap()
            .lines()
            .filter(literal);
        wrong.extend(bare.map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert!(
        wrong.is_empty(),
        "bounds that are no row of `left_out`, nor in OTHERS here:\n{}",
        wrong.join("\n")
    );
    let gone: Vec<_> = OTHERS
        .iter()
        .zip(met)
        .filter(|(_, met)| !met)
        .map(|(other, _)| other)
        .collect();
    assert!(gone.is_empty(), "no such constants: {gone:?}");
}

#[test]
fn every_row_of_the_table_is_counted_somewhere_and_has_a_case() {
    // However lines are broken.
    let read = |file: &Path| {
        fs::read_to_string(file)
            .unwrap()
            .split_whitespace()
            .collect::<String>()
    };
    let cases: String = CASES
        .iter()
        .map(|file| read(&tree::in_crate(file)))
        .collect();
    let mut files = Vec::new();
    READERS
        .iter()
        .for_each(|folder| sources(&tree::in_crate(folder), &mut files));
    let texts: String = files.iter().map(|file| read(file)).collect();
    for bound in Bound::ALL {
        let word = format!("Bound::{bound:?}");
        let uses = |text: &str, before: &str, behind: &str| {
            text.contains(&format!("{before}{word}{behind}"))
        };
        assert!(uses(&texts, "", ".most()"), "{word} bounds nothing");
        assert!(
            uses(&texts, "add(", ",") || uses(&texts, "LeftOut(", ","),
            "{word} is counted nowhere"
        );
        assert!(
            uses(&cases, "", ".assert_reported(") || uses(&cases, ".count_of(", ")"),
            "{word} has no case that goes one beyond"
        );
    }
}
