//! The page with its data in one file, which a browser opens from anywhere.
//!
//! The page's modules import each other by relative paths; here an import map resolves names to their sources. Only the
//! scripts of this file run: the content security policy has a nonce that the recorded data cannot contain.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use crate::address::random_number;

/// The prefix of the page's own modules in the import map.
const PAGE: &str = "page/";

/// Returns the file. `Recorded` in `page/source.js` reads `recorded`.
pub(super) fn with(recorded: &Value) -> String {
    let nonce = format!("{:016x}{:016x}", random_number(), random_number());
    let style = source("style.css");
    let imports = json!({ "imports": imports() });
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    format!(
        r#"<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="{policy}">
    <title>Report of a failed test</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <link rel="icon" href="data:,">
    <style nonce="{nonce}">{style}</style>
    <script type="importmap" nonce="{nonce}">{imports}</script>
  </head>
  <body>
    <div id="app"><p class="empty">The report requires JavaScript.</p></div>
    <script type="application/json" id="recorded">{data}</script>
    <script type="module" nonce="{nonce}">import "{PAGE}app.js";</script>
  </body>
</html>
"#,
        data = inert(recorded),
    )
}

/// Writes JSON that cannot begin or end an HTML element.
fn inert(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

fn source(path: &str) -> &'static str {
    let mut sources = servicebus_inspector::SOURCES.iter();
    let found = sources.find(|(name, _)| *name == path);
    found.map(|(_, text)| *text).unwrap_or_default()
}

/// Returns the sources of all modules by their import names.
fn imports() -> Map<String, Value> {
    let page = source("index.html");
    let mapped = page.split_once("<script type=\"importmap\">");
    let mapped = mapped.and_then(|(_, rest)| rest.split_once("</script>"));
    let vendored: Value = mapped
        .and_then(|(map, _)| serde_json::from_str(map).ok())
        .unwrap_or_default();
    let vendored = vendored["imports"].as_object().cloned();
    let mut imports = Map::new();
    for (name, path) in vendored.into_iter().flatten() {
        let path = path.as_str().unwrap_or_default().trim_start_matches("./");
        imports.insert(name, module(source(path)));
    }
    for (path, text) in servicebus_inspector::SOURCES {
        if path.ends_with(".js") {
            // The only form of an import between the page's modules.
            let text = text.replace(" from \"./", &format!(" from \"{PAGE}"));
            imports.insert(format!("{PAGE}{path}"), module(&text));
        }
    }
    imports
}

fn module(text: &str) -> Value {
    format!(
        "data:text/javascript;base64,{}",
        BASE64_STANDARD.encode(text)
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_close_an_html_element() {
        let file = with(&json!({ "failure": "</script><script>alert(1)</script><!--" }));
        assert!(file.contains(r"\u003c/script>\u003cscript>alert(1)"));
        assert_eq!(file.matches("<script").count(), 3);
    }

    #[test]
    fn every_module_is_in_the_file_and_imports_none_by_path() {
        let imports = imports();
        for (path, text) in servicebus_inspector::SOURCES {
            if !path.ends_with(".js") {
                continue;
            }
            let Some(Value::String(url)) = imports.get(&format!("{PAGE}{path}")) else {
                panic!("{path} is missing");
            };
            let (_, packed) = url.split_once("base64,").unwrap();
            let unpacked = BASE64_STANDARD.decode(packed).unwrap();
            let unpacked = String::from_utf8(unpacked).unwrap();
            for form in [" from \"./", "import \"./"] {
                assert!(!unpacked.contains(form), "{path}");
            }
            assert!(!text.is_empty());
        }
        assert!(imports.contains_key("preact/hooks"));
    }

    #[test]
    fn every_report_has_a_nonce_of_its_own() {
        assert_ne!(with(&Value::Null), with(&Value::Null));
    }
}
