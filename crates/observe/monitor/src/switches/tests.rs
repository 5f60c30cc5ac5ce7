//! A simulated switch, hostile replies, and Debian's snmpd where it is installed.

use super::*;
use crate::monitors::sample::testing::lines;
use crate::snmp::{Authentication, PATIENCE, Privacy, ROWS, SnmpAccess, SnmpSecret, TRIES};
use crate::{Config, MonitorSession, Observed};
use proptest::prelude::*;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};

/// A switch with these ports, each of whose counters is its number; it replies as in RFC 3416.
fn ports(numbers: &[u64]) -> BTreeMap<Vec<u64>, ObjectValue> {
    let mut tree = BTreeMap::new();
    let mut put =
        |column: &[u64], index: u64, value| drop(tree.insert([column, &[index]].concat(), value));
    for &index in numbers {
        put(&NAME, index, ObjectValue::Name(format!("port{index}")));
        COLUMNS
            .iter()
            .for_each(|(column, _)| put(column, index, ObjectValue::Number(index)));
        OLDER
            .iter()
            .for_each(|(column, _)| put(column, index, ObjectValue::Number(index)));
    }
    tree
}

fn reply(tree: &BTreeMap<Vec<u64>, ObjectValue>, names: &[Vec<u64>]) -> Vec<Binding> {
    let mut at = names.to_vec();
    let mut bindings = Vec::new();
    for _ in 0..ROWS {
        for name in &mut at {
            let next = tree.range(name.clone()..).find(|(next, _)| *next != name);
            let (next, value) = next.map_or((name.clone(), ObjectValue::Other), |(n, v)| {
                (n.clone(), v.clone())
            });
            *name = next.clone();
            bindings.push((next, value));
        }
    }
    bindings
}

#[test]
fn a_walk_reads_every_port() {
    let numbers: Vec<u64> = (1..=48).chain([10_001]).collect();
    let tree = ports(&numbers);
    let mut requests = 0;
    let rows = walk(|names| {
        requests += 1;
        Ok(reply(&tree, names))
    });
    let rows = rows.unwrap();
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), numbers);
    assert_eq!(rows[&7].name.as_deref(), Some("port7"));
    assert_eq!(
        rows[&7].counts,
        [7, 21, 7, 7, 7, 21, 7, 7].map(Some),
        "three kinds of packets are one count"
    );
    assert!(requests <= 8, "{requests} requests");
    assert_eq!(
        walk(|_| Ok(Vec::new())).unwrap_err(),
        "it has no interfaces (IF-MIB)"
    );
}

#[test]
fn a_port_is_recorded_when_its_counters_change() {
    let row = |bytes| SwitchPortRow {
        name: Some("eth0".into()),
        counts: [
            Some(bytes),
            Some(1),
            None,
            Some(0),
            Some(5),
            Some(5),
            None,
            Some(0),
        ],
    };
    let (mut ports, mut log) = (RecordedSwitchPorts::default(), EventLog::default());
    for (at_ns, bytes) in [(10, 100), (20, 100), (30, 400), (40, 300)] {
        ports.record(at_ns, [(1, row(bytes))].into(), &mut log);
    }
    assert_eq!(
        lines(&log),
        [
            "SWITCH_PORT 20;eth0;300;0;;0;0;0;;0",
            "SWITCH_PORT 10;eth0;;0;;0;0;0;;0"
        ],
        "the growth of a counter that went back is unknown"
    );
}

#[test]
fn a_switch_that_does_not_reply_is_absent() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let observed = watched(
        &address,
        SnmpAccess::Community(SnmpSecret("public".into())),
        || {
            std::thread::sleep(PATIENCE * TRIES + Duration::from_millis(200));
        },
    );
    assert_eq!(
        observed.absent[&format!("switch {address}")],
        "it did not answer 3 requests"
    );
}

proptest! {
    #[test]
    fn a_walk_ends_whatever_the_replies(values in proptest::collection::vec((0_usize..14, 0_u64..4, any::<u64>()), 0..40)) {
        let bindings: Vec<Binding> = values.iter().map(|(column, index, number)| {
            let mut name = match column {
                0 => NAME.to_vec(),
                1..=8 => COLUMNS[column - 1].0.to_vec(),
                9..=12 => OLDER[column - 9].0.to_vec(),
                _ => vec![1, 3],
            };
            name.push(*index);
            (name, ObjectValue::Number(*number))
        }).collect();
        let _ = walk(|_| Ok(bindings.clone()));
    }
}

fn watched(address: &str, access: SnmpAccess, meanwhile: impl FnOnce()) -> Observed {
    let switches = vec![SnmpSwitch {
        address: address.into(),
        access,
    }];
    let config = Config {
        kernel: false,
        switches,
        interval: Duration::from_millis(50),
        ..Config::new("khons")
    };
    let watch = MonitorSession::start(config);
    meanwhile();
    watch.stop()
}

/// Debian's agent on a port of loopback, killed at the end of the test.
struct Snmpd {
    child: Child,
    address: String,
    _directory: tempfile::TempDir,
}

impl Snmpd {
    fn start() -> Option<Self> {
        let path = ["/usr/sbin/snmpd", "/usr/local/sbin/snmpd"]
            .into_iter()
            .find(|path| std::path::Path::new(path).exists());
        let Some(path) = path else {
            stackline_testing::skip("snmpd is not installed (apt-get install snmpd)");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let address = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        let config = directory.path().join("snmpd.conf");
        let text = format!(
            "agentaddress udp:{address}\nrocommunity readable\ncreateUser private SHA-256 \"first password\" AES \"second password\"\n\
             createUser signed SHA \"first password\"\nrouser private priv\nrouser signed auth\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(path);
        command.args([
            "-f",
            "-Ln",
            "-C",
            "-I",
            "ifTable,ifXTable,interface,snmpEngine,usmUser,usmStats,snmpMPDStats,vacm_conf,usmConf",
        ]);
        command
            .arg("-c")
            .arg(&config)
            .arg("-p")
            .arg(directory.path().join("pid"));
        command
            .env("SNMP_PERSISTENT_DIR", directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Without this it reads all descriptions of MIBs and complains about them.
        command.env("MIBS", "");
        let child = command.spawn().unwrap();
        let snmpd = Self {
            child,
            address,
            _directory: directory,
        };
        stackline_testing::wait_until("snmpd replies", || snmpd.replies());
        Some(snmpd)
    }
}

impl Snmpd {
    fn replies(&self) -> bool {
        let mut session =
            SyncSession::new_v2c(&self.address, b"readable", Some(PATIENCE), 1).unwrap();
        bulk(&mut session, &[NAME.to_vec()]).is_ok_and(|bindings| !bindings.is_empty())
    }
}

impl Drop for Snmpd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends data over loopback for so long.
fn traffic(done: Duration) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    std::thread::spawn(move || std::io::copy(&mut &far, &mut std::io::sink()));
    let began = Instant::now();
    while began.elapsed() < done {
        near.write_all(&[7; 100_000]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn recorded_with(access: &SnmpAccess) -> Option<(Vec<String>, Observed)> {
    let snmpd = Snmpd::start()?;
    // It updates its counters every few seconds only.
    let observed = watched(&snmpd.address, access.clone(), || {
        traffic(Duration::from_secs(5))
    });
    let rows = lines(&observed.event_log)
        .into_iter()
        .filter(|line| line.starts_with("SWITCH_PORT"))
        .collect();
    Some((rows, observed))
}

fn records_loopback(access: &SnmpAccess) {
    let Some((rows, observed)) = recorded_with(access) else {
        return;
    };
    let grew = rows.iter().filter(|row| row.contains(";lo;")).any(|row| {
        row.split(';')
            .nth(2)
            .and_then(|bytes| bytes.parse::<u64>().ok())
            .is_some_and(|bytes| bytes > 100_000)
    });
    assert!(grew, "{rows:?} {:?}", observed.absent);
    assert!(observed.cost_s["switches"] > 0.0);
}

#[test]
fn an_agent_replies_to_a_community() {
    records_loopback(&SnmpAccess::Community(SnmpSecret("readable".into())));
}

#[test]
fn an_agent_replies_to_an_authenticated_user() {
    let authentication = Some((Authentication::Sha1, SnmpSecret("first password".into())));
    records_loopback(&SnmpAccess::User {
        name: "signed".into(),
        authentication,
        privacy: None,
    });
}

#[test]
fn an_agent_replies_to_a_user_with_encryption() {
    let authentication = Some((Authentication::Sha256, SnmpSecret("first password".into())));
    let privacy = Some((Privacy::Aes128, SnmpSecret("second password".into())));
    records_loopback(&SnmpAccess::User {
        name: "private".into(),
        authentication,
        privacy,
    });
}

#[test]
fn an_agent_does_not_reply_to_a_wrong_password() {
    let wrong = Some((Authentication::Sha256, SnmpSecret("wrong password".into())));
    let privacy = Some((Privacy::Aes128, SnmpSecret("second password".into())));
    let access = SnmpAccess::User {
        name: "private".into(),
        authentication: wrong,
        privacy,
    };
    let Some((rows, observed)) = recorded_with(&access) else {
        return;
    };
    assert!(rows.is_empty());
    assert!(
        observed
            .absent
            .keys()
            .any(|name| name.starts_with("switch ")),
        "{:?}",
        observed.absent
    );
}
