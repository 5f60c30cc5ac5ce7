//! A conversation of each protocol with secrets in every place where a program may put one, through packets, dissectors and requests to
//! events: no event shows one, unless contents were asked for.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_dissect::segment::DissectedSegment;
use stackline_events::EventTable;
use stackline_requests::exchange_events::{ExchangeContext, emit_exchange};
use stackline_requests::{Builder, ObservedHost};
use std::net::SocketAddr;

const SECRET: &str = "SECRET";
const MS: u64 = 1_000_000;

/// What each side says in turn: `>` the client, `<` the server.
type Script = Vec<(char, Vec<u8>)>;

/// All events of a conversation, as lines.
fn events(script: &Script, contents: bool) -> Vec<String> {
    let names = ["a".to_owned(), "b".to_owned()];
    let host = |name: &str, address: &str| ObservedHost {
        name: name.into(),
        addresses: vec![address.parse().unwrap()],
    };
    let mut builder = Builder::new(vec![host("a", "10.0.0.1"), host("b", "10.0.0.2")]);
    let ends: [SocketAddr; 2] = [
        "10.0.0.1:50000".parse().unwrap(),
        "10.0.0.2:80".parse().unwrap(),
    ];
    let mut sent = [0_u32; 2];
    let handshake = [('>', Vec::new()), ('<', Vec::new())];
    for (at, (side, bytes)) in (0..).zip(handshake.iter().chain(script)) {
        let (direction, syn) = (usize::from(*side == '<'), at < 2);
        let segment = DissectedSegment {
            ends: if direction == 0 {
                (ends[0], ends[1])
            } else {
                (ends[1], ends[0])
            },
            sequence: if syn { 999 } else { 1000 + sent[direction] },
            bytes: bytes.len() as u64,
            syn,
            fin: false,
            reset: false,
            acknowledged: (at > 0).then(|| 1000 + sent[1 - direction]),
            window: 60_000,
            selectively_acknowledged: None,
            window_scale: syn.then_some(0),
            largest_segment: None,
            ttl: 64,
            length: 40 + bytes.len() as u64,
        };
        sent[direction] += bytes.len() as u32;
        builder.segment(direction, true, 10 * at * MS, &segment, bytes);
        builder.segment(1 - direction, false, (10 * at + 5) * MS, &segment, bytes);
    }
    let mut table = EventTable::default();
    for exchange in builder.finish().0 {
        let known = ExchangeContext {
            contents,
            ..ExchangeContext::default()
        };
        emit_exchange(&exchange, &known, &names, &mut table.emitter());
    }
    (0..table.len())
        .map(|row| table.event(row).to_string())
        .collect()
}

/// The names of what was asked and answered; no event shows a secret. With contents one does, so they went through.
fn asked(script: &Script) -> Vec<String> {
    let kept = events(script, false);
    for line in &kept {
        assert!(!line.contains(SECRET) && !line.contains("bob"), "{line}");
    }
    assert!(
        events(script, true)
            .iter()
            .any(|line| line.contains(SECRET)),
        "the secrets were seen: {kept:?}"
    );
    let requests = kept.iter().filter(|line| line.starts_with("REQUEST; "));
    // In a line a semicolon is written as %3B.
    let name = |line: &String| {
        line.split("; ")
            .skip(8)
            .take(2)
            .collect::<Vec<_>>()
            .join(" -> ")
            .replace("%3B", ";")
    };
    requests.map(name).collect()
}

fn says(side: char, text: &str) -> (char, Vec<u8>) {
    (side, text.as_bytes().to_vec())
}

#[test]
fn http_shows_no_secret() {
    let head = "Host: w\r\nCookie: SECRET\r\nAuthorization: Basic SECRET\r\nX-Api-Key: SECRET\r\n\
                Referer: http://bob:SECRET@w/?SECRET";
    let answer = "HTTP/1.1 200 SECRET\r\nSet-Cookie: SECRET\r\nLocation: /?SECRET\r\nContent-Length: 6\r\n\r\nSECRET";
    let targets = [
        ("/item/7?key=SECRET#SECRET", "POST /item/7?key=… -> 200"),
        ("http://bob:SECRET@w/a", "POST /a -> 200"),
        ("/a;jsessionid=SECRET", "POST /a;… -> 200"),
        ("/a#access_token=SECRET", "POST /a -> 200"),
        ("/a%3Ftoken=SECRET", "POST /a… -> 200"),
        ("/users/bob@example.org", "POST /users/… -> 200"),
    ];
    let mut script = Script::new();
    for (target, _) in targets {
        script.push(says(
            '>',
            &format!("POST {target} HTTP/1.1\r\n{head}\r\nContent-Length: 6\r\n\r\nSECRET"),
        ));
        script.push(says('<', answer));
    }
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;x=SECRET\r\nSECRET\r\n0\r\nX: SECRET\r\n\r\n";
    script.extend([
        says('>', &format!("GET /b HTTP/1.1\r\n{head}\r\n\r\n")),
        says('<', chunks),
    ]);
    let connect = format!("CONNECT bob:SECRET@w:443 HTTP/1.1\r\n{head}\r\n\r\n");
    script.extend([says('>', &connect), says('<', "HTTP/1.1 200 OK\r\n\r\n")]);
    script.extend([says('>', SECRET), says('<', SECRET)]);
    let names = asked(&script);
    let expected = targets
        .iter()
        .map(|(_, name)| *name)
        .chain(["GET /b -> 200", "CONNECT w:443 -> 200"]);
    let expected: Vec<&str> = expected.collect();
    assert_eq!(names[..expected.len()], expected);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [
        &[length[1], length[2], length[3], kind, flags][..],
        &stream.to_be_bytes(),
        payload,
    ]
    .concat()
}

fn head(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x40);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        }
    }
    frame(1, 4 | flags, stream, &block)
}

#[test]
fn http2_and_grpc_show_no_secret() {
    let ask = |path: &'static str, kind: &'static str| {
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "bob:SECRET@w"),
            (":path", path),
            ("content-type", kind),
            ("authorization", "SECRET"),
            ("cookie", "SECRET"),
            ("x-metadata-bin", "SECRET"),
        ]
    };
    let message = b"\0\0\0\0\x06SECRET";
    let trailers = [
        ("grpc-status", "5"),
        ("grpc-message", "SECRET"),
        ("x", "SECRET"),
    ];
    let script: Script = vec![
        (
            '>',
            [
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                &frame(4, 0, 0, &[])[..],
            ]
            .concat(),
        ),
        ('<', frame(4, 0, 0, &[])),
        (
            '>',
            [
                head(1, 0, &ask("/a;SECRET?b=SECRET", "text/plain")),
                frame(0, 1, 1, b"SECRET"),
            ]
            .concat(),
        ),
        (
            '<',
            [
                head(1, 0, &[(":status", "200"), ("set-cookie", "SECRET")]),
                frame(0, 1, 1, b"SECRET"),
            ]
            .concat(),
        ),
        (
            '>',
            [
                head(3, 0, &ask("/pkg.Service/Get?SECRET", "application/grpc")),
                frame(0, 1, 3, message),
            ]
            .concat(),
        ),
        (
            '<',
            head(
                3,
                0,
                &[(":status", "200"), ("content-type", "application/grpc")],
            ),
        ),
        (
            '<',
            [frame(0, 0, 3, message), head(3, 1, &trailers)].concat(),
        ),
        (
            '>',
            head(5, 1, &ask("/pkg.Service/Bad", "application/grpc")),
        ),
        (
            '<',
            head(5, 1, &[(":status", "200"), ("grpc-status", "SECRET")]),
        ),
    ];
    let names = asked(&script);
    assert_eq!(
        names,
        [
            "POST /a;…?b=… -> 200",
            "/pkg.Service/Get?… -> grpc-status 5",
            "/pkg.Service/Bad -> 200"
        ]
    );
}

#[test]
fn postgres_shows_no_secret() {
    let message = |mark: u8, body: &[u8]| {
        [&[mark][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    };
    let body =
        b"\0\x03\0\0user\0bob\0database\0shop\0application_name\0SECRET\0options\0-c x=SECRET\0\0";
    let ready = message(b'Z', b"I");
    let error = message(
        b'E',
        b"SERROR\0VERROR\0C23505\0Mduplicate SECRET\0DKey (x)=(SECRET)\0\0",
    );
    let settings = [
        message(b'R', &[0; 4]),
        message(b'S', b"standard_conforming_strings\0on\0"),
        message(b'S', b"x\0SECRET\0"),
        message(b'K', b"SECRET42"),
        ready.clone(),
    ];
    let mut script: Script = vec![
        (
            '>',
            [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat(),
        ),
        ('<', message(b'R', b"\0\0\0\x03")),
        ('>', message(b'p', b"SECRET\0")),
        ('<', settings.concat()),
    ];
    let statements = [
        (
            "SELECT a FROM t WHERE b = 'C:\\' AND c = 'SECRET'",
            "SELECT a FROM t WHERE b = ? AND c = ?",
        ),
        ("SELECT $$SECRET$$, $x$it's SECRET$x$", "SELECT ?, ?"),
        ("SELECT E'it\\'s', 'SECRET'", "SELECT ?, ?"),
        (
            "SELECT a /* don't */ FROM t -- isn't\nWHERE \"a'b\" = 'SECRET'",
            "SELECT a FROM t WHERE \"…\" = ?",
        ),
        ("ALTER ROLE bob PASSWORD 'SECRET'", "ALTER ROLE …"),
        ("SECRET", "…"),
    ];
    for (statement, _) in statements {
        let row = message(b'D', b"\0\x01\0\0\0\x06SECRET");
        let notice = message(b'N', b"SNOTICE\0VNOTICE\0C00000\0MSECRET\0\0");
        let columns = message(b'T', b"\0\x01SECRET\0");
        script.push(('>', message(b'Q', &[statement.as_bytes(), b"\0"].concat())));
        script.push((
            '<',
            [
                notice,
                columns,
                row,
                message(b'C', b"SELECT 1\0"),
                ready.clone(),
            ]
            .concat(),
        ));
    }
    let bind = message(b'B', b"\0s1\0\0\0\0\x01\0\0\0\x06SECRET\0\0");
    let run = [bind, message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat();
    script.push((
        '>',
        [
            message(b'P', b"s1\0INSERT INTO t VALUES ($1, 'SECRET')\0\0\0"),
            run,
        ]
        .concat(),
    ));
    script.push((
        '<',
        [message(b'1', b""), message(b'2', b""), error, ready.clone()].concat(),
    ));
    script.push(('>', message(b'Q', b"COPY t FROM STDIN\0")));
    script.push(('<', message(b'G', b"\0\0\0")));
    script.push((
        '>',
        [message(b'd', b"SECRET\n"), message(b'c', b"")].concat(),
    ));
    script.push(('<', [message(b'C', b"COPY 1\0"), ready].concat()));
    let names = asked(&script);
    let has_answer = |what: &str| {
        names
            .iter()
            .any(|name| name.starts_with(&format!("{what} -> ")))
    };
    assert!(has_answer("login …@shop"), "{names:?}");
    for (_, kept) in statements {
        assert!(has_answer(kept), "{kept} of {names:?}");
    }
    assert!(
        names.contains(&"INSERT INTO t VALUES ($1, ?) -> ERROR 23505".to_owned()),
        "{names:?}"
    );
}

#[test]
fn mysql_shows_no_secret() {
    let packet = |number: u8, body: &[u8]| {
        [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
    };
    let query = |text: &str| packet(0, &[b"\x03", text.as_bytes()].concat());
    let (done, end) = ([0, 0, 0, 2, 0, 0, 0], [0xfe, 0, 0, 2, 0]);
    // Protocol 4.1, a database, long passwords.
    let bits = (1_u32 << 9 | 1 << 3 | 1).to_le_bytes();
    let version = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0";
    let greeting = [
        version.as_slice(),
        &bits[..2],
        &[255, 2, 0],
        &bits[2..],
        &[21],
        &[0; 10],
        &[7; 13],
    ]
    .concat();
    let login = [
        &bits[..],
        &[0, 0, 0, 1, 255],
        &[0; 23],
        b"bob\0\x06SECRET",
        b"shop\0",
    ]
    .concat();
    let mut script: Script = vec![
        ('<', packet(0, &greeting)),
        ('>', packet(1, &login)),
        ('<', packet(2, &done)),
    ];
    let statements = [
        (
            "SELECT a FROM t WHERE b = \"SECRET\"",
            "SELECT a FROM t WHERE b = ?",
        ),
        (
            "SELECT a FROM t WHERE b = 'it\\'s' AND pw='SECRET'",
            "SELECT a FROM t WHERE b = ? AND pw=?",
        ),
        ("SELECT a # don't\n, 'SECRET'", "SELECT a , ?"),
        ("SET PASSWORD = \"SECRET\"", "SET PASSWORD …"),
        ("CREATE USER bob IDENTIFIED BY \"SECRET\"", "CREATE USER …"),
        (
            "CHANGE MASTER TO MASTER_PASSWORD='SECRET'",
            "CHANGE MASTER …",
        ),
    ];
    for (statement, _) in statements {
        let column = packet(2, b"\x03def\x06SECRET");
        let rows = [
            packet(1, &[1]),
            column,
            packet(3, &end),
            packet(4, b"\x06SECRET"),
            packet(5, &end),
        ];
        script.push(('>', query(statement)));
        script.push(('<', rows.concat()));
    }
    script.push(('>', query("INSERT INTO t VALUES ('SECRET')")));
    script.push((
        '<',
        packet(1, b"\xff\x26\x04#23000Duplicate entry 'SECRET' for key"),
    ));
    // From now on a back-slash is a letter.
    script.push(('>', query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")));
    script.push(('<', packet(1, &[0, 0, 0, 2, 2, 0, 0])));
    script.push(('>', query("SELECT 'a\\', 'SECRET'")));
    script.push(('<', packet(1, &done)));
    script.push((
        '>',
        packet(0, b"\x16SELECT a FROM t WHERE b = ? AND c = 'SECRET'"),
    ));
    script.push(('<', packet(1, &[0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])));
    script.push((
        '>',
        packet(0, b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\xfe\0\x06SECRET"),
    ));
    script.push(('<', packet(1, &done)));
    script.push((
        '>',
        packet(0, b"\x16SELECT d FROM t WHERE b = ? AND c = 'SECRET'"),
    ));
    script.push(('<', packet(1, &[0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])));
    let names = asked(&script);
    let has_answer = |what: &str| {
        names
            .iter()
            .any(|name| name.starts_with(&format!("{what} -> ")))
    };
    assert!(has_answer("login …@shop"), "{names:?}");
    for (_, kept) in statements {
        assert!(has_answer(kept), "{kept} of {names:?}");
    }
    assert!(
        names.contains(&"INSERT INTO t VALUES (?) -> ERROR 1062 (23000)".to_owned()),
        "{names:?}"
    );
    assert!(
        has_answer("SELECT ?, ?") && has_answer("PREPARE SELECT d FROM t WHERE b = ? AND c = ?"),
        "{names:?}"
    );
    assert!(
        has_answer("SELECT a FROM t WHERE b = ? AND c = ?"),
        "{names:?}"
    );
}

#[test]
fn redis_shows_no_secret() {
    let command = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let strings: String = words
            .iter()
            .map(|word| format!("${}\r\n{word}\r\n", word.len()))
            .collect();
        format!("*{}\r\n{strings}", words.len())
    };
    let calls = [
        (
            "AUTH bob SECRET",
            "-WRONGPASS SECRET\r\n",
            "AUTH -> WRONGPASS",
        ),
        (
            "HELLO 3 AUTH bob SECRET",
            "%1\r\n+server\r\n+SECRET\r\n",
            "HELLO -> map",
        ),
        ("SET user:7 SECRET EX 60", "+OK\r\n", "SET user:7 -> OK"),
        (
            "GET session:5f4dcc3b5aa765d61d8327deb882cf99",
            "$6\r\nSECRET\r\n",
            "GET session:… -> string",
        ),
        ("GET user:bob@example.org", "$-1\r\n", "GET user:… -> nil"),
        (
            "CONFIG SET requirepass SECRET",
            "+OK\r\n",
            "CONFIG SET -> OK",
        ),
        (
            "EVAL return'SECRET' 0 SECRET",
            "+SECRET\r\n",
            "EVAL -> text",
        ),
        (
            "EVALSHA SECRET 0 SECRET",
            "-SECRET is it\r\n",
            "EVALSHA -> ERROR",
        ),
        (
            "MIGRATE h 6379 SECRET 0 9 AUTH SECRET",
            "-IOERR SECRET\r\n",
            "MIGRATE -> IOERR",
        ),
        (
            "SECRET x",
            "-ERR unknown command 'SECRET'\r\n",
            "command -> ERR",
        ),
        ("LPUSH l SECRET", ":1\r\n", "LPUSH l -> integer"),
    ];
    let script: Script = calls
        .iter()
        .flat_map(|(asked, answer, _)| [says('>', &command(asked)), says('<', answer)])
        .collect();
    assert_eq!(asked(&script), calls.map(|(.., kept)| kept));
}

#[test]
fn what_no_protocol_is_known_of_shows_nothing() {
    let script: Script = vec![
        says('>', "USER bob SECRET"),
        says('<', "331 SECRET"),
        says('>', "PASS SECRET"),
        says('<', "230"),
    ];
    for contents in [false, true] {
        let all = events(&script, contents);
        assert!(
            !all.is_empty()
                && !all
                    .iter()
                    .any(|line| line.contains(SECRET) || line.contains("bob")),
            "{all:?}"
        );
    }
}

/// A statement that is sent before it is known what a back-slash means by now.
#[test]
fn postgres_statements_behind_a_change_of_quoting_show_no_secret() {
    let message = |kind: u8, body: &[u8]| {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    };
    let ready = message(b'Z', b"I");
    let body = b"\0\x03\0\0user\0bob\0database\0shop\0\0";
    let q = |t: &str| message(b'Q', &[t.as_bytes(), b"\0"].concat());
    let done = |t: &str| message(b'C', &[t.as_bytes(), b"\0"].concat());
    let off = message(b'S', b"standard_conforming_strings\0off\0");
    for first in [
        "SET standard_conforming_strings=off",
        "ROLLBACK",
        "SELECT f()",
    ] {
        let script: Script = vec![
            (
                '>',
                [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat(),
            ),
            (
                '<',
                [
                    message(b'R', &[0; 4]),
                    message(b'S', b"standard_conforming_strings\0on\0"),
                    ready.clone(),
                ]
                .concat(),
            ),
            ('>', [q(first), q("SELECT 'a\\', SECRET'")].concat()),
            (
                '<',
                [
                    done("SET"),
                    off.clone(),
                    ready.clone(),
                    done("SELECT 1"),
                    ready.clone(),
                ]
                .concat(),
            ),
            ('>', q("SELECT 'b\\', SECRET', c")),
            ('<', [done("SELECT 1"), ready.clone()].concat()),
        ];
        let names = asked(&script);
        assert!(
            names.iter().any(|name| name.starts_with("SELECT ?… ->"))
                && names.iter().any(|name| name.starts_with("SELECT ?, c ->")),
            "{names:?}"
        );
    }
}

#[test]
fn mysql_statements_behind_a_change_of_quoting_show_no_secret() {
    let packet = |number: u8, body: &[u8]| {
        [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
    };
    let query = |text: &str| packet(0, &[b"\x03", text.as_bytes()].concat());
    let done = [0, 0, 0, 2, 0, 0, 0];
    let plain = [0, 0, 0, 2, 2, 0, 0];
    let bits = (1_u32 << 9 | 1 << 3 | 1).to_le_bytes();
    let version = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0";
    let greeting = [
        version.as_slice(),
        &bits[..2],
        &[255, 2, 0],
        &bits[2..],
        &[21],
        &[0; 10],
        &[7; 13],
    ]
    .concat();
    let login = [
        &bits[..],
        &[0, 0, 0, 1, 255],
        &[0; 23],
        b"bob\0\x06SECRET",
        b"shop\0",
    ]
    .concat();
    let script: Script = vec![
        ('<', packet(0, &greeting)),
        ('>', packet(1, &login)),
        ('<', packet(2, &done)),
        ('>', query("SELECT 1")),
        ('<', packet(1, &done)),
        (
            '>',
            [
                query("SET sql_mode='NO_BACKSLASH_ESCAPES'"),
                query("SELECT 'a\\', 'SECRET'"),
            ]
            .concat(),
        ),
        ('<', [packet(1, &plain), packet(1, &plain)].concat()),
        ('>', query("SELECT 'b\\', 'SECRET', c")),
        ('<', packet(1, &plain)),
        ('>', query("x")),
        ('<', packet(1, b"\xff\x26\x04#23000E")),
        ('>', query("INSERT 'd\\', 'SECRET'")),
        ('<', packet(1, &done)),
    ];
    let names = asked(&script);
    let has_answer = |what: &str| {
        names
            .iter()
            .any(|name| name.starts_with(&format!("{what} -> ")))
    };
    assert!(
        has_answer("SELECT ?…") && has_answer("SELECT ?, ?, c") && has_answer("INSERT ?…"),
        "{names:?}"
    );
}

#[test]
fn the_trace_that_a_request_names_is_kept_and_nothing_else_of_its_headers() {
    let ids = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
    let head = format!(
        "GET /a HTTP/1.1\r\nCookie: SECRET\r\ntraceparent: 00-{}-{}-01\r\ntracestate: SECRET\r\nbaggage: SECRET\r\n\r\n",
        ids[0], ids[1]
    );
    let script = vec![
        says('>', &head),
        says('<', "HTTP/1.1 204 No Content\r\nX: SECRET\r\n\r\n"),
        says('>', "GET /b HTTP/1.1\r\ntraceparent: SECRET\r\n\r\n"),
        says('<', "HTTP/1.1 204 No Content\r\n\r\n"),
    ];
    let kept = events(&script, false);
    assert!(!kept.iter().any(|line| line.contains(SECRET)), "{kept:?}");
    let traces: Vec<&String> = kept
        .iter()
        .filter(|line| line.starts_with("REQUEST_TRACE; "))
        .collect();
    let [one] = traces[..] else {
        panic!("{kept:?}");
    };
    assert!(
        one.ends_with(&format!("; 0; {}; {}", ids[0], ids[1])),
        "{one}"
    );
}
