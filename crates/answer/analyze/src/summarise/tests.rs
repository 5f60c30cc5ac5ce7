//! Summaries of small plans whose figures can be checked by hand.

mod costs_of_work;
mod figures_of_runs;
mod several_parts;
mod until;
mod warning_flags;

use super::*;
use crate::testing::{self, part};
use stackline_core::plan::Composer;
use stackline_core::run_record::SideRecord;

pub(crate) fn get(text: &str) -> MeasurementPart {
    MeasurementPart {
        text: text.into(),
        ..part("host khons; 1 from khons bulk_get 1000*10")
    }
}

fn rr() -> MeasurementPart {
    part("host khons; 1 from khons rr 1000, 1000*10")
}

pub(crate) fn plan(composer: Composer, parts: Vec<MeasurementPart>) -> Plan {
    let mut plan = testing::plan("3 warmup 1 bulk_get 1000*10");
    let measurement = &mut plan.measurements[0];
    (measurement.composer, measurement.parts) = (composer, parts);
    plan
}

/// `mb` megabytes in one second.
pub(crate) fn moved(part: usize, run: u32, mb: u64) -> RunRecord {
    let side = SideRecord {
        received_units: mb * 1000,
        received_bytes: mb * 1_000_000,
        ..SideRecord::default()
    };
    RunRecord {
        part,
        run,
        replicas: 1,
        elapsed_ns: 1_000_000_000,
        initiator: side,
        ..RunRecord::default()
    }
}

fn called(run: u32, ns: &[u64]) -> RunRecord {
    let calls = crate::statistics::tests::histogram(ns);
    RunRecord {
        run,
        replicas: 1,
        elapsed_ns: calls.sum,
        calls,
        ..RunRecord::default()
    }
}
