//! A strict reader of metrics: OpenMetrics 1.0, and Prometheus' text format 0.0.4 as far as stackline writes it. What a scraper could refuse
//! or misread is an error here.

use std::collections::{BTreeMap, BTreeSet};

/// A family as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadMetricFamily {
    /// The name in its `# TYPE`.
    pub name: String,
    /// The kind in its `# TYPE`.
    pub kind: String,
    /// The unit in its `# UNIT`; empty without one.
    pub unit: String,
    /// The text of its `# HELP`.
    pub help: String,
    /// The samples in their order.
    pub samples: Vec<ReadMetricSample>,
}

/// A sample as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadMetricSample {
    /// The whole name, as in `name_total`.
    pub name: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

/// Which text is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricsDialect {
    OpenMetrics,
    Prometheus,
}

/// Reads OpenMetrics 1.0.
///
/// # Errors
/// The first line that violates it, and how.
pub fn read_openmetrics(text: &str) -> Result<Vec<ReadMetricFamily>, String> {
    let body = text
        .strip_suffix("# EOF\n")
        .ok_or("it does not end with `# EOF`")?;
    read(body, MetricsDialect::OpenMetrics)
}

/// Reads Prometheus' text format 0.0.4.
///
/// # Errors
/// The first line that violates it, and how.
pub fn read_prometheus(text: &str) -> Result<Vec<ReadMetricFamily>, String> {
    read(text, MetricsDialect::Prometheus)
}

fn read(text: &str, dialect: MetricsDialect) -> Result<Vec<ReadMetricFamily>, String> {
    let mut families: Vec<ReadMetricFamily> = Vec::new();
    let (mut names, mut series) = (BTreeSet::new(), BTreeSet::new());
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    for line in text.lines() {
        let wrong = |why: &str| format!("{why}: {line}");
        if let Some(described) = line.strip_prefix("# ") {
            let mut words = described.splitn(3, ' ');
            let (what, name, rest) = (
                words.next().unwrap_or(""),
                words.next().unwrap_or(""),
                words.next().unwrap_or(""),
            );
            if what == "TYPE" {
                if !is_name(name) || !names.insert(name.to_owned()) {
                    return Err(wrong("a name that is not valid or used twice"));
                }
                families.push(ReadMetricFamily {
                    name: name.into(),
                    kind: rest.into(),
                    ..ReadMetricFamily::default()
                });
                continue;
            }
            let family = families
                .last_mut()
                .filter(|family| family.name == name && family.samples.is_empty())
                .ok_or_else(|| wrong("a description apart from its family"))?;
            match what {
                "UNIT" if dialect == MetricsDialect::OpenMetrics && family.unit.is_empty() => {
                    if !name.ends_with(&format!("_{rest}")) {
                        return Err(wrong("a name that does not end with its unit"));
                    }
                    family.unit = rest.into();
                }
                "HELP" if family.help.is_empty() => {
                    family.help = unescaped(rest).ok_or_else(|| wrong("an escape"))?
                }
                _ => return Err(wrong("a description that is not known or comes twice")),
            }
            continue;
        }
        let sample = sample(line).ok_or_else(|| wrong("no sample"))?;
        let family = families
            .last_mut()
            .ok_or_else(|| wrong("a sample without a family"))?;
        check_name(family, &sample, dialect).map_err(|why| wrong(&why))?;
        if !series.insert((sample.name.clone(), sample.labels.clone())) {
            return Err(wrong("a sample that comes twice"));
        }
        family.samples.push(sample);
    }
    for family in &families {
        check_buckets(family)?;
    }
    Ok(families)
}

/// Whether a sample's name and value fit its family.
fn check_name(
    family: &ReadMetricFamily,
    sample: &ReadMetricSample,
    dialect: MetricsDialect,
) -> Result<(), String> {
    let is_open = dialect == MetricsDialect::OpenMetrics;
    let suffixes: &[&str] = match family.kind.as_str() {
        "counter" if is_open => &["_total"],
        "info" if is_open => &["_info"],
        "counter" | "gauge" => &[""],
        "histogram" => &["_bucket", "_count", "_sum"],
        other => return Err(format!("the unknown kind {other:?}")),
    };
    let suffix = suffixes
        .iter()
        .find(|suffix| sample.name == format!("{}{suffix}", family.name))
        .ok_or("a sample of another family")?;
    let is_sum = family.kind == "counter" || family.kind == "histogram";
    if is_sum && (sample.value.is_nan() || sample.value < 0.0) {
        return Err("a sum below 0".into());
    }
    if family.kind == "info" && sample.value != 1.0 {
        return Err("an info that is not 1".into());
    }
    if (*suffix == "_bucket") != sample.labels.contains_key("le") {
        return Err("`le` without a bucket, or a bucket without `le`".into());
    }
    Ok(())
}

/// Whether the buckets of each histogram grow up to its count.
fn check_buckets(family: &ReadMetricFamily) -> Result<(), String> {
    if family.kind != "histogram" {
        return Ok(());
    }
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        let bound = labels.remove("le").and_then(|bound| number(&bound));
        if let Some(bound) = bound {
            series
                .entry(labels)
                .or_default()
                .push((bound, sample.value));
        } else if sample.name.ends_with("_count") {
            counts.insert(labels, sample.value);
        }
    }
    for (labels, buckets) in &series {
        let grow = buckets
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let last = buckets.last().copied();
        let all = counts.get(labels).copied().map(|all| (f64::INFINITY, all));
        if !grow || last.is_none() || last != all {
            return Err(format!(
                "buckets of {} that do not grow to its count",
                family.name
            ));
        }
    }
    Ok(())
}

fn sample(line: &str) -> Option<ReadMetricSample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, behind) = rest.split_once("=\"")?;
            let close = closing_quote(behind)?;
            let value = unescaped(&behind[..close])?;
            if !is_name(label)
                || label.contains(':')
                || labels.insert(label.to_owned(), value).is_some()
            {
                return None;
            }
            rest = &behind[close + 1..];
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = rest.strip_prefix(',')?;
        }
    }
    let value = number(rest.strip_prefix(' ')?)?;
    is_name(name).then(|| ReadMetricSample {
        name: name.into(),
        labels,
        value,
    })
}

/// Where the quote stands that no backslash precedes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

fn unescaped(text: &str) -> Option<String> {
    let (mut out, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                '\\' => '\\',
                '"' => '"',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        // Rust also takes `inf` and `infinity`, which these formats write otherwise.
        other if other.contains(char::is_alphabetic) && !other.contains(['e', 'E']) => None,
        other => other.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

fn is_name(text: &str) -> bool {
    let first = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '_' | ':');
    text.chars().next().is_some_and(first)
        && text
            .chars()
            .all(|letter| first(letter) || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_violates_the_format_is_refused() {
        let good = "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds H.\na_seconds_total{b=\"c\\\"d\"} 1.5\n";
        let families = read_openmetrics(&format!("{good}# EOF\n")).unwrap();
        assert_eq!(families[0].samples[0].labels["b"], "c\"d");
        assert_eq!(families[0].unit, "seconds");
        for (wrong, why) in [
            (good.to_owned(), "EOF"),
            (format!("{good}{good}# EOF\n"), "twice"),
            ("# TYPE a gauge\na 1\na 2\n# EOF\n".into(), "twice"),
            ("# TYPE a counter\na 1\n# EOF\n".into(), "another family"),
            ("# TYPE a counter\na_total -1\n# EOF\n".into(), "below 0"),
            ("# TYPE a gauge\n# UNIT a bytes\n# EOF\n".into(), "unit"),
            ("# TYPE a gauge\na{b=\"c} 1\n# EOF\n".into(), "no sample"),
            ("# TYPE a gauge\na inf\n# EOF\n".into(), "no sample"),
            (
                "# TYPE a histogram\na_bucket{le=\"1.0\"} 2\na_bucket{le=\"+Inf\"} 1\na_count 1\na_sum 1\n# EOF\n".into(),
                "grow",
            ),
        ] {
            let refused = read_openmetrics(&wrong).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
