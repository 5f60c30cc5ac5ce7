//! Which text form of metrics a client gets, by its `Accept` (RFC 9110, section 12.5.1).

use super::{MetricFamily, openmetrics_text, prometheus_text};

/// A text form of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl MetricsFormat {
    /// The form for a client: OpenMetrics if it asks for that by name and prefers nothing to it, otherwise the older format, which every
    /// client reads.
    #[must_use]
    pub fn by_accept(accept: &str) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut weight, mut is_known) = (1.0, true);
            for parameter in parts {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "q" => weight = quality(value),
                    "version" => is_known = value.starts_with("1.") || value == "0.0.1",
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if is_known => open = f64::max(open, weight),
                "text/plain" => plain = f64::max(plain, weight),
                _ => {}
            }
        }
        if open > 0.0 && open >= plain {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The `Content-Type` of the form.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Families in this form.
    #[must_use]
    pub fn text(self, families: &[MetricFamily]) -> String {
        match self {
            Self::OpenMetrics => openmetrics_text(families),
            Self::Prometheus => prometheus_text(families),
        }
    }
}

/// A weight between 0 and 1; what is none counts as 0.
fn quality(text: &str) -> f64 {
    text.parse()
        .ok()
        .filter(|weight| (0.0..=1.0).contains(weight))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_openmetrics_if_it_asks_for_that() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for (accept, expected) in [
            ("", MetricsFormat::Prometheus),
            ("*/*", MetricsFormat::Prometheus),
            ("text/html, text/plain", MetricsFormat::Prometheus),
            (prometheus, MetricsFormat::OpenMetrics),
            (
                "Application/OpenMetrics-Text ; Version=\"1.0.0\"",
                MetricsFormat::OpenMetrics,
            ),
            (
                "application/openmetrics-text;q=0.1, text/plain;q=0.9",
                MetricsFormat::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0",
                MetricsFormat::Prometheus,
            ),
            (
                "application/openmetrics-text;version=2.0.0, */*",
                MetricsFormat::Prometheus,
            ),
            (
                "application/openmetrics-text;q=NaN",
                MetricsFormat::Prometheus,
            ),
        ] {
            assert_eq!(MetricsFormat::by_accept(accept), expected, "{accept}");
        }
    }
}
