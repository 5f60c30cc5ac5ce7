//! Outputs against the schema, and which of its values they have.

use crate::support::Place;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SCHEMA: &str = include_str!("../../../../../../docs/reference/schema.json");

/// What was printed so far.
pub(super) struct Outputs {
    schema: Value,
    /// Its definitions, with nothing beside what they say.
    strict: Value,
    /// Definitions, and values by their path in one, that some output had.
    printed: BTreeSet<String>,
    pub(super) wrong: Vec<String>,
}

impl Outputs {
    pub(super) fn new() -> Self {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        jsonschema::meta::validate(&schema).unwrap();
        Self {
            strict: strict(&schema["$defs"]),
            schema,
            printed: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    /// What a command prints, whether it succeeds or not.
    pub(super) fn collect(&mut self, name: &str, place: &Place, words: &[&str]) {
        let done = place.stackline(words);
        let output = serde_json::from_str(&done.out)
            .unwrap_or_else(|error| panic!("{words:?}: {error}\n{}{}", done.out, done.err));
        self.take(name, &output);
    }

    /// An output, by the name of its definition.
    pub(super) fn take(&mut self, name: &str, output: &Value) {
        let of = json!({ "$schema": self.schema["$schema"], "$ref": format!("#/$defs/{name}"), "$defs": self.strict });
        let validator = jsonschema::validator_for(&of).unwrap();
        let wrong = validator.iter_errors(output).map(|error| {
            let what: String = error.to_string().chars().take(300).collect();
            format!("{name}{}: {what}", error.instance_path())
        });
        self.wrong.extend(wrong);
        mark(
            &self.schema,
            "",
            &json!({ "$ref": of["$ref"] }),
            output,
            &mut self.printed,
        );
    }

    /// Definitions and values that no output had, or only as null.
    pub(super) fn never_printed(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (name, definition) in self.schema["$defs"].as_object().unwrap() {
            all.push(name.clone());
            paths(name, definition, &mut all);
        }
        all.retain(|path| !self.printed.contains(path));
        all.dedup();
        all
    }
}

/// A schema whose objects have nothing beside their properties.
fn strict(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut strict: Value = members
                .iter()
                .map(|(name, member)| (name.clone(), strict(member)))
                .collect();
            if members.get("type") == Some(&json!("object")) && members.contains_key("properties") {
                strict["additionalProperties"] = false.into();
            }
            strict
        }
        Value::Array(items) => items.iter().map(strict).collect(),
        other => other.clone(),
    }
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|key| schema[key].as_array())
        .flatten()
}

/// Notes what of a schema an output has.
fn mark(root: &Value, at: &str, schema: &Value, output: &Value, printed: &mut BTreeSet<String>) {
    if !schema.is_object() {
        return;
    }
    if let Some(reference) = schema["$ref"].as_str().filter(|_| !output.is_null()) {
        let name = reference.rsplit('/').next().unwrap();
        printed.insert(name.to_owned());
        mark(root, name, &root["$defs"][name], output, printed);
    }
    choices(schema).for_each(|choice| mark(root, at, choice, output, printed));
    match output {
        Value::Object(members) => {
            for (name, member) in members {
                let path = format!("{at}.{name}");
                let Some(of) = schema["properties"].get(name) else {
                    mark(
                        root,
                        &path,
                        &schema["additionalProperties"],
                        member,
                        printed,
                    );
                    continue;
                };
                mark(root, &path, of, member, printed);
                if !member.is_null() {
                    printed.insert(path);
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                let of = schema["prefixItems"].get(place).unwrap_or(&schema["items"]);
                mark(root, at, of, item, printed);
            }
        }
        _ => {}
    }
}

/// Paths of all values in a definition.
fn paths(at: &str, schema: &Value, all: &mut Vec<String>) {
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        all.push(format!("{at}.{name}"));
        paths(&format!("{at}.{name}"), of, all);
    }
    choices(schema).for_each(|choice| paths(at, choice, all));
    if schema["items"].is_object() {
        paths(at, &schema["items"], all);
    }
}
