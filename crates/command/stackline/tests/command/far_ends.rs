//! Servers outside the run: what is measured of them, and whose fault each error is.

use crate::framed::segments_of_connections;
use crate::support::authority::{Measured, TestAuthority};
use crate::support::daemons::{Daemon, free_port, run_with, served as server};
use crate::support::{Finished, Place, has_program, number};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tungstenite::Message;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;

/// Reads the head of a request; false at the end of the connection.
fn reads_head(reader: &mut BufReader<TcpStream>) -> bool {
    let (mut line, mut any) = (String::new(), false);
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        any = true;
        if line == "\r\n" {
            return true;
        }
        line.clear();
    }
    assert!(!any, "a head was cut short");
    false
}

/// A web server that answers each request without a body with these bytes.
fn web(answer: &'static [u8]) -> SocketAddr {
    server(move |stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        while reads_head(&mut reader) {
            if writer.write_all(answer).is_err() {
                return;
            }
        }
    })
}

fn run(text: &str) -> Finished {
    let place = Place::new();
    place.stackline(&["run", "--json", "-e", text])
}

fn measured(text: &str) -> serde_json::Value {
    let output = run(text);
    output.succeeds();
    output.json()["measurements"][0].clone()
}

#[test]
fn answers_of_any_form_are_received_whole() {
    let answers: [(&'static [u8], &str); 5] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "5 B"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: a\r\n\r\n", "5 B"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "2 B"),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", "3 B"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
    ];
    for (answer, body) in answers {
        let row = measured(&format!("2 to \"http://{}/a\" rr 0*20", web(answer)));
        assert_eq!(number(&row, "/response_s/n"), 40.0, "{row}");
        assert_eq!(
            row["initiator"]["settings"]["body"].as_str().unwrap_or(""),
            body
        );
        let absent = row["absent"]["responder"].as_str().unwrap();
        assert!(absent.contains("is outside the run"), "{absent}");
    }
}

#[test]
fn a_server_that_closes_after_each_answer_gets_a_new_connection_each_time() {
    let address = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        if reads_head(&mut BufReader::new(stream)) {
            writer
                .write_all(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
                .unwrap();
            writer.shutdown(Shutdown::Both).unwrap();
        }
    });
    let row = measured(&format!("1 to \"http://{address}/\" rr 0*10"));
    assert_eq!(number(&row, "/response_s/n"), 10.0);
    let flags = row["flags"].to_string();
    assert!(
        flags.contains("the server closes the connection after answers"),
        "{flags}"
    );
}

#[test]
fn bodies_go_both_ways() {
    let address = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            let chunked = line.starts_with("PUT ");
            let mut length = 0;
            while line != "\r\n" {
                if let Some(written) = line.strip_prefix("Content-Length: ") {
                    length = written.trim().parse().unwrap();
                }
                line.clear();
                reader.read_line(&mut line).unwrap();
            }
            reader
                .by_ref()
                .take(length)
                .read_to_end(&mut Vec::new())
                .unwrap();
            let mut left = chunked;
            while left {
                line.clear();
                reader.read_line(&mut line).unwrap();
                let length = u64::from_str_radix(line.trim(), 16).unwrap();
                reader
                    .by_ref()
                    .take(length + 2)
                    .read_to_end(&mut Vec::new())
                    .unwrap();
                left = length > 0;
            }
            writer
                .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n")
                .unwrap();
            writer.write_all(&[b'x'; 1000]).unwrap();
            line.clear();
        }
    });
    let post = measured(&format!("1 to \"http://{address}/\" rr 300*10"));
    assert_eq!(number(&post, "/response_s/n"), 10.0);
    let put = measured(&format!("1 to \"http://{address}/\" bulk_put 1000*50"));
    assert_eq!(number(&put, "/responder/received_bytes"), 50_000.0, "{put}");
    // Units do not end where bodies do.
    let get = measured(&format!("1 to \"http://{address}/\" bulk_get 999*50"));
    assert_eq!(number(&get, "/initiator/received_bytes"), 49_950.0, "{get}");
    let limited = measured(&format!(
        "1 timelimit 0.2 to \"http://{address}/\" bulk_get 64 KiB"
    ));
    assert!(
        number(&limited, "/throughput_bit_s/mean") > 0.0,
        "{limited}"
    );
}

#[test]
fn a_server_may_close_between_answers_without_a_word() {
    // Two answers for each connection.
    let address = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        for _ in 0..2 {
            if !reads_head(&mut reader) {
                return;
            }
            writer
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                .unwrap();
        }
        writer.shutdown(Shutdown::Both).unwrap();
    });
    let row = measured(&format!("1 to \"http://{address}/\" rr 0*9"));
    assert_eq!(number(&row, "/response_s/n"), 9.0);
    let flags = row["flags"].to_string();
    assert!(
        flags.contains("the server closes the connection"),
        "{flags}"
    );
}

#[test]
fn an_early_refusal_is_read() {
    // As nginx does: the answer comes before the body, and the connection ends.
    let address = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        if reads_head(&mut BufReader::new(stream)) {
            let answer =
                b"HTTP/1.1 405 Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            writer.write_all(answer).unwrap();
            writer.shutdown(Shutdown::Both).unwrap();
        }
    });
    run(&format!("1 to \"http://{address}/\" bulk_put 64 KiB*2000"))
        .fails(1, &["answered with status 405 Not Allowed"])
        .hints("`bulk_put` is PUT");
}

/// A server that answers each request when it has its head, and never reads a body; the connection stays open.
fn answers_unread(answer: &'static [u8]) -> SocketAddr {
    server(move |stream| {
        let mut writer = stream.try_clone().unwrap();
        if reads_head(&mut BufReader::new(stream)) {
            writer.write_all(answer).unwrap();
            std::mem::forget(writer);
        }
    })
}

#[test]
fn an_upload_that_was_answered_before_it_was_received_is_not_a_result() {
    let accepts = answers_unread(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let early = |method: &str| format!("answered a {method} before it had received its body");
    // The first has room in the buffers of both sides, the second has not.
    for size in ["1 MB", "20 MB"] {
        run(&format!("1 to \"http://{accepts}/\" rr {size}*1")).fails(1, &[&early("POST")]);
    }
    for length in ["", " over http(content_length = 20 MB)"] {
        run(&format!(
            "1 to \"http://{accepts}/\" bulk_put 100 kB*200{length}"
        ))
        .fails(1, &[&early("PUT")]);
    }
    let refuses = answers_unread(b"HTTP/1.1 405 Not Allowed\r\nContent-Length: 0\r\n\r\n");
    run(&format!("1 to \"http://{refuses}/\" rr 20 MB*1"))
        .fails(1, &["answered with status 405 Not Allowed"]);
}

#[test]
fn an_interim_answer_does_not_end_a_request() {
    // The server says `100 Continue` unasked, and reads the rest after it.
    let address = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        if reads_head(&mut reader) {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
            let mut body = vec![0; 20_000_000];
            reader.read_exact(&mut body).unwrap();
            writer
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
        }
    });
    let row = measured(&format!("1 to \"http://{address}/\" rr 20 MB*1"));
    assert_eq!(number(&row, "/response_s/n"), 1.0);
}

#[test]
fn a_time_limit_ends_what_a_server_never_ends() {
    let endless = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while stream.write_all(b"5\r\nhello\r\n").is_ok() {}
    });
    run(&format!("1 timelimit 0.2 to \"http://{endless}/\" rr 0"))
        .fails(1, &["had not ended its answer 5 s after the time limit"]);
    let silent = server(|stream| drop(BufReader::new(stream).read_to_end(&mut Vec::new())));
    run(&format!("1 timelimit 0.2 to \"http://{silent}/\" rr 0"))
        .fails(1, &["had not ended its answer 5 s after the time limit"]);
}

#[test]
fn what_a_web_server_does_wrong_is_said_of_it() {
    let wrong: [(&'static [u8], &str, &str); 12] = [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "it sent more than its answer says",
            "",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
            "`2, 3` as the length of its body",
            "",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            "a chunk has no length",
            "",
        ),
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "answered with status 404 Not Found",
            "check the path",
        ),
        (
            b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
            "answered with status 503 Busy",
            "overloaded",
        ),
        (
            b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n",
            "answered with status 302 Found",
            "it redirects to: /b",
        ),
        (
            b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
            "does not answer in HTTP/1.1",
            "an SSH server listens there",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "does not answer in HTTP/1.1: `-1` as the length of its body",
            "",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "a chunk has no length",
            "",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
            "a chunk is longer than it says",
            "",
        ),
        (
            b"HTTP/1.1 401 Who?\r\n\r\n",
            "answered with status 401",
            "needs no login",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "as the length of its body",
            "",
        ),
    ];
    for (answer, message, hint) in wrong {
        let output = run(&format!("1 to \"http://{}/a\" rr 0*20", web(answer)));
        output.fails(1, &[message]);
        if !hint.is_empty() {
            output.hints(hint);
        }
    }
    for empty in [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..],
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        run(&format!("1 to \"http://{}/\" bulk_get 9*9", web(empty))).fails(1, &["is empty"]);
    }
    let cut = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        if reads_head(&mut BufReader::new(stream)) {
            writer
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal")
                .unwrap();
            writer.shutdown(Shutdown::Both).unwrap();
        }
    });
    run(&format!("1 to \"http://{cut}/\" rr 0*20"))
        .fails(1, &["closed the connection within an answer's body"]);
    let endless = server(|mut stream| {
        let line = [b'a'; 4096];
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        while stream.write_all(&line).is_ok() {}
    });
    run(&format!("1 to \"http://{endless}/\" rr 0*20"))
        .fails(1, &["the head of an answer from", "is longer than 65536 B"]);
    let silent = server(|stream| drop(BufReader::new(stream).read_to_end(&mut Vec::new())));
    run(&format!(
        "1 to \"http://{silent}/\" rr 0*20 over http(timeout = 50 ms)"
    ))
    .fails(1, &["received everything and does not answer for 50.0 ms"])
    .hints("http(timeout = 2 min)");
}

#[test]
fn small_services_are_what_their_rfcs_say() {
    let echo = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut BufReader::new(stream), &mut writer);
    });
    let row = measured(&format!("2 to \"echo://{echo}\" rr 1000*30"));
    assert_eq!(number(&row, "/response_s/n"), 60.0);
    let discard = server(|stream| {
        drop(std::io::copy(
            &mut BufReader::new(stream),
            &mut std::io::sink(),
        ))
    });
    let row = measured(&format!("1 to \"discard://{discard}\" bulk_put 10 kB*30"));
    assert_eq!(number(&row, "/responder/received_bytes"), 300_000.0);
    let chargen = server(|mut stream| while stream.write_all(&[b'!'; 72]).is_ok() {});
    let row = measured(&format!("1 to \"chargen://{chargen}\" bulk_get 1000*30"));
    assert_eq!(number(&row, "/initiator/received_bytes"), 30_000.0);
    let row = measured(&format!(
        "1 to \"tcpconnect://{chargen}\" connect_disconnect 0*30"
    ));
    assert_eq!(number(&row, "/connect_s/n"), 30.0);
}

#[test]
fn a_redis_answers_commands_or_says_why_not() {
    let redis = |reply: &'static [u8]| {
        server(move |stream| {
            let mut writer = stream.try_clone().unwrap();
            let mut reader = BufReader::new(stream);
            let mut number = || {
                let mut line = String::new();
                reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
                let words = line.trim_start_matches('*').trim().parse::<u64>().unwrap();
                for _ in 0..words {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                    let length: u64 = line.trim_start_matches('$').trim().parse().unwrap();
                    let word = &mut Vec::new();
                    reader.by_ref().take(length + 2).read_to_end(word).unwrap();
                }
                Some(words)
            };
            while number().is_some() {
                if writer.write_all(reply).is_err() {
                    return;
                }
            }
        })
    };
    for reply in [
        &b"+PONG\r\n"[..],
        b"$5\r\nhello\r\n",
        b"$-1\r\n",
        b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
        b"%1\r\n+k\r\n_\r\n",
    ] {
        let row = measured(&format!("1 to \"redis://{}/GET/a\" rr 0*20", redis(reply)));
        assert_eq!(number(&row, "/response_s/n"), 20.0, "{row}");
    }
    let set = measured(&format!(
        "1 to \"redis://{}/SET/a\" rr 64*20",
        redis(b"+OK\r\n")
    ));
    assert_eq!(number(&set, "/response_s/n"), 20.0);
    let deep: &'static [u8] = Box::leak("*1\r\n".repeat(34).into_bytes().into_boxed_slice());
    for (reply, message) in [
        (
            &b"-NOAUTH Authentication required.\r\n"[..],
            "replied: NOAUTH Authentication required.",
        ),
        (b"HTTP/1.1 400\r\n", "sent a line that is not of RESP"),
        (b"$abc\r\n", "sent a length that is not a number"),
        (deep, "arrays nested too deeply"),
    ] {
        run(&format!("1 to \"redis://{}\" rr 0*20", redis(reply))).fails(1, &[message]);
    }
}

/// A WebSocket server that sends messages back; 100 of 1000 bytes come before.
fn messages(mut stream: TcpStream) {
    let Ok(mut messages) = tungstenite::accept(&mut stream) else {
        return;
    };
    for _ in 0..100 {
        messages
            .send(Message::Binary(vec![7; 1000].into()))
            .unwrap();
    }
    while let Ok(message) = messages.read() {
        if message.is_binary() && messages.send(message).is_err() {
            return;
        }
    }
}

/// The same, without the messages before.
fn echoed(mut stream: TcpStream) {
    let Ok(mut messages) = tungstenite::accept(&mut stream) else {
        return;
    };
    while let Ok(message) = messages.read() {
        if message.is_binary() && messages.send(message).is_err() {
            return;
        }
    }
}

#[test]
fn messages_of_websocket_and_their_echo() {
    let address = server(echoed);
    for (text, calls) in [
        ("rr 0*20", 20.0),
        ("rr 70000*20", 20.0),
        ("4 rr 5*20", 80.0),
    ] {
        let row = measured(&format!("1 to \"ws://{address}/chat?room=1\" {text}"));
        assert_eq!(number(&row, "/response_s/n"), calls, "{text}");
    }
    let put = measured(&format!("1 to \"ws://{address}\" bulk_put 1000*100"));
    assert_eq!(number(&put, "/initiator/sent_bytes"), 100_000.0);
    let address = server(messages);
    let get = measured(&format!("1 to \"ws://{address}/\" bulk_get 1000*100"));
    assert_eq!(number(&get, "/initiator/received_bytes"), 100_000.0);
    // What the server pushes meanwhile is not taken for a pong.
    let pings = measured(&format!("1 to \"ws://{address}/\" rr 0*20"));
    assert_eq!(number(&pings, "/response_s/n"), 20.0);
}

#[test]
fn what_is_not_a_websocket_is_named() {
    let leaves = server(|mut stream| {
        if let Ok(mut messages) = tungstenite::accept(&mut stream) {
            let _ = messages.close(Some(CloseFrame {
                code: CloseCode::Away,
                reason: "restarting".into(),
            }));
            while messages.read().is_ok() {}
        }
    });
    for (address, message) in [
        (
            web(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            "it answered with 404 instead of 101",
        ),
        (
            web(b"HTTP/1.1 101 Hello\r\n\r\n"),
            "its answer is not to this request",
        ),
        (web(b"220 mail.example ESMTP\r\n"), "it does not speak HTTP"),
        (leaves, "closed the connection (restarting (1001))"),
    ] {
        run(&format!("1 to \"ws://{address}/\" rr 0*20")).fails(1, &[message]);
    }
}

#[test]
fn the_examples_of_the_manual_hold() {
    let manual = include_str!("../../../../../docs/LANGUAGE.md");
    let (_, section) = manual.split_once("### Servers outside the run").unwrap();
    let block = section.split("```").nth(1).unwrap();
    assert_eq!(block.matches("://").count(), 4);
    Place::new().stackline(&["check", "-e", block]).succeeds();
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    for (text, message, hint) in [
        (
            "1 to \"htp://h/\" rr 0*9",
            "no client for `htp://` is known",
            "did you mean `http`?",
        ),
        (
            "1 to \"http://u:p@h/\" rr 0*9",
            "a user's name or password in an address",
            "omit it",
        ),
        (
            "1 to \"http://h/\" rr 0*9 over tcp",
            "the address says the protocol: http",
            "omit `over`",
        ),
        (
            "1 to \"http://h/\" rr 0, 5*9",
            "the server decides how long its answers are",
            "omit the second size",
        ),
        (
            "1 to \"echo://h/\" bulk_get 10*9",
            "`echo` has nothing for StartBulkGet",
            "it can do request_response",
        ),
        (
            "1 to \"echo://h/\" rr 0*9",
            "carries data units of at least 1 bytes",
            "write 1 or more",
        ),
        (
            "1 to \"http://h/\" rr 0*9 in simulated",
            "cannot be simulated",
            "omit `in`",
        ),
        (
            "network n { host a, b; link a - b 1 Mbit/s 1 ms; } 1 from a to \"http://h/\" rr 0*9 across n",
            "is not on a modelled network",
            "",
        ),
        (
            "1 rr 9*9 over http",
            "`http` needs the address of a server",
            "to \"http://127.0.0.1/\"",
        ),
        ("1 from \"http://h/\" rr 0*9", "expected a host name", ""),
    ] {
        let output = Place::new().run(text);
        output.mistakes(&[message]);
        assert!(output.err.contains(hint), "{}", output.err);
    }
    run("1 to \"tcpconnect://127.0.0.1\" connect_disconnect 0*9").fails(2, &["has no port"]);
    run("1 to \"http://127.0.0.1:1/\" rr 0*9").fails(3, &["cannot connect to 127.0.0.1:1"]);
}

/// A web server with a certificate for that name, and the certificate as PEM.
fn tls_web(name: &str, answer: &'static [u8]) -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.into()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let config: &'static Arc<ServerConfig> = Box::leak(Box::new(Arc::new(config)));
    let address = server(move |mut socket| {
        let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        let (mut head, mut byte) = (Vec::new(), [0]);
        while stream.read(&mut byte).is_ok_and(|read| read > 0) {
            head.push(byte[0]);
            if head.ends_with(b"\r\n\r\n") {
                head.clear();
                let _ = stream.write_all(answer);
            }
        }
    });
    (address, made.cert.pem())
}

#[test]
fn a_web_server_over_tls_is_believed_by_its_certificate() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let (address, certificate) = tls_web("localhost", ANSWER);
    let port = address.port();
    let place = Place::new();
    let authority = place.write("authority.pem", certificate);
    let text = format!("2 to \"https://localhost:{port}/\" rr 0*20");
    let mut believing = place.command(&["run", "--json", "-e", &text]);
    let output = place.finish(believing.env("SSL_CERT_FILE", &authority));
    output.succeeds();
    let row = &output.json()["measurements"][0];
    assert_eq!(number(row, "/response_s/n"), 40.0);
    let settings = &row["initiator"]["settings"];
    assert_eq!([&settings["tls"], &settings["body"]], ["TLSv1_3", "5 B"]);
    // Two runs, a connection each; a run begins without a session.
    assert_eq!(number(row, "/initiator/counts/handshakes_full"), 2.0);
    // Another name, and an authority that this host does not trust.
    let text = format!("1 to \"https://127.0.0.1:{port}/\" rr 0*20");
    let mut other = place.command(&["run", "-e", &text]);
    place
        .finish(other.env("SSL_CERT_FILE", &authority))
        .fails(
            1,
            &[
                "the certificate of the server at 127.0.0.1:",
                "is not accepted",
            ],
        )
        .hints("over https(insecure)");
    measured(&format!(
        "1 to \"https://127.0.0.1:{port}/\" rr 0*20 over https(insecure)"
    ));
    // Each connection shakes hands; later ones resume the session.
    let row = measured(&format!(
        "1 to \"https://127.0.0.1:{port}/\" connect_disconnect 0*20 over https(insecure)"
    ));
    assert_eq!(number(&row, "/connect_s/n"), 20.0);
    let counts = &row["initiator"]["counts"];
    let count = |kind: &str| counts[kind].as_u64().unwrap_or(0);
    assert_eq!(count("handshakes_full") + count("handshakes_resumed"), 20);
}

#[test]
fn handshakes_with_a_server_of_others_are_segments() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let (address, _) = tls_web("localhost", answer);
    let place = Place::new();
    let text = format!(
        "1 to \"https://127.0.0.1:{}/\" connect_disconnect 0*10 over https(insecure)",
        address.port()
    );
    place.stackline(&["run", "--trace", "-e", &text]).succeeds();
    let segments = segments_of_connections(&place);
    for handshake in ["TCP handshake", "TLS handshake"] {
        assert!(
            segments.iter().any(|name| name == handshake),
            "{segments:?}"
        );
    }
}

#[test]
fn tls_and_its_absence_are_told_apart() {
    let plain = web(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let deaf = server(|mut stream| {
        let _ = stream.read(&mut [0; 5]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    run(&format!(
        "1 to \"https://{deaf}/\" rr 0*20 over https(insecure)"
    ))
    .fails(1, &["does not speak TLS"])
    .hints("`http://` is without TLS");
    let (tls, _) = tls_web("localhost", b"");
    run(&format!("1 to \"http://{tls}/\" rr 0*20"))
        .fails(1, &["speaks TLS there"])
        .hints("`https://` is with TLS");
    // nginx and others answer so what comes to their port for TLS without it.
    run(&format!("1 to \"http://{plain}/\" rr 0*20"))
        .fails(1, &["answered with status 400"])
        .hints("`https://` is with TLS");
    let gone = server(drop);
    run(&format!(
        "1 to \"https://{gone}/\" rr 0*20 over https(insecure)"
    ))
    .fails(1, &["the server at"]);
}

fn redis_over_tls(certificate: &Path, key: &Path) -> Daemon {
    let port = free_port();
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", "0", "--save", ""]);
    command.args(["--tls-port", &port.to_string(), "--tls-auth-clients", "no"]);
    command.arg("--tls-cert-file").arg(certificate);
    command.arg("--tls-key-file").arg(key);
    // It wants an authority for clients, of which there are none.
    command.arg("--tls-ca-cert-file").arg(certificate);
    Daemon::start(&mut command, port)
}

#[test]
fn a_redis_over_tls_is_believed_by_its_certificate() {
    if !has_program("redis-server", "redis-server") {
        return;
    }
    let place = Place::new();
    let authority = TestAuthority::new(&place, None);
    let server = redis_over_tls(&authority.certificate, &authority.key);
    let redis = Measured {
        address: format!("rediss://{{}}:{}/SET/a", server.port),
        login: &[],
        what: "rr 1000*50",
        calls: 100.0,
        over: "",
        insecure: "rediss(insecure)",
    };
    redis.is_believed_by_its_certificate(&place, &authority);
    let plain = format!("1 to \"redis://127.0.0.1:{}\" rr 0*9", server.port);
    run_with(&place, &[], &plain)
        .fails(1, &["the server at"])
        .hints("`rediss://` is with TLS");
    let old = redis_over_tls(&authority.expired, &authority.expired_key);
    let text = format!("1 to \"rediss://localhost:{}\" rr 0*9", old.port);
    run_with(&place, &[authority.variable()], &text)
        .fails(1, &["is not accepted", "it expired", " ago"]);
    // A file of authorities that is not there is no reason to believe others.
    for (file, message) in [
        (
            "nowhere.pem",
            "nowhere.pem, which cannot be read: No such file",
        ),
        ("server.key", "server.key, which has no certificate in PEM"),
    ] {
        let file = place.path(file);
        let variable = ("SSL_CERT_FILE", file.to_str().unwrap());
        run_with(&place, &[variable], &text).fails(3, &["SSL_CERT_FILE names", message]);
    }
}

#[test]
fn a_redis_without_tls_is_named() {
    if !has_program("redis-server", "redis-server") {
        return;
    }
    let port = free_port();
    let mut command = Command::new("redis-server");
    command.args([
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--port",
        &port.to_string(),
    ]);
    let server = Daemon::start(&mut command, port);
    // It waits for the end of a line that never comes, or takes a part of the handshake for one.
    run(&format!(
        "1 to \"rediss://127.0.0.1:{}\" rr 0*9 over rediss(insecure, timeout = 300 ms)",
        server.port
    ))
    .fails(1, &["the server at"])
    .hints("`redis://` is without TLS");
}
