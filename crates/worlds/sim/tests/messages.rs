//! An application whose programs are async functions: messages over connections, timers and processors in virtual time.

mod common;

use common::close;
use stackline_core::plan::{Plan, Stack};
use stackline_core::procedure::PairSide;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::NodeIndex;
use stackline_proto::papers::pup;
use stackline_sim::application::{ProgramContext, Simulation};
use stackline_sim::messages::{MessagePort, TcpConnectionEvent};
use stackline_sim::{CAPABILITIES, stack_tables};
use stackline_spec::{Available, CheckContext, Overrides, check};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const SECOND: u64 = 1_000_000_000;

/// What a text declares: its network, and the stack of its first part.
fn plan(text: &str) -> Plan {
    let stacks = stack_tables();
    let read_file = |_: &str| Err("no file".to_string());
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let checked = check(
        text,
        &CheckContext {
            worlds: &worlds,
            read_file: &read_file,
            cores: &[],
        },
        &Overrides::default(),
    );
    checked
        .plan
        .unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// Two hosts with a link, and a stack.
struct World {
    plan: Plan,
}

impl World {
    fn new(link: &str, stack: &str) -> Self {
        let text = format!(
            "network wan {{ host a, b; link a - b {link}; }} 1 from a to b rr 1*1 over {stack} across wan;"
        );
        Self { plan: plan(&text) }
    }

    fn simulation(&self) -> Simulation<'_, ()> {
        Simulation::new(&self.plan.networks[0], Seed::root(1), (), true)
    }

    fn stack(&self) -> &Stack {
        &self.plan.measurements[0].parts[0].stack
    }

    fn connect(&self, simulation: &mut Simulation<'_, ()>) -> [MessagePort<u32>; 2] {
        simulation
            .connect(NodeIndex(0), NodeIndex(1), [self.stack(); 2])
            .expect("a path leads there")
    }
}

/// What came, and when the last did.
#[derive(Clone, Default)]
struct Came {
    messages: Rc<RefCell<Vec<u32>>>,
    last: Rc<Cell<Instant>>,
}

impl Came {
    /// A program that takes all that comes to a side.
    fn all(&self, context: &ProgramContext, port: MessagePort<u32>) {
        let (came, clock) = (self.clone(), context.clone());
        context.spawn(async move {
            loop {
                let message = port.receive().await;
                came.messages.borrow_mut().push(message);
                came.last.set(clock.now());
            }
        });
    }

    fn count(&self) -> usize {
        self.messages.borrow().len()
    }
}

fn run(simulation: &mut Simulation<'_, ()>, seconds: u64) {
    while simulation
        .next(Instant(seconds * SECOND))
        .expect("time goes on")
        .is_some()
    {}
}

#[test]
fn messages_arrive_whole_in_order_at_the_links_rate() {
    let world = World::new("10 Mbit/s 10 ms", "tcp");
    let mut simulation = world.simulation();
    let [near, far] = world.connect(&mut simulation);
    for number in 0..100 {
        near.put(50_000, number);
    }
    let came = Came::default();
    came.all(&simulation.context(), far);
    run(&mut simulation, 60);
    assert_eq!(*came.messages.borrow(), (0..100).collect::<Vec<_>>());
    // 5 MB with headers of 52 in 1500 bytes, and a handshake and a slow start of some round trips.
    close(
        came.last.get().0 as f64 / 1e9,
        5e6 * 8.0 * 1500.0 / 1448.0 / 10e6 + 0.06,
        0.02,
    );
}

#[test]
fn who_does_not_read_stops_the_sender_and_goes_on_later() {
    let world = World::new(
        "100 Mbit/s 1 ms",
        "tcp(send_buffer = 64 KiB, receive_buffer = 64 KiB)",
    );
    let mut simulation = world.simulation();
    let [near, far] = world.connect(&mut simulation);
    far.set_reading(false);
    let sent = Rc::new(Cell::new(0));
    let count = Rc::clone(&sent);
    simulation.context().spawn(async move {
        for number in 0..20 {
            near.send(49_152, number).await;
            count.set(count.get() + 1);
        }
        Ok(())
    });
    let came = Came::default();
    came.all(&simulation.context(), far.clone());
    run(&mut simulation, 5);
    let (sent, before) = (sent.get(), came.count());
    assert!(
        (2..6).contains(&sent) && before == 0,
        "{sent} sent, {before} came"
    );
    far.set_reading(true);
    run(&mut simulation, 10);
    assert_eq!(came.count(), 20);
}

#[test]
fn losses_are_repaired_and_traced() {
    let world = World::new("10 Mbit/s 10 ms loss 2%", "tcp");
    let mut simulation = world.simulation();
    let [near, far] = world.connect(&mut simulation);
    for number in 0..50 {
        near.put(49_152, number);
    }
    let came = Came::default();
    came.all(&simulation.context(), far);
    run(&mut simulation, 60);
    let again = simulation.take_traced().into_iter().filter(|traced| {
        matches!(traced.event, TcpConnectionEvent::Again { .. })
            && traced.side == PairSide::Initiator
    });
    let (again, facts) = (again.count(), near.facts().unwrap());
    assert_eq!(came.count(), 50);
    // 1,700 segments at 2 %.
    assert!(
        (10..80).contains(&again) && facts.retransmits as usize >= again / 2,
        "{again}"
    );
}

#[test]
fn programs_that_sleep_go_on_in_the_order_of_their_moments() {
    let world = World::new("10 Mbit/s 10 ms", "tcp");
    let mut simulation = world.simulation();
    let came = Rc::new(RefCell::new(Vec::new()));
    for (at, number) in [(3, 30), (1, 10), (2, 20), (1, 11)] {
        let (context, came) = (simulation.context(), Rc::clone(&came));
        simulation.context().spawn(async move {
            context.sleep_until(Instant(at * SECOND)).await;
            came.borrow_mut().push((context.now().0 / SECOND, number));
            Ok(())
        });
    }
    run(&mut simulation, 10);
    assert_eq!(*came.borrow(), [(1, 10), (1, 11), (2, 20), (3, 30)]);
}

#[test]
fn a_program_that_is_called_runs_at_once_and_one_that_is_rung_once_the_present_one_waits() {
    let world = World::new("10 Mbit/s 10 ms", "tcp");
    let mut simulation = world.simulation();
    let (context, log) = (simulation.context(), Rc::new(RefCell::new(String::new())));
    let signals = [context.signal(), context.signal()];
    for (signal, name) in signals.iter().cloned().zip(['c', 'r']) {
        let log = Rc::clone(&log);
        context.spawn(async move {
            signal.wait().await;
            log.borrow_mut().push(name);
            Ok(())
        });
    }
    let (inner, own) = (context.clone(), Rc::clone(&log));
    context.spawn(async move {
        own.borrow_mut().push('1');
        signals[1].ring();
        own.borrow_mut().push('2');
        signals[0].call();
        own.borrow_mut().push('3');
        inner.sleep(Duration(1)).await;
        own.borrow_mut().push('4');
        Ok(())
    });
    run(&mut simulation, 1);
    assert_eq!(*log.borrow(), "12c3r4");
}

#[test]
fn a_program_that_fails_ends_the_simulation() {
    let world = World::new("10 Mbit/s 10 ms", "tcp");
    let mut simulation = world.simulation();
    let context = simulation.context();
    simulation.context().spawn(async move {
        context.sleep(Duration(5)).await;
        Err(stackline_sim::Error::measurement("it is over"))
    });
    assert_eq!(
        simulation.next(Instant(SECOND)).unwrap_err().message,
        "it is over"
    );
}

#[test]
fn a_stack_that_is_no_stream_is_refused() {
    let world = World::new("10 Mbit/s 10 ms", "udp");
    let refused = world
        .simulation()
        .connect::<u32>(NodeIndex(0), NodeIndex(1), [world.stack(); 2]);
    assert!(refused.unwrap_err().message.contains("over tcp"));
}

#[test]
fn messages_over_pup_arrive_whole_and_in_order_also_where_packets_are_lost() {
    for (line, most) in [("1 Mbit/s 5 ms", 3.0), ("1 Mbit/s 5 ms loss 5%", 30.0)] {
        let world = World::new(line, "tcp");
        let mut simulation = world.simulation();
        let options = pup::PupOptions {
            packet: 200,
            receive_buffer: 2000,
            ..pup::PupOptions::default()
        };
        let [near, far] = simulation
            .connect_pup(NodeIndex(0), NodeIndex(1), options)
            .unwrap();
        for number in 0..1000 {
            near.put(100 + u64::from(number % 7), number);
        }
        far.put(5000, 7000);
        let (came, back) = (Came::default(), Came::default());
        came.all(&simulation.context(), far);
        back.all(&simulation.context(), near);
        run(&mut simulation, 60);
        assert_eq!(*came.messages.borrow(), (0..1000).collect::<Vec<_>>());
        assert_eq!(*back.messages.borrow(), [7000]);
        // 103 KB in packets of 200 bytes with 50 of headers, a window of 2000 bytes and 10 ms there and back: at least 1.04 s.
        let last = came.last.get();
        assert!(
            (1.03..most).contains(&(last.0 as f64 / 1e9)),
            "{line}: {last}"
        );
    }
}

/// Packets of 2000 messages of 100 bytes to a reader that takes one a millisecond.
fn packets_of_a_slow_reader(options: &str) -> u64 {
    let stack = format!("tcp(receive_buffer = 4 KiB, nodelay{options})");
    let world = World::new("10 Mbit/s 1 ms", &stack);
    let mut simulation = world.simulation();
    let [near, far] = world.connect(&mut simulation);
    for number in 0..2000 {
        near.put(100, number);
    }
    let (came, context) = (Rc::new(Cell::new(0)), simulation.context());
    let count = Rc::clone(&came);
    simulation.context().spawn(async move {
        loop {
            far.receive().await;
            count.set(count.get() + 1);
            far.set_reading(false);
            context.sleep(Duration(SECOND / 1000)).await;
            far.set_reading(true);
        }
    });
    run(&mut simulation, 60);
    assert_eq!(came.get(), 2000);
    simulation.usage().ports[0].packets
}

#[test]
fn silly_windows_make_small_segments_of_a_slow_readers_stream() {
    let (usual, silly) = (
        packets_of_a_slow_reader(""),
        packets_of_a_slow_reader(", silly_windows"),
    );
    assert!(silly > 5 * usual, "{usual} {silly}");
}
