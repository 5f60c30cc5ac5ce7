//! Mistakes with what was meant, in `meant.txt`: what a mistake's hint leads to is a right text with the plan of the one that
//! was meant, or the text is taken as it stands and means that.

use stackline_core::plan::Plan;
use stackline_spec::{Available, CheckContext, Checked, Overrides, Severity, check, repair};

fn judged(text: &str) -> Checked {
    let worlds = [
        (
            stackline_live::CAPABILITIES,
            stackline_live::stacks::stack_tables(),
        ),
        (
            stackline_emu::CAPABILITIES,
            stackline_live::stacks::stack_tables(),
        ),
        (stackline_sim::CAPABILITIES, stackline_sim::stack_tables()),
    ];
    let worlds: Vec<Available<'_>> = worlds
        .iter()
        .map(|(can, stacks)| Available { can: *can, stacks })
        .collect();
    // Of sizes, and of moments in milliseconds.
    let read_file = |_: &str| Ok("1\n2\n3\n".to_owned());
    let (context, overrides) = (
        CheckContext {
            worlds: &worlds,
            read_file: &read_file,
            cores: &[],
        },
        Overrides::default(),
    );
    let mut checked = check(text, &context, &overrides);
    if checked.plan.is_none() {
        repair(text, &context, &overrides, &mut checked, &|| false);
    }
    checked
}

/// What is to be done, however it was written.
fn meaning(mut plan: Plan) -> Plan {
    for measurement in &mut plan.measurements {
        (measurement.text, measurement.line) = (String::new(), 0);
        measurement
            .parts
            .iter_mut()
            .for_each(|part| part.text.clear());
    }
    plan
}

/// What a reader who follows the hint comes to.
fn followed(text: &str) -> Option<Plan> {
    let checked = judged(text);
    if let Some(plan) = checked.plan {
        return Some(plan);
    }
    let first = checked
        .diagnostics
        .iter()
        .find(|d| d.severity == Severity::Error)?;
    first.hint.as_ref()?;
    judged(checked.right.as_ref()?).plan
}

#[test]
fn following_a_hint_leads_to_what_was_meant() {
    let cases: Vec<(&str, &str)> = include_str!("meant.txt")
        .split("\n\n")
        .filter_map(|case| case.trim().strip_prefix("> ")?.split_once("\n= "))
        .collect();
    assert!(cases.len() >= 150, "{}", cases.len());
    for (written, meant) in cases {
        let wanted = judged(meant).plan.map(meaning);
        assert!(wanted.is_some(), "not right itself: {meant}");
        let right = followed(written).map(meaning);
        assert!(
            right == wanted,
            "{written}\nmeant: {meant}\nis: {:?}",
            judged(written).diagnostics.first()
        );
    }
}

#[test]
fn no_text_makes_the_search_panic() {
    let pieces = [
        "5 rr 32*10",
        "\u{a0}",
        " over tcp",
        "µ",
        "5\u{2003}rr",
        "{",
        "}",
        "1,5",
        "using",
        "\"",
        "–",
        ";",
        "--",
        "link a - b",
        "é",
    ];
    for (at, first) in pieces.iter().enumerate() {
        for second in &pieces {
            let text = format!(
                "{first}{second} {} {first}",
                pieces[(at * 7 + second.len()) % pieces.len()]
            );
            let right = judged(&text).right;
            assert!(
                right.is_none_or(|right| judged(&right).plan.is_some()),
                "{text}"
            );
        }
    }
}
