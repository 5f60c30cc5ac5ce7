//! The work over a stack of stackline, as the endpoints of a run do it.

use super::{CALL, UNIT, Work};
use stackline_core::plan::DataAccess;
use stackline_core::time::Instant as CoreInstant;
use stackline_endpoint::BulkDirection;
use stackline_live::buffers::LiveThreadBuffers;
use stackline_live::cancel::LiveCancelFlags;
use stackline_live::files::AgentFileDirectory;
use stackline_live::stacks::contract::LiveConnectParameters;
use stackline_live::stacks::find_stack;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

fn buffers() -> LiveThreadBuffers {
    LiveThreadBuffers::new(
        Arc::<LiveCancelFlags>::default(),
        &AgentFileDirectory::default(),
        &DataAccess::Memory,
        &DataAccess::Memory,
        UNIT,
    )
    .expect("memory")
}

/// Does the work over the stack of that name.
pub(super) fn carry_out(name: &str, work: Work) -> Duration {
    let stack = find_stack(name).expect("a stack");
    let parameters = LiveConnectParameters {
        stack: stack.table().stack(BTreeMap::new()),
        token: [7; 16],
        carries_data: true,
        replica: 0,
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        member: None,
        foreign: Arc::default(),
    };
    let mut listener = stack.listen(&parameters).expect("a listener");
    let address = format!("127.0.0.1:{}", listener.address());
    let server = thread::spawn(move || {
        let mut buffers = buffers();
        let mut connection = listener.accept(&mut buffers).expect("a connection");
        let buffers = &mut buffers;
        match work {
            Work::Calls(times) => {
                for _ in 0..times {
                    assert!(connection.await_call(CALL, buffers).expect("a call"));
                    connection.reply(CALL, buffers).expect("an answer");
                }
            }
            Work::Units(times) => {
                let get = BulkDirection::Get;
                assert!(connection.await_start_bulk(get, buffers).expect("a start"));
                connection.send(UNIT, times, buffers).expect("data");
                connection.await_stop_bulk(get, buffers).expect("an end");
            }
        }
        connection.await_disconnect(buffers).expect("an end");
    });
    let mut buffers = buffers();
    let buffers = &mut buffers;
    let mut connector = stack.connector(&parameters, &address).expect("an address");
    let mut connection = connector.connect(buffers).expect("a connection");
    connection.settle(buffers).expect("rest");
    let begun = Instant::now();
    match work {
        Work::Calls(times) => {
            for _ in 0..times {
                let since = CoreInstant::default();
                assert!(connection.call(CALL, CALL, since, buffers).expect("a call"));
            }
        }
        Work::Units(times) => {
            let get = BulkDirection::Get;
            connection.start_bulk(get, buffers).expect("a start");
            assert_eq!(
                connection.receive(UNIT, times, buffers).expect("data"),
                times
            );
            connection.stop_bulk(get, buffers).expect("an end");
        }
    }
    let took = begun.elapsed();
    connection.disconnect(buffers).expect("an end");
    drop(connector);
    server.join().expect("the server");
    took
}
