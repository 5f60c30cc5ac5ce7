//! Service times, jitter, schedules, send buffers and other clients: figures by theory, or none.

use super::*;
use stackline_core::network::{Discipline, Jitter, StepSchedule};

#[test]
fn waits_go_by_how_services_vary() {
    // Nothing on the way takes time: 5 ms of service, a call each 10 ms.
    let served = |service| {
        let mut paced = part(rr(), "tcp", 1, 20_000);
        paced.data.timings = vec![Distribution::Exponential(0.01), service];
        let mut free = network();
        for link in &mut free.links {
            (link.rate, link.delay) = (LinkRate::Unlimited, Duration(0));
        }
        one(free, paced)
    };
    for (service, theory) in [
        (Distribution::Constant(0.005), 7.5e-3),
        (Distribution::Exponential(0.005), 10e-3),
        (Distribution::Uniform(0.0, 0.01), 8.333_333e-3),
        (Distribution::Bivalue(0.001, 0.041, 0.9), 21.9e-3),
    ] {
        let answer = served(service);
        close(answer.value, theory, 1e-6);
        let [least, most] = answer.interval;
        assert!(least < theory && theory < most && most < 1.3 * theory);
    }
}

#[test]
fn a_mean_of_few_draws_is_chance() {
    let served = |service, count| {
        let mut called = part(rr(), "tcp", 1, count);
        called.data.timings = vec![];
        called.procedure.responder = vec![repeat(vec![
            call(OperationCall::Delay(DelayArgument::Drawn(service))),
            call(OperationCall::RpcReturn(SizeArgument::Reply)),
        ])];
        called
    };
    let (rare, usual) = (
        Distribution::Bivalue(0.001, 0.401, 0.95),
        Distribution::Exponential(0.02),
    );
    assert!(refused(network(), served(rare, 50)).contains("too few random times are drawn"));
    // 20 ms of deviation in 40 ms, over the root of 400: 1 ms, 1.6 times of it.
    let [least, most] = one(network(), served(usual, 400)).interval;
    close(most - least, 2.0 * (0.01 * 0.04 + 1.645e-3), 2e-2);
    let heavy = Distribution::Pareto(0.01, 1.5);
    assert!(refused(network(), served(heavy, 4000)).contains("too few random times are drawn"));
}

#[test]
fn what_changes_from_packet_to_packet_has_no_form() {
    let bulk = || part(put(), "tcp", 1000, 20_000);
    let calls = |bytes| part(rr(), "udp", bytes, 1000);
    let with = |change: fn(&mut NetworkLink)| {
        let mut network = network();
        change(&mut network.links[0]);
        network
    };
    let jitter: fn(&mut NetworkLink) = |link: &mut NetworkLink| {
        link.jitter = Some(Jitter {
            distribution: Distribution::Exponential(0.01),
            reorder: true,
            correlation: 0.0,
        });
    };
    assert!(refused(with(jitter), bulk()).contains("jitter looks like loss"));
    assert!(refused(with(jitter), calls(4000)).contains("when its slowest packet arrives"));
    // A packet each way, and the mean of the jitter there and back.
    let still = one(network(), calls(100)).value;
    close(one(with(jitter), calls(100)).value, still + 0.02, 1e-9);
    let delays: fn(&mut NetworkLink) = |link| {
        link.delays = Some(StepSchedule {
            steps: vec![(Duration(0), link.delay)],
            period: None,
        });
    };
    assert!(refused(with(delays), calls(100)).contains("a delay on the path changes over time"));
    assert!(refused(with(|link| link.duplicate = 0.01), bulk()).contains("are duplicated"));
    let early: fn(&mut NetworkLink) = |link: &mut NetworkLink| {
        link.queue = Some(LinkQueue {
            discipline: Discipline::DropHead,
            ..LinkQueue::default()
        });
    };
    assert!(refused(with(early), bulk()).contains("is not drop-tail"));
}

#[test]
fn a_send_buffer_that_limits_has_no_form() {
    // The path holds 250 kB.
    let buffer = |bytes| {
        option(
            part(put(), "tcp", 16_384, 1000),
            "send_buffer",
            OptionValue::Number(bytes),
        )
    };
    for bytes in [2 << 10, 32 << 10, 128 << 10, 256 << 10] {
        assert!(refused(network(), buffer(bytes)).contains("the send buffer is the limit"));
    }
    one(network(), buffer(1 << 20));
}

#[test]
fn clients_of_one_server_have_no_form() {
    let two = ["a", "s"].map(|from| MeasurementPart {
        from: Some(from.into()),
        ..part(rr(), "tcp", 100, 1000)
    });
    let mut shared = network();
    shared.switches.clear();
    shared.hosts.push(NetworkHost {
        name: "s".into(),
        ..NetworkHost::default()
    });
    for part in &over(shared, Composer::Parallel, two.to_vec())[..2] {
        let PredictionOutcome::NotCovered(reason) = &part.outcome else {
            panic!("covered")
        };
        assert!(reason.contains("other calls also cross s -> b"), "{reason}");
    }
}
