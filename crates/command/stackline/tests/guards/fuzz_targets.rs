//! What reads foreign bytes is fuzzed: a list of all readers of the workspace with their targets, held against the files of `fuzz`.

use crate::tree;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Whose bytes are read; where, from `crates` on; the function; the target; what of it the target calls.
const READERS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "captures, first look",
        "exchange/src/capture/survey.rs",
        "read",
        "importers",
        "Survey::read",
    ),
    (
        "captures",
        "exchange/src/capture/reading.rs",
        "open",
        "importers",
        "Reader::open",
    ),
    (
        "pcapng and pcap",
        "dissect/src/pcapng/reader.rs",
        "step",
        "importers",
        "Survey::read",
    ),
    (
        "OTLP",
        "exchange/src/otlp.rs",
        "read",
        "importers",
        "otlp::read",
    ),
    (
        "Jaeger",
        "exchange/src/jaeger.rs",
        "read",
        "importers",
        "jaeger::read",
    ),
    (
        "qlog",
        "exchange/src/qlog.rs",
        "read",
        "importers",
        "qlog::read",
    ),
    (
        "NetLogger",
        "exchange/src/netlogger.rs",
        "read",
        "importers",
        "netlogger::read",
    ),
    (
        "access logs",
        "exchange/src/access.rs",
        "read",
        "importers",
        "access::read",
    ),
    (
        "packets of any link",
        "dissect/src/segment.rs",
        "of_ip",
        "packets",
        "builder.packet",
    ),
    (
        "packets of known flows",
        "dissect/src/frame_locator.rs",
        "range",
        "packets",
        "frames.range",
    ),
    (
        "packets of learned flows",
        "dissect/src/frame_locator/flow_learning.rs",
        "range",
        "packets",
        "FrameLocator::learning",
    ),
    (
        "packets and sockets as requests",
        "requests/src/exchange_builder/sockets.rs",
        "socket",
        "packets",
        "builder.socket",
    ),
    (
        "DNS of datagrams",
        "dissect/src/conversation/dns.rs",
        "read_message",
        "packets",
        "dns::read",
    ),
    (
        "HTTP/1",
        "dissect/src/conversation/http1.rs",
        "bytes",
        "conversation",
        "walks::conversation",
    ),
    (
        "HTTP/2",
        "dissect/src/conversation/http2.rs",
        "bytes",
        "conversation",
        "walks::conversation",
    ),
    (
        "HPACK",
        "dissect/src/conversation/http2/hpack.rs",
        "block",
        "conversation",
        "walks::conversation",
    ),
    (
        "gRPC",
        "dissect/src/conversation/http2/grpc.rs",
        "bytes",
        "conversation",
        "walks::conversation",
    ),
    (
        "DNS of connections",
        "dissect/src/conversation/record_dialogue.rs",
        "bytes",
        "conversation",
        "walks::conversation",
    ),
    (
        "MySQL",
        "dissect/src/conversation/mysql.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "PostgreSQL",
        "dissect/src/conversation/postgres.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "RESP",
        "dissect/src/conversation/resp.rs",
        "bytes",
        "conversation",
        "walks::conversation",
    ),
    (
        "memcached",
        "dissect/src/conversation/memcached.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "FTP",
        "dissect/src/conversation/ftp.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "NATS",
        "dissect/src/conversation/nats.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "MongoDB",
        "dissect/src/conversation/mongodb.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "Kafka",
        "dissect/src/conversation/kafka.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "MQTT",
        "dissect/src/conversation/mqtt.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "AMQP",
        "dissect/src/conversation/amqp.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "WebSocket",
        "dissect/src/conversation/websocket.rs",
        "extent",
        "conversation",
        "walks::conversation",
    ),
    (
        "set-up of SOCKS",
        "dissect/src/conversation/socks_set_up.rs",
        "find_set_up",
        "conversation",
        "walks::conversation",
    ),
    (
        "TLS by turns",
        "dissect/src/conversation/tls.rs",
        "bytes",
        "conversation",
        "walks::conversation",
    ),
    (
        "reassembly",
        "dissect/src/conversation/reassembly.rs",
        "segment",
        "conversation",
        "walks::conversation",
    ),
    (
        "records of TLS",
        "dissect/src/conversation/tls/decryption.rs",
        "bytes",
        "tls",
        "with_secrets",
    ),
    (
        "datagrams of QUIC",
        "dissect/src/quic/dissector.rs",
        "datagram",
        "quic",
        "walks::quic",
    ),
    (
        "streams of QUIC, HTTP/3",
        "dissect/src/quic/streams.rs",
        "piece",
        "quic",
        "walks::quic",
    ),
    (
        "header fields of HTTP/3",
        "dissect/src/conversation/http3/qpack.rs",
        "instructions",
        "quic",
        "walks::quic",
    ),
    (
        "logs of keys",
        "dissect/src/conversation/tls/session_secrets.rs",
        "learn",
        "tls",
        "secrets.learn",
    ),
    (
        "statements of SQL",
        "redact/src/sql.rs",
        "mask_statement",
        "redact",
        "sql::mask_statement",
    ),
    (
        "targets of HTTP",
        "redact/src/http.rs",
        "redact_target",
        "redact",
        "http::redact_target",
    ),
    (
        "commands of Redis",
        "redact/src/redis.rs",
        "redact_command",
        "redact",
        "redis::redact_command",
    ),
    (
        "specifications",
        "spec/src/lib.rs",
        "check",
        "language",
        "check(",
    ),
    (
        "events as text",
        "events/src/text.rs",
        "next",
        "events",
        "EventTextReader::new",
    ),
    (
        "events as bytes",
        "events/src/event_log.rs",
        "from_bytes",
        "events",
        "EventLog::from_bytes",
    ),
    (
        "traceparent",
        "events/src/traceparent.rs",
        "from_str",
        "events",
        "Traceparent",
    ),
    (
        "events as Parquet",
        "runs/src/events/parquet.rs",
        "read_table",
        "parquet",
        "events::read_table",
    ),
    (
        "results as Parquet",
        "runs/src/results.rs",
        "read",
        "parquet",
        "results::read",
    ),
    (
        "archives of runs",
        "runs/src/archive/unpack.rs",
        "add_archive",
        "archives",
        "add_archive",
    ),
    (
        "specifications in Markdown",
        "spec/src/markdown.rs",
        "markdown_blocks",
        "language",
        "markdown_blocks",
    ),
    (
        "the index of a run",
        "runs/src/events/index.rs",
        "read_index",
        "parquet",
        "events::read_index",
    ),
    (
        "control lines of agents",
        "live/src/control.rs",
        "read",
        "control",
        "read::<ToAgent>",
    ),
    (
        "datagrams of measurements",
        "proto/src/datagram/control.rs",
        "read_control",
        "datagrams",
        "read_control",
    ),
    (
        "streams of measurements",
        "live/src/fuzzing.rs",
        "stream",
        "stream",
        "fuzzing::stream",
    ),
    (
        "answers of far ends",
        "live/src/fuzzing.rs",
        "far_end",
        "far_end",
        "fuzzing::far_end",
    ),
    (
        "answers of far ends in datagrams",
        "live/src/fuzzing.rs",
        "far_end_in_datagrams",
        "far_end",
        "fuzzing::far_end_in_datagrams",
    ),
    (
        "frames of hosts",
        "emu/src/engine/fuzzing.rs",
        "frame",
        "frames",
        "fuzzing::frame",
    ),
    (
        "blasts",
        "proto/src/blast/wire.rs",
        "read",
        "blast",
        "walks::blast",
    ),
    (
        "V's messages",
        "walks/src/ikp.rs",
        "packets",
        "ikp",
        "walks::ikp",
    ),
    (
        "V's block I/O",
        "proto/src/papers/vio.rs",
        "read",
        "vio",
        "Request::read",
    ),
    (
        "PUP",
        "proto/src/papers/pup/packet.rs",
        "read",
        "pup",
        "Packet::read",
    ),
    (
        "FTAM's transport connections",
        "proto/src/papers/ftam/cotp.rs",
        "read",
        "ftam",
        "walks::ftam",
    ),
    (
        "FTAM's TPDUs and data units",
        "proto/src/papers/ftam/receiver.rs",
        "take",
        "ftam",
        "walks::ftam",
    ),
    (
        "FTAM's messages of all layers",
        "proto/src/papers/ftam/message.rs",
        "read",
        "ftam",
        "walks::ftam",
    ),
    (
        "FTP's commands, with where files go",
        "proto/src/ftp/command.rs",
        "read",
        "ftp",
        "walks::ftp",
    ),
    (
        "FTP's replies",
        "proto/src/ftp/reply.rs",
        "take",
        "ftp",
        "walks::ftp",
    ),
    (
        "where files go, in FTP's replies",
        "proto/src/ftp/data_address.rs",
        "read_passive",
        "ftp",
        "walks::ftp",
    ),
    (
        "TELNET",
        "proto/src/papers/telnet.rs",
        "receive",
        "telnet",
        "end.receive",
    ),
    (
        "the block server's messages",
        "blocks/src/wire/message.rs",
        "read",
        "blocks",
        "Message::read",
    ),
    (
        "blocks in datagrams",
        "blockserver/src/reassembly.rs",
        "datagram",
        "blocks",
        "reassembly.datagram",
    ),
    (
        "paths at the gateway",
        "blockserver/src/gateway/route.rs",
        "parse",
        "gateway",
        "gateway::fuzzing",
    ),
    (
        "ranges at the gateway",
        "blockserver/src/gateway/range.rs",
        "parse_range",
        "gateway",
        "gateway::fuzzing",
    ),
    (
        "requests of display clients",
        "display/src/machine.rs",
        "receive",
        "display",
        "display.receive",
    ),
    (
        "answers of a display",
        "display/src/protocol.rs",
        "take",
        "display",
        "Answer::take",
    ),
    (
        "the display's agent",
        "display/src/agent.rs",
        "from_client",
        "ngp",
        "agent.from_client",
    ),
    (
        "the display's compact protocol",
        "display/src/ngp.rs",
        "receive",
        "ngp",
        "far.receive",
    ),
    (
        "texts of /proc",
        "monitor/src/parse/stat.rs",
        "parse",
        "kernel",
        "fuzzing::text",
    ),
    (
        "formats of tracefs",
        "monitor/src/kernel_trace/format.rs",
        "parse",
        "kernel",
        "fuzzing::text",
    ),
    (
        "pages of the kernel's trace",
        "monitor/src/kernel_trace/pages.rs",
        "from_page",
        "kernel",
        "fuzzing::bytes",
    ),
    (
        "tcp_info",
        "os/src/tcp_info.rs",
        "parse",
        "kernel",
        "fuzzing::bytes",
    ),
];

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_reader_of_foreign_bytes_has_a_target_that_calls_it() {
    for (what, file, function, target, call) in READERS {
        let source = text(&tree::in_crate(file));
        let has = ["(", "<"]
            .iter()
            .any(|behind| source.contains(&format!("fn {function}{behind}")));
        assert!(has, "{what}: {file} has no function {function}");
        let target = text(&tree::root().join(format!("fuzz/fuzz_targets/{target}.rs")));
        assert!(
            target.contains(call),
            "{what}: its target does not call {call}"
        );
    }
}

#[test]
fn every_target_is_built_and_listed_and_has_a_small_corpus() {
    let manifest = text(&tree::root().join("fuzz/Cargo.toml"));
    let listed: BTreeSet<&str> = READERS.iter().map(|(.., target, _)| *target).collect();
    let files = fs::read_dir(tree::root().join("fuzz/fuzz_targets")).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| {
            file.unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        files.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        listed
    );
    for target in &files {
        assert!(
            manifest.contains(&format!(
                "name = \"{target}\"\npath = \"fuzz_targets/{target}.rs\""
            )),
            "{target}"
        );
        let corpus = fs::read_dir(tree::root().join("fuzz/corpus").join(target));
        let corpus = corpus.unwrap_or_else(|error| panic!("fuzz/corpus/{target}: {error}"));
        let sizes: Vec<u64> = corpus
            .map(|file| file.unwrap().metadata().unwrap().len())
            .collect();
        assert!(!sizes.is_empty(), "{target}");
        assert!(
            sizes.len() <= 40 && sizes.iter().all(|size| *size <= 4096),
            "the stored corpus of {target} is small"
        );
    }
    assert_eq!(manifest.matches("[[bin]]").count(), files.len());
}
