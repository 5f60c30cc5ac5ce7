//! A tree of named facts, with a list of those that are absent and why. It collects nothing itself.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Facts by path (such as `processor/model`), and by path the reasons why others are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EnvironmentFacts {
    values: BTreeMap<String, Value>,
    reasons: BTreeMap<String, String>,
}

impl EnvironmentFacts {
    /// Adds a fact, or why it is absent.
    pub(crate) fn add(&mut self, path: &str, fact: Result<impl Into<Value>, String>) {
        match fact {
            Ok(value) => self.put(path, value),
            Err(reason) => self.absent(path, reason),
        }
    }

    /// Adds a fact that is known.
    pub(crate) fn put(&mut self, path: &str, value: impl Into<Value>) {
        self.values.insert(path.to_owned(), value.into());
    }

    /// Adds the reason why a fact is absent.
    pub(crate) fn absent(&mut self, path: &str, reason: impl Into<String>) {
        self.reasons.insert(path.to_owned(), reason.into());
    }

    /// The facts as a nested JSON object. If any is absent, its last member `absent` holds the reasons.
    pub(crate) fn into_json(self) -> Value {
        let mut object = Map::new();
        for (path, value) in self.values {
            insert(&mut object, &path, value);
        }
        if !self.reasons.is_empty() {
            let absent = self
                .reasons
                .into_iter()
                .map(|(path, reason)| (path, Value::String(reason)))
                .collect();
            object.insert("absent".to_owned(), Value::Object(absent));
        }
        Value::Object(object)
    }
}

/// Puts a value at its path. A path through a value that is not an object is dropped.
fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('/') {
        None => _ = object.insert(path.to_owned(), value),
        Some((first, rest)) => {
            let inner = object
                .entry(first)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// A number as JSON: whole numbers without a fraction, if a float holds them exactly (below 2^53).
pub(crate) fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        Value::from(value as i64)
    } else {
        Value::from(value)
    }
}

/// A number if the text is one, else the text.
pub(crate) fn number_or_text(text: &str) -> Value {
    text.parse::<i64>()
        .map_or_else(|_| Value::from(text), Value::from)
}
