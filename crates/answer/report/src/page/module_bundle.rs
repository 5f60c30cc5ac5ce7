//! Bundles the page's ES modules into one script: each becomes a function of its own, so that the page is one file.
//!
//! It supports only the syntax that the files in `crates/answer/report/page` use, and refuses anything else:
//! `import { a, b } from "./other.js";` on lines of their own at the top, and `export` before `function`, `async function`,
//! `const` or `class` at the beginning of a line. As they are, the files are ordinary modules that a browser or an editor
//! reads.

use std::collections::BTreeSet;
use std::fmt::Write;

/// A module: its file's name and its text.
pub(super) type Module = (&'static str, &'static str);

/// The modules as one script. Each module must come after those that it imports.
///
/// # Errors
/// If a module has other syntax: one sentence.
pub(super) fn bundle(modules: &[Module]) -> Result<String, String> {
    let mut script = String::from("\"use strict\";\nconst modules = {};\n");
    let mut known: Vec<(&str, BTreeSet<String>)> = Vec::new();
    for (name, text) in modules {
        let (body, exported) = body(name, text, &known)?;
        let names: Vec<&str> = exported.iter().map(String::as_str).collect();
        let _ = write!(
            script,
            "modules[{name:?}] = await (async () => {{\n{body}return {{ {} }};\n}})();\n",
            names.join(", ")
        );
        known.push((name, exported));
    }
    Ok(script)
}

fn body(
    name: &str,
    text: &str,
    known: &[(&str, BTreeSet<String>)],
) -> Result<(String, BTreeSet<String>), String> {
    let (mut body, mut exported) = (String::new(), BTreeSet::new());
    for (index, line) in text.lines().enumerate() {
        let failed = |what: &str| format!("{name}:{}: {what}: {line}", index + 1);
        if line.starts_with("import") {
            let (names, from) =
                imported(line).ok_or_else(|| failed("unsupported import syntax"))?;
            let module = known.iter().find(|(other, _)| *other == from);
            let (_, there) = module.ok_or_else(|| failed("the module must precede this one"))?;
            if let Some(missing) = names.iter().find(|name| !there.contains(**name)) {
                return Err(failed(&format!("`{missing}` is not exported")));
            }
            let _ = writeln!(
                body,
                "const {{ {} }} = modules[{from:?}];",
                names.join(", ")
            );
        } else if let Some(declared) = line.strip_prefix("export ") {
            let name =
                exported_name(declared).ok_or_else(|| failed("unsupported export syntax"))?;
            exported.insert(name.to_owned());
            body.push_str(declared);
            body.push('\n');
        } else {
            body.push_str(line);
            body.push('\n');
        }
    }
    Ok((body, exported))
}

fn imported(line: &str) -> Option<(Vec<&str>, &str)> {
    let (names, from) = line.strip_prefix("import { ")?.split_once(" } from \"./")?;
    Some((names.split(", ").collect(), from.strip_suffix("\";")?))
}

fn exported_name(declared: &str) -> Option<&str> {
    let kinds = ["async function ", "function ", "const ", "class "];
    let rest = kinds.iter().find_map(|kind| declared.strip_prefix(kind))?;
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_functions_that_see_only_what_they_import() {
        let a = (
            "a.js",
            "const hidden = 1;\nexport const one = hidden;\nexport function two() {\n  return 2;\n}\n",
        );
        let b = (
            "b.js",
            "import { one, two } from \"./a.js\";\nexport const three = one + two();\n",
        );
        let expected = "\"use strict\";\nconst modules = {};\n\
            modules[\"a.js\"] = await (async () => {\nconst hidden = 1;\nconst one = hidden;\nfunction two() {\n  return 2;\n}\n\
            return { one, two };\n})();\n\
            modules[\"b.js\"] = await (async () => {\nconst { one, two } = modules[\"a.js\"];\nconst three = one + two();\n\
            return { three };\n})();\n";
        assert_eq!(bundle(&[a, b]).unwrap(), expected);
    }

    #[test]
    fn what_it_does_not_understand_is_refused() {
        let a = ("a.js", "export const one = 1;");
        for (text, said) in [
            (
                "import one from \"./a.js\";",
                "b.js:1: unsupported import syntax",
            ),
            (
                "\nimport { two } from \"./a.js\";",
                "b.js:2: `two` is not exported",
            ),
            (
                "import { x } from \"./c.js\";",
                "b.js:1: the module must precede this one",
            ),
            ("export let x = 1;", "b.js:1: unsupported export syntax"),
            ("export default 1;", "b.js:1: unsupported export syntax"),
        ] {
            let error = bundle(&[a, ("b.js", text)]).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
