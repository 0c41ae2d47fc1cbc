//! `openapi.json`, and how an exchange is judged by it.

use std::collections::BTreeSet;

use boon::{Compiler, Draft, Schemas};
use serde_json::Value;

/// By which schemas find each other; nothing is fetched.
const URL: &str = "http://localhost/openapi.json";

/// Method, path and status of an answer.
pub(super) type Answered = (String, String, u16);

/// The file.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) document: Value,
}

impl Description {
    pub(super) fn read() -> Self {
        let text = include_str!("../../../../openapi.json");
        let document = serde_json::from_str(text).expect("it is JSON");
        Self { document }
    }

    /// Every answer that is described.
    pub(super) fn answers(&self) -> BTreeSet<Answered> {
        let members = |value: &Value| {
            let members = value.as_object().expect("an object").clone();
            members.into_iter()
        };
        let mut answers = BTreeSet::new();
        for (path, methods) in members(&self.document["paths"]) {
            for (method, operation) in members(&methods) {
                for (status, _) in members(&operation["responses"]) {
                    let status = status.parse().expect("a status");
                    answers.insert((method.to_uppercase(), path.clone(), status));
                }
            }
        }
        answers
    }

    /// Panics unless the answer is described, and has a body of this kind. Text is given as a string.
    pub(super) fn check_answer(&self, (method, path, status): &Answered, body: &Value) {
        let operation = &self.document["paths"][path][method.to_lowercase()];
        let answer = &operation["responses"][status.to_string()];
        assert!(
            answer.is_object(),
            "{method} {path} {status} is not described: {body}"
        );
        match content(answer) {
            None => assert_eq!(*body, Value::Null, "{method} {path} {status}"),
            Some(schema) => self.judge(schema, body, &format!("{method} {path} {status}")),
        }
    }

    /// Panics unless the body of a request that was granted is as described.
    pub(super) fn check_request(&self, method: &str, path: &str, body: &Value) {
        let request = &self.document["paths"][path][method.to_lowercase()]["requestBody"];
        let schema = content(request).unwrap_or_else(|| panic!("{method} {path} takes no body"));
        self.judge(schema, body, &format!("the request {method} {path}"));
    }

    /// Panics unless a body is that of a response which any operation may give.
    pub(super) fn check_common(&self, response: &str, body: &Value) {
        let answer = &self.document["components"]["responses"][response];
        let schema = content(answer).unwrap_or_else(|| panic!("{response} is not described"));
        self.judge(schema, body, response);
    }

    /// The names of the responses that any operation may give.
    pub(super) fn common(&self) -> BTreeSet<String> {
        let responses = self.document["components"]["responses"].as_object();
        responses.expect("an object").keys().cloned().collect()
    }

    fn judge(&self, schema: &Value, value: &Value, what: &str) {
        let mut judged = schema.clone();
        // References are to the components of the document.
        judged["components"] = self.document["components"].clone();
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.enable_format_assertions();
        compiler
            .add_resource(URL, judged)
            .expect("a schema is JSON");
        let mut schemas = Schemas::new();
        let compiled = compiler.compile(URL, &mut schemas);
        let index = compiled.unwrap_or_else(|error| panic!("{what}: {error:#}"));
        if let Err(error) = schemas.validate(value, index) {
            panic!("{what}: {error:#}\nin {value:#}");
        }
    }
}

/// The schema of what is sent, whatever its media type.
fn content(described: &Value) -> Option<&Value> {
    let content = described["content"].as_object()?;
    let (_, media) = content.iter().next()?;
    media.get("schema")
}
