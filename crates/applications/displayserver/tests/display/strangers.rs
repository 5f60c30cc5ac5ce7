//! Strangers at the ports of a display: nothing is done for them, and they keep no client out.

use crate::common::served as served_at;
use crate::support::{served, viewed};
use stackline_display::protocol::{DisplayRequest, VERSION, write_request};
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::agent;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::server::DisplayServer;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn strangers_get_no_further_than_the_door() {
    let (server, address) = served("secret");
    let error = DisplayClient::connect(&address, b"guess").unwrap_err();
    assert!(
        error.hint.unwrap().contains("--secret-file") || error.message.contains("ended"),
        "{}",
        error.message
    );
    DisplayClient::connect(&address, b"secret").unwrap();
    let DisplayAddress::Tcp(port) = &address else {
        unreachable!()
    };
    let mut web = TcpStream::connect(port).unwrap();
    web.write_all(b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n")
        .unwrap();
    web.write_all(&[b'x'; 200]).unwrap();
    let mut answer = Vec::new();
    let _ = web.read_to_end(&mut answer);
    assert!(answer.is_empty());
    assert_eq!(
        server
            .last(|_, display| display.windows().count())
            .unwrap_or(0),
        0
    );
}

/// What a browser sends for a page of somebody else, with requests that would do something behind it.
#[test]
fn no_port_takes_requests_behind_a_post() {
    let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
    let mut body = Vec::new();
    write_request(
        &mut body,
        &DisplayRequest::Hello {
            version: VERSION,
            token: b"secret",
        },
        true,
    );
    write_request(
        &mut body,
        &DisplayRequest::CreateWindow(1, (100, 100), b"owned"),
        true,
    );
    let post = [
        b"POST / HTTP/1.1\r\nHost: x\r\nOrigin: http://evil\r\n\r\n".as_slice(),
        &body,
    ]
    .concat();
    let display = served_at(&server, "127.0.0.1:0");
    let service = agent::DisplayAgentOptions {
        display: display.clone(),
        limits: DisplayClientLimits::default(),
        patience: Duration::from_secs(5),
        secret: b"secret".to_vec(),
    };
    let by_agent = DisplayListener::at(&DisplayAddress::Tcp("127.0.0.1:0".into())).unwrap();
    let behind = by_agent.address();
    std::thread::spawn(move || agent::serve(&by_agent, &service, |_| {}));
    let page = viewed(&server);
    let page = DisplayAddress::Tcp(
        page.trim_start_matches("http://")
            .split_once('/')
            .unwrap()
            .0
            .to_owned(),
    );
    let by_frames = served_at(&server, "ngp:127.0.0.1:0");
    for address in [&display, &by_frames, &behind, &page] {
        let place = address.to_string().trim_start_matches("ngp:").to_owned();
        let mut stream = TcpStream::connect(&place).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let _ = stream.write_all(&post);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let is_refused = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4");
        assert!(
            is_refused,
            "{address}: {}",
            String::from_utf8_lossy(&answer)
        );
        assert!(server.displays().is_empty(), "{address}");
    }
    // The same without HTTP before it is a client.
    let mut stream = TcpStream::connect(display.to_string()).unwrap();
    stream.write_all(&body).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    assert_eq!(server.displays().len(), 1);
}

/// Silent ones, ones that begin a greeting, ones with a wrong secret: far more than there are places.
#[test]
fn strangers_keep_no_client_out() {
    let (server, address) = served("secret");
    let clients: Vec<DisplayClient> = (0..63)
        .map(|_| DisplayClient::connect(&address, b"secret").unwrap())
        .collect();
    let mut strangers = std::collections::VecDeque::new();
    for number in 0..4200 {
        let mut stream = TcpStream::connect(address.to_string()).unwrap();
        if number % 3 == 1 {
            stream.write_all(&[1, 0]).unwrap();
        }
        if number % 100 == 0 {
            let mut hello = Vec::new();
            write_request(
                &mut hello,
                &DisplayRequest::Hello {
                    version: VERSION,
                    token: b"guess!",
                },
                false,
            );
            stream.write_all(&hello).unwrap();
        }
        strangers.push_back(stream);
        if strangers.len() > 300 {
            strangers.pop_front();
        }
    }
    let last = DisplayClient::connect(&address, b"secret").unwrap();
    assert_eq!(server.displays().len(), 64);
    drop((clients, last));
}

#[test]
fn a_unix_socket_is_private_and_its_user_s_programs_need_no_secret() {
    use std::os::unix::fs::PermissionsExt;
    let place = std::env::temp_dir().join(format!("stackline-private-{}", std::process::id()));
    let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
    for at in ["unix:", "ngp:unix:"] {
        let address = served_at(&server, &format!("{at}{}", place.display()));
        assert_eq!(
            std::fs::symlink_metadata(&place)
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        DisplayClient::connect(&DisplayAddress::parse(&address.to_string()).unwrap(), b"").unwrap();
        std::fs::remove_file(&place).unwrap();
    }
}
